"""Context-free parsing: the exp-oracle of one sentence by products of numbers that are scaled cell by cell.

Exponentials of scores are kept as multiples of exp(scale/mu), where the scale of a cell makes its largest high symbol
1. For a cell from b to e, the splits k have the factors

    factor[k] = exp((scale(b, k) + scale(k, e) - top)/mu),       top the largest of these sums,

and the sum over all anchored rules becomes products of vectors over the splits, without an exponential. All factors are
at most 1: what is lost by underflow is less than 1e-290 of the largest item of a cell. So if every item that is
possible comes out as 1e-140 of that at least, sums are right to machine precision; if not, where mu is small or parts
are forbidden, nothing has been written, and ``grammar_soft`` computes with logarithms instead.

Outside, what an item's probability gives to its anchored rules is again a product of vectors over the splits. Items
with less than 1e-20 of the weight of the sentence are passed over.
"""

import numpy as np

from m3n.compiled.jit import inlined, inner
from m3n.compiled.oracles.grammar import applies, cell_of, keep_high, open_chart, read_surface
from m3n.compiled.primitives.exponential import exp
from m3n.compiled.primitives.logarithm import log
from m3n.compiled.primitives.vector import add, load, multiply, multiply_add, padded, splat, store, total

SAFE = 1e-140
TINY = 1e-20


@inner
def read_rules(mu, work):
    """Rules as exponentials, the largest of them 1."""
    top = -np.inf
    for r in range(work.rule.shape[0]):
        top = max(top, work.rule[r])
    work.rule_top[0] = top
    for r in range(work.rule.shape[0]):
        work.rule_weights[r] = exp((work.rule[r] - top) / mu)


@inner
def soft_scaled(space, i, own, mu, weight, work):
    """Whether all went well, and then the value; marginals are written only then."""
    length = space.lengths[i]
    base = space.item_first[2 * space.cells[i]]
    read_surface(space, length, own, work)
    _exponentials(space, length, mu, work.first, work.surface_tops[0])
    _exponentials(space, length, mu, work.split, work.surface_tops[1])
    _exponentials(space, length, mu, work.last, work.surface_tops[2])
    open_chart(space, length, work)
    for width in range(1, length + 1):
        for begin in range(length - width + 1):
            if not _sum_cell(space, i, length, begin, begin + width, base, mu, own, work):
                return False, 0.0
    value = work.scales[cell_of(length, 0, length)]
    _open_shares(space, length, own, work)
    work.left_shares[space.root * padded(length + 1) + length] = weight
    for width in range(length, 0, -1):
        for begin in range(length - width + 1):
            _share_cell(space, i, length, begin, begin + width, base, mu, TINY * weight, own, work)
    return True, value


@inner
def _exponentials(space, length, mu, scores, tops):
    """Surface scores become exponentials; the largest one of every position, as a score, goes to ``tops``."""
    wide = padded(length + 1)
    for t in range(length):
        top = scores[t]
        for kind in range(1, space.members.shape[0]):
            top = max(top, scores[kind * wide + t])
        tops[t] = top
    for kind in range(space.members.shape[0]):
        for t in range(length):
            scores[kind * wide + t] = exp((scores[kind * wide + t] - tops[t]) / mu)


@inner
def _sum_cell(space, i, length, begin, end, base, mu, own, work):
    """All items of a cell; whether none of them is too small."""
    cell = cell_of(length, begin, end)
    at = 2 * (space.cells[i] + cell)
    work.scales[cell] = -np.inf
    if space.item_first[at] == space.item_first[at + 2]:
        return True
    if end - begin == 1:
        scale = _read_tags(space, at, begin, base, mu, own, work)
    else:
        scale = _read_factors(length, begin, end, mu, work) + rule_top(begin, end, work)
        for m in range(space.item_first[at], space.item_first[at + 1]):
            work.totals[m - base] = _sum_splits(space, length, begin, end, space.items[m], work)
    scale += _weigh_low(space, at, cell, base, mu, own, work)
    above = _unary_top(space, at, begin, end, cell, own, work)
    largest, least = 0.0, np.inf
    for m in range(space.item_first[at + 1], space.item_first[at + 2]):
        value = _sum_high(space, length, begin, end, cell, space.items[m], above, mu, own, work)
        work.values[m - base] = value
        largest, least = max(largest, value), min(least, value)
    for m in range(space.item_first[at], space.item_first[at + 1]):
        least = min(least, work.low[space.items[m]])
    if not least > SAFE:
        return False
    for m in range(space.item_first[at + 1], space.item_first[at + 2]):
        keep_high(space, length, begin, end, space.items[m], work.values[m - base] / largest, 0.0, work)
    work.scales[cell] = scale + above + mu * log(largest)
    return True


@inlined
def rule_top(begin, end, work):
    """The largest score of a rule in a cell, without its split and its span."""
    return work.rule_top[0] + work.surface_tops[0, begin] + work.surface_tops[2, end - 1]


@inner
def _read_tags(space, at, begin, base, mu, own, work):
    """Tags of a word as exponentials, the largest of them 1; its score."""
    scores, top = own[0][begin * space.tags : (begin + 1) * space.tags], -np.inf
    for m in range(space.item_first[at], space.item_first[at + 1]):
        top = max(top, scores[space.items[m]])
    for m in range(space.item_first[at], space.item_first[at + 1]):
        work.totals[m - base] = exp((scores[space.items[m]] - top) / mu) if top > -np.inf else 0.0
    return top


@inlined
def _read_factors(length, begin, end, mu, work):
    """What splits of a cell multiply; the largest score of one."""
    factor, top = work.factor, -np.inf
    for k in range(begin // 4 * 4, end + 4):
        factor[k] = -np.inf
    for k in range(begin + 1, end):
        pieces = work.scales[cell_of(length, begin, k)] + work.scales[cell_of(length, k, end)]
        factor[k] = pieces + work.surface_tops[1, k]
        top = max(top, factor[k])
    for k in range(begin // 4 * 4, end + 4):
        factor[k] = exp((factor[k] - top) / mu)
    return top


@inlined
def _sum_splits(space, length, begin, end, symbol, work):
    """The sum over all anchored binary rules of a parent in a cell."""
    symbols, words, wide = space.begins.shape[0] - 1, length // 64 + 1, padded(length + 1)
    start, found = (begin + 1) // 4 * 4, splat(0.0)
    for m in range(space.begins[symbol], space.begins[symbol + 1]):
        left, right = begin * symbols + space.lefts[m], end * symbols + space.rights[m]
        if applies(work, left, right, words, begin, end):
            r = space.rule_of[m]
            kind = space.kinds[r] * wide
            weight = splat(work.rule_weights[r] * work.first[kind + begin] * work.last[kind + end - 1])
            for k in range(start, end, 4):
                children = multiply(load(work.left, left * wide + k), load(work.right, right * wide + k))
                around = multiply(load(work.split, kind + k), load(work.factor, k))
                found = multiply_add(multiply(children, around), weight, found)
    return total(found)


@inlined
def _weigh_low(space, at, cell, base, mu, own, work):
    """Low symbols with their spans, 0 for others; the largest score of a span, at least 0."""
    top, row = 0.0, cell * space.labels
    for m in range(space.item_first[at], space.item_first[at + 1]):
        label = space.label[space.items[m]]
        if label >= 0:
            top = max(top, own[4][row + label])
    work.low[:] = 0.0
    for m in range(space.item_first[at], space.item_first[at + 1]):
        label = space.label[space.items[m]]
        score = own[4][row + label] if label >= 0 else 0.0
        work.low[space.items[m]] = work.totals[m - base] * exp((score - top) / mu)
    return top


@inlined
def _chain_score(space, cell, u, own):
    """What a unary rule adds for the labels of its span."""
    score = 0.0
    for m in range(space.chain_first[u], space.chain_first[u + 1]):
        score += own[4][cell * space.labels + space.chains[m]]
    return score


@inlined
def _unary_top(space, at, begin, end, cell, own, work):
    """The largest score of a unary rule that applies in a cell, at least 0, that of none."""
    top, rule = 0.0, rule_top(begin, end, work)
    for k in range(space.item_first[at + 1], space.item_first[at + 2]):
        symbol = space.items[k]
        for m in range(space.unary_begins[symbol], space.unary_begins[symbol + 1]):
            u = space.unary_of[m]
            if work.low[space.unary[u, 1]] > 0.0:
                top = max(top, rule + _chain_score(space, cell, u, own))
    return top


@inlined
def _unary_weight(space, length, begin, end, cell, u, above, mu, own, work):
    r = space.lefts.shape[0] + u
    kind = space.kinds[r] * padded(length + 1)
    weight = work.rule_weights[r] * work.first[kind + begin] * work.last[kind + end - 1]
    return weight * exp((rule_top(begin, end, work) + _chain_score(space, cell, u, own) - above) / mu)


@inlined
def _sum_high(space, length, begin, end, cell, symbol, above, mu, own, work):
    """The sum over all ways to make a high symbol."""
    value = work.low[symbol] * exp(-above / mu)
    for m in range(space.unary_begins[symbol], space.unary_begins[symbol + 1]):
        u = space.unary_of[m]
        below = work.low[space.unary[u, 1]]
        if below > 0.0:
            value += below * _unary_weight(space, length, begin, end, cell, u, above, mu, own, work)
    return value


@inner
def _open_shares(space, length, own, work):
    """No probabilities yet."""
    symbols, wide = space.begins.shape[0] - 1, padded(length + 1)
    own[0][:] = 0.0
    for at in range(0, (length + 1) * symbols * wide, 4):
        store(work.left_shares, at, splat(0.0))
        store(work.right_shares, at, splat(0.0))


@inner
def _share_cell(space, i, length, begin, end, base, mu, least, own, work):
    """Hand the probabilities of the items of a cell down, the high ones first."""
    cell = cell_of(length, begin, end)
    at = 2 * (space.cells[i] + cell)
    work.row[:] = 0.0
    if _share_high(space, at, length, begin, end, cell, base, mu, least, own, work):
        if end - begin > 1:
            _read_factors(length, begin, end, mu, work)
        for m in range(space.item_first[at], space.item_first[at + 1]):
            symbol = space.items[m]
            share = work.below[symbol]
            if share > least:
                if end - begin == 1:
                    own[0][begin * space.tags + symbol] = share
                else:
                    if space.label[symbol] >= 0:
                        work.row[space.label[symbol]] += share
                    _share_splits(space, length, begin, end, symbol, share / work.totals[m - base], work)
    row = own[4][cell * space.labels : (cell + 1) * space.labels]
    for label in range(space.labels):
        row[label] = work.row[label]


@inner
def _share_high(space, at, length, begin, end, cell, base, mu, least, own, work):
    """Probabilities of low symbols, in ``work.below``; whether there are any."""
    symbols, wide = space.begins.shape[0] - 1, padded(length + 1)
    reached, above = False, 0.0
    for m in range(space.item_first[at + 1], space.item_first[at + 2]):
        symbol = space.items[m]
        share = work.left_shares[(begin * symbols + symbol) * wide + end]
        share += work.right_shares[(end * symbols + symbol) * wide + begin]
        if share > least:
            if not reached:
                reached = True
                work.below[:] = 0.0
                _weigh_low(space, at, cell, base, mu, own, work)
                above = _unary_top(space, at, begin, end, cell, own, work)
            _share_unary(space, length, begin, end, cell, symbol, share / work.values[m - base], above, mu, own, work)
    return reached


@inlined
def _share_unary(space, length, begin, end, cell, symbol, amount, above, mu, own, work):
    """What the ways to make a high symbol get; ``amount`` is its probability divided by their sum."""
    work.below[symbol] += amount * work.low[symbol] * exp(-above / mu)
    for m in range(space.unary_begins[symbol], space.unary_begins[symbol + 1]):
        u = space.unary_of[m]
        child = space.unary[u, 1]
        if work.low[child] > 0.0:
            p = amount * work.low[child] * _unary_weight(space, length, begin, end, cell, u, above, mu, own, work)
            work.below[child] += p
            count_rule(space, length, begin, end, space.lefts.shape[0] + u, p, work)
            for k in range(space.chain_first[u], space.chain_first[u + 1]):
                work.row[space.chains[k]] += p


@inlined
def count_rule(space, length, begin, end, r, p, work):
    """Add the probability of an anchored rule to its parts, but for splits and spans."""
    work.rule_counts[r] += p
    kind = space.kinds[r] * padded(length + 1)
    work.first_counts[kind + begin] += p
    work.last_counts[kind + end - 1] += p


@inner
def _share_splits(space, length, begin, end, symbol, amount, work):
    """What the anchored rules of a low symbol get, and their children and splits."""
    symbols, words, wide = space.begins.shape[0] - 1, length // 64 + 1, padded(length + 1)
    start, split, factor = (begin + 1) // 4 * 4, work.split, work.factor
    left_chart, right_chart, lefts, rights = work.left, work.right, work.left_shares, work.right_shares
    first_counts, split_counts, last_counts = work.first_counts, work.split_counts, work.last_counts
    for m in range(space.begins[symbol], space.begins[symbol + 1]):
        left, right = begin * symbols + space.lefts[m], end * symbols + space.rights[m]
        if applies(work, left, right, words, begin, end):
            r = space.rule_of[m]
            kind, a, b = space.kinds[r] * wide, left * wide, right * wide
            weight = splat(amount * work.rule_weights[r] * work.first[kind + begin] * work.last[kind + end - 1])
            found = splat(0.0)
            for k in range(start, end, 4):
                children = multiply(load(left_chart, a + k), load(right_chart, b + k))
                p = multiply(multiply(children, multiply(load(split, kind + k), load(factor, k))), weight)
                found = add(found, p)
                store(lefts, a + k, add(load(lefts, a + k), p))
                store(rights, b + k, add(load(rights, b + k), p))
                store(split_counts, kind + k, add(load(split_counts, kind + k), p))
            share = total(found)
            work.rule_counts[r] += share
            first_counts[kind + begin] += share
            last_counts[kind + end - 1] += share
