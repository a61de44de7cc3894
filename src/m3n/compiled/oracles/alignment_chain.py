"""Alignments whose links follow one another: both oracles of one sentence pair.

Rows are read from left to right. The *state* x is the last column that was linked, plus 1; 0 before the first link. A
null part keeps the state, a link to column y - 1 changes it to y and scores jump[k], k = clip(y - x, -r, r) + r. With
a_t(x) the best score of t rows that end in x,

    a_t+1(y) = max{ a_t(y) + null_t,  link_t(y) + max_k { from_k(y) + jump[k] } }

    from_k(y) = a_t(y + r - k) for 0 < k < 2r,   max of a_t(x) over x <= y - r for k = 2r, over x >= y + r for k = 0.

The last two are running maxima, so a row costs O(columns r). The exp-oracle has mu log sum exp(./mu) for the maxima.
Its terms, divided by their total, are the probabilities of what came before, given the state. They are kept, so
marginals follow backwards from those of the last state without an exponential, and belong to a distribution at any
temperature. a_t is moved to a maximum of 0, which keeps the rounding error from growing with the number of rows; the
running sums are those of exp(a_t/mu) where these are safe. Loops run over the states y for every k, and r entries on
both sides of what they read and write stand for states that are none.

Local theta = links row by row, null parts of rows, jumps.

Reference: Vogel, Ney, Tillmann, "HMM-based word alignment in statistical translation", 1996.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing
from m3n.compiled.oracles.chain_scaled import SAFE
from m3n.compiled.oracles.hooks import implements
from m3n.compiled.oracles.links import LinkTable, is_barred
from m3n.compiled.primitives.arrays import largest, put
from m3n.compiled.primitives.exponential import exp, normalise
from m3n.compiled.primitives.logarithm import log, log_above_one
from m3n.compiled.primitives.order import ascend

LEAST = -1e300  # in place of the maximum of nothing


class AlignmentChainSpace(NamedTuple):
    """Plain arrays of an ``AlignmentChain``."""

    table: LinkTable
    reach: int


class AlignmentChainScratch(NamedTuple):
    """Memory for one sweep; states are those of the largest example, padded: and ``reach`` more on either side."""

    links: np.ndarray  # (states,) scores of the links of a row that lead to a state; -inf where they are barred
    scores: np.ndarray  # (rows + 1, states) a_t of the max-oracle
    source: np.ndarray  # (rows, states) the state before, of the best way; -1: a null part
    low: np.ndarray  # (states,) the best of the states up to x
    high: np.ndarray  # (states,) the best of those from x on
    terms: np.ndarray  # (rows, 2 reach + 1, states) of the sums over k
    stay: np.ndarray  # (rows, states) probability of a null part, given the state after it
    go: np.ndarray  # (rows, states) of a link
    scale: np.ndarray  # (rows, states) one over the total of the terms
    own_below: np.ndarray  # (rows, states) share of x in ``below``
    own_above: np.ndarray  # (rows, states)
    tops: np.ndarray  # (states,)
    totals: np.ndarray  # (states,)
    now: np.ndarray  # (states,) probabilities after a row
    counts: np.ndarray  # (2 reach + 1,) marginals of jumps
    cold: np.ndarray  # (rows + 1, padded states) a_t of the exp-oracle
    below: np.ndarray  # (padded states,) a_t of all states up to x, together
    above: np.ndarray  # (padded states,) of all states from x on
    before: np.ndarray  # (padded states,) probabilities before a row
    mass_below: np.ndarray  # (padded states,) probability of ``below``
    mass_above: np.ndarray  # (padded states,)


@implements("workspace", AlignmentChainSpace)
def _workspace(space):
    rows, states, width = largest(space.table.rows) + 1, largest(space.table.columns) + 1, 2 * space.reach + 1
    vectors, numbers, tables = np.empty((4, states)), np.empty((2, states), np.int64), np.empty((6, rows, states))
    wide, source = np.empty((5, states + 2 * space.reach)), np.empty((rows, states), np.int64)
    return AlignmentChainScratch(
        vectors[0], tables[0], source, numbers[0], numbers[1], np.empty((rows, width, states)), tables[1], tables[2],
        tables[3], tables[4], tables[5], vectors[1], vectors[2], vectors[3], np.empty(width),
        np.empty((rows, states + 2 * space.reach)), wide[0], wide[1], wide[2], wide[3], wide[4],
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
    rows, columns, reach, value = space.table.rows[i], space.table.columns[i], space.reach, 0.0
    nulls, jumps = theta[rows * columns : rows * columns + rows], theta[rows * columns + rows :]
    states = columns + 1
    _pad(work.cold[0], 0, states + 2 * reach)
    work.cold[0, reach] = 0.0
    for t in range(rows):
        _read_links(space.table, i, t, theta, work)
        _running_sums(t, states, reach, mu, work)
        value += _soft_row(t, states, nulls[t], jumps, mu, work)
    put(work.cold[rows, reach : reach + states], work.now[:states])
    value += normalise(work.now, states, mu)
    work.counts[:] = 0.0
    for t in range(rows - 1, -1, -1):
        nulls[t] = _back_row(t, states, reach, work)
        for j in range(columns):
            theta[t * columns + j] = work.now[j + 1] * work.go[t, j + 1]
        _spread_running(t, states, reach, work)
        put(work.before[reach : reach + states], work.now[:states])
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
    """The scores of a row's links; none leads to the first state."""
    columns = table.columns[i]
    work.links[0] = -np.inf
    for j in range(columns):
        link = t * columns + j
        work.links[j + 1] = -np.inf if is_barred(table, i, link) else theta[link]


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
            if x >= 0 and scores[x] + jumps[k] + work.links[y] > target[y]:
                target[y], source[y] = scores[x] + jumps[k] + work.links[y], x


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
def _pad(numbers, low, high):
    for k in range(low, high):
        numbers[k] = -np.inf


@borrowing
def _running_sums(t, states, reach, mu, work):
    """``below`` and ``above``, and the shares of single states in them."""
    scores, warm, inverse = work.cold[t, reach : reach + states], work.totals, 1.0 / mu
    for x in range(states):
        warm[x] = exp(scores[x] * inverse)
    _pad(work.below, 0, reach)
    _pad(work.above, states, states + reach)
    last, total = -np.inf, 0.0
    for x in range(states):
        total += warm[x]
        last, work.own_below[t, x] = _run_on(last, total, scores[x], warm[x], mu)
        work.below[reach + x] = last
    last, total = -np.inf, 0.0
    for x in range(states - 1, -1, -1):
        total += warm[x]
        last, work.own_above[t, x] = _run_on(last, total, scores[x], warm[x], mu)
        work.above[x] = last


@borrowing
def _run_on(last, total, score, warm, mu):
    """The next running sum, and the share of its last term."""
    if total > SAFE:
        return mu * log(total), warm / total
    found = _add(last, score, mu)
    return found, exp((score - found) / mu) if found > -np.inf else 0.0


@borrowing
def _add(a, b, mu):
    """mu log(exp(a/mu) + exp(b/mu))."""
    top = max(a, b)
    if top == -np.inf:
        return top
    return top + mu * log(1.0 + exp((min(a, b) - top) / mu))


@borrowing
def _soft_row(t, states, null, jumps, mu, work):
    """a_t+1, moved to a maximum of 0, and the probabilities of what came before; the move."""
    scores, target, last = work.cold[t], work.cold[t + 1], jumps.shape[0] - 1
    tops, totals, reach, inverse = work.tops, work.totals, last // 2, 1.0 / mu
    for y in range(states):
        tops[y], totals[y] = -np.inf, 0.0
    _set_terms(work.above, reach, jumps[0], states, work.terms[t, 0], tops)
    for k in range(1, last):
        _set_terms(scores, last - k, jumps[k], states, work.terms[t, k], tops)
    _set_terms(work.below, 0, jumps[last], states, work.terms[t, last], tops)
    for y in range(states):
        tops[y] = max(tops[y], LEAST)
    for k in range(last + 1):
        _add_terms(work.terms[t, k], states, inverse, tops, totals)
    _pad(target, 0, reach)
    _pad(target, reach + states, states + last)
    return _decide(t, states, reach, null, mu, work)


@borrowing
def _set_terms(source, at, jump, states, terms, tops):
    """from_k(y) + jump[k]."""
    for y in range(states):
        terms[y] = source[at + y] + jump
        tops[y] = max(tops[y], terms[y])


@borrowing
def _add_terms(terms, states, inverse, tops, totals):
    for y in range(states):
        terms[y] = exp((terms[y] - tops[y]) * inverse)
        totals[y] += terms[y]


@borrowing
def _decide(t, states, reach, null, mu, work):
    """Null parts against links: scores of states after a row, moved to a maximum of 0, and probabilities; the move."""
    stay, go, scale, totals, inverse, move = work.stay[t], work.go[t], work.scale[t], work.totals, 1.0 / mu, -np.inf
    scores, target = work.cold[t, reach : reach + states], work.cold[t + 1, reach : reach + states]
    for y in range(states):
        scale[y] = 1.0 / totals[y] if totals[y] > 0.0 else 0.0
        kept, linked = scores[y] + null, work.links[y] + work.tops[y] + mu * log_above_one(totals[y])
        top = max(kept, linked, LEAST)
        stay[y], go[y] = exp((kept - top) * inverse), exp((linked - top) * inverse)
        total = stay[y] + go[y]
        target[y] = top + mu * log_above_one(total)
        share = 1.0 / total if total > 0.0 else 0.0
        stay[y], go[y], move = stay[y] * share, go[y] * share, max(move, target[y])
    move = move if move > -np.inf else 0.0
    for y in range(states):
        target[y] -= move
    return move


@borrowing
def _back_row(t, states, reach, work):
    """Probabilities before a row, or of running sums, from those after it; the marginal of the null part."""
    free, amounts, last = 0.0, work.totals, 2 * reach
    for x in range(states + last):
        work.before[x] = work.mass_below[x] = work.mass_above[x] = 0.0
    for y in range(states):
        stay = work.now[y] * work.stay[t, y]
        work.before[reach + y] = stay
        free += stay
        amounts[y] = work.now[y] * work.go[t, y] * work.scale[t, y]
    work.counts[0] += _share(work.terms[t, 0], amounts, states, work.mass_above, reach)
    for k in range(1, last):
        work.counts[k] += _share(work.terms[t, k], amounts, states, work.before, last - k)
    work.counts[last] += _share(work.terms[t, last], amounts, states, work.mass_below, 0)
    return free


@borrowing
def _share(terms, amounts, states, target, at):
    """Divide the probabilities of links among the states before them; their sum."""
    total = 0.0
    for y in range(states):
        target[at + y] += amounts[y] * terms[y]
    for y in range(states):
        total += amounts[y] * terms[y]
    return total


@borrowing
def _spread_running(t, states, reach, work):
    """Divide the probabilities of running sums among their states."""
    own_below, own_above, before = work.own_below[t], work.own_above[t], work.before
    rest = 0.0
    for x in range(states - 1, -1, -1):
        rest += work.mass_below[reach + x]
        before[reach + x] += rest * own_below[x]
        rest *= 1.0 - own_below[x]
    rest = 0.0
    for x in range(states):
        rest += work.mass_above[x]
        before[reach + x] += rest * own_above[x]
        rest *= 1.0 - own_above[x]
