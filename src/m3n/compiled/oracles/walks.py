"""Random walks among words: from each word the chance to come to the root before another one, without a subtraction.

The walk goes from word d to its head h with probability w(h, d)/s(d), s(d) = sum_h w(h, d), until it comes to the root.
Wanted is, for all words h and d, F(h, d) = P(from h the walk comes to the root before d). Words are *eliminated* one by
one: without v, a walk that would come to v goes on from there at once,

    w(h, d) += w(h, v) w(v, d)/s(v),     s(v) = sum_h w(h, v) over the words h that are left, and the root

which changes no F between words that are left; then, last word first, F(v, d) = sum_h w(h, v) F(h, d)/s(v) with the w
of the moment of elimination, F(root, d) = 1 and F(d, d) = 0. So d must be the last word that is left, for every d:
words are halved, one half is eliminated and the other one treated in the same way, then the other way round. With two
halves of half the size at every level that is O(words^3) in all. The product of all s, in whichever order, is the
determinant of the Laplacian, the sum over all trees.

``with_root`` says whether s contains the root. If not, arcs from the root are infinitely rare, and F is what a walk is
expected to collect of w(root, x)/s(x), at every word x where it is, before it comes to d.

All numbers are weights if mu = 0. Otherwise they are mu times the logarithms of weights, for weights of any size.
Weights are flat, w(h, d) at d width + h with h = 0 for the root, and F(h, d) is at h width + d. Rows need room for
three more numbers, which may be anything.

Reference: Grassmann, Taksar, Heyman, "Regenerative analysis and steady state distributions for Markov chains", 1985.
"""

import math
from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing, inner
from m3n.compiled.primitives.exponential import exp
from m3n.compiled.primitives.logarithm import log
from m3n.compiled.primitives.vector import LANES, load, multiply_add, splat, store

NOTHING = 40.0  # exp(-40) is nothing beside 1
SAFE = 1e-200  # what is lost by underflow, 1e-308, is nothing beside it


class WalkScratch(NamedTuple):
    """Memory for at most ``words`` words."""

    levels: np.ndarray  # (levels, words width) weights; of each level for those words that are left there
    reach: np.ndarray  # (words width,) F
    segments: np.ndarray  # (levels, 3) integers: first word that is left, end, what is done
    tops: np.ndarray  # (width,)
    sums: np.ndarray  # (width,)


@inner
def walk_scratch(words):
    """Scratch memory."""
    depth = 2
    while 1 << (depth - 2) < words:
        depth += 1
    size = (words + 1) * width_of(words)
    vectors = np.zeros((2, width_of(words)))
    return WalkScratch(np.zeros((depth, size)), np.zeros(size), np.zeros((depth, 3), np.int64), vectors[0], vectors[1])


@borrowing
def width_of(words):
    """Room for a row."""
    return words + LANES


@borrowing
def solve_walks(words, with_root, mu, work):
    """F of words 1..words, from the weights of level 0, which stay; log of the sum over all trees, times mu if mu > 0.

    It is -inf if there are no trees, and NaN if a weight is too small to be one: take logarithms then.
    """
    depth, value, segments = 0, 0.0, work.segments
    segments[0, 0], segments[0, 1], segments[0, 2] = 1, words + 1, 0
    while depth >= 0:
        low, high, stage = segments[depth]
        middle = (low + high) // 2
        segments[depth, 2] += 1
        if high - low == 1:
            work.reach[low * width_of(words) + low] = -np.inf if mu > 0.0 else 0.0
            if low == 1:
                value += _logarithm(work.levels[depth, low * width_of(words)], mu)
            depth -= 1
            continue
        if stage == 1:
            _reach_right(words, low, middle, high, mu, work.levels[depth + 1], work)
        elif stage == 2:
            _reach_left(words, low, middle, high, mu, work.levels[depth + 1], work)
            depth -= 1
            continue
        found = _halve(words, low, middle, high, stage == 0, with_root, mu, depth, work)
        if not found > -np.inf:
            return found
        value += found if stage == 0 and low == 1 else 0.0
        depth += 1
        segments[depth, 0], segments[depth, 1] = (low, middle) if stage == 0 else (middle, high)
        segments[depth, 2] = 0
    return value


@borrowing
def _logarithm(s, mu):
    """log s, or s if it is one; NaN if it is not safe."""
    if mu > 0.0:
        return s
    return math.log(s) if s > SAFE else np.nan


@borrowing
def _halve(words, low, middle, high, right, with_root, mu, depth, work):
    """Weights of the next level, the right or the left half of the words eliminated; the sum of all log s."""
    weights, value = work.levels[depth + 1], 0.0
    _copy(width_of(words), low, high, work.levels[depth], weights)
    for k in range(high - middle if right else middle - low):
        if right:
            s = _eliminate(words, high - 1 - k, low, high - 1 - k, with_root, mu, weights)
        else:
            s = _eliminate(words, low + k, low + k + 1, high, with_root, mu, weights)
        value += _logarithm(s, mu)
        if not value > -np.inf:
            return value
    return value


@borrowing
def _copy(width, low, high, source, target):
    """What words low..high-1 and the root have to do with one another."""
    for d in range(low, high):
        target[d * width] = source[d * width]
        for at in range(d * width + low, d * width + high):
            target[at] = source[at]


@borrowing
def _eliminate(words, v, low, high, with_root, mu, weights):
    """Words low..high-1 are left without v; s(v), which is kept at w(v, v)."""
    width = width_of(words)
    row = v * width
    s = _total(weights, row, low, high, with_root, mu)
    weights[row + v] = s
    for d in range(low, high):
        at = d * width
        if mu > 0.0:
            factor = weights[at + v] - s
            if factor > -np.inf:
                weights[at] = _log_add(weights[at], factor + weights[row], mu)
                for h in range(low, high):
                    weights[at + h] = _log_add(weights[at + h], factor + weights[row + h], mu)
        elif weights[at + v] > 0.0:
            factor = weights[at + v] / s
            weights[at] += factor * weights[row]
            _add_multiple(weights, at + low, weights, row + low, high - low, factor)
    return s


@borrowing
def _total(weights, row, low, high, with_root, mu):
    """The sum of the weights of words low..high-1, and that of the root if it belongs to them."""
    if mu == 0.0:
        total = weights[row] if with_root else 0.0
        for h in range(low, high):
            total += weights[row + h]
        return total
    top, total = weights[row] if with_root else -np.inf, 0.0
    for h in range(low, high):
        top = max(top, weights[row + h])
    if not top > -np.inf:
        return top
    for h in range(low, high):
        total += exp((weights[row + h] - top) / mu)
    total += exp((weights[row] - top) / mu) if with_root else 0.0
    return top + mu * math.log(total)


@borrowing
def _log_add(a, b, mu):
    """mu log(exp(a/mu) + exp(b/mu))."""
    top, low = max(a, b), min(a, b)
    return top + mu * log(1.0 + exp((low - top) / mu)) if low > top - NOTHING * mu else top


@borrowing
def _add_multiple(x, at, y, bt, count, factor):
    """x[at + k] += factor y[bt + k] for k < count, and for up to three more."""
    factors = splat(factor)
    for k in range(0, count, LANES):
        store(x, at + k, multiply_add(load(y, bt + k), factors, load(x, at + k)))


@borrowing
def _reach_right(words, low, middle, high, mu, weights, work):
    """F(v, d) for v in the right half, which was eliminated from its end on, and d in the left one."""
    for v in range(middle, high):
        _reach(words, v, low, v, low, middle, mu, weights, work)


@borrowing
def _reach_left(words, low, middle, high, mu, weights, work):
    """F(v, d) for v in the left half, which was eliminated from its beginning on, and d in the right one."""
    for v in range(middle - 1, low - 1, -1):
        _reach(words, v, v + 1, high, middle, high, mu, weights, work)


@borrowing
def _reach(words, v, low, high, first, end, mu, weights, work):
    """F(v, d), d = first..end-1, from the words low..high-1 that were left beside v when it was eliminated."""
    width, reach = width_of(words), work.reach
    row = v * width
    root, s = weights[row], weights[row + v]
    if mu > 0.0:
        _reach_in_logarithms(words, row, low, high, first, end, mu, weights, work)
        return
    for d in range(first, end):
        reach[row + d] = root
    for h in range(low, high):
        if weights[row + h] > 0.0:
            _add_multiple(reach, row + first, reach, h * width + first, end - first, weights[row + h])
    for d in range(first, end):
        reach[row + d] /= s


@borrowing
def _reach_in_logarithms(words, row, low, high, first, end, mu, weights, work):
    width, reach, tops, sums = width_of(words), work.reach, work.tops, work.sums
    root, s = weights[row], weights[row + row // width]
    for d in range(first, end):
        tops[d], sums[d] = root, 0.0
    for h in range(low, high):
        for d in range(first, end):
            tops[d] = max(tops[d], weights[row + h] + reach[h * width + d])
    for d in range(first, end):
        tops[d] = tops[d] if tops[d] > -np.inf else 0.0
        sums[d] = exp((root - tops[d]) / mu)
    for h in range(low, high):
        for d in range(first, end):
            below = weights[row + h] + reach[h * width + d] - tops[d]
            if below > -NOTHING * mu:
                sums[d] += exp(below / mu)
    for d in range(first, end):
        reach[row + d] = tops[d] + mu * log(sums[d]) - s if sums[d] > 0.0 else -np.inf
