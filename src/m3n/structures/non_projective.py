"""Dependency trees whose arcs may cross: all trees of candidate arcs.

theta = (arc (arcs,), label (labelled parts,) if there are labels). The max-oracle costs O(length^2) per sentence
(``oracles.arborescence``), the exp-oracle O(length^3) (``oracles.matrix_tree``). With all arcs there are
length^(length - 1) trees with a single root, (length + 1)^(length - 1) with any number of them.

Reference: McDonald, Pereira, Ribarov, Hajič, "Non-projective dependency parsing using spanning tree algorithms", 2005.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from m3n.compiled.oracles.non_projective import NonProjectiveSpace
from m3n.structures.arcs import Arcs
from m3n.structures.dependency import DependencyTrees


class NonProjectiveTree(DependencyTrees):
    """Dependency trees whose arcs may cross.

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
    >>> from m3n.structures import NonProjectiveTree
    >>> trees = NonProjectiveTree([4])
    >>> trees.unpack(trees.pack([[3, 0, 2, 2]]))  # the arcs from 3 to 1 and from the root to 2 cross
    [[3, 0, 2, 2]]
    """

    def space(self) -> Any:
        return self._space

    @cached_property
    def _space(self) -> NonProjectiveSpace:
        return NonProjectiveSpace(self._candidates, self.single_root)

    def _alike(self, arcs: Arcs) -> NonProjectiveTree:
        return NonProjectiveTree(arcs, single_root=self.single_root)
