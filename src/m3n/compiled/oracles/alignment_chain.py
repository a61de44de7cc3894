"""Alignments whose links follow one another: both oracles of one sentence pair.

Rows are read from left to right. The *state* x is the last column that was linked, plus 1; 0 before the first link. A
null part keeps the state, a link to column y - 1 changes it to y and scores jump[k], k = clip(y - x, -r, r) + r. With
a_t(x) the best score of t rows that end in x,

    a_t+1(y) = max{ a_t(y) + null_t,  link_t(y) + max_k { from_k(y) + jump[k] } }

    from_k(y) = a_t(y + r - k) for 0 < k < 2r,   max of a_t(x) over x <= y - r for k = 2r, over x >= y + r for k = 0.

The last two are running maxima, so a row costs O(columns r). The exp-oracle has mu log sum exp(./mu) for the maxima.
Its terms, divided by their total, are the probabilities of what came before, given the state, so marginals follow
backwards from those of the last state, and belong to a distribution at any temperature. a_t is moved to a maximum of 0,
which keeps the rounding error from growing with the number of rows.

Local theta = links row by row, null parts of rows, jumps.

Reference: Vogel, Ney, Tillmann, "HMM-based word alignment in statistical translation", 1996.
"""

import math
from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing
from m3n.compiled.oracles.hooks import implements
from m3n.compiled.oracles.links import LinkTable, is_barred
from m3n.compiled.primitives.arrays import largest, put
from m3n.compiled.primitives.exponential import exp, normalise
from m3n.compiled.primitives.order import ascend


class AlignmentChainSpace(NamedTuple):
    """Plain arrays of an ``AlignmentChain``."""

    table: LinkTable
    reach: int


class AlignmentChainScratch(NamedTuple):
    """Memory for one sweep; states are those of the largest example."""

    scores: np.ndarray  # (rows + 1, states) a_t
    below: np.ndarray  # (states,) a_t of all states up to x, together
    above: np.ndarray  # (states,) a_t of all states from x on
    terms: np.ndarray  # (2 reach + 1,)
    pair: np.ndarray  # (2,)
    counts: np.ndarray  # (2 reach + 1,) marginals of jumps
    now: np.ndarray  # (states,) probabilities of states after a row
    before: np.ndarray  # (states,) and before it
    mass_below: np.ndarray  # (states,) probability of ``below``
    mass_above: np.ndarray  # (states,)
    links: np.ndarray  # (states,) scores of a row's links, -inf where they are barred
    low: np.ndarray  # (states,) the state that ``below`` is the score of, in the max-oracle
    high: np.ndarray  # (states,)
    source: np.ndarray  # (rows + 1, states) the state before, of the best way; -1: a null part


@implements("workspace", AlignmentChainSpace)
def _workspace(space):
    rows, states, width = largest(space.table.rows) + 1, largest(space.table.columns) + 1, 2 * space.reach + 1
    vectors, numbers = np.empty((7, states)), np.empty((2, states), np.int64)
    return AlignmentChainScratch(
        np.empty((rows, states)), vectors[0], vectors[1], np.empty(width), np.empty(2), np.empty(width), vectors[2],
        vectors[3], vectors[4], vectors[5], vectors[6], numbers[0], numbers[1], np.empty((rows, states), np.int64),
    )  # fmt: skip


@implements("best", AlignmentChainSpace)
def _best(space, i, theta, parts, work):
    rows, columns = space.table.rows[i], space.table.columns[i]
    jumps = theta[rows * columns + rows :]
    _begin(columns, work)
    for t in range(rows):
        _read_links(space.table, i, t, theta, work)
        _running_maxima(t, columns, work)
        _best_row(t, columns, theta[rows * columns + t], jumps, work)
    last = 0
    for x in range(1, columns + 1):
        last = x if work.scores[rows, x] > work.scores[rows, last] else last
    if work.scores[rows, last] == -np.inf:
        return -np.inf, 0
    return work.scores[rows, last], _trace(rows, columns, space.reach, last, parts, work)


@implements("soft", AlignmentChainSpace)
def _soft(space, i, theta, mu, work):
    rows, columns, value = space.table.rows[i], space.table.columns[i], 0.0
    nulls, jumps = theta[rows * columns : rows * columns + rows], theta[rows * columns + rows :]
    _begin(columns, work)
    for t in range(rows):
        _read_links(space.table, i, t, theta, work)
        _running_sums(t, columns, mu, work)
        value += _soft_row(t, columns, nulls[t], jumps, mu, work)
    put(work.scores[rows, : columns + 1], work.now[: columns + 1])
    value += normalise(work.now, columns + 1, mu)
    work.counts[:] = 0.0
    for t in range(rows - 1, -1, -1):
        _read_links(space.table, i, t, theta, work)
        _running_sums(t, columns, mu, work)
        nulls[t] = _back_row(t, columns, nulls[t], jumps, mu, theta[t * columns : (t + 1) * columns], work)
        _spread_running(t, columns, mu, work)
        put(work.before[: columns + 1], work.now[: columns + 1])
    put(work.counts, jumps)
    return value


@borrowing
def _begin(columns, work):
    """Before the first row no column was linked."""
    for x in range(columns + 1):
        work.scores[0, x] = -np.inf
    work.scores[0, 0] = 0.0


@borrowing
def _read_links(table, i, t, theta, work):
    """The scores of a row's links."""
    columns = table.columns[i]
    for j in range(columns):
        link = t * columns + j
        work.links[j] = -np.inf if is_barred(table, i, link) else theta[link]


@borrowing
def _running_maxima(t, columns, work):
    scores = work.scores[t]
    work.low[0], work.high[columns] = 0, columns
    for x in range(1, columns + 1):
        work.low[x] = x if scores[x] > scores[work.low[x - 1]] else work.low[x - 1]
    for x in range(columns - 1, -1, -1):
        work.high[x] = x if scores[x] >= scores[work.high[x + 1]] else work.high[x + 1]


@borrowing
def _best_row(t, columns, null, jumps, work):
    """a_t+1 and where it comes from."""
    scores, target, source = work.scores[t], work.scores[t + 1], work.source[t]
    target[0], source[0], reach = scores[0] + null, -1, jumps.shape[0] // 2
    for y in range(1, columns + 1):
        target[y], source[y] = scores[y] + null, -1
        for k in range(jumps.shape[0]):
            x = _state_before(y, k, reach, columns, work)
            if x >= 0 and scores[x] + jumps[k] + work.links[y - 1] > target[y]:
                target[y], source[y] = scores[x] + jumps[k] + work.links[y - 1], x


@borrowing
def _state_before(y, k, reach, columns, work):
    """The best state from which jump k leads to y; -1 if there is none."""
    x = y + reach - k
    if x < 0 or x > columns:
        return -1
    if k == 0:
        return work.high[x]
    return work.low[x] if k == 2 * reach else x


@borrowing
def _trace(rows, columns, reach, y, parts, work):
    """Write the parts of the best output, from its last state on; their number."""
    number = rows
    for t in range(rows - 1, -1, -1):
        x = work.source[t, y]
        parts[t] = rows * columns + t if x < 0 else t * columns + y - 1
        if x >= 0:
            parts[number] = rows * columns + rows + min(max(y - x, -reach), reach) + reach
            y, number = x, number + 1
    ascend(parts, 0, number)
    return number


@borrowing
def _running_sums(t, columns, mu, work):
    scores, below, above = work.scores[t], work.below, work.above
    below[0], above[columns] = scores[0], scores[columns]
    for x in range(1, columns + 1):
        below[x] = _add(below[x - 1], scores[x], mu)
    for x in range(columns - 1, -1, -1):
        above[x] = _add(above[x + 1], scores[x], mu)


@borrowing
def _add(a, b, mu):
    """mu log(exp(a/mu) + exp(b/mu))."""
    top = max(a, b)
    if top == -np.inf:
        return top
    return top + mu * math.log(1.0 + exp((min(a, b) - top) / mu))


@borrowing
def _soft_row(t, columns, null, jumps, mu, work):
    """a_t+1, moved to a maximum of 0; the move."""
    scores, target, move = work.scores[t], work.scores[t + 1], -np.inf
    target[0] = scores[0] + null
    for y in range(1, columns + 1):
        _set_terms(y, columns, scores, jumps, work)
        arrive = work.links[y - 1] + normalise(work.terms, jumps.shape[0], mu)
        target[y] = _add(scores[y] + null, arrive, mu)
    for y in range(columns + 1):
        move = max(move, target[y])
    move = move if move > -np.inf else 0.0
    for y in range(columns + 1):
        target[y] -= move
    return move


@borrowing
def _set_terms(y, columns, scores, jumps, work):
    """from_k(y) + jump[k] of all k."""
    last = jumps.shape[0] - 1
    reach = last // 2
    for k in range(1, last):
        x = y + reach - k
        work.terms[k] = scores[x] + jumps[k] if 0 <= x <= columns else -np.inf
    work.terms[0] = work.above[y + reach] + jumps[0] if y + reach <= columns else -np.inf
    work.terms[last] = work.below[y - reach] + jumps[last] if y >= reach else -np.inf


@borrowing
def _back_row(t, columns, null, jumps, mu, marginals, work):
    """Probabilities before a row from those after it, marginals of its links, and that of its null part, returned."""
    scores, free = work.scores[t], work.now[0]
    for x in range(columns + 1):
        work.before[x] = work.mass_below[x] = work.mass_above[x] = 0.0
    work.before[0] = free
    for y in range(1, columns + 1):
        marginals[y - 1] = 0.0
        if work.now[y] > 0.0:
            _set_terms(y, columns, scores, jumps, work)
            work.pair[1] = work.links[y - 1] + normalise(work.terms, jumps.shape[0], mu)
            work.pair[0] = scores[y] + null
            normalise(work.pair, 2, mu)
            stay, marginals[y - 1] = work.now[y] * work.pair[0], work.now[y] * work.pair[1]
            work.before[y] += stay
            free += stay
            _share(y, marginals[y - 1], work)
    return free


@borrowing
def _share(y, mass, work):
    """Divide the probability of a link among the states before it."""
    last = work.terms.shape[0] - 1
    reach = last // 2
    for k in range(last + 1):
        amount = mass * work.terms[k]
        if amount > 0.0:
            work.counts[k] += amount
            target = work.mass_above if k == 0 else (work.mass_below if k == last else work.before)
            target[y + reach - k] += amount


@borrowing
def _spread_running(t, columns, mu, work):
    """Divide the probabilities of running sums among their states."""
    scores, pair = work.scores[t], work.pair
    for x in range(columns, -1, -1):
        if work.mass_below[x] > 0.0:
            pair[0], pair[1] = scores[x], work.below[x - 1] if x > 0 else -np.inf
            normalise(pair, 2, mu)
            work.before[x] += work.mass_below[x] * pair[0]
            if x > 0:
                work.mass_below[x - 1] += work.mass_below[x] * pair[1]
    for x in range(columns + 1):
        if work.mass_above[x] > 0.0:
            pair[0], pair[1] = scores[x], work.above[x + 1] if x < columns else -np.inf
            normalise(pair, 2, mu)
            work.before[x] += work.mass_above[x] * pair[0]
            if x < columns:
                work.mass_above[x + 1] += work.mass_above[x] * pair[1]
