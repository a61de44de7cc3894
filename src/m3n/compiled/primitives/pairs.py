"""Ways to make something of two pieces: max, mu log sum exp, and shares of a[k] + b[k] over a stretch of two arrays.

That is what the recursions over spans of a sentence do at every split. Arrays are flat; a stretch begins at ``at`` in
one and at ``bt`` in the other, and has any length. The last vector of four may reach beyond it: ``TAIL`` makes what is
there -inf, so arrays need room for three more numbers, which may be anything.
"""

import numpy as np

from m3n.compiled.jit import borrowing
from m3n.compiled.primitives.logarithm import log
from m3n.compiled.primitives.vector import (
    LANES,
    add,
    exponential,
    highest,
    load,
    maximum,
    multiply,
    multiply_add,
    splat,
    store,
    subtract,
    total,
)

TAIL = np.array([0.0] * LANES + [-np.inf] * LANES)


@borrowing
def _sums(a, at, b, bt, k, count):
    """Four sums from the k-th one on, -inf beyond the last."""
    sums = add(load(a, at + k), load(b, bt + k))
    return sums if k + LANES <= count else add(sums, load(TAIL, LANES + k - count))


@borrowing
def best_pair(a, at, b, bt, count):
    """max over k < count of a[at + k] + b[bt + k]."""
    tops = splat(-np.inf)
    for k in range(0, count, LANES):
        tops = maximum(_sums(a, at, b, bt, k, count), tops)
    return highest(tops)


@borrowing
def best_place(a, at, b, bt, count):
    """The first k that attains it."""
    place, top = 0, -np.inf
    for k in range(count):
        if a[at + k] + b[bt + k] > top:
            place, top = k, a[at + k] + b[bt + k]
    return place


@borrowing
def join(a, at, b, bt, count, mu):
    """mu log sum over k < count of exp((a[at + k] + b[bt + k])/mu); the maximum for mu = 0."""
    top = best_pair(a, at, b, bt, count)
    if mu == 0.0 or count == 1 or not top > -np.inf:
        return top
    mass, colder, tops = splat(0.0), splat(1.0 / mu), splat(top)
    for k in range(0, count, LANES):
        mass = add(mass, exponential(multiply(subtract(_sums(a, at, b, bt, k, count), tops), colder)))
    return top + mu * log(total(mass))


@borrowing
def share(p, a, at, b, bt, count, mu, ways, pa, pb):
    """Divide p among the ways k in proportion to exp((a[at + k] + b[bt + k])/mu): pa[at + k] and pb[bt + k] grow by it.

    ``ways`` is scratch memory of ``count`` numbers, and three more. The shares add up to p whatever mu is.
    """
    if count == 1:
        pa[at] += p
        pb[bt] += p
        return
    tops, mass, colder = splat(best_pair(a, at, b, bt, count)), splat(0.0), splat(1.0 / mu)
    for k in range(0, count, LANES):
        way = exponential(multiply(subtract(_sums(a, at, b, bt, k, count), tops), colder))
        mass = add(mass, way)
        store(ways, k, way)
    scale = splat(p / total(mass))
    for k in range(0, count, LANES):
        way = load(ways, k)
        store(pa, at + k, multiply_add(way, scale, load(pa, at + k)))
        store(pb, bt + k, multiply_add(way, scale, load(pb, bt + k)))
