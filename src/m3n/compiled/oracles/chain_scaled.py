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

from m3n.compiled.jit import compiled, inlined, inner
from m3n.compiled.primitives.padded import add_products, copy, product
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
def soft_scaled(node, transition, mu, weight, sequences, tables, vectors):
    """The exp-oracle of one sequence by the scaled recursion, where that is safe: mu log sum exp(score/mu).

    ``node``, which includes start and end scores, is overwritten by its marginals times the weight; what expected
    transition counts need is added to tables[2]. Where underflow might matter the answer is NaN and ``node`` stays as
    it was: ``soft_log`` finishes the work. ``tables`` and ``vectors`` are those of ``exponentiate``.
    """
    value = _forward(node, transition, mu, sequences, tables, vectors)
    if not math.isnan(value):
        _backward(node, weight, sequences, tables, vectors, transition.shape[0])
    return value


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
        copy(transition[i], 0, labels, tables[0, i], 0)
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


@inner
def _forward(node, transition, mu, sequences, tables, vectors):
    """a_t and pre_t of one sequence; returns its value, or NaN if underflow might matter."""
    labels, width = transition.shape[0], tables.shape[1]
    forward, pre, factors = sequences[0], sequences[1], tables[0]
    length, value = node.shape[0] // labels, exponentials(node, labels, mu, vectors, forward)
    scale = 1.0  # the value is kept as value + mu log(scale): a logarithm now and then
    inverse = 1.0  # of the mass one position before
    for c in range(0, width, 4):
        store(pre, c, splat(1.0))
    for t in range(length):
        if t > 0:
            product(forward, (t - 1) * width, labels, factors, pre, t * width)
        mass, least = weigh(pre, inverse, forward, t * width)
        if not least > SAFE and not unreachable(node, t, transition, inverse, pre):
            return np.nan
        if mass < SMALL:
            if not mass > SAFE:
                return np.nan
            value += mu * math.log(mass)  # a higher top, which counts pre in: the mass is now about 1
            exponential_row(node, labels, t, mu, math.log(mass), vectors, forward)
            mass, _ = weigh(pre, inverse, forward, t * width)
        inverse = 1.0 / mass
        scale *= mass
        if not 1e-150 < scale < 1e150:
            value += mu * math.log(scale)
            scale = 1.0
    return value + mu * math.log(scale)


@inner
def exponentials(node, labels, mu, vectors, out):
    """The first factor of a_t at all positions, ahead of the recursion as none waits for another; the sum of tops."""
    width, value, t = out.shape[1], 0.0, 0
    while t * labels + width <= node.shape[0]:  # rows that are followed by enough to be read in whole vectors
        shift = width if t > 0 else 3 * width
        value += _exponential_of(node, t * labels, vectors, shift, mu, 0.0, out, t * width)
        t += 1
    for last in range(t, node.shape[0] // labels):
        value += exponential_row(node, labels, last, mu, 0.0, vectors, out)
    return value


@inner
def exponential_row(node, labels, t, mu, higher, vectors, out):
    """One row, wherever it lies, through a copy."""
    width = out.shape[1]
    copy(node, t * labels, labels, vectors[0], 0)  # whose padding is zero
    return _exponential_of(vectors, 0, vectors, width if t > 0 else 3 * width, mu, higher, out, t * width)


@inner
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


@inner
def _backward(node, weight, sequences, tables, vectors, labels):
    """Marginals times the weight into ``node``; sum_t a_{t-1}(i) p_t(j)/pre_t(j) is added to tables[2]."""
    length, width = node.shape[0] // labels, tables.shape[1]
    forward, pre, p, transposed = sequences[0], sequences[1], vectors[2], tables[1]
    last, mass = (length - 1) * width, splat(0.0)
    for c in range(last, last + width, 4):
        mass = add(mass, load(forward, c))
    inverse = splat(weight / total(mass))
    for c in range(0, width, 4):
        store(p, c, multiply(load(forward, last + c), inverse))
    copy(p, 0, labels, node, (length - 1) * labels)
    for t in range(length - 1, 0, -1):
        at = t * width
        for c in range(0, width, 4):
            store(pre, at + c, ratio(load(p, c), load(pre, at + c)))
        product(pre, at, labels, transposed, p, 0)
        for c in range(0, width, 4):
            store(p, c, multiply(load(p, c), load(forward, at - width + c)))
        copy(p, 0, labels, node, (t - 1) * labels)
    add_products(forward, pre, length, labels, tables[2])


@inner
def weigh(pre, inverse, forward, at):
    """forward(j) *= inverse pre(j); returns the sum and the least inverse pre(j)."""
    mass, least = splat(0.0), splat(1.0)
    for c in range(at, at + pre.shape[1], 4):
        b = multiply(load(pre, c), splat(inverse))
        a = multiply(b, load(forward, c))
        mass, least = add(mass, a), minimum(b, least)
        store(forward, c, a)
    return total(mass), lowest(least)


@inner
def unreachable(node, t, transition, inverse, pre):
    """Whether every label with too small a pre_t is one that no allowed prefix leads to; its pre_t becomes 0.

    A label was possible one position earlier if its own score is not -inf and its pre is not 0. Whatever else makes a
    pre small is underflow, or not a number.
    """
    labels = transition.shape[0]
    for j in range(labels):
        if not inverse * pre[t, j] > SAFE:
            for i in range(labels):
                possible = node[(t - 1) * labels + i] > -np.inf and pre[t - 1, i] > 0.0
                if possible and not transition[i, j] == -np.inf:
                    return False
            pre[t, j] = 0.0
    return True
