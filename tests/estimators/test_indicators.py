import numpy as np
import pytest
import scipy.sparse

from m3n.estimators.indicators import read_inputs, read_outputs

INDICATOR = [[0, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    "Y", [INDICATOR, np.array(INDICATOR, float), np.array(INDICATOR, bool), scipy.sparse.csr_matrix(INDICATOR)]
)
def test_indicator_matrices(Y):
    classes, indicator = read_outputs(Y, 2)
    assert classes.tolist() == [0, 1, 2]
    assert indicator.tolist() == INDICATOR


@pytest.mark.parametrize(
    "Y", [[{"b", "c"}, {"a"}], [["c", "b"], ["a"]], [("b", "c", "b"), ("a",)], [frozenset("bc"), frozenset("a")]]
)
def test_sets_of_labels(Y):
    classes, indicator = read_outputs(Y, 2)
    assert classes.tolist() == ["a", "b", "c"]
    assert indicator.tolist() == INDICATOR


def test_sets_of_numbers_and_of_equally_many_names():
    assert read_outputs([{5}, {7}], 2)[0].tolist() == [5, 7]
    assert read_outputs([["a", "b"], ["b", "c"]], 2)[1].tolist() == [[1, 1, 0], [0, 1, 1]]
    assert read_outputs([[5], [5, 7]], 2)[1].tolist() == [[1, 0], [1, 1]]
    assert read_outputs([set(), {"a"}], 2)[1].tolist() == [[0], [1]]


def test_known_classes_keep_their_order():
    classes = np.array(["a", "b", "c"])
    assert read_outputs([{"c"}], 1, classes)[1].tolist() == [[0, 0, 1]]
    assert read_outputs([[0, 0, 1]], 1, classes)[1].tolist() == [[0, 0, 1]]


@pytest.mark.parametrize(
    ("Y", "count", "classes", "error", "message"),
    [
        ("ab", 2, None, TypeError, "one set of labels per example, got str"),
        (3, 1, None, TypeError, "got int"),
        (["ab", {"c"}], 2, None, ValueError, "y, example 0: expected a set of labels, got 'ab'"),
        ([{"a"}], 2, None, ValueError, "X has 2 examples, but y has 1"),
        ([set(), set()], 2, None, ValueError, "no example has a label"),
        ([{"a"}, {"z"}], 2, np.array(["a", "b"]), ValueError, "y, example 1: label 'z' was not in the training data"),
        (INDICATOR, 2, np.array(["a", "b"]), ValueError, "y has 3 labels, but the model was trained with 2"),
        ([[3, 4], [4, 5]], 2, None, ValueError, "3 is neither 0 nor 1"),
    ],
)
def test_outputs_that_make_no_sense(Y, count, classes, error, message):
    with pytest.raises(error, match=message):
        read_outputs(Y, count, classes)


def test_inputs():
    X = [[0, 1], [2, 0]]
    np.testing.assert_array_equal(read_inputs(X), X)
    np.testing.assert_array_equal(read_inputs(scipy.sparse.coo_array(X)).toarray(), X)


@pytest.mark.parametrize(
    ("X", "width", "message"),
    [
        ([1.0, 2.0], None, r"shape \(examples, attributes\), got shape \(2,\)"),
        ([[1.0, 2.0]], 3, "X has 2 features, but MultilabelClassifier is expecting 3"),
        ([[1.0, 2.0], [0.0, np.nan]], None, "X, example 1: NaN or infinite"),
        (scipy.sparse.csr_array([[0.0, 0.0], [np.inf, 1.0]]), None, "X, example 1: NaN or infinite"),
    ],
)
def test_inputs_that_make_no_sense(X, width, message):
    with pytest.raises(ValueError, match=message):
        read_inputs(X, width)
