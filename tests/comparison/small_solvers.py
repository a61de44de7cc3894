"""Small solvers to compare: one that is honest, one without a dual, one that breaks, one that lies."""

import time
from dataclasses import dataclass, field, replace

import numpy as np

from m3n.solvers import Solver


@dataclass(frozen=True)
class Iterate:
    w: np.ndarray
    b: float = 0.0
    dual: float = -np.inf
    primal: float = np.nan
    stalled: bool = False
    metrics: dict = field(default_factory=dict)
    k: int = 0


@dataclass(frozen=True)
class FrankWolfe(Solver):
    """Frank-Wolfe on the dual with exact line search."""

    lie: float = 0.0  # added to the dual value

    requires = frozenset({"hard"})
    native = "linearised gap"
    rate = "R^2 / (lam eps)"
    exponent = -1.0

    def init(self, problem):
        return Iterate(np.zeros(problem.dim), dual=0.0, metrics={"linearised gap": np.inf})

    def step(self, problem, state):
        answer = problem.hard(state.w)
        direction = answer.vector / problem.lam - state.w
        slope = answer.loss - state.b - problem.lam * problem.inner(state.w, direction)
        curvature = problem.lam * problem.inner(direction, direction)
        gamma = min(1.0, max(slope, 0.0) / curvature) if curvature > 0 else 0.0
        w, b = state.w + gamma * direction, (1 - gamma) * state.b + gamma * answer.loss
        dual = problem.dual(w, b) + self.lie
        metrics = {"linearised gap": slope, "steps": state.k + 1}
        return Iterate(w, b, dual, stalled=gamma == 0.0, metrics=metrics, k=state.k + 1)


@dataclass(frozen=True)
class Blind(Solver):
    """The subgradient method, which has no dual point; a step may take a while."""

    pause: float = 0.0
    seed: int = 0

    requires = frozenset({"hard"})
    rate = "1 / (lam eps)"
    exponent = -1.0

    def init(self, problem):
        return Iterate(np.zeros(problem.dim))

    def step(self, problem, state):
        time.sleep(self.pause)
        answer, k = problem.hard(state.w), state.k + 1
        return replace(state, w=state.w - (state.w - answer.vector / problem.lam) / k, k=k)


@dataclass(frozen=True)
class Accident(Solver):
    """The subgradient method until something happens in a step."""

    at: int = 20
    raises: type = ZeroDivisionError

    requires = frozenset({"hard"})

    def init(self, problem):
        return Iterate(np.zeros(problem.dim))

    def step(self, problem, state):
        if state.k >= self.at:
            raise self.raises("in step " + str(self.at))
        return Blind().step(problem, state)


class Plain(Solver):
    """A solver that is no dataclass and cannot do anything."""

    requires = frozenset({"soft"})
