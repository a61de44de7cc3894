"""Sequential dual steps: maximise the dual over the weights of one example's cached outputs after another.

With scores sc_k = ell_k + <w, d_k> and G the Gram matrix of the d's (see ``caches``), moving the weights of example i
by ``change`` raises n D by

    <change, sc> - scale/2 change' G change,      scale = 1/((lam + kappa) n),

a quadratic programme in a handful of variables. It is solved by pairwise steps: from the worst output that has weight
to the best one. Then w moves once, by -scale sum_k change_k d_k.

Sweeps go on several threads, too, see ``meetings``; a sweep on one is that of the only worker.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.maps.costs import loss_of
from m3n.compiled.oracles.hooks import best, workspace
from m3n.compiled.primitives.arrays import largest
from m3n.compiled.sweeps.caches import (
    add_up_slots,
    difference,
    insert,
    known_slot,
    move,
    room,
    score_slots,
    scratch,
)
from m3n.compiled.sweeps.meetings import agree
from m3n.compiled.sweeps.visits import local_scores

MOST_MOVES = 30
ENOUGH = 0.05  # of the spread of scores at the start of a visit: the next visit sees other scores anyway


class Sums(NamedTuple):
    """What a worker has seen in a sweep."""

    loss: float  # by which n b has risen
    rise: float  # of n D, as the visits saw it, each of them alone
    parts: int  # scored


@compiled
def learn(rows, costs, caches, support, gold, gold_counts, start, end, stamp, found, counts, zeros):
    """Take an answer for every example into the caches, from example ``start`` to ``end`` - 1.

    Returns the next example, as a full cache ends the work early.
    """
    memory = scratch(rows, caches, 2 * gold.shape[1])
    for i in range(start, end):
        if not take(rows, costs, caches, support, gold, gold_counts, i, found[i], counts[i], stamp, zeros, memory):
            return i
    return end


@compiled
def online(space, rows, costs, caches, support, gold, gold_counts, order, start, stamp, scale, w, gaps, zeros, worker):
    """Visit order[start], order[start + 1], ... with the max-oracle at the newest w, or what one worker visits of it.

    Returns the next position, as a full cache ends the sweep early, and the sums. Workers never end early, as others
    wait for them: an output for which there is no room is forgotten.
    """
    work, memory = workspace(space), scratch(rows, caches, 2 * gold.shape[1])
    theta, found = np.empty(largest(rows.sizes)), np.empty(gold.shape[1], np.int64)
    loss, rise = 0.0, 0.0
    for number in range(worker.cuts.shape[0] - 1):
        for visit in range(worker.cuts[number] + start, worker.cuts[number + 1]):
            i = order[worker.visits[visit]]
            local = local_scores(rows, costs, i, w, theta)
            _, count = best(space, i, local, found, work)
            taken = take(rows, costs, caches, support, gold, gold_counts, i, found, count, stamp, zeros, memory)
            if not taken and worker.workers == 1:
                return visit, Sums(loss, rise, 0)
            add_up_slots(caches, i, local, memory)
            gained, change = improve(rows, caches, i, stamp, scale, w, gaps, memory)
            loss += change
            rise += gained
        if worker.workers > 1:
            agree(worker, number, w)
    return order.shape[0], Sums(loss, rise, 0)


@compiled
def sweep(rows, caches, order, stamp, scale, w, gaps, worker):
    """Visit examples without a call of the oracle, or what one worker visits of them."""
    memory = scratch(rows, caches, 0)
    loss, rise, parts = 0.0, 0.0, 0
    for number in range(worker.cuts.shape[0] - 1):
        for visit in range(worker.cuts[number], worker.cuts[number + 1]):
            i = order[worker.visits[visit]]
            if caches.used[i] > 1:
                parts += score_slots(rows, caches, i, w, memory)
                gained, change = improve(rows, caches, i, stamp, scale, w, gaps, memory)
                loss += change
                rise += gained
        if worker.workers > 1:
            agree(worker, number, w)
    return Sums(loss, rise, parts)


@compiled
def take(rows, costs, caches, support, gold, gold_counts, i, found, count, stamp, zeros, memory):
    """Put an output into the cache of example i unless it is there. False if there is no room."""
    length = difference(gold[i], gold_counts[i], found, count, memory)
    if known_slot(caches, i, memory.codes, length) >= 0:
        return True
    slot = room(caches, i, length)
    if slot < 0:
        return False
    insert(rows, caches, support, i, slot, length, loss_of(costs, i, found, count), stamp, zeros, memory)
    return True


@compiled
def improve(rows, caches, i, stamp, scale, w, gaps, memory):
    """Balance the weights of one example whose slots are scored; by how much n D and n b rise.

    ``gaps[i]`` = the spread of the scores.
    """
    gaps[i] = spread_of(caches, i, memory.scores)
    moved, rise = balance(caches, i, stamp, scale, memory)
    if not moved:
        return 0.0, 0.0
    return rise, move(rows, caches, i, -scale, w, memory)


@inner
def spread_of(caches, i, scores):
    """The best score minus the average."""
    first, top, average = caches.first[i], scores[0], 0.0
    for k in range(caches.used[i]):
        top = max(top, scores[k])
        average += caches.alpha[first + k] * scores[k]
    return max(top - average, 0.0)


@inner
def balance(caches, i, stamp, scale, memory):
    """Pairwise steps on the weights of example i; ``scores`` follow, ``change`` collects. Whether anything moved, and
    by how much n D rises."""
    first, side, at = caches.first[i], caches.first[i + 1] - caches.first[i], caches.squares[i]
    scores, gram = memory.scores, caches.gram
    used, moved, rise, enough = caches.used[i], False, 0.0, 0.0
    for step in range(MOST_MOVES):
        top, bottom = 0, -1
        for k in range(used):
            if scores[k] > scores[top]:
                top = k
            if caches.alpha[first + k] > 0.0 and (bottom < 0 or scores[k] < scores[bottom]):
                bottom = k
        gain = scores[top] - scores[bottom]
        caches.seen[first + top] = stamp
        if step == 0:
            enough = ENOUGH * gain
        if gain <= enough:
            break
        a, b = at + top * side, at + bottom * side  # rows of the Gram matrix
        curvature = scale * (gram[a + top] + gram[b + bottom] - 2.0 * gram[a + bottom])
        weight = caches.alpha[first + bottom]
        amount = weight if gain >= curvature * weight else gain / curvature
        caches.alpha[first + top] += amount
        caches.alpha[first + bottom] = 0.0 if amount >= weight else weight - amount
        memory.change[top] += amount
        memory.change[bottom] -= amount
        moved = True
        rise += amount * (gain - 0.5 * amount * curvature)
        for k in range(used):
            scores[k] -= amount * scale * (gram[a + k] - gram[b + k])
    return moved, rise


@compiled
def totals(rows, caches, low, high, vector):
    """vector += sum_ik alpha_ik d_ik for examples low..high-1, from the caches alone; returns sum alpha ell."""
    memory = scratch(rows, caches, 0)
    loss = 0.0
    for i in range(low, high):
        for k in range(1, caches.used[i]):
            memory.change[k] = caches.alpha[caches.first[i] + k]
        loss += move(rows, caches, i, 1.0, vector, memory)
    return loss


@compiled
def curvature_per_loss(caches):
    """Mean of |d|^2 / ell over all cached outputs with a loss; 0 if there are none."""
    total, count = 0.0, 0
    for i in range(caches.used.shape[0]):
        side = caches.first[i + 1] - caches.first[i]
        for k in range(1, caches.used[i]):
            loss = caches.losses[caches.first[i] + k]
            if loss > 0.0:
                total += caches.gram[caches.squares[i] + k * side + k] / loss
                count += 1
    return total / count if count else 0.0
