"""Outputs with one label per row of the first array of theta, packed as these labels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from m3n.packed.ragged import numbers, ranges
from m3n.structures.base import Examples, Selected, Selection, Structure, Words

Located = tuple[np.ndarray, np.ndarray]  # flat positions in an array of theta, and the examples that own them


class LabelStructure(Structure):
    """A structure that keeps packed outputs as one label per row of the first array of theta.

    If theta has further arrays it has to define ``located`` for that layout.
    """

    one_label_per_row: ClassVar[bool] = True

    def pack(self, outputs: Sequence[Any] | np.ndarray) -> np.ndarray:
        """Check labels, one per row, and join them to one array; one with rules of its own checks these, too."""
        return join_labels(outputs, np.diff(self._first_rows()), self.shapes[0][1], self.words)

    def unpack(self, packed: np.ndarray) -> list[Any]:
        """One list of labels per example."""
        return cut_labels(packed, self._first_rows())

    def select(self, examples: Examples) -> tuple[Structure, tuple[Selection, ...]]:
        return SelectedLabels(self, np.arange(self.n)[examples]), self.rows_of(examples)

    def entries_of(self, examples: Examples) -> Selection:
        first, chosen = self._first_rows(), np.arange(self.n)[examples]
        return ranges(first[chosen], np.diff(first)[chosen])

    def labels_of(self, packed: np.ndarray) -> np.ndarray:
        return packed

    def located(self, packed: np.ndarray) -> list[Located]:
        """The parts of packed outputs in every array of theta; the default has nothing but the labels of rows."""
        rows, labels = self.shapes[0]
        return [(np.arange(rows) * labels + packed, np.repeat(np.arange(self.n), np.diff(self._first_rows())))]

    def _from_lists(self, lists: np.ndarray) -> np.ndarray:
        lists -= self._row_parts
        return lists

    @cached_property
    def _room(self) -> np.ndarray:
        return self._first_rows()  # the parts of rows come first, and the others follow from them

    @cached_property
    def _row_parts(self) -> np.ndarray:
        """The first part of every row."""
        return row_parts(np.diff(self._first_rows()), self.shapes[0][1])

    def local_parts(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pairs = zip(self.located(packed), self.layout.before, self.layout.first, strict=True)
        found = [(places + (before - first)[owner], owner) for (places, owner), before, first in pairs]
        parts, owner = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        order = np.lexsort((parts, owner))
        counts = np.bincount(owner, minlength=self.n)
        place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.zeros((self.n, int(self.most_parts().max())), np.int64)
        rows[owner[order], place] = parts[order]
        return rows, counts

    def _first_rows(self) -> np.ndarray:
        first = self.spans()[0]
        assert first is not None, "the first array of theta has rows for every example"
        return first


class SelectedLabels(Selected, LabelStructure):
    """Some examples of a structure with one label per row; one with further arrays selects by itself."""


def row_parts(rows: np.ndarray, labels: int) -> np.ndarray:
    """The first part of every row of examples that have so many rows."""
    return labels * numbers(np.zeros_like(rows), rows)


def check_labels(values: np.ndarray, labels: int, where: str) -> np.ndarray:
    """Return label numbers as int64, or say which one is out of range."""
    values = np.asarray(values)
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise ValueError(f"{where}: labels must be a flat list of integers 0..{labels - 1}, got {values!r}")
    bad = np.flatnonzero((values < 0) | (values >= labels))
    if bad.size:
        raise ValueError(f"{where}, position {bad[0]}: label {values[bad[0]]} is not in 0..{labels - 1}")
    return values.astype(np.int64)


def join_labels(outputs: Sequence[Any] | np.ndarray, lengths: np.ndarray, labels: int, words: Words) -> np.ndarray:
    """The labels of all examples, one after another, after checking how many they are and that they exist."""
    if len(outputs) != len(lengths):
        raise ValueError(f"{len(lengths)} {words.example}s but {len(outputs)} {words.outputs}")
    for i, (output, length) in enumerate(zip(outputs, lengths, strict=True)):
        if len(output) != length:
            raise ValueError(f"{words.example} {i} has {length} {words.positions} but {len(output)} labels")
    return np.concatenate([check_labels(np.asarray(y), labels, f"{words.example} {i}") for i, y in enumerate(outputs)])


def cut_labels(labelling: np.ndarray, offsets: np.ndarray) -> list[Any]:
    """One list of labels per example."""
    labels = labelling.tolist()
    return [labels[a:b] for a, b in itertools.pairwise(offsets.tolist())]
