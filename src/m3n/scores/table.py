"""Scores and their table.

With ``right`` the number of things that are in both the gold labels and the predicted ones,

    precision = right / predicted,   recall = right / support,   f1 = 2 right / (predicted + support),

and 0 where nothing could be counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from m3n.scores.pairs import Pairs


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
        table = _aligned([["", "precision", "recall", "F1", "gold", "predicted"], *lines])
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
