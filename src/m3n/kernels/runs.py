"""Runs of neighbouring weights that lie anywhere: sums of them, additions to them, asking for those to come.

What block methods do to the weights is bound by memory. A run spans a few cache lines at a place that the hardware
cannot guess, so the weights of the next row are asked for while this one is worked on. Sums of runs stay in registers,
24 parts at a time, as in ``m3n.kernels.sparse``; so does what is added to them.

``lists`` and ``columns`` as in ``m3n.kernels.observed``.
"""

import numpy as np

from m3n.kernels._jit import kernel
from m3n.kernels.vector import LINE, add, kept, load, multiply, multiply_add, prefetch, splat, store, total

NEAR = 1 << 14  # so many weights stay in the nearest caches anyway


@kernel
def ask(runs, first, middle, stop, columns, w):
    """Prefetch the weights that entries first..stop-1 meet, those before ``middle`` in runs, the others in lists.

    Maps with lists have few runs, which are near, as are all weights if there are few of them.
    """
    if columns.shape[0] > 0:
        for e in range(middle, stop):
            prefetch(w, runs[e])
            prefetch(columns, runs[e])
    elif w.shape[0] > NEAR:
        for e in range(first, stop):
            prefetch(w, runs[e])
            prefetch(w, runs[e] + LINE)
            prefetch(w, runs[e] + 2 * LINE)


@kernel
def sum_runs(runs, data, first, stop, w, out):
    """out = sum of data[e] times the run of weights at runs[e], over entries first..stop-1."""
    width = out.shape[0]
    if width < 4:
        for j in range(width):
            out[j] = 0.0
        for e in range(first, stop):
            for j in range(width):
                out[j] += data[e] * w[runs[e] + j]
    else:
        for part in range(0, width, 24):  # the last four parts may be computed twice
            _sum_six(runs, data, first, stop, w, min(part, width - 4), out)


@kernel
def _sum_six(runs, data, first, stop, w, part, out):
    """Up to 24 parts. Beyond the last part the sums repeat one another."""
    end = out.shape[0] - 4 - part
    c1, c2, c3, c4, c5 = min(4, end), min(8, end), min(12, end), min(16, end), min(20, end)
    s0 = s1 = s2 = s3 = s4 = s5 = splat(0.0)
    for e in range(first, stop):
        at, x = runs[e] + part, splat(data[e])
        s0 = multiply_add(x, load(w, at), s0)
        s1 = multiply_add(x, load(w, at + c1), s1)
        s2 = multiply_add(x, load(w, at + c2), s2)
        s3 = multiply_add(x, load(w, at + c3), s3)
        s4 = multiply_add(x, load(w, at + c4), s4)
        s5 = multiply_add(x, load(w, at + c5), s5)
    store(out, part, s0)
    store(out, part + c1, s1)
    store(out, part + c2, s2)
    store(out, part + c3, s3)
    store(out, part + c4, s4)
    store(out, part + c5, s5)


@kernel
def add_runs(runs, data, first, stop, row, scale, columns, out):
    """The runs of ``out`` at runs[e] += scale data[e] row, over entries first..stop-1.

    Padding, where ``columns`` is negative, stays as it is; with empty ``columns`` there is none.
    """
    width, padding = row.shape[0], columns.shape[0] > 0
    rest = width % 24
    whole = width - rest if rest < 4 else width
    for part in range(0, whole, 24):
        _add_six(runs, data, first, stop, row, part, scale, columns, out)
    for j in range(whole, width):
        for e in range(first, stop):
            k = np.uint64(runs[e] + j)
            if not padding or columns[k] >= 0:
                out[k] += scale * data[e] * row[j]


@kernel
def _add_six(runs, data, first, stop, row, part, scale, columns, out):
    """Up to 24 parts. All is loaded before any is stored, so vectors that overlap store the same numbers."""
    padding = columns.shape[0] > 0
    end = row.shape[0] - 4 - part
    c1, c2, c3, c4, c5 = min(4, end), min(8, end), min(12, end), min(16, end), min(20, end)
    factor = splat(scale)
    x0, x1 = multiply(factor, load(row, part)), multiply(factor, load(row, part + c1))
    x2, x3 = multiply(factor, load(row, part + c2)), multiply(factor, load(row, part + c3))
    x4, x5 = multiply(factor, load(row, part + c4)), multiply(factor, load(row, part + c5))
    for e in range(first, stop):
        at, d = runs[e] + part, splat(data[e])
        y0, y1, y2, y3, y4, y5 = x0, x1, x2, x3, x4, x5
        if padding:
            y0, y1, y2 = kept(columns, at, x0), kept(columns, at + c1, x1), kept(columns, at + c2, x2)
            y3, y4, y5 = kept(columns, at + c3, x3), kept(columns, at + c4, x4), kept(columns, at + c5, x5)
        s0 = multiply_add(d, y0, load(out, at))
        s1 = multiply_add(d, y1, load(out, at + c1))
        s2 = multiply_add(d, y2, load(out, at + c2))
        s3 = multiply_add(d, y3, load(out, at + c3))
        s4 = multiply_add(d, y4, load(out, at + c4))
        s5 = multiply_add(d, y5, load(out, at + c5))
        store(out, at, s0)
        store(out, at + c1, s1)
        store(out, at + c2, s2)
        store(out, at + c3, s3)
        store(out, at + c4, s4)
        store(out, at + c5, s5)


@kernel
def grow_runs(runs, data, first, stop, row, scale, columns, out):
    """The same; returns the growth of |out|^2."""
    width, padding = row.shape[0], columns.shape[0] > 0
    whole = width // 4 * 4
    growth, rest = splat(0.0), 0.0
    for e in range(first, stop):
        at, x = runs[e], scale * data[e]
        factor = splat(x)
        for c in range(0, whole, 4):
            part = load(row, c)
            change = multiply(factor, kept(columns, at + c, part) if padding else part)
            old = load(out, at + c)
            new = add(old, change)
            growth = multiply_add(change, add(old, new), growth)
            store(out, at + c, new)
        for j in range(whole, width):
            if not padding or columns[at + j] >= 0:
                rest += _grow(out, at + j, x * row[j])
    return total(growth) + rest


@kernel
def sum_lists(runs, data, first, stop, columns, w, out):
    """out += data[e] times the weights of the list at runs[e], each at its column, over entries first..stop-1."""
    for e in range(first, stop):
        k, x = np.uint64(runs[e]), data[e]
        column = columns[k]
        while column >= 0:
            out[np.uint64(column)] += x * w[k]
            k += np.uint64(1)
            column = columns[k]
        out[np.uint64(~column)] += x * w[k]


@kernel
def add_lists(runs, data, first, stop, row, scale, columns, out):
    """The lists of ``out`` at runs[e] += scale data[e] times the row's entries in their columns."""
    for e in range(first, stop):
        k, x = np.uint64(runs[e]), scale * data[e]
        column = columns[k]
        while column >= 0:
            out[k] += x * row[np.uint64(column)]
            k += np.uint64(1)
            column = columns[k]
        out[k] += x * row[np.uint64(~column)]


@kernel
def grow_lists(runs, data, first, stop, row, scale, columns, out):
    """The same; returns the growth of |out|^2."""
    growth = 0.0
    for e in range(first, stop):
        k, x = np.uint64(runs[e]), scale * data[e]
        column = columns[k]
        while column >= 0:
            growth += _grow(out, k, x * row[np.uint64(column)])
            k += np.uint64(1)
            column = columns[k]
        growth += _grow(out, k, x * row[np.uint64(~column)])
    return growth


@kernel
def _grow(out, k, change):
    """out[k] += change; the growth of its square."""
    old = out[k]
    out[k] = old + change
    return change * (old + out[k])
