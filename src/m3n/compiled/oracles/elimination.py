"""Both oracles of a factor graph by bucket elimination, one example at a time, in the log domain.

Variables are eliminated one after another. The *bucket* of variable v is a table t(v, S) over v and its neighbours S
that are still there: the sum of the scores of v, of the factors that no earlier bucket took, and of the messages of
earlier buckets. It sends a message to the bucket of the first variable of S to be eliminated:

    max-oracle   message(S) = max_v t(v, S)
    exp-oracle   message(S) = mu log sum_v exp(t(v, S)/mu),    q(v | S) = exp((t(v, S) - message(S))/mu) in the table

Without S the message is a summand of the value. Then the buckets in reverse: the best label of v given those of S is
looked for in its column; or p(v, S) = q(v | S) p(S), where p(S) was summed up from the table that got the message.
Columns of conditional probabilities sum to one, so marginals are those of a distribution at any temperature, and
nothing underflows that matters. A message's maximum is taken out and added to the value, so that rounding errors do not
grow with the number of variables.

A table has one row per label of v, padded to a multiple of four; the variables of S follow in the order of their
elimination. So all of the reductions above run over many columns at once. Padding holds the scores of v alone; p(S)
is 0 there.

Examples of the same shape share one list of buckets. Its ``links`` (``oracles.elimination_links``) say where
scores come from: array a of theta at ``bases[a]`` plus the link's own offset. Links of v alone come first in a bucket:
they are summed in a vector before the table is made. Then those of v and one more variable, which are added while the
table is made. Only those of more variables take a walk over the whole table each. Cost: labels^(|S| + 1) per bucket,
one exponential for each entry.

Reference: Dechter, "Bucket elimination: a unifying framework for reasoning", 1999.
"""

import math
from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing, compiled, inlined, inner
from m3n.compiled.oracles.elimination_links import add_link, add_row, first_top, row_top, shift_row, sum_link
from m3n.compiled.oracles.elimination_pairs import (
    exponentiate_matrices,
    hard_forest,
    lay_matrices,
    soft_forest,
    sum_matrices,
)
from m3n.compiled.oracles.elimination_tables import (
    ARRAY,
    DIMS,
    LEAD,
    MESSAGES,
    OFFSET,
    SIZE,
    add_logarithms,
    exponentiate,
    grow,
    join,
    keep,
    shrink,
    tops,
)
from m3n.compiled.primitives.padded import copy
from m3n.compiled.primitives.vector import load, ratio, splat, store

# columns of buckets; members and links of a bucket end where those of the next one begin
VARIABLE, COLUMNS, WIDTH, TABLE, MESSAGE, MEMBERS, LINKS, PAIRS, WIDE = range(9)


class Programme(NamedTuple):
    """The buckets of all shapes, one after another, and the layout of theta."""

    starts: np.ndarray  # (shapes + 1,) first bucket of every shape
    buckets: np.ndarray  # (buckets + 1, 9) v, labellings of S, the same padded, places of table and message, and ranges
    members: np.ndarray  # the variables S of every bucket
    links: (
        np.ndarray
    )  # (links + 1, 7) array, place in it, entries there, stride of v, the only member, its stride, dims
    dims: np.ndarray  # (dims, 2) extent and stride of the variables of S
    factors: np.ndarray  # (factors + 1, 2) array, first of scopes; array by array in every shape
    factor_starts: np.ndarray  # (shapes + 1,) first factor of every shape
    scopes: np.ndarray  # the variables of every factor
    sizes: np.ndarray  # (arrays,) entries of a row of every array
    shared: np.ndarray  # (arrays,) whether it is one table for all examples
    tallies: np.ndarray  # (arrays,) where the marginals of a shared array are summed
    labels: int


class Scratch(NamedTuple):
    """Memory for one example."""

    tables: np.ndarray  # of all buckets
    messages: np.ndarray  # of all buckets
    inverses: np.ndarray  # of all buckets: 1 / sum of a column
    row: np.ndarray  # (labels,)
    sums: np.ndarray  # (labels,)
    digits: np.ndarray  # (widest bucket,) integers
    bases: np.ndarray  # (arrays,) integers


@compiled
def scratch_for(programme, entries, width):
    """Memory for examples with so many table entries, padding included, and buckets of so many variables."""
    return Scratch(
        np.empty(entries),
        np.empty(entries // programme.labels),
        np.empty(entries // programme.labels),
        np.empty(programme.labels),
        np.empty(programme.labels),
        np.empty(width, np.int64),
        np.empty(programme.sizes.shape[0], np.int64),
    )


@borrowing
def hard_one(programme, shape, theta, mass, path, scratch):
    """The best score of one example; its labels (lowest at ties) are written to ``path``.

    With ``mass``, a number for every entry of its tables, only labellings count whose entries all have a positive one;
    without such a labelling the score is -inf. An empty ``mass`` allows everything.
    """
    buckets, links, members, dims = programme.buckets, programme.links, programme.members, programme.dims
    tables, messages, row, digits = scratch.tables, scratch.messages, scratch.row, scratch.digits
    first, last, labels, bases = programme.starts[shape], programme.starts[shape + 1], programme.labels, scratch.bases
    value = 0.0
    for b in range(first, last):
        fill(b, buckets, links, dims, labels, bases, theta, tables, messages, row, digits)
        if mass.shape[0] > 0:
            keep(tables, buckets[b, TABLE], labels * buckets[b, WIDTH], mass)
        tops(tables, buckets[b, TABLE], labels, buckets[b, WIDTH], messages, buckets[b, MESSAGE])
        if buckets[b, MEMBERS] == buckets[b + 1, MEMBERS]:
            value += messages[buckets[b, MESSAGE]]
    for b in range(last - 1, first - 1, -1):
        column = 0
        for k in range(buckets[b, MEMBERS], buckets[b + 1, MEMBERS]):
            column = column * labels + path[members[k]]
        path[buckets[b, VARIABLE]] = first_top(tables, buckets[b, TABLE] + column, labels, buckets[b, WIDTH])
    return value


@borrowing
def soft_one(programme, shape, theta, mu, weight, counts, scratch):
    """mu log sum exp(score/mu) of one example; its marginals times the weight are written over ``theta``.

    Those of shared arrays are added to ``counts`` instead. A value of -inf says that no labelling is allowed; all
    marginals are 0 then.
    """
    buckets, links, dims, labels = programme.buckets, programme.links, programme.dims, programme.labels
    tables, messages, inverses = scratch.tables, scratch.messages, scratch.inverses
    row, digits, bases, shared, tallies = (
        scratch.row,
        scratch.digits,
        scratch.bases,
        programme.shared,
        programme.tallies,
    )
    first, last, value = programme.starts[shape], programme.starts[shape + 1], 0.0
    for b in range(first, last):
        fill(b, buckets, links, dims, labels, bases, theta, tables, messages, row, digits)
        count, width, at, m = buckets[b, COLUMNS], buckets[b, WIDTH], buckets[b, TABLE], buckets[b, MESSAGE]
        value += condition(count, width, at, m, labels, mu, tables, messages, inverses)
        if value == -np.inf:
            weight = 0.0
            break
    for b in range(last - 1, first - 1, -1):
        width, at, m = buckets[b, WIDTH], buckets[b, TABLE], buckets[b, MESSAGE]
        if buckets[b, MEMBERS] == buckets[b + 1, MEMBERS]:
            for c in range(m, m + width):
                messages[c] = 0.0
            messages[m] = weight
        if weight == 0.0:
            for c in range(at, at + width * labels):
                tables[c] = 0.0
        else:
            join(tables, at, labels, width, messages, inverses, m)
        targets = shared, tallies, bases, theta, counts
        distribute(b, buckets, links, dims, labels, targets, tables, messages, row, scratch.sums, digits)
    return value


@inlined
def fill(b, buckets, links, dims, labels, bases, theta, tables, messages, row, digits):
    """t(v, S): everything that is linked to bucket b, added up."""
    at, width = buckets[b, TABLE], buckets[b, WIDTH]
    for j in range(labels):
        row[j] = 0.0
    for k in range(buckets[b, LINKS], buckets[b, PAIRS]):
        array, offset = links[k, ARRAY], links[k, OFFSET]
        if array == MESSAGES:
            add_row(row, 0, labels, messages, offset)
        else:
            add_row(row, 0, labels, theta, bases[array] + offset)
    first, last, members = buckets[b, PAIRS], buckets[b, WIDE], buckets[b + 1, MEMBERS] - buckets[b, MEMBERS]
    grow(row, members, buckets[b, COLUMNS], width, links, first, last, bases, theta, messages, tables, at)
    for k in range(buckets[b, WIDE], buckets[b + 1, LINKS]):
        array, offset, lead = links[k, ARRAY], links[k, OFFSET], links[k, LEAD]
        first, last = links[k, DIMS], links[k + 1, DIMS]
        if array == MESSAGES:
            add_link(tables, at, labels, width, messages, offset, lead, dims, first, last, digits)
        else:
            add_link(tables, at, labels, width, theta, bases[array] + offset, lead, dims, first, last, digits)


@inlined
def distribute(b, buckets, links, dims, labels, targets, tables, messages, row, sums, digits):
    """The marginals of everything that is linked to bucket b, from the marginals of its table, which are lost."""
    shared, tallies, bases, theta, counts = targets
    at, width = buckets[b, TABLE], buckets[b, WIDTH]
    for k in range(buckets[b, PAIRS], buckets[b + 1, LINKS]):
        array, offset = links[k, ARRAY], links[k, OFFSET]
        if array == MESSAGES:
            for j in range(offset, offset + links[k, SIZE]):
                messages[j] = 0.0
        elif not shared[array]:
            for j in range(bases[array] + offset, bases[array] + offset + links[k, SIZE]):
                theta[j] = 0.0
    for k in range(buckets[b, WIDE], buckets[b + 1, LINKS]):
        array, offset = links[k, ARRAY], links[k, OFFSET]
        lead, first, last = links[k, LEAD], links[k, DIMS], links[k + 1, DIMS]
        if array == MESSAGES:
            sum_link(tables, at, labels, width, messages, offset, lead, dims, first, last, digits)
        elif shared[array]:
            sum_link(tables, at, labels, width, counts, tallies[array], lead, dims, first, last, digits)
        else:
            sum_link(tables, at, labels, width, theta, bases[array] + offset, lead, dims, first, last, digits)
    first, last, members = buckets[b, PAIRS], buckets[b, WIDE], buckets[b + 1, MEMBERS] - buckets[b, MEMBERS]
    shrink(row, members, buckets[b, COLUMNS], width, links, first, last, targets, messages, tables, at, sums)
    for k in range(buckets[b, LINKS], buckets[b, PAIRS]):
        array, offset = links[k, ARRAY], links[k, OFFSET]
        if array == MESSAGES:
            for j in range(labels, links[k, SIZE]):
                messages[offset + j] = 0.0
            copy(row, 0, labels, messages, offset)
        else:
            copy(row, 0, labels, theta, bases[array] + offset)


@inlined
def condition(count, width, at, m, labels, mu, tables, messages, inverses):
    """t(v, S) becomes q(v | S) but for ``inverses``; writes the message less its maximum, which is returned."""
    tops(tables, at, labels, width, messages, m)
    exponentiate(tables, at, labels, width, mu, messages, inverses, m)
    add_logarithms(messages, mu, inverses, m, count)
    for c in range(m, m + width, 4):
        store(inverses, c, ratio(splat(1.0), load(inverses, c)))
    top = row_top(messages, m, count)
    if top > -np.inf:
        shift_row(messages, m, count, -top)
    return top


@inner
def place(programme, spans, begins, low, i, bases):
    """Where the arrays of example i begin, if those of example ``low`` begin at ``begins``."""
    for a in range(bases.shape[0]):
        bases[a] = begins[a] + (spans[a, i] - spans[a, low]) * programme.sizes[a]


@compiled
def hard_many(programme, forests, shapes, spans, begins, low, high, theta, values, labelling, scratch, pairs):
    """The max-oracle on examples low..high-1, of which ``theta`` holds the scores, array after array."""
    starts, labels = programme.starts, programme.labels
    lay_matrices(forests, -1, theta, begins, labels, pairs)
    for i in range(low, high):
        place(programme, spans, begins, low, i, scratch.bases)
        k, path = shapes[i], labelling[spans[0, i] : spans[0, i + 1]]
        if forests.plain[k]:
            span, node = (starts[k], starts[k + 1]), scratch.bases[0]
            values[i] = hard_forest(forests.variables, forests.pairs, *span, theta, node, labels, path, pairs)
        else:
            values[i] = hard_one(programme, k, theta, theta[:0], path, scratch)


@compiled
def soft_many(programme, forests, shapes, spans, begins, low, high, theta, mu, weights, values, counts, scratch, pairs):
    """The exp-oracle on examples low..high-1, of which ``theta`` holds the scores, array after array."""
    starts, labels = programme.starts, programme.labels
    lay_matrices(forests, -1, theta, begins, labels, pairs)
    exponentiate_matrices(forests, -1, labels, mu, pairs)
    for i in range(low, high):
        place(programme, spans, begins, low, i, scratch.bases)
        k, values[i] = shapes[i], np.nan
        if forests.plain[k]:
            links, groups, node, weight = forests.pairs, forests.groups[k], scratch.bases[0], weights[i]
            span = starts[k], starts[k + 1]
            values[i] = soft_forest(forests.variables, links, groups, *span, theta, node, labels, mu, weight, pairs)
        if math.isnan(values[i]):
            values[i] = soft_one(programme, k, theta, mu, weights[i], counts, scratch)
    sum_matrices(forests, -1, labels, programme.tallies, pairs, counts)
