"""The k best outputs of one example by its max-oracle alone, for any structure.

The outputs that are left are divided into cells: all outputs that have some *required* parts and none of some
*forbidden* ones. The best output of a cell, with parts p_1, p_2, ... besides the required ones, divides the rest of it:

    cell j       without p_j, with p_1 .. p_{j-1}
    last cells   with all of them and q_i besides, without q_1 .. q_{i-1}, for the other parts q_1, q_2, ...

The best output of all that are left is that of one of the cells, which is then divided in turn. Forbidden parts score
-inf. Required ones score more by ``bonus``, which is larger than any difference of two outputs, so that an output of
the cell, if it has one, comes before all others. A single call with counts for scores tells where there are no last
cells, as it is if all outputs have the same number of parts.

Cost: about one call of the max-oracle per part of an output, for each of the k.

Reference: Lawler, "A procedure for computing the k best solutions to discrete optimization problems", 1972.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from m3n.structures.base import Parts, Structure


class Cell(NamedTuple):
    """Outputs with and without some parts, and the best of them."""

    required: frozenset[int]
    forbidden: frozenset[int]
    score: float
    parts: np.ndarray


def k_best(
    structure: Structure, example: int, theta: Parts, k: int, arrays: Sequence[int] | None = None
) -> list[tuple[float, np.ndarray]]:
    """The k best outputs of an example, best first: scores and parts; fewer if there are fewer with a finite score.

    Parameters
    ----------
    structure : Structure
        Output spaces with a max-oracle.
    example : int
        The example.
    theta : tuple of arrays
        Its own scores, as ``Structure.own`` cuts them out; finite or -inf.
    k : int
        How many.
    arrays : sequence of int or None
        Arrays of theta whose parts tell outputs apart, with rows of their own for every example; fewer are quicker, for
        trees (0,), or (1,) if arcs have labels. None: all that have rows of their own.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    search = _Search(structure, example, theta, arrays)
    order = count()
    found: list[tuple[float, np.ndarray]] = []
    waiting = [(-cell.score, next(order), cell) for cell in search.cell(frozenset(), frozenset())]
    while waiting and len(found) < k:
        cell = heapq.heappop(waiting)[2]
        found.append((cell.score, cell.parts))
        if len(found) < k:
            for part in search.divided(cell):
                heapq.heappush(waiting, (-part.score, next(order), part))
    return found


class _Search:
    """The max-oracle of one example, asked about cells."""

    def __init__(self, structure: Structure, example: int, theta: Parts, arrays: Sequence[int] | None):
        self.alone, _ = structure.select(np.array([example]))
        self.theta = np.concatenate([array.reshape(-1) for array in theta])
        own = [number for number, span in enumerate(self.alone.spans()) if span is not None]
        lengths, before, _ = self.alone.layout
        self.telling = np.zeros(len(self.theta), bool)
        for number in own if arrays is None else arrays:
            self.telling[before[number, 0] : before[number, 0] + lengths[number, 0]] = True
        self.telling &= self.theta > -np.inf
        worst = -self._ask(np.where(np.isneginf(self.theta), self.theta, -self.theta))[0]
        self.bonus = 1.0 + 1.5 * (self._ask(self.theta)[0] - worst)

    def cell(self, required: frozenset[int], forbidden: frozenset[int]) -> Iterator[Cell]:
        """The cell, unless it is empty."""
        value, parts = self._restricted(self.theta, self.bonus, required, forbidden)
        if value > -np.inf and required.issubset(parts.tolist()):
            yield Cell(required, forbidden, float(self.theta[parts].sum()), parts)

    def divided(self, cell: Cell) -> Iterator[Cell]:
        """The rest of a cell without its best output."""
        required, forbidden = cell.required, cell.forbidden
        for part in sorted(self._told(cell.parts) - required):
            yield from self.cell(required, forbidden | {part})
            required |= {part}
        if self._grows(required, forbidden):
            for part in sorted(set(np.flatnonzero(self.telling).tolist()) - required - forbidden):
                yield from self.cell(required | {part}, forbidden)
                forbidden |= {part}

    def _told(self, parts: np.ndarray) -> frozenset[int]:
        return frozenset(parts[self.telling[parts]].tolist())

    def _grows(self, required: frozenset[int], forbidden: frozenset[int]) -> bool:
        """Whether an output has all of the required parts and others besides."""
        counts = np.where(np.isneginf(self.theta), self.theta, 1.0 * self.telling)
        value, parts = self._restricted(counts, 1.0 + len(counts), required, forbidden)
        return value > -np.inf and self._told(parts) > required

    def _restricted(
        self, theta: np.ndarray, bonus: float, required: frozenset[int], forbidden: frozenset[int]
    ) -> tuple[float, np.ndarray]:
        theta = theta.copy()
        theta[list(required)] += bonus
        theta[list(forbidden)] = -np.inf
        return self._ask(theta)

    def _ask(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The best score, and the parts of the best output."""
        values, packed = self.alone.hard(self.alone.cut(theta, 0))
        parts, counts = self.alone.local_parts(packed)
        return float(values[0]), parts[0, : counts[0]]
