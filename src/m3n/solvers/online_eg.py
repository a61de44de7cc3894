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

import numpy as np

from m3n.compiled.sweeps.exponentiated import Potentials, fill, sweep
from m3n.problem import Problem

LEAN = 4.0  # log-odds of gold's label against all others together, at the start, position by position


@dataclass(frozen=True)
class OnlineState:
    """alpha as potentials of every example, with w(alpha) and the average."""

    u: np.ndarray  # w(alpha)
    w: np.ndarray  # what to certify: u, or its average over passes
    potentials: Potentials
    dual: float
    passes: int = 0

    @property
    def primal(self) -> float:
        """Unknown: every visit sees other weights."""
        return np.nan

    @property
    def stalled(self) -> bool:
        """Never: a step that cannot raise D leaves things as they are."""
        return False

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"dual": self.dual, "eta": float(np.median(self.potentials.eta)), "steps": self.passes}


def init(problem: Problem) -> OnlineState:
    """Potentials that favour gold; one pass of the exp-oracle for their marginals."""
    blocks, n = problem.blocks, problem.n
    starts = np.concatenate([[0], np.cumsum(blocks.rows.sizes)])
    potentials = np.zeros(int(starts[-1]))
    lean(problem, starts, potentials, LEAN)
    eta, failed = np.ones(n), np.zeros(n, bool)
    if problem.temperature:
        eta[:] = np.minimum(1.0, 1.0 / (problem.temperature * blocks.weights))
    dual = Potentials(starts, potentials, np.zeros_like(potentials), np.zeros(n), np.zeros(n), eta, failed)
    u = np.zeros(problem.dim)
    problem.visit(fill, dual, blocks.gold, blocks.gold_counts, problem.lam, u, asks="soft", soft=n)
    return OnlineState(u, u, dual, _dual(problem, dual, u))


def step(problem: Problem, state: OnlineState, seed: int) -> OnlineState:
    """One pass over the examples in random order."""
    dual, u = Potentials(*(array.copy() for array in state.potentials)), state.u.copy()
    order = np.random.default_rng([seed, state.passes]).permutation(problem.n)
    arguments = dual, order, problem.temperature * problem.blocks.weights, problem.lam, u
    problem.count(soft=int(problem.visit(sweep, *arguments, asks="soft")))
    passes = state.passes + 1
    rho = 1.0 if problem.temperature else 2.0 / (passes + 1)
    return OnlineState(u, problem.combine((1 - rho, rho), (state.w, u)), dual, _dual(problem, dual, u), passes)


def lean(problem: Problem, starts: np.ndarray, potentials: np.ndarray, odds: float) -> None:
    """Gold's labels on the rows that the loss speaks of get a higher potential: ``odds`` in logarithms."""
    labels = problem.blocks.costs.table.shape[1]
    potentials[gold_places(problem, starts)] = odds + np.log(max(labels - 1, 1))


def gold_places(problem: Problem, starts: np.ndarray) -> np.ndarray:
    """Where the potentials of gold's labels stand, on the rows that the loss speaks of."""
    costs = problem.blocks.costs
    rows = np.arange(len(costs.gold))
    owner = np.searchsorted(costs.first, rows, side="right") - 1
    return starts[owner] + (rows - costs.first[owner]) * costs.table.shape[1] + costs.gold


def _dual(problem: Problem, dual: Potentials, u: np.ndarray) -> float:
    entropy = np.mean(problem.blocks.weights * dual.entropies)
    return problem.dual(u, float(dual.losses.mean() + problem.temperature * entropy))
