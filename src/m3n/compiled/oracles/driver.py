"""Passes over a packed batch by the hooks of single examples: bring an example's own theta together, ask, write back.

``arrays`` are the arrays of theta, flattened. Example i has lengths[k, i] neighbouring parts of array k, from
first[k, i] on, and they stand from before[k, i] on in its own theta.

Spaces whose oracles come in steps read all shared tables, in one vector, once; their own arrays are not copied.
Example i has the parts first[k, i]..first[k, i + 1]-1 of own array k.
"""

import numpy as np
from numba.extending import overload

from m3n.compiled.jit import CHOSEN, compiled, inner
from m3n.compiled.oracles import hooks
from m3n.compiled.oracles.hooks import begin_soft, read_shared, workspace, write_shared
from m3n.compiled.oracles.hooks import best as best_of
from m3n.compiled.oracles.hooks import smoothed as smoothed_of
from m3n.compiled.oracles.hooks import soft as soft_of


@compiled
def hard(space, arrays, lengths, before, first, room, most, low, high, values, packed):
    """Max-oracle of examples low..high-1: best scores into ``values``, lists of parts into ``packed``, see ``keep``.

    No output has more than ``most`` parts.
    """
    work, theta, parts = workspace(space), np.empty(longest(lengths, low, high)), np.empty(most, np.int64)
    for i in range(low, high):
        size = gather(arrays, lengths, before, first, i, theta)
        values[i], number = best_of(space, i, theta[:size], parts, work)
        keep(parts, number, packed, room[i], room[i + 1])


@compiled
def soft(space, arrays, lengths, before, first, shared, low, high, mu, weights, values, counts):
    """Exp-oracle of examples low..high-1: marginals times weights into ``counts``, where shared arrays are added up."""
    work, theta = workspace(space), np.empty(longest(lengths, low, high))
    for i in range(low, high):
        size = gather(arrays, lengths, before, first, i, theta)
        values[i] = soft_of(space, i, theta[:size], mu, work)
        hand_out(theta, weights[i], lengths, before, first, shared, i, counts)


@compiled
def smoothed(space, arrays, lengths, before, first, shared, low, high, mu, weights, values, counts):
    """As ``soft``, with the structure's own prox."""
    work, theta = workspace(space), np.empty(longest(lengths, low, high))
    for i in range(low, high):
        size = gather(arrays, lengths, before, first, i, theta)
        values[i] = smoothed_of(space, i, theta[:size], mu, work)
        hand_out(theta, weights[i], lengths, before, first, shared, i, counts)


@compiled
def best_one(space, i, theta, parts):
    """Max-oracle of one example: the number of parts of its best output, written to ``parts``."""
    return best_of(space, i, theta, parts, workspace(space))[1]


@compiled
def soft_one(space, i, theta, mu):
    """Exp-oracle of one example, over ``theta``."""
    return soft_of(space, i, theta, mu, workspace(space))


@compiled
def smoothed_one(space, i, theta, mu):
    """Smoothed oracle of one example, over ``theta``."""
    return smoothed_of(space, i, theta, mu, workspace(space))


@inner
def hand_out(theta, weight, lengths, before, first, shared, i, counts):
    """The own theta of example i, times a weight, to ``counts``, where shared arrays are added up."""
    for k in range(len(counts)):
        total, source, target = counts[k], before[k, i], first[k, i]
        for j in range(lengths[k, i]):
            amount = weight * theta[source + j]
            total[target + j] = total[target + j] + amount if shared[k] else amount


@inner
def keep(parts, number, packed, first, after):
    """As many parts as there is room for from ``first`` on, -1 for those that are missing."""
    for k in range(after - first):
        packed[first + k] = parts[k] if k < number else -1


@inner
def gather(arrays, lengths, before, first, i, theta):
    """The own theta of example i; its length."""
    for k in range(len(arrays)):
        source, at, target = arrays[k], first[k, i], before[k, i]
        for j in range(lengths[k, i]):
            theta[target + j] = source[at + j]
    return before[-1, i] + lengths[-1, i]


@compiled
def hard_in_steps(space, arrays, first, shared, room, low, high, values, packed):
    """As ``hard``."""
    work, no_mass = workspace(space), shared[:0]
    read_shared(space, shared, work)
    for i in range(low, high):
        own, parts = rows_of(arrays, first, i), packed[room[i] : room[i + 1]]
        values[i], number = hooks.best_own(space, i, own, no_mass, parts, work)
        for k in range(number, parts.shape[0]):
            parts[k] = -1


@compiled
def soft_in_steps(space, arrays, first, shared, low, high, mu, weights, values, counts):
    """As ``soft``; marginals are written over ``arrays``, those of shared tables to ``counts``."""
    work = workspace(space)
    read_shared(space, shared, work)
    begin_soft(space, mu, work)
    for i in range(low, high):
        values[i] = hooks.soft_own(space, i, rows_of(arrays, first, i), mu, weights[i], work)
    write_shared(space, counts, work)


def rows_of(arrays, first, i, k=0):
    """What example i has of every array, as a tuple of views; the first of them is array k."""
    return tuple(array[start[i] : start[i + 1]] for array, start in zip(arrays, first[k:], strict=True))


@overload(rows_of, jit_options=CHOSEN)
def _rows_of(arrays, first, i, k=0):
    def only(arrays, first, i, k=0):
        return (arrays[0][first[k, i] : first[k, i + 1]],)

    def more(arrays, first, i, k=0):
        return (arrays[0][first[k, i] : first[k, i + 1]], *rows_of(arrays[1:], first, i, k + 1))

    return only if len(arrays) == 1 else more


@compiled
def locate(parts, counts, lengths, before, first, places, owners):
    """Where listed parts stand in the flat arrays of theta, array by array, and their examples.

    Example i lists parts[i, : counts[i]], which ascend. Returns where every array ends in ``places``.
    """
    last, ends = lengths.shape[0] - 1, np.zeros(lengths.shape[0], np.int64)
    for fill in range(2):  # count, then write
        for i in range(counts.shape[0]):
            k = 0
            for m in range(counts[i]):
                while k < last and parts[i, m] >= before[k + 1, i]:
                    k += 1
                if fill:
                    places[ends[k]], owners[ends[k]] = parts[i, m] - before[k, i] + first[k, i], i
                ends[k] += 1
        if not fill:
            total = 0
            for k in range(last + 1):
                total, ends[k] = total + ends[k], total
    return ends


@inner
def longest(lengths, low, high):
    """The length of the longest theta of examples low..high-1."""
    found = 0
    for i in range(low, high):
        size = 0
        for k in range(lengths.shape[0]):
            size += lengths[k, i]
        found = max(found, size)
    return found
