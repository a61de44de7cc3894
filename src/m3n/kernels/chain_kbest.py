"""The k best labellings of chains, by recursive enumeration (Jiménez and Marzal, 1999).

Every pair (t, j) has a list of the best prefixes that end in label j at position t, best first. Viterbi fills in the
first of each. The next one of (t, j) continues the next unused prefix of some (t - 1, i); only the list that the latest
one came from can be too short to tell, so a list is made longer by making at most one list longer at every
earlier position. The lists of the end of the sequence, a position of its own, are the answer.

A prefix knows the label and the rank of the one it continues, hence no two are the same labels. Ties go to the lowest
preceding label, as in Viterbi; prefixes that score -inf do not exist.

Layout as in ``chain``. Cost per token: O(labels^2 + k labels). Memory: O(longest sequence x labels x (labels + k)).
"""

import numpy as np

from m3n.kernels._jit import kernel


@kernel
def k_best(
    node, transition, start, end, edge, offsets, low, high, scores, labellings, prefixes, came, used, counts, stack
):
    """Best scores (sequences, k) and labels (k, tokens) of sequences low..high-1; -inf where there are fewer outputs.

    Scratch, with one position more than the longest sequence: ``prefixes`` (positions, labels, k) the lists; ``came``,
    the same shape, label k + rank of what they continue; ``used`` (positions, labels, labels), how many prefixes of
    the list i before are continued in list j; ``counts`` (2, positions, labels), the sizes of the lists and whether
    they are complete; ``stack`` (positions,).
    """
    labels, k = node.shape[1], scores.shape[1]
    for sequence in range(low, high):
        first, length = offsets[sequence], offsets[sequence + 1] - offsets[sequence]
        rows = node[first : first + length]
        tables = edge[first - sequence : first - sequence + length - 1]  # of positions 1.. if there are any
        for j in range(labels):
            prefixes[0, j, 0] = node[first, j] + start[j]
            counts[0, 0, j] = prefixes[0, j, 0] > -np.inf
            counts[1, 0, j] = 1
        for t in range(1, length + 1):
            for j in range(labels if t < length else 1):
                counts[:, t, j] = 0
                used[t, j] = 0
                _append(rows, transition, end, tables, t, j, prefixes, came, used, counts)
        count = counts[0, length, 0]
        while 0 < count < k and not counts[1, length, 0]:
            _extend(rows, transition, end, tables, prefixes, came, used, counts, stack)
            count = counts[0, length, 0]
        scores[sequence] = -np.inf
        for r in range(count):
            scores[sequence, r] = prefixes[length, 0, r]
            _trace(came, length, r, labellings[r, first : first + length])


@kernel
def _extend(rows, transition, end, tables, prefixes, came, used, counts, stack):
    """Make the list at the end of the sequence longer by one, and before that the lists that it depends on."""
    t, k = rows.shape[0], came.shape[2]
    stack[t] = 0
    while True:
        j = stack[t]
        i = came[t, j, counts[0, t, j] - 1] // k
        if counts[1, t - 1, i] or used[t, j, i] < counts[0, t - 1, i]:
            break
        t -= 1
        stack[t] = i
    for s in range(t, rows.shape[0] + 1):
        _append(rows, transition, end, tables, s, stack[s], prefixes, came, used, counts)


@kernel
def _append(rows, transition, end, tables, t, j, prefixes, came, used, counts):
    """Append the best prefix that is not in the list (t, j) yet, or mark the list as complete."""
    length, labels = rows.shape
    best, source = -np.inf, 0
    for i in range(labels):
        if used[t, j, i] < counts[0, t - 1, i]:
            gain = end[i] if t == length else transition[i, j]
            if tables.shape[0] and t < length:
                gain += tables[t - 1, i, j]
            score = prefixes[t - 1, i, used[t, j, i]] + gain
            if score > best:
                best, source = score, i
    if t < length:
        best += rows[t, j]
    if best == -np.inf:
        counts[1, t, j] = 1
        return
    rank = counts[0, t, j]
    prefixes[t, j, rank] = best
    came[t, j, rank] = source * came.shape[2] + used[t, j, source]
    used[t, j, source] += 1
    counts[0, t, j] += 1


@kernel
def _trace(came, length, rank, path):
    """The labels of the output that has a rank."""
    k, label = came.shape[2], 0
    for t in range(length, 0, -1):
        place = came[t, label, rank]
        label, rank = place // k, place % k
        path[t - 1] = label
