"""The exp-oracle of chains by scaled probabilities: fast, and used wherever underflow cannot matter.

Forward probabilities a_t are normalised at every position:

    pre_t = a_{t-1} T,   a_t ∝ pre_t * exp(node_t/mu),   T_ij = exp((transition_ij - column maximum)/mu)
    p_{t-1}(i) = a_{t-1}(i) sum_j T_ij p_t(j)/pre_t(j)

three matrix-vector products per token and no exponential per pair of labels. Rounding never hurts as all terms are
non-negative; underflow could. a_t is scaled again where its first scaling leaves it below ``SMALL``, so whatever is
lost of a_{t-1}(i) T_ij is below 1e-267, and as long as no pre_t(j) falls below ``SAFE`` the loss is relatively nil. A
pre_t(j) below it is right, and exactly zero, if label j cannot be reached because the structure forbids it; otherwise
the sequence is left to ``chain_log``.

Layout as in ``chain``; scratch rows are padded to a multiple of eight numbers. Cost per token: O(labels^2).
"""

import math

import numpy as np

from m3n.kernels._jit import inlined, kernel
from m3n.kernels.padded import add_products, add_to, copy, paste, product
from m3n.kernels.vector import (
    add,
    exponential,
    highest,
    load,
    lowest,
    maximum,
    minimum,
    multiply,
    ratio,
    splat,
    store,
    subtract,
    total,
)

SAFE = 1e-250
SMALL = 1e-40  # a total below it is scaled again: 1e-308 / SMALL is still far below SAFE


@kernel
def soft_scaled(node, transition, offsets, low, high, mu, values, counts, sequences, tables, vectors):
    """The exp-oracle on sequences low..high-1 by the scaled recursion, where that is safe.

    ``node``, which includes start and end scores, is overwritten by its marginals; expected transition counts are
    added to ``counts``; ``values[k]`` becomes mu log sum exp(score/mu). Where underflow might matter ``values[k]``
    becomes NaN and ``node`` stays as it was: ``soft_log`` finishes the work. Scratch, with rows padded to a multiple of
    eight: ``sequences`` (2, longest sequence, labels), ``tables`` (3, labels, labels), ``vectors`` (3, labels).
    """
    labels = node.shape[1]
    weights, products = tables[0], tables[2]
    _exponentiate(transition, mu, tables, vectors)
    for k in range(low, high):
        length = offsets[k + 1] - offsets[k]
        values[k] = _forward(node, offsets[k], length, transition, mu, sequences, weights, vectors)
        if not math.isnan(values[k]):
            _backward(node, offsets[k], length, sequences, tables, vectors)
    for i in range(labels):
        for j in range(labels):
            counts[i, j] += weights[i, j] * products[i, j]


@inlined
def _exponentiate(transition, mu, tables, vectors):
    """tables = T, its transpose, zero; vectors[1] = the column maxima that were taken out of T.

    Labels that only pad have no score (vectors[0] = -inf) and are never reached from, but T leads to them: their pre is
    1, so that they look safe.
    """
    labels, width = transition.shape[0], tables.shape[1]
    tables[:] = 0.0
    vectors[0, :] = -np.inf
    vectors[1, :] = 0.0
    for j in range(width):
        top = -np.inf
        for i in range(labels):
            top = max(top, transition[i, j] if j < labels else 0.0)
        if j < labels and top > -np.inf:
            vectors[1, j] = top
        for i in range(labels):
            tables[0, i, j] = math.exp((transition[i, j] - vectors[1, j]) / mu) if j < labels else 1.0
            tables[1, j, i] = tables[0, i, j]


@kernel
def _forward(node, first, length, transition, mu, sequences, weights, vectors):
    """a_t and pre_t of one sequence; returns its value, or NaN if underflow might matter."""
    labels, width = node.shape[1], weights.shape[1]
    forward, pre, scores = sequences[0], sequences[1], vectors[0]
    value, scale = 0.0, 1.0  # the value is kept as value + mu log(scale): a logarithm now and then
    for t in range(length):
        copy(node, (first + t) * labels, labels, scores)
        if t == 0:
            _fill(pre, width)
        else:
            add_to(scores, 0, vectors[1])
            product(forward, (t - 1) * width, labels, weights, pre, t * width)
        top = _highest(scores)
        if top == -np.inf:
            return np.nan
        mass, least = _weigh(scores, top, 1.0 / mu, pre, forward, t * width)
        if not least > SAFE and not _unreachable(node, first, t, transition, pre):
            return np.nan
        if mass < SMALL:
            if not mass > SAFE:
                return np.nan
            top += mu * math.log(mass)  # counts pre in, so that the total is now about 1
            mass, _ = _weigh(scores, top, 1.0 / mu, pre, forward, t * width)
        _shrink(forward, t * width, width, 1.0 / mass)
        value += top
        scale *= mass
        if not 1e-150 < scale < 1e150:
            value += mu * math.log(scale)
            scale = 1.0
    return value + mu * math.log(scale)


@kernel
def _backward(node, first, length, sequences, tables, vectors):
    """Marginals into ``node``; sum_t a_{t-1}(i) p_t(j)/pre_t(j) is added to tables[2]."""
    labels, width = node.shape[1], tables.shape[1]
    forward, pre, p, transposed = sequences[0], sequences[1], vectors[2], tables[1]
    for c in range(0, width, 4):
        store(p, c, load(forward, (length - 1) * width + c))
    paste(p, node, (first + length - 1) * labels, labels)
    for t in range(length - 1, 0, -1):
        at = t * width
        for c in range(0, width, 4):
            store(pre, at + c, ratio(load(p, c), load(pre, at + c)))
        product(pre, at, labels, transposed, p, 0)
        for c in range(0, width, 4):
            store(p, c, multiply(load(p, c), load(forward, at - width + c)))
        paste(p, node, (first + t - 1) * labels, labels)
    for i in range(labels):
        add_products(forward, pre, length, i, tables[2])


@kernel
def _fill(out, width):
    for c in range(0, width, 4):
        store(out, c, splat(1.0))


@kernel
def _shrink(x, at, width, factor):
    for c in range(at, at + width, 4):
        store(x, c, multiply(load(x, c), splat(factor)))


@kernel
def _highest(x):
    top = load(x, 0)
    for c in range(4, x.shape[0], 4):
        top = maximum(load(x, c), top)
    return highest(top)


@kernel
def _weigh(scores, top, inverse, pre, forward, at):
    """a(j) = pre(j) exp((score(j) - top)/mu); returns the sum of a and the least pre."""
    mass, least = splat(0.0), splat(1.0)
    for c in range(0, scores.shape[0], 4):
        b = load(pre, at + c)
        a = multiply(b, exponential(multiply(subtract(load(scores, c), splat(top)), splat(inverse))))
        mass, least = add(mass, a), minimum(b, least)
        store(forward, at + c, a)
    return total(mass), lowest(least)


@kernel
def _unreachable(node, first, t, transition, pre):
    """Whether every label with too small a pre_t is one that no allowed prefix leads to; its pre_t becomes 0.

    A label was possible one position earlier if its own score is not -inf and its pre is not 0. Whatever else makes a
    pre small is underflow, or not a number.
    """
    for j in range(node.shape[1]):
        if not pre[t, j] > SAFE:
            for i in range(node.shape[1]):
                possible = node[first + t - 1, i] > -np.inf and pre[t - 1, i] > 0.0
                if possible and not transition[i, j] == -np.inf:
                    return False
            pre[t, j] = 0.0
    return True
