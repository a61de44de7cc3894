"""Factor graphs as a space for block methods: local theta = nodes, then the factors, array by array.

The recursions are those of a packed batch (``oracles.elimination``), on one example. The parts of an output are the
labels of its variables, then one entry for every factor.

The cliques are the buckets (v, S), numbered by the place of their labels in the tables of the example's shape. S is
contained in the bucket that gets the message, so the buckets form a junction tree: marginals that are consistent on
them belong to some distribution over labellings.
"""

import math
from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import inner
from m3n.compiled.oracles.elimination import (
    MEMBERS,
    TABLE,
    VARIABLE,
    WIDTH,
    Programme,
    Scratch,
    hard_one,
    scratch_for,
    soft_one,
)
from m3n.compiled.oracles.elimination_pairs import (
    Forests,
    Pairs,
    exponentiate_matrices,
    hard_forest,
    lay_matrices,
    pairs_for,
    soft_forest,
    sum_matrices,
)
from m3n.compiled.oracles.hooks import implements
from m3n.compiled.primitives.order import ascend


class GraphSpace(NamedTuple):
    """Plain arrays of a ``Graph``."""

    programme: Programme
    forests: Forests
    shapes: np.ndarray  # (n,) shape of every example
    spans: np.ndarray  # (arrays, n + 1) rows of every example, 0 where shared
    entries: int  # of the largest example's tables, padding included
    width: int  # variables of the largest bucket
    longest: int  # variables of the largest example


class GraphScratch(NamedTuple):
    """Memory for one sweep."""

    scratch: Scratch
    pairs: Pairs
    counts: np.ndarray  # marginals of the shared arrays


@implements("workspace", GraphSpace)
def _workspace(space):
    programme = space.programme
    shared = 0
    for a in range(programme.sizes.shape[0]):
        shared += programme.sizes[a] if programme.shared[a] else 0
    return GraphScratch(
        scratch_for(programme, space.entries, space.width),
        pairs_for(space.forests, programme.labels, space.longest),
        np.zeros(shared),
    )


@implements("best", GraphSpace)
def _best(space, i, theta, parts, work):
    return _best_of(space, i, theta, parts, work)


@implements("worst", GraphSpace)
def _worst(space, i, theta, mass, parts, work):
    return _worst_of(space, i, theta, mass, parts, work)


@implements("cliques", GraphSpace)
def _cliques(space, i, parts, out):
    programme, labels = space.programme, space.programme.labels
    buckets, members, first = programme.buckets, programme.members, programme.starts[space.shapes[i]]
    count = programme.starts[space.shapes[i] + 1] - first
    for b in range(first, first + count):
        v, column = buckets[b, VARIABLE], 0
        for k in range(buckets[b, MEMBERS], buckets[b + 1, MEMBERS]):
            column = column * labels + parts[members[k]] - members[k] * labels
        out[b - first] = buckets[b, TABLE] + (parts[v] - v * labels) * buckets[b, WIDTH] + column
    return count


@implements("clique_range", GraphSpace)
def _clique_range(space):
    return space.entries


@implements("soft", GraphSpace)
def _soft(space, i, theta, mu, work):
    return _soft_of(space, i, theta, mu, work)


@inner
def _best_of(space, i, theta, parts, work):
    programme, forests, k = space.programme, space.forests, space.shapes[i]
    bases, labels = work.scratch.bases, programme.labels
    _place(programme, space.spans, i, bases)
    if forests.plain[k]:
        lay_matrices(forests, k, theta, bases, labels, work.pairs)
        span = programme.starts[k], programme.starts[k + 1]
        value = hard_forest(forests.variables, forests.pairs, *span, theta, 0, labels, parts, work.pairs)
    else:
        value = hard_one(programme, k, theta, theta[:0], parts, work.scratch)
    return value, _all_parts(space, i, bases, parts)


@inner
def _worst_of(space, i, theta, mass, parts, work):
    """The best output on the support if all scores are negated."""
    bases = work.scratch.bases
    _place(space.programme, space.spans, i, bases)
    theta *= -1.0
    value = hard_one(space.programme, space.shapes[i], theta, mass, parts, work.scratch)
    theta *= -1.0  # as it was, bit for bit
    return -value, _all_parts(space, i, bases, parts)


@inner
def _soft_of(space, i, theta, mu, work):
    programme, forests, k, counts = space.programme, space.forests, space.shapes[i], work.counts
    bases, labels, value = work.scratch.bases, programme.labels, np.nan
    _place(programme, space.spans, i, bases)
    counts[:] = 0.0
    if forests.plain[k]:
        lay_matrices(forests, k, theta, bases, labels, work.pairs)
        exponentiate_matrices(forests, k, labels, mu, work.pairs)
        groups, span = forests.groups[k], (programme.starts[k], programme.starts[k + 1])
        value = soft_forest(forests.variables, forests.pairs, groups, *span, theta, 0, labels, mu, 1.0, work.pairs)
        if not math.isnan(value):
            sum_matrices(forests, k, labels, programme.tallies, work.pairs, counts)
    if math.isnan(value):
        value = soft_one(programme, k, theta, mu, 1.0, counts, work.scratch)
    for a in range(bases.shape[0]):
        if programme.shared[a]:
            for j in range(programme.sizes[a]):
                theta[bases[a] + j] = counts[programme.tallies[a] + j]
    return value


@inner
def _place(programme, spans, i, bases):
    """Where the arrays of example i begin in its local theta."""
    at = 0
    for a in range(bases.shape[0]):
        bases[a] = at
        at += programme.sizes[a] * (1 if programme.shared[a] else spans[a, i + 1] - spans[a, i])


@inner
def _all_parts(space, i, bases, parts):
    """From the labels of an output to its parts, in ascending order; their number."""
    programme, shape, nodes = space.programme, space.shapes[i], space.spans[0, i + 1] - space.spans[0, i]
    for v in range(nodes):
        parts[v] += v * programme.labels
    labels, factors, count, row, before = programme.labels, programme.factors, nodes, 0, 0
    first = nodes  # of the parts of the array at hand
    for f in range(programme.factor_starts[shape], programme.factor_starts[shape + 1]):
        array, code = factors[f, 0], 0
        if array != before:
            ascend(parts, first, count)
            before, row, first = array, 0, count
        for k in range(factors[f, 1], factors[f + 1, 1]):
            v = programme.scopes[k]
            code = code * labels + parts[v] - v * labels
        parts[count] = bases[array] + code + (0 if programme.shared[array] else row * programme.sizes[array])
        row += 1
        count += 1
    ascend(parts, first, count)
    return count
