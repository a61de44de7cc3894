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

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.maps.costs import add_costs, copy_gold, margin_base
from m3n.compiled.oracles.chain import best_source, pair_table
from m3n.compiled.oracles.chain_block import ChainSpace, all_parts, read_tables
from m3n.compiled.oracles.driver import rows_of
from m3n.compiled.oracles.hooks import cut, implements
from m3n.compiled.primitives.padded import maxima
from m3n.compiled.primitives.units import steps_of, unit_of
from m3n.compiled.primitives.vector import padded


class SlackScratch(NamedTuple):
    """Memory for one sweep of the slack objective; rows of the first three are padded to a multiple of eight."""

    forward: np.ndarray  # (positions and losses of the largest sequence, labels)
    tables: np.ndarray  # (2, labels, labels)
    scores: np.ndarray  # (labels,)
    steps: np.ndarray  # (labels,), integers
    losses: np.ndarray  # (longest, labels), flat
    transition: np.ndarray  # (labels, labels)
    ends: np.ndarray  # (2, labels): start and end scores


@inner
def slack_scratch(space, levels):
    """Memory for sequences whose largest losses are these, in units."""
    s, width, rows = space.labels, padded(space.labels), (np.diff(space.offsets) * (levels + 1)).max()
    tables, losses = np.zeros((2, width, width)), np.empty(space.longest * s)
    shared = np.empty((s, s)), np.empty((2, s))
    return SlackScratch(np.empty((rows, width)), tables, np.empty(width), np.empty(s, np.int64), losses, *shared)


@implements("slack_workspace", ChainSpace)
def _slack_workspace(space, costs):
    return slack_scratch(space, costs.levels)


@implements("slack", ChainSpace)
def _slack(space, costs, i, theta, parts, work):
    own, shared = cut(space, i, theta)
    read_tables(space, shared, work)
    work.losses[: own[0].shape[0]] = 0.0
    add_costs(costs.label, i, work.losses, 1.0)
    base, unit, levels = margin_base(costs, i, theta), costs.units[i], costs.levels[i]
    value, _ = best_product(*own, base, unit, levels, work, parts)
    return value, all_parts(space, i, parts) if value > 0.0 else copy_gold(costs, i, parts)


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
def slack(space, arrays, first, shared, losses, units, levels, gold, low, high, values, labelling, found):
    """The largest products of sequences low..high-1, the labels that attain them and their losses.

    ``gold`` are the scores of the gold outputs; ``labelling`` holds these outputs and stays where nothing is above 0.
    """
    work = slack_scratch(space, levels)
    read_tables(space, shared, work)
    for i in range(low, high):
        own, path = rows_of(arrays, first, i), labelling[space.offsets[i] : space.offsets[i + 1]]
        work.losses[: own[0].shape[0]] = losses[first[0, i] : first[0, i + 1]]
        values[i], found[i] = best_product(*own, 1.0 - gold[i], units[i], levels[i], work, path)


@inner
def best_product(node, edge, base, unit, levels, work, path):
    """The largest ell(y) (base + s(y)) of one sequence, its loss; its labels go to ``path`` if it is positive.

    ``node`` and ``edge`` are flat, as are the losses of its labels, ``work.losses``.
    """
    forward, tables, start = work.forward, work.tables, work.ends[0]
    labels, stride = start.shape[0], levels + 1
    length, reach = node.shape[0] // labels, 0
    for t in range(length):
        more = _steps(work.losses, t, labels, unit, work.steps)
        forward[t * stride : t * stride + reach + more + 1] = -np.inf
        if t == 0:
            for j in range(labels):
                forward[work.steps[j], j] = node[j] + start[j]
        else:
            table = pair_table(edge, edge[:0], t, labels, 0, labels, tables) if edge.shape[0] > 0 else tables[0]
            _extend(node, t, reach, stride, table, forward, work.scores, work.steps)
        reach += more
    value, level, last = _largest(forward, (length - 1) * stride, reach, work.ends[1], base, unit)
    if value > 0.0:
        path[length - 1] = last
        return value, _trace(edge, length, unit, stride, level, work, path)
    return value, 0.0


@inner
def _steps(losses, t, labels, unit, steps):
    """The losses of all labels at position t in units; the largest."""
    most = 0
    for j in range(labels):
        steps[j] = steps_of(losses[t * labels + j], unit)
        most = max(most, steps[j])
    return most


@inner
def _extend(node, t, reach, stride, table, forward, scores, steps):
    """Position t from position t - 1, one row for every loss that some prefix has."""
    labels, width = steps.shape[0], forward.shape[1]
    for e in range(reach + 1):
        before = (t - 1) * stride + e
        if forward[before, :labels].max() > -np.inf:
            maxima(forward, before * width, labels, table, scores, 0)
            for j in range(labels):
                forward[t * stride + e + steps[j], j] = scores[j] + node[t * labels + j]


@inner
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


@inner
def _trace(edge, length, unit, stride, level, work, path):
    """The best labels before the last one, which is known; returns the loss of the output."""
    loss, labels, tables = 0.0, work.steps.shape[0], work.tables
    for t in range(length - 1, -1, -1):
        own = work.losses[t * labels + path[t]]
        loss += own
        level -= steps_of(own, unit)
        if t > 0:
            table = tables[0]
            if edge.shape[0] > 0:
                table = pair_table(edge, edge[:0], t, labels, path[t], path[t] + 1, tables)
            path[t - 1] = best_source(work.forward[(t - 1) * stride + level], table, labels, path[t])
    return loss
