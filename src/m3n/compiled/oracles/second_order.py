"""Projective trees with scores of pairs of arcs, siblings and grandchildren: both oracles of one sentence.

Items as in ``projective``, for every context c of a head h, the arc (g, h) into it or h alone (``second_order_items``);
[a] is the context that an arc a = (h, d) makes for d:

    met(s, d)       neighbouring children of h on one side, and all words between: max over r of { complete[h, s](s, r)
                    + complete[h, d](d, r + 1) } or the other way round, plus the sibling score; for the first child d,
                    s = none, complete[h, d](d, word beside h)
    open_c(h, d)    = score(h, d) + grandchild score(c, (h, d)) + max over s of { open_c(h, s) + met(s, d) },
                    s = none or between h and d, open_c(h, none) = 0
    complete_c(h, e) = max over children d up to e of { open_c(h, d) + complete[h, d](d, e) },   complete_c(h, h) = 0

with mu log sum exp(./mu) for the maxima in the exp-oracle. Every tree is made in one way. If the root may have a single
child, it has no siblings. Marginals come from above, as in ``projective``. With k candidate heads of a word, and as
many children, complete items cost O(k^2 length^2), met ones O(k^2 length) times the distance of siblings.

Reference: Koo, Collins, "Efficient third-order dependency parsers", 2010 (model 1).
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing
from m3n.compiled.oracles.arcs import Candidates, add_best_labels, add_soft_labels, count_arcs, list_arcs, weigh_labels
from m3n.compiled.oracles.hooks import implements
from m3n.compiled.oracles.second_order_items import (
    below,
    child,
    contexts_of,
    grandchild_part,
    grandchildren_at,
    lay_out,
    row_of,
    second_order_scratch,
    sibling_part,
    siblings_at,
    side_of,
)
from m3n.compiled.primitives.pairs import best_place, join, share

COMPLETE, OPEN = 0, 1


class SecondOrderSpace(NamedTuple):
    """Plain arrays of a ``ProjectiveTree`` with scores of pairs of arcs. Arcs are numbered over all sentences."""

    arcs: Candidates
    single_root: bool
    siblings: bool
    grandchildren: bool
    dependent: np.ndarray  # (arcs,)
    by_head: np.ndarray  # (arcs,) arcs by sentence, head, side and distance
    side_first: np.ndarray  # (2 (words + n) + 1,) where those of a side begin, for all heads and the root
    nearer: np.ndarray  # (arcs,) number of arcs on the same side that are shorter
    sibling_first: np.ndarray  # (arcs + 1,) first sibling part
    grandchild_first: np.ndarray  # (arcs + 1,) first grandchild part
    reverse: np.ndarray  # (arcs,) of (h, d) the place of (d, h) among the arcs into h, or -1


@implements("workspace", SecondOrderSpace)
def _workspace(space):
    return second_order_scratch(space)


@implements("best", SecondOrderSpace)
def _best(space, i, theta, parts, work):
    add_best_labels(space.arcs, i, theta, work.scores)
    value = _inside(space, i, theta, 0.0, work)
    if not value > -np.inf:
        return value, 0
    _trace(space, i, work)
    number, length = list_arcs(space.arcs, i, theta, work.heads, parts), space.arcs.lengths[i]
    if space.siblings:
        for word in range(1, length + 1):
            parts[number] = siblings_at(space, i) + work.sibling[word]
            number += 1
    if space.grandchildren:
        for word in range(1, length + 1):
            if work.heads[word] > 0:
                parts[number] = grandchildren_at(space, i) + work.grandchild[word]
                number += 1
    return value, number


@implements("soft", SecondOrderSpace)
def _soft(space, i, theta, mu, work):
    add_soft_labels(space.arcs, i, theta, mu, work.scores)
    value = _inside(space, i, theta, mu, work)
    _from_above(space, i, value, mu, work)
    _collect(space, i, theta, work)
    weigh_labels(space.arcs, i, theta)
    return value


@borrowing
def _inside(space, i, theta, mu, work):
    """Values of all items; that of the whole sentence."""
    n = space.arcs.lengths[i] + 1
    lay_out(space, i, work)
    for low in range(n - 1, -1, -1):
        for context in range(work.context[low], work.context[low + 1]):
            work.complete[context * n + low] = 0.0
        for high in range(low + 1, n):
            _open(space, i, low, high, theta, mu, work)
            if low > 0:
                _open(space, i, high, low, theta, mu, work)
                _complete(space, i, high, low, mu, work)
            _complete(space, i, low, high, mu, work)
    return work.complete[n - 1]


@borrowing
def _open(space, i, head, word, theta, mu, work):
    """Open items of an arc, if it is a candidate."""
    arc = work.arc_at[head, word]
    if arc < 0:
        return
    side, ways, first = _side(head, word), _ways(space, i, head, arc), sibling_part(space, i, arc)
    possible = work.scores[arc] > -np.inf
    for k in range(ways if possible else 0):
        extra = theta[siblings_at(space, i) + first + k] if space.siblings else 0.0
        work.met[first + k] = _met(space, i, head, word, arc, k, mu, work) + extra
    for context in range(work.context[head], work.context[head + 1]):
        row = row_of(space, i, context, head, side, work)
        value = work.scores[arc]
        if space.grandchildren and head > 0:
            part = grandchild_part(space, i, arc, context - work.context[head])
            value += theta[grandchildren_at(space, i) + part] if part >= 0 else -np.inf
        if value > -np.inf:
            value += join(work.opened, row, work.met, first, ways, mu)
        work.opened[row + 1 + _nearer(space, i, arc)] = value


@borrowing
def _side(head, word):
    return 2 * head + (1 if word > head else 0)


@borrowing
def _nearer(space, i, arc):
    """Number of candidates for children between the head and the dependent of an arc."""
    return space.nearer[space.arcs.first[i] + arc]


@borrowing
def _ways(space, i, head, arc):
    """In how many ways an arc can follow others on its side, none of them included."""
    return 1 if space.single_root and head == 0 else _nearer(space, i, arc) + 1


@borrowing
def _meeting(space, i, head, word, arc, k, n):
    """Two stretches of ``complete`` from whose sums met(s, d) is made, s being the k-th child, none for k = 0."""
    own = below(space, i, arc) * n
    if k == 0:  # all words between belong to the dependent: the other stretch is complete(d, d) = 0
        return own + word, own + (head + 1 if word > head else head - 1), 1
    inner_arc = child(space, i, _side(head, word), k - 1)
    sibling, other = space.dependent[space.arcs.first[i] + inner_arc], below(space, i, inner_arc) * n
    if word > head:
        return other + sibling, own + sibling + 1, word - sibling
    return own + word, other + word + 1, sibling - word


@borrowing
def _met(space, i, head, word, arc, k, mu, work):
    """met(s, d) without its sibling score."""
    a, b, count = _meeting(space, i, head, word, arc, k, space.arcs.lengths[i] + 1)
    return join(work.complete, a, work.complete, b, count, mu)


@borrowing
def _complete(space, i, head, end, mu, work):
    """Complete items of all contexts of a head."""
    n, side = space.arcs.lengths[i] + 1, _side(head, end)
    count = _take_column(space, i, head, end, work)
    for context in range(work.context[head], work.context[head + 1]):
        row = row_of(space, i, context, head, side, work)
        work.complete[context * n + end] = join(work.opened, row + 1, work.column, 0, count, mu)


@borrowing
def _take_column(space, i, head, end, work):
    """complete[h, d](d, e) of the children d of h up to e, in the order of their distance; their number."""
    n, first, count = space.arcs.lengths[i] + 1, space.arcs.first[i], 0
    begin, most = side_of(space, i, _side(head, end))
    while count < most and abs(space.dependent[space.by_head[begin + count]] - head) <= abs(end - head):
        work.column[count] = work.complete[below(space, i, space.by_head[begin + count] - first) * n + end]
        count += 1
    return count


@borrowing
def _trace(space, i, work):
    """Heads, sibling parts and grandchild parts of the best tree, by looking again; of equal ways the first."""
    n, items = space.arcs.lengths[i] + 1, work.items
    left = _push(items, 0, COMPLETE, 0, 0, n - 1)
    while left > 0:
        left -= 1
        kind, context, head, end = items[left]
        if kind == OPEN:
            left = _trace_open(space, i, context, head, end, left, work)
        elif head != end:
            side, count = _side(head, end), _take_column(space, i, head, end, work)
            row = row_of(space, i, context, head, side, work)
            arc = child(space, i, side, best_place(work.opened, row + 1, work.column, 0, count))
            word = space.dependent[space.arcs.first[i] + arc]
            left = _push(items, left, OPEN, context, head, word)
            left = _push(items, left, COMPLETE, below(space, i, arc), word, end)


@borrowing
def _trace_open(space, i, context, head, word, left, work):
    """Take an open item apart."""
    n, items, arc, side = space.arcs.lengths[i] + 1, work.items, work.arc_at[head, word], _side(head, word)
    row, first = row_of(space, i, context, head, side, work), sibling_part(space, i, arc)
    k = best_place(work.opened, row, work.met, first, _ways(space, i, head, arc))
    work.heads[word], work.sibling[word] = head, first + k
    if space.grandchildren and head > 0:
        work.grandchild[word] = grandchild_part(space, i, arc, context - work.context[head])
    a, b, count = _meeting(space, i, head, word, arc, k, n)
    split = best_place(work.complete, a, work.complete, b, count)
    if k == 0:
        return _push(items, left, COMPLETE, below(space, i, arc), word, b % n)
    inner_arc = child(space, i, side, k - 1)
    sibling = space.dependent[space.arcs.first[i] + inner_arc]
    own_end, other_end = (b + split, a + split) if word > head else (a + split, b + split)
    left = _push(items, left, OPEN, context, head, sibling)
    left = _push(items, left, COMPLETE, below(space, i, inner_arc), sibling, other_end % n)
    return _push(items, left, COMPLETE, below(space, i, arc), word, own_end % n)


@borrowing
def _push(items, left, kind, context, head, end):
    items[left, 0], items[left, 1], items[left, 2], items[left, 3] = kind, context, head, end
    return left + 1


@borrowing
def _from_above(space, i, value, mu, work):
    """Probabilities of all items; all 0 if there is no tree."""
    n = space.arcs.lengths[i] + 1
    _clear(space, i, n, work)
    work.p_complete[n - 1] = 1.0 if value > -np.inf else 0.0
    for low in range(n):
        for high in range(n - 1, low, -1):
            _divide_complete(space, i, low, high, mu, work)
            if low > 0:
                _divide_complete(space, i, high, low, mu, work)
                _divide_open(space, i, high, low, mu, work)
            _divide_open(space, i, low, high, mu, work)


@borrowing
def _clear(space, i, n, work):
    first, end, last = space.arcs.first[i], space.arcs.first[i + 1], 2 * n - 1
    for k in range(work.context[n] * n):
        work.p_complete[k] = 0.0
    for k in range(work.row_at[last] + contexts_of(space, i, n - 1) * (side_of(space, i, last)[1] + 1)):
        work.p_opened[k] = 0.0
    for k in range(space.sibling_first[end] - space.sibling_first[first]):
        work.p_met[k] = 0.0


@borrowing
def _divide_complete(space, i, head, end, mu, work):
    """Share out the probabilities of complete items of all contexts of a head."""
    n, side, count = space.arcs.lengths[i] + 1, _side(head, end), 0
    for context in range(work.context[head], work.context[head + 1]):
        p = work.p_complete[context * n + end]
        if p > 0.0:
            if count == 0:
                count = _take_column(space, i, head, end, work)
                for k in range(count):
                    work.p_column[k] = 0.0
            at = row_of(space, i, context, head, side, work) + 1
            share(p, work.opened, at, work.column, 0, count, mu, work.ways, work.p_opened, work.p_column)
    for k in range(count):
        work.p_complete[below(space, i, child(space, i, side, k)) * n + end] += work.p_column[k]


@borrowing
def _divide_open(space, i, head, word, mu, work):
    """Share out the probabilities of the open items of an arc."""
    arc = work.arc_at[head, word]
    if arc < 0:
        return
    side, ways, first, some = _side(head, word), _ways(space, i, head, arc), sibling_part(space, i, arc), False
    for context in range(work.context[head], work.context[head + 1]):
        row = row_of(space, i, context, head, side, work)
        p = work.p_opened[row + 1 + _nearer(space, i, arc)]
        if p > 0.0:
            share(p, work.opened, row, work.met, first, ways, mu, work.ways, work.p_opened, work.p_met)
            some = True
    for k in range(ways if some else 0):
        if work.p_met[first + k] > 0.0:
            a, b, count = _meeting(space, i, head, word, arc, k, space.arcs.lengths[i] + 1)
            p, p_complete = work.p_met[first + k], work.p_complete
            share(p, work.complete, a, work.complete, b, count, mu, work.ways, p_complete, p_complete)


@borrowing
def _collect(space, i, theta, work):
    """Marginals of all parts but labels."""
    first = space.arcs.first[i]
    for arc in range(count_arcs(space.arcs, i)):
        head, word, total = space.arcs.head[first + arc], space.dependent[first + arc], 0.0
        for context in range(work.context[head], work.context[head + 1]):
            row = row_of(space, i, context, head, _side(head, word), work)
            p = work.p_opened[row + 1 + _nearer(space, i, arc)]
            total += p
            if space.grandchildren and head > 0:
                part = grandchild_part(space, i, arc, context - work.context[head])
                if part >= 0:
                    theta[grandchildren_at(space, i) + part] = p
        theta[arc] = total
        if space.siblings:
            at = sibling_part(space, i, arc)
            for k in range(_nearer(space, i, arc) + 1):
                theta[siblings_at(space, i) + at + k] = work.p_met[at + k]
