"""L-BFGS: a quasi-Newton method on the objective of a CRF, or on the smoothed objective of a max-margin network.

    T > 0:  F(w) = J(w) = lam/2 |w|^2 + T/n sum_i log sum_y exp{ (ell_i(y) - <w, psi_i(y)>)/T }
    T = 0:  F(w) = the same with a fixed mu in place of T; J <= F <= J + mu log|Y|

grad F(w) = lam (w - u) with u = w(alpha), alpha the Gibbs distribution at w: one exp-oracle pass gives F, its gradient
and a dual point. A step goes along -H grad F, where H is the usual low-rank estimate of the inverse Hessian from the
last ``memory`` changes s of w and y of the gradient (two-loop recursion), to a point that satisfies Wolfe's conditions.

Why not SciPy's recursion and line search: they write inner products as dot products, while our weight vectors may be
coefficients in a kernel expansion, where <u, v> is ``problem.inner``; and each trial of the line search is a pass whose
answer we want to keep. The first step of a search tries the length 1, which is nearly always taken: one pass.

Certificates. T > 0: J(w) is known, D(alpha) too, and J(w) - D(alpha) = |grad J(w)|^2 / (2 lam). T = 0: J(w) is unknown
(F(w) bounds it from above) and D(alpha) is a poor bound, because alpha follows a single w. The best mixture of the last
``memory`` alphas and of its own predecessor is much closer. At T = 0 the gap stays at some part of mu log|Y|.

Letters: w, u, alpha, mu, lam as in the paper; s, y, rho as everywhere in the literature on BFGS. Cost per step: one
pass, rarely a few, and 4 to 6 times ``memory`` operations on vectors. Memory: 2 ``memory`` vectors for H and at T = 0
``memory`` more for dual points.

Reference: Liu, Nocedal, "On the limited memory BFGS method for large scale optimization", Mathematical Programming 45,
1989.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from m3n.problem import Objective
from m3n.solvers.base import SOFT, FromWeights, at_least
from m3n.solvers.dual_points import Hull, Point
from m3n.solvers.forms import Weights

ARMIJO, WOLFE = 1e-4, 0.9  # the usual constants: almost any decrease will do, the slope must flatten a little
MOST_TRIALS = 30  # of a line search; halving as often leaves nothing of a step
ROUNDING = 1e-14  # relative error of F, a sum over the data
SHARE = 0.01  # of J(0): the default for mu log|Y|
SOLVED = 1e-8  # of mu log|Y|: closer to the smoothed optimum there is nothing to gain


@dataclass(frozen=True)
class Change:
    """What one step changed: s in w, y in the gradient; rho = 1/<s, y>."""

    s: Weights
    y: Weights
    rho: float


@dataclass(frozen=True)
class Place:
    """What one pass says about weights w."""

    w: Weights
    value: float  # F(w)
    gradient: Weights
    alpha: Point


@dataclass(frozen=True)
class LBFGSState:
    """Where the method stands, what it remembers and the dual points."""

    place: Place
    changes: tuple[Change, ...]
    hull: Hull
    mu: float  # temperature of F
    dual: float = -np.inf
    primal: float = np.nan  # J(w) at T > 0
    gradient_norm: float = np.inf
    steps: int = 0
    exhausted: bool = False  # the line search failed
    solved: bool = False  # up to rounding, or at T = 0 far below the smoothing error

    @property
    def w(self) -> np.ndarray:
        return self.place.w

    @property
    def stalled(self) -> bool:
        """The line search found nothing, or the minimum of F is reached."""
        return self.exhausted or self.solved

    @property
    def metrics(self) -> Mapping[str, float]:
        bound = self.place.value - self.dual
        return {"gradient_norm": self.gradient_norm, "bound": bound, "mu": self.mu, "steps": self.steps}


@dataclass(frozen=True)
class LBFGS(FromWeights[LBFGSState]):
    """L-BFGS for CRFs, and for max-margin networks smoothed with a fixed temperature.

    Parameters
    ----------
    memory : int
        How many changes the estimate of the inverse Hessian remembers; at temperature 0 also how many dual points
        are kept to improve the dual value.
    mu : float or None
        Smoothing at temperature 0, where the gap cannot fall below a part of mu log|Y|; None chooses it so that
        this is 1 % of J(0).
    """

    memory: int = 10
    mu: float | None = None

    requires = SOFT
    requires_smooth = SOFT
    native = "gradient_norm"
    rate = "log(1/eps) for fixed mu"
    rate_smooth = "log(1/eps)"

    def __post_init__(self) -> None:
        at_least(1, memory=self.memory)
        if self.mu is not None and not 0.0 < self.mu < np.inf:
            raise ValueError(f"mu must be positive and finite, got {self.mu}")

    def start_at(self, problem: Objective, w: np.ndarray) -> LBFGSState:
        """Given weights, nothing remembered."""
        mu = self._mu(problem)
        place = _look(problem, w, mu)
        state = LBFGSState(place=place, changes=(), hull=Hull.gold(problem), mu=mu)
        return self._judged(problem, state)

    def step(self, problem: Objective, state: LBFGSState) -> LBFGSState:
        """A direction and a line search along it: one pass, rarely a few."""
        old = state.place
        if state.changes:
            direction = _direction(problem, old.gradient, state.changes)
        else:
            direction = problem.combine([-_first_length(problem, state)], [old.gradient])
        new = _search(problem, old, direction, state.mu)
        if new is None:
            return replace(state, exhausted=True)
        changes = (*state.changes, _change(problem, old, new))[-self.memory :]
        return self._judged(problem, replace(state, place=new, changes=changes, steps=state.steps + 1))

    def _mu(self, problem: Objective) -> float:
        if problem.temperature or self.mu is not None:
            return problem.temperature or float(self.mu or 0.0)
        return SHARE * problem.worst_loss / (problem.log_size or 1.0) or 1.0

    def _judged(self, problem: Objective, state: LBFGSState) -> LBFGSState:
        """The state with its dual value, and whether there is anything left to do."""
        place = state.place
        square = problem.inner(place.gradient, place.gradient)
        left = square / (2.0 * problem.lam)  # F(w) - min F is at most this
        enough = 0.0 if problem.temperature else SOLVED * state.mu * problem.log_size
        hull = state.hull.joined(problem, [place.alpha], 0 if problem.temperature else self.memory)
        return replace(
            state, hull=hull, dual=hull.dual(problem), primal=place.value if problem.temperature else np.nan,
            gradient_norm=float(np.sqrt(square)), solved=left <= max(enough, 1e-16 * abs(place.value)),
        )  # fmt: skip


def _look(problem: Objective, w: np.ndarray, mu: float) -> Place:
    """F, its gradient and the dual point at w: one exp-oracle pass."""
    answer = problem.soft(w, mu)
    gradient = problem.combine((problem.lam, -1.0), (w, answer.vector))
    alpha = Point(problem.combine([1 / problem.lam], [answer.vector]), answer.offset)
    return Place(w, problem.lam / 2 * problem.inner(w, w) + answer.value, gradient, alpha)


def _first_length(problem: Objective, state: LBFGSState) -> float:
    """Where the tangent along the gradient meets the lower bound D; at most 1/lam, the length that leads to u."""
    square = problem.inner(state.place.gradient, state.place.gradient)
    return min((state.place.value - state.dual) / square, 1.0 / problem.lam)


def _direction(problem: Objective, gradient: np.ndarray, changes: Sequence[Change]) -> np.ndarray:
    """-H gradient by the two-loop recursion."""
    q, shares = gradient, []
    for change in reversed(changes):
        shares.append(change.rho * problem.inner(change.s, q))
        q = problem.combine((1.0, -shares[-1]), (q, change.y))
    last = changes[-1]
    q = problem.combine([-1.0 / (last.rho * problem.inner(last.y, last.y))], [q])
    for change, share in zip(changes, reversed(shares), strict=True):
        q = problem.combine((1.0, -share - change.rho * problem.inner(change.y, q)), (q, change.s))
    return q


def _change(problem: Objective, old: Place, new: Place) -> Change:
    """<s, y> is positive, as F is strongly convex."""
    s = problem.combine((1.0, -1.0), (new.w, old.w))
    y = problem.combine((1.0, -1.0), (new.gradient, old.gradient))
    return Change(s, y, 1.0 / problem.inner(s, y))


def _search(problem: Objective, old: Place, direction: np.ndarray, mu: float) -> Place | None:
    """Wolfe's conditions by bracketing; None if there is no descent left that rounding does not hide.

    ``low`` is a step that is too short and ``high`` one that is too long. F is convex, so a secant through the slopes
    aims at the minimum; for a small mu it has kinks, where only halving is sure to shrink the bracket.
    """
    slope = problem.inner(old.gradient, direction)
    low, high, low_slope, step = 0.0, np.inf, slope, 1.0
    for _ in range(MOST_TRIALS if slope < 0.0 else 0):
        new = _look(problem, problem.combine((1.0, step), (old.w, direction)), mu)
        new_slope = problem.inner(new.gradient, direction)
        if not _lower(old, new, step, slope, new_slope):
            high, secant = step, low_slope / (low_slope - new_slope) if new_slope > 0.0 else 0.5
            step = low + (high - low) * min(max(secant, 0.1), 0.5)
        elif new_slope < WOLFE * slope:
            low, low_slope = step, new_slope
            step = 2.0 * step if high == np.inf else (low + high) / 2.0
        else:
            return new
    return None


def _lower(old: Place, new: Place, step: float, slope: float, new_slope: float) -> bool:
    """Armijo's condition; where rounding hides it, the slope decides."""
    if new.value <= old.value + ARMIJO * step * slope:
        return True
    return new.value <= old.value + ROUNDING * abs(old.value) and new_slope <= -WOLFE * slope
