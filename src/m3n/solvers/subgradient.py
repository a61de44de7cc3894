"""Stochastic subgradient descent on the primal, with averaging.

A visit of example i takes the subgradient lam w - psi_i(y*) of lam/2 |w|^2 + max_y{ell_i(y) - <w, psi_i(y)>} with the
step size 1/(lam t):

    w <- (1 - 1/t) w + psi_i(y*) / (lam t)

The weights to certify are the average of the iterates with weights growing like t. The method has no dual point of its
own, so it cannot prove anything by itself: its gap is measured against D = 0 of gold. Sparse form in
``sweeps.subgradient``. Cost per pass: n oracle calls. Memory: 2 dim numbers.

References: Ratliff, Bagnell, Zinkevich, "(Online) subgradient methods for structured prediction", 2007; Shalev-Shwartz,
Singer, Srebro, Cotter, "Pegasos: primal estimated sub-gradient solver for SVM", 2011.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from m3n.compiled.sweeps.subgradient import sweep
from m3n.problem import Problem
from m3n.solvers.base import HARD, NeverStalls, Solver, UnknownPrimal
from m3n.solvers.forms import Weights


@dataclass(frozen=True)
class SubgradientState(UnknownPrimal, NeverStalls):
    """Sums of subgradients, and the averaged weights that follow from them."""

    w: Weights
    last: Weights  # v, of which the last iterate is v/(lam t)
    weighted: Weights  # r
    visits: float = 0.0  # t
    passes: int = 0
    dual: ClassVar[float] = -np.inf  # there is no dual point

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"visits": self.visits}


@dataclass(frozen=True)
class Subgradient(Solver[SubgradientState]):
    """Stochastic subgradient descent with step size 1/(lam t) and weighted averaging. It has no dual.

    Parameters
    ----------
    seed : int
        Seed of the order in which examples are visited.
    """

    seed: int = 0

    requires = HARD
    visits = True
    rescales = True
    native = "primal"  # which certificates evaluate, not the solver
    rate = "R^2 / (lam eps), primal only"
    exponent = -1.0

    def init(self, problem: Problem) -> SubgradientState:
        """w = 0."""
        zero = np.zeros(problem.dim)
        return SubgradientState(zero, zero, zero)

    def step(self, problem: Problem, state: SubgradientState) -> SubgradientState:
        """One pass over the examples in random order."""
        blocks, lam = problem.blocks, problem.lam
        order = np.random.default_rng([self.seed, state.passes]).permutation(problem.n)
        v, r = state.last.copy(), state.weighted.copy()
        gold = blocks.gold, blocks.gold_counts
        t = float(problem.visit(sweep, *gold, order, lam, state.visits, v, r, hard=problem.n))
        factor = 2.0 / (lam * t * (t + 1.0))
        w = problem.combine((factor * (t + 1.0), -factor), (v, r))
        return SubgradientState(w, v, r, t, state.passes + 1)
