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

from m3n.compiled.jit import compiled
from m3n.compiled.primitives.padded import add_to, copy, maxima
from m3n.compiled.primitives.vector import prefetch

AHEAD = 16  # rows between asking for a number and using it


@compiled
def add_ends(node, start, end, offsets, low, high):
    """Add start scores to the first row and end scores to the last row of sequences low..high-1."""
    for k in range(low, high):
        for j in range(node.shape[1]):
            node[offsets[k], j] += start[j]
            node[offsets[k + 1] - 1, j] += end[j]


@compiled
def sum_ends(node, offsets, low, high, starts, ends):
    """Add the first rows of sequences low..high-1 to ``starts`` and their last rows to ``ends``."""
    for k in range(low, high):
        for j in range(node.shape[1]):
            starts[j] += node[offsets[k], j]
            ends[j] += node[offsets[k + 1] - 1, j]


@compiled
def hard(node, transition, start, end, edge, offsets, low, high, values, labelling, forward, tables, scores):
    """Viterbi on sequences low..high-1: best score into ``values``, best labels (lowest at ties) into ``labelling``.

    Scratch, with rows padded to a multiple of eight: ``forward`` (longest sequence, labels), ``tables`` (2, labels,
    labels) and ``scores`` (labels,).
    """
    labels = node.shape[1]
    tables[0] = 0.0
    tables[0, :labels, :labels] = transition
    flat, edges = node.reshape(-1), edge.reshape(-1)
    for k in range(low, high):
        at, length = offsets[k], offsets[k + 1] - offsets[k]
        pair, path = (at - k) * labels * labels, labelling[at : at + length]
        rows = flat[at * labels : (at + length) * labels]
        values[k] = viterbi(rows, start, end, edges, pair, length, edge.shape[0] > 0, forward, tables, scores, path)


@compiled
def viterbi(node, start, end, edge, pair, length, edged, forward, tables, scores, path):
    """The best score of one sequence; its labels are written to ``path``.

    ``node`` and ``edge`` are flat here, the edge scores from position ``pair`` on; tables[0] holds the transitions.
    """
    labels, width = start.shape[0], forward.shape[1]
    for j in range(labels):
        forward[0, j] = node[j] + start[j]
    for t in range(1, length):
        table = edge_table(edge, pair, t, labels, tables) if edged else tables[0]
        maxima(forward, (t - 1) * width, labels, table, forward, t * width)
        copy(node, t * labels, labels, scores)
        add_to(forward, t * width, scores)
    last = 0
    for j in range(1, labels):
        last = j if forward[length - 1, j] + end[j] > forward[length - 1, last] + end[last] else last
    path[length - 1] = last
    for t in range(length - 1, 0, -1):
        table = edge_table(edge, pair, t, labels, tables) if edged else tables[0]
        f, source = forward[t - 1], 0
        for i in range(1, labels):
            source = i if f[i] + table[i, path[t]] > f[source] + table[source, path[t]] else source
        path[t - 1] = source
    return forward[length - 1, last] + end[last]


@compiled
def edge_table(edge, pair, t, labels, tables):
    """tables[1] = transition + the edge scores between positions t - 1 and t."""
    at = pair + (t - 1) * labels * labels
    for i in range(labels):
        for j in range(labels):
            tables[1, i, j] = tables[0, i, j] + edge[at + i * labels + j]
    return tables[1]


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
