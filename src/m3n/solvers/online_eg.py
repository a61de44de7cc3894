"""Exponentiated gradient, example by example: the online (randomised) form.

Every example keeps potentials of its own, the factored form of alpha_i, and a step size eta_i that is halved when a
step would lower D and grows otherwise. Formulas in ``sweeps.exponentiated``. The start leans towards gold: D is
about 0 there and far below at the uniform distribution.

The weights to certify are, at temperature 0, an average of w(alpha) over the passes with weights 1, 2, 3, ..., which is
steadier than the last iterate; at a positive temperature, where convergence is linear, w(alpha) itself. The dual point
is alpha.

Letters: w = w(alpha), eta step sizes, T temperature. Cost per pass: n exp-oracle calls and those of the steps that had
to be tried again. Memory: potentials and marginals of all parts of all examples, O(n (length x labels + labels^2)) for
chains.

Reference: Collins, Globerson, Koo, Carreras, Bartlett, "Exponentiated gradient algorithms for conditional random fields
and max-margin Markov networks", 2008, section 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from m3n.compiled.sweeps.exponentiated import Potentials, sweep
from m3n.problem import Problem
from m3n.solvers.base import NeverStalls, UnknownPrimal, copied
from m3n.solvers.forms import Weights
from m3n.solvers.potentials import check_potentials, dual_value, filled, leaning, starts_of

LEAN = 4.0  # log-odds of gold's label against all others together, at the start, position by position


@dataclass(frozen=True)
class OnlineState(UnknownPrimal, NeverStalls):
    """alpha as potentials of every example, with w(alpha) and the average."""

    u: Weights  # w(alpha)
    w: Weights  # what to certify: u, or its average over passes
    potentials: Annotated[Potentials, check_potentials]
    dual: float
    passes: int = 0

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"dual": self.dual, "eta": float(np.median(self.potentials.eta)), "steps": self.passes}


def init(problem: Problem) -> OnlineState:
    """Potentials that favour gold; one pass of the exp-oracle for their marginals."""
    eta = np.ones(problem.n)
    if problem.temperature:
        eta[:] = np.minimum(1.0, 1.0 / (problem.temperature * problem.blocks.weights))
    potentials = leaning(problem, LEAN)
    dual = Potentials(
        starts=starts_of(problem), potentials=potentials, marginals=np.zeros_like(potentials), eta=eta,
        entropies=np.zeros(problem.n), losses=np.zeros(problem.n), failed=np.zeros(problem.n, bool),
    )  # fmt: skip
    u = filled(problem, dual)
    return OnlineState(u=u, w=u, potentials=dual, dual=dual_value(problem, dual, u))


def step(problem: Problem, state: OnlineState, seed: int) -> OnlineState:
    """One pass over the examples in random order."""
    dual, u, passes = copied(state.potentials), state.u.copy(), state.passes + 1
    order = np.random.default_rng([seed, state.passes]).permutation(problem.n)
    arguments = dual, order, problem.temperature * problem.blocks.weights, problem.lam, u
    problem.count(soft=int(problem.visit(sweep, *arguments, asks="soft")))
    rho = 1.0 if problem.temperature else 2.0 / (passes + 1)
    w = problem.combine((1 - rho, rho), (state.w, u))
    return OnlineState(u=u, w=w, potentials=dual, dual=dual_value(problem, dual, u), passes=passes)
