"""Segmentations: sequences are cut into segments that have a label each (semi-Markov models).

A segment (begin, end, label), its end exclusive, has at most ``max_length`` positions. Segments follow one another
without a gap, and the score of an output is

    sum over segments of { segment score + node scores of its positions } + transitions between neighbouring segments
    + start of the first label + end of the last label

theta = (node (tokens, labels), transition (labels, labels), start (labels,), end (labels,), segment (spans, labels)).
A *span* is a stretch of a sequence that could be a segment; ``segments()`` lists them, a row of features each. Both
oracles cost O(length (max_length labels + labels^2)) per sequence, see ``oracles.semi_markov``.

Label losses count wrong positions. With segments of one position each this is ``Chain``, the segment scores being node
scores.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from m3n.compiled.oracles.semi_markov import SemiMarkovSpace, count, place
from m3n.packed.ragged import numbers
from m3n.structures.base import Parts
from m3n.structures.labels import Words, row_parts
from m3n.structures.sequences import Forbidden, Sequences
from m3n.structures.slack import Restriction


class SemiMarkov(Sequences):
    """Sequences cut into labelled segments.

    Parameters
    ----------
    lengths, labels : sequence of int, int
        Length of every sequence, at least 1, and number of labels, as in ``Chain``.
    max_length : int or sequence of int (labels,)
        Most positions of a segment, for all labels or for each of them.
    forbidden : array of bool (labels, labels), optional
        ``forbidden[i, j]``: a segment of label j never follows one of label i. Without it neighbours may be alike.
    forbidden_start, forbidden_end : array of bool (labels,), optional
        Labels that the first, or the last, segment never has.

    Examples
    --------
    >>> from m3n.structures import SemiMarkov
    >>> structure = SemiMarkov([3], labels=2, max_length=[1, 2])
    >>> structure.segments().tolist()  # sequence, begin, length
    [[0, 0, 1], [0, 0, 2], [0, 1, 1], [0, 1, 2], [0, 2, 1]]
    >>> structure.unpack(structure.pack([[(0, 1, 0), (1, 3, 1)]]))
    [[(0, 1, 0), (1, 3, 1)]]
    """

    oracles: ClassVar[frozenset[str]] = frozenset({"hard", "soft", "support"})
    one_label_per_row: ClassVar[bool] = True
    words: ClassVar[Words] = Words(outputs="lists of segments")

    def __init__(
        self,
        lengths: Sequence[int] | np.ndarray,
        labels: int,
        max_length: int | Sequence[int] | np.ndarray,
        *,
        forbidden: np.ndarray | None = None,
        forbidden_start: np.ndarray | None = None,
        forbidden_end: np.ndarray | None = None,
    ):
        self._measure(lengths, labels)
        masks = {"forbidden": forbidden, "forbidden_start": forbidden_start, "forbidden_end": forbidden_end}
        self.masks, self.bounds = Forbidden.checked(labels, **masks), _bounds(max_length, labels)
        counts = count.py_func(self.lengths, self.bounds.max())
        self.cuts = np.concatenate([[0], np.cumsum(counts)])  # (n + 1,) first span of a sequence
        tokens, spans = int(self.offsets[-1]), int(self.cuts[-1])
        self.shapes = ((tokens, labels), (labels, labels), (labels,), (labels,), (spans, labels))

    def spans(self) -> tuple[np.ndarray | None, ...]:
        return self.offsets, None, None, None, self.cuts

    def segments(self) -> np.ndarray:
        """Every span as (sequence, begin, length), in the order of the rows of the last array of theta: (spans, 3)."""
        sequence = np.repeat(np.arange(self.n), self.lengths)
        begin = np.arange(len(sequence)) - np.repeat(self.offsets[:-1], self.lengths)
        sizes = np.minimum(self.bounds.max(), self.lengths[sequence] - begin)
        first = np.repeat(np.cumsum(sizes) - sizes, sizes)
        size = np.arange(int(self.cuts[-1])) - first + 1
        return np.stack([np.repeat(sequence, sizes), np.repeat(begin, sizes), size], axis=1)

    def parts_of(self, output: Sequence[Any], example: int) -> list[int]:
        length, s, most = int(self.lengths[example]), self.labels, int(self.bounds.max())
        self._check(output, length, example)
        pairs = length * s  # the first part of transitions, then of starts, ends, segments
        starts, ends, segments = pairs + s * s, pairs + s * s + s, pairs + s * s + 2 * s
        parts = [t * s + label for begin, end, label in output for t in range(begin, end)]
        parts += [pairs + a * s + b for (*_, a), (*_, b) in itertools.pairwise(output)]
        parts += [starts + output[0][2], ends + output[-1][2]]
        return parts + [segments + place(length, most, b, e - b) * s + label for b, e, label in output]

    def unpack(self, packed: np.ndarray) -> list[Any]:
        """One list of segments (begin, end, label) per sequence."""
        places, owner = self.located(packed)[4]
        _, begin, size = self.segments()[places // self.labels].T
        triples = list(zip(begin.tolist(), (begin + size).tolist(), (places % self.labels).tolist(), strict=True))
        ends = np.cumsum(np.bincount(owner, minlength=self.n)).tolist()
        return [triples[a:b] for a, b in zip([0, *ends], ends, strict=False)]

    def enumerate(self, example: int) -> Iterator[np.ndarray]:
        alone = self._alike(self.lengths[[example]])
        return (alone.pack([output]) for output in self._outputs(int(self.lengths[example])))

    def labels_of(self, packed: np.ndarray) -> np.ndarray:
        return packed[numbers(self._room[:-1], self.lengths)] - row_parts(self.lengths, self.labels)

    def most_parts(self) -> np.ndarray:
        return 3 * self.lengths + 1

    def branches(self, one: np.ndarray, other: np.ndarray) -> list[Restriction]:
        by_labels, different = super().branches(one, other), np.setdiff1d(one, other)
        if by_labels or not different.size:
            return by_labels
        # the same labels, cut differently: with or without the last segment that only ``one`` has
        span, label = divmod(int(different[-1] - self.layout.before[4, 0]), self.labels)
        _, begin, size = self.segments().T
        without, end = np.zeros(self.shapes[4], bool), begin + size
        without[span, label] = True
        only = ((begin < end[span]) & (end > begin[span]))[:, None] & ~without
        return [Restriction(4, without), Restriction(4, only)]

    def radius(self, norms: Parts) -> float:
        # Segments of gold and of y may share labels but not spans: the triangle inequality, with the segmentation that
        # has the largest sum of norms.
        single = SemiMarkov(self.lengths, 1, int(self.bounds.max()))
        zero = (np.zeros(shape) for shape in single.shapes[:4])
        segments, _ = single.hard((*zero, np.ascontiguousarray(norms[4]).reshape(-1, 1)))
        return float(np.sqrt((2.0 * self._squares(norms) + 4.0 * segments**2).max()))

    def space(self) -> SemiMarkovSpace:
        return SemiMarkovSpace(self.lengths, self.labels, self.bounds, *self.masks.penalties())

    def _alike(self, lengths: np.ndarray) -> SemiMarkov:
        return SemiMarkov(lengths, self.labels, self.bounds, **self.masks.arguments)

    def _check(self, segments: Sequence[Any], length: int, i: int) -> None:
        """Say what is wrong with the segments of sequence i, if something is."""
        at, before = 0, -1
        for k, segment in enumerate(segments):
            wrong = self._wrong(segment, at, before, length)
            if wrong:
                raise ValueError(f"sequence {i}, segment {k} {tuple(segment)}{wrong}")
            _, at, before = segment
        if at < length:
            raise ValueError(f"sequence {i} has {length} positions, but its segments end at {at}")
        if self.masks.end[before]:
            raise ValueError(f"sequence {i} ends with label {before}, which is a forbidden end")

    def _outputs(self, length: int, begin: int = 0, before: int = -1) -> Iterator[list[tuple[int, int, int]]]:
        """Every way to go on from a position, after a segment of label ``before``."""
        if begin == length:
            if not self.masks.end[before]:
                yield []
            return
        for label, bound in enumerate(self.bounds.tolist()):
            if not self._barred(label, before):
                for end in range(begin + 1, min(begin + bound, length) + 1):
                    for tail in self._outputs(length, end, label):
                        yield [(begin, end, label), *tail]

    def _barred(self, label: int, before: int) -> bool:
        return bool(self.masks.start[label] if before < 0 else self.masks.pairs[before, label])

    def _wrong(self, segment: Any, at: int, before: int, length: int) -> str:
        """What is wrong with a segment that follows one of label ``before``, which ends at ``at``; empty: nothing."""
        begin, end, label = segment
        if begin != at or not begin < end <= length:
            return (
                f": segments must cover positions 0..{length - 1} without gaps or overlaps, so this one begins at {at} "
                f"and ends at {at + 1} to {length} (the end is exclusive)"
            )
        if not 0 <= label < self.labels:
            return f": the label is not in 0..{self.labels - 1}"
        if end - begin > self.bounds[label]:
            return (
                f" has {end - begin} positions, but segments of label {label} have at most {self.bounds[label]}; "
                "raise max_length, or cut the segment"
            )
        if self._barred(label, before):
            return " is a forbidden start" if before < 0 else f" must not follow label {before}"
        return ""


def _bounds(max_length: int | Sequence[int] | np.ndarray, labels: int) -> np.ndarray:
    """The longest segment of every label, (labels,)."""
    bounds = np.asarray(max_length)
    if bounds.dtype.kind not in "iu" or bounds.shape not in ((), (labels,)):
        raise ValueError(f"max_length must be a whole number, or one per label ({labels}), got {max_length!r}")
    bounds = np.full(labels, bounds, dtype=np.int64)  # a copy of its own: one type for compiled code
    if bounds.min() < 1:
        raise ValueError(f"max_length of label {int(bounds.argmin())} is {bounds.min()}, but must be at least 1")
    return bounds
