"""The proof of quality that comes with every run, and the record of how it came about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Certificate:
    """Two exact numbers that enclose the optimum: dual <= min J <= primal.

    Parameters
    ----------
    primal : float
        J at the weights that are returned.
    dual : float
        D at a feasible dual point, a lower bound on every J(w).
    relaxed : bool
        Whether J is the objective of a relaxation, over more outputs than there are, as for graphs with cycles
        (``m3n.structures.LoopyGraph``). The exact objective at the returned weights is then at most ``primal``; how low
        it could get is not known.
    of : str
        What it is about, if that is not the whole objective, as where labels are unknown: "the last convex round".
    """

    primal: float
    dual: float
    relaxed: bool = False
    of: str = ""

    @property
    def gap(self) -> float:
        """primal - dual: no weights can be better than the returned ones by more."""
        return self.primal - self.dual

    def improved(self, primal: float, dual: float = -math.inf) -> Certificate:
        """The better of the old and the new bounds.

        D <= J holds for exact numbers; a dual above the primal is rounding, and the primal is then the safe bound.
        """
        upper = min(self.primal, primal)
        return replace(self, primal=upper, dual=min(max(self.dual, dual), upper))

    def __str__(self) -> str:
        what = " (of the relaxed problem; primal bounds the exact objective)" if self.relaxed else ""
        what += f" (of {self.of})" if self.of else ""
        return f"primal {self.primal:.6g}, dual {self.dual:.6g}, gap {self.gap:.3g}{what}"


@dataclass(frozen=True)
class Record:
    """One line of the trace: what was known after some passes.

    Attributes
    ----------
    passes : float
        Oracle calls of either kind, certificates included, divided by n.
    seconds : float
        Wall-clock time since the start, everything included.
    hard_calls, soft_calls : int
        Oracle calls, counted in examples.
    primal, dual, gap : float
        The best certificate so far.
    evaluation_seconds : float
        The part of ``seconds`` that went into certificates and callbacks instead of the solver.
    evaluation_calls : int
        The oracle calls among ``hard_calls`` and ``soft_calls`` that were made only for certificates.
    metrics : mapping of str to float
        What the solver itself watches, such as its temperature mu.
    """

    passes: float
    seconds: float
    hard_calls: int
    soft_calls: int
    primal: float
    dual: float
    gap: float
    evaluation_seconds: float = 0.0
    evaluation_calls: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def solver_seconds(self) -> float:
        """Time that the solver itself took."""
        return self.seconds - self.evaluation_seconds
