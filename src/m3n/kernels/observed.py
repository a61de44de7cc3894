"""Products with a matrix of weights that has only some of its entries, on ranges of rows.

The entries of row r stand in two groups. Those before ``lists[r]`` belong to attributes that occur with many labels and
meet a *run*: all labels, weight ``runs[e] + j`` for label j, with padding where a pair has no weight. Those from
``lists[r]`` on belong to attributes with few labels and meet a *list*: weight k scores label ``columns[k]``, and the
last weight of a list holds the complement ``~label`` instead. Runs are straight loops for vector instructions, lists
touch nothing in vain; most attributes of a text are rare, most occurrences are of frequent ones.
"""

from m3n.kernels._jit import kernel
from m3n.kernels.runs import add_lists, add_runs, sum_lists, sum_runs
from m3n.kernels.vector import load, multiply_add, prefetch, splat, store

ROWS = 64  # at a time: runs first, then lists, which have been asked for by then
SIX = 24  # parts: what six registers hold


@kernel
def scores(pointers, lists, runs, data, columns, w, low, high, out):
    """out[r] = the scores of row r, for rows low..high-1; the padding of ``w`` must be zero."""
    flat, width = out.reshape(-1), out.shape[1]
    for first in range(low, high, ROWS):
        stop = min(first + ROWS, high)
        if 4 <= width <= SIX:
            _sum_runs(pointers, lists, runs, data, columns, w, first, stop, flat, width)
        else:
            for r in range(first, stop):
                sum_runs(runs, data, pointers[r], lists[r], w, flat, r * width, width)
        for r in range(first, stop):
            sum_lists(runs, data, lists[r], pointers[r + 1], columns, w, flat, r * width)


@kernel
def _sum_runs(pointers, lists, runs, data, columns, w, first, stop, out, width):
    """``sum_runs`` of several rows of 4 to 24 parts without a call for each; asks for the lists that they meet."""
    end = width - 4
    c1, c2, c3, c4, c5 = min(4, end), min(8, end), min(12, end), min(16, end), min(20, end)
    for r in range(first, stop):
        for e in range(lists[r], pointers[r + 1]):
            prefetch(w, runs[e])
            prefetch(columns, runs[e])
        s0 = s1 = s2 = s3 = s4 = s5 = splat(0.0)
        for e in range(pointers[r], lists[r]):
            run, x = runs[e], splat(data[e])
            s0 = multiply_add(x, load(w, run), s0)
            s1 = multiply_add(x, load(w, run + c1), s1)
            s2 = multiply_add(x, load(w, run + c2), s2)
            s3 = multiply_add(x, load(w, run + c3), s3)
            s4 = multiply_add(x, load(w, run + c4), s4)
            s5 = multiply_add(x, load(w, run + c5), s5)
        place = r * width
        store(out, place, s0)
        store(out, place + c1, s1)
        store(out, place + c2, s2)
        store(out, place + c3, s3)
        store(out, place + c4, s4)
        store(out, place + c5, s5)


@kernel
def add_adjoint(pointers, lists, runs, data, columns, parts, low, high, out):
    """out += the adjoint of rows low..high-1; padding is filled like the rest, for the caller to clear."""
    flat, width, no_padding = parts.reshape(-1), parts.shape[1], columns[:0]
    for first in range(low, high, ROWS):
        stop = min(first + ROWS, high)
        if 4 <= width <= SIX:
            _add_runs(pointers, lists, runs, data, columns, flat, first, stop, out, width)
        else:
            for r in range(first, stop):
                add_runs(runs, data, pointers[r], lists[r], flat, r * width, width, 1.0, no_padding, out)
        for r in range(first, stop):
            add_lists(runs, data, lists[r], pointers[r + 1], flat, r * width, 1.0, columns, out)


@kernel
def _add_runs(pointers, lists, runs, data, columns, row, first, stop, out, width):
    """``add_runs`` of several rows of 4 to 24 parts without a call for each; asks for the lists that they meet."""
    end = width - 4
    c1, c2, c3, c4, c5 = min(4, end), min(8, end), min(12, end), min(16, end), min(20, end)
    for r in range(first, stop):
        for e in range(lists[r], pointers[r + 1]):
            prefetch(out, runs[e])
            prefetch(columns, runs[e])
        place = r * width
        x0, x1, x2 = load(row, place), load(row, place + c1), load(row, place + c2)
        x3, x4, x5 = load(row, place + c3), load(row, place + c4), load(row, place + c5)
        for e in range(pointers[r], lists[r]):
            run, d = runs[e], splat(data[e])
            s0 = multiply_add(d, x0, load(out, run))
            s1 = multiply_add(d, x1, load(out, run + c1))
            s2 = multiply_add(d, x2, load(out, run + c2))
            s3 = multiply_add(d, x3, load(out, run + c3))
            s4 = multiply_add(d, x4, load(out, run + c4))
            s5 = multiply_add(d, x5, load(out, run + c5))
            store(out, run, s0)
            store(out, run + c1, s1)
            store(out, run + c2, s2)
            store(out, run + c3, s3)
            store(out, run + c4, s4)
            store(out, run + c5, s5)


@kernel
def arrange(indptr, indices, values, begins, counts, wide, pointers, lists, runs, data):
    """The entries of a CSR matrix, row by row, those that meet runs first; attributes without a weight drop out."""
    size = 0
    for r in range(indptr.shape[0] - 1):
        for meets_run in (True, False):
            for e in range(indptr[r], indptr[r + 1]):
                a = indices[e]
                if counts[a] > 0 and wide[a] == meets_run:
                    runs[size] = begins[a]
                    data[size] = values[e]
                    size += 1
            if meets_run:
                lists[r] = size
        pointers[r + 1] = size
    return size
