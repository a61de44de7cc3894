"""Online exponentiated gradient: one sweep over examples in a given order.

beta_i = n alpha_i is the Gibbs distribution of the example's own *potentials* p_i, scores of its parts. The gradient of
n D with respect to beta_i(y) is theta_i(y) - T (1 + log beta_i(y)) with theta_i = ell_i + <w, phi>, so the step of
exponentiated gradient is linear in the potentials,

    p_i <- (1 - eta T) p_i + eta theta_i,

and one exp-oracle call gives its marginals m'. The step raises n D by

    <theta_i, m' - m> + T (H(m') - H(m)) - |F'(m' - m)|^2 / (2 lam n);

if that is negative eta is halved and the step tried again.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.maps.costs import add_costs, expected_costs
from m3n.compiled.maps.kinds import gather, scatter_all
from m3n.compiled.oracles.hooks import soft, workspace
from m3n.compiled.primitives.arrays import largest, put
from m3n.compiled.sweeps.visits import move_weights

MOST_TRIALS = 40
ROUNDING = 1e-13  # of scores of size one: a distribution that cannot change any more must not halve eta for ever
EAGER, PATIENT = 1.5, 1.05  # growth of eta before and after its first failure


class Potentials(NamedTuple):
    """The dual point; examples one after another, from ``starts[i]`` on."""

    starts: np.ndarray  # (n + 1,)
    potentials: np.ndarray
    marginals: np.ndarray
    entropies: np.ndarray  # (n,)
    losses: np.ndarray  # (n,) expected losses
    eta: np.ndarray  # (n,)
    failed: np.ndarray  # (n,) whether a step of the example was ever too long


@compiled
def fill(space, rows, costs, dual, gold, gold_counts, lam, w):
    """Marginals, entropies and losses of the potentials, and w(alpha) added to ``w``."""
    work = workspace(space)
    n = rows.sizes.shape[0]
    for i in range(n):
        p = dual.potentials[dual.starts[i] : dual.starts[i + 1]]
        m = dual.marginals[dual.starts[i] : dual.starts[i + 1]]
        put(p, m)
        value = soft(space, i, m, 1.0, work)
        dual.entropies[i] = value - dot(p, m)
        dual.losses[i] = costs.constants[i] + expected_costs(costs, i, m)
        delta = -m
        for k in range(gold_counts[i]):
            delta[gold[i, k]] += 1.0
        scatter_all(rows, i, delta, 1.0 / (lam * n), w)


@compiled
def sweep(space, rows, costs, dual, order, temperatures, lam, w):
    """Visit all of ``order``; returns the number of exp-oracle calls. Every example has its own temperature."""
    n = rows.sizes.shape[0]
    work = workspace(space)
    size = largest(rows.sizes)
    theta, trial, marginals, delta = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    calls = 0
    for i in order:
        own, temperature = rows.sizes[i], temperatures[i]
        p = dual.potentials[dual.starts[i] : dual.starts[i + 1]]
        m = dual.marginals[dual.starts[i] : dual.starts[i + 1]]
        t, x, y, d = theta[:own], trial[:own], marginals[:own], delta[:own]
        gather(rows, i, w, t)
        add_costs(costs, i, t, 1.0)
        for _ in range(MOST_TRIALS):
            eta = dual.eta[i]
            for k in range(own):
                x[k] = (1.0 - eta * temperature) * p[k] + eta * t[k]
            put(x, y)
            entropy = soft(space, i, y, 1.0, work) - dot(x, y)
            calls += 1
            for k in range(own):
                d[k] = y[k] - m[k]
            rise = dot(t, d)
            gain = rise + temperature * (entropy - dual.entropies[i])
            square = move_weights(rows, costs, i, d, rise, -1.0 / (lam * n), w)
            if gain - square / (2.0 * lam * n) >= -ROUNDING * (1.0 + abs(gain)):
                put(x, p)
                put(y, m)
                dual.entropies[i] = entropy
                dual.losses[i] = costs.constants[i] + expected_costs(costs, i, y)
                grown = eta * (PATIENT if dual.failed[i] else EAGER)
                dual.eta[i] = min(grown, 1.0 / temperature) if temperature > 0.0 else grown
                break
            scatter_all(rows, i, d, 1.0 / (lam * n), w)
            dual.eta[i] = 0.5 * eta
            dual.failed[i] = True
    return calls


@compiled
def dot(a, b):
    """Inner product."""
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total
