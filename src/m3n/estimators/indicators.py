"""Reading what users pass as X and Y for multilabel problems, with errors that name the place and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from m3n.estimators.inputs import PlainReader
from m3n.estimators.matrices import Matrix, bad_row
from m3n.structures.multilabel import check_indicator


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


class TableReader(PlainReader):
    """Reads matrices with a row per example; what ``fit`` saw decides what ``read`` accepts afterwards."""

    def fit(self, X: Any) -> Table:
        """Learn how many attributes there are, and read."""
        matrix = read_inputs(X)
        self.width = matrix.shape[1]
        return Table(matrix)

    def read(self, X: Any) -> Table:
        """Read inputs with as many attributes."""
        return Table(read_inputs(X, self.width))


def read_inputs(X: Any, width: int | None = None) -> Matrix:
    """X as a float array or CSR matrix (examples, attributes) of finite numbers, ``width`` of them if that is given."""
    sparse = scipy.sparse.issparse(X)
    matrix: Matrix = scipy.sparse.csr_array(X, dtype=np.float64) if sparse else np.asarray(X, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"X must have one row per example, shape (examples, attributes), got shape {matrix.shape}")
    if width is not None and matrix.shape[1] != width:
        raise ValueError(f"X has {matrix.shape[1]} attributes, but the model was trained with {width}")
    row = bad_row(matrix)
    if row is not None:
        raise ValueError(f"X, example {row}: NaN or infinite input")
    return matrix


def read_outputs(Y: Any, count: int, classes: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The classes and the indicator matrix (count, labels) of outputs, in the order of ``classes`` if these are known.

    Outputs are an indicator matrix, or one set or list of labels per example. Lists of numbers of one length are taken
    for an indicator matrix, as scikit-learn does.
    """
    if _is_indicator(Y):
        indicator = check_indicator(Y)
        classes = np.arange(indicator.shape[1]) if classes is None else classes
        if indicator.shape[1] != len(classes):
            raise ValueError(f"Y has {indicator.shape[1]} labels, but the model was trained with {len(classes)}")
    else:
        classes, indicator = _mark(Y, classes)
    if len(indicator) != count:
        raise ValueError(f"X has {count} examples, but Y has {len(indicator)}")
    return classes, indicator


def add_ones(matrix: Matrix) -> Matrix:
    """One more attribute that is always 1."""
    ones = np.ones((matrix.shape[0], 1))
    if scipy.sparse.issparse(matrix):
        return scipy.sparse.hstack([matrix, ones], format="csr")
    return np.hstack([matrix, ones])


def _is_indicator(Y: Any) -> bool:
    if scipy.sparse.issparse(Y) or hasattr(Y, "__array__"):
        return True
    if not isinstance(Y, Iterable) or isinstance(Y, (str, bytes)):
        raise TypeError(f"Y must be an indicator matrix or one set of labels per example, got {type(Y).__name__}")
    rows = list(Y)
    if not all(isinstance(row, (list, tuple, np.ndarray)) for row in rows) or len({len(row) for row in rows}) > 1:
        return False
    return np.asarray(rows).dtype.kind in "biuf" and np.size(rows) > 0


def _mark(Y: Any, classes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Sets of labels as an indicator matrix."""
    rows = [_labels(row, i) for i, row in enumerate(Y)]
    known = sorted(set().union(*rows)) if classes is None else classes.tolist()
    if not known:
        raise ValueError("no example has a label: there is nothing to learn")
    number = {label: k for k, label in enumerate(known)}
    indicator = np.zeros((len(rows), len(known)), np.int64)
    for i, row in enumerate(rows):
        for label in row:
            if label not in number:
                raise ValueError(f"Y, example {i}: label {label!r} was not in the training data")
            indicator[i, number[label]] = 1
    return np.array(known), indicator


def _labels(row: Any, i: int) -> set[Any]:
    if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
        raise ValueError(f"Y, example {i}: expected a set of labels, got {row!r:.60}; a single label is a set of one")
    return set(row)
