"""Gold and predicted labels as numbers, side by side, their scores and the table of these.

With ``right`` the number of things that are in both the gold labels and the predicted ones,

    precision = right / predicted,   recall = right / support,   f1 = 2 right / (predicted + support),

and 0 where nothing could be counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np

from m3n.io.sentences import numbered

Label = Any  # str or int
Labels = Sequence[Sequence[Label]]
HEADER = ["", "precision", "recall", "F1", "gold", "predicted"]


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


@dataclass(frozen=True)
class Row:
    """The scores of one label, or of one kind of chunk.

    Attributes
    ----------
    label : str or int
        The label or kind.
    precision : float
        The share of right ones among those predicted.
    recall : float
        The share of right ones among the gold ones.
    f1 : float
        Their harmonic mean.
    support : int
        How many gold ones there are.
    predicted : int
        How many were predicted.
    """

    label: str | int
    precision: float
    recall: float
    f1: float
    support: int
    predicted: int


@dataclass(frozen=True)
class Scores:
    """How good predicted labels are; all numbers lie between 0 and 1.

    Attributes
    ----------
    accuracy : float
        The share of tokens with the right label.
    precision : float
        The share of right ones among all that were predicted: tokens, which makes it the accuracy, or chunks.
    recall : float
        The share of right ones among all gold ones.
    f1 : float
        Their harmonic mean.
    macro_f1 : float
        The mean of the rows' F1.
    sequence_accuracy : float
        The share of sequences without a wrong token.
    rows : tuple of Row
        The scores of every label, or of every kind of chunk.
    """

    accuracy: float
    precision: float
    recall: float
    f1: float
    macro_f1: float
    sequence_accuracy: float
    rows: tuple[Row, ...]

    def as_dict(self) -> dict[str, Any]:
        """Everything as numbers, texts, lists and dicts, ready for JSON."""
        return {**asdict(self), "rows": [asdict(row) for row in self.rows]}

    def __str__(self) -> str:
        return self.text()

    def text(self, position: str = "token", example: str = "sequence") -> str:
        """A table for people.

        Parameters
        ----------
        position, example : str
            What has a label, and what all of its labels belong to.
        """
        total = Row("all", self.precision, self.recall, self.f1, *_totals(self.rows))
        lines = [_cells(row) for row in self.rows] + [_cells(total)]
        table = _aligned([HEADER, *lines])
        shares = {f"{position}s": self.accuracy, f"{example}s": self.sequence_accuracy}
        right = ", ".join(f"{name} {share:.2%}" for name, share in shares.items())
        return "\n".join([*table, f"right: {right}; mean F1 of the rows {100 * self.macro_f1:.2f}"])


def tabulate(pairs: Pairs, labels: Iterable[Any], counts: np.ndarray) -> Scores:
    """Scores from counts.

    Parameters
    ----------
    pairs : Pairs
        The labels of all tokens.
    labels : iterable
        The labels or kinds.
    counts : array of int (3, labels)
        For each, how many are in both, how many were predicted, and how many gold ones there are.
    """
    each = zip(labels, counts.T.tolist(), strict=True)
    rows = tuple(Row(label, *_rates(right, said, gold), gold, said) for label, (right, said, gold) in each)
    macro_f1 = sum(row.f1 for row in rows) / max(1, len(rows))
    return Scores(pairs.accuracy, *_rates(*counts.sum(axis=1).tolist()), macro_f1, pairs.sequence_accuracy, rows)


def counted_rows(right: Counter[Any], predicted: Counter[Any], gold: Counter[Any]) -> list[Row]:
    """A row for every label that occurs, from counts of things with this label.

    Parameters
    ----------
    right, predicted, gold : Counter
        How many are in both, were predicted, and are in the gold data.
    """
    labels = sorted(set(predicted) | set(gold), key=str)
    return [
        Row(label, *_rates(right[label], predicted[label], gold[label]), gold[label], predicted[label])
        for label in labels
    ]


def rows_text(rows: Sequence[Row]) -> str:
    """Rows as a table for people.

    Parameters
    ----------
    rows : sequence of Row
        The rows.
    """
    return "\n".join(_aligned([HEADER, *map(_cells, rows)]))


def _rates(right: int, predicted: int, support: int) -> tuple[float, float, float]:
    """Precision, recall and F1."""
    return right / max(1, predicted), right / max(1, support), 2 * right / max(1, predicted + support)


def _totals(rows: tuple[Row, ...]) -> tuple[int, int]:
    return sum(row.support for row in rows), sum(row.predicted for row in rows)


def _cells(row: Row) -> list[str]:
    shares = [f"{100 * share:.2f}" for share in (row.precision, row.recall, row.f1)]
    return [str(row.label), *shares, str(row.support), str(row.predicted)]


def _aligned(table: list[list[str]]) -> list[str]:
    """Names to the left, numbers to the right."""
    first, *others = ([len(cell) for cell in column] for column in zip(*table, strict=True))
    widths = [max(first), *map(max, others)]
    return [
        "  ".join([name.ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells, widths[1:], strict=True))])
        for name, *cells in table
    ]
