"""The chain as a space: local theta = node, transition, start, end (, edge), cliques = pairs.

The cliques of a sequence of length L are its L - 1 pairs of neighbouring labels, clique (t, i, j) having the number
(t * labels + i) * labels + j; a single position has its labels as cliques. Marginals that are consistent on pairs
belong to some distribution over sequences, so a dual on cliques is as good as one on sequences.
"""

import math
from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.oracles.chain import FEW, Contenders, contenders_for, viterbi, viterbi_of_many, weigh_transitions
from m3n.compiled.oracles.chain_log import soft_log
from m3n.compiled.oracles.chain_scaled import exponentiate, soft_scaled
from m3n.compiled.oracles.hooks import implements, in_steps, workspace
from m3n.compiled.primitives.arrays import put
from m3n.compiled.primitives.order import ascend
from m3n.compiled.primitives.vector import padded


@in_steps
class ChainSpace(NamedTuple):
    """Plain arrays of a ``Chain``."""

    offsets: np.ndarray  # (n + 1,)
    longest: int
    labels: int
    edges: bool
    forbidden: np.ndarray  # (labels, labels), 0 or -inf
    forbidden_start: np.ndarray  # (labels,)
    forbidden_end: np.ndarray  # (labels,)


class ChainScratch(NamedTuple):
    """Memory for one sweep; rows of the first three are padded to a multiple of eight."""

    sequences: np.ndarray  # (2, longest, labels)
    tables: np.ndarray  # (3, labels, labels): transitions and those with edge scores, or as in ``chain_scaled``
    vectors: np.ndarray  # (4, labels)
    plain: np.ndarray  # (2, longest, labels), for the log domain
    leads: np.ndarray  # (labels, labels)
    pairs: np.ndarray  # (2, labels)
    active: np.ndarray  # (labels,), integers
    walked: np.ndarray  # (1,), pairs that the log domain has met since shared tables were read
    transition: np.ndarray  # (labels, labels)
    ends: np.ndarray  # (2, labels): start and end scores
    counts: np.ndarray  # (labels, labels) marginals of transitions, but for those in ``tables``
    end_counts: np.ndarray  # (2, labels) marginals of starts and ends
    contenders: Contenders


@implements("workspace", ChainSpace)
def _workspace(space):
    s, width = space.labels, padded(space.labels)
    scaled = np.empty((2, space.longest, width)), np.zeros((3, width, width)), np.zeros((4, width))
    plain = np.empty((2, space.longest, s)), np.empty((s, s)), np.empty((2, s)), np.empty(s, np.int64)
    shared = np.empty((s, s)), np.empty((2, s)), np.empty((s, s)), np.empty((2, s))
    return ChainScratch(*scaled, *plain, np.zeros(1, np.int64), *shared, contenders_for(width))


@implements("cut", ChainSpace)
def _cut(space, i, theta):
    s = space.labels
    at = (space.offsets[i + 1] - space.offsets[i]) * s
    return (theta[:at], theta[at + (s + 2) * s :]), theta[at : at + (s + 2) * s]


@implements("read_shared", ChainSpace)
def _read_shared(space, shared, work):
    read_tables(space, shared, work)
    work.walked[0] = 0


@implements("begin_soft", ChainSpace)
def _begin_soft(space, mu, work):
    begin_counts(mu, not space.edges, work)


@implements("best_own", ChainSpace)
def _best_own(space, i, own, mass, parts, work):
    node, edge = own
    if space.labels > FEW and not space.edges and mass.shape[0] == 0:
        weigh_transitions(work.tables[0], space.labels, work.contenders)
        scratch = work.tables[0], work.contenders, work.sequences, work.vectors[0]
        value = viterbi_of_many(node, work.ends, *scratch, parts)
    else:
        value = viterbi(node, edge, mass, work.ends, work.tables, work.sequences, work.vectors[0], parts)
    return value, all_parts(space, i, parts)


@compiled
def hard(space, arrays, first, shared, low, high, values, labelling):
    """``driver.hard_in_steps`` with labels for parts: sequences are short, and what is asked for them adds up."""
    work, offsets, nothing, (nodes, edge) = workspace(space), space.offsets, shared[:0], arrays
    read_tables(space, shared, work)
    ends, tables, forward, scores = work.ends, work.tables, work.sequences, work.vectors[0]
    if space.labels > FEW and not space.edges:
        return _hard_of_many(offsets, nodes, first[0], low, high, work, values, labelling)
    for i in range(low, high):
        node, path = nodes[first[0, i] : first[0, i + 1]], labelling[offsets[i] : offsets[i + 1]]
        if space.edges:
            edge = arrays[1][first[1, i] : first[1, i + 1]]
        values[i] = viterbi(node, edge, nothing, ends, tables, forward, scores, path)


@inner
def _hard_of_many(offsets, nodes, first, low, high, work, values, labelling):
    """The same for so many labels that few are contenders."""
    table, contenders, scratch = work.tables[0], work.contenders, (work.sequences, work.vectors[0])
    weigh_transitions(table, work.ends.shape[1], contenders)
    for i in range(low, high):
        node, path = nodes[first[i] : first[i + 1]], labelling[offsets[i] : offsets[i + 1]]
        values[i] = viterbi_of_many(node, work.ends, table, contenders, *scratch, path)


@implements("soft_own", ChainSpace)
def _soft_own(space, i, own, mu, weight, work):
    node, edge = own
    s, last = space.labels, node.shape[0] - space.labels
    for j in range(s):
        node[j] += work.ends[0, j]
        node[last + j] += work.ends[1, j]
    value = np.nan
    if not space.edges:
        value = soft_scaled(node, work.transition, mu, weight, work.sequences, work.tables, work.vectors)
    if math.isnan(value):
        value = soft_log(node, edge, mu, weight, work)
    for j in range(s):
        work.end_counts[0, j] += node[j]
        work.end_counts[1, j] += node[last + j]
    return value


@implements("write_shared", ChainSpace)
def write_tables(space, shared, work):
    """The marginals of transitions, starts and ends."""
    s, factors, products = space.labels, work.tables[0], work.tables[2]
    for i in range(s):
        for j in range(s):
            shared[i * s + j] = work.counts[i, j] + factors[i, j] * products[i, j]
    put(work.end_counts.reshape(-1), shared[s * s :])


@implements("cliques", ChainSpace)
def _cliques(space, i, parts, out):
    s, length = space.labels, space.offsets[i + 1] - space.offsets[i]
    out[0] = parts[0]
    for t in range(length - 1):
        out[t] = t * s * s + (parts[t] - t * s) * s + parts[t + 1] - (t + 1) * s
    return max(length - 1, 1)


@implements("clique_range", ChainSpace)
def _clique_range(space):
    return max((space.longest - 1) * space.labels, 1) * space.labels


@inner
def read_tables(space, shared, work):
    """Transition, start and end scores, with -inf where the structure forbids; tables[0] = transition."""
    s = space.labels
    for i in range(s):
        for j in range(s):
            work.transition[i, j] = shared[i * s + j] + space.forbidden[i, j]
            work.tables[0, i, j] = work.transition[i, j]
    for j in range(s):
        work.ends[0, j] = shared[s * s + j] + space.forbidden_start[j]
        work.ends[1, j] = shared[s * s + s + j] + space.forbidden_end[j]


@inner
def begin_counts(mu, scaled, work):
    """All marginals of shared tables are zero; where the recursion is scaled, ``tables`` are ready for it."""
    work.counts[:] = 0.0
    work.end_counts[:] = 0.0
    if scaled:
        exponentiate(work.transition, mu, work.tables, work.vectors)
    else:
        work.tables[:] = 0.0  # nothing is left to multiply


@inner
def all_parts(space, i, parts):
    """From the labels of a sequence to all of its parts, in ascending order; their number.

    If ``parts`` has room for the labels alone only these are written.
    """
    s, length = space.labels, space.offsets[i + 1] - space.offsets[i]
    for t in range(length):
        parts[t] += t * s
    if parts.shape[0] == length:
        return length
    at, count = length * s, length
    for t in range(length - 1):
        parts[count] = at + (parts[t] - t * s) * s + parts[t + 1] - (t + 1) * s
        count += 1
    parts[count] = at + s * s + parts[0]
    parts[count + 1] = at + s * s + s + parts[length - 1] - (length - 1) * s
    count += 2
    if space.edges:
        for t in range(length - 1):
            parts[count] = at + s * s + 2 * s + (t * s + parts[t] - t * s) * s + parts[t + 1] - (t + 1) * s
            count += 1
    ascend(parts, length, 2 * length - 1)
    return count


@compiled
def list_parts(space, labelling, out):
    """The parts of every sequence of a packed batch, one row each."""
    for i in range(out.shape[0]):
        first, length = space.offsets[i], space.offsets[i + 1] - space.offsets[i]
        put(labelling[first : first + length], out[i])
        all_parts(space, i, out[i])
