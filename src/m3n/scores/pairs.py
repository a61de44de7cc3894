"""Gold and predicted labels as numbers, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from m3n.io.sentences import numbered

Label = Any  # str or int
Labels = Sequence[Sequence[Label]]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The labels of all tokens of all sequences.

    Attributes
    ----------
    gold : array of int (tokens,)
        The numbers of the gold labels.
    predicted : array of int (tokens,)
        The numbers of the predicted labels.
    classes : list
        The labels, in ascending order.
    lengths : array of int (sequences,)
        Tokens of every sequence.
    """

    gold: np.ndarray
    predicted: np.ndarray
    classes: list[Label]
    lengths: np.ndarray

    @classmethod
    def of(cls, gold: Labels, predicted: Labels, classes: Iterable[Label] | None = None) -> Pairs:
        """Number labels, after checking that the sequences fit.

        Parameters
        ----------
        gold, predicted : sequences of labels
            Of the same sequences.
        classes : iterable of labels, optional
            All labels in the wanted order. The default is those that occur, in ascending order.
        """
        lengths = _lengths(gold, predicted)
        flat = chain(chain.from_iterable(gold), chain.from_iterable(predicted))
        codes, found = numbered(flat, 2 * int(lengths.sum()))
        found = _plain(found)
        ordered = ordered_labels(found, classes)
        rank = {label: k for k, label in enumerate(ordered)}
        codes = np.array([rank[label] for label in found], dtype=np.int64)[codes]
        half = len(codes) // 2
        return cls(codes[:half], codes[half:], ordered, lengths)

    @property
    def right(self) -> np.ndarray:
        """Which tokens have the right label."""
        return self.gold == self.predicted

    @property
    def accuracy(self) -> float:
        """The share of right tokens."""
        return float(self.right.mean())

    @property
    def sequence_accuracy(self) -> float:
        """The share of sequences without a wrong token."""
        sequence = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return 1.0 - len(np.unique(sequence[~self.right])) / len(self.lengths)


def _lengths(gold: Labels, predicted: Labels) -> np.ndarray:
    if len(gold) != len(predicted):
        raise ValueError(f"there are {len(gold)} gold sequences but {len(predicted)} predicted ones")
    lengths, others = (np.fromiter(map(len, labels), np.int64, len(labels)) for labels in (gold, predicted))
    wrong = np.flatnonzero(lengths != others)
    if wrong.size:
        i = wrong[0]
        raise ValueError(f"sequence {i} (counted from 0) has {lengths[i]} gold labels but {others[i]} predicted ones")
    if not lengths.any():
        raise ValueError("there is no label to score")
    return lengths


def _plain(labels: Iterable[Label]) -> list[Label]:
    """NumPy's numbers and texts as Python's."""
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def ordered_labels(found: Iterable[Label], classes: Iterable[Label] | None) -> list[Label]:
    """The labels in the wanted order, in which all that occur must be; without one these in ascending order.

    Parameters
    ----------
    found : iterable of labels
        Those that occur, once each.
    classes : iterable of labels or None
        All labels in the wanted order.
    """
    if classes is None:
        try:
            return sorted(found)
        except TypeError:
            raise ValueError("labels must be all strings or all numbers; found both") from None
    ordered = _plain(classes)
    if len(set(ordered)) < len(ordered):
        raise ValueError("classes must not name a label twice")
    missing = [label for label in found if label not in set(ordered)]
    if missing:
        raise ValueError(f"the label {missing[0]!r} occurs but is not among the classes; add it")
    return ordered
