"""Missed and spurious parts: ell_i(y) = missed * |gold minus y| + spurious * |y minus gold|, counted in parts.

For outputs that are sets: links of an alignment, arcs of a tree, brackets of a parse. With the prices a (missed) and b
(spurious) a part of gold costs -a, any other part b, and the constant a * |gold|.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from m3n.losses.base import Cost, Loss
from m3n.structures.base import Structure


@dataclass(frozen=True, eq=False)
class PartLoss(Loss):
    """Number of parts of the right output that are missing, and of parts that should not be there, each at its price.

    Parameters
    ----------
    missed : float
        Price of a part of the right output that the answer lacks.
    spurious : float
        Price of a part of the answer that the right output lacks.
    arrays : sequence of int or None
        Which arrays of theta count; None: all that have rows of their own for every example.
    """

    missed: float = 1.0
    spurious: float = 1.0
    arrays: Sequence[int] | None = None

    def __post_init__(self) -> None:
        for name in ("missed", "spurious"):
            price = getattr(self, name)
            if not 0.0 <= price < np.inf:
                raise ValueError(f"{name} must be a finite price that is not negative, got {price}")

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        right, spans = structure.encode(gold), structure.spans()
        chosen = [k for k, span in enumerate(spans) if span is not None] if self.arrays is None else self.arrays
        costs = {k: np.where(right[k] > 0.0, -self.missed, self.spurious) for k in chosen}
        return Cost.of_parts(structure, gold, costs, constant="gold")
