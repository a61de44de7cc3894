"""The iterate of the excessive gap method, and how the exp-oracle evaluates one; ``excessive_gap`` has the formulas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from m3n.problem import Objective
from m3n.solvers.base import UnknownPrimal
from m3n.solvers.batch_frank_wolfe import BatchFrankWolfeState
from m3n.solvers.forms import Square, Weights, require
from m3n.solvers.hull import Point, check_points


@dataclass(frozen=True)
class ExcessiveGapState(UnknownPrimal):
    """The iterate (w, alpha, mu) with what the next step needs.

    ``hull`` holds alpha first and then the kept oracle answers, ``gram`` their inner products; ``oracle`` is the point
    of alpha_mu(w). While ``early`` is there the run is still warming up: w, hull and dual are true, mu is infinite.
    """

    w: Weights
    mu: float
    smoothed: float  # J_mu(w)
    hull: tuple[Point, ...]
    gram: Square
    oracle: Point
    divergence: float  # d(alpha_mu(w)): KL(alpha_mu(w) || q) plus the shift of d
    dual: float  # D(alpha)
    lipschitz: float  # L, searched or bounded
    ceiling: float  # max|psi|^2/lam, with which the theorem guarantees every step
    k: int = 1
    searching: bool = True  # no step has failed yet
    failed: bool = False  # the last trial failed
    exhausted: bool = False  # a step failed that the theorem guarantees
    scale: float = 0.0  # the centre is exp(-scale * ell)
    log_z: float = 0.0  # mean log of the centre's normaliser, plus the shift of d
    diameter: float = 0.0  # max d
    early: BatchFrankWolfeState | None = None  # the warm passes' state

    @property
    def stalled(self) -> bool:
        """A step failed that the theorem guarantees, or mu is lost in J: what is left is rounding."""
        return self.exhausted or self.mu * self.diameter < 1e-16 * abs(self.dual)

    @property
    def bound(self) -> float:
        """J_mu(w) + mu max d - D(alpha) >= J(w) - D(alpha), without a max-oracle pass; infinite while warming up."""
        return self.smoothed + self.mu * self.diameter - self.dual

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"mu": self.mu, "lipschitz": self.lipschitz, "steps": self.k, "bound": self.bound}

    def check(self, problem: Objective) -> None:
        """Refuse what does not fit the problem."""
        check_points(problem, self.hull, self.gram)
        require(len(self.oracle.u) == problem.dim, "the oracle's answer has another number of weights")


def warming(state: ExcessiveGapState, early: BatchFrankWolfeState) -> ExcessiveGapState:
    """What the warm passes know so far."""
    hull = early.hull
    return replace(
        state, w=early.w, mu=np.inf, smoothed=np.inf, hull=hull.points, gram=hull.gram, dual=early.dual, early=early
    )


def smoothed_at(problem: Objective, state: ExcessiveGapState, w: np.ndarray, mu: float) -> tuple[float, Point, float]:
    """J_mu(w), the point of alpha_mu(w) and d(alpha_mu(w)), from  risk = E[ell - <w, psi>] - mu d."""
    answer = problem.soft(w, mu, loss_scale=1.0 - mu * state.scale)
    risk = answer.value - mu * state.log_z
    divergence = (answer.loss - problem.inner(w, answer.vector) - risk) / mu
    point = Point(problem.combine([1 / problem.lam], [answer.vector]), answer.loss)
    return problem.lam / 2 * problem.inner(w, w) + risk, point, divergence


def holds(smoothed: float, dual: float) -> bool:
    """The invariant up to rounding; a wrong verdict slows the method down but cannot harm a certificate."""
    return smoothed <= dual + 1e-12 * max(1.0, abs(dual))
