"""Chains of higher order as a space for block methods: local theta = node, then the shared tables one after another."""

from typing import NamedTuple

import numpy as np

from m3n.kernels.blocks import implements
from m3n.kernels.higher_order import Machine, padded_steps, score_steps, spread_steps, viterbi
from m3n.kernels.higher_order_soft import soft


class HigherOrderSpace(NamedTuple):
    """Plain arrays of a ``HigherOrderChain``."""

    lengths: np.ndarray  # (n,)
    machine: Machine
    widest: int  # states of the largest level


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
    machine, s, length = space.machine, space.machine.labels, space.lengths[i]
    at = length * s
    score_steps(machine.parts, theta[at:], work.scores)
    work.end[:] = theta[at + s * s + s : at + s * s + 2 * s]
    path, used = work.path[0, :length], work.path[1, :length]
    value = viterbi(machine, theta[:at], work.scores, work.end, work.sequences[0], path, used)
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
