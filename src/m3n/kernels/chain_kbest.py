"""The k best labellings of chains.

F_t(j) = the scores of the k best prefixes that end in label j, best first. The prefixes that continue one of F_{t-1}(i)
come in the order of that list, whatever j is, so the k best of all are found by merging labels sorted lists: a heap
holds the head of every list. Each prefix remembers the label and the rank of the one it continues, hence two prefixes
with the same score are never the same labels. Ties go to the lowest preceding label, as in Viterbi; prefixes that score
-inf do not exist.

Layout as in ``chain``. Cost per token: O(labels (labels + k log labels)). Memory: O(longest sequence x labels x k).
"""

import numpy as np

from m3n.kernels._jit import kernel


@kernel
def k_best(node, transition, start, end, edge, offsets, low, high, scores, labellings, lists, gain, came, numbers):
    """Best scores (sequences, k) and labels (k, tokens) of sequences low..high-1; -inf where there are fewer outputs.

    Scratch: ``lists`` (2, labels, k), the prefixes of two positions; ``came`` (longest sequence, labels, k), where they
    came from; ``numbers`` (4, labels), integers: the sizes of the lists, and what a merge needs; ``gain`` (labels,).
    """
    labels = node.shape[1]
    sizes, source = numbers[:2], numbers[2:]
    for k in range(low, high):
        first, length = offsets[k], offsets[k + 1] - offsets[k]
        for j in range(labels):
            lists[0, j, 0] = node[first, j] + start[j]
            sizes[0, j] = 1 if lists[0, j, 0] > -np.inf else 0
        for t in range(1, length):
            old, new = (t - 1) % 2, t % 2
            for j in range(labels):
                for i in range(labels):
                    gain[i] = transition[i, j]
                    if edge.shape[0]:
                        gain[i] += edge[first - k + t - 1, i, j]
                size = _merge(lists[old], sizes[old], gain, source, lists[new, j], came[t, j])
                shift = node[first + t, j]
                sizes[new, j] = size if shift > -np.inf else 0
                for r in range(size):
                    lists[new, j, r] += shift
        last = (length - 1) % 2
        gain[:] = end
        size = _merge(lists[last], sizes[last], gain, source, scores[k], came[0, 0])
        scores[k, size:] = -np.inf
        for r in range(size):
            _trace(came, came[0, 0, r], length, labellings[r, first : first + length])


@kernel
def _merge(lists, sizes, gain, source, out, came):
    """The best of lists[i] + gain[i] over all i, best first: scores and where they are in ``lists``; returns how many.

    source[0] holds the labels in the heap, source[1] the rank that each label has come to. ``gain`` is left alone.
    """
    labels, k = lists.shape
    heap, rank = source[0], source[1]
    size = 0
    for i in range(labels):
        rank[i] = 0
        if sizes[i] > 0 and gain[i] > -np.inf:
            heap[size] = i
            size += 1
    for at in range(size // 2 - 1, -1, -1):
        _sift(heap, size, at, rank, lists, gain)
    count = 0
    while size > 0 and count < k:
        i = heap[0]
        out[count] = lists[i, rank[i]] + gain[i]
        came[count] = i * k + rank[i]
        count += 1
        rank[i] += 1
        if rank[i] == sizes[i]:
            size -= 1
            heap[0] = heap[size]
        _sift(heap, size, 0, rank, lists, gain)
    return count


@kernel
def _sift(heap, size, at, rank, lists, gain):
    """Move an entry down to where both of its children are worse; at ties the lower label is the better one."""
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _better(heap[child + 1], heap[child], rank, lists, gain):
            child += 1
        if not _better(heap[child], heap[at], rank, lists, gain):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@kernel
def _better(a, b, rank, lists, gain):
    left, right = lists[a, rank[a]] + gain[a], lists[b, rank[b]] + gain[b]
    return left > right or (left == right and a < b)


@kernel
def _trace(came, place, length, path):
    """The labels of the prefix at a place of the last position."""
    k = came.shape[2]
    for t in range(length - 1, -1, -1):
        path[t] = place // k
        if t > 0:
            place = came[t, place // k, place % k]
