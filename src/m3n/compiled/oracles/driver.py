"""Passes over a packed batch by the hooks of single examples: bring an example's own theta together, ask, write back.

``arrays`` are the arrays of theta, flattened. Example i has lengths[k, i] neighbouring parts of array k, from
first[k, i] on, and they stand from before[k, i] on in its own theta.
"""

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.oracles.hooks import best as best_of
from m3n.compiled.oracles.hooks import soft as soft_of
from m3n.compiled.oracles.hooks import workspace


@compiled
def hard(space, arrays, lengths, before, first, room, low, high, values, packed):
    """Max-oracle of examples low..high-1: best scores into ``values``, parts into ``packed`` from room[i] on."""
    work, theta = workspace(space), np.empty(longest(lengths, low, high))
    for i in range(low, high):
        size = gather(arrays, lengths, before, first, i, theta)
        values[i], _ = best_of(space, i, theta[:size], packed[room[i] : room[i + 1]], work)


@compiled
def soft(space, arrays, lengths, before, first, shared, low, high, mu, weights, values, counts):
    """Exp-oracle of examples low..high-1: marginals times weights into ``counts``, where shared arrays are added up."""
    work, theta = workspace(space), np.empty(longest(lengths, low, high))
    for i in range(low, high):
        size = gather(arrays, lengths, before, first, i, theta)
        values[i] = soft_of(space, i, theta[:size], mu, work)
        for k in range(len(arrays)):
            total, source, target = counts[k], before[k, i], first[k, i]
            for j in range(lengths[k, i]):
                amount = weights[i] * theta[source + j]
                total[target + j] = total[target + j] + amount if shared[k] else amount


@compiled
def gather(arrays, lengths, before, first, i, theta):
    """The own theta of example i; its length."""
    for k in range(len(arrays)):
        source, at, target = arrays[k], first[k, i], before[k, i]
        for j in range(lengths[k, i]):
            theta[target + j] = source[at + j]
    return before[-1, i] + lengths[-1, i]


@compiled
def longest(lengths, low, high):
    """The length of the longest own theta of examples low..high-1."""
    most = 0
    for i in range(low, high):
        most = max(most, lengths[:, i].sum())
    return most
