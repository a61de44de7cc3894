"""Linear chains over a packed batch: Viterbi, and the parts of labellings.

Layout. ``node`` (tokens, labels) holds the sequences one after another, sequence k being rows
``offsets[k]:offsets[k+1]``; ``transition`` (labels, labels), ``start`` and ``end`` (labels,) are shared by all;
``edge`` (tokens - sequences, labels, labels) is one extra table for every pair of neighbours, or has length 0.

Viterbi keeps the scores f_t(j) of the best prefixes instead of back pointers: the inner loop is then a plain maximum,
and the path is found again by looking for the predecessor that attains it, O(labels) per position. Scratch rows are
padded to a multiple of eight numbers.

Of many labels few can be the best predecessor of any. With l(i) and m(i) the least and the largest transition from
label i, i is none if f(i) + m(i) < max_k { f(k) + l(k) }: it loses to that k everywhere. Sums of doubles are rounded
monotonically, so what is left out is smaller in machine arithmetic, too, and results are the same bit for bit. On a
trained model with 237 labels one label in a hundred is left.

The exp-oracle has two implementations with one result: ``chain_scaled``, and ``chain_log`` where that is not safe.
Cost per token: O(labels^2). Memory: O(longest sequence x labels) besides the arguments.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing, compiled, inner
from m3n.compiled.primitives.padded import add_to, copy, maxima, maxima_of
from m3n.compiled.primitives.vector import add, highest, load, lowest, maximum, minimum, prefetch, splat

AHEAD = 16  # rows between asking for a number and using it
FEW = 100  # labels up to which looking for contenders takes longer than it saves
WAIT = 8  # positions that are not asked for contenders after one with too many


class Contenders(NamedTuple):
    """Which labels may be the best predecessor of another; rows are padded to a multiple of eight."""

    least: np.ndarray  # (labels,) of the transitions from a label; -inf where labels only pad
    most: np.ndarray  # (labels,)
    kept: np.ndarray  # (labels,) the contenders of one position


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
def viterbi_of_many(node, ends, table, contenders, forward, scores, path):
    """``viterbi`` of more than ``FEW`` labels without edge scores and masses: contenders alone are looked at.

    ``weigh_transitions`` has seen the table.
    """
    labels, width, (least, most, kept) = ends.shape[1], forward.shape[2], contenders
    length, again = node.shape[0] // labels, 1
    for j in range(labels):
        forward[0, 0, j] = node[j] + ends[0, j]
    for t in range(1, length):
        number = _contend(forward, t - 1, labels, least, most, kept) if t >= again else labels
        if 2 * number < labels:
            maxima_of(forward, (t - 1) * width, kept, number, table, forward, t * width)
        else:
            maxima(forward, (t - 1) * width, labels, table, forward, t * width)
            again = t + WAIT if t >= again else again
        copy(node, t * labels, labels, scores, 0)
        add_to(forward, t * width, scores)
    last, f = 0, forward[0, length - 1]
    for j in range(1, labels):
        last = j if f[j] + ends[1, j] > f[last] + ends[1, last] else last
    path[length - 1] = last
    for t in range(length - 1, 0, -1):
        path[t - 1] = _best_contender(forward, t - 1, table, labels, path[t], most)
    return f[last] + ends[1, last]


@inner
def contenders_for(width):
    """Memory for rows of so many labels."""
    return Contenders(np.full(width, -np.inf), np.full(width, -np.inf), np.empty(width, np.int64))


@inner
def weigh_transitions(table, labels, contenders):
    """The least and the largest transition from every label, of a padded table."""
    width = table.shape[1]
    for i in range(labels):
        low = high = load(table, i * width)
        for j in range(4, labels, 4):
            x = load(table, i * width + min(j, labels - 4))
            low, high = minimum(x, low), maximum(x, high)
        contenders.least[i], contenders.most[i] = lowest(low), highest(high)


@borrowing
def _contend(forward, t, labels, least, most, kept):
    """List the labels that may be the best predecessor of some label, where prefixes score forward[0, t].

    Returns their number, or half of the labels or more if there are so many. ``least``, ``most`` and ``kept`` are those
    of ``Contenders``.
    """
    width, tops, number = forward.shape[2], splat(-np.inf), 0
    for c in range(0, width, 4):
        tops = maximum(add(load(forward, t * width + c), load(least, c)), tops)
    sure = highest(tops)
    for c in range(0, width, 8):
        if 2 * number >= labels:
            break
        if _reach(forward, t * width + c, most, c) >= sure:
            for i in range(c, min(c + 8, labels)):
                if forward[0, t, i] + most[i] >= sure:
                    kept[number] = i
                    number += 1
    return number


@borrowing
def _reach(forward, at, most, c):
    """The best that prefixes with one of eight labels from c on can be continued to, ``at`` being the place of c."""
    low, high = add(load(forward, at), load(most, c)), add(load(forward, at + 4), load(most, c + 4))
    return highest(maximum(high, low))


@borrowing
def _best_contender(forward, t, table, labels, label, most):
    """``best_source``, which reads those entries of the table that can matter."""
    source, best, width = 0, forward[0, t, 0] + table[0, label], forward.shape[2]
    for c in range(0, width, 8):
        if _reach(forward, t * width + c, most, c) > best:
            for i in range(c, min(c + 8, labels)):
                if forward[0, t, i] + table[i, label] > best:
                    source, best = i, forward[0, t, i] + table[i, label]
    return source


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
