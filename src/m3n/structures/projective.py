"""Projective dependency trees: no two arcs cross when they are drawn above the sentence, the root left of it.

theta = (arc (arcs,), label (labelled parts,) if there are labels). Both oracles cost O(length^3) per sentence, see
``oracles.projective``.

Reference: Eisner, "Three new probabilistic models for dependency parsing: an exploration", 1996.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from m3n.compiled.oracles.projective import ProjectiveSpace
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
    single_root : bool
        Whether exactly one word hangs on the root, or any number of them.

    Examples
    --------
    >>> from m3n.structures import ProjectiveTree
    >>> trees = ProjectiveTree([3], labels=2)
    >>> trees.unpack(trees.pack([[(2, 0), (0, 1), (2, 0)]]))
    [[(2, 0), (0, 1), (2, 0)]]
    """

    def space(self) -> Any:
        return self._space

    @cached_property
    def _space(self) -> ProjectiveSpace:
        return ProjectiveSpace(self._candidates, self.single_root)

    def _alike(self, arcs: Arcs) -> ProjectiveTree:
        return ProjectiveTree(arcs, single_root=self.single_root)

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
