"""What a solver must offer.

A solver is a frozen set of settings with two functions: ``init`` makes a state, ``step`` makes the next one from it. It
has no loop, prints nothing and knows no structure. States are never changed in place, so an interrupted step loses
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np

from m3n.problem import Problem


class State(Protocol):
    """What ``minimize`` reads from a solver's state."""

    @property
    def w(self) -> np.ndarray:
        """The weights to certify."""

    @property
    def dual(self) -> float:
        """D at the state's feasible dual point; -inf if it has none."""

    @property
    def stalled(self) -> bool:
        """Whether rounding errors forbid any further progress."""

    @property
    def metrics(self) -> Mapping[str, float]:
        """Quantities that the solver itself watches."""


S = TypeVar("S", bound=State)


class Solver(Generic[S]):
    """An algorithm on a ``Problem``.

    Attributes
    ----------
    requires : frozenset of str
        Oracles that it calls: ``"hard"``, ``"soft"`` or both.
    """

    requires: ClassVar[frozenset[str]]

    def init(self, problem: Problem) -> S:
        """The first state."""
        raise TypeError(f"{type(self).__name__} does not define init")

    def step(self, problem: Problem, state: S) -> S:
        """The next state."""
        raise TypeError(f"{type(self).__name__} does not define step")
