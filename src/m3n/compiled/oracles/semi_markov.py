"""Segmentations: the order of spans, scores of whole segments, both oracles of one sequence.

A *span* is a stretch (begin, size) of a sequence with size <= ``most``, the largest bound of any label. Spans come in
the order of their begin, then of their size. Of a sequence of length L,

    count(L) = m L - m (m - 1)/2,   m = min(L, most),        place(begin, size) = count(L) - count(L - begin) + size - 1

since the spans from ``begin`` on are those of a sequence of length L - begin. Both oracles take a segment in two
steps, so that labels meet in pairs only once per position: a label *opens* at b, and *closes* at t,

    open_b(j)   = max_i { closed_b(i) + transition_ij },  open_0 = start
    closed_t(j) = max_d { open_{t-d}(j) + score of segment (t - d, d, j) }

with mu log sum exp(./mu) for the maxima in the exp-oracle: O(length (most labels + labels^2)). Viterbi finds its path
by looking again, without back pointers. In the exp-oracle open_b is as in ``columns``, and scores of segments become
the terms of the sum of closed_t: divided by their total they are the probabilities of sizes, given where a segment ends
and its label. So P(segment) = P(label j ends at t) term/total backwards, without an exponential, and marginals are
those of a distribution at any temperature. closed_t is moved to a maximum of 0 by ``moves[t]``, which keeps the
rounding error from growing with the length.

With open_b(j) and closed_t(j) as nodes this is a lattice whose arcs are the cliques: masses that are consistent on them
are a flow, and any flow through a graph without cycles is a mixture of paths. They are numbered:

    segment     (begin, size, j)   place(begin, size) labels + j
    transition  (t, i, j)          count(L) labels + ((t - 1) labels + i) labels + j,   between positions t - 1 and t

Reference: Sarawagi, Cohen, "Semi-Markov conditional random fields for information extraction", 2004.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inlined, inner
from m3n.compiled.oracles.chain_block import begin_counts, read_tables, write_tables
from m3n.compiled.oracles.chain_scaled import SAFE
from m3n.compiled.oracles.columns import divide_column, sum_column, take_logarithms, take_ratios, warm_up
from m3n.compiled.oracles.hooks import implements, in_steps
from m3n.compiled.primitives.arrays import largest, put
from m3n.compiled.primitives.exponential import exp, normalise
from m3n.compiled.primitives.logarithm import log
from m3n.compiled.primitives.order import ascend
from m3n.compiled.primitives.padded import add_products, maxima, product
from m3n.compiled.primitives.vector import padded


@in_steps
class SemiMarkovSpace(NamedTuple):
    """Plain arrays of a ``SemiMarkov``."""

    lengths: np.ndarray  # (n,)
    labels: int
    bounds: np.ndarray  # (labels,) longest segment of a label
    forbidden: np.ndarray  # (labels, labels), 0 or -inf
    forbidden_start: np.ndarray  # (labels,)
    forbidden_end: np.ndarray  # (labels,)


class SemiMarkovScratch(NamedTuple):
    """Memory for one sweep; rows down to ``vectors`` are padded to a multiple of eight."""

    closed: np.ndarray  # (longest + 1, labels)
    opened: np.ndarray  # (longest + 1, labels), and the probabilities of labels to begin at a position
    warm: np.ndarray  # (longest + 1, labels)
    pre: np.ndarray  # (longest + 1, labels)
    masses: np.ndarray  # (longest + 1, labels) totals of terms
    tables: np.ndarray  # (3, labels, labels) as in ``chain_scaled``; transitions and those with mass in Viterbi
    vectors: np.ndarray  # (4, labels)
    running: np.ndarray  # (labels,)
    terms: np.ndarray  # (longest + 1, most, labels) segments by their end and size - 1
    moves: np.ndarray  # (longest + 1,)
    transition: np.ndarray  # (labels, labels)
    ends: np.ndarray  # (2, labels): start and end scores
    counts: np.ndarray  # (labels, labels) marginals of transitions of columns that were not safe
    end_counts: np.ndarray  # (2, labels) marginals of starts and ends
    every: np.ndarray  # (labels,) integers 0, 1, ...
    found: np.ndarray  # (longest,) integers: segments of the best output


@implements("workspace", SemiMarkovSpace)
def _workspace(space):
    s, longest = space.bounds.shape[0], largest(space.lengths) + 1
    width = padded(s)
    rows, terms = np.zeros((5, longest, width)), np.empty((longest, min(largest(space.bounds), longest), s))
    vectors, moves, found = np.zeros((5, width)), np.zeros(longest), np.empty(longest, np.int64)
    shared = np.empty((s, s)), np.empty((2, s)), np.empty((s, s)), np.empty((2, s))
    recursion = rows[0], rows[1], rows[2], rows[3], rows[4], np.zeros((3, width, width)), vectors[:4], vectors[4]
    return SemiMarkovScratch(*recursion, terms, moves, *shared, np.arange(s), found)


@implements("cut", SemiMarkovSpace)
def _cut(space, i, theta):
    s = space.bounds.shape[0]
    at = space.lengths[i] * s
    return (theta[:at], theta[at + (s + 2) * s :]), theta[at : at + (s + 2) * s]


@implements("read_shared", SemiMarkovSpace)
def _read_shared(space, shared, work):
    read_tables(space, shared, work)


@implements("begin_soft", SemiMarkovSpace)
def _begin_soft(space, mu, work):
    begin_counts(mu, True, work)


@implements("best_own", SemiMarkovSpace)
def _best_own(space, i, own, mass, parts, work):
    _add_up(own, space.bounds, space.lengths[i], mass, work.running, work.terms)
    return _viterbi(space.lengths[i], mass, parts, work)


@implements("soft_own", SemiMarkovSpace)
def _soft_own(space, i, own, mu, weight, work):
    length = space.lengths[i]
    _add_up(own, space.bounds, length, own[0][:0], work.running, work.terms)
    value = _forward(length, mu, work)
    _backward(length, mu, weight, work)
    _spread(work.terms, length, work.running, own)
    return value


implements("write_shared", SemiMarkovSpace)(write_tables)


@implements("cliques", SemiMarkovSpace)
def _cliques(space, i, parts, out):
    s, length, most = space.bounds.shape[0], space.lengths[i], largest(space.bounds)
    shared, segments = length * s, length
    while parts[segments] < shared + s * s:  # transitions
        segments += 1
    segments += 2
    begin, before, number = 0, -1, 0
    while begin < length:
        arc = parts[segments] - shared - (s + 2) * s
        if begin > 0:
            out[number] = (count(length, most) + (begin - 1) * s + before) * s + arc % s
            number += 1
        out[number] = arc
        begin, before = begin + arc // s - place(length, most, begin, 1) + 1, arc % s
        number, segments = number + 1, segments + 1
    return number


@implements("clique_range", SemiMarkovSpace)
def _clique_range(space):
    s, longest = space.bounds.shape[0], largest(space.lengths)
    return (count(longest, largest(space.bounds)) + (longest - 1) * s) * s


@compiled
def count(length, most):
    """Number of spans of a sequence."""
    short = np.minimum(length, most)
    return short * length - short * (short - 1) // 2


@compiled
def place(length, most, begin, size):
    """Number of a span within its sequence."""
    return count(length, most) - count(length - begin, most) + size - 1


@inner
def _add_up(own, bounds, length, mass, running, terms):
    """Scores of whole segments: that of the span plus those of its positions.

    They are -inf where a segment is too long for its label, or has no mass if there are masses.
    """
    node, segment = own
    s, at = bounds.shape[0], 0
    for begin in range(length):
        running[:] = 0.0
        for d in range(min(terms.shape[1], length - begin)):
            here, source = node[(begin + d) * s : (begin + d + 1) * s], segment[at : at + s]
            target = terms[begin + d + 1, d]
            for j in range(s):
                running[j] += here[j]
                target[j] = source[j] + running[j] if d < bounds[j] else -np.inf
            if mass.shape[0] > 0:
                for j in range(s):
                    target[j] = target[j] if mass[at + j] > 0.0 else -np.inf
            at += s


@inlined
def _viterbi(length, mass, parts, work):
    """closed_t and open_t of all positions, by maxima; the best score, and the number of parts of the best output."""
    terms, closed, opened, table = work.terms, work.closed, work.opened, work.tables[0]
    kept = work.tables[1] if mass.shape[0] > 0 else table
    (most, s), width = terms.shape[1:], closed.shape[1]
    put(work.ends[0], opened[0])
    for t in range(1, length + 1):
        target = closed[t]
        target[:] = -np.inf
        for d in range(min(most, t)):
            source, score = opened[t - 1 - d], terms[t, d]
            for j in range(s):
                target[j] = max(target[j], source[j] + score[j])
        if t < length:
            if mass.shape[0] > 0:
                _keep(length, mass, t, most, s, table, kept)
            maxima(closed, t * width, s, kept, opened, t * width)
    last, scores, end = 0, closed[length], work.ends[1]
    for j in range(1, s):
        last = j if scores[j] + end[j] > scores[last] + end[last] else last
    return scores[last] + end[last], _trace(length, mass, last, parts, work)


@inner
def _keep(length, mass, t, most, s, table, kept):
    """Scores of transitions to position t; -inf for those without mass."""
    at = (count(length, most) + (t - 1) * s) * s
    for i in range(s):
        for j in range(s):
            kept[i, j] = table[i, j] if mass[at + i * s + j] > 0.0 else -np.inf


@inlined
def _trace(length, mass, label, parts, work):
    """Write the parts of the best output from its last label on; of equal ones the shortest segment, the lowest label.

    Returns their number. They ascend: positions, transitions, start, end, segments.
    """
    terms, closed, opened, found, table = work.terms, work.closed, work.opened, work.found, work.tables[0]
    kept = work.tables[1] if mass.shape[0] > 0 else table
    most, s = terms.shape[1:]
    shared, t, last, number, segments = length * s, length, label, length, 0
    while t > 0:
        size, best = 1, -np.inf
        for d in range(min(most, t)):
            score = opened[t - 1 - d, label] + terms[t, d, label]
            if score > best:
                size, best = d + 1, score
        for position in range(t - size, t):
            parts[position] = position * s + label
        t -= size
        found[segments] = place(length, most, t, size) * s + label
        segments += 1
        if t > 0:
            source = 0
            if mass.shape[0] > 0:
                _keep(length, mass, t, most, s, table, kept)
            for i in range(1, s):
                source = i if closed[t, i] + kept[i, label] > closed[t, source] + kept[source, label] else source
            parts[number] = shared + source * s + label
            number, label = number + 1, source
    ascend(parts, length, number)
    parts[number], parts[number + 1] = shared + s * s + label, shared + s * s + s + last
    for k in range(segments):
        parts[number + 2 + k] = shared + (s + 2) * s + found[segments - 1 - k]
    return number + 2 + segments


@inner
def _forward(length, mu, work):
    """The value; vectors[0] are then the probabilities of the last label, all 0 if no output is allowed."""
    closed, opened, pre, tops, last = work.closed, work.opened, work.pre, work.vectors[1], work.vectors[0]
    transition, every = work.transition.reshape(-1), work.every
    most, s = work.terms.shape[1:]
    width, value = closed.shape[1], 0.0
    put(work.ends[0], opened[0])
    for t in range(1, length + 1):
        work.moves[t] = _close(work.terms[t, : min(most, t)], mu, t, work)
        value += work.moves[t]
        if t < length:
            warm_up(closed[t], width, mu, work.warm[t - 1])
            product(work.warm, (t - 1) * width, s, work.tables[0], pre, t * width)
            if not take_logarithms(pre[t], tops, s, width, mu, opened[t]):
                _open_again(closed[t], mu, pre[t], opened[t], transition, every)
    for j in range(s):
        last[j] = closed[length, j] + work.ends[1, j]
    return value + normalise(last, s, mu)


@inlined
def _close(terms, mu, t, work):
    """closed_t, moved to a maximum of 0; scores of segments that end at t become their terms. Returns the move."""
    closed, mass, tops, moved, move = work.closed[t], work.masses[t], work.running, 0.0, -np.inf
    sizes, s = terms.shape
    closed[:] = -np.inf
    for d in range(sizes):
        scores, source = terms[d], work.opened[t - 1 - d]
        for j in range(s):
            scores[j] += source[j] - moved
            closed[j] = max(closed[j], scores[j])
        moved += work.moves[t - 1 - d]
    if sizes > 1:
        _sum_sizes(terms, mu, tops, closed, mass)
    else:  # one term each
        for j in range(s):
            mass[j] = terms[0, j] = 1.0 if closed[j] > -np.inf else 0.0
    for j in range(s):
        move = max(move, closed[j])
    move = move if move > -np.inf else 0.0
    for j in range(s):
        closed[j] -= move
    return move


@inner
def _sum_sizes(terms, mu, tops, closed, mass):
    """Terms in place of scores; closed(j) from the largest score to that of their sum."""
    inverse = 1.0 / mu
    mass[:] = 0.0
    for j in range(terms.shape[1]):
        tops[j] = closed[j] if closed[j] > -np.inf else 0.0
    for d in range(terms.shape[0]):
        scores = terms[d]
        for j in range(terms.shape[1]):
            scores[j] = exp((scores[j] - tops[j]) * inverse)
            mass[j] += scores[j]
    for j in range(mass.shape[0]):
        closed[j] += mu * log(max(mass[j], 1.0))  # it is 0 where closed(j) is -inf


@inner
def _open_again(closed, mu, pre, opened, transition, every):
    """open_b where pre_b is not safe."""
    s = every.shape[0]
    for j in range(s):
        if not pre[j] > SAFE:
            pre[j] = 0.0
            opened[j] = sum_column(closed, every, 0, s, transition, j, s, mu)


@inner
def _backward(length, mu, weight, work):
    """Terms become marginals, from the probabilities of the last label; those of shared tables are added up."""
    closed, begins, warm, pre = work.closed, work.opened, work.warm, work.pre
    p, extra, every = work.vectors[0], work.vectors[2], work.every
    transition, counts = work.transition.reshape(-1), work.counts.reshape(-1)
    most, s = work.terms.shape[1:]
    width = warm.shape[1]
    begins[:length] = 0.0
    for j in range(s):
        p[j] *= weight
        work.end_counts[1, j] += p[j]
    for t in range(length, 0, -1):
        if t < length:
            extra[:] = 0.0
            if not take_ratios(begins[t], width, pre[t]):
                _close_again(closed[t], mu, begins[t], pre[t], extra, transition, every, counts)
            product(pre, t * width, s, work.tables[1], p, 0)
            for i in range(width):
                p[i] = p[i] * warm[t - 1, i] + extra[i]
        mass = work.masses[t]
        for j in range(width):
            p[j] = p[j] / mass[j] if mass[j] > 0.0 else 0.0
        for d in range(min(most, t)):
            terms, target = work.terms[t, d], begins[t - 1 - d]
            for j in range(s):
                terms[j] *= p[j]
                target[j] += terms[j]
    for j in range(s):
        work.end_counts[0, j] += begins[0, j]
    add_products(warm, pre, length, s, work.tables[2])


@inner
def _close_again(closed, mu, begins, ratios, extra, transition, every, counts):
    """Columns that were not safe are added to ``counts`` and ``extra``; their ratios become 0."""
    s = every.shape[0]
    for j in range(s):
        if ratios[j] < 0.0:
            ratios[j] = 0.0
            divide_column(begins[j], closed, every, 0, s, transition, j, s, mu, extra, counts)


@inner
def _spread(terms, length, running, own):
    """Marginals of spans in their order, and of positions: the sum over all segments that cover them."""
    node, segment = own
    s, at = terms.shape[2], 0
    node[:] = 0.0
    for begin in range(length):
        running[:] = 0.0
        sizes = min(terms.shape[1], length - begin)
        for d in range(sizes - 1, -1, -1):
            source, out = terms[begin + d + 1, d], segment[(at + d) * s : (at + d + 1) * s]
            target = node[(begin + d) * s : (begin + d + 1) * s]
            for j in range(s):
                running[j] += source[j]
                target[j] += running[j]
                out[j] = source[j]
        at += sizes
