"""Dual ascent at a positive temperature: one sweep over examples in a given order.

beta_i = n alpha_i is the Gibbs distribution of the example's own *potentials* p, scores of its parts, with marginals m.
A visit moves every row r of the example towards its scores theta = ell + <w, phi>, by a step length of its own,

    p'_r = p_r + eta_r g_r,    g_r = theta_r - T p_r,

and one exp-oracle call gives the new marginals m + d. The step raises n D by

    <theta, d> + T (H(m + d) - H(m)) - |F'd|^2 / (2 lam n).

Step lengths come from a secant. At the beginning of the step D has the slope s = <g_r, d_r> along row r. At its end the
entropy has taken eta_r T s of that and the change of the weights q = c |d_r|^2, where c = kappa |x_r|^2 / (lam n) and
kappa = |F'd|^2 / sum_r |x_r|^2 |d_r|^2 says how much the rows of the example have in common (mostly near 1). The secant
through both slopes is zero at

    eta_r s / (eta_r T s + q),

the length for the next visit, or for the next trial if this one would lower D. For small steps it is Newton's
1/(T + c v) with v the variance of the row in the direction of g: 1/T for a row that is certain, far less for one in
doubt. A row that only follows its neighbours has a meaningless secant, so no length falls below 1/(T + c/4), what the
largest variance of two labels calls for. Rows with lengths of their own
may go downhill however short the step: an example whose first two trials fail goes on with one length for all rows,
which is exponentiated gradient with a secant and rises if only the step is short enough.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, either, inner
from m3n.compiled.maps.costs import add_costs, expected_costs
from m3n.compiled.maps.kinds import gather, scatter_all
from m3n.compiled.oracles.hooks import soft, workspace
from m3n.compiled.primitives.arrays import largest, put
from m3n.compiled.sweeps.meetings import agree, meet
from m3n.compiled.sweeps.visits import move_weights

MOST_TRIALS = 20
ROUNDING = 1e-13  # of scores of size one: a distribution that cannot change any more must not be refused for ever
GROWTH = 2.0  # at most, from visit to visit
VARIANCE = 0.25  # of a row, at most
TINY = 1e-30  # below it q says nothing
CHECKED = 8
CLEAR = 0.75  # of the gain: what the square may take of it unchecked, in case kappa has grown by a third
HOPELESS = 1.25  # of the gain: a square that takes so much is refused unchecked, at a first trial


class Ascent(NamedTuple):
    """The dual point; examples one after another, from ``starts[i]`` on."""

    starts: np.ndarray  # (n + 1,)
    potentials: np.ndarray  # float32: whatever they are, alpha is exactly their Gibbs distribution
    marginals: np.ndarray
    entropies: np.ndarray  # (n,)
    losses: np.ndarray  # (n,) expected losses
    eta: np.ndarray  # (uses,) step lengths of the rows of every example
    kappa: np.ndarray  # (n,) as last measured
    joint: np.ndarray  # (n,) whether all rows of an example share one step length


class Told(NamedTuple):
    """What workers tell one another of their visits, in rounds of even and odd number."""

    counts: np.ndarray  # (2, workers) visits that have changed a distribution
    examples: np.ndarray  # (2, workers, visits) whose
    changes: np.ndarray  # (2, workers, visits, longest local theta) by how much, in marginals


class Scratch(NamedTuple):
    """Memory of one visit, as long as the longest local theta."""

    theta: np.ndarray
    trial: np.ndarray  # potentials
    fresh: np.ndarray  # marginals
    slopes: np.ndarray  # of every row, of which there are fewer than parts
    squares: np.ndarray


@compiled
def sweep(space, rows, costs, dual, order, temperatures, lam, turn, w, vector, worker, told):
    """Visit all of ``order``, or what one worker visits of it, whose weights ``w`` are made of ``vector``.

    Returns the number of exp-oracle calls and by how much n D has risen as far as the visits could see. ``turn`` is the
    number of the sweep. Every example has its own temperature, T times its weight.
    """
    work, memory, scale = workspace(space), scratch(rows), -1.0 / (lam * rows.sizes.shape[0])
    listed = worker.workers > 1 and worker.moved.by.shape[2] == 0
    calls, risen = 0, 0.0
    for number in range(worker.cuts.shape[0] - 1):
        side, made = number % 2, 0
        for at in range(worker.cuts[number], worker.cuts[number + 1]):
            i = order[worker.visits[at]]
            change = told.changes[side, worker.number, made]
            trials, moved, rise = visit(
                space, rows, costs, dual, i, temperatures[i], lam, turn, w, work, memory, change
            )
            calls += trials
            risen += rise
            if listed and moved:
                told.examples[side, worker.number, made] = i
                made += 1
        if listed:
            told.counts[side, worker.number] = made
            meet(worker, number)
            follow(rows, worker, side, told, scale, w)
        elif worker.workers > 1:
            agree(worker, number, vector)
    return calls, risen


@compiled
def set_aside(starts, examples, potentials, marginals, kept, shares):
    """Copy potentials and marginals of some examples, one after another."""
    at = 0
    for i in examples:
        for k in range(starts[i], starts[i + 1]):
            kept[at], shares[at] = potentials[k], marginals[k]
            at += 1


@compiled
def put_back(starts, examples, kept, shares, potentials, marginals):
    """The other way round."""
    at = 0
    for i in examples:
        for k in range(starts[i], starts[i + 1]):
            potentials[k], marginals[k] = kept[at], shares[at]
            at += 1


@inner
def follow(rows, worker, side, told, scale, w):
    """Add to ``w`` by how much the visits of the other workers in a round have moved theirs."""
    for other in range(worker.workers):
        if other != worker.number:
            for k in range(told.counts[side, other]):
                scatter_all(rows, told.examples[side, other, k], told.changes[side, other, k], scale, w)


@compiled
def scratch(rows):
    """Memory for visits."""
    size = largest(rows.sizes)
    return Scratch(np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(size))


@either
def visit(space, rows, costs, dual, i, temperature, lam, turn, w, work, memory, change):
    """Move the potentials of example i as far as n D rises; the number of exp-oracle calls, whether it moved and the
    rise. ``change`` becomes that of the marginals.

    |F'd|^2 is known only when w has moved, and moving back costs as much again.
    """
    n, own = rows.sizes.shape[0], rows.sizes[i]
    p = dual.potentials[dual.starts[i] : dual.starts[i + 1]]
    m = dual.marginals[dual.starts[i] : dual.starts[i + 1]]
    t, x, y, d = memory.theta[:own], memory.trial[:own], memory.fresh[:own], change[:own]
    slopes, squares = memory.slopes, memory.squares
    gather(rows, i, w, t)
    add_costs(costs, i, t, 1.0)
    for k in range(MOST_TRIALS):
        move(rows, i, p, t, dual.eta, temperature, x)
        put(x, y)
        value = soft(space, i, y, 1.0, work)
        rise, overlap, slope, whole = compare(rows, i, p, t, x, m, y, temperature, d, slopes, squares)
        entropy = value - overlap
        gain = rise + temperature * (entropy - dual.entropies[i])
        foretold = dual.kappa[i] * whole / (2.0 * lam * n)
        checked = k > 0 or (i + turn) % CHECKED == 0
        hopeless = k == 0 and foretold > HOPELESS * gain
        accepted = not checked and max(foretold, whole / (2.0 * lam * n)) < CLEAR * gain
        if accepted:
            scatter_all(rows, i, d, -1.0 / (lam * n), w)
        elif not hopeless:
            square = move_weights(rows, costs, i, d, rise, -1.0 / (lam * n), w)
            dual.kappa[i] = square / whole if whole > TINY else 1.0
            accepted = square <= 2.0 * lam * n * (gain + ROUNDING * (1.0 + abs(gain)))
            if not accepted:
                scatter_all(rows, i, d, 1.0 / (lam * n), w)
        share = dual.kappa[i] / (lam * n)
        if not (accepted or k == 0 or dual.joint[i]):
            dual.joint[i] = True
            level(rows, i, dual.eta)
        elif dual.joint[i]:
            lengthen_all(rows, i, slope, share * whole, accepted, temperature, dual.eta)
        else:
            lengthen(rows, i, slopes, squares, share, temperature, dual.eta)
        if accepted:
            put(x, p)
            put(y, m)
            dual.entropies[i] = entropy
            dual.losses[i] = costs.constants[i] + expected_costs(costs, i, y)
            return k + 1, True, gain - 0.5 * share * whole
    return MOST_TRIALS, False, 0.0


@compiled
def move(rows, i, p, theta, eta, temperature, out):
    """out = the potentials after a step, rounded as they are kept."""
    for u in range(rows.first[i], rows.first[i + 1]):
        at, length = rows.place[u], eta[u]
        keep = 1.0 - length * temperature
        for j in range(at, at + rows.widths[rows.used[u]]):
            out[j] = np.float32(keep * p[j] + length * theta[j])


@compiled
def compare(rows, i, p, theta, x, m, y, temperature, d, slopes, squares):
    """d = y - m; <theta, d>, <x, y>, <g, d> and sum_r |x_r|^2 |d_r|^2; the last two of every row as well."""
    rise, overlap, total, whole = 0.0, 0.0, 0.0, 0.0
    for u in range(rows.first[i], rows.first[i + 1]):
        r, at = rows.used[u], rows.place[u]
        slope, square = 0.0, 0.0
        for j in range(at, at + rows.widths[r]):
            change = y[j] - m[j]
            d[j] = change
            rise += theta[j] * change
            overlap += x[j] * y[j]
            slope += (theta[j] - temperature * p[j]) * change
            square += change * change
        k = u - rows.first[i]
        slopes[k], squares[k] = slope, rows.squares[r] * square
        total += slope
        whole += squares[k]
    return rise, overlap, total, whole


@compiled
def lengthen(rows, i, slopes, squares, share, temperature, eta):
    """The secant's step lengths, row by row; ``share`` is kappa / (lam n)."""
    for u in range(rows.first[i], rows.first[i + 1]):
        k = u - rows.first[i]
        least = 1.0 / (temperature + VARIANCE * share * rows.squares[rows.used[u]])
        eta[u] = max(secant(eta[u], slopes[k], share * squares[k], temperature), least)


@compiled
def lengthen_all(rows, i, slope, square, accepted, temperature, eta):
    """The secant's step length for all rows together."""
    own = eta[rows.first[i] : rows.first[i + 1]]
    length = secant(own[0], slope, square, temperature)
    own[:] = length if accepted else min(length, 0.5 * own[0])


@inner
def secant(length, s, q, temperature):
    """Where the slope that was s, and has lost length T s + q, vanishes."""
    new = min(GROWTH * length, 1.0 / temperature)
    return min(new, length * s / (temperature * length * s + q)) if s > 0.0 and q > TINY else new


@compiled
def level(rows, i, eta):
    """One step length for all rows, the shortest."""
    own = eta[rows.first[i] : rows.first[i + 1]]
    own[:] = 0.5 * own.min()
