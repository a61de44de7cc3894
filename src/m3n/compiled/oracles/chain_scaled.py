"""The exp-oracle of chains by scaled probabilities: fast, and used wherever underflow cannot matter.

Forward weights a_t, divided at every position by the mass M_{t-1} = sum_j a_{t-1}(j) of the one before:

    pre_t = a_{t-1} T,   a_t = pre_t/M_{t-1} * exp(node_t/mu - top_t),   T_ij = exp((transition_ij - column maximum)/mu)
    p_{t-1}(i) = a_{t-1}(i) sum_j T_ij p_t(j)/pre_t(j),   value = mu sum_t (top_t + log M_t)

three matrix-vector products per token and no exponential per pair of labels; the mass of one position is summed while
the product of the next one runs. Rounding never hurts as all terms are non-negative; underflow could. a_t is scaled
again where its mass is below ``SMALL``, so whatever is lost of a_{t-1}(i) T_ij is below 1e-266 of the mass, and as long
as no pre_t(j)/M_{t-1} falls below ``SAFE`` the loss is relatively nil. Below it is right, and exactly zero, if label j
cannot be reached because the structure forbids it; otherwise the sequence is left to ``chain_log``.

Layout as in ``chain``; scratch rows are padded to a multiple of eight numbers. Cost per token: O(labels^2).
"""

import math

import numpy as np

from m3n.compiled.jit import compiled, inlined
from m3n.compiled.primitives.padded import add_products, copy, paste, product
from m3n.compiled.primitives.vector import (
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


@compiled
def soft_scaled(node, transition, offsets, low, high, mu, values, counts, weights, sequences, tables, vectors):
    """The exp-oracle on sequences low..high-1 by the scaled recursion, where that is safe.

    ``node``, which includes start and end scores, is overwritten by its marginals; expected transition counts are
    added to ``counts``; both times ``weights[k]`` for sequence k. ``values[k]`` becomes mu log sum exp(score/mu). Where
    underflow might matter ``values[k]`` becomes NaN and ``node`` stays as it was: ``soft_log`` finishes the work.
    Scratch, with rows padded to a multiple of eight: ``sequences`` (2, longest sequence, labels), ``tables`` (3,
    labels, labels), ``vectors`` (4, labels).
    """
    labels = node.shape[1]
    factors, products = tables[0], tables[2]
    exponentiate(transition, mu, tables, vectors)
    for k in range(low, high):
        length = offsets[k + 1] - offsets[k]
        values[k] = _forward(node, offsets[k], length, transition, mu, sequences, factors, vectors)
        if not math.isnan(values[k]):
            _backward(node, offsets[k], length, weights[k], sequences, tables, vectors)
    for i in range(labels):
        for j in range(labels):
            counts[i, j] += factors[i, j] * products[i, j]


@inlined
def exponentiate(transition, mu, tables, vectors):
    """tables = T, its transpose, zero; vectors[1] = the column maxima that were taken out of T.

    Labels that only pad have a score of -inf, through vectors[1] and, for first positions, vectors[3]. They are never
    reached from, but T leads to them with weight 1, so that they look safe.
    """
    labels, width = transition.shape[0], tables.shape[1]
    tables[:] = 0.0
    vectors[1, :] = -np.inf
    vectors[3, :] = 0.0
    vectors[3, labels:] = -np.inf
    for i in range(labels):
        copy(transition, i * labels, labels, tables[0, i])
        for c in range(0, width, 4):
            store(vectors, width + c, maximum(load(tables, i * width + c), load(vectors, width + c)))
    for j in range(labels):
        if vectors[1, j] == -np.inf:
            vectors[1, j] = 0.0  # a label that nothing leads to
    colder = splat(1.0 / mu)
    for i in range(labels):
        for c in range(0, width, 4):
            x = subtract(load(tables, i * width + c), load(vectors, width + c))
            store(tables, i * width + c, exponential(multiply(x, colder)))
        for j in range(width):
            tables[1, j, i] = tables[0, i, j]
    vectors[1, labels:] = -np.inf


@compiled
def _forward(node, first, length, transition, mu, sequences, weights, vectors):
    """a_t and pre_t of one sequence; returns its value, or NaN if underflow might matter."""
    labels, width = node.shape[1], weights.shape[1]
    forward, pre = sequences[0], sequences[1]
    value = _exponentials(node, first, length, mu, vectors, forward)
    scale = 1.0  # the value is kept as value + mu log(scale): a logarithm now and then
    inverse = 1.0  # of the mass one position before
    for c in range(0, width, 4):
        store(pre, c, splat(1.0))
    for t in range(length):
        if t > 0:
            product(forward, (t - 1) * width, labels, weights, pre, t * width)
        mass, least = _weigh(pre, inverse, forward, t * width)
        if not least > SAFE and not _unreachable(node, first, t, transition, inverse, pre):
            return np.nan
        if mass < SMALL:
            if not mass > SAFE:
                return np.nan
            value += mu * math.log(mass)  # a higher top, which counts pre in: the mass is now about 1
            _exponential_row(node, first, t, mu, math.log(mass), vectors, forward)
            mass, _ = _weigh(pre, inverse, forward, t * width)
        inverse = 1.0 / mass
        scale *= mass
        if not 1e-150 < scale < 1e150:
            value += mu * math.log(scale)
            scale = 1.0
    return value + mu * math.log(scale)


@compiled
def _exponentials(node, first, length, mu, vectors, out):
    """The first factor of a_t at all positions, ahead of the recursion as none waits for another; the sum of tops."""
    labels, width = node.shape[1], out.shape[1]
    inside = length  # rows that are followed by enough of the array to be read in whole vectors
    while inside > 0 and (first + inside - 1) * labels + width > node.size:
        inside -= 1
    value = 0.0
    for t in range(inside):
        shift = width if t > 0 else 3 * width
        value += _exponential_of(node, (first + t) * labels, vectors, shift, mu, 0.0, out, t * width)
    for t in range(inside, length):
        value += _exponential_row(node, first, t, mu, 0.0, vectors, out)
    return value


@compiled
def _exponential_row(node, first, t, mu, higher, vectors, out):
    """One row, wherever it lies, through a copy."""
    labels, width = node.shape[1], out.shape[1]
    vectors[0, :] = 0.0
    copy(node, (first + t) * labels, labels, vectors[0])
    return _exponential_of(vectors, 0, vectors, width if t > 0 else 3 * width, mu, higher, out, t * width)


@compiled
def _exponential_of(scores, at, vectors, shift, mu, higher, out, place):
    """out_t(j) = exp((score_t(j) - top_t)/mu - higher); returns top_t.

    What is added to the scores is given by its place in ``vectors``, where labels that only pad have -inf: so what is
    read beyond the end of a row does not count.
    """
    width = vectors.shape[1]
    tops = add(load(scores, at), load(vectors, shift))
    for c in range(4, width, 4):
        tops = maximum(add(load(scores, at + c), load(vectors, shift + c)), tops)
    top = highest(tops)
    lower, colder = splat(top + mu * higher), splat(1.0 / mu)
    for c in range(0, width, 4):
        x = subtract(add(load(scores, at + c), load(vectors, shift + c)), lower)
        store(out, place + c, exponential(multiply(x, colder)))
    return top


@compiled
def _backward(node, first, length, weight, sequences, tables, vectors):
    """Marginals times the weight into ``node``; sum_t a_{t-1}(i) p_t(j)/pre_t(j) is added to tables[2]."""
    labels, width = node.shape[1], tables.shape[1]
    forward, pre, p, transposed = sequences[0], sequences[1], vectors[2], tables[1]
    last, mass = (length - 1) * width, splat(0.0)
    for c in range(last, last + width, 4):
        mass = add(mass, load(forward, c))
    inverse = splat(weight / total(mass))
    for c in range(0, width, 4):
        store(p, c, multiply(load(forward, last + c), inverse))
    paste(p, node, (first + length - 1) * labels, labels)
    for t in range(length - 1, 0, -1):
        at = t * width
        for c in range(0, width, 4):
            store(pre, at + c, ratio(load(p, c), load(pre, at + c)))
        product(pre, at, labels, transposed, p, 0)
        for c in range(0, width, 4):
            store(p, c, multiply(load(p, c), load(forward, at - width + c)))
        paste(p, node, (first + t - 1) * labels, labels)
    add_products(forward, pre, length, labels, tables[2])


@compiled
def _weigh(pre, inverse, forward, at):
    """forward(j) *= inverse pre(j); returns the sum and the least inverse pre(j)."""
    mass, least = splat(0.0), splat(1.0)
    for c in range(at, at + pre.shape[1], 4):
        b = multiply(load(pre, c), splat(inverse))
        a = multiply(b, load(forward, c))
        mass, least = add(mass, a), minimum(b, least)
        store(forward, c, a)
    return total(mass), lowest(least)


@compiled
def _unreachable(node, first, t, transition, inverse, pre):
    """Whether every label with too small a pre_t is one that no allowed prefix leads to; its pre_t becomes 0.

    A label was possible one position earlier if its own score is not -inf and its pre is not 0. Whatever else makes a
    pre small is underflow, or not a number.
    """
    for j in range(node.shape[1]):
        if not inverse * pre[t, j] > SAFE:
            for i in range(node.shape[1]):
                possible = node[first + t - 1, i] > -np.inf and pre[t - 1, i] > 0.0
                if possible and not transition[i, j] == -np.inf:
                    return False
            pre[t, j] = 0.0
    return True
