"""The k best labellings of chains, by recursive enumeration (Jiménez and Marzal, 1999).

Every pair (t, j) has a list of the best prefixes that end in label j at position t, best first. Viterbi knows the
score of the first of each. The next one of (t, j) continues the next unused prefix of some (t - 1, i). Only the list
that the latest one came from can be too short to tell, so a list is made longer by making at most one list longer at
every earlier position. The list of the end of the sequence, a position of its own, is the answer.

A prefix knows the label and the rank of the one it continues, hence no two are the same labels. Ties go to the lowest
preceding label, as in Viterbi; prefixes that score -inf do not exist. Where the first prefix of a list came from is
looked up when the list is first used, which most lists never are.

Layout as in ``chain``. Cost of a sequence: Viterbi, and O(length labels) for every answer. Memory: O(longest sequence x
labels x (labels + k)).
"""

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.oracles.chain import viterbi
from m3n.compiled.oracles.chain_block import read_tables
from m3n.compiled.oracles.driver import rows_of
from m3n.compiled.oracles.hooks import workspace

UNKNOWN = -1


@compiled
def k_best(space, arrays, first, shared, low, high, values, labellings):
    """Best scores (sequences, k) and labels (k, tokens) of sequences low..high-1; -inf where there are fewer outputs.

    With one position more than the longest sequence: ``lists`` (positions, labels, k), the scores of prefixes;
    ``places``, the same shape, label x k + rank of what they continue; ``used`` (positions, labels, labels), how many
    prefixes of list i before are continued in list j; ``counts`` (3, positions, labels), the sizes of the lists,
    whether they are complete, and room for the lists that must grow.
    """
    work, labels, k, longest = workspace(space), space.labels, values.shape[1], space.longest + 1
    lists, places = np.empty((longest, labels, k)), np.empty((longest, labels, k), np.int64)
    used, counts = np.empty((longest, labels, labels), np.int64), np.empty((3, longest, labels), np.int64)
    read_tables(space, shared, work)
    transition, end = work.transition, work.ends[1]
    for n in range(low, high):
        node, edge = rows_of(arrays, first, n)
        at, length = space.offsets[n], space.offsets[n + 1] - space.offsets[n]
        path = labellings[0, at : at + length]
        best = viterbi(node, edge, edge[:0], work.ends, work.tables, work.sequences, work.vectors[0], path)
        _begin(work.sequences[0], best, length, lists, places, counts)
        rows, extra = node.reshape(-1, labels), edge.reshape(-1, labels, labels)
        while 0 < counts[0, length, 0] < k and not counts[1, length, 0]:
            _extend(rows, transition, end, extra, lists, places, used, counts)
        values[n] = -np.inf
        for r in range(counts[0, length, 0]):
            values[n, r], path = lists[length, 0, r], labellings[r, at : at + length]
            if r > 0:  # the first is known from Viterbi
                _trace(rows, transition, end, extra, lists, places, used, counts, r, path)


@inner
def _begin(forward, best, length, lists, places, counts):
    """Lists with the best prefix each; those of the first position are complete."""
    for t in range(length + 1):
        for j in range(lists.shape[1] if t < length else 1):
            lists[t, j, 0] = forward[t, j] if t < length else best
            places[t, j, 0] = UNKNOWN
            counts[0, t, j] = lists[t, j, 0] > -np.inf
            counts[1, t, j] = t == 0


@inner
def _extend(rows, transition, end, extra, lists, places, used, counts):
    """Make the list at the end of the sequence longer by one, and before that the lists that it depends on."""
    length, k = rows.shape[0], lists.shape[2]
    stack = counts[2, :, 0]
    t = length
    stack[t] = 0
    while True:
        j = stack[t]
        if places[t, j, 0] == UNKNOWN:
            _open(rows, transition, end, extra, lists, places, used, counts, t, j)
        i = places[t, j, counts[0, t, j] - 1] // k
        if counts[1, t - 1, i] or used[t, j, i] < counts[0, t - 1, i]:
            break
        t -= 1
        stack[t] = i
    for s in range(t, length + 1):
        _append(rows, transition, end, extra, lists, places, used, counts, s, stack[s])


@inner
def _open(rows, transition, end, extra, lists, places, used, counts, t, j):
    """Find out where the best prefix of (t, j) came from."""
    used[t, j] = 0
    source, _ = _next(rows, transition, end, extra, lists, used, counts, t, j)
    places[t, j, 0] = source * lists.shape[2]
    used[t, j, source] = 1


@inner
def _append(rows, transition, end, extra, lists, places, used, counts, t, j):
    """Append the best prefix that is not in the list (t, j) yet, or mark the list as complete."""
    source, score = _next(rows, transition, end, extra, lists, used, counts, t, j)
    if score == -np.inf:
        counts[1, t, j] = 1
        return
    rank = counts[0, t, j]
    lists[t, j, rank] = score
    places[t, j, rank] = source * lists.shape[2] + used[t, j, source]
    used[t, j, source] += 1
    counts[0, t, j] += 1


@inner
def _next(rows, transition, end, extra, lists, used, counts, t, j):
    """The label before (t, j) whose next unused prefix is the best to continue, and the score of doing so."""
    length, labels = rows.shape
    best, source = -np.inf, 0
    for i in range(labels):
        if used[t, j, i] < counts[0, t - 1, i]:
            gain = end[i] if t == length else transition[i, j]
            if extra.shape[0] and t < length:
                gain += extra[t - 1, i, j]
            score = lists[t - 1, i, used[t, j, i]] + gain
            if score > best:
                best, source = score, i
    return source, best + rows[t, j] if t < length else best


@inner
def _trace(rows, transition, end, extra, lists, places, used, counts, rank, path):
    """The labels of the output that has a rank."""
    k, label = lists.shape[2], 0
    for t in range(path.shape[0], 0, -1):
        if places[t, label, 0] == UNKNOWN:
            _open(rows, transition, end, extra, lists, places, used, counts, t, label)
        place = places[t, label, rank]
        label, rank = place // k, place % k
        path[t - 1] = label
