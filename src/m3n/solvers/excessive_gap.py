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

from dataclasses import dataclass, replace

import numpy as np

from m3n.compiled.primitives.simplex import maximize_on_simplex
from m3n.problem import Objective
from m3n.solvers.base import SOFT, Solver
from m3n.solvers.batch_frank_wolfe import BatchFrankWolfe, BatchFrankWolfeState
from m3n.solvers.excessive_gap_state import ExcessiveGapState, holds, smoothed_at, warming
from m3n.solvers.hull import Point, bordered
from m3n.solvers.settings import at_least, one_of

MOST_ANSWERS, LEAST_ANSWERS = 20, 5  # kept oracle answers, unless told
ROOM = 1 << 22  # numbers in their vectors together, 32 MB, unless that means fewer than LEAST_ANSWERS
LEAST_ESTIMATE = 1e-3  # of J(0): no start at a temperature lower than that


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
            scale = self.strength / problem.worst_loss if problem.worst_loss > 0 else 0.0
        start = problem.soft(zero, 1.0, loss_scale=-scale)  # the centre itself: uniform if scale = 0
        if scale:
            diameter = start.value + self.strength
        w = problem.combine([1 / problem.lam], [start.vector])
        lipschitz = ceiling * (1e-3 if self.adaptive else 1.0)  # the search finds about so much less
        template = ExcessiveGapState(
            w=w, mu=lipschitz, smoothed=np.inf, hull=(), gram=np.empty((0, 0)), oracle=Point(w, 0.0), divergence=0.0,
            dual=-np.inf, lipschitz=lipschitz, ceiling=ceiling, scale=scale, log_z=start.value, diameter=diameter,
        )  # fmt: skip
        if self.adaptive and self.warm and problem.worst_loss > 0.0 and diameter > 0.0:
            return warming(template, self._batches(problem).init(problem))
        return self._first(problem, template)

    def step(self, problem: Objective, state: ExcessiveGapState) -> ExcessiveGapState:
        """One exp-oracle pass: an iteration, or a trial that raises the Lipschitz constant and may improve alpha."""
        if state.early is not None:
            return self._warm_step(problem, state, state.early)
        tau = self._tau(state)
        w, mu = self._propose(problem, state, tau)
        smoothed, oracle, divergence = smoothed_at(problem, state, w, mu)
        hull, gram, dual = self._improve(problem, state, oracle, tau)
        if not self.adaptive or holds(smoothed, dual):
            factor = (0.5 if state.searching else self.shrink) if self.adaptive else 1.0
            return replace(
                state, w=w, mu=mu, smoothed=smoothed, hull=hull, gram=gram, oracle=oracle, divergence=divergence,
                dual=dual, lipschitz=state.lipschitz * factor, k=state.k + 1, failed=False,
            )  # fmt: skip
        if dual > state.dual:  # the answer of the undone step still serves
            state = replace(state, hull=hull, gram=gram, dual=dual)
        return self._raised(state, self.grow)

    def _first(self, problem: Objective, state: ExcessiveGapState) -> ExcessiveGapState:
        """The Gibbs distribution at (w_1, mu_1 = L); the adaptive schedule raises L until the invariant holds."""
        while True:
            mu = state.lipschitz
            smoothed, oracle, divergence = smoothed_at(problem, state, state.w, mu)
            hull, gram, dual = self._improve(problem, state, oracle, 1.0)
            state = replace(
                state, mu=mu, smoothed=smoothed, hull=hull, gram=gram, oracle=oracle, divergence=divergence, dual=dual
            )
            if not self.adaptive or holds(smoothed, dual) or state.exhausted:
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
        return warming(state, early)

    def _join(self, problem: Objective, state: ExcessiveGapState, mu: float) -> ExcessiveGapState:
        """The first iterate after warm passes: d is shifted until J_mu(w) <= D(alpha)."""
        smoothed, oracle, divergence = smoothed_at(problem, state, state.w, mu)
        hull, gram, dual = self._improve(problem, state, oracle, 0.0)
        shift = max(0.0, (smoothed - dual) / mu)
        return replace(
            state, mu=mu, smoothed=smoothed - mu * shift, hull=hull, gram=gram, oracle=oracle, dual=dual,
            divergence=divergence + shift, lipschitz=min(mu, state.ceiling), log_z=state.log_z + shift,
            diameter=state.diameter + shift, early=None,
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
        w = problem.combine(coefficients, (state.w, state.hull[0].u, state.oracle.u))
        return w, (1 - tau) * (state.mu - self._spent(state))

    def _spent(self, state: ExcessiveGapState) -> float:
        """By how much mu is lowered on top of the step, never below a quarter."""
        slack = state.dual - state.smoothed
        if not self.adaptive or state.failed or not (slack > 0.0 and state.divergence > 0.0):
            return 0.0
        return min(self.spend * slack / state.divergence, 0.75 * state.mu)

    def _improve(
        self, problem: Objective, state: ExcessiveGapState, oracle: Point, tau: float
    ) -> tuple[tuple[Point, ...], np.ndarray, float]:
        """Algorithm 1, line 7: alpha_{k+1} = (1-tau) alpha + tau alpha~, or a better point of the hull."""
        points = (*state.hull, oracle)
        gram = bordered(state.gram, [problem.inner(oracle.u, p.u) for p in points])
        losses = np.array([p.b for p in points])
        weights = np.zeros(len(points))
        weights[0] = 1 - tau
        weights[-1] += tau
        memory = self._kept(problem)
        if memory:
            maximize_on_simplex(problem.lam * gram, losses, weights)
        alpha = Point(problem.combine(weights, [p.u for p in points]), float(weights @ losses))
        oldest = max(1, len(points) - memory)
        mixing = np.vstack([weights, np.eye(len(points))[oldest:]])  # from the old hull to the new one
        return (alpha, *points[oldest:]), mixing @ gram @ mixing.T, problem.dual(alpha.u, alpha.b)

    def _kept(self, problem: Objective) -> int:
        """How many oracle answers are kept."""
        if not self.adaptive:
            return 0
        fitting = max(LEAST_ANSWERS, min(MOST_ANSWERS, ROOM // max(problem.dim, 1)))
        return fitting if self.memory is None else self.memory
