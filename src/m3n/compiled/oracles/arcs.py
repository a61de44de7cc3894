"""What the oracles of dependency trees have in common: arcs and their labels, before and after the trees.

Theta of a sentence begins with the scores of its arcs; if there are labels, those of labelled parts follow. A tree does
not care how an arc is labelled: its best label, or mu log sum exp over its labels, is added to the score of the arc
beforehand, and the labels of the arcs of a tree, or their marginals, are filled in afterwards.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing
from m3n.compiled.primitives.exponential import normalise


class Candidates(NamedTuple):
    """Plain arrays of ``Arcs``."""

    lengths: np.ndarray  # (n,) words
    first: np.ndarray  # (n + 1,) first arc of every sentence
    words: np.ndarray  # (n + 1,) first word of every sentence
    word_first: np.ndarray  # (words + 1,) first arc into every word
    head: np.ndarray  # (arcs,)
    labels: int
    label_first: np.ndarray  # (arcs + 1,) first labelled part of every arc; () if every arc may have all labels


@borrowing
def count_arcs(arcs, i):
    """Number of arcs of a sentence."""
    return arcs.first[i + 1] - arcs.first[i]


@borrowing
def most_arcs(arcs):
    """Number of arcs of the sentence that has most."""
    most = 0
    for i in range(arcs.lengths.shape[0]):
        most = max(most, count_arcs(arcs, i))
    return most


@borrowing
def arcs_into(arcs, i, word):
    """The arcs into a word: the first one and the end, numbered within the sentence."""
    at = arcs.words[i] + word - 1
    return arcs.word_first[at] - arcs.first[i], arcs.word_first[at + 1] - arcs.first[i]


@borrowing
def arc_from(arcs, i, word, head):
    """The arc from ``head`` into a word, which must be a candidate."""
    low, high = arcs_into(arcs, i, word)
    first = arcs.first[i]
    while high - low > 1:
        middle = (low + high) // 2
        if arcs.head[first + middle] <= head:
            low = middle
        else:
            high = middle
    return low


@borrowing
def labelled(arcs, i, arc):
    """Where the labelled parts of an arc begin and end in theta."""
    count, first = count_arcs(arcs, i), arcs.first[i]
    if arcs.label_first.shape[0] == 0:
        return count + arc * arcs.labels, count + (arc + 1) * arcs.labels
    at = count - arcs.label_first[first]
    return at + arcs.label_first[first + arc], at + arcs.label_first[first + arc + 1]


@borrowing
def count_parts(arcs, i):
    """Number of arcs and labelled parts of a sentence: where the rest of theta begins."""
    return count_arcs(arcs, i) if arcs.labels == 1 else labelled(arcs, i, count_arcs(arcs, i) - 1)[1]


@borrowing
def best_label(theta, low, high):
    """The labelled part with the largest score, the first of equal ones."""
    best = low
    for part in range(low + 1, high):
        best = part if theta[part] > theta[best] else best
    return best


@borrowing
def add_best_labels(arcs, i, theta, scores):
    """Scores of arcs with their best labels."""
    for a in range(count_arcs(arcs, i)):
        scores[a] = theta[a]
        if arcs.labels > 1:
            low, high = labelled(arcs, i, a)
            scores[a] += theta[best_label(theta, low, high)]


@borrowing
def add_soft_labels(arcs, i, theta, mu, scores):
    """Scores of arcs plus mu log sum exp of their labels; theta has the probabilities of labels, given the arc."""
    for a in range(count_arcs(arcs, i)):
        scores[a] = theta[a]
        if arcs.labels > 1:
            low, high = labelled(arcs, i, a)
            scores[a] += normalise(theta[low:high], high - low, mu)


@borrowing
def weigh_labels(arcs, i, theta):
    """Marginals of labelled parts from those of arcs, which theta begins with."""
    if arcs.labels > 1:
        for a in range(count_arcs(arcs, i)):
            low, high = labelled(arcs, i, a)
            for part in range(low, high):
                theta[part] *= theta[a]


@borrowing
def list_arcs(arcs, i, theta, heads, parts):
    """The arcs of a tree with their best labels; the number of these parts."""
    length = arcs.lengths[i]
    for word in range(1, length + 1):
        arc = arc_from(arcs, i, word, heads[word])
        parts[word - 1] = arc
        if arcs.labels > 1:
            low, high = labelled(arcs, i, arc)
            parts[length + word - 1] = best_label(theta, low, high)
    return length if arcs.labels == 1 else 2 * length


@borrowing
def spread_scores(arcs, i, scores, head_step, word_step, table):
    """table[h head_step + d word_step] = the score of arc (h, d), -inf where it is no candidate."""
    first, n = arcs.first[i], arcs.lengths[i] + 1
    for k in range(n * n):
        table[k] = -np.inf
    for word in range(1, n):
        low, high = arcs_into(arcs, i, word)
        for a in range(low, high):
            table[arcs.head[first + a] * head_step + word * word_step] = scores[a]


@borrowing
def collect_marginals(arcs, i, head_step, word_step, table, theta):
    """theta[arc] = the entry of arc (h, d), as in ``spread_scores``."""
    first = arcs.first[i]
    for word in range(1, arcs.lengths[i] + 1):
        low, high = arcs_into(arcs, i, word)
        for a in range(low, high):
            theta[a] = table[arcs.head[first + a] * head_step + word * word_step]
