"""Context-free parsing: the chart, the max-oracle of one sentence (CKY), and the parts of a derivation.

A *cell* is a stretch of words from ``begin`` to ``end``, exclusive, of which a sentence of length L has L (L + 1)/2, in
the order of their begin, then of their end. A symbol is in a cell twice, in two layers:

    low (A, begin, end)  = tag score of the word,  or  max over rules A -> B C and begin < split < end of
                           high(B, begin, split) + high(C, split, end) + score of the anchored rule
    high(A, begin, end)  = max of low(A, begin, end) and over rules A -> B of low(B, begin, end) + score of that rule

An anchored rule r of class d scores rule[r] + first[begin, d] + last[end - 1, d] + split[split, d] + span[cell, label].
Only what can be part of a complete parse is looked at, which ``grammar_chart`` has found out beforehand: ``items``
lists the low symbols of every cell and then its high ones. For every position and symbol the splits that are possible
on either side are bits of an integer, so that one `and` answers for a whole cell whether a rule can apply and where.
CKY keeps no back pointers: it finds the best derivation by looking again, along that derivation only.

Charts hold scores of high symbols twice, for the left and for the right child, so that the splits of a cell follow one
another in memory, padded to whole vectors; those that are not possible are -inf. Cost: O(L^2 rules + anchored rules).

A derivation is the list of its rules in leftmost order: binary rules come first among the numbers, then unary ones,
then tags.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inlined, inner
from m3n.compiled.oracles.hooks import implements, in_steps, read_shared, workspace
from m3n.compiled.primitives.arrays import largest
from m3n.compiled.primitives.bits import lowest, mark
from m3n.compiled.primitives.order import ascend
from m3n.compiled.primitives.vector import add, highest, load, maximum, padded, splat, store


@in_steps
class GrammarSpace(NamedTuple):
    """Plain arrays of a ``Grammar``."""

    lengths: np.ndarray  # (n,)
    binary: np.ndarray  # (binary, 3) parents and children
    rule_of: np.ndarray  # (binary,) rules in the order of their parents
    lefts: np.ndarray  # (binary,) left children in that order
    rights: np.ndarray  # (binary,) right children in that order
    begins: np.ndarray  # (symbols + 1,) where the rules of a parent begin in that order
    unary: np.ndarray  # (unary, 2) parents and children
    unary_of: np.ndarray  # (unary,) rules in the order of their parents
    unary_begins: np.ndarray  # (symbols + 1,)
    root: int
    tags: int
    label: np.ndarray  # (symbols,) label of the span of a binary rule's parent, or -1
    chain_first: np.ndarray  # (unary + 1,)
    chains: np.ndarray  # labels of the spans of unary rules
    labels: int
    kinds: np.ndarray  # (binary + unary,) kind of a rule: those of one kind have the same classes
    members: np.ndarray  # (kinds, classes of a rule) columns of the arrays of surface scores
    classes: int
    cells: np.ndarray  # (n,) first cell of a sentence
    item_first: np.ndarray  # (2 cells + 1,) where the low symbols of a cell begin, and the high ones
    items: np.ndarray  # symbols


class GrammarScratch(NamedTuple):
    """Memory for one sweep."""

    rule: np.ndarray  # (rules,) scores
    rule_counts: np.ndarray  # (rules,) marginals
    left: np.ndarray  # (longest + 1, symbols, padded), flat: scores of high symbols by begin and end
    right: np.ndarray  # the same by end and begin
    left_bits: np.ndarray  # (longest + 1, symbols, words), flat: ends that are possible
    right_bits: np.ndarray  # begins that are possible
    first: np.ndarray  # (kinds, padded), flat: surface scores of kinds of rules
    split: np.ndarray
    last: np.ndarray
    low: np.ndarray  # (symbols,) scores of low symbols in a cell
    rule_weights: np.ndarray  # (rules,) exponentials of scores, and the largest score
    rule_top: np.ndarray  # (1,)
    surface_tops: np.ndarray  # (3, longest + 1) largest surface scores at every position
    scales: np.ndarray  # (cells of the longest,)
    factor: np.ndarray  # (padded,) of splits of a cell
    left_shares: np.ndarray  # as ``left`` and ``right``: probabilities of high symbols
    right_shares: np.ndarray
    values: np.ndarray  # (most items of a sentence,) scores
    totals: np.ndarray  # (most items,) sums of exp((term - top)/mu); their tops are in ``tops``
    tops: np.ndarray  # (most items,)
    shares: np.ndarray  # (most items,) probabilities
    places: np.ndarray  # (cells of the longest, symbols) where a high symbol is among the items
    terms: np.ndarray  # (most anchored rules of one parent in one cell,)
    where: np.ndarray  # (most anchored rules of one parent in one cell, 2): their rules and splits
    first_counts: np.ndarray  # (kinds, padded), flat: marginals of surface scores
    split_counts: np.ndarray
    last_counts: np.ndarray
    below: np.ndarray  # (symbols,) probabilities of low symbols in a cell
    row: np.ndarray  # (labels,) marginals of the spans of a cell
    steps: np.ndarray  # (4 longest,) rules of a derivation
    stack: np.ndarray  # (4 longest, 3)
    sizes: np.ndarray  # (4 longest, 2) words below a step, and below its left child


@implements("workspace", GrammarSpace)
def _workspace(space):
    longest, symbols = largest(space.lengths), space.begins.shape[0] - 1
    kinds, rules = space.members.shape[0], space.kinds.shape[0]
    chart = (longest + 1) * symbols * padded(longest + 1)
    words = (longest + 1) * symbols * (longest // 64 + 1)
    surface = kinds * padded(longest + 1)
    items = _most_items(space)
    most = max(_most_rules(space.begins) * longest, _most_rules(space.unary_begins)) + 1
    charts = np.empty(chart), np.empty(chart), np.empty(words, np.int64), np.empty(words, np.int64)
    scores = np.zeros(surface), np.zeros(surface), np.zeros(surface), np.empty(symbols)
    scaled = np.empty(rules), np.empty(1), np.empty((3, longest + 1)), np.empty(longest * (longest + 1) // 2)
    shares = np.empty(padded(longest + 5)), np.empty(chart), np.empty(chart)
    soft = np.empty(items), np.empty(items), np.empty(items), np.empty(items)
    places = np.empty((longest * (longest + 1) // 2, symbols), np.int32)
    terms = np.empty(most), np.empty((most, 2), np.int64)
    counts = np.empty(surface), np.empty(surface), np.empty(surface), np.empty(symbols), np.empty(space.labels)
    steps = np.empty(4 * longest, np.int64), np.empty((4 * longest, 3), np.int64), np.empty((4 * longest, 2), np.int64)
    return GrammarScratch(
        np.empty(rules), np.zeros(rules), *charts, *scores, *scaled, *shares, *soft, places, *terms, *counts, *steps
    )


@inner
def _most_items(space):
    found = 0
    for i in range(space.lengths.shape[0]):
        first, length = space.cells[i], space.lengths[i]
        last = first + length * (length + 1) // 2
        found = max(found, space.item_first[2 * last] - space.item_first[2 * first])
    return found


@inner
def _most_rules(begins):
    found = 0
    for k in range(begins.shape[0] - 1):
        found = max(found, begins[k + 1] - begins[k])
    return found


@implements("cut", GrammarSpace)
def _cut(space, i, theta):
    length, rules = space.lengths[i], space.kinds.shape[0]
    at = length * space.tags
    surface, after = length * space.classes, at + rules
    own = (
        theta[:at],
        theta[after : after + surface],
        theta[after + surface : after + 2 * surface],
        theta[after + 2 * surface : after + 3 * surface],
        theta[after + 3 * surface :],
    )
    return own, theta[at : at + rules]


@implements("read_shared", GrammarSpace)
def _read_shared(space, shared, work):
    for r in range(shared.shape[0]):
        work.rule[r] = shared[r]


@implements("best_own", GrammarSpace)
def _best_own(space, i, own, mass, parts, work):
    value, count = best_steps(space, i, own, work)
    return value, write_parts(space, i, work.steps, count, parts, work.stack, work.sizes)


@compiled
def derive(space, arrays, first, shared, room, low, high, values, packed):
    """Max-oracle of examples low..high-1: best scores, and derivations into ``packed``, -1 where room is left."""
    work = workspace(space)
    read_shared(space, shared, work)
    for i in range(low, high):
        own = (
            arrays[0][first[0, i] : first[0, i + 1]],
            arrays[1][first[1, i] : first[1, i + 1]],
            arrays[2][first[2, i] : first[2, i + 1]],
            arrays[3][first[3, i] : first[3, i + 1]],
            arrays[4][first[4, i] : first[4, i + 1]],
        )
        values[i], count = best_steps(space, i, own, work)
        for k in range(room[i + 1] - room[i]):
            packed[room[i] + k] = work.steps[k] if k < count else -1


@compiled
def cell_of(length, begin, end):
    """The number of a cell within its sentence."""
    return begin * length - begin * (begin - 1) // 2 + end - begin - 1


@inner
def read_surface(space, length, own, work):
    """Scores of kinds of rules at every position: the sum over their classes."""
    _add_classes(space, length, own[1], work.first)
    _add_classes(space, length, own[2], work.split)
    _add_classes(space, length, own[3], work.last)


@inner
def _add_classes(space, length, source, target):
    for kind in range(space.members.shape[0]):
        at = kind * padded(length + 1)
        for t in range(length):
            total = 0.0
            for m in range(space.members.shape[1]):
                total += source[t * space.classes + space.members[kind, m]]
            target[at + t] = total


@inner
def open_chart(space, length, work):
    """Nothing is possible yet."""
    size = (length + 1) * (space.begins.shape[0] - 1) * (length // 64 + 1)
    for k in range(size):
        work.left_bits[k] = 0
        work.right_bits[k] = 0


@inlined
def keep_high(space, length, begin, end, symbol, value, impossible, work):
    """Write down the score of a high symbol, for either side of a split; others score as what is impossible does."""
    symbols = space.begins.shape[0] - 1
    _keep(length, begin * symbols + symbol, end, value, impossible, work.left, work.left_bits)
    _keep(length, end * symbols + symbol, begin, value, impossible, work.right, work.right_bits)


@inlined
def _keep(length, row, k, value, impossible, chart, bits):
    words, wide = length // 64 + 1, padded(length + 1)
    used = False
    for word in range(row * words, (row + 1) * words):
        used = used or bits[word] != 0
    if not used:
        for at in range(row * wide, (row + 1) * wide, 4):
            store(chart, at, splat(impossible))
    chart[row * wide + k] = value
    mark(bits[row * words : (row + 1) * words], k)


@inner
def best_steps(space, i, own, work):
    """The best score of sentence i; its best derivation is written to ``work.steps``. Also their number."""
    length = space.lengths[i]
    base = space.item_first[2 * space.cells[i]]
    read_surface(space, length, own, work)
    open_chart(space, length, work)
    for width in range(1, length + 1):
        for begin in range(length - width + 1):
            _fill_cell(space, i, length, begin, begin + width, base, own, work)
    last = space.item_first[2 * (space.cells[i] + cell_of(length, 0, length)) + 2] - 1
    return work.values[last - base], _trace(space, i, length, base, own, work)  # the root is the only high symbol there


@inner
def _fill_cell(space, i, length, begin, end, base, own, work):
    cell = cell_of(length, begin, end)
    at = 2 * (space.cells[i] + cell)
    low = work.low
    low[:] = -np.inf
    for m in range(space.item_first[at], space.item_first[at + 1]):
        symbol = space.items[m]
        if end - begin == 1:
            value = own[0][begin * space.tags + symbol]
        else:
            value = _largest_split(space, length, begin, end, symbol, work) + span_score(space, cell, symbol, own)
        low[symbol] = work.values[m - base] = value
    for m in range(space.item_first[at + 1], space.item_first[at + 2]):
        symbol = space.items[m]
        value, _ = best_unary(space, length, begin, end, cell, symbol, own, work)
        work.values[m - base] = value
        keep_high(space, length, begin, end, symbol, value, -np.inf, work)


@inlined
def span_score(space, cell, symbol, own):
    """What the span of a binary rule's parent scores."""
    label = space.label[symbol]
    return own[4][cell * space.labels + label] if label >= 0 else 0.0


@inlined
def _largest_split(space, length, begin, end, symbol, work):
    """The score of the best binary rule and split for a parent in a cell, without the span's."""
    symbols, words, wide = space.begins.shape[0] - 1, length // 64 + 1, padded(length + 1)
    start, found = (begin + 1) // 4 * 4, splat(-np.inf)
    for m in range(space.begins[symbol], space.begins[symbol + 1]):
        left, right = begin * symbols + space.lefts[m], end * symbols + space.rights[m]
        if applies(work, left, right, words, begin, end):
            r = space.rule_of[m]
            kind = space.kinds[r] * wide
            base = splat(work.rule[r] + work.first[kind + begin] + work.last[kind + end - 1])
            for k in range(start, end, 4):
                children = add(load(work.left, left * wide + k), load(work.right, right * wide + k))
                found = maximum(found, add(add(children, load(work.split, kind + k)), base))
    return highest(found)


@inlined
def applies(work, left, right, words, begin, end):
    """Whether both children, rows of the charts, are possible at some split."""
    if words == 1:
        return (work.left_bits[left] & work.right_bits[right]) != 0
    for word in range(begin >> 6, (end >> 6) + 1):
        if work.left_bits[left * words + word] & work.right_bits[right * words + word]:
            return True
    return False


@inner
def best_split(space, length, begin, end, symbol, work):
    """The same with the rule and its split, one by one."""
    symbols, words, wide = space.begins.shape[0] - 1, length // 64 + 1, padded(length + 1)
    best, best_rule, best_at = -np.inf, -1, -1
    for m in range(space.begins[symbol], space.begins[symbol + 1]):
        left, right = begin * symbols + space.lefts[m], end * symbols + space.rights[m]
        for word in range(begin >> 6, (end >> 6) + 1):
            bits = work.left_bits[left * words + word] & work.right_bits[right * words + word]
            if bits != 0:
                r = space.rule_of[m]
                kind = space.kinds[r] * wide
                base = work.rule[r] + work.first[kind + begin] + work.last[kind + end - 1]
                while bits != 0:
                    k = (word << 6) + lowest(bits)
                    bits &= bits - 1
                    score = base + work.left[left * wide + k] + work.right[right * wide + k] + work.split[kind + k]
                    if score > best or best_rule < 0:
                        best, best_rule, best_at = score, r, k
    return best, best_rule, best_at


@inlined
def unary_score(space, length, begin, end, cell, u, own, work):
    """What an anchored unary rule scores."""
    r, labels = space.lefts.shape[0] + u, cell * space.labels
    kind = space.kinds[r] * padded(length + 1)
    score = work.rule[r] + work.first[kind + begin] + work.last[kind + end - 1]
    for m in range(space.chain_first[u], space.chain_first[u + 1]):
        score += own[4][labels + space.chains[m]]
    return score


@inlined
def best_unary(space, length, begin, end, cell, symbol, own, work):
    """The score of a high symbol, and its best unary rule, -1 if it is best without one.

    ``work.low`` are the scores of the low symbols. Even a score of -inf is that of something that is possible.
    """
    best, best_rule = work.low[symbol], -1
    for m in range(space.unary_begins[symbol], space.unary_begins[symbol + 1]):
        u = space.unary_of[m]
        below = work.low[space.unary[u, 1]]
        if below > -np.inf:
            score = below + unary_score(space, length, begin, end, cell, u, own, work)
            if score > best:
                best, best_rule = score, u
    return best, best_rule


@inner
def _trace(space, i, length, base, own, work):
    """Write the best derivation in leftmost order; the number of its rules."""
    stack, count, depth, binary = work.stack, 0, 1, space.lefts.shape[0]
    unary = space.unary.shape[0]
    stack[0, 0], stack[0, 1], stack[0, 2] = space.root, 0, length
    while depth > 0:
        depth -= 1
        symbol, begin, end = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        symbol, u = _below(space, i, length, begin, end, base, symbol, own, work)
        if u >= 0:
            work.steps[count] = binary + u
            count += 1
        if end - begin == 1:
            work.steps[count] = binary + unary + symbol
        else:
            _, r, k = best_split(space, length, begin, end, symbol, work)
            work.steps[count] = r
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = space.binary[r, 2], k, end
            stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = space.binary[r, 1], begin, k
            depth += 2
        count += 1
    return count


@inner
def _below(space, i, length, begin, end, base, symbol, own, work):
    """The low symbol below a high one in the best derivation, and the unary rule between them, or -1."""
    cell = cell_of(length, begin, end)
    at = 2 * (space.cells[i] + cell)
    work.low[:] = -np.inf
    possible = False
    for m in range(space.item_first[at], space.item_first[at + 1]):
        work.low[space.items[m]] = work.values[m - base]
        possible = possible or space.items[m] == symbol
    _, u = best_unary(space, length, begin, end, cell, symbol, own, work)
    if u < 0 and not possible:  # all ways score -inf: any will do
        u = _any_unary(space, at, symbol)
    return (space.unary[u, 1] if u >= 0 else symbol), u


@inner
def _any_unary(space, at, symbol):
    """The first unary rule of a parent whose child is a low symbol of the cell."""
    for k in range(space.unary_begins[symbol], space.unary_begins[symbol + 1]):
        for m in range(space.item_first[at], space.item_first[at + 1]):
            if space.items[m] == space.unary[space.unary_of[k], 1]:
                return space.unary_of[k]
    return -1


@compiled
def list_parts(space, packed, room, parts, counts):
    """The parts of derivations: parts[i, : counts[i]] of example i, ascending."""
    longest = largest(space.lengths)
    stack, sizes = np.empty((4 * longest, 3), np.int64), np.empty((4 * longest, 2), np.int64)
    for i in range(counts.shape[0]):
        number = 0
        while number < room[i + 1] - room[i] and packed[room[i] + number] >= 0:
            number += 1
        counts[i] = write_parts(space, i, packed[room[i] : room[i + 1]], number, parts[i], stack, sizes)


@inner
def write_parts(space, i, steps, count, parts, stack, sizes):
    """The parts of a derivation of sentence i, ascending; their number."""
    measure(space, steps, count, stack, sizes)
    length, classes, rules = space.lengths[i], space.classes, space.kinds.shape[0]
    shared = length * space.tags
    surface, binary, number, begin = shared + rules, space.lefts.shape[0], 0, 0
    spans = surface + 3 * length * classes
    for s in range(count):
        r, end = steps[s], begin + sizes[s, 0]
        if r >= rules:
            parts[number] = begin * space.tags + r - rules
            number, begin = number + 1, begin + 1
            continue
        parts[number] = shared + r
        number += 1
        if classes > 0:
            for m in range(space.members.shape[1]):
                column = space.members[space.kinds[r], m]
                parts[number] = surface + begin * classes + column
                parts[number + 1] = surface + (2 * length + end - 1) * classes + column
                number += 2
                if r < binary:
                    parts[number] = surface + (length + begin + sizes[s, 1]) * classes + column
                    number += 1
        row = spans + cell_of(length, begin, end) * space.labels
        if r >= binary:
            for m in range(space.chain_first[r - binary], space.chain_first[r - binary + 1]):
                parts[number] = row + space.chains[m]
                number += 1
        elif space.label[space.binary[r, 0]] >= 0:
            parts[number] = row + space.label[space.binary[r, 0]]
            number += 1
    ascend(parts, 0, number)
    return number


@inner
def measure(space, steps, count, stack, sizes):
    """How many words are below every step of a derivation, and below its left child."""
    depth, binary, rules = 0, space.lefts.shape[0], space.kinds.shape[0]
    for s in range(count - 1, -1, -1):  # so the children of a symbol are there before it
        if steps[s] >= rules:
            stack[depth, 0] = 1
            depth += 1
        elif steps[s] < binary:
            sizes[s, 1] = stack[depth - 1, 0]
            stack[depth - 2, 0] += stack[depth - 1, 0]
            depth -= 1
        sizes[s, 0] = stack[depth - 1, 0]
