"""Sequential dual steps: maximise the dual over the weights of one example's cached outputs after another.

With scores sc_k = ell_k + <w, d_k> and G the Gram matrix of the d's (see ``caches``), moving the weights of example i
by ``change`` raises n D by

    <change, sc> - scale/2 change' G change,      scale = 1/((lam + kappa) n),

a quadratic programme in a handful of variables. It is solved by pairwise steps: from the worst output that has weight
to the best one. Then w moves once, by -scale sum_k change_k d_k.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.maps.costs import loss_of
from m3n.compiled.oracles.hooks import best, workspace
from m3n.compiled.primitives.arrays import largest
from m3n.compiled.sweeps.caches import add_up_slots, difference, insert, known_slot, move, room, score_slots, scratch
from m3n.compiled.sweeps.visits import local_scores

MOST_MOVES = 30
ENOUGH = 0.05  # of the spread of scores at the start of a visit: the next visit sees other scores anyway


class Progress(NamedTuple):
    """Numbers that change at every visit, in arrays of length one."""

    loss: np.ndarray  # b = sum ell alpha
    parts: np.ndarray  # parts scored in cached visits


@compiled
def learn(rows, costs, caches, support, gold, gold_counts, start, stamp, found, counts, zeros):
    """Take an answer for every example into the caches, from example ``start`` on.

    Returns the next example, as a full cache ends the work early.
    """
    memory = scratch(rows, caches, 2 * gold.shape[1])
    for i in range(start, gold.shape[0]):
        if not take(rows, costs, caches, support, gold, gold_counts, i, found[i], counts[i], stamp, zeros, memory):
            return i
    return gold.shape[0]


@compiled
def online(
    space, rows, costs, caches, support, gold, gold_counts, order, start, stamp, scale, w, progress, gaps, zeros
):
    """Visit order[start], order[start + 1], ... with the max-oracle at the newest w.

    Returns the next position, as a full cache ends the sweep early.
    """
    work, memory = workspace(space), scratch(rows, caches, 2 * gold.shape[1])
    theta, found = np.empty(largest(rows.sizes)), np.empty(gold.shape[1], np.int64)
    for at in range(start, order.shape[0]):
        i = order[at]
        local = local_scores(rows, costs, i, w, theta)
        _, count = best(space, i, local, found, work)
        if not take(rows, costs, caches, support, gold, gold_counts, i, found, count, stamp, zeros, memory):
            return at
        add_up_slots(caches, i, local, memory)
        improve(rows, caches, i, stamp, scale, w, progress, gaps, memory)
    return order.shape[0]


@compiled
def sweep(rows, caches, order, stamp, scale, w, progress, gaps):
    """Visit examples without a call of the oracle."""
    memory = scratch(rows, caches, 0)
    for i in order:
        if caches.used[i] > 1:
            progress.parts[0] += score_slots(rows, caches, i, w, memory)
            improve(rows, caches, i, stamp, scale, w, progress, gaps, memory)


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
def improve(rows, caches, i, stamp, scale, w, progress, gaps, memory):
    """Balance the weights of one example whose slots are scored; ``gaps[i]`` = the spread, best score minus average."""
    first, top, average = caches.first[i], memory.scores[0], 0.0
    for k in range(caches.used[i]):
        top = max(top, memory.scores[k])
        average += caches.alpha[first + k] * memory.scores[k]
    gaps[i] = max(top - average, 0.0)
    if balance(caches, i, stamp, scale, memory):
        progress.loss[0] += move(rows, caches, i, -scale, w, memory) / caches.used.shape[0]


@inner
def balance(caches, i, stamp, scale, memory):
    """Pairwise steps on the weights of example i; ``scores`` follow, ``change`` collects. Whether anything moved."""
    first, side, at = caches.first[i], caches.first[i + 1] - caches.first[i], caches.squares[i]
    scores, gram = memory.scores, caches.gram
    used, moved, enough = caches.used[i], False, 0.0
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
        for k in range(used):
            scores[k] -= amount * scale * (gram[a + k] - gram[b + k])
    return moved


@compiled
def totals(rows, caches, vector):
    """vector += sum_ik alpha_ik d_ik, from the caches alone; returns sum_ik alpha_ik ell_ik."""
    memory = scratch(rows, caches, 0)
    loss = 0.0
    for i in range(caches.used.shape[0]):
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
