"""Forests whose pairs all score by shared tables: elimination without a table and an exponential per pair.

As in ``oracles.elimination`` a variable v sends a message to its only neighbour u that is still there. With a
shared table T(v, u) the exponentials of T are made once for all:

    pre_v(u) = sum_v a_v(v) E(v, u),   E(v, u) = exp((T(v, u) - column maximum)/mu)
    a_u      = exp(score_u/mu - top_u) prod_v pre_v(u)/M_v,   M_v = sum a_v,   value = mu sum_u (top_u + log M_u)
    p_v(v)   = a_v(v) sum_u E(v, u) p_u(u)/pre_v(u)

with the column maxima added to score_u. That is the recursion of ``oracles.chain_scaled``, where it is shown that
rounding does not hurt and what could underflow: as long as no product of pre_v(u)/M_v falls below ``SAFE``, nothing
that matters. Otherwise, also where a whole column of T is forbidden, the example is left to the log domain.

Matrix 2j is the shared table j, to be used where v is its first axis, and matrix 2j + 1 its transpose. Rows of all
arrays are padded to a multiple of eight. Buckets are kept in *slots*, those with the same matrix side by side, so that
expected counts are one product per matrix.
"""

import math
from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.oracles.chain_scaled import SAFE, SMALL
from m3n.compiled.oracles.elimination_links import LEAST, first_top, row_top
from m3n.compiled.primitives.padded import add_products, add_to, copy, maxima, product
from m3n.compiled.primitives.vector import (
    add,
    exponential,
    load,
    lowest,
    minimum,
    multiply,
    padded,
    ratio,
    splat,
    store,
    subtract,
    total,
)

PARENT, OTHER, MATRIX, SLOT = range(4)  # columns of pairs


class Forests(NamedTuple):
    """What a programme says about the shapes that are forests with shared tables."""

    plain: np.ndarray  # (shapes,) whether the shape is one
    variables: np.ndarray  # (buckets,) the variable of every bucket
    pairs: np.ndarray  # (buckets, 4) slot of the neighbour or -1, the neighbour, matrix, own slot
    groups: np.ndarray  # (shapes, matrices + 1) slots of every matrix
    arrays: np.ndarray  # (tables,) number of a shared table's array
    used: np.ndarray  # (matrices,) whether any shape uses it


class Pairs(NamedTuple):
    """Memory for one example and the matrices; rows are padded to a multiple of eight."""

    scores: np.ndarray  # (slots * labels,), later marginals
    inward: np.ndarray  # (slots * labels,), products of pre / M
    forward: np.ndarray  # (slots * labels,), a
    pre: np.ndarray  # (slots * labels + labels,), that of slot k in row k + 1
    matrices: np.ndarray  # (matrices, labels, labels), T or E
    transposed: np.ndarray  # (matrices, labels, labels), of E
    products: np.ndarray  # (matrices, labels, labels), sums of a_v(v) p_u(u)/pre_v(u)
    shifts: np.ndarray  # (matrices, labels), column maxima
    row: np.ndarray  # (labels,)


@compiled
def pairs_for(forests, labels, slots):
    """Memory for examples with so many variables."""
    width, matrices = padded(labels), forests.used.shape[0]
    return Pairs(
        np.empty(slots * width),
        np.empty(slots * width),
        np.empty(slots * width),
        np.empty(slots * width + width),
        np.zeros((matrices, width, width)),
        np.zeros((matrices, width, width)),
        np.zeros((matrices, width, width)),
        np.zeros((matrices, width)),
        np.zeros(width),
    )


@inner
def lay_matrix(matrix, theta, at, labels, turned):
    """A shared table of theta as a padded matrix, or its transpose."""
    for i in range(labels):
        for j in range(labels):
            matrix[i, j] = theta[at + (j * labels + i if turned else i * labels + j)]


@inner
def lay_matrices(forests, shape, theta, bases, labels, pairs):
    """The matrices that a shape uses, those of any shape if it is -1."""
    for k in range(forests.used.shape[0]):
        if forests.used[k] if shape < 0 else forests.groups[shape, k] < forests.groups[shape, k + 1]:
            lay_matrix(pairs.matrices[k], theta, bases[forests.arrays[k // 2]], labels, k % 2 == 1)


@inner
def exponentiate_matrices(forests, shape, labels, mu, pairs):
    """T becomes E, with its transpose; column maxima; products are 0.

    Labels that only pad are led to with weight 1, so that they look safe; their own scores are -inf.
    """
    for k in range(forests.used.shape[0]):
        if forests.used[k] if shape < 0 else forests.groups[shape, k] < forests.groups[shape, k + 1]:
            matrix, turned, shifts = pairs.matrices[k], pairs.transposed[k], pairs.shifts[k]
            width = matrix.shape[1]
            for j in range(labels):
                shifts[j] = -np.inf
            for i in range(labels):
                for j in range(labels):
                    shifts[j] = max(shifts[j], matrix[i, j])
            for j in range(labels):
                shifts[j] = max(shifts[j], LEAST)  # nothing leads to label j: no pre is safe then
            for i in range(labels):
                for j in range(labels, width):
                    matrix[i, j] = 0.0
                for c in range(0, width, 4):
                    x = subtract(load(matrix, i * width + c), load(shifts, c))
                    store(matrix, i * width + c, exponential(multiply(x, splat(1.0 / mu))))
                for j in range(width):
                    turned[j, i] = matrix[i, j]
            pairs.products[k] = 0.0


@inner
def sum_matrices(forests, shape, labels, tallies, pairs, counts):
    """The expected counts of all pairs that met their matrix since it was made."""
    for k in range(forests.used.shape[0]):
        if forests.used[k] if shape < 0 else forests.groups[shape, k] < forests.groups[shape, k + 1]:
            at, matrix, products = tallies[forests.arrays[k // 2]], pairs.matrices[k], pairs.products[k]
            for i in range(labels):
                for j in range(labels):
                    counts[at + (j * labels + i if k % 2 else i * labels + j)] += matrix[i, j] * products[i, j]


@inner
def hard_forest(variables, links, first, last, theta, node, labels, path, pairs):
    """The best score of one example, buckets first..last-1; its labels (lowest at ties) are written to ``path``.

    ``links`` are those of ``Forests.pairs``; the node scores begin at ``node`` in theta.
    """
    scores, matrices, row = pairs.scores, pairs.matrices, pairs.row
    width, value = row.shape[0], 0.0
    for b in range(first, last):
        copy(theta, node + variables[b] * labels, labels, scores, links[b, SLOT] * width)
    for b in range(first, last):
        parent, at = links[b, PARENT], links[b, SLOT] * width
        if parent < 0:
            value += row_top(scores, at, labels)
        else:
            maxima(scores, at, labels, matrices[links[b, MATRIX]], row, 0)
            add_to(scores, parent * width, row)
    for b in range(last - 1, first - 1, -1):
        at = links[b, SLOT] * width
        if links[b, PARENT] >= 0:
            given, matrix = path[links[b, OTHER]], matrices[links[b, MATRIX]]
            for j in range(labels):
                scores[at + j] += matrix[j, given]
        path[variables[b]] = first_top(scores, at, labels, 1)
    return value


@inner
def soft_forest(variables, links, groups, first, last, theta, node, labels, mu, weight, pairs):
    """The exp-oracle of one example: its value, or NaN if underflow might matter, and then ``theta`` stays as it was.

    Arguments as for ``hard_forest``; ``groups`` are the slots of every matrix. Node marginals times the weight are
    written over the scores; what the pairs need is added to ``products``.
    """
    scores, inward, width = pairs.scores, pairs.inward, pairs.row.shape[0]
    for b in range(first, last):
        at = links[b, SLOT] * width
        for c in range(at, at + width, 4):
            store(inward, c, splat(1.0))
            store(scores, c, splat(-np.inf))
        copy(theta, node + variables[b] * labels, labels, scores, at)
    value = collect(links, first, last, labels, mu, pairs)
    if math.isnan(value):
        return value
    for b in range(last - 1, first - 1, -1):
        at = links[b, SLOT] * width
        retreat(links[b, PARENT], links[b, MATRIX], at, labels, weight, pairs)
        copy(scores, at, labels, theta, node + variables[b] * labels)
    for k in range(groups.shape[0] - 1):
        count, at = groups[k + 1] - groups[k], groups[k] * width
        if count > 0:
            add_products(pairs.forward[at:], pairs.pre[at:], count + 1, labels, pairs.products[k])
    return value


@inner
def collect(links, first, last, labels, mu, pairs):
    """a_v and pre_v of all variables of one example; its value, or NaN."""
    scores, inward, forward, pre, width = pairs.scores, pairs.inward, pairs.forward, pairs.pre, pairs.row.shape[0]
    value, scale = 0.0, 1.0  # the value is kept as value + mu log(scale): a logarithm now and then
    for b in range(first, last):
        parent, at = links[b, PARENT], links[b, SLOT] * width
        top = row_top(scores, at, width)
        mass, least = weigh(scores, inward, at, width, mu, top, 0.0, forward)
        if not (least > SAFE and mass > SAFE):
            return np.nan
        value += top
        if mass < SMALL:
            higher = math.log(mass)  # a higher top: the mass is now about 1
            value += mu * higher
            mass, _ = weigh(scores, inward, at, width, mu, top, higher, forward)
        scale *= mass
        if not 1e-150 < scale < 1e150:
            value += mu * math.log(scale)
            scale = 1.0
        if parent >= 0:
            k, p, inverse = links[b, MATRIX], parent * width, splat(1.0 / mass)
            product(forward, at, labels, pairs.matrices[k], pre, at + width)
            for c in range(0, width, 4):
                x = multiply(load(pre, at + width + c), inverse)
                store(inward, p + c, multiply(load(inward, p + c), x))
                store(scores, p + c, add(load(scores, p + c), load(pairs.shifts, k * width + c)))
    return value + mu * math.log(scale)


@inner
def weigh(scores, inward, at, width, mu, top, higher, forward):
    """a = exp((score - top)/mu - higher) inward; its sum, and the least of ``inward``."""
    lower, colder, mass, least = splat(top + mu * higher), splat(1.0 / mu), splat(0.0), splat(1.0)
    for c in range(at, at + width, 4):
        x = load(inward, c)
        least = minimum(x, least)
        x = multiply(x, exponential(multiply(subtract(load(scores, c), lower), colder)))
        mass = add(mass, x)
        store(forward, c, x)
    return total(mass), lowest(least)


@inner
def retreat(parent, matrix, at, labels, weight, pairs):
    """The marginals of one variable over its scores, from those of its neighbour."""
    scores, forward, pre, width = pairs.scores, pairs.forward, pairs.pre, pairs.row.shape[0]
    if parent < 0:
        mass = splat(0.0)
        for c in range(at, at + width, 4):
            mass = add(mass, load(forward, c))
        inverse = splat(weight / total(mass))
        for c in range(at, at + width, 4):
            store(scores, c, multiply(load(forward, c), inverse))
        return
    p = parent * width
    for c in range(0, width, 4):
        store(pre, at + width + c, ratio(load(scores, p + c), load(pre, at + width + c)))
    product(pre, at + width, labels, pairs.transposed[matrix], scores, at)
    for c in range(at, at + width, 4):
        store(scores, c, multiply(load(scores, c), load(forward, c)))
