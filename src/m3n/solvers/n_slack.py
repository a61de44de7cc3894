"""The n-slack cutting-plane algorithm for structural SVMs: a working set of constraints per example.

Every example has its own slack xi_i and a working set S_i of outputs. In turn, an example's most violated output

    y* = argmax_y ell_i(y) - <w, psi_i(y)>

joins S_i if it violates its constraint, ell_i(y*) - <w, psi_i(y*)> <= xi_i, by more than eps, and the quadratic
programme over all working sets is solved again. As in the authors' program that happens after a batch of new
constraints, and eps starts large and is halved whenever a round over all examples finds next to nothing to add.

The quadratic programme is the dual with alpha_i confined to S_i. It has thousands of variables in n simplices and is
solved by decomposition: sweeps of pairwise steps over the working sets, without any oracle call, until its own duality
gap is a tenth of eps.

Letters: w = w(alpha), b = sum ell alpha, xi_i = max over S_i. Cost per step: a share ``batch`` of a pass of the
max-oracle, and as many sweeps over the working sets as the quadratic programme needs.

Reference: Tsochantaridis, Joachims, Hofmann, Altun, "Large margin methods for structured and interdependent output
variables", 2005.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from m3n.compiled.sweeps.frank_wolfe import Totals, sweep
from m3n.compiled.sweeps.working_sets import Sets, append_violated, set_gaps
from m3n.problem import Problem
from m3n.solvers.base import UnknownPrimal, copied, with_room
from m3n.solvers.forms import Spreads, Visits, Weights
from m3n.solvers.working_sets import WorkingSets, enlarged, gold_sets

MOST_SWEEPS = 100  # of the quadratic programme, in one step
INNER = 0.1  # its precision as a share of eps
FEW = 0.1  # new constraints in a round, as a share of n, that call for a smaller eps


@dataclass(frozen=True)
class NSlackState(UnknownPrimal):
    """alpha on working sets, w(alpha), and what is left of the current round over the examples."""

    w: Weights
    b: float
    sets: WorkingSets
    dual: float
    eps: float
    violations: Spreads  # of every example's constraint when last visited; inf before
    order: Visits  # examples still to visit in this round
    rounds: int = 0
    steps: int = 0
    added: int = 0  # constraints added in this round

    @property
    def stalled(self) -> bool:
        """The precision has reached rounding."""
        return self.eps < 1e-14

    @property
    def metrics(self) -> Mapping[str, float]:
        constraints = float(self.sets.used.sum())
        return {"violation": float(self.violations.max()), "eps": self.eps, "constraints": constraints}


def init(problem: Problem) -> NSlackState:
    """Working sets with gold alone: w = 0; eps starts at a quarter of J(0)."""
    return NSlackState(
        w=np.zeros(problem.dim), b=0.0, sets=gold_sets(problem.blocks), dual=0.0,
        eps=0.25 * problem.worst_loss or 1.0, violations=np.full(problem.n, np.inf), order=np.empty(0, np.int64),
    )  # fmt: skip


def step(problem: Problem, state: NSlackState, batch: float, seed: int) -> NSlackState:
    """Look for violated constraints in the next batch of examples, then solve the quadratic programme again."""
    order, rounds, eps, added = state.order, state.rounds, state.eps, state.added
    if len(order) == 0:
        eps = eps / 2 if rounds and added <= FEW * problem.n else eps
        order = np.random.default_rng([seed, rounds]).permutation(problem.n)
        rounds, added = rounds + 1, 0
    now, later = np.split(order, [max(1, round(batch * problem.n))])
    violations = state.violations.copy()
    sets = _append(problem, copied(state.sets), now, rounds, eps, state.w, violations)
    w, b = state.w, state.b
    if (violations[now] > eps).any() or eps < state.eps:
        w, b = _solve(problem, sets, w.copy(), b, INNER * eps, [seed, state.steps])
    added += int((violations[now] > eps).sum())
    return NSlackState(
        w=w, b=b, sets=sets, dual=problem.dual(w, b), eps=eps, violations=violations, order=later, rounds=rounds,
        steps=state.steps + 1, added=added,
    )  # fmt: skip


def _append(
    problem: Problem, sets: Sets, order: np.ndarray, stamp: int, eps: float, w: np.ndarray, violations: np.ndarray
) -> Sets:
    """Ask the oracle about some examples; new constraints join the working sets, which grow where they must."""
    problem.count(hard=len(order))

    def visit(sets: Sets, at: int) -> int:
        return problem.visit(append_violated, sets, order, at, stamp, eps, w, violations)

    return with_room(sets, len(order), visit, enlarged)


def _solve(
    problem: Problem, sets: Sets, w: np.ndarray, b: float, precision: float, seed: list[int]
) -> tuple[np.ndarray, float]:
    """Pairwise sweeps until the duality gap within the working sets is at most ``precision``."""
    random = np.random.default_rng(seed)
    totals = Totals(*(np.array([number]) for number in (b, 0.0, 1.0, 0.0)))
    gaps, active, unused, zeros = np.full(problem.n, np.inf), np.arange(problem.n), w.copy(), np.zeros(problem.dim)
    arguments = problem.lam, w, unused, zeros, gaps
    for _ in range(MOST_SWEEPS):
        problem.visit(sweep, sets, totals, random.permutation(active), 0, 0, False, True, *arguments)
        if gaps.mean() <= precision:  # as seen in passing, at weights that have changed since: look again
            set_gaps(problem.blocks.rows, problem.blocks.costs, sets, w, gaps)
            if gaps.mean() <= precision:
                break
        active = np.flatnonzero(gaps > precision / 2)
    return w, float(totals.b[0])
