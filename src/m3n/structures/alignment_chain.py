"""Alignments in which every source word picks one target word or none, and links score how far they jump.

Source words are read from left to right. A link to target word j after the last one to j', with any number of words
without a link in between, scores ``jump[clip(j - j', -reach, reach) + reach]``; before the first link j' = -1. So
jump[reach + 1] belongs to the next target word, jump[reach] to the same one again. The score of an output is the sum of
these, of the scores of its links, and of the null scores of the source words without one.

theta = (link (pairs, 1), source null (rows, 1), jump (2 reach + 1,)); the jumps are shared by all examples, and
``features.Table(2 * reach + 1)`` is their map. Both oracles cost O(pairs reach), see ``oracles.alignment_chain``;
|Y_i| is that of ``OneToMany``.

Reference: Vogel, Ney, Tillmann, "HMM-based word alignment in statistical translation", 1996.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from m3n.compiled.oracles.alignment_chain import AlignmentChainSpace
from m3n.structures.links import LinkStructure


class AlignmentChain(LinkStructure):
    """Alignments with at most one link for every source word, and scores of jumps from link to link.

    Parameters
    ----------
    sizes : sequence of (int, int)
        Source and target words of every sentence pair, at least 1 each.
    reach : int
        Longest jump with a score of its own, at least 1; longer ones score the same.
    allowed : sequence of array of bool (source words, target words), optional
        Which links every pair may have; all of them if nothing is given. A link score of -inf forbids, too, and a null
        score of -inf says that a source word must have a link.

    Examples
    --------
    >>> import numpy as np
    >>> from m3n.structures import AlignmentChain
    >>> chains = AlignmentChain([(3, 3)], reach=1)
    >>> jump = np.array([-1.0, 0.0, 1.0])  # back, the same word again, forward
    >>> value, best = chains.hard((np.zeros((9, 1)), np.zeros((3, 1)), jump))
    >>> float(value[0]), chains.unpack(best)
    (3.0, [[(0, 0), (1, 1), (2, 2)]])
    """

    def __init__(
        self,
        sizes: Sequence[tuple[int, int]] | np.ndarray,
        reach: int = 5,
        allowed: Sequence[Any] | None = None,
    ):
        if reach < 1:
            raise ValueError(f"reach must be at least 1, got {reach}; OneToMany has no jumps")
        self.reach = int(reach)
        super().__init__(sizes, allowed)
        self.shapes = (*self.shapes, (2 * self.reach + 1,))

    def spans(self) -> tuple[np.ndarray | None, ...]:
        return *super().spans(), None

    def most_parts(self) -> np.ndarray:
        return 2 * self.rows

    def log_size(self) -> np.ndarray:
        return self._choices()

    def space(self) -> AlignmentChainSpace:
        return AlignmentChainSpace(self._table, self.reach)

    def _alike(self, sizes: np.ndarray, allowed: Sequence[np.ndarray] | None) -> AlignmentChain:
        return AlignmentChain(sizes, self.reach, allowed)

    def _parts(self, links: np.ndarray, example: int) -> np.ndarray:
        rows, columns = self.sizes[example]
        steps = np.diff(links[:, 1], prepend=-1).clip(-self.reach, self.reach) + self.reach
        return np.concatenate([self._row_parts(links, example), rows * columns + rows + steps])
