import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

from m3n.io import DataFileError, read_svm_hmm, write_svm_hmm

TEXT = """# made by hand
1 qid:7 1:0.5 3:-2e1 # The
2 qid:7
1  qid:2 2:1   5:0
"""


def test_reads_sequences(tmp_path):
    (tmp_path / "file").write_text(TEXT)
    X, y = read_svm_hmm(tmp_path / "file")
    assert y == [["1", "2"], ["1"]]
    assert [x.toarray().tolist() for x in X] == [[[0.5, 0, -20, 0, 0], [0] * 5], [[0, 1, 0, 0, 0]]]
    assert all(isinstance(x, csr_array) for x in X)


def test_the_width_of_training(tmp_path):
    (tmp_path / "file").write_text(TEXT)
    for width in (2, 9):
        X, _ = read_svm_hmm(tmp_path / "file", width=width)
        whole = np.zeros((3, 9))
        whole[0, [0, 2]], whole[2, 1] = (0.5, -20), 1
        np.testing.assert_array_equal(np.vstack([x.toarray() for x in X]), whole[:, :width])


def test_files_without_features(tmp_path):
    (tmp_path / "file").write_text("a qid:1\nb qid:1\n")
    ((x,), y) = read_svm_hmm(tmp_path / "file")
    assert (x.shape, y) == ((2, 0), [["a", "b"]])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1", "expected a label, the sequence as qid:NUMBER, then NUMBER:VALUE for every feature"),
        ("1 1:2", "expected a label, the sequence as qid:NUMBER"),
        ("1 qid:x 1:2", "expected a label, the sequence as qid:NUMBER"),
        ("1 qid:1 0:2", "a feature must be NUMBER:VALUE with a number from 1 and a finite value, got '0:2'"),
        ("1 qid:1 9999999999:2", "a feature must be NUMBER:VALUE"),
        ("1 qid:1 x:2", "got 'x:2'"),
        ("1 qid:1 3:x", "got '3:x'"),
        ("1 qid:1 3:inf", "got '3:inf'"),
        ("1 qid:1 3", "got '3'"),
        ("1 qid:1 3:1 3:2", "feature 3 comes after feature 3; features must be in ascending order"),
        ("1 qid:2\n1 qid:1", "the sequence qid:1 goes on here after others have come between; put its lines together"),
    ],
)
def test_malformed_lines_are_named(tmp_path, line, message):
    (tmp_path / "file").write_text(f"1 qid:1 1:1\n\n{line}\n")
    with pytest.raises(DataFileError, match=f"file, line {3 + line.count(chr(10))}: .*{message}"):
        read_svm_hmm(tmp_path / "file")


NUMBERS = st.one_of(st.just(0.0), st.floats(-1e300, 1e300))


ROWS = st.tuples(st.lists(NUMBERS, min_size=3, max_size=3), st.integers(1, 4))


@settings(max_examples=40)
@given(st.lists(st.lists(ROWS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_round_trip(tmp_path_factory, drawn):
    """Through our reader, and through that of scikit-learn."""
    path = tmp_path_factory.mktemp("svm_hmm") / "file"
    X = [np.array([row for row, _ in sequence]) for sequence in drawn]
    y = [[str(label) for _, label in sequence] for sequence in drawn]
    write_svm_hmm(path, [csr_array(X[0]), *X[1:]], y)
    again, labels = read_svm_hmm(path, width=3)
    assert labels == y
    for before, after in zip(X, again, strict=True):
        np.testing.assert_array_equal(after.toarray(), before)
    matrix, numbers, sequence = load_svmlight_file(path, n_features=3, query_id=True)
    np.testing.assert_array_equal(matrix.toarray(), np.vstack(X))
    assert [str(int(number)) for number in numbers] == [label for own in y for label in own]
    assert sequence.tolist() == [i + 1 for i, own in enumerate(y) for _ in own]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([np.ones((1, 2)), np.ones((1, 3))], [["1"], ["1"]], "must have the same number of features"),
        ([np.full((1, 2), np.nan)], [["1"]], "sequence 0: X has a value that is not finite"),
        ([np.ones((2, 2))], [["1", "a b"]], "sequence 0, position 1: the format cannot hold the label 'a b'"),
        ([np.ones((1, 2))], [["#"]], "sequence 0, position 0: the format cannot hold the label '#'"),
        ([np.ones((1, 2))], [[""]], "the format cannot hold the label ''"),
        ([np.ones((2, 2))], [["1"]], "sequence 0 has 2 positions in X but 1 labels in y"),
        ([np.ones((0, 2))], [[]], "sequence 0 is empty"),
    ],
)
def test_what_cannot_be_written_is_named(tmp_path, X, y, message):
    with pytest.raises(ValueError, match=message):
        write_svm_hmm(tmp_path / "file", X, y)
    assert not (tmp_path / "file").exists()


def test_a_matrix_is_not_changed(tmp_path):
    x = csr_array((np.array([1.0, 0.0, 2.0]), np.array([2, 1, 0]), np.array([0, 3])), shape=(1, 3))
    write_svm_hmm(tmp_path / "file", [x], [["1"]])
    assert (tmp_path / "file").read_text() == "1 qid:1 1:2.0 3:1.0\n"
    assert x.indices.tolist() == [2, 1, 0]
