"""The exp-oracle of chains with many labels, four sequences side by side.

With hundreds of labels the table T of ``chain_scaled`` is larger than the second cache: the product of one row with it
waits for memory. Here four sequences of about the same length move together, so that what is read of T serves all.
Every sum is that of ``chain_scaled`` term by term: values and marginals are the same bit for bit, whoever the
neighbours are. Sequences in which underflow might matter are left to ``chain_log``, one by one.
"""

import math

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.oracles.chain_log import soft_log
from m3n.compiled.oracles.chain_scaled import SAFE, SMALL, exponential_row, exponentials, unreachable, weigh
from m3n.compiled.oracles.hooks import begin_soft, read_shared, workspace, write_shared
from m3n.compiled.primitives.padded import add_products, copy, product, products
from m3n.compiled.primitives.vector import add, load, multiply, padded, ratio, splat, store, total

SIDE = 4  # sequences, as many as ``products`` takes


@compiled
def soft(space, nodes, shared, order, mu, weights, values, counts):
    """The exp-oracle of the sequences that ``order`` lists by their lengths, without edge scores.

    Marginals times weights are written over ``nodes``, those of shared tables to ``counts``.
    """
    work, s, width = workspace(space), space.labels, padded(space.labels)
    read_shared(space, shared, work)
    begin_soft(space, mu, work)
    sequences, rows = np.empty((2, SIDE, space.longest, width)), np.empty(SIDE * width)
    nothing = shared[:0]
    for g in range(0, order.shape[0], SIDE):
        group = order[g : g + SIDE]
        for i in group:
            _add_ends(nodes[space.offsets[i] * s : space.offsets[i + 1] * s], s, work.ends)
        _forward(group, nodes, space.offsets, work.transition, mu, sequences, work.tables, work.vectors, values)
        _backward(group, nodes, space.offsets, weights, values, sequences, rows, work.tables, s)
        for i in group:
            node = nodes[space.offsets[i] * s : space.offsets[i + 1] * s]
            if math.isnan(values[i]):
                values[i] = soft_log(node, nothing, mu, weights[i], work)
            for j in range(s):
                work.end_counts[0, j] += node[j]
                work.end_counts[1, j] += node[node.shape[0] - s + j]
    write_shared(space, counts, work)


@inner
def _add_ends(node, s, ends):
    last = node.shape[0] - s
    for j in range(s):
        node[j] += ends[0, j]
        node[last + j] += ends[1, j]


@inner
def _forward(group, nodes, offsets, transition, mu, sequences, tables, vectors, values):
    """a_t and pre_t of a group, whose last sequence is the longest; their values, NaN where underflow might matter."""
    labels, width, count, step = transition.shape[0], tables.shape[1], group.shape[0], sequences[0, 0].size
    scale, inverse = np.ones(SIDE), np.ones(SIDE)  # as in ``chain_scaled``, for every sequence
    forward, pre = sequences[0], sequences[1]
    for k in range(count):
        node = nodes[offsets[group[k]] * labels : offsets[group[k] + 1] * labels]
        values[group[k]] = exponentials(node, labels, mu, vectors, forward[k])
        for c in range(0, width, 4):
            store(pre[k], c, splat(1.0))
    for t in range(offsets[group[-1] + 1] - offsets[group[-1]]):
        if t > 0:
            at = (t - 1) * width
            if count == SIDE and t < offsets[group[0] + 1] - offsets[group[0]]:
                products(forward, at, step, labels, tables[0], pre, at + width, step)
            else:
                for k in range(count):
                    if t < offsets[group[k] + 1] - offsets[group[k]]:
                        product(forward, k * step + at, labels, tables[0], pre, k * step + at + width)
        for k in range(count):
            i = group[k]
            if t < offsets[i + 1] - offsets[i] and not math.isnan(values[i]):
                node = nodes[offsets[i] * labels : offsets[i + 1] * labels]
                gained, mass = _settle(node, t, transition, mu, inverse[k], forward[k], pre[k], vectors)
                values[i] += gained
                inverse[k] = 1.0 / mass
                scale[k] *= mass
                if not 1e-150 < scale[k] < 1e150:
                    values[i] += mu * math.log(scale[k])
                    scale[k] = 1.0
    for k in range(count):
        values[group[k]] += mu * math.log(scale[k])


@inner
def _settle(node, t, transition, mu, inverse, forward, pre, vectors):
    """a_t from pre_t: what the value gains, NaN where underflow might matter, and the mass."""
    labels, width = transition.shape[0], pre.shape[1]
    mass, least = weigh(pre, inverse, forward, t * width)
    if not least > SAFE and not unreachable(node, t, transition, inverse, pre):
        return np.nan, 1.0
    if not mass < SMALL:
        return 0.0, mass
    if not mass > SAFE:
        return np.nan, 1.0
    gained = mu * math.log(mass)
    exponential_row(node, labels, t, mu, math.log(mass), vectors, forward)
    mass, _ = weigh(pre, inverse, forward, t * width)
    return gained, mass


@inner
def _backward(group, nodes, offsets, weights, values, sequences, rows, tables, labels):
    """Marginals times weights, where values are known; what expected transition counts need is added to tables[2]."""
    width, count, step = tables.shape[1], group.shape[0], sequences[0, 0].size
    forward, pre = sequences[0], sequences[1]
    for t in range(offsets[group[-1] + 1] - offsets[group[-1]] - 1, -1, -1):
        at, active = t * width, 0
        for k in range(count):
            i = group[k]
            if t < offsets[i + 1] - offsets[i]:
                if t == offsets[i + 1] - offsets[i] - 1:
                    _begin(forward, k * step + at, weights[i], rows, k * width, width)
                else:
                    _multiply(rows, k * width, width, forward, k * step + at)
                if not math.isnan(values[i]):
                    copy(rows, k * width, labels, nodes, (offsets[i] + t) * labels)
                for c in range(0, width if t > 0 else 0, 4):
                    place = k * step + at + c
                    store(pre, place, ratio(load(rows, k * width + c), load(pre, place)))
                active += 1
        if t > 0 and active == SIDE:
            products(pre, at, step, labels, tables[1], rows, 0, width)
        elif t > 0:
            for k in range(count - active, count):
                product(pre, k * step + at, labels, tables[1], rows, k * width)
    for k in range(count):
        i = group[k]
        if not math.isnan(values[i]):
            add_products(forward[k], pre[k], offsets[i + 1] - offsets[i], labels, tables[2])


@inner
def _multiply(rows, at, width, by, place):
    """rows[at:] *= by[place:], so many numbers."""
    for c in range(0, width, 4):
        store(rows, at + c, multiply(load(rows, at + c), load(by, place + c)))


@inner
def _begin(forward, at, weight, rows, place, width):
    """Marginals of a last position."""
    mass = splat(0.0)
    for c in range(at, at + width, 4):
        mass = add(mass, load(forward, c))
    inverse = splat(weight / total(mass))
    for c in range(0, width, 4):
        store(rows, place + c, multiply(load(forward, at + c), inverse))
