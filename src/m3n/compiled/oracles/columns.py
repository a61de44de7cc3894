"""Sums over the predecessors x of states y, by products of matrices wherever these are safe.

    f(y) = mu log sum_x exp{ (g(x) + step(x, y))/mu }

With a(x) = exp(g(x)/mu), the largest g being 0, and T_xy = exp((step(x, y) - top(y))/mu), top(y) the largest step to y,
this is top + mu log pre, pre = a T. A *column* y with pre(y) below ``SAFE`` might have lost terms by underflow: it is
summed again with logarithms, and its pre becomes 0. Backwards, with p the probabilities of y, those of x are

    p(x) = a(x) sum_y T_xy p(y)/pre(y)

plus what columns that were not safe divide among their predecessors. Functions of one column are inlined: a call would
cost as much as their work.
"""

import math

import numpy as np

from m3n.compiled.jit import inlined, inner
from m3n.compiled.oracles.chain_scaled import SAFE
from m3n.compiled.primitives.exponential import exp
from m3n.compiled.primitives.logarithm import log


@inner
def warm_up(g, count, mu, a):
    """a = exp(g/mu)."""
    inverse = 1.0 / mu
    for x in range(count):
        a[x] = exp(g[x] * inverse)


@inner
def take_logarithms(pre, tops, count, width, mu, f):
    """f from pre; whether all of it is safe. The rows are ``width`` long, of which ``count`` are states."""
    for y in range(width):
        f[y] = tops[y] + mu * log(max(pre[y], SAFE))
    for y in range(count):
        if not pre[y] > SAFE:
            return False
    return True


@inlined
def sum_column(g, sources, first, after, steps, at, stride, mu):
    """f(y) of a column with logarithms; steps[at + k stride] leads to it from sources[first + k], first + k < after."""
    top, total = _largest_and_total(g, sources, first, after, steps, at, stride, mu)
    return top + mu * math.log(total) if top > -np.inf else -np.inf


@inlined
def divide_column(p, g, sources, first, after, steps, at, stride, mu, before, counts):
    """Add the probability p of a column to those of its predecessors, and to the counts of its steps."""
    top, total = _largest_and_total(g, sources, first, after, steps, at, stride, mu)
    for k in range(first, after):
        chance = p * exp((g[sources[k]] + steps[at] - top) / mu) / total
        before[sources[k]] += chance
        counts[at] += chance
        at += stride


@inlined
def _largest_and_total(g, sources, first, after, steps, at, stride, mu):
    top, total, start = -np.inf, 0.0, at
    for k in range(first, after):
        top = max(top, g[sources[k]] + steps[at])
        at += stride
    if top > -np.inf:
        at = start
        for k in range(first, after):
            total += exp((g[sources[k]] + steps[at] - top) / mu)
            at += stride
    return top, total


@inner
def take_ratios(p, count, pre):
    """pre becomes p/pre, and -1 where it was not safe though p is positive; whether there are none of these."""
    for y in range(count):
        pre[y] = p[y] / pre[y] if pre[y] > 0.0 else (-1.0 if p[y] > 0.0 else 0.0)
    for y in range(count):
        if pre[y] < 0.0:
            return False
    return True
