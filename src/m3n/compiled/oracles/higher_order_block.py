"""Chains of higher order as a space for block methods: local theta = node, then the shared tables one after another.

The cliques are the arcs of the lattice of states, numbered in ``oracles.higher_order``: masses that are consistent
on them are a flow, and any flow through a graph without cycles is a mixture of paths.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.oracles.higher_order import Machine, padded_steps, score_steps, spread_steps, viterbi
from m3n.compiled.oracles.higher_order_soft import soft
from m3n.compiled.oracles.hooks import implements


class HigherOrderSpace(NamedTuple):
    """Plain arrays of a ``HigherOrderChain``."""

    lengths: np.ndarray  # (n,)
    machine: Machine
    widest: int  # states of the largest level
    block_from: np.ndarray  # (states,) block of the steps from a state, -1 if there are none


class HigherOrderScratch(NamedTuple):
    """Memory for one sweep."""

    sequences: np.ndarray  # (3, longest, widest + 4)
    tables: np.ndarray  # (2, padded steps)
    vectors: np.ndarray  # (3, widest + 4)
    scores: np.ndarray  # (leads + steps,)
    counts: np.ndarray  # (leads + steps,)
    end: np.ndarray  # (labels,)
    path: np.ndarray  # (2, longest), integers
    cuts: np.ndarray  # (2,), integers: where the only sequence begins and ends
    one: np.ndarray  # (2,): the weight 1, and the value


@implements("workspace", HigherOrderSpace)
def _workspace(space):
    longest, items = space.lengths.max(), space.machine.parts.shape[0]
    return HigherOrderScratch(
        np.zeros((3, longest, space.widest + 4)),
        np.zeros((2, padded_steps(space.machine))),
        np.zeros((3, space.widest + 4)),
        np.empty(items),
        np.empty(items),
        np.empty(space.machine.labels),
        np.empty((2, longest), np.int64),
        np.zeros(2, np.int64),
        np.ones(2),
    )


@implements("best", HigherOrderSpace)
def _best(space, i, theta, parts, work):
    return _best_of(space, i, theta, theta[:0], work.scores, parts, work)


@implements("worst", HigherOrderSpace)
def _worst(space, i, theta, mass, parts, work):
    theta *= -1.0
    value, number = _best_of(space, i, theta, mass, work.counts, parts, work)
    theta *= -1.0  # as it was, bit for bit
    return -value, number


@implements("cliques", HigherOrderSpace)
def _cliques(space, i, parts, out):
    machine, state, length = space.machine, 0, space.lengths[i]
    leads = machine.label.shape[0]
    steps = machine.parts.shape[0] - leads
    for t in range(length):
        label = parts[t] - t * machine.labels
        if t < machine.order:
            out[t] = _lead(machine, t, state, label)
            state = out[t] - machine.levels[t]
        else:
            step, state = _step(machine, space.block_from[state], state, label)
            out[t] = step + leads + (t - machine.order) * steps
    return length


@implements("clique_range", HigherOrderSpace)
def _clique_range(space):
    leads = space.machine.label.shape[0]
    steps = space.machine.parts.shape[0] - leads
    return leads + max(space.lengths.max() - space.machine.order, 0) * steps


@compiled
def _lead(machine, t, state, label):
    """The lead from a state of level t to the one with one more label."""
    lead = machine.levels[t]
    while machine.label[lead] != label or (t > 0 and machine.parent[lead] != state):
        lead += 1
    return lead


@compiled
def _step(machine, block, state, label):
    """The number of the step from a state to the one with this newest label, steps counted from 0, and that state."""
    leads, row, target = machine.levels[machine.order - 1], 0, machine.target_first[block]
    while machine.label[leads + target] != label:
        target += 1
    while machine.sources[machine.source_first[block] + row] != state:
        row += 1
    width = machine.target_end[block] - machine.target_first[block]
    return machine.step_first[block] + row * width + target - machine.target_first[block], target


@compiled
def _best_of(space, i, theta, mass, kept, parts, work):
    """The best output, of those whose arcs all have mass if there are masses, and the number of its parts."""
    machine, s, length = space.machine, space.machine.labels, space.lengths[i]
    at = length * s
    score_steps(machine.parts, theta[at:], work.scores)
    work.end[:] = theta[at + s * s + s : at + s * s + 2 * s]
    path, used = work.path[0, :length], work.path[1, :length]
    value = viterbi(machine, theta[:at], work.scores, work.end, mass, kept, work.sequences[0], path, used)
    count = length
    for t in range(length):
        parts[t] = t * s + path[t]
        for m in range(machine.order):
            if machine.parts[used[t], m] >= 0:
                parts[count] = at + machine.parts[used[t], m]
                count += 1
    parts[count] = at + s * s + s + path[length - 1]
    count += 1
    parts[length:count].sort()
    return value, count


@implements("soft", HigherOrderSpace)
def _soft(space, i, theta, mu, work):
    machine, s, length = space.machine, space.machine.labels, space.lengths[i]
    at = length * s
    node, shared = theta[:at].reshape(length, s), theta[at:]
    score_steps(machine.parts, shared, work.scores)
    work.end[:] = shared[s * s + s : s * s + 2 * s]
    work.counts[:] = 0.0
    shared[:] = 0.0
    work.cuts[1] = length
    weight, value = work.one[:1], work.one[1:]
    soft(
        machine, node, work.scores, work.end, work.cuts, 0, 1, mu, weight, value, work.counts,
        shared[s * s + s : s * s + 2 * s], work.sequences, work.tables, work.vectors,
    )  # fmt: skip
    spread_steps(machine.parts, work.counts, shared)
    return value[0]
