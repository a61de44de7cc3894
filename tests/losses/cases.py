"""Losses of all kinds and, next to each, the same loss in plain Python; a tiny chain to try them on."""

import itertools

import numpy as np

from m3n import Problem
from m3n.features import Dense, NoFeatures, chain_features
from m3n.losses import Cost, CostMatrix, EdgeHamming, Hamming, Loss, NormalizedHamming
from m3n.structures import Chain

LENGTHS, LABELS = (1, 3, 2, 4), 3
GOLD = ([2], [0, 1, 1], [2, 0], [1, 1, 0, 2])
CLASSES = (0.5, 2.0, 3.0)
POSITIONS = ([0.3], [1.0, 0.0, 2.5], [0.0, 0.0], [1.0, 4.0, 0.5, 0.5])
MATRIX = np.array([[0.0, 1.0, 5.0], [0.2, 0.0, 1.0], [3.0, 0.0, 0.0]])


class Boundaries(Loss):
    """Pairs of neighbours that differ where gold's are equal, or the other way round."""

    needs_edges = True

    def cost(self, structure, gold):
        change = 1.0 - np.eye(structure.labels)
        right = structure.encode(gold)[-1]  # (pairs, labels, labels)
        boundary = (right * change).sum(axis=(1, 2), keepdims=True)
        return Cost.of_parts(structure, gold, {-1: np.abs(change - boundary)})


def wrong(gold, y):
    return np.array(gold) != np.array(y)


def pairs(y):
    return list(itertools.pairwise(y))


def weighted(i, gold, y):
    return sum(CLASSES[g] * v for g, v, bad in zip(gold, POSITIONS[i], wrong(gold, y), strict=True) if bad)


def wrong_pairs(i, gold, y):
    return sum(a != b for a, b in zip(pairs(gold), pairs(y), strict=True))


def boundaries(i, gold, y):
    return sum((a != b) != (c != d) for (a, b), (c, d) in zip(pairs(gold), pairs(y), strict=True))


def matrix(i, gold, y):
    return sum(MATRIX[g, label] for g, label in zip(gold, y, strict=True))


CASES = {
    "hamming": (Hamming(), lambda i, g, y: wrong(g, y).sum()),
    "normalized": (NormalizedHamming(), lambda i, g, y: wrong(g, y).mean()),
    "weighted": (Hamming(CLASSES, POSITIONS), weighted),
    "normalized, weighted": (
        NormalizedHamming(dict(enumerate(CLASSES)), POSITIONS),
        lambda i, g, y: weighted(i, g, y) / (sum(POSITIONS[i]) or 1.0),
    ),
    "matrix": (CostMatrix(MATRIX), matrix),
    "two tables": (  # with different weights, so one of them is written out
        CostMatrix(MATRIX) + Hamming(CLASSES),
        lambda i, g, y: matrix(i, g, y) + sum(CLASSES[a] for a, bad in zip(g, wrong(g, y), strict=True) if bad),
    ),
    "pairs": (EdgeHamming(), wrong_pairs),
    "labels and pairs": (
        2.0 * Hamming() + EdgeHamming(),
        lambda i, g, y: 2.0 * wrong(g, y).sum() + wrong_pairs(i, g, y),
    ),
    "own loss": (Boundaries(), boundaries),
    "sum of all": (
        0.5 * Hamming(CLASSES, POSITIONS) + CostMatrix(MATRIX) * 2 + Boundaries() + EdgeHamming(),
        lambda i, g, y: 0.5 * weighted(i, g, y) + 2 * matrix(i, g, y) + boundaries(i, g, y) + wrong_pairs(i, g, y),
    ),
}


def problem_with(loss, copies=None, edges=True, **settings):
    """Random sequences with these labels; ``copies`` writes example i out copies[i] times."""
    random = np.random.default_rng(7)
    X = np.split(random.normal(size=(sum(LENGTHS), 4)), np.cumsum(LENGTHS)[:-1])
    order = np.repeat(np.arange(4), 1 if copies is None else copies)
    lengths = np.array(LENGTHS)[order]
    edge = NoFeatures(int(lengths.sum()) - len(order), LABELS, LABELS) if edges else None
    features = chain_features(Dense(np.concatenate([X[i] for i in order]), LABELS), LABELS, edge)
    settings = {"lam": 0.1, "n_jobs": 1, **settings}
    return Problem(Chain(lengths, LABELS, edges=edges), features, [GOLD[i] for i in order], loss=loss, **settings)
