"""Context-free parsing: the exp-oracle of one sentence (inside and outside).

Inside, bottom up, every maximum of ``oracles.grammar`` becomes mu log sum exp(./mu), kept as its largest term ``top``
and the sum ``total`` of exp((term - top)/mu). Outside, top down, the probability of an item is shared among the ways to
make it in the proportion of those terms, and goes to their children and parts:

    P(way) = P(item) exp((term - top)/mu) / total

So marginals are those of a distribution at any temperature. Items of probability 0 are passed over. Where nothing
underflows, ``grammar_scaled`` gives the same answer without exponentials in the inner loops, and is asked first.
"""

import numpy as np

from m3n.compiled.jit import inner
from m3n.compiled.oracles.grammar import (
    GrammarSpace,
    cell_of,
    keep_high,
    open_chart,
    read_surface,
    span_score,
    unary_score,
)
from m3n.compiled.oracles.grammar_scaled import count_rule, read_rules, soft_scaled
from m3n.compiled.oracles.hooks import implements
from m3n.compiled.primitives.bits import lowest
from m3n.compiled.primitives.exponential import exp
from m3n.compiled.primitives.logarithm import log
from m3n.compiled.primitives.vector import padded


@implements("begin_soft", GrammarSpace)
def _begin_soft(space, mu, work):
    read_rules(mu, work)
    for r in range(work.rule_counts.shape[0]):
        work.rule_counts[r] = 0.0


@implements("write_shared", GrammarSpace)
def _write_shared(space, shared, work):
    for r in range(shared.shape[0]):
        shared[r] = work.rule_counts[r]


@implements("soft_own", GrammarSpace)
def _soft_own(space, i, own, mu, weight, work):
    length = space.lengths[i]
    _clear_counts(space, length, work)
    safe, value = soft_scaled(space, i, own, mu, weight, work)
    if not safe:
        value = _soft_log(space, i, length, own, mu, weight, work)
    _write_surface(space, length, own, work)
    return value


@inner
def _soft_log(space, i, length, own, mu, weight, work):
    base = space.item_first[2 * space.cells[i]]
    read_surface(space, length, own, work)
    open_chart(space, length, work)
    for width in range(1, length + 1):
        for begin in range(length - width + 1):
            _sum_cell(space, i, length, begin, begin + width, base, mu, own, work)
    last = space.item_first[2 * (space.cells[i] + cell_of(length, 0, length)) + 2] - 1 - base
    value = work.values[last]
    cells = length * (length + 1) // 2
    work.shares[: space.item_first[2 * (space.cells[i] + cells)] - base] = 0.0
    own[0][:] = 0.0
    work.shares[last] = weight if value > -np.inf else 0.0
    for width in range(length, 0, -1):
        for begin in range(length - width + 1):
            _share_cell(space, i, length, begin, begin + width, base, mu, own, work)
    return value


@inner
def _sum_cell(space, i, length, begin, end, base, mu, own, work):
    """Tops, totals and values of all items of a cell."""
    cell = cell_of(length, begin, end)
    at = 2 * (space.cells[i] + cell)
    work.low[:] = -np.inf
    for m in range(space.item_first[at], space.item_first[at + 1]):
        symbol = space.items[m]
        if end - begin == 1:
            value = own[0][begin * space.tags + symbol]
            work.tops[m - base], work.totals[m - base] = value, 1.0
        else:
            count = _list_splits(space, length, begin, end, symbol, work)
            value = _sum_terms(count, mu, m - base, work) + span_score(space, cell, symbol, own)
        work.low[symbol] = work.values[m - base] = value
    for m in range(space.item_first[at + 1], space.item_first[at + 2]):
        symbol = space.items[m]
        count = _list_unary(space, length, begin, end, cell, symbol, own, work)
        value = _sum_terms(count, mu, m - base, work)
        work.values[m - base] = value
        work.places[cell, symbol] = m - base
        keep_high(space, length, begin, end, symbol, value, -np.inf, work)


@inner
def _list_splits(space, length, begin, end, symbol, work):
    """The scores of all anchored binary rules of a parent in a cell, without that of the span; their number."""
    symbols, words, wide, count = space.begins.shape[0] - 1, length // 64 + 1, padded(length + 1), 0
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
                    work.terms[count] = (
                        base + work.left[left * wide + k] + work.right[right * wide + k] + work.split[kind + k]
                    )
                    work.where[count, 0], work.where[count, 1] = r, k
                    count += 1
    return count


@inner
def _list_unary(space, length, begin, end, cell, symbol, own, work):
    """The scores of all ways to make a high symbol: none, then its unary rules; their number."""
    work.terms[0], work.where[0, 0], count = work.low[symbol], -1, 1
    for m in range(space.unary_begins[symbol], space.unary_begins[symbol + 1]):
        u = space.unary_of[m]
        below = work.low[space.unary[u, 1]]
        if below > -np.inf:
            work.terms[count] = below + unary_score(space, length, begin, end, cell, u, own, work)
            work.where[count, 0] = u
            count += 1
    return count


@inner
def _sum_terms(count, mu, item, work):
    """mu log sum exp(terms/mu), kept as top and total."""
    terms, top, total = work.terms, -np.inf, 0.0
    for t in range(count):
        top = max(top, terms[t])
    work.tops[item], work.totals[item] = top, 1.0
    if count == 1 or not top > -np.inf:
        return top
    inverse = 1.0 / mu
    for t in range(count):
        terms[t] = exp((terms[t] - top) * inverse)
    for t in range(count):
        total += terms[t]
    work.totals[item] = total
    return top + mu * log(total)


@inner
def _share_terms(count, mu, item, work):
    """Terms become probabilities: that of the item, shared among them."""
    terms, top, inverse = work.terms, work.tops[item], 1.0 / mu
    amount = work.shares[item] / work.totals[item]
    for t in range(count):
        terms[t] = exp((terms[t] - top) * inverse) * amount


@inner
def _share_cell(space, i, length, begin, end, base, mu, own, work):
    """Hand the probabilities of the items of a cell down, the high ones first."""
    cell = cell_of(length, begin, end)
    at = 2 * (space.cells[i] + cell)
    row = own[4][cell * space.labels : (cell + 1) * space.labels]  # scores, until the unary rules were looked at
    work.row[:] = 0.0
    if _is_reached(space, at, base, work):
        _share_high(space, at, length, begin, end, cell, base, mu, own, work)
        for m in range(space.item_first[at], space.item_first[at + 1]):
            symbol, work.shares[m - base] = space.items[m], work.low[space.items[m]]
            if work.shares[m - base] > 0.0:
                _share_low(space, length, begin, end, symbol, m - base, mu, own, work)
    for label in range(space.labels):
        row[label] = work.row[label]


@inner
def _is_reached(space, at, base, work):
    """Whether a high symbol of a cell has a probability."""
    for m in range(space.item_first[at + 1], space.item_first[at + 2]):
        if work.shares[m - base] > 0.0:
            return True
    return False


@inner
def _share_high(space, at, length, begin, end, cell, base, mu, own, work):
    """Hand the probabilities of high symbols down; ``work.low`` are then those of the low ones."""
    work.low[:] = -np.inf
    work.below[:] = 0.0
    for m in range(space.item_first[at], space.item_first[at + 1]):
        work.low[space.items[m]] = work.values[m - base]
    for m in range(space.item_first[at + 1], space.item_first[at + 2]):
        if work.shares[m - base] > 0.0:
            symbol = space.items[m]
            count = _list_unary(space, length, begin, end, cell, symbol, own, work)
            _share_terms(count, mu, m - base, work)
            for t in range(count):
                _give_unary(space, length, begin, end, symbol, t, work)
    work.low[:] = work.below


@inner
def _give_unary(space, length, begin, end, symbol, t, work):
    """Add the probability of a unary rule, or of none, to its child and its parts."""
    u, p = work.where[t, 0], work.terms[t]
    if u < 0:
        work.below[symbol] += p
        return
    work.below[space.unary[u, 1]] += p
    count_rule(space, length, begin, end, space.lefts.shape[0] + u, p, work)
    for m in range(space.chain_first[u], space.chain_first[u + 1]):
        work.row[space.chains[m]] += p


@inner
def _share_low(space, length, begin, end, symbol, item, mu, own, work):
    """Hand the probability of a low symbol down to words, or to the high symbols on both sides of splits."""
    if end - begin == 1:
        own[0][begin * space.tags + symbol] = work.shares[item]
        return
    if space.label[symbol] >= 0:
        work.row[space.label[symbol]] += work.shares[item]
    count = _list_splits(space, length, begin, end, symbol, work)
    _share_terms(count, mu, item, work)
    for t in range(count):
        p = work.terms[t]
        if p > 0.0:
            r, k = work.where[t, 0], work.where[t, 1]
            count_rule(space, length, begin, end, r, p, work)
            work.split_counts[space.kinds[r] * padded(length + 1) + k] += p
            work.shares[work.places[cell_of(length, begin, k), space.binary[r, 1]]] += p
            work.shares[work.places[cell_of(length, k, end), space.binary[r, 2]]] += p


@inner
def _clear_counts(space, length, work):
    """No marginals of surface scores yet."""
    for k in range(space.members.shape[0] * padded(length + 1)):
        work.first_counts[k] = 0.0
        work.split_counts[k] = 0.0
        work.last_counts[k] = 0.0


@inner
def _write_surface(space, length, own, work):
    """Marginals of surface scores: those of all kinds of rules that have a class."""
    if space.classes == 0:
        return
    _spread(space, length, work.first_counts, own[1])
    _spread(space, length, work.split_counts, own[2])
    _spread(space, length, work.last_counts, own[3])


@inner
def _spread(space, length, counts, target):
    target[:] = 0.0
    for kind in range(space.members.shape[0]):
        at = kind * padded(length + 1)
        for t in range(length):
            for m in range(space.members.shape[1]):
                target[t * space.classes + space.members[kind, m]] += counts[at + t]
