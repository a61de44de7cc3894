"""Excessive gap minimisation of a saddle point given by its maps: the paper's Algorithm 1.

Problem, with f rho-strongly convex, g convex with an L_g-Lipschitz gradient, Q convex and compact:

    primal   J(w)     = f(w) + max_{alpha in Q} { <A w, alpha> - g(alpha) }          -> min
    dual     D(alpha) = -g(alpha) - f*(-A^T alpha)                                   -> max over Q
    maps     w(alpha)      = argmax_w { <-A w, alpha> - f(w) } = grad f*(-A^T alpha)
             alpha_mu(w)   = argmax_{alpha in Q} { <A w, alpha> - g(alpha) - mu d(alpha) }
             grad D(alpha) = A w(alpha) - grad g(alpha),  Lipschitz with  L = |A|^2 / rho + L_g
             V(alpha, v)   = argmin_{a in Q} { d(a) - <grad d(alpha) - v, a> }

d is a prox-function: sigma-strongly convex on Q, min d = d(alpha_0) = 0. Norms: that of alpha is the one in
which d is sigma-strongly convex, that of w the one in which f is rho-strongly convex, and
|A| = max { <A w, alpha> : |w| = |alpha| = 1 }. J_mu is J with g + mu d for g:  J - mu max d <= J_mu <= J.

Start and update. Every iterate keeps the *excessive gap*  J_mu(w) <= D(alpha):

    mu = L/sigma;   w = w(alpha_0);   alpha = V(alpha_0, -grad D(alpha_0) / mu)
    beta   = alpha_mu(w)
    alpha^ = (1 - tau) alpha + tau beta
    w      = (1 - tau) w + tau w(alpha^)
    mu     = (1 - tau) mu
    alpha  = (1 - tau) alpha + tau V(beta, -tau / mu grad D(alpha^))

All that the proof asks of tau is  tau^2 L <= sigma mu  for the new mu. Schedules:

    "paper"     tau_k = 2/(k+3), hence  mu_k = 6 L / (sigma (k+1) (k+2))
    "adaptive"  tau^2 L^ = sigma (1 - tau) mu  with an estimate L^ <= L that shrinks after every step;
                a step that breaks J_mu(w) <= D(alpha) is redone with twice the L^

Rate: J(w_k) - D(alpha_k) <= mu_k max d: a gap of eps takes O(sqrt(L max d / (sigma eps))) iterations.
Cost of an iteration: each map once (a redone step repeats all but alpha_mu), then J and D for the gap.

Names: `weights` w(.), `smoothed` alpha_mu(.), `project` V, `center` alpha_0, `lipschitz` L, `convexity`
sigma, `diameter` max d (the paper's D without argument), `alpha_hat` alpha^, `alpha_tilde` V(...),
`estimate` L^.

Reference: Zhang, Saha, Vishwanathan, "Faster Rates for Training Max-Margin Markov Networks", 2010, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from m3n.run.steps import repeat

Point: TypeAlias = Any  # needs only  point + point  and  float * point

SCHEDULES = ("paper", "adaptive")
SHRINK = 0.9  # of L^ after a good step: seven of them earn back a doubling, which costs a step
FLOOR = 2.0**-52  # least L^ / L: where D is linear every L^ would do, and mu would underflow
ROUNDING = 1e-13  # relative error allowed to J_mu and D: hundreds of units in the last place, for long sums
CONTRADICTION = 1e-8  # relative size of a negative gap that rounding does not explain


@dataclass(frozen=True, kw_only=True)
class SaddlePoint:
    """The problem  min_w f(w) + max_{alpha in Q} <A w, alpha> - g(alpha),  given by its maps.

    Points (w and alpha) may be of any type with ``point + point`` and ``float * point``.

    Parameters
    ----------
    primal : callable
        w -> J(w).
    dual : callable
        alpha -> D(alpha).
    dual_gradient : callable
        alpha -> grad D(alpha).
    weights : callable
        alpha -> w(alpha), the minimiser of f(w) + <A w, alpha>.
    smoothed : callable
        (w, mu) -> alpha_mu(w), the maximiser of <A w, alpha> - g(alpha) - mu d(alpha) over Q.
    project : callable
        (alpha, v) -> V(alpha, v), the minimiser of d(a) - <grad d(alpha) - v, a> over a in Q.
    center : point
        alpha_0, the minimiser of d over Q.
    lipschitz : float
        L, a Lipschitz constant of grad D in the norm in which d is strongly convex. Too large is slow; too
        small voids the bound (never the gap, which comes from J and D themselves).
    diameter : float
        Maximum of d over Q, possibly infinite; only the bound mu * diameter uses it.
    convexity : float
        sigma, the modulus of strong convexity of d.
    smoothed_primal : callable or None
        (w, mu) -> J_mu(w); the adaptive schedule needs it.
    """

    primal: Callable[[Point], float]
    dual: Callable[[Point], float]
    dual_gradient: Callable[[Point], Point]
    weights: Callable[[Point], Point]
    smoothed: Callable[[Point, float], Point]
    project: Callable[[Point, Point], Point]
    center: Point
    lipschitz: float
    diameter: float
    convexity: float = 1.0
    smoothed_primal: Callable[[Point, float], float] | None = None

    def __post_init__(self) -> None:
        _require_positive("lipschitz", self.lipschitz)
        _require_positive("convexity", self.convexity)
        if not self.diameter >= 0.0:
            raise ValueError(f"diameter is the maximum of d >= 0 and cannot be {self.diameter!r}")


@dataclass(frozen=True)
class SaddleState:
    """The k-th iterate, k = 1, 2, ..., with J_mu(w) <= D(alpha)."""

    k: int
    mu: float
    tau: float  # of the step that led here; 1 at the start
    w: Point
    alpha: Point
    redone: int = 0  # steps that the adaptive schedule has thrown away so far


@dataclass(frozen=True)
class SaddleRecord:
    """What is certified after k iterations: the best primal and dual values so far."""

    k: int
    mu: float
    primal: float
    dual: float
    bound: float  # mu * diameter, what the theorem promises for the gap

    @property
    def gap(self) -> float:
        """Duality gap; never negative, though rounding can leave the dual a little above the primal."""
        return max(self.primal - self.dual, 0.0)


class SaddleStatus(StrEnum):
    """Why a run stopped."""

    TOLERANCE = "tolerance reached"
    ITERATIONS = "iteration limit"


@dataclass(frozen=True)
class SaddleResult:
    """The best w and the best alpha of a run; both are within `gap` of the optimal value."""

    w: Point
    alpha: Point
    primal: float
    dual: float
    mu: float
    iterations: int
    bound: float  # mu * diameter
    status: SaddleStatus
    trace: tuple[SaddleRecord, ...]
    redone: int = 0  # steps thrown away by the adaptive schedule, on top of `iterations`

    @property
    def gap(self) -> float:
        """Duality gap of w and alpha."""
        return self.trace[-1].gap


def excessive_gap(
    saddle: SaddlePoint,
    *,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    schedule: str = "paper",
    callback: Callable[[SaddleRecord], object] | None = None,
) -> SaddleResult:
    """Minimise J and maximise D until their difference is at most `tol`.

    Parameters
    ----------
    saddle : SaddlePoint
        The problem.
    tol : float
        Duality gap J(w) - D(alpha), absolute, at which to stop.
    max_iter : int
        Iterates to compute at most, the start included.
    schedule : {"paper", "adaptive"}
        "paper" takes tau = 2/(k+3); "adaptive" searches for a Lipschitz constant below `saddle.lipschitz`,
        usually needs far fewer iterations, and needs `saddle.smoothed_primal`.
    callback : callable or None
        Called with the SaddleRecord of every iteration.

    Returns
    -------
    SaddleResult
        The best w and the best alpha seen, their values and the trace.
    """
    _require_positive("tol", tol)
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter!r}")
    run = _SaddleRun(saddle, iterate(saddle, schedule), tol, max_iter, callback)
    run.step()
    return run.result(repeat(run.step, run.reason_to_stop))


@dataclass
class _SaddleRun:
    """The best w and the best alpha so far."""

    saddle: SaddlePoint
    states: Iterator[SaddleState]
    tol: float
    max_iter: int
    callback: Callable[[SaddleRecord], object] | None
    w: Point = None
    alpha: Point = None
    primal: float = math.inf
    dual: float = -math.inf
    trace: list[SaddleRecord] = field(default_factory=list)

    def step(self) -> None:
        """One more iterate, what it certifies, and a word to the callback."""
        state = self.state = next(self.states)
        primal, dual = float(self.saddle.primal(state.w)), float(self.saddle.dual(state.alpha))
        if self.w is None or primal < self.primal:
            self.w, self.primal = state.w, primal
        if self.alpha is None or dual > self.dual:
            self.alpha, self.dual = state.alpha, dual
        bound = float(state.mu * self.saddle.diameter)
        record = SaddleRecord(k=state.k, mu=state.mu, primal=self.primal, dual=self.dual, bound=bound)
        _require_weak_duality(record, primal, dual, self.tol)
        self.trace.append(record)
        if self.callback is not None:
            self.callback(record)

    def reason_to_stop(self) -> SaddleStatus | None:
        """The tolerance, or the number of iterates."""
        if self.trace[-1].gap <= self.tol:
            return SaddleStatus.TOLERANCE
        return SaddleStatus.ITERATIONS if self.state.k >= self.max_iter else None

    def result(self, status: SaddleStatus) -> SaddleResult:
        """What is returned."""
        last = self.trace[-1]
        return SaddleResult(
            w=self.w, alpha=self.alpha, primal=self.primal, dual=self.dual, mu=last.mu, iterations=last.k,
            bound=last.bound, status=status, trace=tuple(self.trace), redone=self.state.redone,
        )  # fmt: skip


def iterate(saddle: SaddlePoint, schedule: str = "paper") -> Iterator[SaddleState]:
    """Iterates of Algorithm 1, without end: the start, then one state per step.

    Parameters
    ----------
    saddle : SaddlePoint
        The problem.
    schedule : {"paper", "adaptive"}
        How tau is chosen.
    """
    if schedule not in SCHEDULES:
        raise ValueError(f"unknown schedule {schedule!r}; choose one of {', '.join(map(repr, SCHEDULES))}")
    if schedule == "adaptive" and saddle.smoothed_primal is None:
        raise ValueError("schedule='adaptive' checks J_mu(w) <= D(alpha): give SaddlePoint a smoothed_primal")
    return _states(saddle, schedule == "adaptive")


def _states(saddle: SaddlePoint, adaptive: bool) -> Iterator[SaddleState]:
    state, estimate = _start(saddle), saddle.lipschitz
    while True:
        yield state
        beta = saddle.smoothed(state.w, state.mu)
        if adaptive:
            state, estimate = _search(saddle, state, beta, estimate)
            estimate = max(SHRINK * estimate, FLOOR * saddle.lipschitz)
        else:
            state = _step(saddle, state, beta, tau=2.0 / (state.k + 3))


def _start(saddle: SaddlePoint) -> SaddleState:
    mu = float(saddle.lipschitz / saddle.convexity)
    alpha = saddle.project(saddle.center, (-1.0 / mu) * saddle.dual_gradient(saddle.center))
    return SaddleState(1, mu, 1.0, saddle.weights(saddle.center), alpha)


def _step(saddle: SaddlePoint, state: SaddleState, beta: Point, tau: float, redone: int = 0) -> SaddleState:
    """The body of Algorithm 1's loop; beta = alpha_mu(w) of the state."""
    mu = (1.0 - tau) * state.mu
    alpha_hat = _mix(state.alpha, beta, tau)
    w = _mix(state.w, saddle.weights(alpha_hat), tau)
    alpha_tilde = saddle.project(beta, (-tau / mu) * saddle.dual_gradient(alpha_hat))
    return SaddleState(state.k + 1, mu, tau, w, _mix(state.alpha, alpha_tilde, tau), state.redone + redone)


def _search(saddle: SaddlePoint, state: SaddleState, beta: Point, estimate: float) -> tuple[SaddleState, float]:
    """Step with the first L^ of estimate, 2 estimate, 4 estimate, ..., L that keeps the invariant.

    L itself goes unchecked: the theorem vouches for it, and so the search ends whatever rounding does.
    """
    redone = 0
    while True:
        tau = _mixing_weight(saddle.convexity * state.mu / estimate)
        new = _step(saddle, state, beta, tau, redone)
        if estimate >= saddle.lipschitz or _keeps_invariant(saddle, new):
            return new, estimate
        estimate, redone = min(2.0 * estimate, saddle.lipschitz), redone + 1


def _mixing_weight(ratio: float) -> float:
    """The root in (0, 1) of  tau^2 = (1 - tau) ratio,  in a form without cancellation."""
    return 2.0 / (1.0 + math.sqrt(1.0 + 4.0 / ratio))


def _keeps_invariant(saddle: SaddlePoint, state: SaddleState) -> bool:
    assert saddle.smoothed_primal is not None  # iterate() has refused otherwise
    smoothed, dual = saddle.smoothed_primal(state.w, state.mu), saddle.dual(state.alpha)
    return bool(smoothed <= dual + ROUNDING * (abs(smoothed) + abs(dual)))


def _mix(old: Point, new: Point, tau: float) -> Point:
    return (1.0 - tau) * old + tau * new


def _require_positive(name: str, value: float) -> None:
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value!r}")


def _require_weak_duality(record: SaddleRecord, primal: float, dual: float, tol: float) -> None:
    """Refuse nan, and a dual value above a primal one: such maps do not belong to one problem."""
    error = max(tol, CONTRADICTION * (abs(record.primal) + abs(record.dual)))
    if math.isnan(primal - dual) or record.dual - record.primal > error:
        raise ValueError(
            f"primal and dual contradict weak duality at iteration {record.k}: J(w) = {primal}, "
            f"D(alpha) = {dual}, least J = {record.primal}, greatest D = {record.dual}; "
            "check the maps of SaddlePoint"
        )
