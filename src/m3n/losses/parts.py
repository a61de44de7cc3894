"""Losses of parts: wrong pairs of neighbours, missed and spurious parts.

*Pairs.* ell_i(y) = number of pairs of neighbours (t, t + 1) with (y_t, y_t+1) not as in gold. A single wrong label
inside of a sequence makes two wrong pairs, a wrong stretch of any length k makes k + 1: errors that stand together cost
less than as many errors apart.

*Sets of parts*, such as links of an alignment, arcs of a tree, brackets of a parse:
ell_i(y) = missed * |gold minus y| + spurious * |y minus gold|, counted in parts. With the prices a (missed) and b
(spurious) a part of gold costs -a, any other part b, and the constant a * |gold|.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        pairs = structure.pair_arrays()
        if not pairs:
            raise ValueError(
                f"{type(structure).__name__} has no array of theta with a row for every pair of neighbours, which "
                "EdgeHamming needs; take Chain(..., edges=True) and NoFeatures(pairs, labels, labels) for its features"
            )
        right = structure.encode(gold)
        return Cost.of_parts(structure, gold, {k: np.where(right[k] > 0.0, 0.0, 1.0) for k in pairs})


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
    normalized : bool
        Whether to divide by the number of parts of the right output, so that long examples count as much as short ones.
    """

    missed: float = 1.0
    spurious: float = 1.0
    arrays: Sequence[int] | None = None
    normalized: bool = False

    def __post_init__(self) -> None:
        for name in ("missed", "spurious"):
            price = getattr(self, name)
            if not 0.0 <= price < np.inf:
                raise ValueError(f"{name} must be a finite price that is not negative, got {price}")

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        right, spans = structure.encode(gold), structure.spans()
        chosen = [k for k, span in enumerate(spans) if span is not None] if self.arrays is None else self.arrays
        costs = {k: np.where(right[k] > 0.0, -self.missed, self.spurious) for k in chosen}
        if self.normalized:
            _divide(structure, {k: (costs[k], right[k]) for k in chosen})
        return Cost.of_parts(structure, gold, costs, constant="gold")


def _divide(structure: Structure, arrays: dict[int, tuple[np.ndarray, np.ndarray]]) -> None:
    """Divide the costs of every example by the number of its right parts."""
    counts, owners = np.zeros(structure.n), {}
    for k, (_, right) in arrays.items():
        span = structure.spans()[k]
        if span is None:
            raise ValueError(f"array {k} of theta is shared by all examples: its parts have no example to divide by")
        owners[k] = np.repeat(np.arange(structure.n), np.diff(span))
        counts += np.bincount(owners[k], right.reshape(len(right), -1).sum(axis=1), structure.n)
    for k, (costs, _) in arrays.items():
        costs /= np.maximum(counts, 1.0)[owners[k]].reshape(-1, *(1,) * (costs.ndim - 1))
