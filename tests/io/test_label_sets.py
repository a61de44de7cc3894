"""Sets of labels in SVM-light's format, against scikit-learn's reader, and graphs as JSON lines."""

import gzip

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from m3n.io import DataFileError, read_graphs, read_label_sets


@pytest.mark.parametrize("zero_based", [False, True])
def test_the_same_as_scikit_learn(tmp_path, zero_based):
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 6)) * (random.random((30, 6)) < 0.5)
    X[0, 0] = X[1, 5] = 1.0  # the first and the last feature occur
    Y = scipy.sparse.csr_array(random.integers(2, size=(30, 3)))
    path = tmp_path / "sets.svm"
    dump_svmlight_file(X, Y, str(path), multilabel=True, zero_based=zero_based, comment="0: not a feature")
    expected, labels = load_svmlight_file(str(path), multilabel=True)
    found, sets = read_label_sets(path)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
    assert [tuple(named) for named in sets] == labels
    packed = tmp_path / "sets.svm.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(read_label_sets(packed, width=9)[0].toarray()[:, :6], expected.toarray())
    assert read_label_sets(packed, width=9)[0].shape == (30, 9)


def test_labels_are_numbers_or_names_and_may_be_missing(tmp_path):
    path = tmp_path / "sets.svm"
    path.write_text("2,1 1:1\n\n3:0.5 # no label\n")
    X, y = read_label_sets(path)
    assert X.toarray().tolist() == [[1, 0, 0], [0, 0, 0.5]]
    assert y == [[2, 1], []]
    assert read_label_sets(path, labels=[1.0, 2.0])[1] == [[2.0, 1.0], []]
    assert read_label_sets(path, first=0)[0].shape == (2, 4)
    path.write_text("sea,1 1:1\n")
    assert read_label_sets(path)[1] == [["sea", "1"]]
    assert read_label_sets(path, labels=["sea", 1])[1] == [["sea", 1]]
    path.write_text("1:1\n2:1\n")
    assert read_label_sets(path)[1] is None


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("1 1:1\n1 3:1\n", {"width": 2}, "line 2: feature 3 is not one of 1 to 2; number features as in training"),
        ("1 0:1\n", {"first": 1}, "line 1: a feature must be NUMBER:VALUE with a number from 1"),
        ("1 -1:1\n", {}, "line 1: a feature must be NUMBER:VALUE"),
        ("1 1:nan\n", {}, "line 1: a feature must be NUMBER:VALUE"),
        ("1 2 1:1\n", {}, "line 1: a feature must be NUMBER:VALUE"),
        ("5 1:1\n", {"labels": [1, 2]}, "line 1: the label '5' is not known; there are 1, 2"),
        ("\n# nothing\n", {}, "is empty: there is no example in it"),
    ],
)
def test_mistakes_name_the_line(tmp_path, text, settings, message):
    path = tmp_path / "bad.svm"
    path.write_text(text)
    with pytest.raises(DataFileError, match=message):
        read_label_sets(path, **settings)


def test_graphs_are_what_a_labeler_takes(tmp_path):
    path = tmp_path / "graphs.jsonl"
    path.write_text('{"node_features": [[1, 2], [3, 4]], "edges": [[0, 1]], "edge_features": [[5]], "id": 7}\n')
    assert read_graphs(path) == ([([[1, 2], [3, 4]], [[0, 1]], [[5]])], None)
    path.write_text('{"node_features": [[1]], "edges": [], "labels": [0]}\n\n{"node_features": [[1]], "edges": []}\n')
    with pytest.raises(DataFileError, match="line 3: labels are missing here; give all lines labels, or none"):
        read_graphs(path)
