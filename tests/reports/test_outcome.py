import networkx
import numpy as np
import pytest
import scipy.sparse

from m3n.estimators.forms import GRAPHS, OFF, SEGMENTS, SETS, token_texts
from m3n.io import Sentences
from m3n.reports.quality import predict
from tests.reports.pages import fixed


def test_sequences():
    outcome = predict(fixed([["A", "B"], ["A"]]), [[("the",), ("dog",)], [("barks",)]], [["A", "A"], np.array(["A"])])
    assert outcome.gold == [["A", "A"], ["A"]]
    assert outcome.errors.tolist() == [1, 0]
    assert outcome.positions == 3
    assert outcome.words(0) == ["the", "dog"]


def test_what_does_not_fit_is_refused_with_its_place():
    model = fixed([["A", "B"], ["A"]])
    with pytest.raises(ValueError, match="X has 2 sequences but y has 1"):
        predict(model, [[], []], [["A", "B"]])
    with pytest.raises(ValueError, match="sequence 1 has 1 tokens in X but 2 labels in y"):
        predict(model, [[], []], [["A", "B"], ["A", "A"]])
    with pytest.raises(ValueError, match="y is missing"):
        predict(model, [[], []], None)


def test_segments_become_iob_labels():
    model = fixed([])
    model._form = SEGMENTS
    model.predict_iob = lambda X: [["B-x", "I-x", "O"], ["O"], ["O"]]
    outcome = predict(model, [["a", "b", "c"], ["d"], ["e"]], [[(0, 2, "x")], [], ["B-y"]])
    assert outcome.gold == [["B-x", "I-x", "O"], ["O"], ["B-y"]]
    assert outcome.errors.tolist() == [0, 0, 1]


def test_labels_of_graphs_in_every_form():
    model = fixed([[0, 1], [1, 1], [0, 0]])
    model._form = GRAPHS
    graph = networkx.Graph()
    graph.add_nodes_from(["b", "a"])
    outcome = predict(model, [None, None, graph], [[0, 1], np.array([[1], [0]]), {"a": 1, "b": 0}])
    assert outcome.gold == [[0, 1], [1, 0], [0, 1]]
    assert (outcome.example, outcome.position) == ("graph", "node")
    assert outcome.words(0) == ["#1", "#2"]


@pytest.mark.parametrize(
    "y", [[[1, 0], [1, 1]], np.array([[1, 0], [1, 1]]), scipy.sparse.csr_array([[1, 0], [1, 1]]), [{"x"}, {"y", "x"}]]
)
def test_sets_of_labels(y):
    model = fixed([], classes=["x", "y"])
    model.predict = lambda X: np.array([[1, 1], [0, 1]])
    model._form = SETS
    outcome = predict(model, None, y)
    assert outcome.gold == [["x", OFF], ["x", "y"]]
    assert outcome.predicted == [["x", "y"], [OFF, "y"]]
    with pytest.raises(ValueError, match="does not know the label 'z'"):
        predict(model, None, [{"z"}, set()])


@pytest.mark.parametrize(
    ("sequence", "texts"),
    [
        ([("The", "DT"), ("dog", "NN")], ["The", "dog"]),
        ([["bias", "w[0]=The"], ["x", "y"]], ["The", "x"]),
        ([{"bias": 1, "word": "The"}, {"shape": "Xx"}, {}], ["The", "shape=Xx", ""]),
        (["The", "dog"], ["The", "dog"]),
        (np.zeros((2, 3)), ["#1", "#2"]),
        (scipy.sparse.csr_array(np.ones((2, 3))), ["#1", "#2"]),
        ([[0.5, 0.1], [0.2, 0.3]], ["#1", "#2"]),
        ([3, 4], ["#1", "#2"]),
        (Sentences.of([[("The", "DT")]])[0], ["The"]),
    ],
)
def test_texts_of_tokens(sequence, texts):
    assert token_texts(sequence) == texts
