"""All possible links of sentence pairs, one after another: which words they join, and what stands around them.

The links of a pair are listed row by row: those of the first source word, from the first target word to the last, then
those of the second one, and so on. Numbers of links are flat arrays in this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from m3n.packed.ragged import numbers


@dataclass(frozen=True, eq=False)
class Grid:
    """Sentence pairs as tables of links.

    Parameters
    ----------
    sizes : array of int (n, 2)
        Source words and target words of every pair, at least 1.
    """

    sizes: np.ndarray

    @classmethod
    def of(cls, X: Sequence[Any]) -> Grid:
        """The grid of sentence pairs.

        Parameters
        ----------
        X : sequence of (source words, target words)
            The pairs.
        """
        return cls(np.array([(len(source), len(target)) for source, target in X], np.int64).reshape(-1, 2))

    @cached_property
    def first(self) -> np.ndarray:
        """First link of every pair, (n + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes.prod(axis=1))])

    @cached_property
    def pair(self) -> np.ndarray:
        """The pair of every link."""
        return np.repeat(np.arange(len(self.sizes)), np.diff(self.first))

    @cached_property
    def place(self) -> np.ndarray:
        """The place of every link in its table."""
        return np.arange(self.first[-1]) - self.first[self.pair]

    @cached_property
    def source(self) -> np.ndarray:
        """The source word of every link, counted within its sentence."""
        return self.place // self.sizes[self.pair, 1]

    @cached_property
    def target(self) -> np.ndarray:
        """The target word of every link, counted within its sentence."""
        return self.place % self.sizes[self.pair, 1]

    def word(self, side: int) -> np.ndarray:
        """The source word (side 0) or target word (1) of every link, counted over all pairs."""
        ends = np.cumsum(self.sizes[:, side])
        return (ends - self.sizes[:, side])[self.pair] + (self.target if side else self.source)

    def numbers(self, links: Sequence[Any]) -> np.ndarray:
        """The links of alignments, one collection of (i, j) per pair, as numbers."""
        found = [self.first[k] + i * self.sizes[k, 1] + j for k, own in enumerate(links) for i, j in sorted(own)]
        return np.array(found, np.int64)

    def turned(self) -> tuple[Grid, np.ndarray]:
        """The grid with target and source exchanged, and which link every one of its links was."""
        other = Grid(np.ascontiguousarray(self.sizes[:, ::-1]))
        return other, self.first[other.pair] + other.target * self.sizes[other.pair, 1] + other.source

    def cut(self, values: np.ndarray) -> list[np.ndarray]:
        """One table (source words, target words) per pair."""
        pieces = np.split(values, self.first[1:-1]) if len(self.sizes) else []
        return [piece.reshape(size) for piece, size in zip(pieces, self.sizes.tolist(), strict=True)]

    def only(self, chosen: np.ndarray) -> tuple[Grid, np.ndarray]:
        """The grid of some pairs, and which links are theirs."""
        return Grid(self.sizes[chosen]), numbers(self.first[chosen], np.diff(self.first)[chosen])

    def neighbour(self, values: np.ndarray, down: int, right: int) -> np.ndarray:
        """The values of links that many source words and target words further; 0 outside of the table."""
        i, j = self.source + down, self.target + right
        rows, columns = self.sizes[self.pair].T
        inside = (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
        return np.where(inside, values[np.where(inside, np.arange(len(values)) + down * columns + right, 0)], 0.0)

    def rivals(self, values: np.ndarray, side: int) -> np.ndarray:
        """For every link the largest value among the other links of its source word (side 0) or target word (1)."""
        order = np.arange(len(values)) if side == 0 else np.argsort(self.word(1), kind="stable")
        owner = self.word(side)[order]
        starts = np.flatnonzero(np.diff(owner, prepend=-1))
        counts = np.diff(starts, append=len(values))
        sorted_values = values[order]
        top = np.repeat(np.maximum.reduceat(sorted_values, starts), counts)
        best = sorted_values == top
        seen = np.cumsum(best)
        leader = best & (seen - np.repeat((seen - best)[starts], counts) == 1)  # the first one, among equals
        second = np.repeat(np.maximum.reduceat(np.where(leader, 0.0, sorted_values), starts), counts)
        found = np.empty(len(values))
        found[order] = np.where(leader, second, top)
        return found

    def totals(self, values: np.ndarray, side: int) -> np.ndarray:
        """The sum over the links of every source word (side 0) or target word (1), word after word."""
        return np.bincount(self.word(side), values, int(self.sizes[:, side].sum()))
