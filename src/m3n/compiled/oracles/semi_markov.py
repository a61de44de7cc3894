"""Segmentations over a packed batch: the order of spans, scores of whole segments, Viterbi.

A *span* is a stretch (begin, size) of a sequence with size <= ``most``, the largest bound of any label. Spans come in
the order of their begin, then of their size. Of a sequence of length L,

    count(L) = m L - m (m - 1)/2,   m = min(L, most),        place(begin, size) = count(L) - count(L - begin) + size - 1

since the spans from ``begin`` on are those of a sequence of length L - begin. All arrays of one sequence are flat here.

Viterbi takes a segment in two steps, so that labels meet in pairs only once per position:

    open_b(j) = max_i { closed_b(i) + transition_ij },  open_0 = start
    closed_t(j) = max_d { open_{t-d}(j) + segment score of (t - d, d, j) }

O(length (most labels + labels^2)). Instead of back pointers the path is found by looking again. Rows of scratch arrays
are padded to a multiple of eight numbers.

With open_b(j) and closed_t(j) as nodes this is a lattice whose *arcs* are segments and transitions. They are numbered:

    segment     (begin, size, j)   place(begin, size) labels + j
    transition  (t, i, j)          count(L) labels + ((t - 1) labels + i) labels + j,   between positions t - 1 and t

Reference: Sarawagi, Cohen, "Semi-Markov conditional random fields for information extraction", 2004.
"""

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.primitives.padded import maxima


@compiled
def count(length, most):
    """Number of spans of a sequence."""
    short = min(length, most)
    return short * length - short * (short - 1) // 2


@compiled
def place(length, most, begin, size):
    """Number of a span within its sequence."""
    return count(length, most) - count(length - begin, most) + size - 1


@compiled
def add_up(node, segment, length, bounds, most, running, out):
    """Scores of whole segments: that of the span plus those of its positions; -inf where too long for its label.

    ``out`` may be ``segment`` itself. Scratch: ``running`` (labels,).
    """
    labels, at = bounds.shape[0], 0
    for begin in range(length):
        running[:] = 0.0
        for d in range(min(most, length - begin)):
            here = node[(begin + d) * labels : (begin + d + 1) * labels]
            source, target = segment[at : at + labels], out[at : at + labels]
            for j in range(labels):
                running[j] += here[j]
                target[j] = source[j] + running[j] if d < bounds[j] else -np.inf
            at += labels


@compiled
def hard(
    node, transition, start, end, segment, offsets, cuts, bounds, low, high, values, labelling,
    totals, sequences, table, running,
):  # fmt: skip
    """Viterbi on sequences low..high-1: best score into ``values``, best outputs into ``labelling``.

    Sequence k has the spans cuts[k]..cuts[k+1]-1. Scratch: ``totals`` (spans of a sequence * labels,), ``sequences``
    (2, longest + 1, labels) and ``table`` (labels, labels) with padded rows, ``running`` (labels,).
    """
    labels = start.shape[0]
    table[:] = 0.0
    table[:labels, :labels] = transition
    nodes, segments = node.reshape(-1), segment.reshape(-1)
    for k in range(low, high):
        rows = nodes[offsets[k] * labels : offsets[k + 1] * labels]
        spans = segments[cuts[k] * labels : cuts[k + 1] * labels]
        path = labelling[offsets[k] : offsets[k + 1]]
        values[k] = viterbi(rows, start, end, spans, bounds, rows[:0], totals, sequences, table, table, running, path)


@compiled
def viterbi(node, start, end, segment, bounds, mass, totals, sequences, table, kept, running, path):
    """The best score of one sequence; its output is written to ``path``.

    With ``mass``, a number for every arc, only outputs count whose arcs all have a positive one; ``kept`` (labels,
    labels) is scratch for that. An empty ``mass`` allows everything, and ``kept`` is ``table`` itself.
    """
    labels, most, width = bounds.shape[0], bounds.max(), table.shape[1]
    length, closed, opened = path.shape[0], sequences[0], sequences[1]
    add_up(node, segment, length, bounds, most, running, totals)
    if mass.shape[0] > 0:
        keep_segments(mass, count(length, most) * labels, totals)
    for j in range(labels):
        opened[0, j] = start[j]
    for t in range(1, length + 1):
        target = closed[t]
        target[:] = -np.inf
        for d in range(1, min(most, t) + 1):
            at = place(length, most, t - d, d) * labels
            source, score = opened[t - d], totals[at : at + labels]
            for j in range(labels):
                target[j] = max(target[j], source[j] + score[j])
        if t < length:
            if mass.shape[0] > 0:
                keep_transitions(mass, count(length, most), t, labels, table, kept)
            maxima(closed, t * width, labels, kept, opened, t * width)
    last = 0
    for j in range(1, labels):
        last = j if closed[length, j] + end[j] > closed[length, last] + end[last] else last
    _trace(totals, closed, opened, mass, table, kept, labels, most, last, path)
    return closed[length, last] + end[last]


@compiled
def keep_segments(mass, arcs, totals):
    """Segments without mass become -inf."""
    for k in range(arcs):
        if not mass[k] > 0.0:
            totals[k] = -np.inf


@compiled
def keep_transitions(mass, spans, t, labels, table, kept):
    """The transitions to position t into ``kept``, -inf for those without mass."""
    at = (spans + (t - 1) * labels) * labels
    for i in range(labels):
        for j in range(labels):
            kept[i, j] = table[i, j] if mass[at + i * labels + j] > 0.0 else -np.inf


@compiled
def _trace(totals, closed, opened, mass, table, kept, labels, most, label, path):
    """Write the best output from its last label on: of equal ones the shortest segment and the lowest label."""
    length = path.shape[0]
    t = length
    while t > 0:
        size, best = 1, -np.inf
        for d in range(1, min(most, t) + 1):
            score = opened[t - d, label] + totals[place(length, most, t - d, d) * labels + label]
            if score > best:
                size, best = d, score
        path[t - size : t] = label
        t -= size
        path[t] += labels
        if t > 0:
            source = 0
            if mass.shape[0] > 0:
                keep_transitions(mass, count(length, most), t, labels, table, kept)
            for i in range(1, labels):
                source = i if closed[t, i] + kept[i, label] > closed[t, source] + kept[source, label] else source
            label = source
