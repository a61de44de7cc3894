"""Sets of labels and graphs on the command line: the same answers as in Python, and the mistakes."""

import json

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.metrics import accuracy_score, f1_score, hamming_loss

import m3n
from tests.cli.test_demo import plain
from tests.cli.test_toolbox import in_an_empty_folder, m3n_, write  # noqa: F401 (a fixture)

random = np.random.default_rng(0)
Z = np.round(random.normal(size=(60, 4)), 3)
Y = (Z @ random.normal(size=(4, 3)) + 0.5 * random.normal(size=(60, 3)) > 0).astype(int)


def label_model(named=None, **settings):
    outputs = Y if named is None else [{named[k] for k in np.flatnonzero(row)} for row in Y]
    model = m3n.MultilabelClassifier(n_jobs=1, lam=0.01, rtol=0.0, **settings).fit(Z, outputs)
    model.save("model.m3n")
    return model


def sets_file(name="sets.svm", zero_based=False):
    dump_svmlight_file(Z, scipy.sparse.csr_array(Y), name, multilabel=True, zero_based=zero_based)
    return name


def graphs(count=20, seed=0, edge_features=False):
    draws = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        edges = [[int(draws.integers(v)), v] for v in range(1, 5)]
        labels = draws.integers(2, size=5)
        nodes = np.round(np.eye(2)[labels] + draws.normal(size=(5, 2)), 3).tolist()
        more = [np.round(draws.normal(size=(4, 1)), 3).tolist()] if edge_features else []
        X.append((nodes, edges, *more))
        y.append(["ab"[k] for k in labels])
    return X, y


def graph_lines(X, y=None):
    names = ("node_features", "edges", "edge_features")
    lines = [dict(zip(names, graph, strict=False)) | ({"labels": y[i]} if y else {}) for i, graph in enumerate(X)]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.mark.parametrize("zero_based", [False, True])
def test_predicted_sets_are_those_of_python(zero_based):
    model = label_model()
    sets_file(zero_based=zero_based)
    m3n_("predict", "sets.svm", "-m", "model.m3n", "-o", "out.txt")
    with open("out.txt") as file:
        found = [[int(label) for label in line.split(",") if label.strip()] for line in file]
    assert found == [np.flatnonzero(row).tolist() for row in model.predict(Z)]
    lines = m3n_("predict", "sets.svm", "-m", "model.m3n", "--json", "--marginals", "--confidence").stdout.splitlines()
    for line, labels, shares in zip(lines, found, model.predict_proba(Z), strict=True):
        read = json.loads(line)
        assert read["labels"] == labels
        assert list(read["marginals"].values()) == np.round(shares, 6).tolist()
        assert read["confidence"] == np.round(shares, 6)[labels].tolist()
    line = m3n_("predict", "sets.svm", "-m", "model.m3n", "--marginals", "--confidence").stdout.splitlines()[0]
    labels, confidence, *shares = line.split("\t")
    assert len(shares) == 3
    assert len(confidence.split(",")) == len(labels.split(","))


def test_scores_of_sets_are_those_of_scikit_learn():
    model = label_model(pairs="none")
    sets_file()
    read = json.loads(m3n_("evaluate", "sets.svm", "-m", "model.m3n", "--json").stdout)["labels"]
    found = model.predict(Z)
    assert read["hamming_loss"] == pytest.approx(hamming_loss(Y, found))
    assert read["sequence_accuracy"] == pytest.approx(accuracy_score(Y, found)) == model.score(Z, Y)
    assert read["f1"] == pytest.approx(f1_score(Y, found, average="micro"))
    assert read["macro_f1"] == pytest.approx(f1_score(Y, found, average="macro"))
    shown = plain(m3n_("evaluate", "sets.svm", "-m", "model.m3n").stdout)
    assert f"Hamming loss {hamming_loss(Y, found):.4f}" in shown
    assert f"whole examples right {accuracy_score(Y, found):.2%}" in shown


def test_labels_have_the_names_of_the_model():
    model = label_model(named=["sea", "sky", "town"])
    write("named.svm", "sea,sky 1:0.5 # a comment\n\ntown 2:-1 4:2\n3:1\n")
    out = m3n_("predict", "named.svm", "-m", "model.m3n").stdout
    X = np.array([[0.5, 0, 0, 0], [0, -1, 0, 2], [0, 0, 1, 0]])
    assert [set(filter(None, line.split(","))) for line in out.splitlines()] == model.predict_sets(X)
    read = json.loads(m3n_("evaluate", "named.svm", "-m", "model.m3n", "--json").stdout)["labels"]
    assert read["sequence_accuracy"] == model.score(X, [{"sea", "sky"}, {"town"}, set()])
    X, y = load_svmlight_file(sets_file(), multilabel=True)  # labels are floating-point numbers there
    m3n.MultilabelClassifier(n_jobs=1).fit(X, y).save("model.m3n")
    assert m3n_("predict", "sets.svm", "-m", "model.m3n").stdout.replace(",", "").replace("\n", "").isdecimal()
    m3n_("evaluate", "sets.svm", "-m", "model.m3n")


def test_the_first_feature_may_be_named():
    model = label_model()
    write("one.svm", "1:2.0 3:1.0\n")  # no feature 0 here, although features are numbered from it
    for first, x in ((0, [0, 2.0, 0, 1.0]), (1, [2.0, 0, 1.0, 0])):
        line = m3n_("predict", "one.svm", "-m", "model.m3n", "--json", "--first-feature", first).stdout
        assert json.loads(line)["labels"] == np.flatnonzero(model.predict([x])[0]).tolist()


@pytest.mark.parametrize("edge_features", [False, True])
def test_labels_of_nodes_are_those_of_python(edge_features):
    X, y = graphs(edge_features=edge_features)
    model = m3n.GraphLabeler(n_jobs=1, lam=0.05).fit(X, y)
    model.save("model.m3n")
    write("graphs.jsonl", graph_lines(X, y))
    lines = m3n_("predict", "graphs.jsonl", "-m", "model.m3n", "--marginals", "--confidence").stdout.splitlines()
    answers = [json.loads(line) for line in lines]
    assert [answer["labels"] for answer in answers] == model.predict(X)
    for answer, shares in zip(answers, model.predict_marginals(X), strict=True):
        assert [list(node.values()) for node in answer["marginals"]] == np.round(shares, 6).tolist()
        pairs = zip(answer["marginals"], answer["labels"], strict=True)
        assert answer["confidence"] == [node[label] for node, label in pairs]
    read = json.loads(m3n_("evaluate", "graphs.jsonl", "-m", "model.m3n", "--json").stdout)["nodes"]
    assert read["accuracy"] == pytest.approx(model.score(X, y))
    shown = plain(m3n_("evaluate", "graphs.jsonl", "-m", "model.m3n").stdout)
    assert "20 graphs, 100 labels" in shown
    assert "right: nodes" in shown
    write("new.jsonl", graph_lines(X))
    assert m3n_("predict", "-", "-m", "model.m3n", given=graph_lines(X)).stdout.splitlines() == [
        json.dumps({"labels": labels}) for labels in model.predict(X)
    ]
    assert "has no labels" in plain(m3n_("evaluate", "new.jsonl", "-m", "model.m3n", code=2).output)


def test_sets_and_graphs_are_trained():
    settings = ("-m", "model.m3n", "--jobs", 1, "--lam", "0.01", "--rtol", "0", "--tol", "1e-3")
    sets_file()
    result = m3n_("train", "sets.svm", "--task", "labels", "--test", "sets.svm", *settings, "--report", "report.html")
    assert "60 examples with" in result.output
    assert "labels right" in result.output
    assert m3n.load("model.m3n").predict(Z).tolist() == label_model().predict(Z).tolist()
    X, y = graphs()
    write("graphs.jsonl", graph_lines(X, y))
    result = m3n_("train", "graphs.jsonl", "--task", "graphs", "--test", "graphs.jsonl", *settings)
    assert "20 graphs with 100 labels" in result.output
    assert m3n.load("model.m3n").predict(X) == m3n.GraphLabeler(n_jobs=1, lam=0.01, rtol=0.0).fit(X, y).predict(X)


SETS = [
    ("1 5:1", "line 1: feature 5 is not one of 1 to 4"),
    ("1 0:1 4:1", "line 1: feature 4 is not one of 0 to 3"),
    ("1 1:1\n7 1:1", "line 2: the label '7' is not known; there are 0, 1, 2"),
    ("1 1:1\n1 2:x", "line 2: a feature must be NUMBER:VALUE"),
    ("1 2:1 1:1", "line 1: feature 1 comes after feature 2"),
    ("# nothing\n", "is empty: there is no example in it"),
    ("1:1\n2:1\n", "has no labels to compare with"),
]
GRAPHS = [
    ('{"node_features": [[1, 0]], "edges"', "line 1: this is not JSON"),
    ('{"tokens": ["a"]}', "line 1: expected an object with lists of node features and of edges"),
    ('{"node_features": [[1]], "edges": [], "labels": ["a"]}', "line 1: graph 0 has 1 node features where 2"),
    ('{"node_features": [[1, "x"]], "edges": []}', "line 1: graph 0: node features must be a 2-D array of numbers"),
    ('{"node_features": [[1, 0]], "edges": [[0]]}', "line 1: graph 0: edges must be an array (count, 2)"),
    ('{"node_features": [[1, 0]], "edges": [[0, 1], [0]]}', "line 1: graph 0: edges must be pairs"),
    ('{"node_features": [[1, 0]], "edges": [[0, 1]]}', "names a node outside of 0..0"),
    ('{"node_features": [[1, 0]], "edges": [], "labels": []}', "line 1: there are 1 nodes but 0 labels"),
    (
        '{"node_features": [[1, 0], [0, 1]], "edges": [[0, 1]], "edge_features": [[1]]}',
        "line 1: graph 0: either all graphs have edge features or none",
    ),
    ("", "is empty: there is no graph in it"),
]


@pytest.mark.parametrize(("content", "message"), SETS)
def test_mistakes_in_sets_are_named(content, message):
    label_model()
    write("bad.svm", content)
    assert message in plain(m3n_("evaluate", "bad.svm", "-m", "model.m3n", code=2).output)


@pytest.mark.parametrize(("content", "message"), GRAPHS)
def test_mistakes_in_graphs_are_named(content, message):
    m3n.GraphLabeler(n_jobs=1).fit(*graphs()).save("model.m3n")
    write("bad.jsonl", content)
    assert message in plain(m3n_("evaluate", "bad.jsonl", "-m", "model.m3n", code=2).output)


def test_mistakes_with_options_are_named():
    label_model()
    sets_file()

    def refused(*arguments):
        return plain(m3n_(*arguments, code=2).output)

    assert "not columns" in refused("predict", "sets.svm", "-m", "model.m3n", "--format", "columns")
    assert "are for columns" in refused("predict", "sets.svm", "-m", "model.m3n", "--label", 0)
    assert "one answer per example" in refused("predict", "sets.svm", "-m", "model.m3n", "--n-best", 2)
    training = ("train", "sets.svm", "-m", "new.m3n")
    assert "unknown task 'trees'" in refused(*training, "--task", "trees")
    assert "--constraints is not for --task labels" in refused(*training, "--task", "labels", "--constraints", "iob")
    write("template", "U0:%x[0,0]\n")
    assert "templates are for column files" in refused(*training, "--task", "labels", "-t", "template")
    write("other.svm", "9 1:1\n")
    assert "line 1: the label '9'" in refused(*training, "--task", "labels", "--test", "other.svm")
    write("graphs.jsonl", graph_lines(*graphs()))
    first = ("train", "graphs.jsonl", "-m", "x.m3n", "--task", "graphs", "--first-feature", 0)
    assert "--first-feature is for sets of labels, not for graphs" in refused(*first)
    assert "not svmlight" in refused("train", "graphs.jsonl", "-m", "x.m3n", "--task", "graphs", "--format", "svmlight")
    write("mixed.jsonl", graph_lines(*graphs()) + '{"node_features": [[1]], "edges": [], "labels": ["a"]}\n')
    message = "line 21: graph 20 has 1 node features where 2 are expected"
    assert message in refused("train", "mixed.jsonl", "-m", "x.m3n", "--task", "graphs")
    mixed = ("--task", "graphs", "--test", "mixed.jsonl")
    assert message in refused("train", "graphs.jsonl", "-m", "x.m3n", *mixed)
