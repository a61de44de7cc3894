"""The best matching of one table, by shortest augmenting paths.

Row i has c slots, column j has d, and a link fills one of each. With the prices p_ij = t_j - theta_ij, t_j the null
score of column j, an output costs the sum of p_ij over its links, minus s_i for every free slot of row i, plus a
constant: the null part of a row is a column of its own, that of a column comes with it. Slots of rows are filled one
after another. Each time potentials u_i, v_j prove that the links so far are the best of the slots so far:

    r_ij = p_ij - u_i - v_j  is >= 0 for links that are not used, <= 0 for those that are,   -s_i - u_i >= 0,
    v_j <= 0, and v_j = 0 where column j has a free slot.

A new slot starts a path from its row (Dijkstra's algorithm with the lengths r): a row leads to columns by links that
are not used, a full column to the rows of its links, which give them up. A path ends at a column with a free slot, or
where a row takes its null part, which is preferred. With D what was reached is away, and E the length of the path,

    u_i += max(E - D_i, 0),   v_j -= max(E - D_j, 0).

A null score of -inf of a row: no path ends there. Of a column: its links are worth more than all scores together, and
there is no output if one of its slots is left free all the same. Cost: one path per slot of a row, O(rows columns) each
at most, but most are found close by.

Reference: Jonker, Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment problems",
1987.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing, inner
from m3n.compiled.oracles.links import is_barred
from m3n.compiled.primitives.arrays import largest

NEW, REACHED, FINAL = 0, 1, 2


class Frame(NamedTuple):
    """One example, turned so that it has no more rows than columns: rows find free slots close by."""

    rows: int
    columns: int
    row_slots: int
    column_slots: int
    turned: bool


class PathScratch(NamedTuple):
    """Memory for one sweep; m and n are the most rows and columns of a frame."""

    price: np.ndarray  # (m * n,) of a link
    open: np.ndarray  # (m * n,) the same of links that are not used, inf of others
    null: np.ndarray  # (m,) price of the null part of a row
    u: np.ndarray  # (m,)
    v: np.ndarray  # (n,)
    row_length: np.ndarray  # (m,) D_i
    column_length: np.ndarray  # (n,) D_j
    holders: np.ndarray  # (n, column slots) rows of the links of a column
    counts: np.ndarray  # (n,) number of its links
    row_from: np.ndarray  # (m,) column that leads to a row
    column_from: np.ndarray  # (n,) row that leads to a column
    reached: np.ndarray  # (m,) rows, those with final lengths first
    stage: np.ndarray  # (m,) of a row: NEW, REACHED or FINAL
    left: np.ndarray  # (n,) columns, those with final lengths last


@inner
def path_scratch(space):
    """Memory for one sweep."""
    m, n = largest(space.table.rows), largest(space.table.columns)
    most = max(m, n)
    links, vectors, numbers = np.empty((2, m * n)), np.empty((5, most)), np.empty((6, most), np.int64)
    holders = np.empty((most, min(max(space.row_slots, space.column_slots), most)), np.int64)
    return PathScratch(
        links[0], links[1], vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], holders, numbers[0],
        numbers[1], numbers[2], numbers[3], numbers[4], numbers[5],
    )  # fmt: skip


@borrowing
def best_matching(space, i, theta, parts, work):
    """The best score of example i and the number of parts of the best output, which are written to ``parts``."""
    frame = frame_of(space, i)
    _set_prices(space, i, theta, frame, work)
    for row in range(frame.rows):
        if not _fill_row(row, frame, work):
            return -np.inf, 0
    null = first_nulls(frame)[1]
    for j in range(frame.columns):
        if theta[null + j] == -np.inf and work.counts[j] < frame.column_slots:
            return -np.inf, 0
    return _list_parts(space, i, theta, frame, parts, work)


@borrowing
def frame_of(space, i):
    m, n = space.table.rows[i], space.table.columns[i]
    if m > n:
        return Frame(n, m, space.column_slots, space.row_slots, True)
    return Frame(m, n, space.row_slots, space.column_slots, False)


@borrowing
def first_nulls(frame):
    """Where the null parts of the rows and columns of a frame begin."""
    links = frame.rows * frame.columns
    return (links + frame.columns, links) if frame.turned else (links, links + frame.rows)


@borrowing
def _set_prices(space, i, theta, frame, work):
    rows, columns = first_nulls(frame)
    m, n = frame.rows, frame.columns
    for j in range(n):
        null = theta[columns + j]
        gift = null if null > -np.inf else -_worth(space, i, theta)
        for row in range(m):
            link = j * m + row if frame.turned else row * n + j
            work.price[row * n + j] = np.inf if is_barred(space.table, i, link) else gift - theta[link]
        work.v[j], work.counts[j] = 0.0, 0
    for row in range(m):
        work.null[row] = -theta[rows + row]
    for link in range(m * n):
        work.open[link] = work.price[link]


@borrowing
def _worth(space, i, theta):
    """More than two outputs can differ by."""
    m, n, total = space.table.rows[i], space.table.columns[i], 0.0
    for row in range(m):
        total += space.row_slots * _largest(theta, row * n, row * n + n)
    for row in range(m * n, m * n + m):
        total += space.row_slots * _largest(theta, row, row + 1)
    for column in range(m * n + m, m * n + m + n):
        total += space.column_slots * _largest(theta, column, column + 1)
    return 1.0 + 4.0 * total


@borrowing
def _largest(theta, first, after):
    """The largest absolute value of scores that are finite."""
    found = 0.0
    for k in range(first, after):
        found = max(found, abs(theta[k])) if theta[k] > -np.inf else found
    return found


@borrowing
def _fill_row(row, frame, work):
    """Fill the slots of a row; whether that is possible."""
    n = frame.columns
    work.u[row] = work.null[row]
    for j in range(n):
        work.u[row] = min(work.u[row], work.open[row * n + j] - work.v[j])
    for _ in range(min(frame.row_slots, n)):
        end = _shortest_path(row, frame, work)
        if end < 0:
            return False
        if end == n + row:  # its other slots are left free, too
            return True
        _change_links(end, row, n, work)
    return frame.row_slots <= n or work.null[row] < np.inf


@borrowing
def _shortest_path(start, frame, work):
    """Where the shortest path from a row ends: column j, n + i for the null part of row i, -1 if there is none.

    Potentials are then those of the links after it.
    """
    n, end, length, final, reached, left = frame.columns, -1, np.inf, 0, 1, frame.columns
    _begin(start, frame, work)
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
            if work.counts[column] < frame.column_slots:
                end, length = column, low
                break
            reached = _reach_rows(column, frame, reached, work)
    _move_potentials(length, reached, left, n, work)
    return end


@borrowing
def _begin(start, frame, work):
    """Nothing is known but the start."""
    for j in range(frame.columns):
        work.column_length[j], work.left[j] = np.inf, j
    for row in range(frame.rows):
        work.stage[row] = NEW
    work.reached[0], work.stage[start], work.row_length[start] = start, REACHED, 0.0


@borrowing
def _next_row(final, reached, work):
    """The place of the closest row whose length is not final; -1 if there is none."""
    found = -1
    for k in range(final, reached):
        if found < 0 or work.row_length[work.reached[k]] < work.row_length[work.reached[found]]:
            found = k
    return found


@borrowing
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


@borrowing
def _lowest(left, work):
    """The least length of a column, and its place."""
    low, pick = np.inf, 0
    for k in range(left):
        if work.column_length[work.left[k]] < low:
            low, pick = work.column_length[work.left[k]], k
    return low, pick


@borrowing
def _reach_rows(column, frame, reached, work):
    """Follow the links of a full column back to their rows; the number of rows that are reached then."""
    for k in range(work.counts[column]):
        row, length = work.holders[column, k], work.column_length[column]
        if frame.row_slots > 1:  # otherwise r = 0: what a row and its only link are reached by is the same
            length += max(work.u[row] + work.v[column] - work.price[row * frame.columns + column], 0.0)
        if work.stage[row] == NEW:
            work.reached[reached], work.stage[row] = row, REACHED
            work.row_length[row], work.row_from[row], reached = length, column, reached + 1
        elif work.stage[row] == REACHED and length < work.row_length[row]:
            work.row_length[row], work.row_from[row] = length, column
    return reached


@borrowing
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


@borrowing
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


@borrowing
def _list_parts(space, i, theta, frame, parts, work):
    """Write the parts of the output whose links are used, in ascending order; its score, and their number."""
    m, n, number, value = space.table.rows[i], space.table.columns[i], 0, 0.0
    counts = work.left
    for j in range(n):
        counts[j] = 0
    for link in range(m * n):
        place = link % n * m + link // n if frame.turned else link
        if work.open[place] == np.inf and work.price[place] < np.inf:
            parts[number], number, counts[link % n] = link, number + 1, counts[link % n] + 1
    links, k = number, 0
    for row in range(m):
        free = space.row_slots
        while k < links and parts[k] < row * n + n:
            free, k = free - 1, k + 1
        number = _repeat(parts, number, m * n + row, free)
    for j in range(n):
        number = _repeat(parts, number, m * n + m + j, space.column_slots - counts[j])
    for k in range(number):
        value += theta[parts[k]]
    return value, number


@borrowing
def _repeat(parts, number, part, times):
    """List a part some times more; the number of parts then."""
    for k in range(times):
        parts[number + k] = part
    return number + times
