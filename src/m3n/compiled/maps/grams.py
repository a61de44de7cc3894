"""Kernel expansions among the rows of a feature map: the same functions as ``ordinary`` has.

A weight vector holds pairs (C, Theta) of coefficients and scores, both (labels, units) and row-major, see
``m3n.features.kernel``. A row of Gram matrix g has one entry e and belongs to the unit u = runs[e] - bases[g, 1]:

    score    theta[j] = data[e] Theta[j, u]
    add      C[j, u] += a data[e],    Theta[j', :] += a data[e] mix[j', j] K[u, :]   for all labels j'

An addition walks over a row of Theta, as long as there are units. What a visit needs to know about the features of its
example, squares and products, it finds without: they are kernel values among the example's own units. ``spread_part``
therefore fills in the scores of those alone, and leaves the coefficients out.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inlined, inner
from m3n.compiled.maps import ordinary
from m3n.compiled.primitives.runs import add_lists, add_runs, grow_lists, grow_runs, sum_lists, sum_runs

PIECE = 512  # units whose kernel values stay in the nearest cache while all labels use them


class KernelRows(NamedTuple):
    """``MapRows``, some of which are kernel expansions."""

    pointers: np.ndarray
    runs: np.ndarray
    data: np.ndarray
    widths: np.ndarray
    first: np.ndarray
    used: np.ndarray
    place: np.ndarray
    sizes: np.ndarray
    squares: np.ndarray  # (rows,) the largest square of a part's features
    lists: np.ndarray
    columns: np.ndarray
    which: np.ndarray  # (rows,) Gram matrix of a row, -1 for an ordinary one
    bases: np.ndarray  # (grams, 3) where coefficients and where scores begin, and the number of units
    grams: tuple[np.ndarray, ...]  # kernel values (units, units)
    mixes: tuple[np.ndarray, ...]  # inner products of labels; (0, 0) for the identity
    own_first: np.ndarray  # (n + 1,)
    own: np.ndarray  # a row for every unit that an example uses, example after example


@inlined
def entries_of(rows, i):
    """What the functions of one part need."""
    own = rows.own[rows.own_first[i] : rows.own_first[i + 1]]
    ordinary = rows.pointers, rows.lists, rows.runs, rows.data, rows.columns
    return (*ordinary, rows.which, rows.bases, rows.grams, rows.mixes, own)


@compiled
def score_part(entries, r, j, w):
    """The score of part j of row r."""
    pointers, _, runs, data, _, which, bases, _, _, _ = entries
    if which[r] < 0:
        return ordinary.score_part(entries[:5], r, j, w)
    e = pointers[r]
    return data[e] * w[runs[e] + j * bases[which[r], 2]]


@compiled
def add_part(entries, r, j, amount, out):
    """out += amount * the features of part j of row r."""
    pointers, _, runs, data, _, which, bases, grams, mixes, _ = entries
    g = which[r]
    if g < 0:
        ordinary.add_part(entries[:5], r, j, amount, out)
        return
    begin, size, change = bases[g, 1], bases[g, 2], amount * data[pointers[r]]
    unit, mix = runs[pointers[r]] - begin, mixes[g]
    out[bases[g, 0] + j * size + unit] += change
    if mix.shape[0] == 0:
        add_row(grams[g][unit], change, out[begin + j * size : begin + (j + 1) * size])
    for k in range(mix.shape[0]):
        add_row(grams[g][unit], change * mix[k, j], out[begin + k * size : begin + (k + 1) * size])


@compiled
def spread_part(entries, r, j, amount, dense):
    """Scores of the example's own units += amount * those of part j of row r; the growth of the square.

    a phi(u, j) more adds a (2 Theta[j, u] + a K[u, u] mix[j, j]) to it.
    """
    pointers, _, runs, data, _, which, bases, grams, mixes, own = entries
    g = which[r]
    if g < 0:
        return ordinary.spread_part(entries[:5], r, j, amount, dense)
    size, change, mix = bases[g, 2], amount * data[pointers[r]], mixes[g]
    values = grams[g][runs[pointers[r]] - bases[g, 1]]
    square = values[runs[pointers[r]] - bases[g, 1]] * (mix[j, j] if mix.shape[0] else 1.0)
    growth = change * (2.0 * dense[runs[pointers[r]] + j * size] + change * square)
    for m in range(own.shape[0]):
        if which[own[m]] == g:
            at = runs[pointers[own[m]]]
            value = change * values[at - bases[g, 1]]
            if mix.shape[0] == 0:
                dense[at + j * size] += value
            for k in range(mix.shape[0]):
                dense[at + k * size] += mix[k, j] * value
    return growth


@compiled
def clear_part(entries, r, j, dense):
    """dense = 0 wherever ``spread_part`` may have changed it."""
    pointers, _, runs, _, _, which, bases, _, mixes, own = entries
    g = which[r]
    if g < 0:
        ordinary.clear_part(entries[:5], r, j, dense)
        return
    low, high = (j, j + 1) if mixes[g].shape[0] == 0 else (0, mixes[g].shape[0])
    for m in range(own.shape[0]):
        if which[own[m]] == g:
            for k in range(low, high):
                dense[runs[pointers[own[m]]] + k * bases[g, 2]] = 0.0


@compiled
def join_support(entries, r, j, support):
    """The coefficient of part j of row r joins the support, and the scores that depend on it."""
    pointers, _, runs, _, _, which, bases, _, mixes, _ = entries
    g = which[r]
    if g < 0:
        ordinary.join_support(entries[:5], r, j, support)
        return
    size, begin = bases[g, 2], bases[g, 1]
    coefficient = bases[g, 0] + runs[pointers[r]] - begin + j * size
    ordinary.join(coefficient, coefficient + 1, support)
    low, high = (j, j + 1) if mixes[g].shape[0] == 0 else (0, mixes[g].shape[0])
    if not support.member[begin + j * size]:  # all scores of a label join at once
        ordinary.join(begin + low * size, begin + high * size, support)


@compiled
def gather(rows, i, w, theta):
    """theta = the scores of example i under w."""
    pointers, lists, runs, data, columns = rows.pointers, rows.lists, rows.runs, rows.data, rows.columns
    for k in range(rows.first[i], rows.first[i + 1]):
        r, at, width = rows.used[k], rows.place[k], rows.widths[rows.used[k]]
        if rows.which[r] < 0:
            sum_runs(pointers, lists, runs, data, r, r + 1, w, theta, at, width)
            sum_lists(pointers, lists, runs, data, r, r + 1, columns, w, theta, at, width)
        else:
            e, size = pointers[r], rows.bases[rows.which[r], 2]
            for j in range(width):
                theta[at + j] = data[e] * w[runs[e] + j * size]


@compiled
def scatter_all(rows, i, delta, scale, out):
    """out += scale * F' delta, for a delta that may be nonzero anywhere."""
    pointers, lists, runs, data, columns = rows.pointers, rows.lists, rows.runs, rows.data, rows.columns
    for k in range(rows.first[i], rows.first[i + 1]):
        r, at, width = rows.used[k], rows.place[k], rows.widths[rows.used[k]]
        if rows.which[r] < 0:
            add_runs(pointers, lists, runs, data, r, r + 1, delta, at, width, scale, columns, out)
            add_lists(pointers, lists, runs, data, r, r + 1, delta, at, width, scale, columns, out)
    add_expansions(rows, i, delta, scale, out)


@compiled
def grow_all(rows, i, delta, scale, w):
    """The same; returns the growth of |w|^2."""
    pointers, lists, runs, data, columns = rows.pointers, rows.lists, rows.runs, rows.data, rows.columns
    growth = 0.0
    for k in range(rows.first[i], rows.first[i + 1]):
        r, at, width = rows.used[k], rows.place[k], rows.widths[rows.used[k]]
        if rows.which[r] < 0:
            growth += grow_runs(pointers, lists, runs, data, r, r + 1, delta, at, width, scale, columns, w)
            growth += grow_lists(pointers, lists, runs, data, r, r + 1, delta, at, width, scale, columns, w)
        else:
            e, size = pointers[r], rows.bases[rows.which[r], 2]
            for j in range(width):
                growth += 2.0 * scale * delta[at + j] * data[e] * w[runs[e] + j * size]
    growth += scale * scale * square_of(rows, i, delta)
    add_expansions(rows, i, delta, scale, w)
    return growth


@inner
def square_of(rows, i, delta):
    """|F' delta|^2 of the expansions of example i, from kernel values among its units."""
    total = 0.0
    for k in range(rows.first[i], rows.first[i + 1]):
        r, g = rows.used[k], rows.which[rows.used[k]]
        if g >= 0:
            values, begin = rows.grams[g][rows.runs[rows.pointers[r]] - rows.bases[g, 1]], rows.bases[g, 1]
            for m in range(rows.first[i], k + 1):
                other = rows.used[m]
                if rows.which[other] == g:
                    e, twice = rows.pointers[other], 1.0 if m == k else 2.0
                    value = rows.data[rows.pointers[r]] * rows.data[e] * values[rows.runs[e] - begin]
                    total += twice * value * product(delta, rows.place[k], rows.place[m], rows.widths[r], rows.mixes[g])
    return total


@inner
def product(delta, a, b, width, mix):
    """Inner product of two rows of delta, whose labels may share features."""
    total = 0.0
    if mix.shape[0] == 0:
        for j in range(width):
            total += delta[a + j] * delta[b + j]
        return total
    for j in range(width):
        for k in range(width):
            total += delta[a + j] * mix[j, k] * delta[b + k]
    return total


@inner
def add_expansions(rows, i, delta, scale, out):
    """out += scale * F' delta of the expansions alone, four neighbouring rows of a Gram matrix at a time."""
    k, last = rows.first[i], rows.first[i + 1]
    while k < last:
        g, count = rows.which[rows.used[k]], 1
        if g >= 0:
            while count < 4 and k + count < last and rows.which[rows.used[k + count]] == g:
                count += 1
            add_four_rows(rows, k, count, g, delta, scale, out)
        k += count


@inner
def add_four_rows(rows, first, count, g, delta, scale, out):
    """Up to four uses of Gram matrix g from ``first`` on: out += scale * their part of F' delta."""
    begin, size, width = rows.bases[g, 1], rows.bases[g, 2], rows.widths[rows.used[first]]
    amounts, units = np.zeros((width, 4)), np.zeros(4, np.int64)
    for m in range(count):
        e, at = rows.pointers[rows.used[first + m]], rows.place[first + m]
        units[m] = rows.runs[e] - begin
        for j in range(width):
            amounts[j, m] = scale * rows.data[e] * delta[at + j]
            out[rows.bases[g, 0] + j * size + units[m]] += amounts[j, m]
    if rows.mixes[g].shape[0] > 0:
        amounts = mixed(rows.mixes[g], amounts)
    K = rows.grams[g]
    k0, k1, k2, k3 = K[units[0]], K[units[1]], K[units[2]], K[units[3]]
    for low in range(0, size, PIECE):
        high = min(low + PIECE, size)
        for j in range(width):
            a0, a1, a2, a3 = amounts[j, 0], amounts[j, 1], amounts[j, 2], amounts[j, 3]
            if a0 != 0.0 or a1 != 0.0 or a2 != 0.0 or a3 != 0.0:
                target = out[begin + j * size + low : begin + j * size + high]
                add_four(k0[low:high], k1[low:high], k2[low:high], k3[low:high], a0, a1, a2, a3, target)


@inner
def mixed(mix, amounts):
    """mix @ amounts."""
    out = np.zeros(amounts.shape)
    for j in range(mix.shape[0]):
        for k in range(mix.shape[1]):
            for m in range(amounts.shape[1]):
                out[j, m] += mix[j, k] * amounts[k, m]
    return out


@inner
def add_row(values, amount, out):
    """out += amount * values."""
    for u in range(out.shape[0]):
        out[u] += amount * values[u]


@inner
def add_four(k0, k1, k2, k3, a0, a1, a2, a3, out):
    """out += a0 k0 + a1 k1 + a2 k2 + a3 k3."""
    for u in range(out.shape[0]):
        out[u] += a0 * k0[u] + a1 * k1[u] + a2 * k2[u] + a3 * k3[u]
