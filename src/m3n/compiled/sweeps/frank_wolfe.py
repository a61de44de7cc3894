"""Block Frank-Wolfe: one sweep over examples in a given order, each visit with the newest weights.

An example's alpha is a convex combination of a few outputs, its *working set*. With sc_k = ell(y_k) + <w, phi(y_k)>
and B the slot of the largest score,

    Frank-Wolfe   moves from alpha_i towards B:            delta = phi(y_B) - sum_k alpha_k phi(y_k)
    pairwise      moves from the worst used slot A to B:   delta = phi(y_B) - phi(y_A)

by gamma = lam n (gain along delta) / |delta|^2, clipped to what the weights allow: exactly the best point of D on that
segment. w changes by -gamma/(lam n) delta, which touches only features of parts where the outputs differ.

Slack rescaling puts sc_k = ell(y_k) (1 - <w, psi(y_k)>) and -ell(y_k) psi(y_k) for sc_k and phi(y_k); all else stays.

The weighted average of the iterates, wavg <- (1-rho) wavg + rho w with rho = 2/(k+2), is kept sparse: with P the
product of the (1-rho), e = w - wavg obeys e <- (1-rho) (e + step), so  e = P q  where q += step/P touches no more than
the step does. The same holds for b.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.maps.costs import loss_of
from m3n.compiled.primitives.arrays import largest
from m3n.compiled.sweeps.rescaling import add_gold, factor, label_costs, most_violated, objective_scores, workspace_for
from m3n.compiled.sweeps.visits import add_parts, clear, settle, spread
from m3n.compiled.sweeps.working_sets import include, rate, roomy

LOST = 1e-16  # of a weight of one: dropped, it changes no sum


class Totals(NamedTuple):
    """Numbers that change at every visit, in arrays of length one."""

    b: np.ndarray  # expected loss of alpha
    lag: np.ndarray  # e of b: b - its average, divided by P
    product: np.ndarray  # P
    visits: np.ndarray  # k


@compiled
def sweep(space, rows, costs, sets, totals, order, start, stamp, ask, pairwise, lam, w, q, zeros, gaps):
    """Visit order[start], order[start+1], ...; stop where a working set is full. Returns the next position.

    ``ask``: call the max-oracle, or make do with the working sets. ``gaps[i]`` becomes the block's share of the
    duality gap, times n, as found at the visit.
    """
    n = rows.sizes.shape[0]
    work = workspace_for(space, costs)
    size = largest(rows.sizes)
    theta, delta, marked = np.empty(size), np.zeros(size), np.zeros(size, np.bool_)
    touched, found = np.empty(size, np.int64), np.empty(sets.parts.shape[1], np.int64)
    scores = roomy(sets)
    for at in range(start, order.shape[0]):
        i = order[at]
        local = objective_scores(rows, costs, i, w, theta)
        if ask:
            _, count = most_violated(space, costs, i, local, found, work)
            if not include(sets, i, found, count, loss_of(label_costs(costs), i, found, count), stamp):
                return at
        target, top, average = rate(sets, costs, i, local, scores)
        sets.seen[target] = stamp
        gaps[i] = max(top - average, 0.0)
        source, bottom = -1, average
        if pairwise:
            source, bottom = lowest(sets, i, scores)
        gain = top - bottom
        if gain > 0.0:
            moved = direction(sets, costs, i, target, source, delta, marked, touched)
            norm = spread(rows, i, delta, touched, moved, zeros)
            most = sets.alpha[source] if source >= 0 else 1.0
            gamma = most
            if gain * lam * n < norm * most:
                gamma = gain * lam * n / norm
            change = shift(sets, i, target, source, gamma, stamp) / n
            # the first iterate has rho = 1: the average begins there
            share = 1.0 / totals.product[0] if totals.visits[0] > 0.0 else 0.0
            unit = -gamma / (lam * n)
            settle(rows, i, delta, touched, moved, zeros, unit, w, unit * share, q)
            totals.b[0] += change
            totals.lag[0] += change * share
            clear(delta, marked, touched, moved)
        advance(totals)
    return order.shape[0]


@compiled
def advance(totals):
    """One more iterate in the weighted average."""
    totals.visits[0] += 1.0
    k = totals.visits[0]
    if k > 1.0:
        totals.product[0] *= 1.0 - 2.0 / (k + 1.0)


@compiled
def lowest(sets, i, scores):
    """The slot with the lowest score among those with weight, and that score."""
    first, source = sets.first[i], -1
    for k in range(sets.used[i]):
        if sets.alpha[first + k] > 0.0 and (source < 0 or scores[k] < scores[source]):
            source = k
    return first + source, scores[source]


@compiled
def direction(sets, costs, i, target, source, delta, marked, touched):
    """delta = parts of the target minus those of the source, or minus the average (source < 0)."""
    rest = factor(costs, sets.losses[target])
    size = add_parts(delta, marked, touched, 0, sets.parts[target], sets.counts[target], rest)
    for k in range(sets.first[i], sets.first[i] + sets.used[i]):
        weight = sets.alpha[k] if source < 0 else (1.0 if k == source else 0.0)
        if weight > 0.0:
            amount = weight * factor(costs, sets.losses[k])
            size = add_parts(delta, marked, touched, size, sets.parts[k], sets.counts[k], -amount)
            rest -= amount
    return add_gold(costs, i, delta, marked, touched, size, -rest)


@compiled
def shift(sets, i, target, source, gamma, stamp):
    """Move weight; the change of example i's expected loss."""
    if source >= 0:
        all_of_it = gamma >= sets.alpha[source]
        sets.alpha[target] += gamma
        sets.alpha[source] = 0.0 if all_of_it else sets.alpha[source] - gamma
        return gamma * (sets.losses[target] - sets.losses[source])
    change = gamma * sets.losses[target]
    for k in range(sets.first[i], sets.first[i] + sets.used[i]):
        change -= gamma * sets.alpha[k] * sets.losses[k]
        sets.alpha[k] *= 1.0 - gamma
        if sets.alpha[k] < LOST:
            sets.alpha[k] = 0.0
        else:
            sets.seen[k] = stamp
    sets.alpha[target] += gamma
    return change
