"""Working sets: for every example a few outputs with weights, kept as lists of parts.

Example i owns the slots first[i] to first[i + 1]. A slot holds an output's parts, its loss and its weight; the weights
of an example sum to one. Slots without weight are remembered as long as there is room. What an output is worth, and how
often its features count, is the objective's affair (``sweeps.rescaling``).
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.maps.costs import loss_of, score_of
from m3n.compiled.primitives.arrays import largest, widest
from m3n.compiled.sweeps.rescaling import (
    base_of,
    factor,
    label_costs,
    most_violated,
    objective_scores,
    rescaled,
    workspace_for,
)
from m3n.compiled.sweeps.visits import add_parts, clear, same, scatter


class Sets(NamedTuple):
    """Working sets; every example may have room of its own size."""

    first: np.ndarray  # (n + 1,)
    used: np.ndarray  # (n,) slots in use
    parts: np.ndarray  # (slots, most parts)
    counts: np.ndarray  # (slots,) number of parts
    alpha: np.ndarray  # (slots,) weights, summing to one for every example
    losses: np.ndarray  # (slots,)
    seen: np.ndarray  # (slots,) when the slot was last the best or had weight


@compiled
def include(sets, i, parts, count, loss, stamp):
    """Put an output into example i's working set unless it is there. False if there is no room.

    A slot without weight that was not seen for longest makes room first.
    """
    used, oldest = sets.first[i] + sets.used[i], -1
    for k in range(sets.first[i], used):
        if sets.counts[k] == count and same(sets.parts[k], parts, count):
            sets.seen[k] = stamp
            return True
        if sets.alpha[k] == 0.0 and (oldest < 0 or sets.seen[k] < sets.seen[oldest]):
            oldest = k
    slot = used
    if used == sets.first[i + 1]:
        slot = oldest
        if slot < 0:
            return False
    else:
        sets.used[i] += 1
    for m in range(count):
        sets.parts[slot, m] = parts[m]
    sets.counts[slot] = count
    sets.losses[slot] = loss
    sets.alpha[slot] = 0.0
    sets.seen[slot] = stamp
    return True


@compiled
def rate(sets, costs, i, theta, scores):
    """Values of all slots of example i, from 0 on; the slot of the best, its value, and the average under alpha."""
    first, target, average = sets.first[i], 0, 0.0
    base = base_of(costs, i, theta)
    for k in range(sets.used[i]):
        score = score_of(theta, sets.parts[first + k], sets.counts[first + k])
        scores[k] = rescaled(costs, score, base, sets.losses[first + k])
        average += sets.alpha[first + k] * scores[k]
        if scores[k] > scores[target]:
            target = k
    return first + target, scores[target], average


@compiled
def roomy(sets):
    """An array as long as the largest working set may be."""
    return np.empty(widest(sets.first))


@compiled
def append_violated(space, rows, costs, sets, order, start, stamp, eps, w, violations):
    """Put the best output under w into the working sets where it beats their best by more than ``eps``.

    ``violations[i]`` says by how much it did. Returns the next position, as a full working set ends the sweep.
    """
    work = workspace_for(space, costs)
    theta, found = np.empty(largest(rows.sizes)), np.empty(sets.parts.shape[1], np.int64)
    scores = roomy(sets)
    for at in range(start, order.shape[0]):
        i = order[at]
        local = objective_scores(rows, costs, i, w, theta)
        value, count = most_violated(space, costs, i, local, found, work)
        _, known, _ = rate(sets, costs, i, local, scores)
        violations[i] = max(value - known, 0.0)
        if violations[i] > eps:
            loss = loss_of(label_costs(costs), i, found, count)
            if not include(sets, i, found, count, loss, stamp):
                return at
    return order.shape[0]


@compiled
def set_gaps(rows, costs, sets, w, gaps):
    """gaps[i] = best score in example i's working set minus the average under alpha, all at the same w."""
    theta, scores = np.empty(largest(rows.sizes)), roomy(sets)
    for i in range(rows.sizes.shape[0]):
        local = objective_scores(rows, costs, i, w, theta)
        _, top, average = rate(sets, costs, i, local, scores)
        gaps[i] = max(top - average, 0.0)


@compiled
def joint_plane(rows, costs, sets, gold, gold_counts, w, vector):
    """The best outputs of all working sets as one plane: adds sum psi to ``vector``, returns sums of value, loss."""
    size = largest(rows.sizes)
    theta, delta, marked = np.empty(size), np.zeros(size), np.zeros(size, np.bool_)
    touched, scores = np.empty(size, np.int64), roomy(sets)
    value, loss = 0.0, 0.0
    for i in range(rows.sizes.shape[0]):
        local = objective_scores(rows, costs, i, w, theta)
        value -= rescaled(costs, score_of(local, gold[i], gold_counts[i]), 0.0, 0.0)
        target, score, _ = rate(sets, costs, i, local, scores)
        value += score
        loss += sets.losses[target]
        amount = factor(costs, sets.losses[target])
        moved = add_parts(delta, marked, touched, 0, gold[i], gold_counts[i], amount)
        moved = add_parts(delta, marked, touched, moved, sets.parts[target], sets.counts[target], -amount)
        scatter(rows, i, delta, touched, moved, 1.0, vector)
        clear(delta, marked, touched, moved)
    return value, loss


@compiled
def totals_of(rows, costs, sets, gold, gold_counts, lam, u):
    """u = w(alpha) and b, from the working sets alone: what sweeps keep incrementally."""
    n = rows.sizes.shape[0]
    size = largest(rows.sizes)
    delta, marked, touched = np.zeros(size), np.zeros(size, np.bool_), np.empty(size, np.int64)
    b = 0.0
    for i in range(n):
        slots = range(sets.first[i], sets.first[i] + sets.used[i])
        loss = 0.0
        for k in slots:
            loss += sets.alpha[k] * sets.losses[k]
        b += loss / n
        moved = add_parts(delta, marked, touched, 0, gold[i], gold_counts[i], factor(costs, loss))
        for k in slots:
            if sets.alpha[k] > 0.0:
                amount = sets.alpha[k] * factor(costs, sets.losses[k])
                moved = add_parts(delta, marked, touched, moved, sets.parts[k], sets.counts[k], -amount)
        scatter(rows, i, delta, touched, moved, 1.0 / (lam * n), u)
        clear(delta, marked, touched, moved)
    return b
