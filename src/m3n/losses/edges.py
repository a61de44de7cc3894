"""Errors of pairs: ell_i(y) = number of pairs of neighbours (t, t + 1) with (y_t, y_t+1) not as in gold.

A single wrong label inside of a sequence makes two wrong pairs, a wrong stretch of any length k makes k + 1: errors
that stand together cost less than as many errors apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from m3n.losses.base import Cost, Loss
from m3n.structures.base import Structure


@dataclass(frozen=True, eq=False)
class EdgeHamming(Loss):
    """Number of wrong pairs of neighbouring labels.

    The structure must have an array of theta with one row for every pair, such as ``Chain(..., edges=True)``. If pairs
    have costs but no features, ``m3n.features.NoFeatures`` fills that array.
    """

    @property
    def needs_edges(self) -> bool:
        return True

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        labels, spans = structure.shapes[0][1], structure.spans()
        pairs = [
            k for k, shape in enumerate(structure.shapes) if shape[1:] == (labels, labels) and spans[k] is not None
        ]
        if not pairs:
            raise ValueError(
                f"{type(structure).__name__} has no array of theta with a row for every pair of neighbours, which "
                "EdgeHamming needs; take Chain(..., edges=True) and NoFeatures(pairs, labels, labels) for its features"
            )
        right = structure.encode(gold)
        return Cost.of_parts(structure, gold, {k: np.where(right[k] > 0.0, 0.0, 1.0) for k in pairs})
