"""The excessive gap method with Bregman projections, in the form that needs one exp-oracle pass per iteration.

Keep (w, alpha, mu) with the excessive gap invariant  J_mu(w) <= D(alpha)  while mu -> 0. As J_mu >= J - mu max d, the
duality gap is at most mu max d, where d(alpha) = KL(alpha || q) is the prox-function and q its centre.

The paper's Algorithm 2 infers twice per iteration and stores the marginals of alpha. Its projection step

    alpha~ = V(alpha_mu(w), -tau/((1-tau) mu) grad D(alpha^))

is the Gibbs distribution at the *next* (w, mu), which the next iteration needs anyway, and D sees alpha only through
u = w(alpha) and b = sum ell alpha, which mix linearly. So the state is (w, mu, u, b, s, b_s), where s = w(alpha_mu(w)):

    u^ = (1-tau) u + tau s
    w  = (1-tau) w + tau u^
    mu = (1-tau) mu
    s, b_s, J_mu(w) from one exp-oracle pass
    u  = (1-tau) u + tau s;   b = (1-tau) b + tau b_s;   D = b - lam/2 |u|^2

``schedule="paper"``: mu_1 = L = max|psi|^2/lam and tau_k = 2/(k+3); gap_k <= 6 L log|Y| / ((k+1)(k+2)).

``schedule="adaptive"``: after the pass both sides of the invariant are known, so L is searched instead of bounded: tau
solves tau^2 L = (1-tau) mu; L shrinks after a success; when the invariant fails, the step is undone and L doubles.
The proof lets alpha be replaced by any dual point with a larger D. We take the best convex combination of alpha and the
last ``memory`` oracle answers, a quadratic programme in a handful of variables with no further oracle call; answers of
undone steps serve too.

The hull leaves D(alpha) well above J_mu(w). Part of that slack is spent on a lower temperature: J_mu(w) is convex in mu
with the derivative -d(alpha_mu(w)), which the pass gives away, so the step starts from

    mu - spend (D(alpha) - J_mu(w)) / d(alpha_mu(w))

instead of mu. The theorem does not cover that, the check of the invariant does: after a failure the step is tried again
from mu itself.

``center="gold"``: q_i(y) proportional to exp(-c ell_i(y)) instead of uniform; it only changes the weight of the loss in
the oracle to 1 - c mu. The optimum is close to gold, the uniform distribution far from it.

The start. w_1 = w(q) is far from the optimum, and D(alpha_1) is far below it. So the adaptive schedule begins with
``warm`` passes of ``BatchFrankWolfe`` with the exp-oracle, mu max d = its estimate of the gap. The method goes on from
any (w, alpha, mu) if d is shifted by a constant, which changes neither the oracle's answer nor the proof:

    d <- d + shift,   shift = max(0, (J_mu(w) - D(alpha))/mu)     so that  J_mu(w) <= D(alpha)  with the new d.

Another prox. A structure without a quick exp-oracle may smooth its maximum with a prox of its own on the hull of its
outputs (``Structure.smoothed``). Nothing above needs more of d than strong convexity: the pass is then that oracle, and
wherever log|Y| stands, read the diameter of that prox. J, D and so the certificate are those of the same problem.

Letters: w, u, alpha, mu, tau, lam, b as in the paper; s = w(alpha_mu(w)). Cost per step: one exp-oracle pass and
O(memory x dim). Memory: O(memory x dim), whatever n; a vector for each batch during the warm passes.

Reference: Zhang, Saha, Vishwanathan, "Faster Rates for Training Max-Margin Markov Networks", 2010.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from m3n.problem import Objective
from m3n.solvers.base import SOFT, Solver, UnknownPrimal, at_least, one_of
from m3n.solvers.batch_frank_wolfe import BatchFrankWolfe, BatchFrankWolfeState
from m3n.solvers.dual_points import Hull, Point
from m3n.solvers.forms import Weights, require

MOST_ANSWERS, LEAST_ANSWERS = 20, 5  # kept oracle answers, unless told
ROOM = 1 << 22  # numbers in their vectors together, 32 MB, unless that means fewer than LEAST_ANSWERS
LEAST_ESTIMATE = 1e-3  # of J(0): no start at a temperature lower than that


@dataclass(frozen=True)
class ExcessiveGapState(UnknownPrimal):
    """The iterate (w, alpha, mu) with what the next step needs.

    ``hull`` holds alpha first and then the kept oracle answers; ``oracle`` is the point of alpha_mu(w). While ``early``
    is there the run is still warming up: w, hull and dual are true, mu is infinite.
    """

    w: Weights
    mu: float
    smoothed: float  # J_mu(w)
    hull: Hull
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

    @property
    def holds(self) -> bool:
        """The invariant up to rounding; a wrong verdict slows the method down but cannot harm a certificate."""
        return self.smoothed <= self.dual + 1e-12 * max(1.0, abs(self.dual))

    def check(self, problem: Objective) -> None:
        """Refuse what does not fit the problem."""
        require(len(self.oracle.u) == problem.dim, "the oracle's answer has another number of weights")


@dataclass(frozen=True)
class ExcessiveGap(Solver[ExcessiveGapState]):
    """Excessive gap method: O(1/sqrt(eps)) passes to a duality gap of eps.

    Parameters
    ----------
    schedule : {"adaptive", "paper"}
        Search the Lipschitz constant, or follow the paper's mu_1 and tau_k.
    center : {"gold", "uniform"} or None
        Centre of the prox-function; None means gold for the adaptive schedule, uniform for the paper's.
    strength : float
        How far the gold centre leans towards gold: -log of the worst labelling's weight relative to gold's, in the
        mean over examples.
    memory : int or None
        Oracle answers kept to improve alpha (adaptive schedule only); 0 keeps none. None takes 20, fewer if their
        vectors would need more than 32 MB, but at least 5.
    spend : float
        Share of the slack D(alpha) - J_mu(w) that is spent on a lower mu (adaptive schedule only); 0 spends none.
    radius : float or None
        Bound on max |psi|; None takes the problem's.
    shrink, grow : float
        Factors on the searched Lipschitz constant after a success and after a failure.
    warm : int
        Passes on mini-batches before the first step (adaptive schedule only); 0 starts as the paper does.
    seed : int
        Seed of these mini-batches.
    """

    schedule: str = "adaptive"
    center: str | None = None
    strength: float = 5.0
    memory: int | None = None
    spend: float = 0.3
    radius: float | None = None
    shrink: float = 0.9
    grow: float = 2.0
    warm: int = 5
    seed: int = 0

    requires = SOFT
    any_prox = True
    native = "bound"
    rate = "sqrt(log|Y| / (lam eps))"
    exponent = -2.0

    def __post_init__(self) -> None:
        one_of("adaptive", "paper", schedule=self.schedule)
        one_of("gold", "uniform", None, center=self.center)
        at_least(0, strength=self.strength, memory=self.memory, warm=self.warm)
        if not 0.0 <= self.spend < 1.0:
            raise ValueError(f"spend is a share of the slack, 0 <= spend < 1, got {self.spend}")
        if not 0.0 < self.shrink <= 1.0 < self.grow:
            raise ValueError(f"need 0 < shrink <= 1 < grow, got {self.shrink} and {self.grow}")

    @property
    def adaptive(self) -> bool:
        """Whether the schedule searches."""
        return self.schedule == "adaptive"

    def init(self, problem: Objective) -> ExcessiveGapState:
        """The centre, and a start from it or from gold.

        Without warm passes w_1 = w(alpha_0), where alpha_0 = q is the centre, and alpha_1 = V(alpha_0, -grad
        D(alpha_0)/mu_1) is the Gibbs distribution at (w_1, mu_1).
        """
        radius = problem.radius if self.radius is None else self.radius
        ceiling = radius**2 / problem.lam or 1.0  # with psi = 0 any constant will do
        scale, diameter = 0.0, problem.log_size
        zero = np.zeros(problem.dim)
        if (self.center or ("gold" if self.adaptive else "uniform")) == "gold":
            scale = self.strength / problem.greatest_loss if problem.greatest_loss > 0 else 0.0
        start = problem.soft(problem.tilted(zero, 0.0), 1.0, loss_scale=-scale)  # the centre: uniform if scale = 0
        if scale:
            diameter = start.value + self.strength
        w = problem.combine([1 / problem.lam], [start.vector])
        lipschitz = ceiling * (1e-3 if self.adaptive else 1.0)  # the search finds about so much less
        template = ExcessiveGapState(
            w=w, mu=lipschitz, smoothed=np.inf, hull=Hull((), np.empty((0, 0))), oracle=Point(w, 0.0), divergence=0.0,
            dual=-np.inf, lipschitz=lipschitz, ceiling=ceiling, scale=scale, log_z=start.value, diameter=diameter,
        )  # fmt: skip
        if self.adaptive and self.warm and problem.worst_loss > 0.0 and diameter > 0.0:
            return _warming(template, self._batches(problem).init(problem))
        return self._first(problem, template)

    def step(self, problem: Objective, state: ExcessiveGapState) -> ExcessiveGapState:
        """One exp-oracle pass: an iteration, or a trial that raises the Lipschitz constant and may improve alpha."""
        if state.early is not None:
            return self._warm_step(problem, state, state.early)
        tau = self._tau(state)
        new = self._at(problem, state, *self._propose(problem, state, tau), tau)
        if not self.adaptive or new.holds:
            factor = (0.5 if state.searching else self.shrink) if self.adaptive else 1.0
            return replace(new, lipschitz=state.lipschitz * factor, k=state.k + 1, failed=False)
        if new.dual > state.dual:  # the answer of the undone step still serves
            state = replace(state, hull=new.hull, dual=new.dual)
        return self._raised(state, self.grow)

    def _first(self, problem: Objective, state: ExcessiveGapState) -> ExcessiveGapState:
        """The Gibbs distribution at (w_1, mu_1 = L); the adaptive schedule raises L until the invariant holds."""
        while True:
            state = self._at(problem, state, state.w, state.lipschitz, 1.0)
            if not self.adaptive or state.holds or state.exhausted:
                return replace(state, failed=False)
            state = self._raised(state, 4.0)

    def _batches(self, problem: Objective) -> BatchFrankWolfe:
        """The solver of the warm passes, whose hull becomes ours."""
        return BatchFrankWolfe(memory=max(1, self._kept(problem)), seed=self.seed)

    def _warm_step(
        self, problem: Objective, state: ExcessiveGapState, early: BatchFrankWolfeState
    ) -> ExcessiveGapState:
        """A warm pass, or after the last one the pass that makes an iterate with the invariant of where it ended."""
        estimate = min(max(early.estimate, LEAST_ESTIMATE * problem.worst_loss), problem.worst_loss)
        mu = estimate / state.diameter
        if early.passes >= self.warm:
            return self._join(problem, state, mu)
        blocks = problem.cut(len(early.shares), self.seed)
        early = self._batches(problem).visit_all(problem, early, lambda j, w: problem.soft(w, mu, blocks[j]))
        return _warming(state, early)

    def _join(self, problem: Objective, state: ExcessiveGapState, mu: float) -> ExcessiveGapState:
        """The first iterate after warm passes: d is shifted until J_mu(w) <= D(alpha)."""
        new = self._at(problem, state, state.w, mu, 0.0)
        shift = max(0.0, (new.smoothed - new.dual) / mu)
        return replace(
            new, smoothed=new.smoothed - mu * shift, divergence=new.divergence + shift,
            lipschitz=min(mu, state.ceiling), log_z=state.log_z + shift, diameter=state.diameter + shift, early=None,
        )  # fmt: skip

    def _raised(self, state: ExcessiveGapState, factor: float) -> ExcessiveGapState:
        """After a failure: a larger L, at most the ceiling, beyond which there is nothing to search."""
        exhausted = state.failed and state.lipschitz >= state.ceiling  # the first failure may be that of spent slack
        lipschitz = min(factor * state.lipschitz, state.ceiling)
        return replace(state, lipschitz=lipschitz, searching=False, failed=True, exhausted=exhausted)

    def _tau(self, state: ExcessiveGapState) -> float:
        """The paper's 2/(k+3), or the root of tau^2 L = (1 - tau) mu."""
        if not self.adaptive:
            return 2.0 / (state.k + 3)
        ratio = state.mu / state.lipschitz
        return float(2.0 / (1.0 + np.sqrt(1.0 + 4.0 / ratio)))

    def _propose(self, problem: Objective, state: ExcessiveGapState, tau: float) -> tuple[np.ndarray, float]:
        """Algorithm 1, lines 4, 5 and 8: w_{k+1} = (1-tau) w + tau u^ with u^ = (1-tau) u + tau s, and mu_{k+1}."""
        coefficients = (1 - tau, tau * (1 - tau), tau * tau)
        w = problem.combine(coefficients, (state.w, state.hull.points[0].u, state.oracle.u))
        return w, (1 - tau) * (state.mu - self._spent(state))

    def _spent(self, state: ExcessiveGapState) -> float:
        """By how much mu is lowered on top of the step, never below a quarter."""
        slack = state.dual - state.smoothed
        if not self.adaptive or state.failed or not (slack > 0.0 and state.divergence > 0.0):
            return 0.0
        return min(self.spend * slack / state.divergence, 0.75 * state.mu)

    def _at(
        self, problem: Objective, state: ExcessiveGapState, w: np.ndarray, mu: float, tau: float
    ) -> ExcessiveGapState:
        """The state at (w, mu) after one exp-oracle pass, with  J_mu(w) = lam/2 |w|^2 + E[ell - <w, psi>] - mu d."""
        answer = problem.soft(w, mu, loss_scale=1.0 - mu * state.scale)
        risk = answer.value - mu * state.log_z
        oracle = Point(problem.combine([1 / problem.lam], [answer.vector]), answer.loss)
        hull = self._improved(problem, state.hull, oracle, tau)
        return replace(
            state, w=w, mu=mu, smoothed=problem.lam / 2 * problem.inner(w, w) + risk, oracle=oracle, hull=hull,
            divergence=(answer.loss - problem.inner(w, answer.vector) - risk) / mu, dual=hull.dual(problem),
        )  # fmt: skip

    def _improved(self, problem: Objective, hull: Hull, oracle: Point, tau: float) -> Hull:
        """Algorithm 1, line 7: alpha_{k+1} = (1-tau) alpha + tau alpha~, or a better point of the hull."""
        wider, memory = hull.with_points(problem, [oracle]), self._kept(problem)
        weights = np.zeros(len(wider.points))
        weights[0] = 1 - tau
        weights[-1] += tau
        weights = wider.best_weights(problem, weights) if memory else weights
        u, losses = problem.combine(weights, [p.u for p in wider.points]), [p.b for p in wider.points]
        return wider.with_first(Point(u, float(weights @ np.array(losses))), weights, memory)

    def _kept(self, problem: Objective) -> int:
        """How many oracle answers are kept."""
        if not self.adaptive:
            return 0
        fitting = max(LEAST_ANSWERS, min(MOST_ANSWERS, ROOM // max(problem.dim, 1)))
        return fitting if self.memory is None else self.memory


def _warming(state: ExcessiveGapState, early: BatchFrankWolfeState) -> ExcessiveGapState:
    """What the warm passes know so far."""
    return replace(state, w=early.w, mu=np.inf, smoothed=np.inf, hull=early.hull, dual=early.dual, early=early)
