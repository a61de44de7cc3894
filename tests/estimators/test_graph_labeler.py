import pickle

import networkx
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import m3n
from m3n.checks import brute_force
from m3n.estimators.graph_inputs import GraphReader
from m3n.features.wrapped import agreement_matrix
from m3n.io.model_file import ModelFileError
from m3n.structures import LoopyGraph, TooExpensive

SETTINGS = {"lam": 0.02, "tol": 1e-2, "n_jobs": 1}
RELAXED = {"lam": 0.02, "tol": 0.0, "rtol": 0.02, "agreement": 0.1, "inference": "relaxed", "n_jobs": 1}


def picture(random, side):
    """A disc with noise: single pixels mislead, neighbours tell."""
    y, x = np.mgrid[:side, :side]
    centre = random.uniform(1, side - 2, size=2)
    labels = ((y - centre[0]) ** 2 + (x - centre[1]) ** 2 < 4).astype(int)
    return labels + 0.8 * random.normal(size=labels.shape), labels


def similar(a, b):
    return np.exp(-np.abs(a - b))


def pictures(count, side, seed=0):
    random = np.random.default_rng(seed)
    drawn = [picture(random, side) for _ in range(count)]
    features = [np.stack([noisy, np.ones_like(noisy)], axis=2) for noisy, _ in drawn]
    return [m3n.grid_graph(f, edge_features=similar) for f in features], [labels for _, labels in drawn]


def trees(count, seed=0, edge_features=True):
    """Labels drawn along random trees: a node mostly has the label of its parent."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        nodes = int(random.integers(1, 7))
        edges = np.array([(int(random.integers(v)), v) for v in range(1, nodes)], dtype=int).reshape(-1, 2)
        labels = np.zeros(nodes, int)
        for parent, child in edges:
            labels[child] = labels[parent] if random.random() < 0.9 else random.integers(3)
        features = np.eye(3)[labels] + 0.7 * random.normal(size=(nodes, 3))
        X.append((features, edges, np.ones((len(edges), 1))) if edge_features else (features, edges))
        y.append([["red", "green", "blue"][label] for label in labels])
    return X, y


@pytest.mark.parametrize("edge_features", [False, True])
def test_trees(edge_features):
    X, y = trees(40, edge_features=edge_features)
    labeler = m3n.GraphLabeler(**SETTINGS).fit(X, y)
    assert not labeler.relaxed_
    assert not labeler.certificate_.relaxed
    assert labeler.certificate_.gap <= 1e-2
    assert labeler.score(X, y) > 0.8
    assert labeler.coef_.shape == (3, 3)
    assert labeler.pairs_.shape == (3, 3)
    assert (labeler.edge_coef_ is None) == (not edge_features)
    found = labeler.predict_with_bounds(X[:5])
    np.testing.assert_array_equal(found.values, found.bounds)
    marginals = labeler.predict_marginals(X[:5], temperature=0.1)
    assert [len(m) for m in marginals] == [len(labels) for labels in y[:5]]
    np.testing.assert_allclose(np.concatenate(marginals).sum(axis=1), 1.0)


def test_a_path_is_a_sequence():
    """On paths the labeller and the tagger without boundaries have the same optimum."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(length, 2)) for length in (3, 1, 5, 4)]
    y = [random.integers(3, size=len(sequence)) for sequence in X]
    graphs = [(x, np.stack([np.arange(len(x) - 1), np.arange(1, len(x))], axis=1)) for x in X]
    labeler = m3n.GraphLabeler(lam=0.1, tol=1e-4, directed=True).fit(graphs, y)
    tagger = m3n.SequenceTagger(lam=0.1, tol=1e-4, boundaries=False).fit(X, y)
    assert labeler.certificate_.primal == pytest.approx(tagger.certificate_.primal, abs=2e-4)
    np.testing.assert_allclose(labeler.coef_, tagger.coef_, atol=0.05)


def test_cycles_within_the_budget_are_exact():
    X, y = pictures(4, 4)
    labeler = m3n.GraphLabeler(**SETTINGS).fit(X, y)
    assert not labeler.relaxed_
    found = labeler.predict_with_bounds(X)
    np.testing.assert_array_equal(found.values, found.bounds)


def test_relaxed_training():
    X, y = pictures(10, 6)
    X_new, y_new = pictures(10, 6, seed=1)
    relaxed = m3n.GraphLabeler(**RELAXED).fit(X, y)
    exact = m3n.GraphLabeler(inference="exact", **SETTINGS).fit(X, y)
    assert relaxed.relaxed_
    assert relaxed.certificate_.relaxed
    assert relaxed.certificate_.gap <= 0.02 * relaxed.certificate_.primal
    assert relaxed.certificate_.primal >= exact.certificate_.dual  # an upper bound of the exact optimum
    assert relaxed.lam_ == exact.lam_ == 0.02
    alone = m3n.GraphLabeler(**SETTINGS).fit([(x, []) for x, _, _ in X], y)
    assert relaxed.score(X_new, y_new) > alone.score([(x, []) for x, _, _ in X_new], y_new) + 0.05
    found = relaxed.predict_with_bounds(X_new)
    assert (found.bounds >= found.values - 1e-9).all()
    exact.coef_, exact.pairs_, exact.edge_coef_ = relaxed.coef_, relaxed.pairs_, relaxed.edge_coef_
    best = exact.predict_with_bounds(X_new)
    assert (found.values <= best.values + 1e-9).all()
    assert (found.bounds >= best.values - 1e-9).all()
    with pytest.raises(ValueError, match="marginals of these graphs are out of reach"):
        relaxed.predict_marginals(X_new)


def test_relaxed_certificate_from_scratch():
    """From the model's weights and multipliers: J on paths, by maximising over every labelling of their copies."""
    X, y = pictures(2, 4)
    labeler = m3n.GraphLabeler(**RELAXED).fit(X, y)
    structure = LoopyGraph([16, 16], 2, [edges for _, edges, _ in X], tables=True)
    gold = structure.pack([labels.ravel() for labels in y])
    nodes, pairs = np.concatenate([x for x, _, _ in X]), np.concatenate([z for _, _, z in X])
    delta = agreement_matrix(structure.owner) @ labeler.multipliers_
    node = (nodes @ labeler.coef_)[structure.owner] * structure.portion[:, None] + delta
    edge = np.einsum("ea,abc->ebc", pairs, labeler.edge_coef_)[structure.edge_order]
    node += structure.portion[:, None] * (np.arange(2) != gold[:, None])
    best, _ = brute_force(structure, (node, labeler.pairs_, edge), 0.0)
    risk = (best - structure.score((node, labeler.pairs_, edge), gold)).sum() / 2
    weights = labeler.coef_, labeler.pairs_, labeler.edge_coef_, np.sqrt(labeler.agreement) * labeler.multipliers_
    primal = labeler.lam_ / 2 * sum((part**2).sum() for part in weights) + risk
    assert primal == pytest.approx(labeler.certificate_.primal)


def test_too_expensive():
    X, y = pictures(2, 6)
    with pytest.raises(TooExpensive, match="more than the budget"):
        m3n.GraphLabeler(inference="exact", budget=100, **SETTINGS).fit(X, y)
    assert m3n.GraphLabeler(budget=100, **RELAXED | {"inference": "auto"}).fit(X, y).relaxed_


@pytest.mark.parametrize("objective", ["crf", "softmax_margin"])
@pytest.mark.parametrize("inference", ["exact", "relaxed"])
def test_objectives(objective, inference):
    X, y = pictures(6, 4)
    labeler = m3n.GraphLabeler(objective, **RELAXED | {"inference": inference}).fit(X, y)
    assert labeler.certificate_.gap <= 0.02 * labeler.certificate_.primal
    assert labeler.score(X, y) > 0.85


@pytest.mark.parametrize("inference", ["exact", "relaxed"])
def test_weights_are_repetitions(inference):
    X, y = pictures(4, 3)
    settings = {**RELAXED, "inference": inference}
    weighed = m3n.GraphLabeler(**settings).fit(X, y, [2.0, 1.0, 0.0, 1.0])
    repeated = m3n.GraphLabeler(**settings).fit([X[0], X[0], X[1], X[3]], [y[0], y[0], y[1], y[3]])
    if inference == "exact":  # repeated graphs have multipliers of their own, so the relaxed problems differ a little
        assert weighed.certificate_.dual <= repeated.certificate_.primal
        assert repeated.certificate_.dual <= weighed.certificate_.primal
    assert weighed.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=0.05)


def test_kernels_on_nodes():
    random = np.random.default_rng(0)
    X = [(random.normal(size=(4, 2)), [[0, 1], [1, 2], [2, 3]]) for _ in range(15)]
    y = [(x[:, 0] * x[:, 1] > 0).astype(int) for x, _ in X]
    labeler = m3n.GraphLabeler(kernel="rbf", **SETTINGS).fit(X, y)
    assert labeler.score(X, y) > 0.9
    assert labeler.kernel_model_.size <= 60
    cycles = [(x, [*edges, [3, 0]]) for x, edges in X]
    relaxed = m3n.GraphLabeler(kernel="rbf", **RELAXED | {"rtol": 0.1}).fit(cycles, y)
    assert relaxed.relaxed_
    assert relaxed.score(cycles, y) > 0.9


def test_networkx():
    graph = networkx.Graph()
    for name, value in (("a", 1.0), ("b", -1.0), ("c", 0.9)):
        graph.add_node(name, features=[value, 1.0])
    graph.add_edge("a", "c", features=[1.0])
    graph.add_edge("c", "b", features=[0.5])
    y = {"b": "low", "a": "high", "c": "high"}
    labeler = m3n.GraphLabeler(lam=0.01).fit([graph], [y])
    assert labeler.predict([graph]) == [y]
    assert labeler.score([graph], [y]) == labeler.score([graph], [["high", "low", "high"]]) == 1.0
    marginals = labeler.predict_marginals([graph])[0]
    assert list(marginals) == ["a", "b", "c"]
    assert marginals["b"].shape == (2,)
    same = np.array([[1.0, 1.0], [-1.0, 1.0], [0.9, 1.0]]), [[0, 2], [2, 1]], [[1.0], [0.5]]
    read = GraphReader().fit([graph])
    np.testing.assert_array_equal(read.matrix, same[0])
    assert {tuple(sorted(edge)) for edge in read.edges[0].tolist()} == {(0, 2), (1, 2)}


def test_sparse_features():
    X, y = trees(20)
    sparse = [(scipy.sparse.csr_array(x), edges, scipy.sparse.csr_array(z)) for x, edges, z in X]
    dense, thin = (m3n.GraphLabeler(**SETTINGS).fit(graphs, y) for graphs in (X, sparse))
    assert dense.certificate_.primal == pytest.approx(thin.certificate_.primal, abs=1e-2)
    assert thin.predict(sparse) == thin.predict(X)


def test_grids():
    features = np.arange(12.0).reshape(2, 3, 2)
    nodes, edges, pairs = m3n.grid_graph(features)
    np.testing.assert_array_equal(nodes, features.reshape(6, 2))
    assert {tuple(edge) for edge in edges.tolist()} == {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)}
    np.testing.assert_array_equal(pairs, np.eye(2)[[0, 0, 0, 0, 1, 1, 1]])
    _, edges, pairs = m3n.grid_graph(features, diagonals=True, edge_features=lambda a, b: b - a)
    assert len(edges) == 7 + 4
    assert pairs.shape == (11, 4 + 4 * 2)
    np.testing.assert_array_equal(pairs[0, 4:], [2.0, 2.0, 0, 0, 0, 0, 0, 0])  # across, then the other directions
    assert m3n.grid_graph(np.ones((2, 2)))[0].shape == (4, 1)


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_files(kernel, tmp_path):
    X, y = trees(15)
    labeler = m3n.GraphLabeler(kernel=kernel, loss=m3n.losses.Hamming(class_weight={"red": 2.0}), **SETTINGS).fit(X, y)
    labeler.save(tmp_path / "model.m3n")
    again = m3n.load(tmp_path / "model.m3n")
    assert again.predict(X) == labeler.predict(X)
    assert again.certificate_ == labeler.certificate_
    assert repr(again.get_params()["loss"]) == repr(labeler.loss)
    assert pickle.loads(pickle.dumps(labeler)).predict(X) == labeler.predict(X)


def test_damaged_files(tmp_path):
    from m3n.io import model_file

    X, y = trees(10)
    m3n.GraphLabeler(**SETTINGS).fit(X, y).save(tmp_path / "model.m3n")
    kind, meta, tensors = model_file.read(tmp_path / "model.m3n")
    for name, message in (("pairs_", "pairs_ has shape"), ("edge_coef_", "edge_coef_ has shape")):
        broken = {**tensors, name: tensors[name][:-1]}
        model_file.write(tmp_path / "broken.m3n", kind, meta, broken)
        with pytest.raises(ModelFileError, match=message):
            m3n.load(tmp_path / "broken.m3n")
    del tensors["edge_coef_"]
    model_file.write(tmp_path / "broken.m3n", kind, meta, tensors)
    with pytest.raises(ModelFileError, match="without weights"):
        m3n.load(tmp_path / "broken.m3n")


def test_scikit_learn_conventions():
    X, y = trees(20)
    labeler = m3n.GraphLabeler(budget=10.0)
    assert clone(labeler).get_params() == labeler.get_params()
    assert repr(labeler) == "GraphLabeler(budget=10.0)"
    search = GridSearchCV(m3n.GraphLabeler(tol=0.1, n_jobs=1), {"lam": [0.1, 1e4]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.7


GOOD = np.ones((2, 1)), [[0, 1]], [[1.0]]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "X is empty"),
        ([(np.ones((2, 1)), [[0, 2]])], r"graph 0: edge 0, \[0, 2\], names a node outside of 0..1"),
        ([(np.ones((2, 1)), [[1, 1]])], "graph 0: edge 0 joins node 1 with itself"),
        ([(np.ones((2, 1)), [0, 1])], "graph 0: edges must be"),
        ([(np.ones((2, 1)), [[0.5, 1]])], "graph 0: edges must be"),
        ([(np.ones(2), [[0, 1]])], r"graph 0: node features must be a 2-D array \(rows, attributes\)"),
        ([([["a"]], [])], "graph 0: node features must be a 2-D array of numbers"),
        ([([[np.nan]], [])], "graph 0: node features contain NaN"),
        ([(np.empty((0, 1)), [])], "graph 0 has no nodes"),
        ([(np.ones((2, 1)), [[0, 1]], np.ones((2, 1)))], "graph 0 has 1 edges but 2 rows"),
        ([GOOD, (np.ones((2, 1)), [[0, 1]])], "graph 1: either all graphs have edge features"),
        ([GOOD, (np.ones((2, 2)), [[0, 1]], [[1.0]])], "graph 1 has 2 node features where 1 are expected"),
    ],
)
def test_wrong_graphs(X, message):
    with pytest.raises(ValueError, match=message):
        m3n.GraphLabeler().fit(X, [[0, 1]] * len(X))


def test_wrong_types_and_labels():
    with pytest.raises(TypeError, match="graph 0: expected"):
        m3n.GraphLabeler().fit([np.ones((2, 2))], [[0, 1]])
    with pytest.raises(ValueError, match="X has 1 graphs but y has 0"):
        m3n.GraphLabeler().fit([GOOD], [])
    with pytest.raises(TypeError, match="need a networkx graph"):
        m3n.GraphLabeler().fit([GOOD], [{0: 1, 1: 0}])
    with pytest.raises(ValueError, match="unknown inference 'loopy'"):
        m3n.GraphLabeler(inference="loopy").fit([GOOD], [[0, 1]])
    with pytest.raises(ValueError, match="budget must be positive"):
        m3n.GraphLabeler(budget=0).fit([GOOD], [[0, 1]])
    graph = networkx.path_graph(2)
    with pytest.raises(ValueError, match="node 0 has no attribute 'features'"):
        m3n.GraphLabeler().fit([graph], [[0, 1]])
    networkx.set_node_attributes(graph, {0: [1.0], 1: [2.0]}, "features")
    with pytest.raises(ValueError, match="node 1 has no label"):
        m3n.GraphLabeler().fit([graph], [{0: "a"}])
    graph.add_node(2, features=[1.0])
    graph.add_edge(1, 2, features=[1.0])
    with pytest.raises(ValueError, match=r"edge \(0, 1\) has no attribute 'features', but others have"):
        m3n.GraphLabeler().fit([graph], [[0, 1, 1]])
    with pytest.raises(ValueError, match="must be an array"):
        m3n.grid_graph(np.ones(3))
    with pytest.raises(ValueError, match="edge_features must return"):
        m3n.grid_graph(np.ones((2, 2)), edge_features=lambda a, b: np.ones(3))
