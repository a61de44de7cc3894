"""Projective trees with scores of single arcs: Eisner's algorithm, both oracles of one sentence.

Words 1..L and the root 0 stand in a row, n = L + 1. Two kinds of items, both with a head h at one end:

    open(h, d)      d is a child of h, and all words between are descendants of either
    complete(h, e)  all words from h to e are descendants of h, none beyond e; complete(h, h) = 0

    open(h, d)     = score(h, d) + max over i <= r < j of { complete(i, r) + complete(j, r + 1) },   {i < j} = {h, d}
    complete(h, e) = max over r from beside h to e of { open(h, r) + complete(r, e) }

with mu log sum exp(./mu) for the maxima in the exp-oracle. r is the outermost child of h in complete(h, e), so every
tree is made in one way only. If the root may have a single child, its open items are score(0, d) + complete(d, 1).
O(L^3) time and O(L^2) memory; ``complete`` is kept twice, as [h, e] and turned, [e, h], so that r always runs through
neighbouring numbers.

Marginals come from above instead of from an outside recursion: the tree itself has probability 1, and the probability
of an item is divided among the ways to make it, in proportion to exp(score of the way/mu), and goes to their pieces. So
they are those of a distribution at any temperature. The probability of open(h, d) is the marginal of the arc.

Reference: Eisner, "Three new probabilistic models for dependency parsing: an exploration", 1996.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing
from m3n.compiled.oracles.arcs import (
    Candidates,
    add_best_labels,
    add_soft_labels,
    collect_marginals,
    list_arcs,
    most_arcs,
    spread_scores,
    weigh_labels,
)
from m3n.compiled.oracles.hooks import implements
from m3n.compiled.primitives.arrays import largest
from m3n.compiled.primitives.pairs import best_place, join, share

COMPLETE, OPEN = 0, 1


class ProjectiveSpace(NamedTuple):
    """Plain arrays of a ``ProjectiveTree`` of the first order."""

    arcs: Candidates
    single_root: bool


class ProjectiveScratch(NamedTuple):
    """Memory for one sweep: flat tables (n, n) of the longest sentence, and room at their ends."""

    scores: np.ndarray  # (most arcs,)
    opened: np.ndarray  # open(h, d) at h n + d
    complete: np.ndarray  # complete(h, e) at h n + e
    turned: np.ndarray  # complete(h, e) at e n + h
    p_opened: np.ndarray  # probabilities of items; those of complete ones are the sums of both tables
    p_complete: np.ndarray
    p_turned: np.ndarray
    ways: np.ndarray  # (n,)
    heads: np.ndarray  # (n,) integers
    items: np.ndarray  # (2 n, 3) integers: what is left to take apart


@implements("workspace", ProjectiveSpace)
def _workspace(space):
    n = largest(space.arcs.lengths) + 1
    tables, scores, ways = np.zeros((6, n * n + 4)), np.empty(most_arcs(space.arcs)), np.zeros(n + 4)
    items = tables[0], tables[1], tables[2], tables[3], tables[4], tables[5]
    return ProjectiveScratch(scores, *items, ways, np.zeros(n, np.int64), np.empty((2 * n, 3), np.int64))


@implements("best", ProjectiveSpace)
def _best(space, i, theta, parts, work):
    n = space.arcs.lengths[i] + 1
    add_best_labels(space.arcs, i, theta, work.scores)
    spread_scores(space.arcs, i, work.scores, n, 1, work.opened)
    value = _inside(n, space.single_root, 0.0, work)
    if not value > -np.inf:
        return value, 0
    _trace(n, space.single_root, work)
    return value, list_arcs(space.arcs, i, theta, work.heads, parts)


@implements("soft", ProjectiveSpace)
def _soft(space, i, theta, mu, work):
    n = space.arcs.lengths[i] + 1
    add_soft_labels(space.arcs, i, theta, mu, work.scores)
    spread_scores(space.arcs, i, work.scores, n, 1, work.opened)
    value = _inside(n, space.single_root, mu, work)
    _from_above(n, space.single_root, value, mu, work)
    collect_marginals(space.arcs, i, n, 1, work.p_opened, theta)
    weigh_labels(space.arcs, i, theta)
    return value


@borrowing
def _inside(n, single_root, mu, work):
    """Values of all items, from the scores of arcs in ``opened``; that of the whole sentence."""
    opened, complete, turned = work.opened, work.complete, work.turned
    for i in range(n - 1, 0, -1):
        complete[i * n + i] = turned[i * n + i] = 0.0
        for j in range(i + 1, n):
            met = -np.inf
            if opened[i * n + j] > -np.inf or opened[j * n + i] > -np.inf:
                met = join(complete, i * n + i, complete, j * n + i + 1, j - i, mu)
            opened[i * n + j] += met
            opened[j * n + i] += met
            _complete(n, i, j, join(opened, i * n + i + 1, turned, j * n + i + 1, j - i, mu), work)
            _complete(n, j, i, join(opened, j * n + i, turned, i * n + i, j - i, mu), work)
    complete[0] = 0.0
    for j in range(1, n):
        opened[j] += join(complete, 0, complete, j * n + 1, _splits(single_root, 0, j), mu)
        if j == n - 1 or not single_root:
            complete[j] = join(opened, 1, turned, j * n + 1, j, mu)
    return complete[n - 1]


@borrowing
def _complete(n, h, e, value, work):
    work.complete[h * n + e] = work.turned[e * n + h] = value


@borrowing
def _splits(single_root, i, j):
    """How many splits there are between two words that an arc joins."""
    return 1 if single_root and i == 0 else j - i


@borrowing
def _trace(n, single_root, work):
    """The heads of the best tree, by looking again; of equal splits the leftmost."""
    opened, complete, turned, items = work.opened, work.complete, work.turned, work.items
    left = _push(items, 0, COMPLETE, 0, n - 1)
    while left > 0:
        left -= 1
        kind, h, e = items[left]
        i, j = min(h, e), max(h, e)
        if kind == OPEN:
            work.heads[e] = h
            r = i + best_place(complete, i * n + i, complete, j * n + i + 1, _splits(single_root, i, j))
            left = _push(items, _push(items, left, COMPLETE, i, r), COMPLETE, j, r + 1)
        elif h != e:
            low = i + 1 if h == i else i
            r = low + best_place(opened, h * n + low, turned, e * n + low, j - i)
            left = _push(items, _push(items, left, OPEN, h, r), COMPLETE, r, e)


@borrowing
def _push(items, left, kind, h, e):
    items[left, 0], items[left, 1], items[left, 2] = kind, h, e
    return left + 1


@borrowing
def _from_above(n, single_root, value, mu, work):
    """Probabilities of all items; all 0 if there is no tree."""
    for k in range(n * n):
        work.p_opened[k] = work.p_complete[k] = work.p_turned[k] = 0.0
    work.p_complete[n - 1] = 1.0 if value > -np.inf else 0.0
    for i in range(n):
        for j in range(n - 1, i, -1):
            if i > 0:
                _divide_complete(n, j, i, mu, work)
            _divide_complete(n, i, j, mu, work)
            p = work.p_opened[i * n + j] + work.p_opened[j * n + i]
            if p > 0.0:
                a, b, count = i * n + i, j * n + i + 1, _splits(single_root, i, j)
                share(p, work.complete, a, work.complete, b, count, mu, work.ways, work.p_complete, work.p_complete)


@borrowing
def _divide_complete(n, h, e, mu, work):
    """Share out the probability of complete(h, e)."""
    p = work.p_complete[h * n + e] + work.p_turned[e * n + h]
    if p > 0.0:
        low, count = (h + 1, e - h) if h < e else (e, h - e)
        a, b = h * n + low, e * n + low
        share(p, work.opened, a, work.turned, b, count, mu, work.ways, work.p_opened, work.p_turned)
