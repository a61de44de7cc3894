"""Errors of different kinds at different costs: ell_i(y) = sum over positions t of costs[y_i,t , y_t]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from m3n.losses.base import Cost, Loss
from m3n.losses.names import by_pair
from m3n.structures.base import Structure


@dataclass(frozen=True, eq=False)
class CostMatrix(Loss):
    """Sum over positions of a cost that depends on the right and the predicted label.

    Parameters
    ----------
    costs : array (labels, labels), or mapping from (right, predicted) to float
        ``costs[g, y]`` is the cost of label y where g is right: finite, not negative, zero for g = y. Estimators sort
        labels, so rows and columns of an array are in the order of ``classes_``.
    default : float
        Cost of the wrong pairs that a mapping does not name.
    """

    costs: np.ndarray | Sequence[Sequence[float]] | Mapping[tuple[Any, Any], float]
    default: float = 1.0

    def bind(self, labels: Sequence[Any]) -> Loss:
        if not isinstance(self.costs, Mapping):
            return self
        return replace(self, costs=by_pair(self.costs, self.default, labels, "CostMatrix"))

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        gold, labels = structure.labels_of(gold), structure.shapes[0][1]
        table = self.costs
        if isinstance(table, Mapping):
            table = by_pair(table, self.default, range(labels), "CostMatrix")
        table = np.asarray(table, dtype=np.float64)
        if table.shape != (labels, labels):
            raise ValueError(f"CostMatrix needs a cost for each pair of {labels} labels, got shape {table.shape}")
        return Cost(gold, structure.row_weights(), table)
