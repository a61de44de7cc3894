"""Sequences with labels and weights as ``fit`` takes them, some at a time, with errors that name the place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from m3n.estimators.inputs import label_sequences
from m3n.estimators.labels import check_labels, label_list
from m3n.estimators.sequences import as_list, comes_once, is_frame, length_of, listed, one_by_one
from m3n.features import Templates
from m3n.io.sentences import Sentences

OBJECT = 100  # bytes of an attribute as an object of Python, about
MISSING = object()


class Part(NamedTuple):
    """Some sequences as they were given.

    Attributes
    ----------
    X : Sentences or list
        Tokens in columns, or sequences of any other kind.
    labels : list of lists
        The labels of every sequence.
    weights : array (sequences,) or None
        How often every sequence counts.
    begin : int
        The number of the first sequence.
    """

    X: Any
    labels: list[list[Any]]
    weights: np.ndarray | None
    begin: int


def parts_of(X: Any, y: Any, sample_weight: Any, templates: Templates | None, most: int) -> Iterator[Part]:
    """Sequences as ``fit`` takes them, so many bytes at a time.

    Parameters
    ----------
    X : sequences
        The inputs.
    y : sequences of labels
        One label per position.
    sample_weight : numbers or None
        How often every sequence counts.
    templates : Templates or None
        What makes attributes of columns.
    most : int
        Bytes of a part, about.
    """
    if y is None:
        raise ValueError("y is missing: a list of label sequences, one per sequence of X, is needed")
    if isinstance(X, Sentences):
        yield from _parts_of_sentences(X, as_list(y), sample_weight, most)
        return
    if is_frame(X) or hasattr(y, "iloc"):
        X = listed(X)
        y = label_sequences(y, np.array([length_of(x, i) for i, x in enumerate(X)], np.int64))
    beside = _Beside(y if comes_once(y) else as_list(y), sample_weight)
    part, labels, weights, size, begin = list[Any](), list[Any](), list[float](), 0, 0
    for sequence, length in one_by_one(X if comes_once(X) else as_list(X), templates):
        given, weight = beside.read(begin + len(part))
        part.append(sequence)
        labels.append(given)
        weights.append(weight)
        size += _bytes(sequence, length)
        if size >= most:
            yield Part(part, labels, None if sample_weight is None else np.array(weights), begin)
            begin += len(part)
            part, labels, weights, size = [], [], [], 0
    beside.end(begin + len(part))
    if part:
        yield Part(part, labels, None if sample_weight is None else np.array(weights), begin)


def _parts_of_sentences(X: Sentences, y: list[Any], sample_weight: Any, most: int) -> Iterator[Part]:
    if len(y) != len(X):
        raise ValueError(f"X has {len(X)} sequences but y has {len(y)}")
    beside, step = _Beside(y, sample_weight), max(most // (OBJECT * 25), 1)
    for low in range(0, len(X), step):
        both = [beside.read(i) for i in range(low, min(low + step, len(X)))]
        weights = None if sample_weight is None else np.array([weight for _, weight in both])
        yield Part(X[low : low + step], [labels for labels, _ in both], weights, low)
    beside.end(len(X))


class _Beside:
    """The labels and the weight of one sequence after another."""

    def __init__(self, y: Iterable[Any], sample_weight: Any):
        self._labels = iter(y)
        self._weights = None if sample_weight is None else iter(sample_weight)

    def read(self, i: int) -> tuple[list[Any], float]:
        """Those of sequence i."""
        given = next(self._labels, MISSING)
        if given is MISSING:
            raise ValueError(f"X has more sequences than y, which ends after {i}")
        labels = label_list(given, i)
        if not set(map(type, labels)) <= {str, int}:
            check_labels([labels], i)
        return labels, 1.0 if self._weights is None else self._weight(i)

    def end(self, count: int) -> None:
        """Refuse more labels or weights than sequences."""
        if next(self._labels, MISSING) is not MISSING:
            raise ValueError(f"y has more sequences than X, which ends after {count}")
        if self._weights is not None and next(self._weights, MISSING) is not MISSING:
            raise ValueError(f"sample_weight has more numbers than X has sequences, {count}")

    def _weight(self, i: int) -> float:
        assert self._weights is not None
        given: Any = next(self._weights, MISSING)
        if given is MISSING:
            raise ValueError(f"sample_weight has only {i} numbers; one per sequence is needed")
        if not 0.0 <= given < math.inf:
            raise ValueError(f"sample_weight[{i}] is {given}: weights must be finite and not negative")
        return float(given)


def check_numbered(labels: Sequence[Sequence[Any]], lengths: np.ndarray, begin: int) -> None:
    """Refuse labels that are not as many as positions, by the number of the sequence.

    Parameters
    ----------
    labels : sequences of labels
        Those of every sequence.
    lengths : array of int (sequences,)
        Positions of every sequence.
    begin : int
        The number of the first.
    """
    found = np.fromiter(map(len, labels), np.int64, len(labels))
    wrong = np.flatnonzero(found != lengths)
    if wrong.size:
        i = wrong[0]
        raise ValueError(f"sequence {begin + i} has {lengths[i]} positions in X but {found[i]} labels in y")


def lengths_of(X: Any, begin: int) -> np.ndarray:
    """Positions of every sequence, the first of which has this number."""
    if isinstance(X, Sentences):
        return X.lengths
    return np.array([length_of(sequence, i) for i, sequence in enumerate(X, begin)], dtype=np.int64)


def _bytes(sequence: Any, length: int) -> int:
    """About how much memory a sequence takes."""
    if scipy.sparse.issparse(sequence):
        return 12 * int(sequence.nnz) + 8 * length
    if isinstance(sequence, np.ndarray):
        return int(sequence.nbytes)
    first: Any = next(iter(sequence), None)
    return length * OBJECT * (1 + (len(first) if hasattr(first, "__len__") and not isinstance(first, str) else 1))
