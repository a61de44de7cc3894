"""Segmentations as a space for block methods: local theta = node, transition, start, end, segment.

The cliques are the arcs of the lattice, numbered in ``oracles.semi_markov``: masses that are consistent on them are
a flow, and any flow through a graph without cycles is a mixture of paths.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.oracles.chain_block import tables_of
from m3n.compiled.oracles.hooks import implements
from m3n.compiled.oracles.semi_markov import count, place, viterbi
from m3n.compiled.oracles.semi_markov_soft import soft
from m3n.compiled.primitives.vector import padded


class SemiMarkovSpace(NamedTuple):
    """Plain arrays of a ``SemiMarkov``."""

    lengths: np.ndarray  # (n,)
    bounds: np.ndarray  # (labels,) longest segment of a label
    largest: int  # spans of the longest sequence
    forbidden: np.ndarray  # (labels, labels), 0 or -inf
    forbidden_start: np.ndarray  # (labels,)
    forbidden_end: np.ndarray  # (labels,)


class SemiMarkovScratch(NamedTuple):
    """Memory for one sweep; rows of the first three are padded to a multiple of eight."""

    sequences: np.ndarray  # (5, longest + 1, labels)
    tables: np.ndarray  # (3, labels, labels)
    vectors: np.ndarray  # (4, labels)
    moves: np.ndarray  # (longest + 1,)
    totals: np.ndarray  # (spans of the longest sequence * labels,)
    transition: np.ndarray  # (labels, labels)
    ends: np.ndarray  # (2, labels): start and end scores
    path: np.ndarray  # (longest,), integers
    cuts: np.ndarray  # (2, 2), integers: where the only sequence and its spans begin and end
    one: np.ndarray  # (2,): the weight 1, and the value


@implements("workspace", SemiMarkovSpace)
def _workspace(space):
    s, longest = space.bounds.shape[0], space.lengths.max()
    width = padded(s)
    return SemiMarkovScratch(
        np.zeros((5, longest + 1, width)),
        np.zeros((3, width, width)),
        np.zeros((4, width)),
        np.zeros(longest + 1),
        np.empty(space.largest * s),
        np.empty((s, s)),
        np.empty((2, s)),
        np.empty(longest, np.int64),
        np.zeros((2, 2), np.int64),
        np.ones(2),
    )


@implements("best", SemiMarkovSpace)
def _best(space, i, theta, parts, work):
    return _best_of(space, i, theta, theta[:0], work.tables[0], parts, work)


@implements("worst", SemiMarkovSpace)
def _worst(space, i, theta, mass, parts, work):
    theta *= -1.0
    value, number = _best_of(space, i, theta, mass, work.tables[1], parts, work)
    theta *= -1.0  # as it was, bit for bit
    return -value, number


@implements("cliques", SemiMarkovSpace)
def _cliques(space, i, parts, out):
    s, length, most = space.bounds.shape[0], space.lengths[i], space.bounds.max()
    spans, shared, segments = count(length, most), length * s, length
    while parts[segments] < shared + s * s:  # transitions
        segments += 1
    segments += 2
    begin, before, number = 0, -1, 0
    while begin < length:
        arc = parts[segments] - shared - s * s - 2 * s
        if begin > 0:
            out[number] = (spans + (begin - 1) * s + before) * s + arc % s
            number += 1
        out[number] = arc
        begin, before = begin + arc // s - place(length, most, begin, 1) + 1, arc % s
        number, segments = number + 1, segments + 1
    return number


@implements("clique_range", SemiMarkovSpace)
def _clique_range(space):
    s = space.bounds.shape[0]
    return (space.largest + (space.lengths.max() - 1) * s) * s


@implements("soft", SemiMarkovSpace)
def _soft(space, i, theta, mu, work):
    s, length = space.bounds.shape[0], space.lengths[i]
    at = length * s
    tables_of(space, space.bounds.shape[0], theta, length, work)
    theta[at : at + s * s + 2 * s] = 0.0
    node, counts = theta[:at].reshape(length, s), theta[at : at + s * s].reshape(s, s)
    starts, ends = theta[at + s * s : at + s * s + s], theta[at + s * s + s : at + s * s + 2 * s]
    segment = theta[at + s * s + 2 * s :].reshape(-1, s)
    work.cuts[0, 1], work.cuts[1, 1] = length, segment.shape[0]
    weight, value = work.one[:1], work.one[1:]
    soft(
        node, work.transition, work.ends[0], work.ends[1], segment, work.cuts[0], work.cuts[1], space.bounds, 0, 1, mu,
        weight, value, counts, starts, ends, work.sequences, work.tables, work.vectors, work.moves,
    )  # fmt: skip
    return value[0]


@compiled
def _best_of(space, i, theta, mass, kept, parts, work):
    """The best output, of those whose arcs all have mass if there are masses, and the number of its parts."""
    s, length = space.bounds.shape[0], space.lengths[i]
    tables_of(space, space.bounds.shape[0], theta, length, work)
    work.tables[0, :s, :s] = work.transition
    node, segment = theta[: length * s], theta[(length + s + 2) * s :]
    scratch = work.totals, work.sequences, work.tables[0], kept, work.vectors[0]
    path = work.path[:length]
    value = viterbi(node, work.ends[0], work.ends[1], segment, space.bounds, mass, *scratch, path)
    return value, _parts_of(path, s, space.bounds.max(), parts)


@compiled
def _parts_of(path, s, most, parts):
    """The parts of an output in ascending order; their number. ``path`` is label + s where a segment begins."""
    length = path.shape[0]
    at, count = length * s, length
    for t in range(length):
        parts[t] = t * s + path[t] % s
    for t in range(1, length):
        if path[t] >= s:
            parts[count] = at + (path[t - 1] % s) * s + path[t] - s
            count += 1
    parts[length:count].sort()
    parts[count], parts[count + 1] = at + s * s + path[0] - s, at + s * s + s + path[length - 1] % s
    count += 2
    begin = 0
    for t in range(1, length + 1):
        if t == length or path[t] >= s:
            parts[count] = at + s * s + 2 * s + place(length, most, begin, t - begin) * s + path[begin] - s
            count += 1
            begin = t
    return count
