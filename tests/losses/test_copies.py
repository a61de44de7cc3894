"""Losses on relaxed graphs: whoever writes one speaks of nodes and edges, never of copies."""

import itertools

import numpy as np
import pytest

from m3n import GraphLabeler, Problem, minimize
from m3n.features import Dense, NoFeatures, graph_features
from m3n.losses import Cost, EdgeHamming, Hamming, Loss, PartLoss
from m3n.structures import Graph, LoopyGraph
from m3n.structures.factors import Factors

EDGES = [np.array([[0, 1], [1, 2], [2, 3], [0, 3], [3, 1]]), np.array([[1, 0], [2, 1], [0, 2]])]
NODES, LABELS = [4, 3], 2
GOLD = [[0, 1, 1, 0], [1, 0, 1]]


class ByHand(Loss):
    """What the documentation shows: a weight per row and a table."""

    def cost(self, structure, gold):
        return Cost(gold, np.ones(len(gold)), 1.0 - np.eye(structure.shapes[0][1]))


class LastNode(Loss):
    """The last node of every graph counts three times; its errors as parts, with a constant."""

    def cost(self, structure, gold):
        price = np.concatenate([[1.0] * (len(y) - 1) + [3.0] for y in structure.unpack(gold)])[:, None]
        costs = np.where(structure.encode(gold)[0] > 0.0, -price, 0.0)
        return Cost.of_parts(structure, gold, {0: costs}, constant="gold")


class Borders(Loss):
    """Edges whose ends differ where the right ones are equal, or the other way round."""

    needs_edges = True

    def cost(self, structure, gold):
        differ = 1.0 - np.eye(LABELS)
        border = (structure.encode(gold)[2] * differ).sum(axis=(1, 2), keepdims=True)
        return Cost.of_parts(structure, gold, {2: abs(differ - border)})


def wrong(right, y, weights=None):
    return float(np.average(np.not_equal(right, y), weights=weights) * (len(y) if weights is None else sum(weights)))


def borders(right, y, edges):
    return sum((right[a] != right[b]) != (y[a] != y[b]) for a, b in edges)


PLAIN = {
    "by hand": (ByHand(), lambda right, y, edges: wrong(right, y)),
    "last node": (LastNode(), lambda right, y, edges: wrong(right, y, [1.0] * (len(y) - 1) + [3.0])),
    "borders": (Borders(), borders),
    "sum": (
        Borders() + 0.5 * Hamming() + EdgeHamming(),
        lambda right, y, edges: (
            borders(right, y, edges)
            + 0.5 * wrong(right, y)
            + sum((right[a], right[b]) != (y[a], y[b]) for a, b in edges)
        ),
    ),
    "parts": (PartLoss(2.0, 0.5, arrays=[0]), lambda right, y, edges: 2.5 * wrong(right, y)),
}


@pytest.fixture(scope="module")
def loopy():
    return LoopyGraph(NODES, LABELS, EDGES, tables=True)


@pytest.mark.parametrize("name", PLAIN)
def test_every_labelling_costs_what_the_loss_says(loopy, name):
    loss, plain = PLAIN[name]
    assert len(loopy.owner) > sum(NODES)
    gold = loopy.pack(GOLD)
    cost = loss.cost(loopy, gold).checked(loopy, gold)
    for outputs in itertools.product(*(itertools.product(range(LABELS), repeat=nodes) for nodes in NODES)):
        expected = sum(plain(*three) for three in zip(GOLD, outputs, EDGES, strict=True))
        assert cost.expected(loopy.encode(loopy.pack(outputs))) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["by hand", "last node"])
def test_objectives(loopy, name):
    """The relaxed objective is an upper bound of the exact one at the same weights, and close to it here."""
    loss, plain = PLAIN[name]
    random = np.random.default_rng(0)
    X = random.normal(size=(sum(NODES), 3))
    empty = NoFeatures(sum(map(len, EDGES)), LABELS, LABELS)
    features = graph_features(loopy, Dense(X, LABELS), empty, agreement=0.01)
    problem = Problem(loopy, features, GOLD, loss=loss, lam=0.1 * len(NODES) / loopy.n)
    result = minimize(problem, tol=1e-2, max_passes=2000)
    relaxed = result.certificate.primal * loopy.n / len(NODES)
    own, pairs, _ = features.split(result.w)
    own, _ = features.maps[0].split(own)
    theta = (X @ own.reshape(-1, LABELS), pairs.reshape(LABELS, LABELS))
    common = Graph(NODES, LABELS, [Factors(EDGES, shared=True)])
    exact = 0.05 * (result.w @ result.w)
    for i, (right, edges) in enumerate(zip(GOLD, EDGES, strict=True)):
        node = theta[0][common.offsets[i] : common.offsets[i + 1]]

        def score(y, node=node, edges=edges):
            return node[np.arange(len(y)), list(y)].sum() + sum(theta[1][y[a], y[b]] for a, b in edges)

        outputs = itertools.product(range(LABELS), repeat=len(right))
        exact += max(plain(right, y, edges) + score(y) - score(right) for y in outputs) / len(NODES)
    assert exact <= relaxed + 1e-9
    assert relaxed == pytest.approx(exact, rel=0.2)


@pytest.mark.parametrize("inference", ["exact", "relaxed"])
def test_graph_labeler_makes_room_for_losses_of_edges(inference):
    random = np.random.default_rng(1)
    X = [(random.normal(size=(nodes, 2)), edges) for nodes, edges in zip(NODES, EDGES, strict=True)]
    settings = {"lam": 0.1, "tol": 1e-2, "inference": inference}
    labeler, plain = (GraphLabeler(loss=loss, **settings).fit(X, GOLD) for loss in (Hamming() + Borders(), "hamming"))
    assert labeler.relaxed_ == (inference == "relaxed")
    assert labeler.edge_coef_ is None
    assert labeler.certificate_.dual > plain.certificate_.primal  # more is at stake
    assert len(labeler.predict(X)[0]) == 4


def test_pictures_as_position_weights():
    structure = LoopyGraph([4], LABELS, [EDGES[0]])
    gold, weights = structure.pack([GOLD[0]]), np.array([[1.0, 0.0], [2.0, 0.5]])
    pictured, flat = (Hamming(position_weight=[w]).cost(structure, gold) for w in (weights, weights.ravel()))
    np.testing.assert_array_equal(pictured.weight, flat.weight)
    with pytest.raises(
        ValueError, match=r"position_weight\[0\] must have one number per position, 4, got shape \(2, 3\)"
    ):
        Hamming(position_weight=[np.ones((2, 3))]).cost(structure, gold)


def test_refusals_speak_of_graphs():
    class Wrong(Loss):
        def cost(self, structure, gold):
            costs = structure.encode(gold)[0]
            costs[: NODES[0]] = 0.0
            return Cost.of_parts(structure, gold, {0: costs})

    structure = LoopyGraph(NODES, LABELS, EDGES)
    with pytest.raises(ValueError, match="example 1: the loss of the right output is"):
        Wrong().cost(structure, structure.pack(GOLD)).checked(structure, structure.pack(GOLD))
    with pytest.raises(TypeError, match="these graphs have no exact oracles"):
        structure.original.hard(())
