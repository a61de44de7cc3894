"""The reference of the speed measurements: an exp-oracle pass as one writes it first, in plain Numba loops.

Scaled forward-backward per sequence, one library call per exponential, fresh loops for scores and gradient. It gives
the same numbers as ours and serves as the unit of time on whatever machine the benchmark runs.
"""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def naive_pass(X, W, transition, start, end, gold, weight, offsets, mu):
    """Value, gradient pieces and expected loss of one pass at temperature mu."""
    attributes = X.shape[1]
    labels = W.shape[1]
    gradient = np.zeros((attributes, labels))
    counts = np.zeros((labels, labels))
    starts, ends = np.zeros(labels), np.zeros(labels)
    T = np.exp(transition / mu)
    value, loss = 0.0, 0.0
    for k in range(len(offsets) - 1):
        first, length = offsets[k], offsets[k + 1] - offsets[k]
        score = np.zeros((length, labels))
        for t in range(length):
            for f in range(attributes):
                x = X[first + t, f]
                if x != 0.0:
                    for j in range(labels):
                        score[t, j] += x * W[f, j]
            for j in range(labels):
                if j != gold[first + t]:
                    score[t, j] += weight[first + t]
        score[0] += start
        score[length - 1] += end
        potential = np.empty((length, labels))
        forward = np.zeros((length, labels))
        backward = np.ones((length, labels))
        scale = np.empty(length)
        for t in range(length):
            top = score[t].max()
            for j in range(labels):
                potential[t, j] = math.exp((score[t, j] - top) / mu)
                if t == 0:
                    forward[t, j] = potential[t, j]
                else:
                    total = 0.0
                    for i in range(labels):
                        total += forward[t - 1, i] * T[i, j]
                    forward[t, j] = total * potential[t, j]
            scale[t] = forward[t].sum()
            forward[t] /= scale[t]
            value += top + mu * math.log(scale[t])
        for t in range(length - 2, -1, -1):
            for i in range(labels):
                total = 0.0
                for j in range(labels):
                    total += T[i, j] * potential[t + 1, j] * backward[t + 1, j]
                backward[t, i] = total / scale[t + 1]
        for t in range(length):
            marginal = forward[t] * backward[t]
            if t == 0:
                starts += marginal
            if t == length - 1:
                ends += marginal
            if t > 0:
                for i in range(labels):
                    for j in range(labels):
                        pair = forward[t - 1, i] * T[i, j] * potential[t, j] * backward[t, j] / scale[t]
                        counts[i, j] += pair
            loss += weight[first + t] * (1.0 - marginal[gold[first + t]])
            for f in range(attributes):
                x = X[first + t, f]
                if x != 0.0:
                    for j in range(labels):
                        gradient[f, j] += x * marginal[j]
    return value, loss, gradient, counts, starts, ends
