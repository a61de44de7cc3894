"""Projective dependency trees: no two arcs cross when they are drawn above the sentence, the root left of it.

theta = (arc (arcs,), label (labelled parts,) if there are labels, sibling (sibling parts,) and grandchild (grandchild
parts,) if they are asked for), in the order of ``Arcs.siblings`` and ``Arcs.grandchildren``. The score of a tree is the
sum over its arcs (h, d) of the scores of the arc, of its label, of the arc with its next sibling, the nearest other
child of h between h and d or none, and of the arc with the one into h, if h is not the root.

Both oracles cost O(length^3) per sentence with scores of single arcs (``oracles.projective``). With scores of pairs of
arcs they cost O(k^2 length^2) or more for k candidate heads per word: leave most arcs out (``oracles.second_order``).

References: Eisner, "Three new probabilistic models for dependency parsing: an exploration", 1996; Koo, Collins,
"Efficient third-order dependency parsers", 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from m3n.compiled.oracles.projective import ProjectiveSpace
from m3n.compiled.oracles.second_order import SecondOrderSpace
from m3n.structures.arcs import Arcs
from m3n.structures.dependency import DependencyTrees


class ProjectiveTree(DependencyTrees):
    """Dependency trees without crossing arcs.

    Parameters
    ----------
    arcs : Arcs or sequence of int
        Candidate arcs; or the lengths of sentences that may have every arc.
    labels : int
        Number of labels if lengths are given.
    siblings : bool
        Whether neighbouring children of a head have scores.
    grandchildren : bool
        Whether an arc and the arc into its head have scores.
    single_root : bool
        Whether exactly one word hangs on the root, or any number of them.

    Examples
    --------
    >>> from m3n.structures import ProjectiveTree
    >>> trees = ProjectiveTree([3], labels=2)
    >>> trees.unpack(trees.pack([[(2, 0), (0, 1), (2, 0)]]))
    [[(2, 0), (0, 1), (2, 0)]]
    """

    def __init__(
        self,
        arcs: Arcs | Sequence[int] | np.ndarray,
        labels: int = 1,
        *,
        siblings: bool = False,
        grandchildren: bool = False,
        single_root: bool = True,
    ):
        self.siblings, self.grandchildren = bool(siblings), bool(grandchildren)
        super().__init__(arcs, labels, single_root=single_root)

    def spans(self) -> tuple[np.ndarray, ...]:
        pairs = []
        if self.siblings:
            pairs.append(self.arcs.sibling_first[self.arcs.first])
        if self.grandchildren:
            pairs.append(self.arcs.grandchild_first[self.arcs.first])
        return (*super().spans(), *pairs)

    def most_parts(self) -> np.ndarray:
        return super().most_parts() - self.grandchildren  # a child of the root is no grandchild

    def space(self) -> Any:
        return self._space

    @cached_property
    def _space(self) -> ProjectiveSpace | SecondOrderSpace:
        if not (self.siblings or self.grandchildren):
            return ProjectiveSpace(self._candidates, self.single_root)
        arcs, none = self.arcs, np.empty(0, np.int64)
        lists = arcs.dependent, arcs.by_head, arcs.side_first, arcs.inner, arcs.sibling_first
        upper = (arcs.grandchild_first, arcs.reverse) if self.grandchildren else (none, none)
        return SecondOrderSpace(self._candidates, self.single_root, self.siblings, self.grandchildren, *lists, *upper)

    @cached_property
    def _effort(self) -> np.ndarray:
        if not (self.siblings or self.grandchildren):
            return super()._effort
        return np.concatenate([[0], np.cumsum(self.arcs.lengths * np.diff(self.arcs.first))])

    def _alike(self, arcs: Arcs) -> ProjectiveTree:
        options = {"siblings": self.siblings, "grandchildren": self.grandchildren, "single_root": self.single_root}
        return ProjectiveTree(arcs, **options)

    def _pair_parts(self, heads: np.ndarray, arcs: np.ndarray, example: int) -> list[np.ndarray]:
        pairs = []
        if self.siblings:
            pairs.append(self._sibling_parts(heads, arcs, example))
        if self.grandchildren:
            pairs.append(self._grandchild_parts(heads, arcs, example))
        return pairs

    def _sibling_parts(self, heads: np.ndarray, arcs: np.ndarray, example: int) -> np.ndarray:
        """The sibling part of every arc of a tree."""
        first, words = self.arcs.first[example], np.arange(1, len(heads))
        inner = self.arcs.inner[first + arcs]
        parts = self.arcs.sibling_first[first + arcs] - self.arcs.sibling_first[first]
        side = 2 * heads[1:] + (words > heads[1:])
        order = np.lexsort((inner, side))  # children of a head and side, the nearest first
        follows = np.flatnonzero(side[order][1:] == side[order][:-1])
        parts[order[follows + 1]] += inner[order[follows]] + 1
        return parts

    def _grandchild_parts(self, heads: np.ndarray, arcs: np.ndarray, example: int) -> np.ndarray:
        """The grandchild part of every arc of a tree whose head is a word."""
        first, lower = self.arcs.first[example], np.flatnonzero(heads[1:] > 0)
        above = heads[1:][lower] - 1  # the head, numbered from 0
        place = first + arcs[above] - self.arcs.word_first[self.arcs.words[example] + above]
        own, reverse = first + arcs[lower], self.arcs.reverse[first + arcs[lower]]
        skipped = (reverse >= 0) & (reverse < place)
        return self.arcs.grandchild_first[own] - self.arcs.grandchild_first[first] + place - skipped

    def _check_arcs(self, heads: np.ndarray, example: int) -> None:
        words = np.arange(1, len(heads))
        low, high = np.minimum(words, heads[1:]), np.maximum(words, heads[1:])
        crossing = (low[:, None] < low) & (low < high[:, None]) & (high[:, None] < high)
        if crossing.any():
            one, other = (int(k) + 1 for k in np.argwhere(crossing)[0])
            raise ValueError(
                f"sentence {example}, word {one}: its arc from {heads[one]} crosses that from {heads[other]} to word "
                f"{other}; take NonProjectiveTree, or leave the sentence out"
            )
