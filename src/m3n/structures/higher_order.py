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
from typing import ClassVar

import numpy as np

from m3n.compiled.oracles.higher_order_block import HigherOrderSpace
from m3n.structures.base import Parts
from m3n.structures.histories import Histories
from m3n.structures.labels import Located
from m3n.structures.sequences import LabelSequences


class HigherOrderChain(LabelSequences):
    """Sequences of labels with scores of several labels in a row.

    Parameters
    ----------
    lengths, labels : sequence of int, int
        Length of every sequence, at least 1, and number of labels, as in ``Chain``.
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
        self._measure(lengths, labels if order > 0 else 0, needs=", one label and an order of 1")
        self._set(Histories(labels, order, histories))

    def _set(self, histories: Histories) -> None:
        self.histories, self.order, self.machine = histories, histories.order, histories.machine
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

    def log_size(self) -> np.ndarray:
        return self.lengths * np.log(self.labels) if self.histories.everything else super().log_size()

    def radius(self, norms: Parts) -> float:
        if self.labels == 1:
            return 0.0
        squares = self._squares(norms)
        for k, table in enumerate(norms[4:], 2):
            squares += (np.maximum(self.lengths - k, 0) * table.max(initial=0.0)) ** 2
        return float(np.sqrt(2.0 * squares.max()))

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

    def _alike(self, lengths: np.ndarray) -> HigherOrderChain:
        other = HigherOrderChain.__new__(HigherOrderChain)
        other._measure(lengths, self.labels)
        other._set(self.histories)
        return other

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
