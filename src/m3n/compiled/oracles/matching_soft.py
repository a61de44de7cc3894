"""The smoothed maximum of one table of links, with the entropy of links and free slots as prox.

With m_ij the mean of a link, s_i = c - sum_j m_ij and t_j = d - sum_i m_ij the free slots of a row and of a column,

    max over 0 <= m_ij <= 1, s >= 0, t >= 0 of  <theta, (m, s, t)> + mu h,
    h = -sum m_ij log m_ij - sum s_i log(s_i/c) - sum t_j log(t_j/d).

Every term is at least 0. In units of mu, with multipliers u - 1 of rows and v - 1 of columns, the dual is

    G(u, v) = sum c (u_i - 1) + sum d (v_j - 1) + sum phi_ij + sum s_i + sum t_j,    e_ij = theta_ij - u_i - v_j + 1,
    m_ij = exp(min(e_ij, 0)),   s_i = c exp(theta_i - u_i),   t_j = d exp(theta_j - v_j),

phi_ij = m_ij, or e_ij + 1 where the bound 1 is reached, which only happens if both c and d are larger. The best v for a
given u is a logarithm of a sum, column by column (a bound that is reached leaves a sum over the others), and so is the
best u for a given v: to take turns is Sinkhorn's algorithm, which needs more turns the smaller mu is, without a limit
(20 by 25 normal scores to 1e-9 mu: 45 turns at mu = 1, 80 at 0.3, more than 1400 at 0.1). So Newton's method minimises
G(u) = min_v G(u, v):

    gradient_i = c - sum_j m_ij - s_i,     S = diag(excess_i + sum_k w_ik) - w,
    w_ik = sum_j m_ij m_kj / D_j,   excess_i = s_i + sum_j m_ij t_j / D_j,   D_j = sum_i m_ij + t_j.

S is a graph's Laplacian plus an excess, so it is eliminated without a subtraction, whatever tiny excess is left where
links are nearly certain. The step is shortened until G falls; if it does not, rows take their turn. mu begins at
about the size of the scores and is divided by COOLING until it is what is asked for, each time from the potentials of
the last one. A division takes a few Newton steps, O(rows^2 columns) each, rows being the smaller side.

The point is then made feasible: rows and columns that have too much are scaled down, free slots take the rest. So the
answer is a mixture of outputs (the matrix of the constraints is totally unimodular), and the value is attained there:
if it is below the maximum by some error, the dual points that solvers mix from the answers are true all the same. Where
words must use all of their slots there is no rest, and the sums are right up to LEAK. The best output answers where
that is not reached, or nothing else is better, as for a mu that scores are not accurate enough for.

The prox is strongly concave where solvers need it: with the norms r_k of the features of parts, moving the means x by y
changes the features by at most sum r_k |y_k|, and (sum r_k |y_k|)^2 <= (sum r_k^2 x_k) (sum y_k^2 / x_k), of which the
second factor is the curvature of -h, and the first at most the square of the largest sum of r_k of an output.

References: Cuturi, "Sinkhorn distances: lightspeed computation of optimal transport", 2013; Brauer, Clason, Lorenz,
Wirth, "A Sinkhorn-Newton method for entropic optimal transport", 2017.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing, inner
from m3n.compiled.oracles.links import is_barred
from m3n.compiled.oracles.matching_paths import best_matching, first_nulls, frame_of
from m3n.compiled.primitives.arrays import largest, put
from m3n.compiled.primitives.exponential import exp
from m3n.compiled.primitives.logarithm import log
from m3n.compiled.primitives.vector import LANES, LINE, add, broadcast, load, multiply, padded, splat, store

COOLING = 6.0
COARSE, FINE = 1e-1, 1e-12  # Newton decrements, in units of mu, before the last step
MOST_STEPS = 40  # of Newton's method at one temperature
RIDGE = 1e-13  # added to the excess: where less is left, nothing depends on the potential
ROUNDING = 1e-15  # relative error of a score
COLDEST = 1e-12  # of the largest score: the lowest mu that is not taken for 0
LEAK = 1e-12  # what words that must use all of their slots may lack
TINY = 1e-300  # a smaller mean is 0


class Point(NamedTuple):
    """Potentials, and the means that belong to them."""

    u: np.ndarray  # (rows,)
    v: np.ndarray  # (columns,)
    mass: np.ndarray  # (rows * columns,) m
    row_free: np.ndarray  # (rows,) s
    column_free: np.ndarray  # (columns,) t


class SmoothScratch(NamedTuple):
    """Memory for one sweep: sizes of the largest frame."""

    parts: np.ndarray  # (most parts,) of the best output
    link: np.ndarray  # (rows * columns,) scores in units of mu
    row_null: np.ndarray  # (rows,)
    column_null: np.ndarray  # (columns,)
    now: Point
    trial: Point
    tops: np.ndarray  # (columns,)
    sums: np.ndarray  # (columns,)
    gradient: np.ndarray  # (rows,)
    step: np.ndarray  # (rows,)
    excess: np.ndarray  # (rows,)
    couple: np.ndarray  # (rows, padded rows) w, above the diagonal
    means: np.ndarray  # (columns * padded rows,)
    shares: np.ndarray  # (columns * padded rows,)


@inner
def smooth_scratch(space):
    """Memory for one sweep."""
    m, n = largest(space.table.rows), largest(space.table.columns)
    most = max(m, n)
    links, vectors, width = np.empty((3, m * n)), np.empty((15, most)), padded(min(m, n))
    means = np.zeros((2, most * width))  # a frame has no more rows than columns
    now = Point(vectors[0], vectors[1], links[0], vectors[2], vectors[3])
    trial = Point(vectors[4], vectors[5], links[1], vectors[6], vectors[7])
    return SmoothScratch(
        np.empty(m * space.row_slots + n * space.column_slots, np.int64), links[2], vectors[8], vectors[9], now, trial,
        vectors[10], vectors[11], vectors[12], vectors[13], vectors[14], np.empty((width, width)), means[0], means[1],
    )  # fmt: skip


@borrowing
def smoothed_matching(space, i, theta, mu, path, work):
    """The smoothed maximum of example i; the means of its parts are written over ``theta``."""
    best, number = best_matching(space, i, theta, work.parts, path)
    frame, size = frame_of(space, i), _largest(theta)
    if best > -np.inf and mu > COLDEST * size:
        heat = _cool_down(space, i, theta, mu, size, frame, work)
        if _make_feasible(frame, work):
            value = heat * _objective(frame, work)
            if value >= best + mu * _entropy_of_output(space, i, number, work):
                _write(frame, theta, work)
                return value
    value = best + mu * _entropy_of_output(space, i, number, work)
    for k in range(theta.shape[0]):
        theta[k] = 0.0
    for k in range(number):
        theta[work.parts[k]] += 1.0
    return value


@borrowing
def _largest(theta):
    """The largest absolute value of scores that are finite."""
    found = 0.0
    for score in theta:
        found = max(found, abs(score)) if score > -np.inf else found
    return found


@borrowing
def _entropy_of_output(space, i, number, work):
    """h of the best output: 0 with one slot per word."""
    m, n, k, total = space.table.rows[i], space.table.columns[i], 0, 0.0
    while k < number:
        part, first = work.parts[k], k
        while k < number and work.parts[k] == part:
            k += 1
        if part >= m * n:
            total += _term(float(k - first), float(space.row_slots if part < m * n + m else space.column_slots))
    return total


@borrowing
def _term(mean, slots):
    """-x log(x/slots)."""
    return -mean * log(mean / slots) if mean > TINY else 0.0


@borrowing
def _cool_down(space, i, theta, mu, size, frame, work):
    """Minimise G at ever lower temperatures; the last one."""
    heat = max(mu, size)
    _load(space, i, theta, 1.0 / heat, frame, work)
    for row in range(frame.rows):
        work.now.u[row] = 0.0
    _evaluate(frame, work.now, work)
    _turn(frame, work)
    while True:
        rounding = ROUNDING * (1.0 + size / heat)
        _minimise(frame, max(COARSE if heat > mu else FINE, 10.0 * rounding), max(RIDGE, rounding), work)
        if heat <= mu:
            return heat
        cooler = max(mu, heat / COOLING)
        for row in range(frame.rows):
            work.now.u[row] = work.trial.u[row] = work.now.u[row] * (heat / cooler)
        heat = cooler
        _load(space, i, theta, 1.0 / heat, frame, work)


@borrowing
def _load(space, i, theta, inverse, frame, work):
    """Scores in units of the temperature, in the order of the frame."""
    rows, columns = first_nulls(frame)
    m, n = frame.rows, frame.columns
    for row in range(m):
        work.row_null[row] = theta[rows + row] * inverse
        for j in range(n):
            link = j * m + row if frame.turned else row * n + j
            work.link[row * n + j] = -np.inf if is_barred(space.table, i, link) else theta[link] * inverse
    for j in range(n):
        work.column_null[j] = theta[columns + j] * inverse


@borrowing
def _minimise(frame, tolerance, ridge, work):
    """Newton's method for G(u), from the potentials ``work.now.u``."""
    value = _evaluate(frame, work.now, work)
    for _ in range(MOST_STEPS):
        slope = _newton(frame, ridge, work)
        new, found = _descend(frame, value, slope, work)
        if not found or -slope <= tolerance:
            return
        value = new


@borrowing
def _descend(frame, value, slope, work):
    """Move ``now`` to where G is lower; G there, and whether that was found."""
    m, scale, noise = frame.rows, 1.0, 1e-13 * (1.0 + abs(value))
    for _ in range(6):
        for row in range(m):
            work.trial.u[row] = work.now.u[row] + scale * work.step[row]
        new = _evaluate(frame, work.trial, work)
        if new <= value + 1e-4 * scale * slope + noise:
            _accept(frame, work)
            return new, True
        scale *= 0.4
    new = _turn(frame, work)
    return new, new < value


@borrowing
def _turn(frame, work):
    """The best u for the present v; G there."""
    m, n, capped = frame.rows, frame.columns, _is_capped(frame)
    for row in range(m):
        null = work.row_null[row]
        work.trial.u[row] = _potential(work.link, row * n, 1, n, work.now.v, null, frame.row_slots, capped)
    value = _evaluate(frame, work.trial, work)
    _accept(frame, work)
    return value


@borrowing
def _accept(frame, work):
    """The trial is where we are."""
    m, n = frame.rows, frame.columns
    put(work.trial.u[:m], work.now.u[:m])
    put(work.trial.row_free[:m], work.now.row_free[:m])
    put(work.trial.v[:n], work.now.v[:n])
    put(work.trial.column_free[:n], work.now.column_free[:n])
    put(work.trial.mass[: m * n], work.now.mass[: m * n])


@borrowing
def _is_capped(frame):
    """Whether means of links could exceed 1 if nothing but slots bounded them."""
    return frame.row_slots > 1 and frame.column_slots > 1


@borrowing
def _potential(link, first, stride, count, other, null, slots, capped):
    """The potential of one row or column that makes its sum right.

    Links that would exceed 1 are left out, together with their slots, and the others summed again: ever lower
    potentials, until there are no more of them.
    """
    bound, null = np.inf, null + log(float(slots))
    while True:
        top, full = null, 0
        for k in range(count):
            score = link[first + k * stride] - other[k] + 1.0
            if score < bound:
                top = max(top, score)
            else:
                full += 1
        if full >= slots or top == -np.inf:
            return bound
        total = exp(null - top)
        for k in range(count):
            score = link[first + k * stride] - other[k] + 1.0
            total += exp(score - top) if score < bound else 0.0
        new = top + log(total / (slots - full))
        if not new < bound:
            return bound
        bound = new
        if not capped:
            return bound


@borrowing
def _evaluate(frame, point, work):
    """G(u), its v and the means."""
    value, slots = 0.0, float(frame.row_slots)
    shift = log(slots)
    for row in range(frame.rows):
        score = work.row_null[row] + shift - point.u[row]
        if not score < 300.0:
            return np.inf
        point.row_free[row] = exp(score)
        value += slots * (point.u[row] - 1.0) + point.row_free[row]
    if _is_capped(frame):
        return value + _capped_columns(frame, point, work)
    return value + _columns(frame, point, work)


@borrowing
def _columns(frame, point, work):
    """v and the means of columns; what they add to G: d v_j, as the means of a column add up to d."""
    m, n, slots, value = frame.rows, frame.columns, float(frame.column_slots), 0.0
    tops, sums, shift = work.tops, work.sums, log(slots)
    for j in range(n):
        tops[j] = work.column_null[j] + shift
    for row in range(m):
        scores, mass = work.link[row * n : (row + 1) * n], point.mass[row * n : (row + 1) * n]
        for j in range(n):
            mass[j] = scores[j] - point.u[row] + 1.0
            tops[j] = max(tops[j], mass[j])
    for j in range(n):
        point.column_free[j] = sums[j] = exp(work.column_null[j] + shift - tops[j])
    for row in range(m):
        mass = point.mass[row * n : (row + 1) * n]
        for j in range(n):
            mass[j] = exp(mass[j] - tops[j])
            sums[j] += mass[j]
    for j in range(n):
        sums[j] = slots / sums[j]
        point.column_free[j] *= sums[j]
        point.v[j] = tops[j] - log(sums[j])
        value += slots * point.v[j]
    for row in range(m):
        mass = point.mass[row * n : (row + 1) * n]
        for j in range(n):
            mass[j] *= sums[j]
    return value


@borrowing
def _capped_columns(frame, point, work):
    """The same where links may reach the bound 1."""
    m, n, slots, value = frame.rows, frame.columns, frame.column_slots, 0.0
    for j in range(n):
        null = work.column_null[j]
        point.v[j] = _potential(work.link, j, n, m, point.u, null, slots, True)
        point.column_free[j] = exp(null + log(float(slots)) - point.v[j])
        value += slots * (point.v[j] - 1.0) + point.column_free[j]
    for row in range(m):
        for j in range(n):
            score = work.link[row * n + j] - point.u[row] - point.v[j] + 1.0
            point.mass[row * n + j] = exp(min(score, 0.0))
            value += exp(score) if score < 0.0 else score + 1.0
    return value


@borrowing
def _newton(frame, ridge, work):
    """Newton's step into ``work.step``; the derivative of G along it."""
    m, slope = frame.rows, 0.0
    _set_gradient(frame, ridge, work)
    _set_system(frame, work)
    for row in range(m):
        work.step[row] = -work.gradient[row]
    _eliminate(m, work.couple, work.excess, work.step)
    for row in range(m):
        slope += work.gradient[row] * work.step[row]
    return slope


@borrowing
def _set_gradient(frame, ridge, work):
    """The gradient, the excess, and for w the means of links below their bound, by columns, and these over D_j."""
    m, n, point, width, capped = frame.rows, frame.columns, work.now, work.couple.shape[1], _is_capped(frame)
    put(point.column_free[:n], work.sums[:n])
    for row in range(m):
        mass, total = point.mass[row * n : (row + 1) * n], point.row_free[row]
        for j in range(n):
            total += mass[j]
            mean = 0.0 if capped and mass[j] >= 1.0 else mass[j]
            work.means[j * width + row] = mean
            work.sums[j] += mean
        work.gradient[row] = frame.row_slots - total
        work.excess[row] = point.row_free[row] + ridge
    for j in range(n):
        inverse = 1.0 / work.sums[j] if work.sums[j] > TINY else 0.0
        for row in range(m):
            share = work.means[j * width + row] * inverse
            work.shares[j * width + row] = share
            work.excess[row] += share * point.column_free[j]


@borrowing
def _set_system(frame, work):
    """w above the diagonal: eight entries of a row at a time, added up over columns."""
    m, width = frame.rows, work.couple.shape[1]
    for row in range(m):
        for first in range((row + 1) // LINE * LINE, m, LINE):
            low, high = splat(0.0), splat(0.0)
            for at in range(0, frame.columns * width, width):
                share = broadcast(work.shares, at + row)
                low = add(low, multiply(share, load(work.means, at + first)))
                high = add(high, multiply(share, load(work.means, at + first + LANES)))
            store(work.couple, row * width + first, low)
            store(work.couple, row * width + first + LANES, high)


@borrowing
def _eliminate(m, couple, excess, x):
    """Solve S x = x, S = diag(excess + row sums of w) - w, without subtractions; pivots replace the excess."""
    for p in range(m):
        mine, pivot = couple[p], excess[p]
        for k in range(p + 1, m):
            pivot += mine[k]
        for i in range(p + 1, m):
            share, theirs = mine[i] / pivot, couple[i]
            excess[i] += share * excess[p]
            x[i] += share * x[p]
            for k in range(i + 1, m):
                theirs[k] += share * mine[k]
        excess[p] = pivot
    for p in range(m - 1, -1, -1):
        for k in range(p + 1, m):
            x[p] += couple[p, k] * x[k]
        x[p] /= excess[p]


@borrowing
def _make_feasible(frame, work):
    """Scale down what rows and columns have too much, and let free slots take the rest; whether that is possible."""
    m, n, mass = frame.rows, frame.columns, work.now.mass
    for row in range(m):
        _scale_down(mass, row * n, 1, n, float(frame.row_slots))
    for j in range(n):
        _scale_down(mass, j, n, m, float(frame.column_slots))
    for row in range(m):
        work.now.row_free[row] = _rest(mass, row * n, 1, n, float(frame.row_slots), work.row_null[row])
        if not work.now.row_free[row] >= 0.0:
            return False
    for j in range(n):
        work.now.column_free[j] = _rest(mass, j, n, m, float(frame.column_slots), work.column_null[j])
        if not work.now.column_free[j] >= 0.0:
            return False
    return True


@borrowing
def _scale_down(mass, first, stride, count, slots):
    """Means of a row or column that do not exceed 1, nor its slots together."""
    total = 0.0
    for k in range(first, first + count * stride, stride):
        mass[k] = min(mass[k], 1.0) if mass[k] > TINY else 0.0
        total += mass[k]
    if total > slots:
        for k in range(first, first + count * stride, stride):
            mass[k] *= slots / total


@borrowing
def _rest(mass, first, stride, count, slots, null):
    """The free slots of a row or column; negative if too much is left where they are forbidden."""
    total = 0.0
    for k in range(first, first + count * stride, stride):
        total += mass[k]
    rest = max(slots - total, 0.0)
    if null > -np.inf:
        return rest
    return 0.0 if rest <= LEAK else -1.0


@borrowing
def _objective(frame, work):
    """<theta, (m, s, t)> + h, in units of mu."""
    point, value = work.now, 0.0
    for k in range(frame.rows * frame.columns):
        value += _scored(point.mass[k], work.link[k], 1.0)
    for row in range(frame.rows):
        value += _scored(point.row_free[row], work.row_null[row], float(frame.row_slots))
    for j in range(frame.columns):
        value += _scored(point.column_free[j], work.column_null[j], float(frame.column_slots))
    return value


@borrowing
def _scored(mean, score, slots):
    return mean * score + _term(mean, slots) if mean > TINY else 0.0


@borrowing
def _write(frame, theta, work):
    """The means in the order of the example's parts."""
    rows, columns = first_nulls(frame)
    m, n = frame.rows, frame.columns
    for row in range(m):
        theta[rows + row] = work.now.row_free[row]
        for j in range(n):
            theta[j * m + row if frame.turned else row * n + j] = work.now.mass[row * n + j]
    for j in range(n):
        theta[columns + j] = work.now.column_free[j]
