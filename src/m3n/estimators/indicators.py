"""Reading what users pass as X and y for sets of labels, with errors that name the place and the remedy."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from m3n.estimators.columns import check_columns, column_names
from m3n.estimators.inputs import PlainReader
from m3n.estimators.matrices import Matrix, bad_row
from m3n.structures.multilabel import check_indicator

SINGLE = (str, int, float, complex, np.generic)  # what one label may be


@dataclass(frozen=True)
class Table:
    """Inputs of which every example is one row."""

    matrix: Matrix

    def only(self, chosen: np.ndarray) -> Table:
        """Some of the examples."""
        return Table(self.matrix[chosen])

    def arrays(self) -> Iterator[Any]:
        """What tells these inputs from others."""
        yield self.matrix


@dataclass(eq=False)
class TableReader(PlainReader):
    """Reads matrices with a row per example; what ``fit`` saw decides what ``read`` accepts afterwards.

    Attributes
    ----------
    column_names : list of str or None
        Of the columns, if X was a data frame.
    """

    column_names: list[str] | None = None

    def fit(self, X: Any) -> Table:
        """Learn how many attributes there are, and read."""
        self.column_names = column_names(X)
        matrix = read_inputs(X)
        self.width = matrix.shape[1]
        if 0 in matrix.shape:
            what = "feature" if matrix.shape[0] else "sample"
            raise ValueError(f"X has 0 {what}(s) (shape={matrix.shape}) while a minimum of 1 is required.")
        return Table(matrix)

    def read(self, X: Any) -> Table:
        """Read inputs with as many attributes."""
        check_columns(self.column_names, X)
        return Table(read_inputs(X, self.width))


def read_inputs(X: Any, width: int | None = None) -> Matrix:
    """X as a float array or CSR matrix (examples, attributes) of finite numbers, ``width`` of them if that is given."""
    sparse = scipy.sparse.issparse(X)
    given: Any = X if sparse else np.asarray(X)
    if given.dtype.kind == "c":
        raise ValueError("X: Complex data not supported; take real and imaginary parts as two attributes")
    matrix: Matrix = scipy.sparse.csr_array(X, dtype=np.float64) if sparse else given.astype(np.float64, copy=False)
    if matrix.ndim != 2:
        remedy = "Reshape your data: X.reshape(1, -1) makes one example of it, X.reshape(-1, 1) one attribute"
        raise ValueError(
            f"X must have one row per example, shape (examples, attributes), got shape {matrix.shape}. {remedy}"
        )
    if width is not None and matrix.shape[1] != width:
        model = "MultilabelClassifier"
        raise ValueError(f"X has {matrix.shape[1]} features, but {model} is expecting {width} features as input")
    row = bad_row(matrix)
    if row is not None:
        raise ValueError(f"X, example {row}: NaN or infinite input")
    return matrix


def read_outputs(y: Any, count: int, classes: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The classes, and the outputs with their numbers, in the order of ``classes`` if these are known.

    Outputs are an indicator matrix, or one set or list of labels per example: an indicator matrix (count, labels) is
    made of them. Lists of numbers of one length are taken for an indicator matrix, as scikit-learn does. Or they are
    one label per example: its numbers (count,) are made of them.
    """
    if y is None:
        raise ValueError("a classifier requires y to be passed, but the target y is None; give the labels of X")
    single = single_labels(y)
    if single is not None:
        classes, outputs = _numbered(single, classes)
    elif _is_indicator(y):
        outputs = check_indicator(y)
        classes = np.arange(outputs.shape[1]) if classes is None else classes
        if outputs.shape[1] != len(classes):
            raise ValueError(f"y has {outputs.shape[1]} labels, but the model was trained with {len(classes)}")
    else:
        classes, outputs = _mark(y, classes)
    if len(outputs) != count:
        raise ValueError(f"X has {count} examples, but y has {len(outputs)}")
    return classes, outputs


def single_labels(y: Any) -> np.ndarray | None:
    """One label per example, if that is what y holds; a column of other numbers than 0 and 1 is taken for that."""
    array = np.asarray(y) if hasattr(y, "__array__") else None
    if scipy.sparse.issparse(y) or isinstance(y, (str, bytes)) or not (isinstance(y, Iterable) or array is not None):
        return None
    if array is not None and array.ndim != 1 and array.shape[1:] != (1,):
        return None
    rows = list(y) if array is None else array.tolist()
    nested = {isinstance(row, (list, tuple)) and len(row) == 1 for row in rows}
    labels = [row[0] for row in rows] if nested == {True} else rows
    if not rows or not all(isinstance(label, SINGLE) for label in labels):
        return None
    return _column(labels) if nested == {True} else np.array(labels)


def _column(labels: list[Any]) -> np.ndarray | None:
    """The labels of a matrix with one column, unless it marks where the only label is on, or holds sets of one name."""
    if any(isinstance(label, str) for label in labels) or set(labels) <= {0, 1}:
        return None
    from sklearn.exceptions import DataConversionWarning

    remedy = "change the shape of y to (n_samples,), for example by y.ravel()"
    text = f"A column-vector y was passed when a 1d array was expected; {remedy}"
    warnings.warn(text, DataConversionWarning, stacklevel=6)
    return np.array(labels)


def _numbered(labels: np.ndarray, classes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The classes of single labels, and their numbers."""
    if labels.dtype.kind not in "biufU":
        raise ValueError(
            f"Unknown label type: y must hold strings or whole numbers, one per example; got {labels.dtype}"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"y, example {np.argmin(np.isfinite(labels))}: Input y contains NaN or infinity")
    if labels.dtype.kind == "f" and (labels != np.round(labels)).any():
        raise ValueError("Unknown label type: y holds continuous numbers, as for a regression; labels are needed")
    found, numbers = np.unique(labels, return_inverse=True)
    if classes is None:
        if len(found) < 2:
            raise ValueError(f"y has one class only, {found[0]!r}: a classifier needs two classes at least")
        return found, numbers.astype(np.int64)
    unknown = [label for label in found.tolist() if label not in classes]
    if unknown:
        raise ValueError(f"y: label {unknown[0]!r} was not in the training data")
    return classes, np.searchsorted(classes, found).astype(np.int64)[numbers]


def add_ones(matrix: Matrix) -> Matrix:
    """One more attribute that is always 1."""
    ones = np.ones((matrix.shape[0], 1))
    if scipy.sparse.issparse(matrix):
        return scipy.sparse.hstack([matrix, ones], format="csr")
    return np.hstack([matrix, ones])


def _is_indicator(y: Any) -> bool:
    if scipy.sparse.issparse(y) or (hasattr(y, "__array__") and np.asarray(y).dtype != object):
        return True
    if not isinstance(y, Iterable) or isinstance(y, (str, bytes)):
        raise TypeError(f"y must be an indicator matrix or one set of labels per example, got {type(y).__name__}")
    rows = list(y)
    if not all(isinstance(row, (list, tuple, np.ndarray)) for row in rows) or len({len(row) for row in rows}) > 1:
        return False
    return np.asarray(rows).dtype.kind in "biuf" and np.size(rows) > 0


def _mark(y: Any, classes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Sets of labels as an indicator matrix."""
    rows = [_labels(row, i) for i, row in enumerate(y)]
    known = sorted(set().union(*rows)) if classes is None else classes.tolist()
    if not known:
        raise ValueError("no example has a label: there is nothing to learn")
    number = {label: k for k, label in enumerate(known)}
    indicator = np.zeros((len(rows), len(known)), np.int64)
    for i, row in enumerate(rows):
        for label in row:
            if label not in number:
                raise ValueError(f"y, example {i}: label {label!r} was not in the training data")
            indicator[i, number[label]] = 1
    return np.array(known), indicator


def _labels(row: Any, i: int) -> set[Any]:
    if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
        raise ValueError(f"y, example {i}: expected a set of labels, got {row!r:.60}; a single label is a set of one")
    return set(row)
