"""The best matching of one table, by shortest augmenting paths.

Row i has c slots, column j has d, and a link fills one of each. With the prices p_ij = t_j - theta_ij, t_j the null
score of column j, an output costs the sum of p_ij over its links, minus s_i for every free slot of row i, plus a
constant: the null part of a row is a column of its own, that of a column comes with it. Slots of rows are filled one
after another. Each time potentials u_i, v_j prove that the links so far are the best of the slots so far:

    r_ij = p_ij - u_i - v_j  is >= 0 for links that are not used, <= 0 for those that are,   -s_i - u_i >= 0,
    v_j <= 0, and v_j = 0 where column j has a free slot.

A new slot starts a path from its row (Dijkstra's algorithm with the lengths r): a row leads to columns by links that are
not used, a full column to the rows of its links, which give them up. A path ends at a column with a free slot, or where
a row takes its null part, which is preferred. With D what was reached is away, and E the length of the path,

    u_i += max(E - D_i, 0),   v_j -= max(E - D_j, 0).

A null score of -inf of a row: no path ends there. Of a column: its links are worth more than all scores together, and
there is no output if one of its slots is left free all the same. Cost: one path per slot of a row, O(rows columns) each
at most, but most are found close by.

Reference: Jonker, Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment problems",
1987.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import inner
from m3n.compiled.oracles.hooks import implements
from m3n.compiled.oracles.links import LinkTable, is_barred
from m3n.compiled.primitives.arrays import largest

NEW, REACHED, FINAL = 0, 1, 2


class MatchingSpace(NamedTuple):
    """Plain arrays of a ``Matching`` with one slot per word."""

    table: LinkTable
    row_slots: int
    column_slots: int


class FertileSpace(NamedTuple):
    """Plain arrays of a ``Matching`` with several slots per word: there is no factored dual."""

    table: LinkTable
    row_slots: int
    column_slots: int


class MatchingScratch(NamedTuple):
    """Memory for one sweep; m and n are the most rows and columns."""

    price: np.ndarray  # (m * n,) of a link
    open: np.ndarray  # (m * n,) the same of links that are not used, inf of others
    null: np.ndarray  # (m,) price of the null part of a row
    u: np.ndarray  # (m,)
    v: np.ndarray  # (n,)
    holders: np.ndarray  # (n, column slots) rows of the links of a column
    counts: np.ndarray  # (n,) number of its links
    row_length: np.ndarray  # (m,) D_i
    column_length: np.ndarray  # (n,) D_j
    row_from: np.ndarray  # (m,) column that leads to a row
    column_from: np.ndarray  # (n,) row that leads to a column
    reached: np.ndarray  # (m,) rows, those with final lengths first
    stage: np.ndarray  # (m,) of a row: NEW, REACHED or FINAL
    left: np.ndarray  # (n,) columns, those with final lengths last
    negated: np.ndarray  # (m * n + m + n,) scores for ``worst``


@inner
def matching_scratch(space):
    """Memory for one sweep."""
    m, n = largest(space.table.rows), largest(space.table.columns)
    links, rows, columns = np.empty((2, m * n)), np.empty((3, m)), np.empty((2, n))
    row_numbers, column_numbers = np.empty((3, m), np.int64), np.empty((3, n), np.int64)
    holders = np.empty((n, min(space.column_slots, m)), np.int64)
    return MatchingScratch(
        links[0], links[1], rows[0], rows[1], columns[0], holders, column_numbers[0], rows[2], columns[1],
        row_numbers[0], column_numbers[1], row_numbers[1], row_numbers[2], column_numbers[2], np.empty(m * n + m + n),
    )  # fmt: skip


@inner
def best_matching(space, i, theta, parts, work):
    """The best score of example i and the number of parts of the best output, which are written to ``parts``."""
    m, n = space.table.rows[i], space.table.columns[i]
    _set_prices(space, i, theta, work)
    for row in range(m):
        if not _fill_row(space, row, m, n, work):
            return -np.inf, 0
    for j in range(n):
        if theta[m * n + m + j] == -np.inf and work.counts[j] < space.column_slots:
            return -np.inf, 0
    return _list_parts(space, theta, m, n, parts, work)


@inner
def _set_prices(space, i, theta, work):
    m, n = space.table.rows[i], space.table.columns[i]
    for j in range(n):
        work.v[j], work.counts[j] = theta[m * n + m + j], 0
        if work.v[j] == -np.inf:
            work.v[j] = -_worth(space, theta, m, n)
    for row in range(m):
        work.null[row] = -theta[m * n + row]
        for j in range(n):
            link = row * n + j
            work.price[link] = np.inf if is_barred(space.table, i, link) else work.v[j] - theta[link]
            work.open[link] = work.price[link]
    for j in range(n):
        work.v[j] = 0.0


@inner
def _worth(space, theta, m, n):
    """More than two outputs can differ by."""
    total = 0.0
    for row in range(m):
        total += space.row_slots * (
            _largest(theta, row * n, row * n + n) + _largest(theta, m * n + row, m * n + row + 1)
        )
    for j in range(m * n + m, m * n + m + n):
        total += space.column_slots * _largest(theta, j, j + 1)
    return 1.0 + 4.0 * total


@inner
def _largest(theta, first, after):
    """The largest absolute value of scores that are finite."""
    found = 0.0
    for k in range(first, after):
        found = max(found, abs(theta[k])) if theta[k] > -np.inf else found
    return found


@inner
def _fill_row(space, row, m, n, work):
    """Fill the slots of a row; whether that is possible."""
    work.u[row] = work.null[row]
    for j in range(n):
        work.u[row] = min(work.u[row], work.open[row * n + j] - work.v[j])
    for _ in range(min(space.row_slots, n)):
        end = _shortest_path(space.row_slots, row, m, n, work)
        if end < 0:
            return False
        if end == n + row:  # its other slots are left free, too
            return True
        _change_links(end, row, n, work)
    return space.row_slots <= n or work.null[row] < np.inf


@inner
def _shortest_path(row_slots, start, m, n, work):
    """Where the shortest path from a row ends: column j, n + i for the null part of row i, -1 if there is none.

    Potentials are then those of the links after it.
    """
    final, reached, left, end, length = 0, 1, n, -1, np.inf
    _begin(start, m, n, work)
    low, pick = 0.0, -1  # the least length of a column, and its place in ``left``: -1 if that is not known
    while True:
        k = _next_row(final, reached, work)
        row = work.reached[k] if k >= 0 else -1
        if k >= 0 and work.row_length[row] <= low:
            if work.row_length[row] >= length:
                break
            work.reached[k], work.reached[final] = work.reached[final], row
            work.stage[row], final = FINAL, final + 1
            if work.row_length[row] + work.null[row] - work.u[row] < length:
                end, length = n + row, work.row_length[row] + work.null[row] - work.u[row]
            low, pick = _scan(row, n, left, work)
        elif pick < 0:
            low, pick = _lowest(left, work)
        else:
            if not low < length:
                break
            left -= 1
            column = work.left[pick]
            work.left[pick], work.left[left], pick = work.left[left], column, -1
            if work.counts[column] < work.holders.shape[1]:
                end, length = column, low
                break
            reached = _reach_rows(row_slots, column, n, reached, work)
    _move_potentials(length, reached, left, n, work)
    return end


@inner
def _begin(start, m, n, work):
    """Nothing is known but the start."""
    for j in range(n):
        work.column_length[j], work.left[j] = np.inf, j
    for row in range(m):
        work.stage[row] = NEW
    work.reached[0], work.stage[start], work.row_length[start] = start, REACHED, 0.0


@inner
def _next_row(final, reached, work):
    """The place of the closest row whose length is not final; -1 if there is none."""
    found = -1
    for k in range(final, reached):
        if found < 0 or work.row_length[work.reached[k]] < work.row_length[work.reached[found]]:
            found = k
    return found


@inner
def _scan(row, n, left, work):
    """Follow the links of a row; then the least length of a column, and its place."""
    base, low, pick = work.row_length[row] - work.u[row], np.inf, 0
    for k in range(left):
        j = work.left[k]
        length = base + work.open[row * n + j] - work.v[j]
        if length < work.column_length[j]:
            work.column_length[j], work.column_from[j] = length, row
        if work.column_length[j] < low:
            low, pick = work.column_length[j], k
    return low, pick


@inner
def _lowest(left, work):
    """The least length of a column, and its place."""
    low, pick = np.inf, 0
    for k in range(left):
        if work.column_length[work.left[k]] < low:
            low, pick = work.column_length[work.left[k]], k
    return low, pick


@inner
def _reach_rows(row_slots, column, n, reached, work):
    """Follow the links of a full column back to their rows; the number of rows that are reached then."""
    for k in range(work.counts[column]):
        row, length = work.holders[column, k], work.column_length[column]
        if row_slots > 1:  # otherwise r = 0: what a row and its only link are reached by is the same
            length += max(work.u[row] + work.v[column] - work.price[row * n + column], 0.0)
        if work.stage[row] == NEW:
            work.reached[reached], work.stage[row] = row, REACHED
            work.row_length[row], work.row_from[row], reached = length, column, reached + 1
        elif work.stage[row] == REACHED and length < work.row_length[row]:
            work.row_length[row], work.row_from[row] = length, column
    return reached


@inner
def _move_potentials(length, reached, left, n, work):
    """u and v after a path of this length."""
    if length == np.inf:
        return
    for k in range(reached):
        row = work.reached[k]
        work.u[row] += max(length - work.row_length[row], 0.0)
    for k in range(left, n):
        j = work.left[k]
        work.v[j] -= max(length - work.column_length[j], 0.0)


@inner
def _change_links(end, start, n, work):
    """Use the links of a path that were free, and give up the others."""
    row = end - n
    if end < n:
        row = work.column_from[end]
        work.holders[end, work.counts[end]], work.open[row * n + end] = row, np.inf
        work.counts[end] += 1
    while row != start:
        column = work.row_from[row]
        other = work.column_from[column]
        for k in range(work.counts[column]):
            if work.holders[column, k] == row:
                work.holders[column, k] = other
        work.open[row * n + column], work.open[other * n + column] = work.price[row * n + column], np.inf
        row = other


@inner
def _list_parts(space, theta, m, n, parts, work):
    """Write the parts of the output whose links are used, in ascending order; its score, and their number."""
    number, value = 0, 0.0
    for row in range(m):
        for link in range(row * n, row * n + n):
            if work.open[link] == np.inf and work.price[link] < np.inf:
                parts[number], number = link, number + 1
    links, k = number, 0
    for row in range(m):
        free = space.row_slots
        while k < links and parts[k] < row * n + n:
            free, k = free - 1, k + 1
        number = _repeat(parts, number, m * n + row, free)
    for j in range(n):
        number = _repeat(parts, number, m * n + m + j, space.column_slots - work.counts[j])
    for k in range(number):
        value += theta[parts[k]]
    return value, number


@inner
def _repeat(parts, number, part, times):
    """List a part some times more; the number of parts then."""
    for k in range(times):
        parts[number + k] = part
    return number + times


@implements("workspace", MatchingSpace)
@implements("workspace", FertileSpace)
def _workspace(space):
    return matching_scratch(space)


@implements("best", MatchingSpace)
@implements("best", FertileSpace)
def _best(space, i, theta, parts, work):
    return best_matching(space, i, theta, parts, work)


@implements("worst", MatchingSpace)
def _worst(space, i, theta, mass, parts, work):
    for k in range(theta.shape[0]):
        work.negated[k] = -theta[k] if mass[k] > 0.0 else -np.inf
    value, number = best_matching(space, i, work.negated[: theta.shape[0]], parts, work)
    return -value, number


@implements("cliques", MatchingSpace)
def _cliques(space, i, parts, out):
    m, n, links = space.table.rows[i], space.table.columns[i], 0
    while links < min(m, n) and parts[links] < m * n:
        links += 1
    for k in range(m + n - links):
        out[k] = parts[k]
    return m + n - links


@implements("clique_range", MatchingSpace)
def _clique_range(space):
    found = 0
    for i in range(space.table.rows.shape[0]):
        m, n = space.table.rows[i], space.table.columns[i]
        found = max(found, m * n + m + n)
    return found
