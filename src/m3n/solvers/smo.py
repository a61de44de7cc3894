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
from typing import Annotated

import numpy as np

from m3n.compiled.sweeps.smo import Masses, list_cliques, range_of_cliques, sweep
from m3n.problem import Problem
from m3n.solvers.base import Solver, UnknownPrimal, copied, with_room
from m3n.solvers.forms import Spreads, Visits, Weights, require, require_like, require_within


def check_masses(problem: Problem, masses: Masses, where: str) -> None:
    """Refuse masses, read from a file, of cliques that there are not."""
    gold = _gold(problem)
    require_like(masses, gold, where)
    same = masses.ids.shape == masses.masses.shape and masses.used.shape == gold.used.shape
    require(same and len(masses.ids) == problem.n, f"{where} has the shape {masses.masses.shape}")
    require_within(masses.used, 0, masses.ids.shape[1] + 1, f"{where}.used")
    require_within(masses.ids, 0, int(problem.visit(range_of_cliques, asks="support")), f"{where}.ids")


@dataclass(frozen=True)
class SMOState(UnknownPrimal):
    """alpha as clique masses, with w(alpha) and b."""

    w: Weights
    b: float
    masses: Annotated[Masses, check_masses]
    dual: float
    gaps: Spreads  # violation of the optimality conditions at the last visit; inf before the first
    order: Visits  # what is left of the current permutation
    steps: int = 0

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

    requires = frozenset({"hard", "support"})
    visits = True
    native = "kkt_violation"
    rate = "n / (lam eps) updates"
    exponent = -1.0

    def init(self, problem: Problem) -> SMOState:
        """All mass on gold: w = 0, D = 0. No oracle call."""
        gaps = np.full(problem.n, np.inf)
        nothing, masses = np.empty(0, np.int64), _gold(problem)
        return SMOState(w=np.zeros(problem.dim), b=0.0, masses=masses, dual=0.0, gaps=gaps, order=nothing)

    def step(self, problem: Problem, state: SMOState) -> SMOState:
        """One pass: n/2 visits of two oracle calls each."""
        order = state.order
        if len(order) == 0:
            order = np.random.default_rng([self.seed, state.steps]).permutation(problem.n)
        now, later = np.split(order, [-(-problem.n // 2)])
        w, total, gaps, most = state.w.copy(), np.array([state.b]), state.gaps.copy(), int(problem.blocks.most.max())
        changed = w, total, np.zeros(problem.dim), gaps

        def visit(masses: Masses, at: int) -> int:
            return problem.visit(sweep, masses, most, now, at, problem.lam, *changed, asks="support")

        problem.count(hard=2 * len(now))
        masses, b = with_room(copied(state.masses), len(now), visit, _enlarged), float(total[0])
        dual = problem.dual(w, b)
        return SMOState(w=w, b=b, masses=masses, dual=dual, gaps=gaps, order=later, steps=state.steps + 1)


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
