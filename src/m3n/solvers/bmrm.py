"""Bundle method for regularised risk minimisation (BMRM), plain or with a line search.

Every pass at a point w_k gives J(w_k) and a plane below the risk, R(w) >= b_k - <w, a_k>. The model made of all planes,

    J_m(w) = lam/2 |w|^2 + max_k { b_k - <w, a_k> } <= J(w),

has its minimum at w_m, a small quadratic programme (``m3n.solvers.planes``). J_m(w_m) bounds min J from below and never
falls; the best J(w_k) so far bounds it from above. Their difference is the certified *bundle gap*. So it goes on:

    J(w_k), b_k, a_k from one pass;   w_b = the best point so far;   w_m = argmin J_m;   w_{k+1} = w_b + t (w_m - w_b).

``stabilize="none"`` is the method as published, t = 1. Far from all planes the model knows nothing, so w_m jumps about
and most passes are lost there. ``stabilize="line_search"`` stays near the best point: J is convex along the line from
w_b to w_m, and its slope at w_{k+1} (free of charge after the pass) says on which side of the minimum on the line the
point was. If J still fell, t grows; else it shrinks; it never falls below ``LEAST``. OCAS does the same with an exact
search, which costs a pass per trial here. Each of our trials is a step: its plane serves the model, too.

Why t must stay away from zero: J_m(w_{k+1}) <= J(w_b) - t (J(w_b) - J_m(w_m)) as J_m is convex, so a pass that does not
improve on J(w_b) lifts the model there by at least t times the bundle gap.

CRFs go the same way: the exp-oracle's answer is a tangent of their risk.

Letters: -a_k is the subgradient of the risk, b_k its offset, t the ``reach``. Cost per step: one pass, O(planes x dim)
for products of vectors, O(planes^3) for the programme. Memory: O(planes x dim), bounded by ``patience`` and
``most_planes``; thirty planes are almost as good as all at a large lam, which saves memory with millions of weights.

References: Teo, Vishwanathan, Smola, Le, "Bundle Methods for Regularized Risk Minimization", JMLR 2010; the line search
after Franc, Sonnenburg, "Optimized Cutting Plane Algorithm for Support Vector Machines", ICML 2008.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from m3n.problem import Answer, Objective
from m3n.solvers.base import HARD, SOFT, Solver, at_least, one_of
from m3n.solvers.forms import Weights
from m3n.solvers.planes import Plane, Planes

FIRST, LEAST, MOST = 0.1, 0.01, 1.0  # of t; OCAS always takes its planes at 0.1
GROW, SHRINK = 1.5, 0.8  # of t after a falling and a rising slope; 1.2 to 2 and 0.7 to 0.9 do about as well
STILL = 50  # steps in which neither bound moved; the longest pause seen in a run that went on had 3
ROUNDING = 1e-13  # a bound that moves by less, relatively, has not moved


@dataclass(frozen=True)
class BMRMState:
    """The best point, the model, and the point whose pass comes next."""

    w: Weights  # the best point so far
    primal: float  # J(w)
    dual: float  # the minimum of the model
    planes: Planes
    trial: Weights  # where the next plane is taken
    reach: float  # t: how far the trial is on the way from w to the minimum of the model
    k: int = 0  # passes
    still: int = 0  # steps since a bound moved

    @property
    def stalled(self) -> bool:
        """Neither bound has moved for so long that only rounding is left."""
        return self.still >= STILL

    @property
    def bundle_gap(self) -> float:
        """Best J so far minus the minimum of the model."""
        return self.primal - self.dual

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"bundle_gap": self.bundle_gap, "planes": len(self.planes), "reach": self.reach, "steps": self.k}


@dataclass(frozen=True)
class BMRM(Solver[BMRMState]):
    """Bundle method: one pass per step, a lower bound that never falls, and J itself.

    Parameters
    ----------
    stabilize : {"line_search", "none"}
        Take planes near the best point so far, or at the minimum of the model as published.
    patience : int or None
        Forget planes that had no weight in so many steps; None keeps all.
    most_planes : int
        Mix planes of little weight into one when there are more. Memory is planes x weights.
    """

    stabilize: str = "line_search"
    patience: int | None = 10
    most_planes: int = 200

    requires = HARD
    rescales = True
    requires_smooth = SOFT
    native = "bundle_gap"
    rate = "G^2 / (lam eps)"
    rate_smooth = "log(1/eps) / lam"
    exponent = -1.0

    def __post_init__(self) -> None:
        one_of("line_search", "none", stabilize=self.stabilize)
        at_least(0, patience=self.patience)
        at_least(3, most_planes=self.most_planes, why="one plane, a new one and a mixture")

    def footprint(self, problem: Objective) -> float:
        """Planes: a quarter of the most, as idle ones are forgotten."""
        return 8.0 * problem.dim * self.most_planes / 4

    def init(self, problem: Objective) -> BMRMState:
        """The state after a pass at w = 0; before it the only plane is gold's, R >= 0."""
        zero = np.zeros(problem.dim)
        reach = FIRST if self.stabilize == "line_search" else 1.0
        gold = Planes.gold(problem)
        return self.step(problem, BMRMState(w=zero, primal=np.inf, dual=0.0, planes=gold, trial=zero, reach=reach))

    def step(self, problem: Objective, state: BMRMState) -> BMRMState:
        """One pass at the trial point, one quadratic programme."""
        answer = problem.risk(state.trial)
        primal = problem.lam / 2 * problem.inner(state.trial, state.trial) + answer.value
        w, primal = (state.trial, primal) if primal < state.primal else (state.w, state.primal)
        planes = state.planes.add(problem, Plane(answer.offset, answer.vector)).solved(problem.lam)
        lowest = planes.point(problem)
        dual = max(state.dual, problem.dual(lowest, planes.offset))
        reach = self._reach(problem, state, answer)
        trial = lowest if reach == 1.0 else problem.combine((1.0 - reach, reach), (w, lowest))
        planes = planes.pruned(self.patience).merged(problem, self.most_planes)
        least = ROUNDING * (abs(primal) + abs(dual))
        moved = state.primal - primal > least or dual - state.dual > least
        still = 0 if moved else state.still + 1
        return BMRMState(
            w=w, primal=primal, dual=dual, planes=planes, trial=trial, reach=reach, k=state.k + 1, still=still
        )

    def _reach(self, problem: Objective, state: BMRMState, answer: Answer) -> float:
        """The next t: longer if J still fell at the trial point on the way there, shorter if it rose."""
        if self.stabilize == "none":
            return 1.0
        gradient = problem.combine((problem.lam, -1.0), (state.trial, answer.vector))
        slope = problem.inner(gradient, state.trial) - problem.inner(gradient, state.w)
        factor = GROW if slope < 0.0 else SHRINK if slope > 0.0 else 1.0
        return min(max(factor * state.reach, LEAST), MOST)
