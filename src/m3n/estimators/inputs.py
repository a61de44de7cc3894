"""Reading what users pass as X and y for sequences, with errors that name the place and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse

from m3n.features import AttributeVectorizer, Dense, FeatureMap, Sparse

Matrix = Any  # np.ndarray or scipy.sparse.csr_array, which has no type stubs


class SequenceReader:
    """Turns sequences of inputs into one matrix with a row per position.

    Sequences may be 2-D arrays, sparse matrices, or lists of tokens that are dicts or lists of strings. What ``fit``
    saw decides what ``read`` accepts afterwards.

    Attributes
    ----------
    kind : {"dense", "sparse", "attributes"}
        What the sequences are made of.
    width : int
        Number of attributes (columns).
    vectorizer : AttributeVectorizer or None
        The vocabulary, for ``kind="attributes"``.
    """

    def __init__(self, kind: str = "", width: int = 0, vectorizer: AttributeVectorizer | None = None):
        self.kind = kind
        self.width = width
        self.vectorizer = vectorizer

    def fit(self, X: Any) -> tuple[Matrix, np.ndarray]:
        """Decide the kind, learn the vocabulary and read; returns the matrix and the lengths."""
        sequences = _as_list(X)
        if not sequences:
            raise ValueError("X is empty: there is nothing to train on")
        self.kind = _kind(sequences[0])
        lengths = _lengths(sequences)
        if self.kind == "attributes":
            self.vectorizer = AttributeVectorizer()
            matrix = self.vectorizer.fit_transform(sequences)
        else:
            matrix = _join(sequences, self.kind, None)
        self.width = matrix.shape[1]
        return matrix, lengths

    def read(self, X: Any) -> tuple[Matrix, np.ndarray]:
        """Read new sequences of the kind that ``fit`` saw; returns the matrix and the lengths."""
        sequences = _as_list(X)
        lengths = _lengths(sequences)
        if self.vectorizer is not None:
            return self.vectorizer.transform(sequences), lengths
        return _join(sequences, self.kind, self.width), lengths

    def node_map(self, matrix: Matrix, labels: int) -> FeatureMap:
        """The feature map of a matrix that ``fit`` or ``read`` returned."""
        return Dense(matrix, labels) if self.kind == "dense" else Sparse(matrix, labels)


def read_labels(y: Any, lengths: np.ndarray) -> tuple[np.ndarray, list[list[int]]]:
    """The sorted classes and, for every sequence, the numbers of its labels."""
    sequences = _check_labels(y, lengths)
    found = {label for sequence in sequences for label in sequence}
    if len({isinstance(label, str) for label in found}) > 1:
        raise ValueError("labels must be all strings or all numbers; found both")
    classes = sorted(found)
    number = {label: k for k, label in enumerate(classes)}
    return np.array(classes), [[number[label] for label in sequence] for sequence in sequences]


def flat_labels(y: Any, lengths: np.ndarray) -> list[Any]:
    """All labels in one list, after checking that they fit the sequences."""
    return [label for sequence in _check_labels(y, lengths) for label in sequence]


def _check_labels(y: Any, lengths: np.ndarray) -> list[list[Any]]:
    if y is None:
        raise ValueError("y is missing: a list of label sequences, one per sequence of X, is needed")
    sequences = _as_list(y)
    if len(sequences) != len(lengths):
        raise ValueError(f"X has {len(lengths)} sequences but y has {len(sequences)}")
    checked = []
    for i, (sequence, length) in enumerate(zip(sequences, lengths, strict=True)):
        if isinstance(sequence, str) or not isinstance(sequence, Iterable):
            raise ValueError(f"sequence {i}: y must be a list of labels, got {sequence!r:.60}")
        labels = sequence.tolist() if isinstance(sequence, np.ndarray) else list(sequence)
        if len(labels) != length:
            raise ValueError(f"sequence {i} has {length} positions in X but {len(labels)} labels in y")
        for t, label in enumerate(labels):
            if not isinstance(label, (str, int, float, np.integer, np.floating)) or label != label:
                raise ValueError(f"sequence {i}, position {t}: a label must be a string or a number, got {label!r}")
        checked.append(labels)
    return checked


def _as_list(X: Any) -> list[Any]:
    if isinstance(X, (str, bytes, Mapping)) or scipy.sparse.issparse(X) or not isinstance(X, Iterable):
        raise TypeError(f"expected a list of sequences, got {type(X).__name__}")
    return list(X)


def _kind(sequence: Any) -> str:
    if scipy.sparse.issparse(sequence):
        return "sparse"
    if isinstance(sequence, np.ndarray) and sequence.dtype.kind in "biuf":
        return "dense"
    first = next(iter(sequence), None) if isinstance(sequence, Iterable) else None
    return "dense" if isinstance(first, np.ndarray) or _is_vector(first) else "attributes"


def _is_vector(token: Any) -> bool:
    """A token written as a plain list of numbers."""
    return isinstance(token, (list, tuple)) and len(token) > 0 and isinstance(token[0], (int, float, np.number))


def _lengths(sequences: list[Any]) -> np.ndarray:
    lengths = np.empty(len(sequences), dtype=np.int64)
    for i, sequence in enumerate(sequences):
        if isinstance(sequence, (str, Mapping)) or not (hasattr(sequence, "__len__") or hasattr(sequence, "shape")):
            raise TypeError(f"sequence {i}: expected a list of positions, got {sequence!r:.60}")
        lengths[i] = sequence.shape[0] if hasattr(sequence, "shape") and sequence.shape else len(sequence)
        if lengths[i] == 0:
            raise ValueError(f"sequence {i} is empty; leave empty sequences out")
    return lengths


def _join(sequences: list[Any], kind: str, width: int | None) -> Matrix:
    parts = [_dense(s, i) if kind == "dense" else _sparse(s, i) for i, s in enumerate(sequences)]
    expected = parts[0].shape[1] if width is None and parts else width
    for i, part in enumerate(parts):
        if part.shape[1] != expected:
            where = "the model was trained with" if width is not None else "sequence 0 has"
            raise ValueError(f"sequence {i} has {part.shape[1]} attributes per position, but {where} {expected}")
    if kind == "dense":
        return np.concatenate(parts) if parts else np.empty((0, width or 0))
    return scipy.sparse.vstack(parts, format="csr") if parts else scipy.sparse.csr_array((0, width or 0))


def _dense(sequence: Any, i: int) -> np.ndarray:
    try:
        array = np.asarray(sequence.toarray() if scipy.sparse.issparse(sequence) else sequence, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sequence {i}: its positions are not vectors of numbers of one length") from None
    if array.ndim != 2:
        raise ValueError(f"sequence {i}: expected a 2-D array (positions, attributes), got shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise ValueError(f"sequence {i}, position {bad[0]}: NaN or infinite input")
    return array


def _sparse(sequence: Any, i: int) -> scipy.sparse.csr_array:
    matrix = scipy.sparse.csr_array(sequence, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if bad.size:
        position = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise ValueError(f"sequence {i}, position {position}: NaN or infinite input")
    return matrix
