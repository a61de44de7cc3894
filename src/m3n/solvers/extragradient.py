"""Dual extragradient on the saddle point, with the entropy for alpha and the Euclidean distance for w.

    min_w max_alpha  L(w, alpha) = lam/2 |w|^2 + sum_iy alpha_i(y) { ell_i(y) - <w, psi_i(y)> }

The gradients of L are lam (w - w(alpha)) in w and ell - <w, psi> in alpha. A step from x = (w, alpha) first looks ahead
to z = (w_z, alpha_z), then goes from x along the gradients *at z* to x' = (w', alpha'):

    w_z = w - eta omega lam (w - w(alpha)),        alpha_z  proportional to  alpha exp{ eta (ell - <w, psi>) }
    w'  = w - eta omega lam (w_z - w(alpha_z)),    alpha'   proportional to  alpha exp{ eta (ell - <w_z, psi>) }

The answer is the average of the z. From a uniform start alpha' = exp{ S ell - <sum eta w_z, psi> } with S = sum eta:
gradients add up in the exponent ("dual" extragradient), so alpha is a vector and a number, whatever n and |Y|. The
vector is S times the averaged w.

Step size: with V the distance KL(alpha || alpha') + |w - w'|^2 / (2 omega), the proof asks of a step that

    eta <grad(z) - grad(x), z - x'> <= V(x', z) + V(z, x).

Nothing is clipped in these projections, so the left side is V(z, x') + V(x', z), and the condition says

    V(z, x') <= V(z, x):    z is closer to the new point than to the old one.

All of it follows from the two passes of the step. The condition always holds for eta <= 1/(R sqrt(omega) + lam omega),
R = max |psi|; the search starts there and finds 50 to 250 times more on real data. If it holds in every step,

    J(w_avg) - D(alpha_avg) <= { log|Y| + |w(alpha_avg)|^2 / (2 omega) } / S.

omega balances the two distances: |w*|^2/2 should be about omega log|Y|. As lam/2 |w*|^2 <= J(0), we take a tenth of
J(0)/lam for |w*|^2/2; only the square root of an error in that guess counts.

Free of charge. The second pass of a step is at (S w_avg, S), so it gives J_mu(w_avg) with mu = 1/S, and with it the
bound ``duality_gap`` = J_mu(w_avg) + mu log|Y| - D(alpha_avg) >= J(w_avg) - D(alpha_avg) on what the authors watch.

Beyond the authors. Early alpha are bad, and D is quadratic: they spoil the average for long. A second average gives
step k the weight k^3 or so. The dual point is the best mixture of both averages, of gold and of its own predecessor:
feasible and never worse than alpha_avg (OCR words, lam = 0.01, 300 passes: gap 0.04 instead of 0.15). For w the plain
average was better on real data than w(alpha) of any average and than an average with growing weights.

Cost per step: two exp-oracle passes and O(dim). Memory: O(dim). Letters: eta, omega step size and balance; others as in
the paper.

Reference: Taskar, Lacoste-Julien, Jordan, "Structured Prediction, Dual Extragradient and Bregman Projections", JMLR 7,
2006.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from m3n.problem import Objective
from m3n.solvers.base import SOFT, Solver, UnknownPrimal
from m3n.solvers.dual_points import Gibbs, Hull, Point, mixed
from m3n.solvers.forms import Weights, require

GUESS = 0.1  # |w*|^2 as a share of its bound 2 J(0)/lam
GROWTH = 3  # the recent average gives step k the weight k^GROWTH or so
CAUTION = 0.9  # of the largest step size that the last step would have allowed
FASTEST, USUAL, SLOWEST = 10.0, 1.2, 0.1  # bounds on the change of eta: while searching, after a success, a failure


@dataclass(frozen=True)
class Pair:
    """A point of the saddle: weights and a distribution."""

    w: Weights
    alpha: Gibbs


@dataclass(frozen=True)
class ExtragradientState(UnknownPrimal):
    """The point from which the next step starts, and the averages."""

    here: Pair
    w: Weights  # average of the w_z
    average: Point  # of the alpha_z, with the same weights
    recent: Point  # of the alpha_z, the late ones counting more
    hull: Hull
    dual: float  # D of the best mixture
    duality_gap: float  # J_mu(w) + mu log|Y| - D(average)
    eta: float
    omega: float
    safe: float  # the step size at which the condition always holds
    weight: float = 0.0  # S, the sum of the step sizes
    steps: int = 0
    searching: bool = True  # no step has been refused yet
    exhausted: bool = False  # a step was refused that cannot fail

    @property
    def stalled(self) -> bool:
        """A step failed that theory guarantees, or nothing is left: the rest is rounding."""
        return self.exhausted or self.duality_gap <= 1e-15 * abs(self.dual)

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"duality_gap": self.duality_gap, "eta": self.eta, "steps": self.steps}

    def check(self, problem: Objective) -> None:
        """Refuse what does not fit the problem."""
        lengths = {len(self.average.u), len(self.recent.u)}
        require(lengths == {problem.dim}, "an average has another number of weights")


@dataclass(frozen=True)
class Extragradient(Solver[ExtragradientState]):
    """Dual extragradient method on the saddle point of a max-margin network. It has no settings."""

    requires = SOFT
    any_prox = True
    native = "duality_gap"
    rate = "log|Y| / eps"
    exponent = -1.0

    def init(self, problem: Objective) -> ExtragradientState:
        """w = 0 and the uniform distribution."""
        zero = np.zeros(problem.dim)
        omega = GUESS * problem.worst_loss / problem.lam / (problem.log_size or 1.0) or 1.0
        safe = 1.0 / (problem.radius * np.sqrt(omega) + problem.lam * omega)
        nothing, hull = Point(zero, 0.0), Hull.gold(problem)
        return ExtragradientState(
            here=Pair(zero, Gibbs.at(problem, zero, 0.0)), w=zero, average=nothing, recent=nothing, hull=hull,
            dual=hull.dual(problem), duality_gap=np.inf, eta=safe, omega=omega, safe=safe,
        )  # fmt: skip

    def step(self, problem: Objective, state: ExtragradientState) -> ExtragradientState:
        """Two exp-oracle passes: a step, or one that is refused and shrinks the step size."""
        ahead = _moved(problem, state, state.here)
        there = _moved(problem, state, ahead)
        back, forth = _distance(problem, state, ahead, state.here), _distance(problem, state, ahead, there)
        ratio = back / forth if min(back, forth) > 0.0 else np.inf  # rounding can make them negative
        factor = CAUTION * float(np.sqrt(ratio))  # the ratio falls like eta^2
        if forth > back + there.alpha.rounding:
            exhausted, factor = state.eta <= state.safe, min(max(factor, SLOWEST), 0.5)
            return replace(state, eta=factor * state.eta, searching=False, exhausted=exhausted)
        factor = min(max(factor, 1.0), FASTEST if state.searching else USUAL)
        return replace(_averaged(problem, state, ahead, there), eta=factor * state.eta)


def _moved(problem: Objective, state: ExtragradientState, at: Pair) -> Pair:
    """From here along the gradients at some point: one exp-oracle pass."""
    here, eta = state.here, state.eta
    pull = eta * state.omega * problem.lam
    w = problem.combine((1.0, -pull, pull), (here.w, at.w, at.alpha.u))
    v = problem.combine((1.0, eta), (here.alpha.v, at.w))
    return Pair(w, Gibbs.at(problem, v, here.alpha.c + eta))


def _distance(problem: Objective, state: ExtragradientState, one: Pair, other: Pair) -> float:
    """V = KL + |w - w'|^2 / (2 omega)."""
    change = problem.combine((1.0, -1.0), (one.w, other.w))
    square = problem.inner(change, change) / (2.0 * state.omega)
    return one.alpha.divergence(problem, other.alpha) + square


def _averaged(problem: Objective, state: ExtragradientState, ahead: Pair, there: Pair) -> ExtragradientState:
    """Take z into the averages, and x' for the next start."""
    weight, steps = state.weight + state.eta, state.steps + 1
    new = Point(ahead.alpha.u, ahead.alpha.loss)
    share, late = state.eta / weight, (GROWTH + 1) / (GROWTH + steps)
    average = mixed(problem, (1.0 - share, share), (state.average, new))
    recent = mixed(problem, (1.0 - late, late), (state.recent, new))
    hull = state.hull.joined(problem, (average, recent), memory=0)
    w = problem.combine([1.0 / weight], [there.alpha.v])
    upper = problem.lam / 2 * problem.inner(w, w) + there.alpha.log_z / weight
    return replace(
        state, here=there, w=w, average=average, recent=recent, hull=hull, dual=hull.dual(problem),
        duality_gap=upper - problem.dual(average.u, average.b), weight=weight, steps=steps,
    )  # fmt: skip
