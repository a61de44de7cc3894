"""Alignments in which every source word picks one target word or none, and target words any number of source words.

The score of an output is the sum of the scores of its links and of the null scores of the source words without one.

theta = (link (pairs, 1), source null (rows, 1)). Words are independent of one another: both oracles cost O(pairs), and
|Y_i| is the product over the words of the number of their links that are allowed, plus one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from m3n.compiled.oracles.one_to_many import OneToManySpace
from m3n.structures.links import LinkStructure


class OneToMany(LinkStructure):
    """Alignments with at most one link for every source word.

    Parameters
    ----------
    sizes : sequence of (int, int)
        Source and target words of every sentence pair, at least 1 each.
    allowed : sequence of array of bool (source words, target words), optional
        Which links every pair may have; all of them if nothing is given. A link score of -inf forbids, too, and a null
        score of -inf says that a source word must have a link.

    Examples
    --------
    >>> from m3n.structures import OneToMany
    >>> structure = OneToMany([(3, 2)])
    >>> structure.unpack(structure.pack([[(2, 0), (0, 0)]]))
    [[(0, 0), (2, 0)]]
    """

    def most_parts(self) -> np.ndarray:
        return self.rows

    def log_size(self) -> np.ndarray:
        return self._choices()

    def space(self) -> OneToManySpace:
        return OneToManySpace(self._table)

    def _alike(self, sizes: np.ndarray, allowed: Sequence[np.ndarray] | None) -> OneToMany:
        return OneToMany(sizes, allowed)

    def _parts(self, links: np.ndarray, example: int) -> np.ndarray:
        return self._row_parts(links, example)
