"""What is to be known about the labels of all sequences: which there are, how often, and which follow one another.

Labels get numbers in the order in which they appear, and are sorted at the end. Of every pair of neighbouring labels,
and of every first and last label of a sequence, the place where it stood first is kept: constraints that forbid it can
name it, although nobody has read the data again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from m3n.shards.arrays import Arrays

SHIFT = 32  # a pair of labels is one number
NOWHERE = -1
MOST = 20_000  # labels: a table of their pairs has 6 GB then


class Transitions(NamedTuple):
    """Where labels of sequences stood first: number of the sequence in the input, and position; -1 for nowhere.

    Attributes
    ----------
    pairs : array of int (labels, labels, 2)
        A label and the one after it: where the second one stood.
    starts : array of int (labels, 2)
        First labels.
    ends : array of int (labels, 2)
        Last labels.
    """

    pairs: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, arrays: Arrays) -> Transitions:
        """From the arrays of a file."""
        return cls(*(arrays[f"first_{name}"] for name in cls._fields))

    def arrays(self) -> Arrays:
        """As arrays of a file."""
        return {f"first_{name}": table for name, table in self._asdict().items()}


class GrowingLabels:
    """Labels that come block by block."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._counts = array("q")
        self._places: tuple[dict[int, tuple[int, int]], ...] = ({}, {}, {})  # of pairs, starts and ends

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, labels: list[Any], lengths: np.ndarray, which: np.ndarray) -> np.ndarray:
        """The numbers (int32) of the labels of some sequences.

        Parameters
        ----------
        labels : list
            Of all positions.
        lengths : array of int (sequences,)
            Positions of every sequence; none is 0.
        which : array of int (sequences,)
            The number of every sequence in the input.
        """
        codes = self._codes(labels, lengths, which)
        for code, count in enumerate(np.bincount(codes, minlength=len(self)).tolist()):
            self._counts[code] += count
        ends = np.cumsum(lengths)
        begins = ends - lengths
        inner = np.ones(len(codes), bool)
        inner[begins] = False
        seconds = np.flatnonzero(inner)
        pairs = codes[seconds - 1].astype(np.int64) << SHIFT | codes[seconds]
        for known, keys, places in zip(
            self._places, (pairs, codes[begins], codes[ends - 1]), (seconds, begins, ends - 1), strict=True
        ):
            found, first = np.unique(keys, return_index=True)
            for key, place in zip(found.tolist(), places[first].tolist(), strict=True):
                if key not in known:
                    known[key] = _place(place, ends, which)
        return codes

    def _codes(self, labels: list[Any], lengths: np.ndarray, which: np.ndarray) -> np.ndarray:
        for label in dict.fromkeys(labels):
            if label not in self._numbers:
                self._check(label, lambda: _place(labels.index(label), np.cumsum(lengths), which))  # noqa: B023
                self._numbers[label] = len(self)
                self._counts.append(0)
        return np.fromiter(map(self._numbers.__getitem__, labels), np.int32, len(labels))

    def _check(self, label: Any, place: Callable[[], tuple[int, int]]) -> None:
        """Refuse a label that is not of the kind of the others, or one too many."""
        known = next(iter(self._numbers), label)
        if isinstance(label, str) != isinstance(known, str):
            i, t = place()
            raise ValueError(
                f"sequence {i}, position {t}: labels must be all strings or all numbers; found {label!r} after "
                f"{known!r}"
            )
        if len(self) == MOST:
            raise ValueError(f"there are more than {MOST:,} different labels: these look like words or numbers")

    def settled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, Transitions]:
        """The sorted labels, how often each occurs, the place of every number among them, and where they stood."""
        found = list(self._numbers)
        order = sorted(range(len(found)), key=found.__getitem__)
        rank = np.empty(len(found), np.int32)
        rank[order] = np.arange(len(found))
        classes = np.array([found[k] for k in order])
        counts = np.array(self._counts, np.int64)[order]
        pairs = np.full((len(found), len(found), 2), NOWHERE, np.int64)
        for key, place in self._places[0].items():
            pairs[rank[key >> SHIFT], rank[key & (1 << SHIFT) - 1]] = place
        tables = [np.full((len(found), 2), NOWHERE, np.int64) for _ in range(2)]
        for table, known in zip(tables, self._places[1:], strict=True):
            for key, place in known.items():
                table[rank[key]] = place
        return classes, counts, rank, Transitions(pairs, *tables)


def _place(position: int, ends: np.ndarray, which: np.ndarray) -> tuple[int, int]:
    """Sequence of the input and position of one of the positions of a block."""
    i = int(np.searchsorted(ends, position, side="right"))
    return int(which[i]), int(position - (ends[i - 1] if i else 0))


def joint_labels(labels: np.ndarray, lengths: np.ndarray, count: int) -> np.ndarray:
    """Label and next label as one number, for all neighbouring positions.

    Parameters
    ----------
    labels : array of int (positions,)
        The labels of all sequences.
    lengths : array of int (sequences,)
        Positions of every sequence; none is 0.
    count : int
        How many labels there are.
    """
    inner = np.ones(len(labels), bool)
    inner[np.cumsum(lengths) - lengths] = False
    seconds = np.flatnonzero(inner)
    return labels[seconds - 1].astype(np.int64) * count + labels[seconds]
