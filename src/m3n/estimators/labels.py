"""Labels of sequences as numbers, whether they come in lists or one sequence after another."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from m3n.estimators.sequences import comes_once


class LabelStream:
    """The labels of an iterator, of which numbers are kept alone.

    Parameters
    ----------
    y : iterable of sequences of labels
        It is read once.

    Attributes
    ----------
    lengths : array of int
        Labels of every sequence that has been read.
    """

    def __init__(self, y: Iterable[Any]):
        self._y = iter(y)
        self._numbers: defaultdict[Any, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._codes = array("i")
        self.lengths = array("q")

    def beside(self, X: Iterable[Any]) -> Iterator[Any]:
        """The sequences of X; the labels of each are read with it, so that neither runs ahead of the other."""
        for i, sequence in enumerate(X):
            if not self._read():
                raise ValueError(f"X has more sequences than y, which ends after {i}")
            yield sequence
        if self._read():
            raise ValueError(f"y has more sequences than X, which ends after {len(self.lengths) - 1}")

    def numbered(self) -> tuple[np.ndarray, list[Any]]:
        """The numbers of all labels, in order of appearance, and the labels; what is left is read first."""
        while self._read():
            pass
        return np.frombuffer(self._codes, np.int32) if self._codes else np.empty(0, np.int32), list(self._numbers)

    def _read(self) -> bool:
        """The labels of one more sequence, if there is one."""
        for given in self._y:
            i = len(self.lengths)
            labels = label_list(given, i)
            if not set(map(type, labels)) <= {str, int}:
                check_labels([labels], i)
            self._codes.extend(map(self._numbers.__getitem__, labels))
            self.lengths.append(len(labels))
            return True
        return False


def side_by_side(X: Any, y: Any) -> tuple[Any, Any]:
    """X and y, ready to be read in this order; two iterators are read in step.

    Parameters
    ----------
    X : sequences, or an iterator of them
        The inputs.
    y : sequences of labels, or an iterator of them
        The outputs.
    """
    if not comes_once(y):
        return X, y
    labels = LabelStream(y)
    return (labels.beside(X) if comes_once(X) else X), labels


def label_list(sequence: Any, i: int) -> list[Any]:
    """The labels of sequence i."""
    if isinstance(sequence, str) or not isinstance(sequence, Iterable):
        raise ValueError(f"sequence {i}: y must be a list of labels, got {sequence!r:.60}")
    return sequence.tolist() if isinstance(sequence, np.ndarray) else list(sequence)


def check_labels(sequences: list[list[Any]], begin: int = 0) -> None:
    """Refuse what is neither a text nor a number; the first sequence is number ``begin``."""
    for i, labels in enumerate(sequences, start=begin):
        for t, label in enumerate(labels):
            if not isinstance(label, (str, int, float, np.integer, np.floating)) or label != label:
                raise ValueError(f"sequence {i}, position {t}: a label must be a string or a number, got {label!r}")


def check_counts(found: np.ndarray, lengths: np.ndarray) -> None:
    """Refuse labels that are not as many as there are positions, naming the first such sequence.

    Parameters
    ----------
    found : array of int
        Labels of every sequence.
    lengths : array of int (sequences,)
        Positions of every sequence.
    """
    if len(found) != len(lengths):
        raise ValueError(f"X has {len(lengths)} sequences but y has {len(found)}")
    wrong = np.flatnonzero(found != lengths)
    if wrong.size:
        i = wrong[0]
        raise ValueError(f"sequence {i} has {lengths[i]} positions in X but {found[i]} labels in y")
