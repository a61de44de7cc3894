"""SVM-struct: cutting planes with one slack for all examples, or one for each of them.

**One slack**, with a cache of outputs.

    min  lam/2 |w|^2 + xi   subject to   xi >= 1/n sum_i { ell_i(y_i') - <w, psi_i(y_i')> }   for all (y_1', ..., y_n')

has one slack and one constraint per *joint* labelling of all examples. At a solution xi = R(w), so the problem is the
M3N's. The algorithm keeps a working set of joint constraints and adds violated ones:

    (w, xi) = solution with the working set only (a quadratic programme, ``m3n.solvers.planes``)
    add a joint labelling that is violated at w:  b - <w, a> > xi  with b = its loss, a = its sum of psi over n

The *violation* b - <w, a> - xi is what its authors watch. With the exact oracle b - <w, a> = R(w), so the violation is
J(w) minus the optimum of the working set, a duality gap. Constraints without weight for ``patience`` steps are dropped.

*Caching.* Every example remembers the last few outputs that the oracle returned. A joint constraint of the best
remembered ones costs no oracle call; it is taken as long as it is violated by a share ``ENOUGH`` of the gap, and only
then the oracle is asked again. On the OCR words that saves more than nine of ten passes.

Letters: w, xi as there; lam = 1/C. Cost per step: a pass, or a sweep over the remembered outputs; O(constraints x dim)
and O(constraints^3). Memory: O(constraints x dim) and the remembered outputs.

**n slacks**: a working set of constraints per example.

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

References: Joachims, Finley, Yu, "Cutting-plane training of structural SVMs", 2009 (one slack); Tsochantaridis,
Joachims, Hofmann, Altun, "Large margin methods for structured and interdependent output variables", 2005 (n slacks).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from m3n.compiled.sweeps.frank_wolfe import Totals, sweep
from m3n.compiled.sweeps.working_sets import Sets, append_violated, joint_plane, set_gaps
from m3n.problem import Problem
from m3n.solvers.base import HARD, Solver, UnknownPrimal, at_least, copied, one_of, with_room
from m3n.solvers.forms import Spreads, Visits, Weights
from m3n.solvers.planes import Plane, Planes
from m3n.solvers.working_sets import WorkingSets, enlarged, gold_sets

ENOUGH = 0.5  # of the gap; 0.1 wears remembered outputs out: as many passes on OCR and twice as many programmes
ALL = -1.0  # a violation that every output exceeds
ROUNDING = 1e-13  # relative: a smaller violation is none, and its constraint is in the working set already
MOST_SWEEPS = 100  # of the quadratic programme, in one step
INNER = 0.1  # its precision as a share of eps
FEW = 0.1  # new constraints in a round, as a share of n, that call for a smaller eps


@dataclass(frozen=True)
class OneSlackState:
    """The solution with the old working set, and the new working set."""

    w: Weights
    primal: float  # J(w), NaN if the oracle was not asked
    dual: float  # optimum with the working set, a lower bound of min J
    planes: Planes  # the working set, the constraint found at w included
    violation: float  # of that constraint
    outputs: WorkingSets | None  # what examples remember
    best: float = np.inf  # least J so far
    passes: int = 0
    steps: int = 0

    @property
    def stalled(self) -> bool:
        """The exact oracle finds no constraint that is violated."""
        return not np.isnan(self.primal) and self.violation <= ROUNDING * (1.0 + abs(self.primal))

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"violation": self.violation, "constraints": float(len(self.planes)), "steps": float(self.steps)}


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


@dataclass(frozen=True)
class StructSVM(Solver[OneSlackState | NSlackState]):
    """Cutting-plane training of structural SVMs.

    Parameters
    ----------
    slack : {"one", "n"}
        One slack variable and joint constraints, or a slack and a working set for every example.
    cache : int
        With one slack: outputs that every example remembers, to make constraints without the oracle; 0 asks it always.
    patience : int or None
        With one slack: forget constraints that had no weight in so many steps; None keeps all.
    most_planes : int
        With one slack: mix constraints of little weight into one when there are more. Memory is constraints x weights.
    batch : float
        With n slacks: share of the examples that are asked before the quadratic programme is solved again.
    seed : int
        With n slacks: seed of the order of the examples.
    """

    slack: Literal["one", "n"] = "one"
    cache: int = 10
    patience: int | None = 50
    most_planes: int = 200
    batch: float = 0.1
    seed: int = 0

    requires = HARD
    rescales = True
    native = "violation"
    rate = "G^2 / (lam eps^2)"
    exponent = -0.5

    def __post_init__(self) -> None:
        one_of("one", "n", slack=self.slack)
        at_least(0, cache=self.cache, patience=self.patience)
        at_least(3, most_planes=self.most_planes, why="one plane, a new one and a mixture")
        if not 0.0 < self.batch <= 1.0:
            raise ValueError(f"batch is a share of the examples, 0 < batch <= 1, got {self.batch}")

    @property
    def visits(self) -> bool:  # type: ignore[override]
        """With some settings."""
        return self.slack == "n" or self.cache > 0

    def init(self, problem: Problem) -> OneSlackState | NSlackState:
        """w = 0 and gold's constraints alone."""
        return _one_init(problem, self.cache) if self.slack == "one" else _n_init(problem)

    def step(self, problem: Problem, state: OneSlackState | NSlackState) -> OneSlackState | NSlackState:
        """New constraints, then the quadratic programme, or the other way round."""
        if isinstance(state, OneSlackState):
            return _one_step(problem, state, self.patience, self.most_planes)
        return _n_step(problem, state, self.batch, self.seed)


def _one_init(problem: Problem, cache: int) -> OneSlackState:
    """The state after a pass at w = 0; before it the working set is xi >= 0 alone, gold's constraint."""
    outputs = None
    if cache:
        outputs = gold_sets(problem.blocks, room=cache)
        outputs.alpha[:] = 0.0  # there are no weights here, so any output may be forgotten
    gold, zero = Planes.gold(problem), np.zeros(problem.dim)
    first = OneSlackState(w=zero, primal=np.nan, dual=0.0, planes=gold, violation=np.inf, outputs=outputs)
    return _exact(problem, first, 0.0)


def _one_step(problem: Problem, state: OneSlackState, patience: int | None, most_planes: int) -> OneSlackState:
    """Solve with the working set, then add a violated constraint: a remembered one, or the oracle's."""
    planes = state.planes.solved(problem.lam)
    w, xi = planes.point(problem), planes.height(problem.lam)
    dual = max(state.dual, problem.dual(w, planes.offset))
    planes = planes.pruned(patience).merged(problem, most_planes - 1)
    solved = replace(state, w=w, primal=np.nan, dual=dual, planes=planes, violation=np.inf, steps=state.steps + 1)
    return _remembered(problem, solved, xi) or _exact(problem, solved, xi)


def _remembered(problem: Problem, state: OneSlackState, xi: float) -> OneSlackState | None:
    """The state with the joint constraint of the best remembered outputs; None if it is not violated enough."""
    if state.outputs is None:
        return None
    value, plane = _joint(problem, state.outputs, state.w)
    if value - xi <= ENOUGH * (state.best - state.dual):
        return None
    return replace(state, planes=state.planes.add(problem, plane), violation=value - xi)


def _exact(problem: Problem, state: OneSlackState, xi: float) -> OneSlackState:
    """The state with the most violated constraint, by a pass of the max-oracle, which also gives J(w)."""
    value, plane, outputs = _ask(problem, state)
    primal = problem.lam / 2 * problem.inner(state.w, state.w) + value
    return replace(
        state, primal=primal, planes=state.planes.add(problem, plane), violation=value - xi, outputs=outputs,
        best=min(state.best, primal), passes=state.passes + 1,
    )  # fmt: skip


def _ask(problem: Problem, state: OneSlackState) -> tuple[float, Plane, Sets | None]:
    """R(w), its plane, and the remembered outputs with the new ones among them."""
    if state.outputs is None:
        answer = problem.hard(state.w)
        return answer.value, Plane(answer.loss, answer.vector), None
    outputs, everyone = copied(state.outputs), np.arange(problem.n)
    arguments = outputs, everyone, 0, state.passes + 1, ALL, state.w, np.empty(problem.n)
    problem.visit(append_violated, *arguments, hard=problem.n)  # without weights there is always room
    return *_joint(problem, outputs, state.w), outputs


def _joint(problem: Problem, outputs: Sets, w: np.ndarray) -> tuple[float, Plane]:
    """The value and the plane of the best remembered outputs."""
    blocks, vector = problem.blocks, np.zeros(problem.dim)
    gold = blocks.gold, blocks.gold_counts
    value, loss = joint_plane(blocks.rows, blocks.costs, outputs, *gold, w, vector)
    return value / problem.n, Plane(loss / problem.n, vector / problem.n)


def _n_init(problem: Problem) -> NSlackState:
    """Working sets with gold alone: w = 0; eps starts at a quarter of J(0)."""
    return NSlackState(
        w=np.zeros(problem.dim), b=0.0, sets=gold_sets(problem.blocks), dual=0.0,
        eps=0.25 * problem.worst_loss or 1.0, violations=np.full(problem.n, np.inf), order=np.empty(0, np.int64),
    )  # fmt: skip


def _n_step(problem: Problem, state: NSlackState, batch: float, seed: int) -> NSlackState:
    """Look for violated constraints in the next batch of examples, then solve the quadratic programme again."""
    order, rounds, eps, added = state.order, state.rounds, state.eps, state.added
    if len(order) == 0:
        eps = eps / 2 if rounds and added <= FEW * problem.n else eps
        order = np.random.default_rng([seed, rounds]).permutation(problem.n)
        rounds, added = rounds + 1, 0
    now, later = np.split(order, [max(1, round(batch * problem.n))])
    violations = state.violations.copy()

    def visit(sets: Sets, at: int) -> int:
        """Ask the oracle about an example; a new constraint joins its working set."""
        return problem.visit(append_violated, sets, now, at, rounds, eps, state.w, violations)

    problem.count(hard=len(now))
    sets, w, b = with_room(copied(state.sets), len(now), visit, enlarged), state.w, state.b
    if (violations[now] > eps).any() or eps < state.eps:
        w, b = _solve(problem, sets, w.copy(), b, INNER * eps, [seed, state.steps])
    added += int((violations[now] > eps).sum())
    return NSlackState(
        w=w, b=b, sets=sets, dual=problem.dual(w, b), eps=eps, violations=violations, order=later, rounds=rounds,
        steps=state.steps + 1, added=added,
    )  # fmt: skip


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
