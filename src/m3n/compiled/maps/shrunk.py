"""Ordinary rows that meet the soft thresholds of a vector instead of the vector itself.

Under an l1 penalty the weights are w_k = S(u_k), S(x) = sign(x) max(|x| - threshold, 0), of a vector u linear in
the dual point. Visits keep u alone: scores are sums of soft thresholds, and what is added is added to u. The functions
have the names and arguments of those in ``maps.ordinary``, with ``Shrunk`` in place of the weights.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.maps import ordinary
from m3n.compiled.primitives.runs import ask


class Shrunk(NamedTuple):
    """The soft threshold of a vector."""

    vector: np.ndarray  # (dim,)
    threshold: float


@inner
def soft_threshold(x, threshold):
    """S(x)."""
    return x - min(max(x, -threshold), threshold)


@compiled
def gather(rows, i, w, theta):
    """theta = the scores of example i under w; what the next row needs is asked for in advance."""
    pointers, lists, runs, data, columns = rows.pointers, rows.lists, rows.runs, rows.data, rows.columns
    end = data.shape[0] - 1  # one number may be that of all entries
    used, place, last, u, threshold = rows.used, rows.place, rows.first[i + 1], w.vector, w.threshold
    for k in range(rows.first[i], last):
        if k + 1 < last:
            ask(pointers, lists, runs, used[k + 1], used[k + 1] + 1, columns, u)
        r, at, width = used[k], np.uint64(place[k]), np.uint64(rows.widths[used[k]])
        for j in range(width):
            theta[at + j] = 0.0
        for e in range(pointers[r], lists[r]):
            run, x = np.uint64(runs[e]), data[np.uint64(min(e, end))]
            for j in range(width):
                theta[at + j] += x * soft_threshold(u[run + j], threshold)
        for e in range(lists[r], pointers[r + 1]):
            m, x = np.uint64(runs[e]), data[np.uint64(min(e, end))]
            column = columns[m]
            while column >= 0:
                theta[at + np.uint64(column)] += x * soft_threshold(u[m], threshold)
                m += np.uint64(1)
                column = columns[m]
            theta[at + np.uint64(~column)] += x * soft_threshold(u[m], threshold)


@compiled
def scatter_all(rows, i, delta, scale, w):
    """u += scale * F' delta, for a delta that may be nonzero anywhere."""
    ordinary.scatter_all(rows, i, delta, scale, w.vector)


@compiled
def grow_all(rows, i, delta, scale, w):
    """The same; returns the growth of |w|^2."""
    pointers, lists, runs, data, columns = rows.pointers, rows.lists, rows.runs, rows.data, rows.columns
    end = data.shape[0] - 1  # one number may be that of all entries
    u, threshold, growth = w.vector, w.threshold, 0.0
    for k in range(rows.first[i], rows.first[i + 1]):
        r, at, width = rows.used[k], np.uint64(rows.place[k]), np.uint64(rows.widths[rows.used[k]])
        for e in range(pointers[r], lists[r]):
            run, x = np.uint64(runs[e]), scale * data[np.uint64(min(e, end))]
            for j in range(width):
                if columns.shape[0] == 0 or columns[run + j] >= 0:
                    growth += grow(u, run + j, x * delta[at + j], threshold)
        for e in range(lists[r], pointers[r + 1]):
            m, x = np.uint64(runs[e]), scale * data[np.uint64(min(e, end))]
            column = columns[m]
            while column >= 0:
                growth += grow(u, m, x * delta[at + np.uint64(column)], threshold)
                m += np.uint64(1)
                column = columns[m]
            growth += grow(u, m, x * delta[at + np.uint64(~column)], threshold)
    return growth


@inner
def grow(u, k, change, threshold):
    """u[k] += change; the growth of the square of its soft threshold."""
    old = u[k]
    new = old + change
    u[k] = new
    before, after = soft_threshold(old, threshold), soft_threshold(new, threshold)
    return (after - before) * (after + before)
