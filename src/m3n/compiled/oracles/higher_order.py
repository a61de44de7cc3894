"""Chains of higher order: the machine that reads label histories, scores of its steps, Viterbi.

The machine's state is the list of the last ``order`` labels, shorter at the beginning of a sequence. States come by
*level*, the number of their labels, and within a level in the order of their labels. Up to level ``order`` a state has
one predecessor, its *parent*; entering it is a *lead*. From then on a *step* goes from state (x, rest) to (rest, y).
All steps with one ``rest`` are a *block*: a matrix with a row for every x that is allowed and a column for every y,
whose states are neighbours. Leads and steps are numbered together, leads first, steps block by block.

A lead or a step uses up to ``order`` *parts*: entries of the shared tables (transitions, starts, ends, longer grams,
one after another), of which its score is the sum. With block matrices the recursion of Viterbi is

    f_t(rest, y) = node_t(y) + max_x { f_{t-1}(x, rest) + step(x, rest, y) },

O(steps) per position. All arrays of one sequence are flat here.

With the states at every position as nodes this is a lattice, whose *arcs* are numbered: leads as they are, for each
belongs to one position, and step k (with leads counted) at position t as k + (t - order) steps.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import inlined, inner
from m3n.compiled.primitives.vector import add, broadcast, load, maximum, splat, store


class Machine(NamedTuple):
    """Plain arrays of the states and steps."""

    labels: int
    order: int
    levels: np.ndarray  # (order + 1,) first lead of a level; states of the last level are numbered from 0 as well
    label: np.ndarray  # (leads,) newest label of a state
    parent: np.ndarray  # (leads,) number of the state before, within its own level
    sources: np.ndarray  # states with successors, block by block
    source_first: np.ndarray  # (blocks + 1,) where the sources of a block begin
    target_first: np.ndarray  # (blocks,) first state that a block leads to
    target_end: np.ndarray  # (blocks,) one more than the last
    step_first: np.ndarray  # (blocks,) first step of a block
    block_of: np.ndarray  # (states,) block that leads to a state, -1 if none does
    parts: np.ndarray  # (leads + steps, order) positions in the shared tables, -1 where there are fewer


@inner
def four(count):
    """The next multiple of four: whole vectors."""
    return (count + 3) // 4 * 4


@inner
def padded_steps(machine):
    """Number of steps if the rows of all blocks are padded to whole vectors."""
    total = 0
    for b in range(machine.step_first.shape[0]):
        rows = machine.source_first[b + 1] - machine.source_first[b]
        total += rows * four(machine.target_end[b] - machine.target_first[b])
    return total


@inner
def score_steps(parts, shared, out):
    """Scores of all leads and steps, from the shared tables written one after another."""
    for k in range(parts.shape[0]):
        out[k] = 0.0
        for m in range(parts.shape[1]):
            if parts[k, m] >= 0:
                out[k] += shared[parts[k, m]]


@inner
def spread_steps(parts, counts, out):
    """Add what leads and steps have to the shared tables: the adjoint of ``score_steps``."""
    for k in range(parts.shape[0]):
        for m in range(parts.shape[1]):
            if parts[k, m] >= 0:
                out[parts[k, m]] += counts[k]


@inlined
def viterbi(machine, node, mass, length, work):
    """The best score of one sequence; its labels are written to ``work.path``, its leads and steps to ``work.used``.

    With ``mass``, a number for every arc, only outputs count whose arcs all have a positive one; an empty ``mass``
    allows everything.
    """
    levels, label, closed, scores = machine.levels, machine.label, work.closed, work.scores
    kept = work.counts if mass.shape[0] > 0 else scores
    blocks = machine.sources, machine.source_first, machine.target_first, machine.target_end
    for t in range(length):
        level = min(t, machine.order - 1)
        first, count, target = levels[level], levels[level + 1] - levels[level], closed[t]
        if mass.shape[0] > 0:
            _keep(levels, machine.order, mass, t, scores, kept)
        if t < machine.order:
            begin(levels, machine.parent, kept, closed, t)
        else:
            _best_steps(*blocks, kept, label.shape[0], closed[t - 1], target)
        for s in range(count):
            target[s] += node[t * machine.labels + label[first + s]]
    level = min(length, machine.order) - 1
    first, last, best = levels[level], 0, -np.inf
    for s in range(levels[level + 1] - first):
        score = closed[length - 1, s] + work.end[label[first + s]]
        if score > best:
            last, best = s, score
    _trace(machine, mass, last, length, work)
    return best


@inner
def _keep(levels, order, mass, t, scores, kept):
    """Scores of the leads or steps of position t into ``kept``, -inf for those without mass."""
    low, high, shift = levels[order], scores.shape[0], 0
    if t < order:
        low, high = levels[t], levels[t + 1]
    else:
        shift = (t - order) * (high - low)
    for k in range(low, high):
        kept[k] = scores[k] if mass[k + shift] > 0.0 else -np.inf


@inner
def begin(levels, parent, scores, forward, t):
    """The states of level t + 1, each from its parent."""
    first, target = levels[t], forward[t]
    for s in range(levels[t + 1] - first):
        target[s] = scores[first + s]
        if t > 0:
            target[s] += forward[t - 1, parent[first + s]]


@inner
def _best_steps(sources, source_first, target_first, target_end, scores, at, before, target):
    """target(y) = max over sources x of before(x) + step(x, y), -inf without a source; steps begin at scores[at]."""
    target[:] = -np.inf
    for b in range(target_first.shape[0]):
        low, count = target_first[b], target_end[b] - target_first[b]
        block_maxima(before, sources, source_first[b], source_first[b + 1], scores, at, count, target, low)
        at += (source_first[b + 1] - source_first[b]) * count


@inner
def block_maxima(x, sources, first, after, matrix, at, count, out, low):
    """out[low + c] = max over k of x[sources[k]] + matrix[at + (k - first) count + c], first <= k < after, c < count.

    Eight columns at a time; the last vectors overlap their neighbours, which does no harm to a maximum.
    """
    if count < 4:
        for k in range(first, after):
            for c in range(count):
                out[low + c] = max(out[low + c], x[sources[k]] + matrix[at + c])
            at += count
    else:
        for column in range(0, count, 8):
            c, d, row = min(column, count - 4), min(column + 4, count - 4), at
            s0 = s1 = splat(-np.inf)
            for k in range(first, after):
                e = broadcast(x, sources[k])
                s0 = maximum(add(e, load(matrix, row + c)), s0)
                s1 = maximum(add(e, load(matrix, row + d)), s1)
                row += count
            store(out, low + c, s0)
            store(out, low + d, s1)


@inlined
def _trace(machine, mass, state, length, work):
    """Write the best output from its last state on: of equal ones the first."""
    path, used, leads, closed, scores = work.path, work.used, machine.label.shape[0], work.closed, work.scores
    kept = work.counts if mass.shape[0] > 0 else scores
    for t in range(length - 1, -1, -1):
        lead = machine.levels[min(t, machine.order - 1)] + state
        path[t] = machine.label[lead]
        b = machine.block_of[state] if t >= machine.order else -1
        if t < machine.order:
            used[t], state = lead, machine.parent[lead]
        elif b < 0:  # no output is allowed: what is written means nothing
            used[t], state = 0, 0
        else:
            low, count = machine.target_first[b], machine.target_end[b] - machine.target_first[b]
            at, best, source = leads + machine.step_first[b] + state - low, -np.inf, machine.sources[0]
            used[t] = at
            if mass.shape[0] > 0:
                _keep(machine.levels, machine.order, mass, t, scores, kept)
            for k in range(machine.source_first[b], machine.source_first[b + 1]):
                score = closed[t - 1, machine.sources[k]] + kept[at]
                if score > best:
                    source, best, used[t] = machine.sources[k], score, at
                at += count
            state = source
