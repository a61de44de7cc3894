"""Segments of sequences as users write them: triples (begin, end, label), or IOB labels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from m3n.estimators.sequences import comes_once

Segment = tuple[int, int, Any]  # begin, end (exclusive), label


def from_iob(labels: Sequence[str]) -> list[Segment]:
    """The segments that IOB labels stand for: "B-X" begins one of label X, "I-X" goes on with it, "O" is outside.

    An "I-X" that follows nothing of its kind begins a segment, too.

    Parameters
    ----------
    labels : sequence of str
        One label per position.
    """
    found: list[Segment] = []
    begin, kind = 0, None
    for t, label in enumerate([*labels, "O"]):
        mark, _, name = label.partition("-")
        if kind is not None and not (mark == "I" and name == kind):
            found.append((begin, t, kind))
            kind = None
        if mark in ("B", "I") and kind is None and name:
            begin, kind = t, name
    return found


def to_iob(segments: Sequence[Segment], length: int) -> list[str]:
    """IOB labels of segments.

    Parameters
    ----------
    segments : sequence of (begin, end, label)
        Segments that do not overlap.
    length : int
        Number of positions.
    """
    labels = ["O"] * length
    for begin, end, label in segments:
        labels[begin:end] = [f"B-{label}", *[f"I-{label}"] * (end - begin - 1)]
    return labels


def read_segments(y: Any, lengths: np.ndarray) -> list[list[Segment]]:
    """Segments of every sequence, sorted and checked: within it, not empty, without overlaps."""
    y = list(y) if comes_once(y) else y
    if len(y) != len(lengths):
        raise ValueError(f"X has {len(lengths)} sequences but y has {len(y)}")
    return [_checked(given, i, int(lengths[i])) for i, given in enumerate(y)]


def _checked(given: Any, i: int, length: int) -> list[Segment]:
    given = list(given)
    if given and all(isinstance(label, str) for label in given):
        if len(given) != length:
            raise ValueError(f"sequence {i} has {length} positions in X but {len(given)} labels in y")
        return from_iob(given)
    segments = []
    for segment in given:
        if not (isinstance(segment, (tuple, list)) and len(segment) == 3):
            raise ValueError(f"sequence {i}: a segment is (begin, end, label), got {segment!r:.60}")
        begin, end, label = segment
        if not 0 <= begin < end <= length:
            raise ValueError(f"sequence {i}: segment {tuple(segment)!r} is not within its {length} positions")
        segments.append((int(begin), int(end), label))
    segments.sort(key=lambda segment: segment[0])
    for before, after in itertools.pairwise(segments):
        if before[1] > after[0]:
            raise ValueError(f"sequence {i}: segments {before!r} and {after!r} overlap")
    return segments


def filled(segments: list[Segment], length: int, outside: Any) -> list[Segment]:
    """The segments with single positions of the label ``outside`` wherever there are none."""
    found, at = [], 0
    for segment in [*segments, (length, length, None)]:
        found += [(t, t + 1, outside) for t in range(at, segment[0])]
        if segment[1] > segment[0]:
            found.append(segment)
        at = segment[1]
    return found
