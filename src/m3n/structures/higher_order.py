"""Label sequences whose scores look back further than one label: chains of order 2, 3 and so on.

theta = (node (tokens, labels), transition (labels, labels), start (labels,), end (labels,), and for k = 2..order one
table (grams,) of the scores of k + 1 labels in a row). All grams of a sequence count:

    score(y) = start(y_1) + end(y_L) + sum_t node_t(y_t) + sum_{k=1..order} sum_{t>k} table_k(y_{t-k}, .., y_t)

Tables of longer grams are flat: one number for each gram that can occur, in the order of their labels. ``grams`` lists
them and ``gram_number`` finds one.

*Sparse histories*: with ``histories`` a labelling is allowed only if every ``order`` labels in a row are one of these.
The tables then shrink to what can occur, and so does the cost of both oracles: O(length steps), where a step is a pair
of histories that may follow one another (labels^(order+1) if all are allowed). Order 1 is ``Chain``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from m3n.compiled.oracles import higher_order as kernels
from m3n.compiled.oracles.higher_order_block import HigherOrderSpace
from m3n.compiled.oracles.higher_order_soft import soft
from m3n.packed import SERIAL, Threads
from m3n.packed.ragged import sums
from m3n.structures.base import Examples, Parts, Selection, Structure
from m3n.structures.histories import Histories
from m3n.structures.labels import LabelStructure, Located, Words, cut_labels, join_labels


class HigherOrderChain(LabelStructure):
    """Sequences of labels with scores of several labels in a row.

    Parameters
    ----------
    lengths : sequence of int
        Length of every sequence, at least 1.
    labels : int
        Number of labels.
    order : int
        How many labels a score looks back, at least 1.
    histories : sequence of tuples of int, optional
        Which ``order`` labels in a row may occur, such as ``HigherOrderChain.observed`` finds them; a shorter tuple
        allows the beginning of a sequence, and with it a sequence of this length. None: all.

    Examples
    --------
    >>> from m3n.structures import HigherOrderChain
    >>> seen = HigherOrderChain.observed([[0, 1, 1], [1, 0]], order=2)
    >>> seen
    [(0, 1), (1, 0), (1, 1)]
    >>> chain = HigherOrderChain([3, 2], labels=2, order=2, histories=seen)
    >>> chain.grams(2).tolist()
    [[0, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 1]]
    >>> chain.gram_number((1, 0, 1))
    2
    """

    oracles: ClassVar[frozenset[str]] = frozenset({"hard", "soft", "support"})

    def __init__(
        self,
        lengths: Sequence[int] | np.ndarray,
        labels: int,
        order: int,
        *,
        histories: Iterable[Sequence[int]] | None = None,
    ):
        lengths = np.asarray(lengths, dtype=np.int64)
        if lengths.ndim != 1 or lengths.size == 0 or labels < 1 or order < 1:
            raise ValueError("HigherOrderChain needs at least one sequence, one label and an order of 1")
        self._set(lengths, Histories(labels, order, histories))

    def _set(self, lengths: np.ndarray, histories: Histories) -> None:
        if lengths.min() < 1:
            raise ValueError(f"sequence {int(lengths.argmin())} is empty; leave empty sequences out")
        self.n, self.lengths, self.histories = lengths.size, lengths, histories
        self.labels, self.order, self.machine = histories.labels, histories.order, histories.machine
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])
        s, longer = self.labels, tuple((len(table),) for table in histories.tables)
        self.shapes = ((int(self.offsets[-1]), s), (s, s), (s,), (s,), *longer)

    @staticmethod
    def observed(sequences: Iterable[Sequence[int]], order: int) -> list[tuple[int, ...]]:
        """All histories that occur in some label sequences, for ``histories``.

        Parameters
        ----------
        sequences : sequences of int
            Training data, for example. Sequences of fewer than ``order`` labels are histories themselves.
        order : int
            Labels of a history.
        """
        found: set[tuple[int, ...]] = set()
        for sequence in sequences:
            labels = tuple(int(label) for label in sequence)
            found.update(labels[t : t + order] for t in range(max(len(labels) - order, 0) + 1))
        return sorted(found - {()})

    def grams(self, k: int) -> np.ndarray:
        """The labels of the grams that table k scores, (grams, k + 1), in the order of the table; k = 1: all pairs."""
        if not 1 <= k <= self.order:
            raise ValueError(f"tables have the numbers 1 to {self.order}, got {k}")
        codes = np.arange(self.labels**2) if k == 1 else self.histories.tables[k - 2]
        return self.histories.decode(codes, k + 1)

    def gram_number(self, gram: Sequence[int]) -> int:
        """The position of a gram in the (flat) table of its length."""
        grams = self.grams(len(gram) - 1)
        found = np.flatnonzero((grams == np.asarray(gram)).all(axis=1))
        if not found.size:
            raise ValueError(f"the gram {tuple(gram)} cannot occur with the labels and histories given")
        return int(found[0])

    def hard(self, theta: Parts, threads: Threads = SERIAL) -> tuple[np.ndarray, np.ndarray]:
        scores = self._step_scores(theta)
        values, labelling = np.empty(self.n), np.empty(len(theta[0]), np.int64)

        def lane(low: int, high: int) -> None:
            longest = int(self.lengths[low:high].max())
            scratch = np.empty((longest, self.histories.widest)), np.empty(longest, np.int64)
            layout = self.offsets, low, high
            kernels.hard(self.machine, theta[0], scores, theta[3], *layout, values, labelling, *scratch)

        threads.run(lane, threads.lanes(self.offsets))
        return values, labelling

    def soft(
        self, theta: Parts, mu: float, threads: Threads = SERIAL, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, Parts]:
        weights = np.ones(self.n) if weights is None else weights
        scores, values, end = self._step_scores(theta), np.empty(self.n), theta[3].copy()
        steps, widest = kernels.padded_steps(self.machine), self.histories.widest + 4

        def lane(low: int, high: int) -> Parts:
            longest = int(self.lengths[low:high].max())
            counts, ends = np.zeros(len(scores)), np.zeros(self.labels)
            scratch = np.zeros((3, longest, widest)), np.zeros((2, steps)), np.zeros((3, widest))
            layout = self.offsets, low, high
            soft(self.machine, theta[0], scores, end, *layout, mu, weights, values, counts, ends, *scratch)
            return counts, ends

        pieces = threads.run(lane, threads.lanes(self.offsets))
        counts, ends = (np.sum(piece, axis=0) for piece in zip(*pieces, strict=True))
        shared = np.zeros(sum(array.size for array in theta[1:]))
        kernels.spread_steps(self.machine.parts, counts, shared)
        self._write(shared, theta)
        theta[3][:] = ends
        return values, theta

    def log_size(self) -> np.ndarray:
        if self.histories.everything:
            return self.lengths * np.log(self.labels)
        lengths, where = np.unique(self.lengths, return_inverse=True)
        alone = self._with(lengths)
        return alone.soft(tuple(np.zeros(shape) for shape in alone.shapes), 1.0)[0][where]

    def radius(self, norms: Parts) -> float:
        # as in Chain: the counts of all grams of one length differ by at most sqrt(2) times their number
        if self.labels == 1:
            return 0.0
        squares = sums(norms[0], self.offsets[:-1], self.lengths) ** 2
        numbers = (self.lengths - 1, 1, 1, *(np.maximum(self.lengths - k, 0) for k in range(2, self.order + 1)))
        for table, number in zip(norms[1:], numbers, strict=True):
            squares += (number * table.max(initial=0.0)) ** 2
        return float(np.sqrt(2.0 * squares.max()))

    def pack(self, outputs: Sequence[Any] | np.ndarray) -> np.ndarray:
        labelling = join_labels(outputs, self.lengths, self.labels, Words())
        self._check_allowed(labelling)
        return labelling

    def unpack(self, labelling: np.ndarray) -> list[Any]:
        return cut_labels(labelling, self.offsets)

    def select(self, examples: Examples) -> tuple[Structure, tuple[Selection, ...]]:
        return self._with(self.lengths[examples]), self.rows_of(examples)

    def enumerate(self, example: int) -> Iterator[np.ndarray]:
        length = int(self.lengths[example])
        outputs = self.histories.decode(np.arange(self.labels**length), length)
        used = self.histories.read(outputs.ravel(), length * np.arange(len(outputs) + 1))
        yield from outputs[used.reshape(outputs.shape).min(axis=1) >= 0]

    def spans(self) -> tuple[np.ndarray | None, ...]:
        return self.offsets, *(None for _ in self.shapes[1:])

    def most_parts(self) -> np.ndarray:
        grams = sum(np.maximum(self.lengths - k, 0) for k in range(1, self.order + 1))
        return self.lengths + 2 + grams

    def located(self, packed: np.ndarray) -> list[Located]:
        used, everyone = self.histories.read(packed, self.offsets), np.arange(self.n)
        at = np.where(used[:, None] >= 0, self.machine.parts[used], -1)  # (tokens, order) in the joined tables
        owner = np.repeat(everyone, self.lengths)
        found = [(np.arange(len(packed)) * self.labels + packed, owner)]
        first = 0
        for array in self.shapes[1:]:
            size = int(np.prod(array))
            token, _ = inside = np.nonzero((at >= first) & (at < first + size))
            found.append((at[inside] - first, owner[token]))
            first += size
        found[3] = packed[self.offsets[1:] - 1], everyone  # no step of the machine knows that it is the last one
        return found

    def space(self) -> HigherOrderSpace:
        return HigherOrderSpace(self.lengths, self.machine, self.histories.widest, self.histories.block_from)

    def _with(self, lengths: np.ndarray) -> HigherOrderChain:
        """The same labels and histories for other lengths."""
        other = HigherOrderChain.__new__(HigherOrderChain)
        other._set(lengths, self.histories)
        return other

    def _joined(self, theta: Parts) -> np.ndarray:
        """The shared tables one after another."""
        return np.concatenate([array.ravel() for array in theta[1:]])

    def _write(self, shared: np.ndarray, theta: Parts) -> None:
        """Shared tables from one vector."""
        for array, piece in zip(theta[1:], np.split(shared, np.cumsum([a.size for a in theta[1:-1]])), strict=True):
            array[...] = piece.reshape(array.shape)

    def _step_scores(self, theta: Parts) -> np.ndarray:
        scores = np.empty(len(self.machine.parts))
        kernels.score_steps(self.machine.parts, self._joined(theta), scores)
        return scores

    def _check_allowed(self, labelling: np.ndarray) -> None:
        bad = np.flatnonzero(self.histories.read(labelling, self.offsets) < 0)
        if bad.size:
            i = int(np.searchsorted(self.offsets, bad[0], side="right")) - 1
            first = max(int(self.offsets[i]), int(bad[0]) + 1 - self.order)
            raise ValueError(
                f"sequence {i}, position {bad[0] - self.offsets[i]}: the labels "
                f"{tuple(labelling[first : bad[0] + 1].tolist())} in a row are not among the histories; add them, or "
                "make the histories with HigherOrderChain.observed from all label sequences"
            )
