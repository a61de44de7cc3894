"""Rows of codes that meet the soft thresholds of a vector, ``maps.shrunk.Shrunk``, instead of the vector itself.

The functions have the names and arguments of those in ``maps.codes``.
"""

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.maps import codes
from m3n.compiled.maps.shrunk import grow, soft_threshold


@compiled
def gather(rows, i, w, theta):
    """theta = the scores of example i under w."""
    pointers, numbers, u, threshold = rows.pointers, rows.codes, w.vector, w.threshold
    for k in range(rows.first[i], rows.first[i + 1]):
        r, at = rows.used[k], rows.place[k]
        base, first = rows.bases[r], rows.parts[r]
        for j in range(rows.widths[r]):
            total, mask = 0.0, rows.masks[first + j]
            for e in range(pointers[r], pointers[r + 1]):
                total += soft_threshold(u[np.uint64(base + (numbers[e] ^ mask))], threshold)
            theta[at + j] = rows.values[r] * total


@compiled
def scatter_all(rows, i, delta, scale, w):
    """u += scale * F' delta, for a delta that may be nonzero anywhere."""
    codes.scatter_all(rows, i, delta, scale, w.vector)


@compiled
def grow_all(rows, i, delta, scale, w):
    """The same; returns the growth of |w|^2."""
    pointers, numbers, u, threshold, growth = rows.pointers, rows.codes, w.vector, w.threshold, 0.0
    for k in range(rows.first[i], rows.first[i + 1]):
        r, at = rows.used[k], rows.place[k]
        base, first = rows.bases[r], rows.parts[r]
        for j in range(rows.widths[r]):
            change, mask = scale * rows.values[r] * delta[at + j], rows.masks[first + j]
            if change != 0.0:
                for e in range(pointers[r], pointers[r + 1]):
                    growth += grow(u, np.uint64(base + (numbers[e] ^ mask)), change, threshold)
    return growth
