"""What a label loss must offer.

ell_i(y) is a sum over parts, so against a fixed gold output it is a linear function of the indicator of y:
``ell_i(y) = <cost_i, encode(y)>``. A ``Loss`` makes that function, a ``Cost``, which adds itself to scores in place and
evaluates itself on marginals.

Losses may be added and multiplied by a number: ``Hamming() + 0.5 * EdgeHamming()``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from m3n.losses.cost import Cost
from m3n.structures.base import Structure

__all__ = ["Cost", "Loss", "Sum"]


class Loss(ABC):
    """A recipe for the cost of labellings against gold."""

    @abstractmethod
    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        """The cost function of a packed batch with gold labelling ``gold``."""

    @property
    def needs_edges(self) -> bool:
        """Whether pairs of neighbouring labels have costs: a chain then needs ``edges=True``."""
        return False

    def bind(self, labels: Sequence[Any]) -> Loss:
        """The same loss with label numbers in place of names.

        Parameters
        ----------
        labels : sequence
            The name of every label, in the order of their numbers.
        """
        del labels  # a loss without names has nothing to replace
        return self

    def __add__(self, other: Loss) -> Loss:
        return Sum((self, other), (1.0, 1.0)) if isinstance(other, Loss) else NotImplemented

    def __mul__(self, factor: float) -> Loss:
        return Sum((self,), (factor,))

    __rmul__ = __mul__


@dataclass(frozen=True, eq=False)
class Sum(Loss):
    """Losses added up: ``2.0 * Hamming() + EdgeHamming()`` makes one.

    Parameters
    ----------
    terms : tuple of Loss
        The losses.
    factors : tuple of float
        What they are multiplied by: finite, not negative.
    """

    terms: tuple[Loss, ...]
    factors: tuple[float, ...]

    def __post_init__(self) -> None:
        for factor in self.factors:
            if not 0.0 <= factor < np.inf:
                raise ValueError(f"a loss can be multiplied by a finite number that is not negative, got {factor}")

    @property
    def needs_edges(self) -> bool:
        return any(term.needs_edges for term in self.terms)

    def bind(self, labels: Sequence[Any]) -> Loss:
        return Sum(tuple(term.bind(labels) for term in self.terms), self.factors)

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        pairs = zip(self.terms, self.factors, strict=True)
        return reduce(add, (term.cost(structure, gold).scaled(factor) for term, factor in pairs))
