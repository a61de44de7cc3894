"""What is known about nodes before a prediction, and the form in which labels come back."""

import copy
import itertools
import pickle

import networkx
import numpy as np
import pytest
from sklearn.model_selection import cross_val_predict

import m3n
from m3n.io import model_file

SETTINGS = {"lam": 0.05, "tol": 1e-2, "n_jobs": 1}


def noisy(random, shape=(3, 4)):
    labels = (np.arange(shape[1]) >= random.integers(1, shape[1])).astype(int) * np.ones((shape[0], 1), int)
    return m3n.grid_graph(labels + 0.6 * random.normal(size=shape)), labels


@pytest.fixture(scope="module")
def pictures():
    random = np.random.default_rng(0)
    X, y = zip(*(noisy(random, (3, width)) for width in (4, 3, 4, 5)), strict=True)
    return list(X), [np.array(["land", "sea"])[labels] for labels in y]


@pytest.fixture(scope="module")
def exact(pictures):
    return m3n.GraphLabeler(**SETTINGS).fit(*pictures)


@pytest.fixture(scope="module")
def relaxed(pictures):
    return m3n.GraphLabeler(inference="relaxed", rtol=0.1, **SETTINGS).fit(*pictures)


def best(model, graph, possible):
    """The best labels among those that ``possible`` accepts, by trying all of them."""
    x, edges, z = graph
    node, tables = x @ model.coef_, model.pairs_ + np.einsum("ef,fab->eab", z, model.edge_coef_)
    names = model.classes_.tolist()

    def score(y):
        return node[np.arange(len(y)), list(y)].sum() + tables[np.arange(len(edges)), *np.array(y)[edges.T]].sum()

    outputs = itertools.product(range(len(names)), repeat=len(x))
    found = max((y for y in outputs if possible([names[k] for k in y], edges)), key=score)
    return [names[k] for k in found]


@pytest.mark.parametrize("model", ["exact", "relaxed"])
def test_known_labels(pictures, model, request):
    X, _ = pictures
    labeler = request.getfixturevalue(model)
    assert labeler.relaxed_ == (model == "relaxed")
    known = np.full((3, 3), None)
    known[1, 1], known[0, 2] = "land", "sea"
    fixed, allowed = [None, known, None, None], [None, [["sea"], None] + 7 * [{"sea", "land"}], None, None]
    found = labeler.predict(X, fixed=fixed)[1]
    assert found.ravel().tolist() == best(labeler, X[1], lambda labels, _: labels[4] == "land" and labels[2] == "sea")
    masked = np.ma.masked_equal(np.where(known == None, "", known).astype(str), "")  # noqa: E711
    np.testing.assert_array_equal(labeler.predict(X, fixed=[None, masked, None, None])[1], found)
    both = labeler.predict(X, fixed=fixed, allowed=allowed)[1]
    chosen = best(labeler, X[1], lambda labels, _: (labels[0], labels[2], labels[4]) == ("sea", "sea", "land"))
    assert both.ravel().tolist() == chosen


@pytest.mark.parametrize("model", ["exact", "relaxed"])
def test_forbidden_pairs(pictures, model, request):
    X, _ = pictures
    labeler = request.getfixturevalue(model)
    found = labeler.predict(X[1:2], fixed=[["sea"] + 8 * [None]], forbidden=[("sea", "land")])[0]
    assert (found == "sea").all()  # everything is to the right of it or below

    def possible(labels, edges):
        return labels[4] == "sea" and not any((labels[a], labels[b]) == ("sea", "land") for a, b in edges)

    middle = labeler.predict(X[1:2], fixed=[[None] * 4 + ["sea"] + [None] * 4], forbidden=[("sea", "land")])[0]
    assert middle.ravel().tolist() == best(labeler, X[1], possible)
    with pytest.raises(ValueError, match="graph 0: no labels were found that agree with fixed"):
        labeler.predict(X[:1], fixed=[["sea"] + [None] * 10 + ["land"]], forbidden=[("sea", "land")])


def test_forbidden_without_direction():
    random = np.random.default_rng(1)
    X, y = [(random.normal(size=(3, 1)), [[0, 1], [2, 1]]) for _ in range(3)], [["a", "b", "a"], ["a"] * 3, ["b"] * 3]
    labeler = m3n.GraphLabeler(**SETTINGS).fit(X, y)
    for pair in [("a", "b"), ("b", "a")]:
        assert all(len(set(labels)) == 1 for labels in labeler.predict(X, forbidden=[pair]))
    marginals = labeler.predict_marginals(X, fixed=[["a", None, None]] * 3, forbidden=[("a", "b")])
    np.testing.assert_allclose(marginals, np.tile([1.0, 0.0], (3, 3, 1)))


def test_pictures_come_back(pictures, exact, relaxed):
    X, y = pictures
    for labeler in (exact, relaxed):
        found = labeler.predict_with_bounds(X)
        assert [labels.shape for labels in found.labels] == [labels.shape for labels in y]
        assert [labels.dtype.kind for labels in labeler.predict(X)] == ["U"] * 4
        assert labeler.score(X, y) == np.mean(
            np.concatenate([(a == b).ravel() for a, b in zip(found.labels, y, strict=True)])
        )
        marginals = labeler.predict_marginals(X, relaxed=True)
        assert [m.shape for m in marginals] == [(*labels.shape, 2) for labels in y]
        flat = labeler.predict([tuple(x) for x in X])
        assert flat == [labels.ravel().tolist() for labels in labeler.predict(X)]
    assert abs(exact.predict_marginals(X)[0] - exact.predict_marginals(X, relaxed=True)[0]).max() == 0.0
    found = cross_val_predict(m3n.GraphLabeler(**SETTINGS), X, y, cv=2)
    assert [labels.shape for labels in found] == [labels.shape for labels in y]


def test_relaxed_marginals_are_close(pictures, relaxed):
    X, _ = pictures
    same = copy.copy(relaxed).set_params(inference="exact")
    for one, other in zip(same.predict_marginals(X), relaxed.predict_marginals(X, relaxed=True), strict=True):
        assert 0.0 < abs(one - other).max() < 0.2
        np.testing.assert_allclose(other.sum(axis=2), 1.0)
    with pytest.raises(ValueError, match="relaxed=True"):
        relaxed.predict_marginals(X)


def test_grids_are_tuples():
    random = np.random.default_rng(0)
    graph, _ = noisy(random)
    again = pickle.loads(pickle.dumps(graph))
    assert (again.shape, again.directed, len(again)) == ((3, 4), True, 3)
    plain = m3n.grid_graph(np.ones((2, 3)), directions=False)
    assert (len(plain), plain.directed) == (2, False)
    nodes, edges, more = m3n.grid_graph(np.ones((2, 3)), directions=False, edge_features=lambda a, b: a + b)
    assert (nodes.shape, edges.shape, more.tolist()) == ((6, 1), (7, 2), [[2.0]] * 7)


def test_directions_of_networkx():
    random = np.random.default_rng(2)
    X, y = [], []
    for _ in range(6):
        graph = networkx.DiGraph()
        for node in range(3):
            graph.add_node(node, features=random.normal(size=1))
        graph.add_edge(0, 1, features=[1.0])
        graph.add_edge(2, 1, features=[1.0])
        X.append(graph)
        y.append(dict(enumerate(random.integers(2, size=3).tolist())))
    directed = m3n.GraphLabeler(**SETTINGS).fit(X, y)
    assert directed.directed_
    undirected = m3n.GraphLabeler(**SETTINGS).fit([graph.to_undirected() for graph in X], y)
    assert not undirected.directed_
    np.testing.assert_array_equal(undirected.edge_coef_, undirected.edge_coef_.transpose(0, 2, 1))
    turned = [graph.reverse().to_undirected() for graph in X]
    assert undirected.predict(turned) == undirected.predict(X) != directed.predict([graph.reverse() for graph in X])
    with pytest.raises(ValueError, match="graph 0: the edges of a Graph have no direction"):
        directed.predict(turned)
    with pytest.raises(ValueError, match="graph 0: the edges of a Graph have no direction"):
        m3n.GraphLabeler(antisymmetric_edge_features=[0]).fit(turned, y)
    with pytest.raises(ValueError, match="the edges of graph 0 are directed, those of graph 1 undirected"):
        m3n.GraphLabeler().fit([X[0], turned[1]], y[:2])


@pytest.mark.parametrize("inference", ["exact", "relaxed"])
def test_warm_start(pictures, inference):
    labeler = m3n.GraphLabeler(warm_start=True, inference=inference, **SETTINGS).fit(*pictures)
    first = labeler.certificate_
    labeler.set_params(tol=1e-3, rtol=0.0).fit(*pictures)
    assert "goes on with the last fit" in labeler.reason_
    assert labeler.certificate_.gap <= 1e-3
    assert labeler.certificate_.primal <= first.primal
    labeler.set_params(common_pairs=False, tol=0.1).fit(*pictures)
    assert "common_pairs is another one" in labeler.reason_


def test_files(pictures, exact, tmp_path):
    X, y = pictures
    settings = {"symmetric_edge_features": [0], "antisymmetric_edge_features": [1], "common_pairs": False}
    labeler = m3n.GraphLabeler(**settings, **SETTINGS).fit(X, y)
    labeler.save(tmp_path / "model.m3n")
    again = m3n.load(tmp_path / "model.m3n")
    assert again.directed_
    assert {name: again.get_params()[name] for name in settings} == settings
    np.testing.assert_array_equal(again.predict(X)[0], labeler.predict(X)[0])
    exact.save(tmp_path / "model.m3n")
    kind, meta, tensors = model_file.read(tmp_path / "model.m3n")
    del meta["directed"], meta["reader"]["oriented"]  # as files once were
    for name in (*settings, "directed", "warm_start"):
        del meta["params"][name]
    model_file.write(tmp_path / "old.m3n", kind, meta, tensors)
    old = m3n.load(tmp_path / "old.m3n")
    assert old.directed_
    np.testing.assert_array_equal(old.predict(X)[0], exact.predict(X)[0])
    assert old.reader_.oriented is False  # undirected graphs of networkx are read in their order, as they were


def edges(**words):
    return m3n.GraphLabeler(**words).fit([(np.ones((2, 1)), [[0, 1]], [[1.0, 2.0]])], [[0, 1]])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"symmetric_edge_features": [2]}, "symmetric_edge_features names feature 2, but edges have 2 features"),
        ({"symmetric_edge_features": ["a"]}, "symmetric_edge_features must be a list of numbers"),
        ({"symmetric_edge_features": [0], "antisymmetric_edge_features": [0]}, "cannot be both"),
    ],
)
def test_wrong_lists(words, message):
    with pytest.raises(ValueError, match=message):
        edges(**words)


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ({"fixed": "sea"}, TypeError, "fixed must have an entry per graph"),
        ({"fixed": []}, ValueError, "X has 4 graphs but fixed has 0"),
        ({"fixed": [["sea"], None, None, None]}, ValueError, "graph 0 has 12 nodes in X but 1 in fixed"),
        (
            {"fixed": [[None] * 11 + ["fog"], None, None, None]},
            ValueError,
            "graph 0, node 11: fixed: the model does not",
        ),
        ({"fixed": [{0: "sea"}, None, None, None]}, TypeError, "labels by node need a networkx graph"),
        ({"allowed": [["sea"] * 12, None, None, None]}, TypeError, "must be a collection of labels"),
        ({"forbidden": ["sea"]}, ValueError, "forbidden must be pairs of labels"),
        ({"forbidden": [("sea", "fog")]}, ValueError, "forbidden: the model does not know the label 'fog'"),
    ],
)
def test_wrong_knowledge(pictures, exact, words, error, message):
    with pytest.raises(error, match=message):
        exact.predict(pictures[0], **words)


def test_edges_need_scores():
    with pytest.raises(ValueError, match="common_pairs=False leaves edges without scores"):
        m3n.GraphLabeler(common_pairs=False).fit([(np.ones((2, 1)), [[0, 1]])], [[0, 1]])
