"""Sparse CRFs: orthant-wise limited-memory quasi-Newton steps for objectives with an l1 term.

    J(w) = F(w) + l1 |w|_1,     F(w) = lam/2 |w|^2 + T/n sum_i log sum_y exp{ (ell_i(y) - <w, psi_i(y)>)/T }

F is smooth, and within an orthant so is J. The steepest way down is against the *pseudo-gradient* g,

    w_k != 0:  g_k = grad_k + l1 sign(w_k);      w_k = 0:  g_k = sign(grad_k) max(|grad_k| - l1, 0),

which is zero exactly at the optimum. A step looks only at the *free* weights, those with w_k != 0 or g_k != 0. Its
direction is d = -H g, where H estimates the inverse Hessian of F on the free weights from the last ``memory`` changes
of w and grad (the rest of these vectors is ignored), without the entries of d that point uphill. Trial points are
w + step d; a weight that would leave the orthant of w (of -g where w_k = 0) becomes zero. The first trial that lowers J
by ``ARMIJO`` times what g promises is taken.

Certificate. The pass that evaluates J(w) also gives a distribution alpha, with v = sum alpha psi = lam w - grad F(w):

    D(alpha) = offset(alpha) - 1/(2 lam) sum_k max(|v_k| - l1, 0)^2

(derivation in ``m3n.problem``; at lam = 0 there is no square, and all |v_k| must be at most l1). A mixture of the share
t of alpha with 1 - t of gold has t v in place of v and, as entropy is concave, an offset of at least t offset(alpha).
The best t in [0, 1] is computed exactly, so every state has a true primal and a true dual value, lam = 0 included.
There the dual value waits for the largest |v_k|: it lags far behind J on large problems, while a lam that is not zero,
however small beside l1, forgives single large entries.

Letters: w, alpha, T, lam as in the paper; g pseudo-gradient, s, y as everywhere in the literature on BFGS. Cost per
step: one pass, rarely a few, and 4 ``memory`` operations on vectors of the free weights. Memory: 2 ``memory`` vectors.

Reference: Andrew, Gao, "Scalable training of L1-regularized log-linear models", ICML 2007. There H is that of all
weights and the direction is cut afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from m3n.problem import Objective
from m3n.solvers.base import SOFT, FromWeights, at_least
from m3n.solvers.forms import Weights

ARMIJO = 1e-4  # the usual constant: almost any decrease will do
MOST_TRIALS = 30  # of a line search; halving as often leaves nothing of a step
ROUNDING = 1e-14  # relative error of J, a sum over the data
CURVED = 1e-12  # of |s| |y|: less curvature than this is rounding


@dataclass(frozen=True)
class Place:
    """What one pass says about weights w."""

    w: Weights
    value: float  # J(w)
    gradient: Weights  # of F
    dual: float


@dataclass(frozen=True)
class OWLQNState:
    """Where the method stands and what it remembers."""

    place: Place
    changes: tuple[tuple[Weights, Weights], ...]  # s and y of the last steps
    pseudo_gradient: Weights
    dual: float  # the best so far
    steps: int = 0
    exhausted: bool = False  # the line search failed

    @property
    def w(self) -> np.ndarray:
        return self.place.w

    @property
    def primal(self) -> float:
        """J(w), known from the pass that found w."""
        return self.place.value

    @property
    def stalled(self) -> bool:
        """The line search found nothing, or only rounding is left."""
        return self.exhausted or self.primal - self.dual <= 1e-15 * abs(self.primal)

    @property
    def metrics(self) -> Mapping[str, float]:
        norm, nonzero = float(np.linalg.norm(self.pseudo_gradient)), int(np.count_nonzero(self.w))
        return {"pseudo_gradient_norm": norm, "nonzero": nonzero, "steps": self.steps}


@dataclass(frozen=True)
class OWLQN(FromWeights[OWLQNState]):
    """Orthant-wise quasi-Newton method for CRFs with an l1 penalty or an elastic net.

    Parameters
    ----------
    memory : int
        How many changes the estimate of the inverse Hessian remembers.
    """

    memory: int = 10

    requires = SOFT
    requires_smooth = SOFT
    native = "pseudo_gradient_norm"
    rate = "none: for CRFs only"
    rate_smooth = "log(1/eps) once the zeros are found"
    takes_l1 = True
    smooth_only = True

    def __post_init__(self) -> None:
        at_least(1, memory=self.memory)

    def start_at(self, problem: Objective, w: np.ndarray) -> OWLQNState:
        """Given weights; a weight that is zero may become nonzero."""
        place = _look(problem, w)
        return OWLQNState(place, (), pseudo_gradient(w, place.gradient, problem.l1), max(place.dual, 0.0))

    def step(self, problem: Objective, state: OWLQNState) -> OWLQNState:
        """A direction and a line search along it: one pass, rarely a few."""
        old, g = state.place, state.pseudo_gradient
        direction = _direction(state)
        if not state.changes:
            direction *= _first_length(problem, state)
        new = _search(problem, old, g, direction)
        if new is None:
            return replace(state, exhausted=True) if not state.changes else replace(state, changes=())
        changes = (*state.changes, (new.w - old.w, new.gradient - old.gradient))[-self.memory :]
        gradient = pseudo_gradient(new.w, new.gradient, problem.l1)
        return OWLQNState(new, changes, gradient, max(state.dual, new.dual), state.steps + 1)


def pseudo_gradient(w: np.ndarray, gradient: np.ndarray, l1: float) -> np.ndarray:
    """The shortest subgradient of J, weight by weight.

    Parameters
    ----------
    w : array (dim,)
        Weights.
    gradient : array (dim,)
        Gradient of F.
    l1 : float
        Weight of the penalty.
    """
    at_zero = gradient - np.clip(gradient, -l1, l1)
    return np.where(w != 0.0, gradient + l1 * np.sign(w), at_zero)


def best_dual(v: np.ndarray, offset: float, lam: float, l1: float) -> float:
    """The largest dual value on the way from gold to alpha, where v = sum alpha psi and ``offset`` = offset(alpha).

    D(t) = t offset - 1/(2 lam) sum_k max(t |v_k| - l1, 0)^2 is concave; its slope is linear between the *bends*
    l1 / |v_k|. Cost: sorting those entries of v that exceed l1.

    Parameters
    ----------
    v : array (dim,)
        sum alpha psi.
    offset : float
        Expected loss plus T times the entropy of alpha.
    lam, l1 : float
        Weights of the regularisers.
    """
    large = np.sort(np.abs(v[np.abs(v) > l1]))[::-1]
    if not len(large):
        return offset
    bends = l1 / large
    if lam == 0.0:
        return float(bends[0] * offset)
    first, second = np.cumsum(large), np.cumsum(large**2)
    slopes = lam * offset + l1 * first - np.append(bends[1:], 1.0) * second  # where every piece ends, times lam
    falling = np.flatnonzero(slopes < 0.0)
    piece = falling[0] if len(falling) else len(large) - 1
    t = min((lam * offset + l1 * first[piece]) / second[piece], 1.0)
    excess = t * large[: piece + 1] - l1
    return float(t * offset - excess @ excess / (2.0 * lam))


def _look(problem: Objective, w: np.ndarray) -> Place:
    """J, the gradient of F and a dual value at w: one exp-oracle pass."""
    answer = problem.risk(w)
    dual = best_dual(answer.vector, answer.offset, problem.lam, problem.l1)
    return Place(w, problem.penalty(w) + answer.value, problem.lam * w - answer.vector, dual)


def _first_length(problem: Objective, state: OWLQNState) -> float:
    """Where the tangent against g meets the lower bound D; at most 1/lam, which is far enough without a risk."""
    g = state.pseudo_gradient
    length = (state.primal - state.dual) / float(g @ g)
    return min(length, 1.0 / problem.lam) if problem.lam else length


def _direction(state: OWLQNState) -> np.ndarray:
    """-H g on the free weights, by the two-loop recursion, without what points uphill."""
    g = state.pseudo_gradient
    free = np.flatnonzero((g != 0.0) | (state.w != 0.0))
    q, used = g[free], []
    for s, y in reversed(state.changes):
        s, y = s[free], y[free]
        curvature = float(s @ y)
        if curvature > CURVED * np.linalg.norm(s) * np.linalg.norm(y):
            share = float(s @ q) / curvature
            q -= share * y
            used.append((s, y, curvature, share))
    if used:
        _, y, curvature, _ = used[0]
        q *= curvature / float(y @ y)
    for s, y, curvature, share in reversed(used):
        q += (share - float(y @ q) / curvature) * s
    direction = np.zeros(len(g))
    direction[free] = np.where(q * g[free] > 0.0, -q, 0.0)
    return direction


def _search(problem: Objective, old: Place, g: np.ndarray, direction: np.ndarray) -> Place | None:
    """The first of the steps 1, 1/2, 1/4, ... that lowers J enough; None if rounding hides all that is left."""
    orthant = np.where(old.w != 0.0, np.sign(old.w), -np.sign(g))
    step = 1.0
    for _ in range(MOST_TRIALS if direction.any() else 0):
        w = old.w + step * direction
        w[w * orthant <= 0.0] = 0.0
        new = _look(problem, w)
        promise = float(g @ (w - old.w))
        if new.value <= old.value + ARMIJO * promise + ROUNDING * abs(old.value):
            return new
        step /= 2.0
    return None
