"""Sequential minimal optimisation on the factored dual: one sweep over examples in a given order.

An example's alpha is kept as the *masses* of its cliques, sparsely: ``ids[i]`` and ``masses[i]`` list those that are
positive. A visit finds the steepest pair of outputs,

    y' = argmax of ell + <w, phi>  over all outputs,     y'' = argmin over outputs whose cliques all have mass,

and moves gamma = min( lam n (score' - score'') / |phi(y') - phi(y'')|^2, least mass of a clique of y'' alone ) from y''
to y'. That stays feasible where nonnegative, consistent clique marginals always belong to a distribution: for the
buckets of an elimination order, which form a junction tree, and for the arcs of a lattice, where they are a flow.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.maps.costs import loss_of
from m3n.compiled.oracles.hooks import best, clique_range, cliques, workspace, worst
from m3n.compiled.primitives.arrays import largest
from m3n.compiled.sweeps.visits import add_parts, clear, local_scores, scatter, spread, wipe

GONE = 1e-14  # mass that rounding leaves behind: as good as none


class Masses(NamedTuple):
    """Positive clique marginals of every example."""

    ids: np.ndarray  # (n, capacity)
    masses: np.ndarray  # (n, capacity)
    used: np.ndarray  # (n,)


@compiled
def sweep(space, rows, costs, sparse, most, order, start, lam, w, b, zeros, gaps):
    """Visit order[start], ...; stop where there is no room for new cliques. Returns the next position.

    No output has more than ``most`` parts. ``b[0]`` is the expected loss; ``gaps[i]`` becomes score' - score'', the
    violation of the KKT conditions.
    """
    n = rows.sizes.shape[0]
    work = workspace(space)
    size = largest(rows.sizes)
    theta, delta, marked = np.empty(size), np.zeros(size), np.zeros(size, np.bool_)
    touched = np.empty(size, np.int64)
    mass = np.zeros(clique_range(space))
    high, low = np.empty(most, np.int64), np.empty(most, np.int64)
    into, out = np.empty(most, np.int64), np.empty(most, np.int64)
    for at in range(start, order.shape[0]):
        i = order[at]
        local = local_scores(rows, costs, i, w, theta)
        for k in range(sparse.used[i]):
            mass[sparse.ids[i, k]] = sparse.masses[i, k]
        top, many = best(space, i, local, high, work)
        bottom, few = worst(space, i, local, mass, low, work)
        gaps[i] = max(top - bottom, 0.0) if bottom < np.inf else 0.0
        room = True
        if gaps[i] > 0.0:
            moved = add_parts(delta, marked, touched, 0, high, many, 1.0)
            moved = add_parts(delta, marked, touched, moved, low, few, -1.0)
            norm = spread(rows, i, delta, touched, moved, zeros)
            wipe(rows, i, delta, touched, moved, zeros)
            arrivals = cliques(space, i, high, into)
            departures = cliques(space, i, low, out)
            gamma = spare(mass, into, arrivals, out, departures)
            if gaps[i] * lam * n < norm * gamma:
                gamma = gaps[i] * lam * n / norm
            room = transfer(sparse, i, mass, into, arrivals, out, departures, gamma)
            if room:
                scatter(rows, i, delta, touched, moved, -gamma / (lam * n), w)
                b[0] += gamma * (loss_of(costs, i, high, many) - loss_of(costs, i, low, few)) / n
            clear(delta, marked, touched, moved)
        for k in range(sparse.used[i]):
            mass[sparse.ids[i, k]] = 0.0
        if not room:
            return at
    return order.shape[0]


@inner
def contains(cliques, count, clique):
    """Whether a clique is in the list."""
    for k in range(count):
        if cliques[k] == clique:
            return True
    return False


@compiled
def spare(mass, into, arrivals, out, departures):
    """The least mass among the cliques that only lose."""
    least = np.inf
    for k in range(departures):
        if not contains(into, arrivals, out[k]):
            least = min(least, mass[out[k]])
    return least


@compiled
def transfer(sparse, i, mass, into, arrivals, out, departures, gamma):
    """Move gamma from the cliques of one output to those of another and store the result; False if it has no room.

    ``mass`` keeps its old numbers if there is no room; else it is zero at cliques that are no longer stored.
    """
    fresh = 0
    for k in range(arrivals):
        fresh += mass[into[k]] == 0.0
    if sparse.used[i] + fresh > sparse.ids.shape[1]:
        return False
    for k in range(arrivals):
        if mass[into[k]] == 0.0:
            sparse.ids[i, sparse.used[i]] = into[k]
            sparse.used[i] += 1
    for k in range(arrivals):
        if not contains(out, departures, into[k]):
            mass[into[k]] += gamma
    for k in range(departures):
        if not contains(into, arrivals, out[k]):
            mass[out[k]] = mass[out[k]] - gamma if mass[out[k]] - gamma > GONE else 0.0
    kept = 0
    for k in range(sparse.used[i]):
        clique = sparse.ids[i, k]
        if mass[clique] > 0.0:
            sparse.ids[i, kept] = clique
            sparse.masses[i, kept] = mass[clique]
            kept += 1
    sparse.used[i] = kept
    return True


@compiled
def list_cliques(space, rows, costs, parts, ids, used):
    """The cliques of one output per example."""
    for i in range(parts.shape[0]):
        used[i] = cliques(space, i, parts[i], ids[i])


@compiled
def range_of_cliques(space, rows, costs):
    """One more than the largest number of a clique: structures say it to compiled code alone."""
    return clique_range(space)
