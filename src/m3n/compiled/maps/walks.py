"""All rows of one example of a feature map in ``MapRows``: their scores, and their features added to a vector."""

from m3n.compiled.jit import compiled
from m3n.compiled.primitives.runs import add_lists, add_runs, ask, grow_lists, grow_runs, sum_lists, sum_runs


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
