"""Segments: what they must obey, and how many outputs there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from m3n.structures.sequences import Forbidden


class Rules(NamedTuple):
    """What segments and their neighbours must obey."""

    bounds: np.ndarray  # (labels,) the longest segment of every label
    forbidden: Forbidden

    def check(self, segments: Sequence[Any], length: int, i: int) -> None:
        """Say what is wrong with the segments of sequence i, if something is."""
        at, before = 0, -1
        for k, segment in enumerate(segments):
            wrong = self._wrong(segment, at, before, length)
            if wrong:
                raise ValueError(f"sequence {i}, segment {k} {tuple(segment)}{wrong}")
            _, at, before = segment
        if at < length:
            raise ValueError(f"sequence {i} has {length} positions, but its segments end at {at}")
        if self.forbidden.end[before]:
            raise ValueError(f"sequence {i} ends with label {before}, which is a forbidden end")

    def outputs(self, length: int, begin: int = 0, before: int = -1) -> Iterator[list[tuple[int, int, int]]]:
        """Every way to go on from a position, after a segment of label ``before``."""
        if begin == length:
            if not self.forbidden.end[before]:
                yield []
            return
        for label, bound in enumerate(self.bounds.tolist()):
            if not self._barred(label, before):
                for end in range(begin + 1, min(begin + bound, length) + 1):
                    for tail in self.outputs(length, end, label):
                        yield [(begin, end, label), *tail]

    def _barred(self, label: int, before: int) -> bool:
        return bool(self.forbidden.start[label] if before < 0 else self.forbidden.pairs[before, label])

    def _wrong(self, segment: Any, at: int, before: int, length: int) -> str:
        """What is wrong with a segment that follows one of label ``before``, which ends at ``at``; empty: nothing."""
        begin, end, label = segment
        if begin != at or not begin < end <= length:
            return (
                f": segments must cover positions 0..{length - 1} without gaps or overlaps, so this one begins at {at} "
                f"and ends at {at + 1} to {length} (the end is exclusive)"
            )
        if not 0 <= label < len(self.bounds):
            return f": the label is not in 0..{len(self.bounds) - 1}"
        if end - begin > self.bounds[label]:
            return (
                f" has {end - begin} positions, but segments of label {label} have at most {self.bounds[label]}; "
                "raise max_length, or cut the segment"
            )
        if self._barred(label, before):
            return " is a forbidden start" if before < 0 else f" must not follow label {before}"
        return ""


def bounds_of(max_length: int | Sequence[int] | np.ndarray, labels: int) -> np.ndarray:
    """The longest segment of every label, (labels,)."""
    bounds = np.asarray(max_length)
    if bounds.dtype.kind not in "iu" or bounds.shape not in ((), (labels,)):
        raise ValueError(f"max_length must be a whole number, or one per label ({labels}), got {max_length!r}")
    bounds = np.ascontiguousarray(np.broadcast_to(bounds, labels), dtype=np.int64)
    if bounds.min() < 1:
        raise ValueError(f"max_length of label {int(bounds.argmin())} is {bounds.min()}, but must be at least 1")
    return bounds


def log_counts(longest: int, bounds: np.ndarray) -> np.ndarray:
    """log N(t), the number of outputs of t positions, for t = 0..longest: N(t) = sum_d labels(bound >= d) N(t - d)."""
    choices = np.log([np.count_nonzero(bounds >= d) for d in range(1, int(bounds.max()) + 1)])
    counts = np.zeros(longest + 1)
    for t in range(1, longest + 1):
        sizes = min(t, len(choices))
        counts[t] = np.logaddexp.reduce(choices[:sizes] + counts[t - sizes : t][::-1])
    return counts
