"""Segmentations: sequences are cut into segments that have a label each (semi-Markov models).

A segment (begin, end, label), its end exclusive, has at most ``max_length`` positions. Segments follow one another
without a gap, and the score of an output is

    sum over segments of { segment score + node scores of its positions } + transitions between neighbouring segments
    + start of the first label + end of the last label

theta = (node (tokens, labels), transition (labels, labels), start (labels,), end (labels,), segment (spans, labels)).
A *span* is a stretch of a sequence that could be a segment; ``segments()`` lists them, a row of features each. Both
oracles cost O(length (max_length labels + labels^2)) per sequence, see ``oracles.semi_markov_soft``.

A labelling has one number per position: its label, plus ``labels`` where a segment begins. Label losses count wrong
positions. With segments of one position each this is ``Chain``, the segment scores being node scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from m3n.compiled.oracles import semi_markov, semi_markov_soft
from m3n.compiled.oracles.semi_markov_block import SemiMarkovSpace
from m3n.compiled.primitives.vector import LINE
from m3n.packed import SERIAL, Threads
from m3n.packed.ragged import mask, sums
from m3n.structures.base import Examples, Parts, Selection, Structure
from m3n.structures.labels import LabelStructure, Located
from m3n.structures.segments import Rules, Segments, bounds_of, log_counts
from m3n.structures.slack import Restriction


class SemiMarkov(LabelStructure):
    """Sequences cut into labelled segments.

    Parameters
    ----------
    lengths : sequence of int
        Length of every sequence, at least 1.
    labels : int
        Number of labels.
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
        lengths = np.asarray(lengths, dtype=np.int64)
        if lengths.ndim != 1 or lengths.size == 0 or labels < 1:
            raise ValueError("SemiMarkov needs at least one sequence and one label")
        if lengths.min() < 1:
            raise ValueError(f"sequence {int(lengths.argmin())} is empty; leave empty sequences out")
        self.n = lengths.size
        self.labels = labels
        self.lengths = lengths
        self.bounds = bounds_of(max_length, labels)
        self.masks = (
            mask(forbidden, (labels, labels), "forbidden"),
            mask(forbidden_start, (labels,), "forbidden_start"),
            mask(forbidden_end, (labels,), "forbidden_end"),
        )
        self.rules = Rules(self.bounds, *self.masks)
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])
        self.cuts = np.concatenate([[0], np.cumsum(self._count(lengths))])  # (n + 1,) first span of a sequence
        tokens, spans = int(self.offsets[-1]), int(self.cuts[-1])
        self.shapes = ((tokens, labels), (labels, labels), (labels,), (labels,), (spans, labels))

    def segments(self) -> np.ndarray:
        """Every span as (sequence, begin, length), in the order of the rows of the last array of theta: (spans, 3)."""
        sequence = np.repeat(np.arange(self.n), self.lengths)
        begin = np.arange(len(sequence)) - np.repeat(self.offsets[:-1], self.lengths)
        sizes = np.minimum(self.bounds.max(), self.lengths[sequence] - begin)
        first = np.repeat(np.cumsum(sizes) - sizes, sizes)
        size = np.arange(int(self.cuts[-1])) - first + 1
        return np.stack([np.repeat(sequence, sizes), np.repeat(begin, sizes), size], axis=1)

    def hard(self, theta: Parts, threads: Threads = SERIAL) -> tuple[np.ndarray, np.ndarray]:
        scores = self._scores(theta)
        values, labelling = np.empty(self.n), np.empty(len(theta[0]), np.int64)

        def lane(low: int, high: int) -> None:
            sequences, (table, *_), (running, *_), _ = self._scratch(low, high)
            totals = np.empty(int(np.diff(self.cuts[low : high + 1]).max()) * self.labels)
            layout = self.offsets, self.cuts, self.bounds, low, high
            semi_markov.hard(*scores, *layout, values, labelling, totals, sequences, table, running)

        threads.run(lane, threads.lanes(self.cuts))
        return values, labelling

    def soft(
        self, theta: Parts, mu: float, threads: Threads = SERIAL, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, Parts]:
        weights = np.ones(self.n) if weights is None else weights
        scores = self._scores(theta)
        values = np.empty(self.n)

        def lane(low: int, high: int) -> Parts:
            shared = np.zeros((self.labels, self.labels)), np.zeros(self.labels), np.zeros(self.labels)
            layout = self.offsets, self.cuts, self.bounds, low, high
            semi_markov_soft.soft(*scores, *layout, mu, weights, values, *shared, *self._scratch(low, high))
            return shared

        parts = threads.run(lane, threads.lanes(self.cuts))
        for array, pieces in zip(theta[1:4], zip(*parts, strict=True), strict=True):
            array[:] = np.sum(pieces, axis=0)
        return values, theta

    def log_size(self) -> np.ndarray:
        if not any(mask.any() for mask in self.masks):
            return log_counts(int(self.lengths.max()), self.bounds)[self.lengths]
        lengths, where = np.unique(self.lengths, return_inverse=True)
        alone = SemiMarkov(lengths, self.labels, self.bounds, **self._forbidden())
        return alone.soft(tuple(np.zeros(shape) for shape in alone.shapes), 1.0)[0][where]

    def radius(self, norms: Parts) -> float:
        # Positions, transitions and ends as in Chain. Segments of gold and of y may share labels but not spans: the
        # triangle inequality, with the segmentation that has the largest sum of norms.
        squares = sums(norms[0], self.offsets[:-1], self.lengths) ** 2
        for table, number in zip(norms[1:4], (self.lengths - 1, 1, 1), strict=True):
            squares += (number * table.max()) ** 2
        single = SemiMarkov(self.lengths, 1, int(self.bounds.max()))
        zero = (np.zeros(shape) for shape in single.shapes[:4])
        segments, _ = single.hard((*zero, np.ascontiguousarray(norms[4]).reshape(-1, 1)))
        return float(np.sqrt((2.0 * squares + 4.0 * segments**2).max()))

    def pack(self, outputs: Sequence[Any] | np.ndarray) -> np.ndarray:
        """Check segments given as (begin, end, label), one list per sequence, and join them to one labelling."""
        if len(outputs) != self.n:
            raise ValueError(f"{self.n} sequences but {len(outputs)} lists of segments")
        lengths = self.lengths.tolist()
        return np.concatenate([self.rules.pack(y, lengths[i], i) for i, y in enumerate(outputs)])

    def unpack(self, labelling: np.ndarray) -> list[Any]:
        """One list of segments (begin, end, label) per sequence."""
        segments = self._segments_of(labelling)
        triples = np.stack([segments.begin, segments.begin + segments.size, segments.label], axis=1).tolist()
        ends = np.cumsum(np.bincount(segments.sequence, minlength=self.n)).tolist()
        return [[tuple(t) for t in triples[a:b]] for a, b in zip([0, *ends], ends, strict=False)]

    def labels_of(self, labelling: np.ndarray) -> np.ndarray:
        return labelling % self.labels

    def branches(self, one: np.ndarray, other: np.ndarray) -> list[Restriction]:
        by_labels = super().branches(one, other)
        changed = np.flatnonzero(one != other)
        if by_labels or changed.size == 0:
            return by_labels
        # the same labels, cut differently: with or without the segment of ``one`` at the first place where they differ
        _, begins, sizes, labels = self._segments_of(one)
        k = int(np.searchsorted(begins, changed[0], side="left")) - 1
        begin, end = begins[k], begins[k] + sizes[k]
        _, first, size = self.segments().T
        without = ((first == begin) & (size == sizes[k]))[:, None] & (np.arange(self.labels) == labels[k])
        only = ((first < end) & (first + size > begin))[:, None] & ~without
        return [Restriction(4, without), Restriction(4, only)]

    def select(self, examples: Examples) -> tuple[Structure, tuple[Selection, ...]]:
        part = SemiMarkov(self.lengths[examples], self.labels, self.bounds, **self._forbidden())
        return part, self.rows_of(examples)

    def enumerate(self, example: int) -> Iterator[np.ndarray]:
        return self.rules.outputs(int(self.lengths[example]))

    def spans(self) -> tuple[np.ndarray | None, ...]:
        return self.offsets, None, None, None, self.cuts

    def most_parts(self) -> np.ndarray:
        return 3 * self.lengths + 1

    def space(self) -> SemiMarkovSpace:
        forbidden = (np.where(mask, -np.inf, 0.0) for mask in self.masks)
        return SemiMarkovSpace(self.lengths, self.bounds, int(np.diff(self.cuts).max()), *forbidden)

    def _count(self, lengths: np.ndarray) -> np.ndarray:
        """Number of spans of sequences of some lengths."""
        short = np.minimum(lengths, self.bounds.max())
        return short * lengths - short * (short - 1) // 2

    def _forbidden(self) -> dict[str, Any]:
        return dict(zip(("forbidden", "forbidden_start", "forbidden_end"), self.masks, strict=True))

    def _scores(self, theta: Parts) -> Parts:
        """theta with -inf where the structure forbids, in arrays that ``soft`` may not write to (but node, segment)."""
        node, *shared, segment = theta
        forbid = [np.where(mask, -np.inf, array) for mask, array in zip(self.masks, shared, strict=True)]
        return node, *forbid, segment

    def _scratch(self, low: int, high: int) -> Parts:
        """What the kernels need; rows are padded for vector instructions."""
        longest, s = int(self.lengths[low:high].max()) + 1, -(-self.labels // LINE) * LINE
        return np.zeros((5, longest, s)), np.zeros((3, s, s)), np.zeros((4, s)), np.zeros(longest)

    def _segments_of(self, labelling: np.ndarray) -> Segments:
        first = np.flatnonzero(labelling >= self.labels)
        size = np.diff(np.append(first, len(labelling)))
        sequence = np.searchsorted(self.offsets, first, side="right") - 1
        begin = first - self.offsets[sequence]
        return Segments(sequence, begin, size, labelling[first] - self.labels)

    def located(self, packed: np.ndarray) -> list[Located]:
        s, everyone = self.labels, np.arange(self.n)
        own, (sequence, begin, size, label) = packed % s, self._segments_of(packed)
        span = self.cuts[sequence + 1] - self._count(self.lengths[sequence] - begin) + size - 1
        inner = np.flatnonzero(begin > 0)
        return [
            (np.arange(len(own)) * s + own, np.repeat(everyone, self.lengths)),
            (label[inner - 1] * s + label[inner], sequence[inner]),
            (own[self.offsets[:-1]], everyone),
            (own[self.offsets[1:] - 1], everyone),
            (span * s + label, sequence),
        ]
