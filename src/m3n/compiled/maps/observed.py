"""Products with a matrix of weights that has only some of its entries, on ranges of rows.

The entries of row r stand in two groups. Those before ``lists[r]`` belong to attributes that occur with many labels and
meet a *run*: all labels, weight ``runs[e] + j`` for label j, with padding where a pair has no weight. Those from
``lists[r]`` on belong to attributes with few labels and meet a *list*: weight k scores label ``columns[k]``, and the
last weight of a list holds the complement ``~label`` instead. Runs are straight loops for vector instructions, lists
touch nothing in vain; most attributes of a text are rare, most occurrences are of frequent ones.
"""

from m3n.compiled.jit import compiled
from m3n.compiled.primitives.runs import add_lists, add_runs, ask, sum_lists, sum_runs

ROWS = 64  # at a time: runs first, then lists, which have been asked for by then


@compiled
def scores(low, high, pointers, lists, runs, data, columns, w, out):
    """out[r] = the scores of row r, for rows low..high-1; the padding of ``w`` must be zero."""
    flat, width = out.reshape(-1), out.shape[1]
    for first in range(low, high, ROWS):
        stop, at = min(first + ROWS, high), first * width
        ask(pointers, lists, runs, first, stop, columns, w)
        sum_runs(pointers, lists, runs, data, first, stop, w, flat, at, width)
        sum_lists(pointers, lists, runs, data, first, stop, columns, w, flat, at, width)


@compiled
def add_adjoint(low, high, pointers, lists, runs, data, columns, parts, scale, out):
    """out += scale * the adjoint of rows low..high-1; padding is filled like the rest, for the caller to clear."""
    flat, width, no_padding = parts.reshape(-1), parts.shape[1], columns[:0]
    for first in range(low, high, ROWS):
        stop, at = min(first + ROWS, high), first * width
        ask(pointers, lists, runs, first, stop, columns, out)
        add_runs(pointers, lists, runs, data, first, stop, flat, at, width, scale, no_padding, out)
        add_lists(pointers, lists, runs, data, first, stop, flat, at, width, scale, columns, out)


@compiled
def arrange(indptr, indices, values, begins, counts, wide, pointers, lists, runs, data):
    """The entries of a CSR matrix, row by row, those that meet runs first; attributes without a weight drop out.

    One number as ``values`` is that of all entries.
    """
    size, last = 0, values.shape[0] - 1
    for r in range(indptr.shape[0] - 1):
        for meets_run in (True, False):
            for e in range(indptr[r], indptr[r + 1]):
                a = indices[e]
                if counts[a] > 0 and wide[a] == meets_run:
                    runs[size] = begins[a]
                    if size < data.shape[0]:  # one number may be that of all entries
                        data[size] = values[min(e, last)]
                    size += 1
            if meets_run:
                lists[r] = size
        pointers[r + 1] = size
    return size
