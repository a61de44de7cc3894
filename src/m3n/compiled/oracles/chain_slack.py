"""Slack rescaling on chains: the largest product of loss and margin, exactly.

    max_y  ell(y) (1 + s(y) - s(gold)),     ell(y) = unit * e(y),   e(y) a whole number

The product does not decompose over positions, but for a fixed loss only the score counts. So the recursion of Viterbi
gets the loss as a second index: f_t(e, j) is the best score of a prefix that ends with label j and has lost e units,

    f_t(e + c_t(j), j) = node_t(j) + max_i { f_{t-1}(e, i) + transition(i, j) },     c_t(j) = loss of label j in units,

and the answer is the best of unit * e * (1 + f_L(e, j) + end(j) - s(gold)) over e and j. The maximum over i is the same
for all units that j costs, so the inner loop is Viterbi's, once per loss that a prefix can have.

Cost: O(length x losses x labels^2) per sequence, ``losses`` being the units that a prefix may have lost: half of the
length on average with Hamming loss. Memory: length x (most units + 1) x labels numbers for the longest sequence.
"""

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.oracles.chain import edge_table
from m3n.compiled.primitives.padded import maxima
from m3n.compiled.primitives.units import steps_of, unit_of


@compiled
def measure(losses, labels, offsets, units, levels):
    """Of every sequence the unit of its losses, a part of (tokens * labels,), and the largest in units; -1: no unit."""
    for k in range(offsets.shape[0] - 1):
        own = losses[offsets[k] * labels : offsets[k + 1] * labels]
        units[k], levels[k] = unit_of(own), -1
        if units[k] > 0.0:
            levels[k] = 0
            for t in range(0, own.shape[0], labels):
                levels[k] += steps_of(own[t : t + labels].max(), units[k])


@compiled
def slack(
    node, transition, start, end, edge, losses, units, levels, gold, offsets, low, high, values, labelling, found,
    forward, tables, scores, steps,
):  # fmt: skip
    """The largest products of sequences low..high-1, the labels that attain them and their losses.

    ``gold`` are the scores of the gold outputs; ``labelling`` holds these outputs and stays where nothing is above 0.
    Scratch: ``forward`` (rows, labels) with a row for every position and loss, ``tables`` (2, labels, labels) and
    ``scores`` (labels,), their rows padded to a multiple of eight, and ``steps`` (labels,) of integers.
    """
    labels = node.shape[1]
    tables[0] = 0.0
    tables[0, :labels, :labels] = transition
    flat, edges = node.reshape(-1), edge.reshape(-1)
    for k in range(low, high):
        at, length = offsets[k], offsets[k + 1] - offsets[k]
        pair, path = (at - k) * labels * labels, labelling[at : at + length]
        rows, own = flat[at * labels : (at + length) * labels], losses[at * labels : (at + length) * labels]
        values[k], found[k] = best_product(
            rows, start, end, edges, pair, length, edge.shape[0] > 0, own, 1.0 - gold[k], units[k], levels[k],
            forward, tables, scores, steps, path,
        )  # fmt: skip


@compiled
def best_product(
    node, start, end, edge, pair, length, edged, losses, base, unit, levels, forward, tables, scores, steps, path
):
    """The largest ell(y) (base + s(y)) of one sequence, its loss; its labels go to ``path`` if it is positive.

    ``node``, ``losses`` and ``edge`` are flat, the edge scores from position ``pair`` on; tables[0] holds the
    transitions.
    """
    labels, stride = start.shape[0], levels + 1
    reach = 0
    for t in range(length):
        more = _steps(losses, t, labels, unit, steps)
        forward[t * stride : t * stride + reach + more + 1] = -np.inf
        if t == 0:
            for j in range(labels):
                forward[steps[j], j] = node[j] + start[j]
        else:
            table = edge_table(edge, pair, t, labels, tables) if edged else tables[0]
            _extend(node, t, reach, stride, table, forward, scores, steps)
        reach += more
    value, level, last = _largest(forward, (length - 1) * stride, reach, end, base, unit)
    if value > 0.0:
        path[length - 1] = last
        return value, _trace(edge, pair, length, edged, losses, unit, stride, level, forward, tables, labels, path)
    return value, 0.0


@compiled
def _steps(losses, t, labels, unit, steps):
    """The losses of all labels at position t in units; the largest."""
    most = 0
    for j in range(labels):
        steps[j] = steps_of(losses[t * labels + j], unit)
        most = max(most, steps[j])
    return most


@compiled
def _extend(node, t, reach, stride, table, forward, scores, steps):
    """Position t from position t - 1, one row for every loss that some prefix has."""
    labels, width = steps.shape[0], forward.shape[1]
    for e in range(reach + 1):
        before = (t - 1) * stride + e
        if forward[before, :labels].max() > -np.inf:
            maxima(forward, before * width, labels, table, scores, 0)
            for j in range(labels):
                forward[t * stride + e + steps[j], j] = scores[j] + node[t * labels + j]


@compiled
def _largest(forward, first, reach, end, base, unit):
    """The largest product, its loss in units and its last label; 0 if none is positive, NaN if there is one."""
    value, level, last = 0.0, 0, 0
    for e in range(1, reach + 1):
        for j in range(end.shape[0]):
            product = unit * e * (base + forward[first + e, j] + end[j])
            if product > value or np.isnan(product):
                value, level, last = product, e, j
                if np.isnan(product):
                    return value, level, last
    return value, level, last


@compiled
def _trace(edge, pair, length, edged, losses, unit, stride, level, forward, tables, labels, path):
    """The best labels before the last one, which is known; returns the loss of the output."""
    loss = 0.0
    for t in range(length - 1, -1, -1):
        own = losses[t * labels + path[t]]
        loss += own
        level -= steps_of(own, unit)
        if t > 0:
            table = edge_table(edge, pair, t, labels, tables) if edged else tables[0]
            f, source = forward[(t - 1) * stride + level], 0
            for i in range(1, labels):
                source = i if f[i] + table[i, path[t]] > f[source] + table[source, path[t]] else source
            path[t - 1] = source
    return loss
