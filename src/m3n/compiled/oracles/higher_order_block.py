"""Chains of higher order as a space: local theta = node, then the shared tables one after another.

The cliques are the arcs of the lattice of states, numbered in ``oracles.higher_order``: masses that are consistent
on them are a flow, and any flow through a graph without cycles is a mixture of paths.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import inner
from m3n.compiled.oracles.higher_order import Machine, padded_steps, score_steps, spread_steps, viterbi
from m3n.compiled.oracles.higher_order_soft import add_counts, backward, exponentiate, forward
from m3n.compiled.oracles.hooks import implements, in_steps
from m3n.compiled.primitives.arrays import largest, put
from m3n.compiled.primitives.order import ascend


@in_steps
class HigherOrderSpace(NamedTuple):
    """Plain arrays of a ``HigherOrderChain``."""

    lengths: np.ndarray  # (n,)
    machine: Machine
    widest: int  # states of the largest level
    block_from: np.ndarray  # (states,) block of the steps from a state, -1 if there are none


class HigherOrderScratch(NamedTuple):
    """Memory for one sweep; rows of states have room for four more."""

    closed: np.ndarray  # (longest, states) prefix sums
    warm: np.ndarray  # (longest, states)
    pre: np.ndarray  # (longest, states)
    p: np.ndarray  # (states,) probabilities at a position
    before: np.ndarray  # (states,) and at the one before
    tops: np.ndarray  # (states,) column maxima
    factors: np.ndarray  # (padded steps,) T
    products: np.ndarray  # (padded steps,) sums of what T is multiplied with
    scores: np.ndarray  # (leads + steps,)
    counts: np.ndarray  # (leads + steps,) their marginals; the scores of those with mass in Viterbi
    end: np.ndarray  # (labels,)
    ends: np.ndarray  # (labels,) marginals of last labels
    path: np.ndarray  # (longest,), integers: labels
    used: np.ndarray  # (longest,), integers: leads and steps


@implements("workspace", HigherOrderSpace)
def _workspace(space):
    longest, items, s = largest(space.lengths), space.machine.parts.shape[0], space.machine.labels
    rows, vectors = np.zeros((3, longest, space.widest + 4)), np.zeros((3, space.widest + 4))
    steps, scores, ends = np.zeros((2, padded_steps(space.machine))), np.empty((2, items)), np.empty((2, s))
    numbers = np.empty((2, longest), np.int64)
    recursion = rows[0], rows[1], rows[2], vectors[0], vectors[1], vectors[2]
    shared = steps[0], steps[1], scores[0], scores[1], ends[0], ends[1]
    return HigherOrderScratch(*recursion, *shared, numbers[0], numbers[1])


@implements("cut", HigherOrderSpace)
def _cut(space, i, theta):
    at = space.lengths[i] * space.machine.labels
    return (theta[:at],), theta[at:]


@implements("read_shared", HigherOrderSpace)
def _read_shared(space, shared, work):
    s = space.machine.labels
    score_steps(space.machine.parts, shared, work.scores)
    put(shared[(s + 1) * s : (s + 2) * s], work.end)


@implements("begin_soft", HigherOrderSpace)
def _begin_soft(space, mu, work):
    exponentiate(space.machine, mu, work)
    work.products[:] = 0.0
    work.counts[:] = 0.0
    work.ends[:] = 0.0


@implements("best_own", HigherOrderSpace)
def _best_own(space, i, own, mass, parts, work):
    value = viterbi(space.machine, own[0], mass, space.lengths[i], work)
    return value, _all_parts(space.machine, space.lengths[i], work.path, work.used, parts)


@implements("soft_own", HigherOrderSpace)
def _soft_own(space, i, own, mu, weight, work):
    value = forward(space.machine, own[0], mu, work)
    backward(space.machine, own[0], mu, weight, work)
    return value


@implements("write_shared", HigherOrderSpace)
def _write_shared(space, shared, work):
    s = space.machine.labels
    add_counts(space.machine, work.factors, work.products, work.counts)
    shared[:] = 0.0
    spread_steps(space.machine.parts, work.counts, shared)
    put(work.ends, shared[(s + 1) * s :])


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
    return leads + max(largest(space.lengths) - space.machine.order, 0) * steps


@inner
def _all_parts(machine, length, path, used, parts):
    """The parts of an output in ascending order, and their number; the labels alone if there is no room for more."""
    s, shared, count = machine.labels, length * machine.labels, length
    for t in range(length):
        parts[t] = t * s + path[t]
    for m in range(machine.order if parts.shape[0] > length else 0):  # tables one by one: little is left to sort
        first = count
        for t in range(length):
            part = machine.parts[used[t], m]
            if part >= 0:
                parts[count] = shared + part
                count += 1
        if m == 0:
            parts[count] = shared + (s + 1) * s + path[length - 1]
            count += 1
        ascend(parts, first, count)
    return count


@inner
def _lead(machine, t, state, label):
    """The lead from a state of level t to the one with one more label."""
    lead = machine.levels[t]
    while machine.label[lead] != label or (t > 0 and machine.parent[lead] != state):
        lead += 1
    return lead


@inner
def _step(machine, block, state, label):
    """The number of the step from a state to the one with this newest label, steps counted from 0, and that state."""
    leads, row, target = machine.levels[machine.order - 1], 0, machine.target_first[block]
    while machine.label[leads + target] != label:
        target += 1
    while machine.sources[machine.source_first[block] + row] != state:
        row += 1
    width = machine.target_end[block] - machine.target_first[block]
    return machine.step_first[block] + row * width + target - machine.target_first[block], target
