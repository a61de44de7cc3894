"""The chain as a space for block methods: local theta = node, transition, start, end (, edge), cliques = pairs.

The cliques of a sequence of length L are its L - 1 pairs of neighbouring labels, clique (t, i, j) having the number
(t * labels + i) * labels + j; a single position has its labels as cliques. Marginals that are consistent on pairs
belong to some distribution over sequences, so a dual on cliques is as good as one on sequences.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.maps.costs import add_costs, copy_gold, margin_base
from m3n.compiled.oracles import chain
from m3n.compiled.oracles.chain_log import soft_log
from m3n.compiled.oracles.chain_scaled import soft_scaled
from m3n.compiled.oracles.chain_slack import best_product
from m3n.compiled.oracles.hooks import implements
from m3n.compiled.primitives.vector import padded


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
    tables: np.ndarray  # (3, labels, labels)
    vectors: np.ndarray  # (4, labels)
    plain: np.ndarray  # (2, longest, labels), for the log domain
    leads: np.ndarray  # (labels, labels)
    pairs: np.ndarray  # (2, labels)
    transition: np.ndarray  # (labels, labels)
    ends: np.ndarray  # (2, labels): start and end scores
    value: np.ndarray  # (1,)
    cuts: np.ndarray  # (2,), integers
    active: np.ndarray  # (labels,), integers
    unit: np.ndarray  # (1,), the weight 1


class SlackScratch(NamedTuple):
    """Memory for one sweep of the slack objective; rows of the first three are padded to a multiple of eight."""

    forward: np.ndarray  # (positions and losses of the largest sequence, labels)
    tables: np.ndarray  # (2, labels, labels)
    scores: np.ndarray  # (labels,)
    steps: np.ndarray  # (labels,), integers
    losses: np.ndarray  # (longest local theta,)
    transition: np.ndarray  # (labels, labels)
    ends: np.ndarray  # (2, labels): start and end scores


@implements("workspace", ChainSpace)
def _workspace(space):
    s, width = space.labels, padded(space.labels)
    return ChainScratch(
        np.empty((2, space.longest, width)),
        np.empty((3, width, width)),
        np.empty((4, width)),
        np.empty((2, space.longest, s)),
        np.empty((s, s)),
        np.empty((2, s)),
        np.empty((s, s)),
        np.empty((2, s)),
        np.empty(1),
        np.zeros(2, np.int64),
        np.empty(s, np.int64),
        np.ones(1),
    )


@implements("best", ChainSpace)
def _best(space, i, theta, parts, work):
    s, length = space.labels, space.offsets[i + 1] - space.offsets[i]
    transition, start, end = tables_of(space, space.labels, theta, length, work)
    work.tables[0, :s, :s] = transition
    pair, forward, scores = (length + s + 2) * s, work.sequences[0], work.vectors[0]
    value = chain.viterbi(theta, start, end, theta, pair, length, space.edges, forward, work.tables, scores, parts)
    for t in range(length):
        parts[t] += t * s
    return value, _pair_parts(parts, length, s, space.edges)


@implements("slack_workspace", ChainSpace)
def _slack_workspace(space, costs):
    s, width, rows = space.labels, padded(space.labels), 0
    for i in range(space.offsets.shape[0] - 1):
        rows = max(rows, (space.offsets[i + 1] - space.offsets[i]) * (costs.levels[i] + 1))
    return SlackScratch(
        np.empty((rows, width)),
        np.zeros((2, width, width)),
        np.empty(width),
        np.empty(s, np.int64),
        np.empty(space.longest * s * (1 + s * space.edges) + s * (s + 2)),
        np.empty((s, s)),
        np.empty((2, s)),
    )


@implements("slack", ChainSpace)
def _slack(space, costs, i, theta, parts, work):
    s, length = space.labels, space.offsets[i + 1] - space.offsets[i]
    transition, start, end = tables_of(space, space.labels, theta, length, work)
    work.tables[0, :s, :s] = transition
    work.losses[: length * s] = 0.0
    add_costs(costs.label, i, work.losses, 1.0)
    measures = work.losses, margin_base(costs, i, theta), costs.units[i], costs.levels[i]
    scratch = work.forward, work.tables, work.scores, work.steps
    pair = (length + s + 2) * s
    value, _ = best_product(theta, start, end, theta, pair, length, space.edges, *measures, *scratch, parts)
    if not value > 0.0:
        return value, copy_gold(costs, i, parts)
    for t in range(length):
        parts[t] += t * s
    return value, _pair_parts(parts, length, s, space.edges)


@implements("worst", ChainSpace)
def _worst(space, i, theta, mass, parts, work):
    length = space.offsets[i + 1] - space.offsets[i]
    return _restricted(space, theta, length, mass, work, parts)


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


@implements("soft", ChainSpace)
def _soft(space, i, theta, mu, work):
    return _marginals(space, theta, space.offsets[i + 1] - space.offsets[i], mu, work)


@compiled
def tables_of(space, s, theta, length, work):
    """Transition, start and end scores of s labels, with -inf where the structure forbids."""
    at = length * s
    for i in range(s):
        for j in range(s):
            work.transition[i, j] = theta[at + i * s + j] + space.forbidden[i, j]
    for j in range(s):
        work.ends[0, j] = theta[at + s * s + j] + space.forbidden_start[j]
        work.ends[1, j] = theta[at + s * s + s + j] + space.forbidden_end[j]
    return work.transition, work.ends[0], work.ends[1]


@compiled
def _restricted(space, theta, length, mass, work, parts):
    """As ``chain.viterbi``, for the least score, over pairs with positive mass only."""
    s, forward = space.labels, work.plain[0]
    transition, start, end = tables_of(space, space.labels, theta, length, work)
    for j in range(s):
        forward[0, j] = theta[j] + start[j] if length > 1 or mass[j] > 0.0 else np.inf
    for t in range(1, length):
        for j in range(s):
            source = _least(space, theta, length, mass, forward, transition, t, j)
            forward[t, j] = np.inf
            if source >= 0:
                forward[t, j] = _step_score(space, theta, length, forward, transition, t, source, j) + theta[t * s + j]
    last, value = 0, np.inf
    for j in range(s):
        if forward[length - 1, j] + end[j] < value:
            last, value = j, forward[length - 1, j] + end[j]
    for t in range(length - 1, 0, -1):
        parts[t] = t * s + last
        last = max(_least(space, theta, length, mass, forward, transition, t, last), 0)
    parts[0] = last
    return value, _pair_parts(parts, length, s, space.edges)


@compiled
def _least(space, theta, length, mass, forward, transition, t, j):
    """The predecessor of label j at position t with the least score and positive mass, or -1."""
    s = space.labels
    source, least = -1, np.inf
    for i in range(s):
        if mass[((t - 1) * s + i) * s + j] > 0.0:
            score = _step_score(space, theta, length, forward, transition, t, i, j)
            if score < least:
                source, least = i, score
    return source


@compiled
def _step_score(space, theta, length, forward, transition, t, i, j):
    s = space.labels
    score = forward[t - 1, i] + transition[i, j]
    if space.edges:
        score += theta[(length + s + 2) * s + ((t - 1) * s + i) * s + j]
    return score


@compiled
def _pair_parts(parts, length, s, edges):
    """From the node parts of a sequence to all of its parts, in ascending order; their number."""
    at, count = length * s, length
    for t in range(length - 1):
        parts[count] = at + (parts[t] - t * s) * s + parts[t + 1] - (t + 1) * s
        count += 1
    parts[count] = at + s * s + parts[0]
    parts[count + 1] = at + s * s + s + parts[length - 1] - (length - 1) * s
    count += 2
    if edges:
        for t in range(length - 1):
            parts[count] = at + s * s + 2 * s + (t * s + parts[t] - t * s) * s + parts[t + 1] - (t + 1) * s
            count += 1
    parts[length : 2 * length - 1].sort()
    return count


@compiled
def list_parts(labelling, offsets, s, edges, out):
    """The parts of every sequence of a packed batch, one row each."""
    for k in range(offsets.shape[0] - 1):
        length = offsets[k + 1] - offsets[k]
        for t in range(length):
            out[k, t] = t * s + labelling[offsets[k] + t]
        _pair_parts(out[k], length, s, edges)


@compiled
def _marginals(space, theta, length, mu, work):
    """The kernels of the packed batch, on a batch of one."""
    s, at = space.labels, length * space.labels
    transition, start, end = tables_of(space, space.labels, theta, length, work)
    values, cuts = work.value, work.cuts
    cuts[1] = length
    node = theta[:at].reshape(length, s)
    chain.add_ends(node, start, end, cuts, 0, 1)
    theta[at : at + s * s + 2 * s] = 0.0
    counts = theta[at : at + s * s].reshape(s, s)
    edge = theta[at + s * s + 2 * s :].reshape(-1, s, s)
    values[0] = np.nan
    if not space.edges:
        scratch = work.sequences, work.tables, work.vectors
        soft_scaled(node, transition, cuts, 0, 1, mu, values, counts, work.unit, *scratch)
    if np.isnan(values[0]):
        plain = work.plain, work.leads, work.pairs, work.active
        soft_log(node, transition, edge, cuts, 0, 1, mu, values, counts, work.unit, *plain)
    starts, ends = theta[at + s * s : at + s * s + s], theta[at + s * s + s : at + s * s + 2 * s]
    chain.sum_ends(node, cuts, 0, 1, starts, ends)
    return values[0]
