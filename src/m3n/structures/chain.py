"""Label sequences: linear chains of any lengths, packed one after another.

theta = (node (tokens, labels), transition (labels, labels), start (labels,), end (labels,)) and, with ``edges=True``,
edge (tokens - n, labels, labels): one table per pair of neighbours on top of the shared transitions. Both oracles cost
O(length labels^2) per sequence. |Y_i| = labels^length when every transition is allowed.

Forbidden starts, transitions and ends score -inf: no labelling that uses one has any weight.

Slack rescaling is exact and costs as much as the max-oracle times the number of losses that a prefix can have, if the
losses of a sequence's labels are multiples of a unit (``oracles.chain_slack``); otherwise it is left to the search
with the max-oracle (``m3n.structures.slack``).

Reference for slack rescaling on chains: Bauer, Görnitz, Biegler, Müller, Kloft, "Efficient algorithms for exact
inference in sequence labeling SVMs", 2014.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from m3n.compiled.oracles import chain, chain_slack, chain_together
from m3n.compiled.oracles.chain_block import ChainSpace, hard, list_parts
from m3n.compiled.oracles.chain_k_best import k_best
from m3n.packed import SERIAL, Threads
from m3n.packed.ragged import sums
from m3n.structures.base import Parts, Structure
from m3n.structures.sequences import Forbidden, LabelSequences

LARGEST_TABLE = 1 << 26  # numbers, per thread: 512 MB, a sequence of 1600 positions with 26 labels and Hamming loss


class Chain(LabelSequences):
    """Sequences of labels with pairwise scores between neighbours.

    Parameters
    ----------
    lengths : sequence of int
        Length of every sequence, at least 1.
    labels : int
        Number of labels.
    edges : bool
        Whether theta ends with an array of per-position edge scores.
    forbidden : array of bool (labels, labels), optional
        ``forbidden[i, j]``: label j never follows label i.
    forbidden_start, forbidden_end : array of bool (labels,), optional
        Labels that never stand first, or last.
    """

    oracles: ClassVar[frozenset[str]] = frozenset({"hard", "soft", "support"})

    light = True

    def __init__(
        self,
        lengths: Sequence[int] | np.ndarray,
        labels: int,
        *,
        edges: bool = False,
        forbidden: np.ndarray | None = None,
        forbidden_start: np.ndarray | None = None,
        forbidden_end: np.ndarray | None = None,
    ):
        self._measure(lengths, labels)
        self.edges = edges
        self.masks = Forbidden.checked(
            labels, forbidden=forbidden, forbidden_start=forbidden_start, forbidden_end=forbidden_end
        )
        self._measured: tuple[Any, Losses | None] = (None, None)
        tokens = int(self.offsets[-1])
        self.shapes = ((tokens, labels), (labels, labels), (labels,), (labels,))
        if edges:
            self.shapes += ((tokens - self.n, labels, labels),)

    def hard(self, theta: Parts, threads: Threads = SERIAL) -> tuple[np.ndarray, np.ndarray]:
        values, labelling = np.empty(self.n), np.empty(int(self.offsets[-1]), np.int64)
        arguments = self._space, *self._divided(theta)
        threads.run(lambda low, high: hard(*arguments, low, high, values, labelling), threads.lanes(self.offsets))
        return values, labelling

    def k_best(self, theta: Parts, k: int, threads: Threads = SERIAL) -> tuple[np.ndarray, np.ndarray]:
        """The k best outputs of every example, best first: scores (n, k) and labellings (k, tokens).

        The first labelling is that of ``hard``. An example with fewer outputs has scores of -inf at the end, and there
        its labels mean nothing. Both arrays are narrower than k where no example has so many outputs.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        k = min(int(k), self.labels ** int(self.lengths.max()))
        scores, labellings = np.empty((self.n, k)), np.zeros((k, int(self.offsets[-1])), np.int64)
        arrays = self._divided(theta)

        def lane(low: int, high: int) -> None:
            k_best(self._space, *arrays, low, high, scores, labellings)

        threads.run(lane, threads.lanes(self.offsets))
        return scores, labellings

    def slack(
        self, theta: Parts, gold: np.ndarray, cost: Any, threads: Threads = SERIAL
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        measured = self._losses(cost)
        if measured is None:
            return super().slack(theta, gold, cost, threads)
        values, found, labelling = np.empty(self.n), np.empty(self.n), gold.copy()
        gold_scores, arrays = self.score(theta, gold, threads), self._divided(theta)
        rows = self.lengths * (measured.levels + 1)

        def lane(low: int, high: int) -> None:
            chain_slack.slack(self._space, *arrays, *measured, gold_scores, low, high, values, labelling, found)

        threads.run(lane, threads.lanes(np.concatenate([[0], np.cumsum(rows)])))
        return values, labelling, found

    def loss_units(self, cost: Any) -> tuple[np.ndarray, np.ndarray] | None:
        measured = self._losses(cost)
        return None if measured is None else (measured.units, measured.levels)

    def log_size(self) -> np.ndarray:
        return self.lengths * np.log(self.labels) if self.masks.nothing else super().log_size()

    def radius(self, norms: Parts) -> float:
        if self.labels == 1:
            return 0.0
        squares = self._squares(norms)
        if self.edges:
            first = self.offsets[:-1] - np.arange(self.n)
            squares += sums(norms[4], first, self.lengths - 1) ** 2
        return float(np.sqrt(2.0 * squares.max()))

    def score(self, theta: Parts, labelling: np.ndarray, threads: Threads = SERIAL) -> np.ndarray:
        scores = np.empty(self.n)

        def lane(low: int, high: int) -> None:
            chain.score(labelling, self.offsets, low, high, *self._with_edges(theta), scores)

        threads.run(lane, threads.lanes(self.offsets))
        return scores

    def enumerate(self, example: int) -> Iterator[np.ndarray]:
        for labels in itertools.product(range(self.labels), repeat=int(self.lengths[example])):
            if self.masks.allows(np.array(labels)):
                yield np.array(labels)

    def spans(self) -> tuple[np.ndarray | None, ...]:
        edge = self.offsets - np.arange(self.n + 1)
        return (self.offsets, None, None, None, edge)[: len(self.shapes)]

    def most_parts(self) -> np.ndarray:
        return 2 * self.lengths + 1 + (self.lengths - 1) * self.edges

    def local_parts(self, labelling: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = np.zeros((self.n, int(self.most_parts().max())), np.int64)
        list_parts(self._space, labelling, parts)
        return parts, self.most_parts()

    located = Structure.located  # from the lists, which are compiled

    def space(self) -> ChainSpace | None:
        return self._space

    def _compiled(self, hook: str) -> ChainSpace:
        return self._space

    @cached_property
    def _space(self) -> ChainSpace:
        return ChainSpace(self.offsets, int(self.lengths.max()), self.labels, self.edges, *self.masks.penalties())

    def _soft_range(
        self, space: Any, arrays: Any, low: int, high: int, mu: float, weights: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        if self.edges or self.labels <= chain.FEW:
            return super()._soft_range(space, arrays, low, high, mu, weights, values)
        (nodes, *_), _, shared = arrays
        counts, order = np.empty(len(shared)), low + np.argsort(self.lengths[low:high], kind="stable")
        chain_together.soft(space, nodes, shared, order, mu, weights, values, counts)
        return counts

    def _alike(self, lengths: np.ndarray) -> Chain:
        return Chain(lengths, self.labels, edges=self.edges, **self.masks.arguments)

    def _divided(self, theta: Parts) -> tuple[Parts, np.ndarray, np.ndarray]:
        own, first, shared = super()._divided(theta)
        return own if self.edges else (*own, np.empty(0)), first, shared

    @cached_property
    def _first(self) -> np.ndarray:
        first = super()._first
        return first if self.edges else np.concatenate([first, np.zeros_like(first)])  # as if there were edges

    def _losses(self, cost: Any) -> Losses | None:
        """The losses of all labels in units, kept for the next call; None if some sequence has no unit."""
        if self._measured[0] is not cost:
            self._measured = cost, self._measure_losses(cost)
        return self._measured[1]

    def _measure_losses(self, cost: Any) -> Losses | None:
        parts = tuple(np.zeros(shape) for shape in self.shapes)
        cost.add_to(parts, 1.0)
        measured = Losses(parts[0].ravel(), np.empty(self.n), np.empty(self.n, np.int64))
        chain_slack.measure(measured.node, self.labels, self.offsets, measured.units, measured.levels)
        priced = any(array.any() for array in parts[1:]) or cost.constant is not None
        if priced or measured.levels.min() < 0 or measured.node.min() < 0.0:
            return None
        _check_table(self.lengths, measured.levels, self.labels)
        return measured

    def _add(self, labelling: np.ndarray, amounts: np.ndarray, parts: Parts, threads: Threads) -> None:
        node, *shared, edge = self._with_edges(parts)

        def lane(low: int, high: int) -> None:
            chain.mark(labelling, self.offsets, low, high, amounts, node, edge)

        threads.run(lane, threads.lanes(self.offsets))
        chain.tally(labelling, self.offsets, amounts, *shared)

    def _with_edges(self, theta: Parts) -> Parts:
        return theta if self.edges else (*theta, np.empty((0, self.labels, self.labels)))

    def _check_allowed(self, labelling: np.ndarray) -> None:
        if self.masks.nothing:
            return
        for i, labels in enumerate(np.split(labelling, self.offsets[1:-1])):
            if not self.masks.allows(labels):
                raise ValueError(f"sequence {i} uses a forbidden start, transition or end: {labels.tolist()}")


class Losses(NamedTuple):
    """Losses of labels, and of every sequence a unit that divides them and the largest loss in units."""

    node: np.ndarray  # (tokens * labels,)
    units: np.ndarray  # (n,)
    levels: np.ndarray  # (n,)


def _check_table(lengths: np.ndarray, levels: np.ndarray, labels: int) -> None:
    sizes = lengths * (levels + 1) * labels
    worst = int(sizes.argmax())
    if sizes[worst] > LARGEST_TABLE:
        raise ValueError(
            f"slack rescaling of sequence {worst} needs a table of {lengths[worst]} positions x {levels[worst] + 1} "
            f"losses x {labels} labels, {8 * sizes[worst] / 1e9:.1f} GB per thread; cut the sequence into shorter "
            "ones, take a loss with a coarser unit (Hamming: 1), or rescale the margin"
        )
