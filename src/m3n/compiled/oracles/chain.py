"""Linear chains over a packed batch: Viterbi, and the parts of labellings.

Layout. ``node`` (tokens, labels) holds the sequences one after another, sequence k being rows
``offsets[k]:offsets[k+1]``; ``transition`` (labels, labels), ``start`` and ``end`` (labels,) are shared by all;
``edge`` (tokens - sequences, labels, labels) is one extra table for every pair of neighbours, or has length 0.

Viterbi keeps the scores f_t(j) of the best prefixes instead of back pointers: the inner loop is then a plain maximum,
and the path is found again by looking for the predecessor that attains it, O(labels) per position. Scratch rows are
padded to a multiple of eight numbers.

The exp-oracle has two implementations with one result: ``chain_scaled``, and ``chain_log`` where that is not safe.
Cost per token: O(labels^2). Memory: O(longest sequence x labels) besides the arguments.
"""

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.primitives.padded import add_to, copy, maxima
from m3n.compiled.primitives.vector import prefetch

AHEAD = 16  # rows between asking for a number and using it


@inner
def viterbi(node, edge, mass, ends, tables, forward, scores, path):
    """The best score of one sequence; its labels (lowest at ties) are written to ``path``.

    ``node`` and ``edge``, empty if there are no edge scores, are flat. With ``mass``, a number for every pair of
    neighbouring labels (the labels of a single position), only labellings count whose pairs all have a positive one.
    ``ends`` are start and end scores, tables[0] the transitions; scratch: tables[1], forward[0] and ``scores``.
    """
    labels, width, table = ends.shape[1], forward.shape[2], tables[0]
    length, plain = node.shape[0] // labels, edge.shape[0] + mass.shape[0] == 0
    for j in range(labels):
        allowed = length > 1 or mass.shape[0] == 0 or mass[j] > 0.0
        forward[0, 0, j] = node[j] + ends[0, j] if allowed else -np.inf
    for t in range(1, length):
        if not plain:
            table = pair_table(edge, mass, t, labels, 0, labels, tables)
        maxima(forward, (t - 1) * width, labels, table, forward, t * width)
        copy(node, t * labels, labels, scores, 0)
        add_to(forward, t * width, scores)
    last, f = 0, forward[0, length - 1]
    for j in range(1, labels):
        last = j if f[j] + ends[1, j] > f[last] + ends[1, last] else last
    value = f[last] + ends[1, last]
    path[length - 1] = last
    for t in range(length - 1, 0, -1):
        if not plain:
            table = pair_table(edge, mass, t, labels, path[t], path[t] + 1, tables)
        f, source = forward[0, t - 1], 0
        for i in range(1, labels):
            source = i if f[i] + table[i, path[t]] > f[source] + table[source, path[t]] else source
        path[t - 1] = source
    return value


@inner
def pair_table(edge, mass, t, labels, low, high, tables):
    """Columns low..high-1 of tables[1] = transition + the edge scores between positions t - 1 and t.

    If masses count, pairs without mass have -inf.
    """
    for i in range(labels):
        at, source, target = ((t - 1) * labels + i) * labels, tables[0, i], tables[1, i]
        for j in range(low, high):
            target[j] = source[j] + edge[at + j] if edge.shape[0] > 0 else source[j]
        if mass.shape[0] > 0:
            for j in range(low, high):
                target[j] = target[j] if mass[at + j] > 0.0 else -np.inf
    return tables[1]


@inner
def best_source(f, table, labels, label):
    """The best label before ``label``, the lowest at ties; f are the scores of prefixes."""
    source = 0
    for i in range(1, labels):
        source = i if f[i] + table[i, label] > f[source] + table[source, label] else source
    return source


@compiled
def mark(labelling, offsets, low, high, amounts, node, edge):
    """Add amounts[k] to the node and edge parts of a labelling of sequences k = low..high-1."""
    labels = node.shape[1]
    for k in range(low, high):
        for t in range(offsets[k], offsets[k + 1]):
            prefetch(node, (t + AHEAD) * labels + labelling[min(t + AHEAD, offsets[high] - 1)])
            node[t, labelling[t]] += amounts[k]
            if edge.shape[0] and t > offsets[k]:
                edge[t - k - 1, labelling[t - 1], labelling[t]] += amounts[k]


@compiled
def tally(labelling, offsets, amounts, counts, starts, ends):
    """Add amounts[k] to the transitions, starts and ends of sequence k of a labelling, as often as they occur."""
    for k in range(offsets.shape[0] - 1):
        first, last = offsets[k], offsets[k + 1] - 1
        starts[labelling[first]] += amounts[k]
        ends[labelling[last]] += amounts[k]
        for t in range(first, last):
            counts[labelling[t], labelling[t + 1]] += amounts[k]


@compiled
def score(labelling, offsets, low, high, node, transition, start, end, edge, scores):
    """The scores of the parts of a labelling, summed for each of the sequences low..high-1."""
    labels = node.shape[1]
    for k in range(low, high):
        first, last = offsets[k], offsets[k + 1] - 1
        scores[k] = start[labelling[first]] + end[labelling[last]]
        for t in range(first, last + 1):
            prefetch(node, (t + AHEAD) * labels + labelling[min(t + AHEAD, offsets[high] - 1)])
            scores[k] += node[t, labelling[t]]
            if t > first:
                scores[k] += transition[labelling[t - 1], labelling[t]]
                if edge.shape[0]:
                    scores[k] += edge[t - k - 1, labelling[t - 1], labelling[t]]
