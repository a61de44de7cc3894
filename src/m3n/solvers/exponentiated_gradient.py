"""Exponentiated gradient: ascent on the dual whose steps multiply alpha by exponentials of the gradient.

The batch algorithm of the reference. The gradient of D at alpha, with u = w(alpha), is

    g_i(y) = ell_i(y) - <u, psi_i(y)> - T (1 + log{ n alpha_i(y) }).

The factor 1/n is in alpha (its weights sum to 1/n per example), so n does not appear in g. The update, n alpha_i
proportional to n alpha_i exp(eta g_i), is the maximiser of <g, alpha> - KL/eta. All alpha that occur are Gibbs
distributions exp{ c ell - <v, psi> } with one v and one c for all examples; as log alpha = c ell - <v, psi> up to a
constant per example, the update is

    v <- (1 - eta T) v + eta u,      c <- (1 - eta T) c + eta,

one exp-oracle pass to find the new u, and O(dim) memory.

Step size: the authors halve eta until D increases and enlarge it a little after a success. We ask for a bit more,

    lam/2 |u' - u|^2 <= (1/eta - T) KL(alpha' || alpha).                                                       (*)

D is quadratic plus an entropy, so D(alpha') - D(alpha) equals (KL(alpha' || alpha) + KL(alpha || alpha')) / eta minus
lam/2 |u' - u|^2 + T KL(alpha' || alpha). Hence (*) makes D rise by at least KL(alpha || alpha')/eta; it always holds
for eta <= 1/(R^2/lam + T), R = max |psi|; and summed over the steps it bounds the duality gap at T = 0:

    w = sum eta_k u_k / sum eta_k = v / sum eta_k:      J(w) - D(alpha) <= max_a KL(a || alpha_0) / sum eta_k.

So the weights to certify are this average. On real data it was better than w(alpha) (OCR words, lam = 0.01, 1000
passes: gap 0.31 against 0.53), and (*) was no slower than the authors' condition. The same pass gives an upper bound of
J(w), because log sum exp is above the maximum.

At T > 0 we start from c = 1/T, which the update keeps. Then alpha is the Gibbs distribution of w = T v at temperature T
itself: J(w) comes with the pass, the certificate is free, and w <- w - eta T/lam grad J(w) is gradient descent.

``strength``: at T = 0 the start is proportional to exp(-scale ell), between uniform (0) and gold. The uniform start has
a dual value far below zero and needs many passes to come back; a start close to gold is slow later.

Cost per step: one exp-oracle pass, also for a step that is refused.

The online (randomised) form, ``online=True``, takes one example at a time. Every example keeps potentials of its own,
the factored form of alpha_i, and a step size eta_i that is halved when a step would lower D and grows otherwise
(formulas in ``sweeps.exponentiated``). The start leans towards gold: D is about 0 there and far below at the uniform
distribution. The weights to certify are, at temperature 0, an average of w(alpha) over the passes with weights
1, 2, 3, ..., which is steadier than the last iterate; at a positive temperature, where convergence is linear, w(alpha)
itself. The dual point is alpha. Cost per pass: n exp-oracle calls and those of the steps that had to be tried again.
Memory: potentials and marginals of all parts of all examples, O(n (length x labels + labels^2)) for chains.

Letters: eta step size, v and c the exponents of alpha, T temperature, others as in the paper.

Reference: Collins, Globerson, Koo, Carreras, Bartlett, "Exponentiated Gradient Algorithms for Conditional Random Fields
and Max-Margin Markov Networks", JMLR 9, 2008; the online form in section 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from m3n.compiled.sweeps.exponentiated import Potentials, sweep
from m3n.problem import Objective, Problem
from m3n.solvers.base import SOFT, NeverStalls, Solver, UnknownPrimal, at_least, copied, parts_of_all
from m3n.solvers.dual_points import Gibbs, check_potentials, dual_value, filled, leaning, starts_of
from m3n.solvers.forms import Weights

LEAN = 4.0  # online: log-odds of gold's label against all others together, at the start, position by position


@dataclass(frozen=True)
class ExponentiatedGradientState:
    """alpha as a Gibbs distribution, the weights to certify and the step size."""

    w: Weights
    primal: float
    alpha: Gibbs
    dual: float  # D(alpha)
    eta: float
    safe: float  # the step size at which (*) always holds
    strength: float  # -c of the start times J(0)
    weight: float = 0.0  # sum of the step sizes
    upper: float = np.inf  # on J(w)
    steps: int = 0
    searching: bool = True  # no step has been refused yet
    exhausted: bool = False  # a step was refused that cannot fail

    @property
    def stalled(self) -> bool:
        """A step failed that theory guarantees, or nothing is left: the rest is rounding."""
        return self.exhausted or self.upper - self.dual <= 1e-15 * abs(self.dual)

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"dual": self.dual, "eta": self.eta, "steps": self.steps, "bound": self.upper - self.dual}


@dataclass(frozen=True)
class OnlineState(UnknownPrimal, NeverStalls):
    """The online form: alpha as potentials of every example, with w(alpha) and the average."""

    u: Weights  # w(alpha)
    w: Weights  # what to certify: u, or its average over passes
    potentials: Annotated[Potentials, check_potentials]
    dual: float
    passes: int = 0

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"dual": self.dual, "eta": float(np.median(self.potentials.eta)), "steps": self.passes}


@dataclass(frozen=True)
class ExponentiatedGradient(Solver[ExponentiatedGradientState | OnlineState]):
    """Exponentiated gradient ascent on the dual, for max-margin networks and CRFs.

    Parameters
    ----------
    online : bool
        Take one example at a time in random order, each with a step size of its own: far fewer passes, and memory for
        potentials of every example. The other settings but ``seed`` are those of the batch algorithm.
    seed : int
        Seed of the order of the examples.
    strength : float or None
        How far the start leans towards gold at temperature 0: -log of the worst labelling's weight relative to gold's,
        in the mean over examples. 0 is uniform; None means half of log|Y|.
    shrink, grow : float
        Factors on the step size after a refused step and after a success; it doubles until the first refusal.
    """

    online: bool = False
    seed: int = 0
    strength: float | None = None
    shrink: float = 0.5
    grow: float = 1.05

    requires = SOFT
    requires_smooth = SOFT
    native = "dual"
    rate = "log|Y| / (lam eps)"
    rate_smooth = "log(1/eps) / lam"
    exponent = -1.0

    def __post_init__(self) -> None:
        at_least(0, strength=self.strength)
        if not 0.0 < self.shrink < 1.0 <= self.grow:
            raise ValueError(f"need 0 < shrink < 1 <= grow, got {self.shrink} and {self.grow}")

    @property
    def visits(self) -> bool:  # type: ignore[override]
        """With some settings."""
        return self.online

    @property
    def any_prox(self) -> bool:  # type: ignore[override]
        """The online form keeps distributions of examples by their potentials."""
        return not self.online

    def footprint(self, problem: Any) -> float:
        """The online form: potentials and marginals."""
        return 16.0 * parts_of_all(problem) if self.online else 0.0

    def init(self, problem: Any) -> ExponentiatedGradientState | OnlineState:
        """The starting distribution, and a step size that cannot fail."""
        if self.online:
            return _online_init(problem)
        zero, heat = np.zeros(problem.dim), problem.temperature
        strength = 0.0 if heat else self._strength(problem)
        alpha = Gibbs.at(problem, zero, 1.0 / heat if heat else -strength / (problem.worst_loss or 1.0))
        safe = 1.0 / (problem.radius**2 / problem.lam + heat or 1.0)  # with psi = 0 any size will do
        dual = problem.dual(alpha.u, alpha.offset)
        first = ExponentiatedGradientState(
            w=zero, primal=np.nan, alpha=alpha, dual=dual, eta=safe, safe=safe, strength=strength
        )
        return _with_weights(problem, first)

    def step(
        self, problem: Any, state: ExponentiatedGradientState | OnlineState
    ) -> ExponentiatedGradientState | OnlineState:
        """One exp-oracle pass: a step, or one that is refused and halves the step size."""
        if isinstance(state, OnlineState):
            return _online_step(problem, state, self.seed)
        alpha = batch_update(problem, state.alpha, state.eta)
        if not _rises_enough(problem, state.alpha, alpha, state.eta):
            exhausted = state.eta <= state.safe
            return replace(state, eta=state.eta * self.shrink, searching=False, exhausted=exhausted)
        moved = replace(
            state, alpha=alpha, dual=problem.dual(alpha.u, alpha.offset), weight=state.weight + state.eta,
            eta=state.eta * (2.0 if state.searching else self.grow), steps=state.steps + 1,
        )  # fmt: skip
        return _with_weights(problem, moved)

    def _strength(self, problem: Objective) -> float:
        if problem.worst_loss == 0.0:
            return 0.0  # without a loss there is nothing to lean on
        return problem.log_size / 2 if self.strength is None else self.strength


def batch_update(problem: Objective, alpha: Gibbs, eta: float) -> Gibbs:
    """alpha times exp(eta g), for all examples at once: one exp-oracle pass."""
    keep = 1.0 - eta * problem.temperature
    return Gibbs.at(problem, problem.combine((keep, eta), (alpha.v, alpha.u)), keep * alpha.c + eta)


def _rises_enough(problem: Objective, old: Gibbs, new: Gibbs, eta: float) -> bool:
    """The condition (*) on a step, up to rounding."""
    change = problem.combine((1.0, -1.0), (new.u, old.u))
    allowed = (1.0 / eta - problem.temperature) * (new.divergence(problem, old) + new.rounding)
    return problem.lam / 2 * problem.inner(change, change) <= allowed


def _with_weights(problem: Objective, state: ExponentiatedGradientState) -> ExponentiatedGradientState:
    """The weights that go with alpha, and what its pass says about their J."""
    alpha, heat = state.alpha, problem.temperature
    if not (heat or state.weight):
        return state
    w = problem.combine([heat or 1.0 / state.weight], [alpha.v])
    square = problem.lam / 2 * problem.inner(w, w)
    if heat:
        primal = square + heat * alpha.log_z
        return replace(state, w=w, primal=primal, upper=primal)
    # sum eta_k (ell - <u_k, psi>) exceeds c ell - <v, psi> by at most the strength, in the mean over examples
    return replace(state, w=w, upper=square + (alpha.log_z + state.strength) / state.weight)


def _online_init(problem: Problem) -> OnlineState:
    """Potentials that favour gold; one pass of the exp-oracle for their marginals."""
    eta = np.ones(problem.n)
    if problem.temperature:
        eta[:] = np.minimum(1.0, 1.0 / (problem.temperature * problem.blocks.weights))
    potentials = leaning(problem, LEAN)
    dual = Potentials(
        starts=starts_of(problem), potentials=potentials, marginals=np.zeros_like(potentials), eta=eta,
        entropies=np.zeros(problem.n), losses=np.zeros(problem.n), failed=np.zeros(problem.n, bool),
    )  # fmt: skip
    u = filled(problem, dual, problem.lam)
    return OnlineState(u=u, w=u, potentials=dual, dual=dual_value(problem, dual, u))


def _online_step(problem: Problem, state: OnlineState, seed: int) -> OnlineState:
    """One pass over the examples in random order."""
    dual, u, passes = copied(state.potentials), state.u.copy(), state.passes + 1
    order = np.random.default_rng([seed, state.passes]).permutation(problem.n)
    arguments = dual, order, problem.temperature * problem.blocks.weights, problem.lam, u
    problem.count(soft=int(problem.visit(sweep, *arguments, asks="soft")))
    rho = 1.0 if problem.temperature else 2.0 / (passes + 1)
    w = problem.combine((1 - rho, rho), (state.w, u))
    return OnlineState(u=u, w=w, potentials=dual, dual=dual_value(problem, dual, u), passes=passes)
