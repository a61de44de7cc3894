"""Stochastic subgradient steps: one sweep over examples in a given order.

With the step size 1/(lam t) the iterate after t visits is  w = v/(lam t),  where v = sum_s psi(y_s) is a plain sum of
features, so a visit adds the features of two outputs and rescales nothing. The average of the iterates with
weights 1, 2, 3, ... is (2 / (lam t (t+1))) ((t+1) v - r)  with r = sum_s s psi(y_s). Slack rescaling has ell(y_s)
psi(y_s) for psi(y_s).
"""

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.maps.costs import loss_of
from m3n.compiled.maps.kinds import gather
from m3n.compiled.primitives.arrays import largest
from m3n.compiled.sweeps.rescaling import add_loss, factor, label_costs, most_violated, workspace_for
from m3n.compiled.sweeps.visits import add_parts, clear, scatter


@compiled
def sweep(space, rows, costs, gold, gold_counts, order, lam, t, v, r):
    """Visit all of ``order``; returns the number of visits so far."""
    work = workspace_for(space, costs)
    size = largest(rows.sizes)
    theta, delta, marked = np.empty(size), np.zeros(size), np.zeros(size, np.bool_)
    touched, found = np.empty(size, np.int64), np.empty(gold.shape[1], np.int64)
    for i in order:
        local = theta[: rows.sizes[i]]
        gather(rows, i, v, local)
        scale = 1.0 / (lam * max(t, 1.0))
        for k in range(local.shape[0]):
            local[k] *= scale
        add_loss(costs, i, local)
        _, count = most_violated(space, costs, i, local, found, work)
        amount = factor(costs, loss_of(label_costs(costs), i, found, count))
        moved = add_parts(delta, marked, touched, 0, gold[i], gold_counts[i], amount)
        moved = add_parts(delta, marked, touched, moved, found, count, -amount)
        t += 1.0
        scatter(rows, i, delta, touched, moved, 1.0, v)
        scatter(rows, i, delta, touched, moved, t, r)
        clear(delta, marked, touched, moved)
    return t
