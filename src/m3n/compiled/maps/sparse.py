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

from m3n.compiled.jit import compiled
from m3n.compiled.primitives.vector import LINE, load, multiply, multiply_add, prefetch, splat, store

AHEAD = 32  # entries between asking for a row and using it: 16 to 64 are equally fast
FEW = 3  # numbers of a row: up to so many are added one by one


@compiled
def gather(pointers, indices, data, dense, low, high, out):
    """out[r] = sum over the entries of row r of data * dense[index], for rows low..high-1."""
    width, last = dense.shape[1], pointers[high] - 1
    for r in range(low, high):
        first, stop = pointers[r], pointers[r + 1]
        if width < 4:
            _gather_narrow(indices, data, first, stop, dense, out[r])
        for column in range(0, width - 3 if width > 3 else 0, 24):
            if width - column > 8:
                _gather_six(indices, data, first, stop, last, dense, column, r, out)
            else:
                _gather_two(indices, data, first, stop, dense, column, r, out)
        if width > 24 and 0 < width % 24 < 4:  # the last vector overlaps its neighbour
            _gather_two(indices, data, first, stop, dense, width - 4, r, out)


@compiled
def _gather_narrow(indices, data, first, stop, dense, row):
    for j in range(row.shape[0]):
        row[j] = 0.0
    for e in range(first, stop):
        for j in range(row.shape[0]):
            row[j] += data[e] * dense[indices[e], j]


@compiled
def _gather_six(indices, data, first, stop, last, dense, column, r, out):
    """Up to 24 columns of one row: six sums in registers. Beyond the last column they repeat one another."""
    width = dense.shape[1]
    end = width - 4 - column
    c1, c2, c3, c4, c5 = min(4, end), min(8, end), min(12, end), min(16, end), min(20, end)
    s0 = s1 = s2 = s3 = s4 = s5 = splat(0.0)
    for e in range(first, stop):
        _ask(dense, indices[min(e + AHEAD, last)] * width + column)
        at, x = indices[e] * width + column, splat(data[e])
        s0 = multiply_add(x, load(dense, at), s0)
        s1 = multiply_add(x, load(dense, at + c1), s1)
        s2 = multiply_add(x, load(dense, at + c2), s2)
        s3 = multiply_add(x, load(dense, at + c3), s3)
        s4 = multiply_add(x, load(dense, at + c4), s4)
        s5 = multiply_add(x, load(dense, at + c5), s5)
    at = r * width + column
    store(out, at, s0)
    store(out, at + c1, s1)
    store(out, at + c2, s2)
    store(out, at + c3, s3)
    store(out, at + c4, s4)
    store(out, at + c5, s5)


@compiled
def _gather_two(indices, data, first, stop, dense, column, r, out):
    """Up to eight columns of one row."""
    width = dense.shape[1]
    other = min(4, width - 4 - column)
    s0 = s1 = splat(0.0)
    for e in range(first, stop):
        at, x = indices[e] * width + column, splat(data[e])
        s0 = multiply_add(x, load(dense, at), s0)
        s1 = multiply_add(x, load(dense, at + other), s1)
    at = r * width + column
    store(out, at, s0)
    store(out, at + other, s1)


@compiled
def scatter(starts, lane, indices, data, dense, scale, out):
    """out[index] += scale * data * dense[r] over the entries starts[lane, r]..starts[lane + 1, r]-1 of all rows r.

    Rows that are all zero are left out, and rows with a few numbers (the difference of two labellings) cost little.
    """
    rows, width = dense.shape
    last = starts[lane + 1, rows - 1] - 1 if rows else 0
    mask = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    for r in range(rows):
        first, stop = starts[lane, r], starts[lane + 1, r]
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


@compiled
def _ask(table, at):
    """Prefetch the three lines of 24 columns."""
    prefetch(table, at)
    prefetch(table, at + LINE)
    prefetch(table, at + 2 * LINE)


@compiled
def _few(row):
    """Whether at most ``FEW`` numbers differ from zero."""
    used = 0
    for x in row:
        used += x != 0.0
        if used > FEW:
            return False
    return True


@compiled
def _scatter_six(indices, data, first, stop, last, dense, scale, column, r, out):
    """Up to 24 columns. All is loaded before any is stored, so vectors that overlap store the same numbers."""
    width = dense.shape[1]
    end = width - 4 - column
    c1, c2, c3, c4, c5 = min(4, end), min(8, end), min(12, end), min(16, end), min(20, end)
    at, factor = r * width + column, splat(scale)
    x0 = multiply(factor, load(dense, at))
    x1 = multiply(factor, load(dense, at + c1))
    x2 = multiply(factor, load(dense, at + c2))
    x3 = multiply(factor, load(dense, at + c3))
    x4 = multiply(factor, load(dense, at + c4))
    x5 = multiply(factor, load(dense, at + c5))
    for e in range(first, stop):
        _ask(out, indices[min(e + AHEAD, last)] * width + column)
        at, d = indices[e] * width + column, splat(data[e])
        s0 = multiply_add(d, x0, load(out, at))
        s1 = multiply_add(d, x1, load(out, at + c1))
        s2 = multiply_add(d, x2, load(out, at + c2))
        s3 = multiply_add(d, x3, load(out, at + c3))
        s4 = multiply_add(d, x4, load(out, at + c4))
        s5 = multiply_add(d, x5, load(out, at + c5))
        store(out, at, s0)
        store(out, at + c1, s1)
        store(out, at + c2, s2)
        store(out, at + c3, s3)
        store(out, at + c4, s4)
        store(out, at + c5, s5)


@compiled
def _scatter_rest(indices, data, first, stop, dense, scale, mask, r, out):
    """One, two or three last columns: a vector that overlaps its neighbour and adds zero there."""
    width = dense.shape[1]
    x = multiply(multiply(splat(scale), load(dense, r * width + width - 4)), load(mask, width % 24))
    for e in range(first, stop):
        at = indices[e] * width + width - 4
        store(out, at, multiply_add(splat(data[e]), x, load(out, at)))


@compiled
def _scatter_each(indices, data, first, stop, dense, scale, r, out):
    """Number by number."""
    for j in range(dense.shape[1]):
        x = scale * dense[r, j]
        if x != 0.0:
            for e in range(first, stop):
                out[indices[e], j] += data[e] * x


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
    """out[r] = the sum of the squares of the entries of row r."""
    for r in range(out.shape[0]):
        total = 0.0
        for e in range(pointers[r], pointers[r + 1]):
            total += data[e] * data[e]
        out[r] = total
