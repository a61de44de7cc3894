"""A strength of regularisation for every group of weights.

The regulariser lam/2 |v|^2 treats all weights alike. A map whose scores are those of w = factor * v charges

    lam/2 |v|^2 = (lam / factor^2)/2 |w|^2

for the weights w that its group really uses: a factor of 2 regularises the group a quarter as strongly as the others,
and strength s takes the factor sqrt(lam / s). An l1 term becomes l1 |v|_1 = (l1 / factor) |w|_1. Nothing else changes:
the problem is of the same kind, so every solver and every certificate is as good as before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from m3n.features.base import FeatureMap, SparseRows, Wrapped
from m3n.packed import SERIAL, Threads
from m3n.structures.base import Parts, Selection


class Scaled(Wrapped):
    """theta = F (factor * v): the group's own weights are w = factor * v, regularised with lam / factor^2.

    Parameters
    ----------
    map : FeatureMap
        The map of the group, for example the ``Table`` of transitions within a ``Stack``.
    factor : float
        Positive; above 1 the group is regularised less than the others, below 1 more.
    """

    def __init__(self, map: FeatureMap, factor: float):
        if not 0.0 < factor < np.inf:
            raise ValueError(f"factor must be a positive finite number, got {factor}")
        self.map = map
        self.factor = float(factor)
        self.dim = map.dim
        self.shapes = map.shapes

    def weights(self, v: np.ndarray) -> np.ndarray:
        """The weights w = factor * v of the group itself.

        Parameters
        ----------
        v : array (dim,)
            The group's piece of a solver's weights, as ``Stack.split`` cuts it.
        """
        return self.factor * v

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        return self.map.scores(self.factor * w, out, threads)

    def add_adjoint(self, parts: Parts, scale: float, out: np.ndarray, threads: Threads = SERIAL) -> None:
        self.map.add_adjoint(parts, self.factor * scale, out, threads)

    def norms(self) -> Parts:
        return tuple(self.factor * norm for norm in self.map.norms())

    def rows(self) -> SparseRows:
        rows = self.map.rows()
        return replace(rows, data=self.factor * rows.data)

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        return Scaled(self.map.select(rows), self.factor)
