"""Lanes: who makes passes over some shards of a source, with little memory, and keeps what solvers leave there.

A pass over a lane goes through its shards, and through each in pieces whose scores stay in a cache, unless it costs a
copy to cut them out. Shards stay open as long as the memory that they may hold suffices. Whatever a lane knows can be
made again from its source, but for what solvers keep (``kept``), who see to that themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from m3n.packed.memory import Scratch
from m3n.packed.ragged import batches
from m3n.problem.passes import Answer, ThreadedPass
from m3n.problem.sources import Source, Stretch

PIECE = 1 << 20  # scores of a piece, 8 MB
HEAVY = 1 << 23  # the same where pieces cost copies
SHARE = 8  # scores for every number that a piece touches anyway


class Open:
    """Shards that are open, within a bound on their bytes.

    Parameters
    ----------
    source : Source
        The examples.
    memory : float
        Bytes that they may hold; one is always open.
    """

    def __init__(self, source: Source, memory: float):
        self.source, self.memory = source, memory
        self._passes: dict[int, ThreadedPass] = {}

    def __getitem__(self, shard: int) -> ThreadedPass:
        if shard not in self._passes:
            held = self.source.held
            while self._passes and sum(held[k] for k in self._passes) + held[shard] > self.memory:
                del self._passes[next(reversed(self._passes))]  # lanes go round: the newest is needed last
            self._passes[shard] = self.source.opened(shard)
        return self._passes[shard]


class Lane:
    """Passes over neighbouring examples.

    Parameters
    ----------
    source : Source
        All examples.
    stretches : list of Stretch
        Those of this lane.
    number : int
        Which lane it is.
    memory : float
        Bytes that open shards may hold.

    Attributes
    ----------
    kept : dict
        What solvers keep here.
    """

    def __init__(self, source: Source, stretches: list[Stretch], number: int, memory: float):
        self.source, self.stretches, self.number = source, stretches, number
        self.n = sum(stretch.high - stretch.low for stretch in stretches)
        self.kept: dict[str, Any] = {}
        self._open, self._scratch = Open(source, memory), Scratch()

    def hard(self, w: np.ndarray, loss_scale: float = 1.0, chosen: np.ndarray | None = None) -> Answer:
        """Max-oracle on the examples of the lane, or some of them, summed up."""
        vector, value, loss = np.zeros(self.source.dim), 0.0, 0.0
        for piece in self._pieces(chosen):
            one, other = piece.add_hard(w, vector, loss_scale)
            value, loss = value + one, loss + other
        return Answer(value, vector, loss, loss)

    def soft(self, w: np.ndarray, mu: float, loss_scale: float = 1.0, chosen: np.ndarray | None = None) -> Answer:
        """Exp-oracle at temperature mu, summed up."""
        vector, value, loss = np.zeros(self.source.dim), 0.0, 0.0
        for piece in self._pieces(chosen):
            one, other = piece.add_soft(w, vector, mu, loss_scale)
            value, loss = value + one, loss + other
        score = float(w @ vector) if self.source.temperature else 0.0
        heat = self.source.temperature / mu
        return Answer.of_gibbs(value, vector, loss, heat=heat, energy=loss_scale * loss - score)

    def value(self, w: np.ndarray, chosen: np.ndarray | None = None) -> float:
        """What the examples add to the value of a pass."""
        return sum(float(piece.margins(w).sum()) for piece in self._pieces(chosen)) / self.source.n

    def outputs(
        self, w: np.ndarray, chosen: np.ndarray | None = None
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """As in ``Pass``, piece by piece."""
        return [piece.outputs(w) for piece in self._pieces(chosen)]

    def diameter(self, chosen: np.ndarray | None = None) -> float:
        """Its share of the mean diameter."""
        return sum(piece.diameter() for piece in self._pieces(chosen))

    def radius(self, chosen: np.ndarray | None = None) -> float:
        """A bound on the largest |psi_i(y)|."""
        return max((piece.radius() for piece in self._pieces(chosen)), default=0.0)

    def passes(self) -> Iterator[ThreadedPass]:
        """Passes over its stretches, one after another."""
        for shard, low, high in self.stretches:
            whole = self._open[shard]
            yield whole if high - low == whole.n else whole.over(np.arange(low, high))

    def _pieces(self, chosen: np.ndarray | None) -> Iterator[ThreadedPass]:
        """Passes over pieces with few scores; ``chosen`` are numbers of examples from that of the lane's first on."""
        first = 0
        for shard, low, high in self.stretches:
            whole, shift, first = self._open[shard], low - first, first + high - low
            wanted = np.arange(low, high)
            if chosen is not None:
                wanted = chosen[slice(*np.searchsorted(chosen, (low - shift, first)))] + shift
            light = whole.structure.light and whole.features.light
            if not light and len(wanted) == whole.n:
                yield whole
                continue
            most = max(PIECE, SHARE * whole.features.fixed_work) if light else HEAVY
            for one, end in batches(_sizes(whole)[wanted], most):
                yield whole.over(wanted[one:end], self._scratch) if end - one < whole.n else whole


def _sizes(whole: ThreadedPass) -> np.ndarray:
    """Scores of the own rows of every example."""
    structure = whole.structure
    counts = [
        np.diff(span) * int(np.prod(shape[1:]))
        for span, shape in zip(structure.spans(), structure.shapes, strict=True)
        if span is not None
    ]
    return np.sum(counts, axis=0)
