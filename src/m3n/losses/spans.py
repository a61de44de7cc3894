"""Labelled spans of parses: missed and spurious ones, each at its price.

A span is a label with the words that it covers, a part of the last array of theta of ``m3n.structures.Grammar``. A gold
span costs -missed, any other one costs spurious, and the constant is missed times the number of gold spans, as in
``PartLoss``. Divided by that number, sentences of any length count alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from m3n.losses.base import Cost, Loss
from m3n.structures.base import Structure


@dataclass(frozen=True, eq=False)
class SpanLoss(Loss):
    """Number of wrong labelled spans.

    Parameters
    ----------
    missed : float
        Price of a span of the right parse that the answer lacks.
    spurious : float
        Price of a span of the answer that the right parse lacks.
    normalized : bool
        Whether to divide by the number of spans of the right parse.
    """

    missed: float = 1.0
    spurious: float = 1.0
    normalized: bool = False

    def __post_init__(self) -> None:
        for name in ("missed", "spurious"):
            price = getattr(self, name)
            if not 0.0 <= price < np.inf:
                raise ValueError(f"{name} must be a finite price that is not negative, got {price}")

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        right, rows = structure.encode(gold)[-1], structure.spans()[-1]
        if rows is None or right.ndim != 2:
            raise ValueError(f"{type(structure).__name__} has no labelled spans; take PartLoss, or a loss of your own")
        costs = np.where(right > 0.0, -self.missed, self.spurious)
        if self.normalized:
            owner = np.repeat(np.arange(structure.n), np.diff(rows))
            counts = np.bincount(owner, right.sum(axis=1), structure.n)
            costs /= np.maximum(counts, 1.0)[owner, None]
        return Cost.of_parts(structure, gold, {len(structure.shapes) - 1: costs}, constant="gold")
