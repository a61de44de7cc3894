"""How near other labels can come to those of a labelling, position by position, with any weights of a ball.

Weights that are r away from the ones that gave the scores change the difference of two labellings' scores by at most r
times the norm of the difference of their features. That difference is a sum over positions t of

    what changes at t itself, (t, t - 1) and the ends:    norm^2 = node_t(y_t) + edge_t [the pair differs] + end_t,

zero where nothing differs: the attributes, transitions, attributes of pairs, starts and ends have weights of their own.
By the triangle inequality the norm is at most the sum of these norms, which is a sum over the chain. So what a
labelling with some label at t can score beside the given one, whose score stays as it is, is found by Viterbi forwards
and backwards, with r times these norms on top.

Layout of scores as in ``chain``. Cost: as two max-oracles. Memory: O(longest sequence x labels).
"""

import math
from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inner


class Scores(NamedTuple):
    """Those of a batch."""

    node: np.ndarray  # (tokens, labels)
    transition: np.ndarray  # (labels, labels)
    ends: np.ndarray  # (2, labels)
    edge: np.ndarray  # (tokens - sequences, labels, labels), or (0, labels, labels)


class Changes(NamedTuple):
    """Squares of the norms by which features change."""

    node: np.ndarray  # (tokens, labels), from the labelling's own label to another one
    edge: np.ndarray  # (tokens,), of the pair with the position before
    end: float


@compiled
def reach(offsets, scores, changes, labelling, radius, found):
    """``found`` (tokens, labels): the most that a labelling with a label at a position can score in the ball."""
    labels, longest = scores.node.shape[1], 0
    for i in range(len(offsets) - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    before, after, own = np.empty((longest, labels)), np.empty((longest, labels)), np.empty((longest, labels))
    for i in range(len(offsets) - 1):
        first, last = offsets[i], offsets[i + 1]
        pairs = first - i if scores.edge.shape[0] else -1
        _own(scores, changes, labelling, radius, first, last, own)
        _forwards(scores, changes, labelling, radius, first, last, pairs, own, before)
        _backwards(scores, changes, labelling, radius, first, last, pairs, own, after)
        for t in range(first, last):
            for j in range(labels):
                found[t, j] = before[t - first, j] + after[t - first, j]


@inner
def _own(scores, changes, labelling, radius, first, last, own):
    """Scores of labels by themselves, with what changes where they are not the labelling's."""
    for t in range(first, last):
        around = changes.edge[t] if t > first else changes.end
        around += changes.end if t == last - 1 else 0.0
        for j in range(own.shape[1]):
            own[t - first, j] = scores.node[t, j]
            own[t - first, j] += scores.ends[0, j] if t == first else 0.0
            own[t - first, j] += scores.ends[1, j] if t == last - 1 else 0.0
            if j != labelling[t]:
                own[t - first, j] += radius * math.sqrt(changes.node[t, j] + around)


@inner
def _forwards(scores, changes, labelling, radius, first, last, pairs, own, before):
    """The best prefixes that end in a label."""
    labels = own.shape[1]
    for j in range(labels):
        before[0, j] = own[0, j]
    for t in range(first + 1, last):
        at, price = t - first, radius * math.sqrt(changes.edge[t])
        for j in range(labels):
            before[at, j] = -np.inf
        for i in range(labels):
            for j in range(labels):
                value = before[at - 1, i] + scores.transition[i, j]
                value += scores.edge[pairs + at - 1, i, j] if pairs >= 0 else 0.0
                value += price if j == labelling[t] and i != labelling[t - 1] else 0.0
                before[at, j] = max(before[at, j], value)
        for j in range(labels):
            before[at, j] += own[at, j]


@inner
def _backwards(scores, changes, labelling, radius, first, last, pairs, own, after):
    """The best continuations of a label."""
    labels = own.shape[1]
    for j in range(labels):
        after[last - first - 1, j] = 0.0
    for t in range(last - 1, first, -1):
        at, price = t - first, radius * math.sqrt(changes.edge[t])
        for i in range(labels):
            best = -np.inf
            for j in range(labels):
                value = scores.transition[i, j] + own[at, j] + after[at, j]
                value += scores.edge[pairs + at - 1, i, j] if pairs >= 0 else 0.0
                value += price if j == labelling[t] and i != labelling[t - 1] else 0.0
                best = max(best, value)
            after[at - 1, i] = best
