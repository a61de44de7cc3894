"""From attributes of tokens straight to the best labels of a chain: scores of a sequence are used while fresh.

Token t has the attributes columns[pointers[t]:pointers[t+1]]; negative ones score nothing. ``amounts`` are their
weights in the token, or have length 0 if these are all 1. ``tables`` (labels + 2, labels) holds the scores of
transitions, starts and ends, with -inf where something is forbidden.
"""

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.oracles.chain import FEW, contenders_for, viterbi, viterbi_of_many, weigh_transitions
from m3n.compiled.primitives.runs import ask_run
from m3n.compiled.primitives.vector import padded

AHEAD = 16  # attributes between asking for a row of weights and using it


@compiled
def label(low, high, offsets, pointers, columns, amounts, weights, tables, values, labelling):
    """The best labels of sequences low..high-1, and their scores; weights (attributes, labels)."""
    scratch = _scratch(low, high, offsets, tables)
    for i in range(low, high):
        _add(offsets[i], offsets[i + 1], pointers, columns, amounts, weights, scratch[0])
        values[i] = _decode(i, offsets, scratch, labelling)


@compiled
def label_observed(low, high, offsets, pointers, columns, amounts, begins, names, weights, tables, values, labelling):
    """The same with weights for some labels: attribute c scores names[k] with weights[k], k from begins[c] on."""
    scratch, labels = _scratch(low, high, offsets, tables), tables.shape[1]
    for i in range(low, high):
        _add_observed(
            offsets[i], offsets[i + 1], pointers, columns, amounts, begins, names, weights, labels, scratch[0]
        )
        values[i] = _decode(i, offsets, scratch, labelling)


@compiled
def score(tokens, pointers, columns, amounts, weights, scores):
    """The scores (tokens * labels,) of all labels at so many tokens."""
    _add(0, tokens, pointers, columns, amounts, weights, scores)


@compiled
def score_observed(tokens, pointers, columns, amounts, begins, names, weights, labels, scores):
    """The same with weights for some labels."""
    _add_observed(0, tokens, pointers, columns, amounts, begins, names, weights, labels, scores)


@inner
def _add(begin, end, pointers, columns, amounts, weights, scores):
    """The scores of tokens begin..end-1, from the beginning of ``scores`` on."""
    labels, last = weights.shape[1], columns.shape[0] - 1
    scores[: (end - begin) * labels] = 0.0
    for t in range(begin, end):
        at = (t - begin) * labels
        for e in range(pointers[t], pointers[t + 1]):
            ask_run(weights, max(columns[min(e + AHEAD, last)], 0) * labels)
            if columns[e] >= 0:
                x, row = amounts[e] if amounts.shape[0] > 0 else 1.0, weights[columns[e]]
                for j in range(labels):
                    scores[at + j] += x * row[j]


@inner
def _add_observed(begin, end, pointers, columns, amounts, begins, names, weights, labels, scores):
    """The same with weights for some labels."""
    scores[: (end - begin) * labels] = 0.0
    for t in range(begin, end):
        at = (t - begin) * labels
        for e in range(pointers[t], pointers[t + 1]):
            if columns[e] >= 0:
                x = amounts[e] if amounts.shape[0] > 0 else 1.0
                for k in range(begins[columns[e]], begins[columns[e] + 1]):
                    scores[at + names[k]] += x * weights[k]


@inner
def _scratch(low, high, offsets, tables):
    """Scores of a sequence, start and end scores, padded transitions, and memory of Viterbi."""
    longest, labels = 1, tables.shape[1]
    for i in range(low, high):
        longest = max(longest, offsets[i + 1] - offsets[i])
    width = padded(labels)
    pairs = np.zeros((1, width, width))
    for i in range(labels):
        for j in range(labels):
            pairs[0, i, j] = tables[i, j]
    contenders, forward = contenders_for(width), np.empty((1, longest, width))
    if labels > FEW:
        weigh_transitions(pairs[0], labels, contenders)
    return np.empty(longest * labels), tables[labels:], pairs, contenders, forward, np.zeros(width)


@inner
def _decode(i, offsets, scratch, labelling):
    node, ends, pairs, contenders, forward, scores = scratch
    own, nothing = node[: (offsets[i + 1] - offsets[i]) * ends.shape[1]], node[:0]
    path = labelling[offsets[i] : offsets[i + 1]]
    if ends.shape[1] > FEW:
        return viterbi_of_many(own, ends, pairs[0], contenders, forward, scores, path)
    return viterbi(own, nothing, nothing, ends, pairs, forward, scores, path)
