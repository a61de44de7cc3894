"""One part of a feature map in ``MapRows``: its score, and its features added to a vector.

``entries`` = (pointers, lists, runs, data, columns) of ``MapRows``: a call hands over five arrays instead of all of
them, as passing the whole named tuple costs more than the arithmetic. The usual case, runs without padding, has its own
loop.
"""

import numpy as np

from m3n.compiled.jit import compiled, inlined


@compiled
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
    total = 0.0
    for e in range(pointers[r], lists[r]):
        total += data[e] * w[np.uint64(runs[e] + j)]  # unsigned: no test for negative indices
    for e in range(lists[r], pointers[r + 1]):
        at = find(columns, runs[e], j)
        if at >= 0:
            total += data[e] * w[at]
    return total


@compiled
def add_part(entries, r, j, amount, out):
    """out += amount * the features of part j of row r."""
    pointers, lists, runs, data, columns = entries
    if columns.shape[0] == 0:
        for e in range(pointers[r], pointers[r + 1]):
            out[np.uint64(runs[e] + j)] += amount * data[e]
        return
    for e in range(pointers[r], lists[r]):
        if columns[runs[e] + j] >= 0:
            out[runs[e] + j] += amount * data[e]
    for e in range(lists[r], pointers[r + 1]):
        at = find(columns, runs[e], j)
        if at >= 0:
            out[at] += amount * data[e]


@compiled
def spread_part(entries, r, j, amount, dense):
    """As ``add_part``; returns by how much |dense|^2 grows."""
    pointers, lists, runs, data, columns = entries
    total = 0.0
    for e in range(pointers[r], lists[r]):
        at = runs[e] + j
        if columns.shape[0] == 0 or columns[at] >= 0:
            change = amount * data[e]
            total += change * (2.0 * dense[at] + change)
            dense[at] += change
    for e in range(lists[r], pointers[r + 1]):
        at = find(columns, runs[e], j)
        if at >= 0:
            change = amount * data[e]
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


@compiled
def join(low, high, support):
    """Weights low..high-1 join the support, unless they are there."""
    for at in range(low, high):
        if not support.member[at]:
            support.member[at] = True
            support.listed[support.size[0]] = at
            support.size[0] += 1
