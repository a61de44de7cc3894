"""Sequential minimal optimisation on the factored dual.

alpha is kept as clique marginals (*masses*) instead of weights of outputs, which are too many. A visit of an example
takes the pair of outputs that violates the optimality conditions most, the best of all and the worst of those that may
have weight, both found by dynamic programming, and moves weight between them by the analytic step. Formulas in
``sweeps.smo``. D never decreases.

The worst output is sought among all combinations of cliques with mass, more than a list of outputs would offer, and the
step is limited by the least of its masses; both make steps longer.

Letters: w = w(alpha), b = sum ell alpha. Cost per visit: two oracle calls, the max-oracle and the min-oracle on the
support; a step makes n/2 visits, so it is a pass. Memory: dim numbers and a few cliques per example.

Reference: Taskar, "Learning structured prediction models: a large margin approach", PhD thesis, 2004, chapter 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from m3n.compiled.sweeps.smo import Masses, list_cliques, sweep
from m3n.problem import Problem
from m3n.solvers.base import Solver


@dataclass(frozen=True)
class SMOState:
    """alpha as clique masses, with w(alpha) and b."""

    w: np.ndarray
    b: float
    masses: Masses
    dual: float
    gaps: np.ndarray  # (n,) violation of the optimality conditions at the last visit; inf before the first
    order: np.ndarray  # what is left of the current permutation
    steps: int = 0

    @property
    def primal(self) -> float:
        """Unknown: every visit sees other weights."""
        return np.nan

    @property
    def stalled(self) -> bool:
        """No example had anything to gain at its last visit."""
        return not self.gaps.any()

    @property
    def metrics(self) -> Mapping[str, float]:
        used = float(self.masses.used.mean())
        return {"kkt_violation": float(self.gaps.max()), "dual": self.dual, "cliques": used}


@dataclass(frozen=True)
class SMO(Solver[SMOState]):
    """Sequential minimal optimisation with the steepest pair of outputs.

    Parameters
    ----------
    seed : int
        Seed of the order in which examples are visited.
    """

    seed: int = 0

    requires: ClassVar[frozenset[str]] = frozenset({"hard", "support"})
    native: ClassVar[str | None] = "kkt_violation"
    rate: ClassVar[str] = "n / (lam eps) updates"
    exponent: ClassVar[float | None] = -1.0

    def init(self, problem: Problem) -> SMOState:
        """All mass on gold: w = 0, D = 0. No oracle call."""
        gaps = np.full(problem.n, np.inf)
        return SMOState(np.zeros(problem.dim), 0.0, _gold(problem), 0.0, gaps, np.empty(0, np.int64))

    def step(self, problem: Problem, state: SMOState) -> SMOState:
        """One pass: n/2 visits of two oracle calls each."""
        order = state.order
        if len(order) == 0:
            order = np.random.default_rng([self.seed, state.steps]).permutation(problem.n)
        now, later = np.split(order, [-(-problem.n // 2)])
        w, b, gaps, masses = state.w.copy(), np.array([state.b]), state.gaps.copy(), _copied(state.masses)
        zeros, at, most = np.zeros(problem.dim), 0, int(problem.blocks.most.max())
        while True:
            at = problem.visit(sweep, masses, most, now, at, problem.lam, w, b, zeros, gaps, asks="support")
            if at == len(now):
                break
            masses = _enlarged(masses)
        problem.count(hard=2 * len(now))
        return SMOState(w, float(b[0]), masses, problem.dual(w, float(b[0])), gaps, later, state.steps + 1)


def _gold(problem: Problem) -> Masses:
    """Mass one on every clique of gold."""
    blocks = problem.blocks
    ids = np.zeros_like(blocks.gold)
    used = np.zeros(problem.n, np.int64)
    problem.visit(list_cliques, blocks.gold, ids, used, asks="support")
    room = 2 * int(used.max())
    wide = np.zeros((problem.n, room), np.int64)
    wide[:, : min(room, ids.shape[1])] = ids[:, :room]
    return Masses(wide, (np.arange(room) < used[:, None]).astype(float), used)


def _enlarged(masses: Masses) -> Masses:
    ids, numbers = (np.hstack([array, np.zeros_like(array)]) for array in (masses.ids, masses.masses))
    return Masses(ids, numbers, masses.used)


def _copied(masses: Masses) -> Masses:
    return Masses(*(array.copy() for array in masses))
