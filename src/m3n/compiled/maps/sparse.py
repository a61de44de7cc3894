"""Products of a sparse matrix with a dense one, and with its transpose, on ranges of rows.

Scores gather: out[r] = sum of data[e] * dense[indices[e]] over the entries e of row r. The adjoint scatters:
out[indices[e]] += scale * data[e] * dense[r]. Both walk the matrix row by row (CSR), so no transposed copy is needed.
For the adjoint every thread owns a range of columns of the matrix and looks at its entries only: no two threads write
to the same place, and every sum runs in the order of the rows however many threads there are.

Both are bound by memory, not by arithmetic: an entry costs the few cache lines of a row of ``dense`` or ``out`` that
lies anywhere. The rows of the entries to come are therefore asked for in advance, and sums stay in registers, 24
columns at a time.
"""

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.primitives.groups import loads, six, stores, two, within
from m3n.compiled.primitives.runs import ask_run
from m3n.compiled.primitives.vector import load, multiply, multiply_add, splat, store

AHEAD = 32  # entries between asking for a row and using it: 16 to 64 are equally fast
ROWS = 64  # at a time: the columns beyond 24 find in the cache what the first ones have asked for
FEW = 3  # numbers of a row: up to so many are added one by one


@compiled
def gather(low, high, pointers, indices, data, dense, out):
    """out[r] = sum over the entries of row r of data * dense[index], for rows low..high-1.

    ``data`` of one number is that of all entries.
    """
    width, last = dense.shape[1], pointers[high] - 1
    if width < 4:
        _gather_narrow(low, high, pointers, indices, data, dense, out)
        return
    for first in range(low, high, ROWS):
        stop = min(first + ROWS, high)
        for column in range(0, width - 3, 24):
            if width - column > 8:
                _gather_group(first, stop, pointers, indices, data, last, dense, column, out, six(0.0))
            else:
                _gather_group(first, stop, pointers, indices, data, last, dense, column, out, two(0.0))
        if width > 24 and 0 < width % 24 < 4:  # the last vector overlaps its neighbour
            _gather_group(first, stop, pointers, indices, data, last, dense, width - 4, out, two(0.0))


@inner
def _gather_narrow(low, high, pointers, indices, data, dense, out):
    final = data.shape[0] - 1
    for r in range(low, high):
        for j in range(out.shape[1]):
            out[r, j] = 0.0
        for e in range(pointers[r], pointers[r + 1]):
            for j in range(out.shape[1]):
                out[r, j] += data[min(e, final)] * dense[indices[e], j]


@inner
def _gather_group(low, high, pointers, indices, data, last, dense, column, out, zero):
    """Up to 24 columns with six sums in registers, or up to eight with two. Beyond the last column they overlap."""
    width, final = dense.shape[1], data.shape[0] - 1
    offsets = within(zero, width - 4 - column)
    for r in range(low, high):
        sums = zero
        for e in range(pointers[r], pointers[r + 1]):
            if len(sums) > 2:  # the weights of eight columns come by themselves
                ask_run(dense, indices[min(e + AHEAD, last)] * width + column)
            at, x = indices[e] * width + column, splat(data[min(e, final)])
            sums = multiply_add(x, loads(dense, at, offsets), sums)
        stores(out, r * width + column, offsets, sums)


@compiled
def scatter(low, high, starts, indices, data, dense, scale, out):
    """out[index] += scale * data * dense[r] over the entries starts[low, r]..starts[high, r]-1 of all rows r.

    Rows that are all zero are left out, and rows with a few numbers (the difference of two labellings) cost little.
    """
    rows, width = dense.shape
    last = starts[high, rows - 1] - 1 if rows else 0
    mask = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    for r in range(rows):
        first, stop = starts[low, r], starts[high, r]
        if first == stop:
            continue
        if _few(dense[r]):
            _scatter_each(indices, data, first, stop, dense, scale, r, out)
            continue
        for column in range(0, width - 3 if width > 3 else 0, 24):
            _scatter_six(indices, data, first, stop, last, dense, scale, column, r, out)
        if width < 4:
            _scatter_each(indices, data, first, stop, dense, scale, r, out)
        elif 0 < width % 24 < 4:
            _scatter_rest(indices, data, first, stop, dense, scale, mask, r, out)


@inner
def _few(row):
    """Whether at most ``FEW`` numbers differ from zero."""
    used = 0
    for x in row:
        used += x != 0.0
        if used > FEW:
            return False
    return True


@inner
def _scatter_six(indices, data, first, stop, last, dense, scale, column, r, out):
    """Up to 24 columns. All is loaded before any is stored, so vectors that overlap store the same numbers."""
    width, final = dense.shape[1], data.shape[0] - 1
    offsets = within(six(0.0), width - 4 - column)
    amounts = multiply(splat(scale), loads(dense, r * width + column, offsets))
    for e in range(first, stop):
        ask_run(out, indices[min(e + AHEAD, last)] * width + column)
        at, x = indices[e] * width + column, splat(data[min(e, final)])
        stores(out, at, offsets, multiply_add(x, amounts, loads(out, at, offsets)))


@inner
def _scatter_rest(indices, data, first, stop, dense, scale, mask, r, out):
    """One, two or three last columns: a vector that overlaps its neighbour and adds zero there."""
    width, final = dense.shape[1], data.shape[0] - 1
    x = multiply(multiply(splat(scale), load(dense, r * width + width - 4)), load(mask, width % 24))
    for e in range(first, stop):
        at = indices[e] * width + width - 4
        store(out, at, multiply_add(splat(data[min(e, final)]), x, load(out, at)))


@inner
def _scatter_each(indices, data, first, stop, dense, scale, r, out):
    """Number by number."""
    final = data.shape[0] - 1
    for j in range(dense.shape[1]):
        x = scale * dense[r, j]
        if x != 0.0:
            for e in range(first, stop):
                out[indices[e], j] += data[min(e, final)] * x


@compiled
def cut_rows(pointers, indices, edges, starts):
    """starts[k, r] = the first entry of row r, whose indices ascend, with an index of at least edges[k]."""
    lanes = edges.shape[0] - 1
    for r in range(pointers.shape[0] - 1):
        e = pointers[r]
        for k in range(lanes):
            while e < pointers[r + 1] and indices[e] < edges[k]:
                e += 1
            starts[k, r] = e
        starts[lanes, r] = pointers[r + 1]


@compiled
def sum_squares(pointers, data, out):
    """out[r] = the sum of the squares of the entries of row r; ``data`` of one number is that of all."""
    last = data.shape[0] - 1
    for r in range(out.shape[0]):
        total = 0.0
        for e in range(pointers[r], pointers[r + 1]):
            total += data[min(e, last)] * data[min(e, last)]
        out[r] = total
