"""The exp-oracle of segmentations: logarithms of prefix sums, and products of matrices wherever they are safe.

    open_b(j)   = mu log sum_i exp{ (closed_b(i) + transition_ij)/mu },  open_0 = start
    closed_t(j) = mu log sum_d exp{ (open_{t-d}(j) + score of segment (t - d, d, j))/mu }

The first sum is a product with T_ij = exp((transition_ij - column maximum)/mu): pre_b = a_b T, a_b(i) =
exp(closed_b(i)/mu), the maximum over i being moved to 0. A column with pre_b(j) below ``SAFE`` might have lost terms
by underflow; it is summed again with logarithms. The terms of the second sum are kept in place of the segment scores:
divided by their total they are the probabilities of sizes, given where a segment ends and its label. So backwards

    P(segment) = P(label j ends at t) term/total,    P(i ends at b) = a_b(i) sum_j T_ij P(j begins at b)/pre_b(j)

without an exponential, and marginals are those of a distribution at any temperature. Cost per position:
O(most labels + labels^2), with an exponential for every segment and label, one more per label, and two logarithms.

Layout and scratch as in ``semi_markov``. A score that is moved by ``moves[t]`` at every position t stays close to 0,
which keeps the rounding error from growing with the length.
"""

import math

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.oracles.chain_scaled import SAFE, exponentiate
from m3n.compiled.oracles.semi_markov import add_up, place
from m3n.compiled.primitives.exponential import exp, normalise
from m3n.compiled.primitives.logarithm import log
from m3n.compiled.primitives.padded import add_products, product


@compiled
def soft(
    node, transition, start, end, segment, offsets, cuts, bounds, low, high, mu, weights, values, counts, starts, ends,
    sequences, tables, vectors, moves,
):  # fmt: skip
    """The exp-oracle on sequences low..high-1; ``node`` and ``segment`` are overwritten by their marginals.

    Expected transitions, first and last labels are added to ``counts``, ``starts`` and ``ends``; all of them times
    ``weights[k]``. A value of -inf says that no output is allowed. Scratch: ``sequences`` (5, longest + 1, labels),
    ``tables`` (3, labels, labels) and ``vectors`` (4, labels) with padded rows, ``moves`` (longest + 1,).
    """
    labels = start.shape[0]
    exponentiate(transition, mu, tables, vectors)
    nodes, segments = node.reshape(-1), segment.reshape(-1)
    for k in range(low, high):
        rows = nodes[offsets[k] * labels : offsets[k + 1] * labels]
        spans = segments[cuts[k] * labels : cuts[k + 1] * labels]
        values[k] = _forward(rows, transition, start, end, spans, bounds, mu, sequences, tables, vectors, moves)
        _backward(rows, transition, spans, bounds, mu, weights[k], counts, starts, ends, sequences, tables, vectors)
    for i in range(labels):
        for j in range(labels):
            counts[i, j] += tables[0, i, j] * tables[2, i, j]


@compiled
def _forward(node, transition, start, end, segment, bounds, mu, sequences, tables, vectors, moves):
    """The value; vectors[0] are then the probabilities of the last label, all 0 if no output is allowed."""
    labels, most, width = bounds.shape[0], bounds.max(), tables.shape[1]
    length = node.shape[0] // labels
    closed, opened, warm, pre, masses = sequences[0], sequences[1], sequences[2], sequences[3], sequences[4]
    add_up(node, segment, length, bounds, most, vectors[2], segment)
    value = 0.0
    for j in range(labels):
        opened[0, j] = start[j]
    for t in range(1, length + 1):
        moves[t] = _close(segment, opened, moves, length, most, labels, t, mu, vectors[2], closed[t], masses[t])
        value += moves[t]
        if t < length:
            _warm(closed[t], mu, warm[t - 1])
            product(warm, (t - 1) * width, labels, tables[0], pre, t * width)
            _open(closed[t], transition, vectors[1], mu, pre[t], opened[t])
    last = vectors[0]
    for j in range(labels):
        last[j] = closed[length, j] + end[j]
    return value + normalise(last, labels, mu)


@compiled
def _warm(closed, mu, warm):
    """a_t = exp(closed_t/mu)."""
    inverse = 1.0 / mu
    for j in range(warm.shape[0]):
        warm[j] = exp(closed[j] * inverse)


@compiled
def _close(segment, opened, moves, length, most, labels, t, mu, tops, closed, mass):
    """closed_t, moved to a maximum of 0; segments that end at t become their terms. Returns the move."""
    sizes, moved = min(most, t), 0.0
    closed[:] = -np.inf
    for d in range(1, sizes + 1):
        at = place(length, most, t - d, d) * labels
        scores, source = segment[at : at + labels], opened[t - d]
        for j in range(labels):
            scores[j] += source[j] - moved
            closed[j] = max(closed[j], scores[j])
        moved += moves[t - d]
    if sizes > 1:
        _sum_sizes(segment, length, most, labels, t, mu, tops, closed, mass)
    else:  # one term each
        for j in range(labels):
            mass[j] = scores[j] = 1.0 if closed[j] > -np.inf else 0.0
    move = -np.inf
    for j in range(labels):
        move = max(move, closed[j])
    move = move if move > -np.inf else 0.0
    for j in range(labels):
        closed[j] -= move
    return move


@compiled
def _sum_sizes(segment, length, most, labels, t, mu, tops, closed, mass):
    """Terms in place of the scores of segments that end at t; closed(j) from the largest score to that of their sum."""
    inverse = 1.0 / mu
    mass[:] = 0.0
    for j in range(labels):
        tops[j] = closed[j] if closed[j] > -np.inf else 0.0
    for d in range(1, min(most, t) + 1):
        at = place(length, most, t - d, d) * labels
        scores = segment[at : at + labels]
        for j in range(labels):
            scores[j] = exp((scores[j] - tops[j]) * inverse)
            mass[j] += scores[j]
    for j in range(mass.shape[0]):
        closed[j] += mu * log(max(mass[j], 1.0))  # it is 0 where closed(j) is -inf


@compiled
def _open(closed, transition, tops, mu, pre, opened):
    """open_b from pre_b, which becomes 0 where it is not safe."""
    for j in range(pre.shape[0]):
        opened[j] = tops[j] + mu * log(max(pre[j], SAFE))
    for j in range(transition.shape[0]):
        if not pre[j] > SAFE:
            pre[j] = 0.0
            top, total = _column(closed, transition, j, mu)
            opened[j] = top + mu * math.log(total) if top > -np.inf else -np.inf


@compiled
def _column(closed, transition, j, mu):
    """The largest closed(i) + transition_ij, and sum_i exp{ (closed(i) + transition_ij - largest)/mu }."""
    top, total = -np.inf, 0.0
    for i in range(transition.shape[0]):
        top = max(top, closed[i] + transition[i, j])
    if top > -np.inf:
        for i in range(transition.shape[0]):
            total += exp((closed[i] + transition[i, j] - top) / mu)
    return top, total


@compiled
def _backward(node, transition, segment, bounds, mu, weight, counts, starts, ends, sequences, tables, vectors):
    """Marginals from the probabilities of the last label, times the weight."""
    labels, most, width = bounds.shape[0], bounds.max(), tables.shape[1]
    length = node.shape[0] // labels
    closed, begins, warm, pre, masses = sequences[0], sequences[1], sequences[2], sequences[3], sequences[4]
    p = vectors[0]
    begins[:length] = 0.0
    for j in range(labels):
        p[j] *= weight
        ends[j] += p[j]
    for t in range(length, 0, -1):
        if t < length:
            _close_again(closed[t], transition, mu, begins[t], pre[t], counts, vectors[2])
            product(pre, t * width, labels, tables[1], p, 0)
            _weigh(p, warm[t - 1], vectors[2])
        _share(p, masses[t])
        for d in range(1, min(most, t) + 1):
            at = place(length, most, t - d, d) * labels
            terms, target = segment[at : at + labels], begins[t - d]
            for j in range(labels):
                terms[j] *= p[j]
                target[j] += terms[j]
    for j in range(labels):
        starts[j] += begins[0, j]
    add_products(warm, pre, length, labels, tables[2])
    _spread(segment, length, most, labels, vectors[2], node)


@compiled
def _weigh(p, warm, extra):
    """p(i) = a(i) p(i) + extra(i)."""
    for i in range(p.shape[0]):
        p[i] = p[i] * warm[i] + extra[i]


@compiled
def _share(p, mass):
    """p(j) /= mass(j), 0 where there is none."""
    for j in range(p.shape[0]):
        p[j] = p[j] / mass[j] if mass[j] > 0.0 else 0.0


@compiled
def _close_again(closed, transition, mu, begins, pre, counts, extra):
    """pre_b becomes P(j begins at b)/pre_b; columns that were not safe are added to ``counts`` and ``extra``."""
    labels = transition.shape[0]
    extra[:] = 0.0
    for j in range(labels):
        if pre[j] == 0.0 and begins[j] > 0.0:
            top, total = _column(closed, transition, j, mu)
            for i in range(labels):
                p = begins[j] * exp((closed[i] + transition[i, j] - top) / mu) / total
                extra[i] += p
                counts[i, j] += p
    for j in range(pre.shape[0]):
        pre[j] = begins[j] / pre[j] if pre[j] > 0.0 else 0.0


@compiled
def _spread(segment, length, most, labels, running, node):
    """Marginals of positions: the sum over all segments that cover them."""
    node[:] = 0.0
    for begin in range(length):
        running[:] = 0.0
        for size in range(min(most, length - begin), 0, -1):
            at, to = place(length, most, begin, size) * labels, (begin + size - 1) * labels
            terms, target = segment[at : at + labels], node[to : to + labels]
            for j in range(labels):
                running[j] += terms[j]
                target[j] += running[j]
