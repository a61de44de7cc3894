"""Context-free parsing: the k best derivations of one sentence.

Every item of the chart keeps a list of its k best scores, in descending order, and how each of them is made: by which
rule and split, from which places in the lists of the children. A way to make an item is looked at as long as it can
still enter the list: its children's lists are walked from their best entries on, and left where a score is no better
than the last one of a full list. So a list costs little more than its best entry, and it is exact.

Reference: Huang, Chiang, "Better k-best parsing", 2005.
"""

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.oracles.driver import rows_of
from m3n.compiled.oracles.grammar import cell_of, keep_high, open_chart, read_surface, span_score, unary_score
from m3n.compiled.oracles.hooks import read_shared, workspace
from m3n.compiled.primitives.bits import lowest
from m3n.compiled.primitives.vector import padded


@compiled
def k_best(space, arrays, first, shared, room, low, high, scores, packed):
    """The best scores of examples low..high-1 into ``scores`` (n, k), -inf where there are no more derivations.

    Row r of ``packed`` gets the derivations of rank r, -1 where room is left.
    """
    work, k = workspace(space), scores.shape[1]
    read_shared(space, shared, work)
    items = work.values.shape[0]
    found, counts, made = np.empty((items, k)), np.empty(items, np.int64), np.empty((items, k, 4), np.int32)
    lows, stack = np.empty(work.places.shape, np.int32), np.empty((work.stack.shape[0], 4), np.int64)
    for i in range(low, high):
        own = rows_of(arrays, first, i)
        root = _rank(space, i, own, found, counts, made, lows, work)
        for r in range(k):
            count = 0
            scores[i, r] = found[root, r] if r < counts[root] else -np.inf
            if r < counts[root]:
                count = _trace(space, i, root, r, made, lows, stack, work)
            for s in range(room[i + 1] - room[i]):
                packed[r, room[i] + s] = work.steps[s] if s < count else -1


@inner
def _rank(space, i, own, found, counts, made, lows, work):
    """Fill the lists of all items; the number of the root's."""
    length = space.lengths[i]
    base = space.item_first[2 * space.cells[i]]
    read_surface(space, length, own, work)
    open_chart(space, length, work)
    for width in range(1, length + 1):
        for begin in range(length - width + 1):
            end = begin + width
            cell = cell_of(length, begin, end)
            at = 2 * (space.cells[i] + cell)
            work.low[:] = -np.inf
            for m in range(space.item_first[at], space.item_first[at + 1]):
                item, symbol = m - base, space.items[m]
                counts[item] = 0
                if width == 1:
                    _insert(found[item], counts, made[item], item, own[0][begin * space.tags + symbol], 0, 0, 0, 0)
                else:
                    span = span_score(space, cell, symbol, own)
                    _rank_splits(space, length, begin, end, symbol, item, span, found, counts, made, work)
                lows[cell, symbol] = item
                work.low[symbol] = found[item, 0] if counts[item] else -np.inf
            for m in range(space.item_first[at + 1], space.item_first[at + 2]):
                item, symbol = m - base, space.items[m]
                counts[item] = 0
                _rank_unary(space, length, begin, end, cell, symbol, item, own, found, counts, made, lows, work)
                work.places[cell, symbol] = item
                best = found[item, 0] if counts[item] else -np.inf
                keep_high(space, length, begin, end, symbol, best, -np.inf, work)
    return work.places[cell_of(length, 0, length), space.root]


@inner
def _insert(scores, counts, made, item, score, rule, split, one, two):
    """Put a score into the list of an item, if it is among the best."""
    k = counts[item]
    if k == scores.shape[0]:
        if not score > scores[k - 1]:
            return
        k -= 1
    if not score > -np.inf:
        return
    while k > 0 and scores[k - 1] < score:
        scores[k] = scores[k - 1]
        for j in range(4):
            made[k, j] = made[k - 1, j]
        k -= 1
    scores[k], made[k, 0], made[k, 1], made[k, 2], made[k, 3] = score, rule, split, one, two
    counts[item] = min(counts[item] + 1, scores.shape[0])


@inner
def _least(found, counts, item):
    """What a score must exceed to enter a list."""
    full = counts[item] == found.shape[1]
    return found[item, found.shape[1] - 1] if full else -np.inf


@inner
def _rank_splits(space, length, begin, end, symbol, item, span, found, counts, made, work):
    """The list of a low symbol, from the lists of its children."""
    symbols, words, wide = space.begins.shape[0] - 1, length // 64 + 1, padded(length + 1)
    for m in range(space.begins[symbol], space.begins[symbol + 1]):
        left, right = begin * symbols + space.lefts[m], end * symbols + space.rights[m]
        for word in range(begin >> 6, (end >> 6) + 1):
            bits = work.left_bits[left * words + word] & work.right_bits[right * words + word]
            while bits != 0:
                k, r = (word << 6) + lowest(bits), space.rule_of[m]
                bits &= bits - 1
                kind = space.kinds[r] * wide
                base = work.rule[r] + work.first[kind + begin] + work.last[kind + end - 1] + work.split[kind + k] + span
                if base + work.left[left * wide + k] + work.right[right * wide + k] > _least(found, counts, item):
                    one = work.places[cell_of(length, begin, k), space.lefts[m]]
                    two = work.places[cell_of(length, k, end), space.rights[m]]
                    _combine(base, r, k, one, two, item, found, counts, made)


@inner
def _combine(base, r, k, one, two, item, found, counts, made):
    """All pairs of entries of two lists that can still enter a third."""
    for a in range(counts[one]):
        if not base + found[one, a] + found[two, 0] > _least(found, counts, item):
            return
        for b in range(counts[two]):
            score = base + found[one, a] + found[two, b]
            if not score > _least(found, counts, item):
                break
            _insert(found[item], counts, made[item], item, score, r, k, a, b)


@inner
def _rank_unary(space, length, begin, end, cell, symbol, item, own, found, counts, made, lows, work):
    """The list of a high symbol, from those of the low ones."""
    if work.low[symbol] > -np.inf:
        _lift(0.0, -1, lows[cell, symbol], item, found, counts, made)
    for m in range(space.unary_begins[symbol], space.unary_begins[symbol + 1]):
        u = space.unary_of[m]
        child = space.unary[u, 1]
        if work.low[child] > -np.inf:
            score = unary_score(space, length, begin, end, cell, u, own, work)
            _lift(score, u, lows[cell, child], item, found, counts, made)


@inner
def _lift(score, u, below, item, found, counts, made):
    for a in range(counts[below]):
        if not score + found[below, a] > _least(found, counts, item):
            return
        _insert(found[item], counts, made[item], item, score + found[below, a], u, 0, a, 0)


@inner
def _trace(space, i, root, rank, made, lows, stack, work):
    """Write the derivation of an entry of the root's list; the number of its rules."""
    length, binary, rules, count, depth = space.lengths[i], space.lefts.shape[0], space.kinds.shape[0], 0, 1
    _push(stack, 0, space.root, 0, length, rank)
    while depth > 0:
        depth -= 1
        symbol, begin, end, entry = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        cell = cell_of(length, begin, end)
        item = work.places[cell, symbol]
        u, entry = made[item, entry, 0], made[item, entry, 2]
        if u >= 0:
            work.steps[count], symbol = binary + u, space.unary[u, 1]
            count += 1
        item = lows[cell, symbol]
        if end - begin == 1:
            work.steps[count] = rules + symbol
        else:
            r, k = made[item, entry, 0], made[item, entry, 1]
            work.steps[count] = r
            _push(stack, depth, space.binary[r, 2], k, end, made[item, entry, 3])
            _push(stack, depth + 1, space.binary[r, 1], begin, k, made[item, entry, 2])
            depth += 2
        count += 1
    return count


@inner
def _push(stack, depth, symbol, begin, end, entry):
    stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = symbol, begin, end, entry
