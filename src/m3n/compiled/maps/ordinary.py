"""Ordinary rows of a feature map, ``MapRows``: scores of parts, and their features added to a vector.

First the functions of one part, then those of all rows of an example. ``entries`` = (pointers, lists, runs, data,
columns) of the rows: a call hands over five arrays instead of all of them, as passing the whole named tuple costs more
than the arithmetic. The usual case, runs without padding, has its own loop; two loops that look alike are one for runs
and one for lists, as a function that decides for every entry takes twice as long.
"""

import numpy as np

from m3n.compiled.jit import compiled, inlined, inner
from m3n.compiled.primitives.runs import add_lists, add_runs, ask, grow_lists, grow_runs, sum_lists, sum_runs


@inner
def find(columns, first, j):
    """The weight of part j in the list that begins at ``first``; -1 if there is none."""
    k = first
    while columns[k] >= 0:
        if columns[k] == j:
            return k
        k += 1
    return k if ~columns[k] == j else -1


@inlined
def entries_of(rows, i):
    """What the functions of one part need."""
    return rows.pointers, rows.lists, rows.runs, rows.data, rows.columns


@compiled
def score_part(entries, r, j, w):
    """The score of part j of row r; padding is zero."""
    pointers, lists, runs, data, columns = entries
    end = data.shape[0] - 1  # one number may be that of all entries
    total = 0.0
    for e in range(pointers[r], lists[r]):
        total += data[np.uint64(min(e, end))] * w[np.uint64(runs[e] + j)]  # unsigned: no test for negative indices
    for e in range(lists[r], pointers[r + 1]):
        at = find(columns, runs[e], j)
        if at >= 0:
            total += data[np.uint64(min(e, end))] * w[at]
    return total


@compiled
def add_part(entries, r, j, amount, out):
    """out += amount * the features of part j of row r."""
    pointers, lists, runs, data, columns = entries
    end = data.shape[0] - 1  # one number may be that of all entries
    if columns.shape[0] == 0:
        for e in range(pointers[r], pointers[r + 1]):
            out[np.uint64(runs[e] + j)] += amount * data[np.uint64(min(e, end))]
        return
    for e in range(pointers[r], lists[r]):
        if columns[runs[e] + j] >= 0:
            out[runs[e] + j] += amount * data[np.uint64(min(e, end))]
    for e in range(lists[r], pointers[r + 1]):
        at = find(columns, runs[e], j)
        if at >= 0:
            out[at] += amount * data[np.uint64(min(e, end))]


@compiled
def spread_part(entries, r, j, amount, dense):
    """As ``add_part``; returns by how much |dense|^2 grows."""
    pointers, lists, runs, data, columns = entries
    end = data.shape[0] - 1  # one number may be that of all entries
    total = 0.0
    for e in range(pointers[r], lists[r]):
        at = runs[e] + j
        if columns.shape[0] == 0 or columns[at] >= 0:
            change = amount * data[np.uint64(min(e, end))]
            total += change * (2.0 * dense[at] + change)
            dense[at] += change
    for e in range(lists[r], pointers[r + 1]):
        at = find(columns, runs[e], j)
        if at >= 0:
            change = amount * data[np.uint64(min(e, end))]
            total += change * (2.0 * dense[at] + change)
            dense[at] += change
    return total


@compiled
def clear_part(entries, r, j, dense):
    """dense = 0 at the features of part j of row r."""
    pointers, lists, runs, _, columns = entries
    for e in range(pointers[r], lists[r]):
        dense[runs[e] + j] = 0.0  # padding is zero in any case
    for e in range(lists[r], pointers[r + 1]):
        at = find(columns, runs[e], j)
        if at >= 0:
            dense[at] = 0.0


@compiled
def join_support(entries, r, j, support):
    """Weights of part j of row r that no output touched before join the support."""
    pointers, lists, runs, _, columns = entries
    for e in range(pointers[r], pointers[r + 1]):
        at = runs[e] + j if e < lists[r] else find(columns, runs[e], j)
        real = at >= 0 and (e >= lists[r] or columns.shape[0] == 0 or columns[at] >= 0)
        if real:
            join(at, at + 1, support)


@inner
def join(low, high, support):
    """Weights low..high-1 join the support, unless they are there."""
    for at in range(low, high):
        if not support.member[at]:
            support.member[at] = True
            support.listed[support.size[0]] = at
            support.size[0] += 1


@compiled
def gather(rows, i, w, theta):
    """theta = the scores of example i under w; what the next row needs is asked for in advance."""
    pointers, lists, runs, data, columns = rows.pointers, rows.lists, rows.runs, rows.data, rows.columns
    used, place, last = rows.used, rows.place, rows.first[i + 1]
    for k in range(rows.first[i], last):
        if k + 1 < last:
            ask(pointers, lists, runs, used[k + 1], used[k + 1] + 1, columns, w)
        r, at, width = used[k], place[k], rows.widths[used[k]]
        sum_runs(pointers, lists, runs, data, r, r + 1, w, theta, at, width)
        sum_lists(pointers, lists, runs, data, r, r + 1, columns, w, theta, at, width)


@compiled
def scatter_all(rows, i, delta, scale, out):
    """out += scale * F' delta, for a delta that may be nonzero anywhere."""
    pointers, lists, runs, data, columns = rows.pointers, rows.lists, rows.runs, rows.data, rows.columns
    used, place, last = rows.used, rows.place, rows.first[i + 1]
    for k in range(rows.first[i], last):
        if k + 1 < last:
            ask(pointers, lists, runs, used[k + 1], used[k + 1] + 1, columns, out)
        r, at, width = used[k], place[k], rows.widths[used[k]]
        add_runs(pointers, lists, runs, data, r, r + 1, delta, at, width, scale, columns, out)
        add_lists(pointers, lists, runs, data, r, r + 1, delta, at, width, scale, columns, out)


@compiled
def grow_all(rows, i, delta, scale, w):
    """The same; returns the growth of |w|^2."""
    pointers, lists, runs, data, columns = rows.pointers, rows.lists, rows.runs, rows.data, rows.columns
    growth = 0.0
    for k in range(rows.first[i], rows.first[i + 1]):
        r, at, width = rows.used[k], rows.place[k], rows.widths[rows.used[k]]
        growth += grow_runs(pointers, lists, runs, data, r, r + 1, delta, at, width, scale, columns, w)
        growth += grow_lists(pointers, lists, runs, data, r, r + 1, delta, at, width, scale, columns, w)
    return growth
