"""The exp-oracle of chains in the log domain: slower than the scaled recursion, and exact at any temperature.

f_t(j) = mu log-sum-exp of all prefixes that end in label j. The backward sweep uses the conditional probabilities
exp((f_{t-1}(i) + transition_ij - norm_t(j))/mu), whose columns sum to one, so marginals are those of a distribution by
construction at any temperature. Labels i from which no transition can contribute one unit in the last place are
skipped, which is most of them when mu is small.

Layout as in ``chain``. Cost per token: O(labels^2), with an exponential for every pair of labels.
"""

import math

import numpy as np

from m3n.compiled.jit import inlined, inner
from m3n.compiled.primitives.exponential import exp

NEGLIGIBLE = -45.0  # exp(-45) = 3e-20: added to a sum >= 1 it changes nothing


@inner
def soft_log(node, edge, mu, weight, work):
    """The exp-oracle of one sequence in the log domain; exact at any temperature, -inf entries included.

    Arguments as for ``soft_scaled``, but that expected transition counts are added to ``work.counts``; ``edge``, flat
    and empty if there are no edge scores, is overwritten by its marginals. -inf says that no labelling is allowed.
    """
    transition, lead, scratch, active = work.transition, work.leads, work.pairs, work.active
    labels, forward, norm, counts = transition.shape[0], work.plain[0], work.plain[1], work.counts
    rows, edge = node.reshape(-1, labels), edge.reshape(-1, labels, labels)
    length, known = rows.shape[0], work.walked[0] > labels
    work.walked[0] += length - 1
    if not known:  # leads take O(labels^3): never more than the recursion itself
        _leads(transition, edge.shape[0] > 0 or work.walked[0] <= labels, lead)
    value = 0.0
    for t in range(length):
        f, x = forward[t], rows[t]
        if t > 0:
            count = _active_rows(forward[t - 1], lead, mu, active)
            _log_advance(forward[t - 1], active[:count], transition, edge, t - 1, mu, norm[t], scratch, f)
        top = -np.inf
        for j in range(labels):
            f[j] = x[j] + (f[j] if t > 0 else 0.0)
            top = max(top, f[j])
        if top == -np.inf:
            rows[:] = 0.0
            edge[:] = 0.0
            return -np.inf
        for j in range(labels):  # a maximum of 0 keeps the rounding error from growing with the length
            f[j] -= top
        value += top
    last = rows[length - 1]
    total = 0.0
    for j in range(labels):
        last[j] = math.exp(forward[length - 1, j] / mu)
        total += last[j]
    for j in range(labels):
        last[j] *= weight / total
    for t in range(length - 1, 0, -1):
        count = _active_rows(forward[t - 1], lead, mu, active)
        p, out, used = rows[t], rows[t - 1], active[:count]
        _log_retreat(forward[t - 1], used, transition, edge, t - 1, mu, norm[t], scratch[0], p, out, counts)
    return value + mu * math.log(total)


@inlined
def _leads(transition, unknown, lead):
    """lead[i, k] = max_j (transition_ij - transition_kj): what row i can gain on row k in one step; inf if unknown."""
    labels = transition.shape[0]
    for i in range(labels):
        for k in range(labels):
            lead[i, k] = np.inf if unknown else -np.inf
            for j in range(labels):
                if transition[i, j] > -np.inf:
                    lead[i, k] = max(lead[i, k], transition[i, j] - transition[k, j])


@inner
def _active_rows(f, lead, mu, active):
    """Labels i whose f(i) + transition_ij comes near the best one for some j; returns how many."""
    best = 0
    for i in range(f.shape[0]):
        best = i if f[i] > f[best] else best
    count = 0
    for i in range(f.shape[0]):
        if f[i] > -np.inf and f[i] + lead[i, best] > NEGLIGIBLE * mu:
            active[count] = i
            count += 1
    return count


@inlined
def _log_advance(f, active, transition, edge, pair, mu, norm, scratch, out):
    """out(j) = mu log sum_i exp((f(i) + transition_ij)/mu); ``norm`` likewise, but 0 where j cannot be reached."""
    labels = f.shape[0]
    inverse = 1.0 / mu
    x, total = scratch[0], scratch[1]
    for j in range(labels):
        out[j] = -np.inf
        total[j] = 0.0
    for i in active:
        _pair_scores(f[i], transition[i], edge, pair, i, x)
        for j in range(labels):
            out[j] = max(out[j], x[j])
    for j in range(labels):
        norm[j] = out[j] if out[j] > -np.inf else 0.0
    for i in active:
        _pair_scores(f[i], transition[i], edge, pair, i, x)
        for j in range(labels):
            total[j] += exp((x[j] - norm[j]) * inverse)
    for j in range(labels):
        if out[j] > -np.inf:
            norm[j] += mu * math.log(total[j])
            out[j] = norm[j]


@inlined
def _log_retreat(f, active, transition, edge, pair, mu, norm, x, p, out, counts):
    """Marginals one position earlier, through the conditional probabilities of label i given label j."""
    labels = f.shape[0]
    inverse = 1.0 / mu
    for i in range(labels):
        out[i] = 0.0
        if edge.shape[0] and f[i] == -np.inf:
            for j in range(labels):
                edge[pair, i, j] = 0.0
    for i in active:
        _pair_scores(f[i], transition[i], edge, pair, i, x)
        row = counts[i]
        for j in range(labels):
            x[j] = exp(min((x[j] - norm[j]) * inverse, 0.0)) * p[j]
            row[j] += x[j]
        for j in range(labels):
            out[i] += x[j]
        if edge.shape[0]:
            for j in range(labels):
                edge[pair, i, j] = x[j]


@inner
def _pair_scores(f, transition, edge, pair, i, x):
    """x(j) = f(i) + transition_ij (+ edge)."""
    for j in range(x.shape[0]):
        x[j] = f + transition[j]
    if edge.shape[0]:
        row = edge[pair, i]
        for j in range(x.shape[0]):
            x[j] += row[j]
