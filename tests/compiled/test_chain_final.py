"""How near other labels come in a ball of weights, against all labellings and all weights of the ball."""

import itertools

import numpy as np
import pytest

from m3n.compiled.oracles.chain_final import Changes, Scores, reach


def instance(random, labels, lengths, edges):
    """Random attributes, some of them the same at several positions; features of every labelling; scores."""
    tokens, width = sum(lengths), 3
    X = random.integers(-1, 2, (tokens, width)).astype(float)
    P = random.integers(-1, 2, (tokens - len(lengths), 2)).astype(float) if edges else np.zeros((0, 2))
    dim = width * labels + labels**2 + 2 * labels + 2 * labels**2

    def features(i, y):
        at = sum(lengths[:i])
        node, pair = np.zeros((width, labels)), np.zeros((labels, labels))
        ends, edge = np.zeros((2, labels)), np.zeros((2, labels, labels))
        for t, label in enumerate(y):
            node[:, label] += X[at + t]
        for t, two in enumerate(itertools.pairwise(y)):
            pair[two] += 1.0
            edge[(slice(None), *two)] += P[at - i + t] if edges else 0.0
        ends[0, y[0]] += 1.0
        ends[1, y[-1]] += 1.0
        return np.concatenate([node.ravel(), pair.ravel(), ends.ravel(), edge.ravel()])

    w = random.normal(size=dim) * 2.0
    cuts = np.cumsum([width * labels, labels**2, 2 * labels])
    node, pair, ends, edge = np.split(w, cuts)
    table = np.einsum("ka,abc->kbc", P, edge.reshape(2, labels, labels)) if edges else np.empty((0, labels, labels))
    scores = Scores(X @ node.reshape(width, labels), pair.reshape(labels, labels), ends.reshape(2, labels), table)
    return X, P, features, w, scores


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_no_weights_of_the_ball_bring_another_label_nearer(seed, edges):
    random = np.random.default_rng(seed)
    labels, lengths, radius = int(random.integers(2, 4)), random.integers(1, 5, 3).tolist(), random.uniform(0.0, 0.7)
    X, P, features, w, scores = instance(random, labels, lengths, edges)
    offsets = np.cumsum([0, *lengths])
    outputs = [list(itertools.product(range(labels), repeat=length)) for length in lengths]
    best = [max(ys, key=lambda y, i=i: w @ features(i, y)) for i, ys in enumerate(outputs)]
    inside = np.ones(sum(lengths), bool)
    inside[offsets[:-1]] = False
    edge = np.full(sum(lengths), 2.0)
    edge[inside] += 2.0 * (P**2).sum(axis=1) if edges else 0.0
    node = np.repeat(2.0 * (X**2).sum(axis=1)[:, None], labels, axis=1)
    found, tables = np.empty((sum(lengths), labels)), (Changes(node, edge, 2.0), np.concatenate(best).astype(np.int64))
    reach(offsets, scores, *tables, radius, found)
    for i, ys in enumerate(outputs):
        own, rest = features(i, best[i]), (node[offsets[i] :], edge[offsets[i] :])
        for t, label in itertools.product(range(lengths[i]), range(labels)):
            those = [(y, features(i, y)) for y in ys if y[t] == label]
            most = max(w @ f + radius * np.linalg.norm(own - f) for _, f in those)
            formula = max(w @ f + radius * _sum_of_norms(best[i], y, *rest) for y, f in those)
            assert found[offsets[i] + t, label] >= most - 1e-9  # what it promises
            assert found[offsets[i] + t, label] == pytest.approx(formula, abs=1e-9)  # and no more than its formula


def _sum_of_norms(best, y, node, edge):
    total = 0.0
    for t, (a, b) in enumerate(zip(best, y, strict=True)):
        square = node[t, b] if a != b else 0.0
        square += edge[t] if t > 0 and (a, best[t - 1]) != (b, y[t - 1]) else 0.0
        square += 2.0 * ((a != b) and t == 0) + 2.0 * ((a != b) and t == len(y) - 1)
        total += np.sqrt(square)
    return total


def test_forbidden_labellings_are_no_rivals():
    transition, ends = np.array([[0.0, -np.inf], [-np.inf, 0.0]]), np.array([[0.0, 0.0], [0.0, -np.inf]])
    scores, found = Scores(np.zeros((2, 2)), transition, ends, np.empty((0, 2, 2))), np.empty((2, 2))
    reach(np.array([0, 2]), scores, Changes(np.ones((2, 2)), np.ones(2), 1.0), np.zeros(2, np.int64), 5.0, found)
    assert (found[:, 1] == -np.inf).all() and (found[:, 0] == 0.0).all()
