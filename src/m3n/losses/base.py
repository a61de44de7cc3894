"""What a label loss must offer.

ell_i(y) is a sum over parts, so against a fixed gold output it is a linear function of the indicator of y:
``ell_i(y) = <cost_i, encode(y)>``. A ``Loss`` makes that function, a ``Cost``, which is never written out as a full
array: it adds itself to scores in place and evaluates itself on marginals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from m3n.backends import SERIAL, Threads
from m3n.kernels import rows as kernels
from m3n.structures.base import Parts, Rows, Structure


class Loss(ABC):
    """A recipe for the cost of labellings against gold."""

    @abstractmethod
    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        """The cost function of a packed batch with gold labelling ``gold``."""


class Cost:
    """Costs of single labels: ``weight[r] * table[gold[r], label]`` at row r of the first array of theta.

    Parameters
    ----------
    gold : array of int (rows,)
        Gold label of every row.
    weight : array (rows,)
        Weight of every row.
    table : array (labels, labels)
        ``table[g, y]``, the cost of label y where g is right; zero on the diagonal, never negative.
    """

    def __init__(self, gold: np.ndarray, weight: np.ndarray, table: np.ndarray):
        self.gold = gold
        self.weight = weight
        self.table = table
        if not (np.isfinite(table).all() and np.isfinite(weight).all()):
            raise ValueError("a label loss must be finite")
        if np.diagonal(table).any():
            raise ValueError("a label loss must be 0 for the right label: the table's diagonal is not zero")
        if table.min() < 0 or weight.min(initial=0.0) < 0:
            raise ValueError("a label loss must not be negative")

    def add_to(self, theta: Parts, scale: float = 1.0, threads: Threads = SERIAL) -> None:
        """theta += scale * cost, in place."""

        def lane(low: int, high: int) -> None:
            kernels.add_cost(theta[0], self.gold, self.weight, self.table, scale, low, high)

        if scale != 0.0 and self.table.any():
            threads.run(lane, threads.rows(len(self.gold)))

    def expected(self, marginals: Parts, threads: Threads = SERIAL) -> float:
        """<cost, marginals>: the expected loss, summed over examples."""

        def lane(low: int, high: int) -> float:
            return kernels.expected_cost(marginals[0], self.gold, self.weight, self.table, low, high)

        return float(sum(threads.run(lane, threads.rows(len(self.gold))))) if self.table.any() else 0.0

    def select(self, rows: Rows) -> Cost:
        """The costs of some rows only."""
        return Cost(self.gold[rows], self.weight[rows], self.table)
