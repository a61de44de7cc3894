"""Cutting-plane training of structural SVMs in the 1-slack form, the algorithm of SVM-struct.

    min  lam/2 |w|^2 + xi   subject to   xi >= 1/n sum_i { ell_i(y_i') - <w, psi_i(y_i')> }   for all (y_1', ..., y_n')

has one slack and one constraint per *joint* labelling of all examples. At a solution xi = R(w), so the problem is the
M3N's. The algorithm keeps a working set of joint constraints and adds the most violated one:

    (w, xi) = solution with the working set only (a quadratic programme, ``m3n.solvers.planes``)
    add the joint labelling that the max-oracle finds at w:  b - <w, a> with b = its loss, a = its sum of psi over n
    until  b - <w, a> <= xi + eps.

The *violation* b - <w, a> - xi is what its authors watch. With an exact oracle b - <w, a> = R(w), so the violation is
J(w) minus the optimum of the working set, a duality gap: ``tol`` of the loop plays the role of eps. Constraints without
weight for ``patience`` steps are dropped.

A joint constraint is a plane below the risk, and the method is BMRM without stabilisation. What distinguishes
SVM-struct is where constraints come from: a function of (problem, state, w) that returns a plane and J(w), or NaN in
place of J(w) if it did not ask the oracle for every example. ``exact_constraint`` asks it.

Letters: w, xi, eps as there; lam = 1/C. Cost per step: one pass, O(constraints x dim), O(constraints^3). Memory:
O(constraints x dim).

Reference: Joachims, Finley, Yu, "Cutting-Plane Training of Structural SVMs", Machine Learning 2009.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from m3n.problem import Problem
from m3n.solvers.base import Solver
from m3n.solvers.planes import Plane, Planes

ROUNDING = 1e-13  # relative: a smaller violation is none, and its constraint is in the working set already


@dataclass(frozen=True)
class StructSVMState:
    """The solution with the old working set, and the new working set."""

    w: np.ndarray
    primal: float  # J(w), NaN if the constraint did not come from the exact oracle
    dual: float  # optimum with the working set, a lower bound of min J
    planes: Planes  # the working set, the constraint found at w included
    violation: float  # of that constraint
    k: int = 0

    @property
    def stalled(self) -> bool:
        """The exact oracle finds no constraint that is violated."""
        return not np.isnan(self.primal) and self.violation <= ROUNDING * (1.0 + abs(self.primal))

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"violation": self.violation, "constraints": len(self.planes), "steps": self.k}


@dataclass(frozen=True)
class StructSVM(Solver[StructSVMState]):
    """SVM-struct: a working set of joint constraints, the most violated one joins it.

    Parameters
    ----------
    slack : {"one"}
        One slack variable for all examples together.
    patience : int or None
        Forget constraints that had no weight in so many steps; None keeps all.
    most_planes : int
        Mix constraints of little weight into one when there are more. Memory is constraints x weights.
    """

    slack: str = "one"
    patience: int | None = 50
    most_planes: int = 200

    requires: ClassVar[frozenset[str]] = frozenset({"hard"})
    native: ClassVar[str | None] = "violation"
    rate: ClassVar[str] = "G^2 / (lam eps^2)"
    exponent: ClassVar[float | None] = -0.5

    def __post_init__(self) -> None:
        if self.slack != "one":
            raise ValueError(f"slack must be 'one', got {self.slack!r}")
        if self.patience is not None and self.patience < 0:
            raise ValueError(f"patience must not be negative, got {self.patience}")
        if self.most_planes < 3:
            raise ValueError(f"most_planes must be at least 3: one plane, a new one and a mixture; {self.most_planes=}")

    def init(self, problem: Problem) -> StructSVMState:
        """The state after a pass at w = 0; before it the working set is xi >= 0 alone, gold's constraint."""
        empty = StructSVMState(np.zeros(problem.dim), np.nan, 0.0, Planes.gold(problem), np.inf)
        return self.step(problem, empty)

    def step(self, problem: Problem, state: StructSVMState) -> StructSVMState:
        """Solve with the working set, then add the most violated constraint at the solution."""
        planes = state.planes.solved(problem.lam)
        w, xi = planes.point(problem), planes.height(problem.lam)
        dual = max(state.dual, problem.dual(w, planes.offset))
        planes = planes.pruned(self.patience).merged(problem, self.most_planes - 1)
        plane, primal = exact_constraint(problem, state, w)
        violation = plane.offset - problem.inner(w, plane.vector) - xi
        return StructSVMState(w, primal, dual, planes.add(problem, plane), violation, state.k + 1)


def exact_constraint(problem: Problem, state: StructSVMState, w: np.ndarray) -> tuple[Plane, float]:
    """The most violated joint constraint at w, and J(w): one pass of the max-oracle."""
    answer = problem.hard(w)
    primal = problem.lam / 2 * problem.inner(w, w) + answer.value
    return Plane(answer.offset, answer.vector), primal
