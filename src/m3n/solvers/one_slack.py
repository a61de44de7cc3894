"""The one-slack cutting-plane algorithm for structural SVMs, with a cache of outputs.

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

Reference: Joachims, Finley, Yu, "Cutting-plane training of structural SVMs", 2009.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from m3n.compiled.sweeps.working_sets import Sets, append_violated, joint_plane
from m3n.problem import Problem
from m3n.solvers.base import copied
from m3n.solvers.forms import Weights
from m3n.solvers.planes import Plane, Planes
from m3n.solvers.working_sets import WorkingSets, gold_sets

ENOUGH = 0.5  # of the gap; 0.1 wears remembered outputs out: as many passes on OCR and twice as many programmes
ALL = -1.0  # a violation that every output exceeds
ROUNDING = 1e-13  # relative: a smaller violation is none, and its constraint is in the working set already


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


def init(problem: Problem, cache: int) -> OneSlackState:
    """The state after a pass at w = 0; before it the working set is xi >= 0 alone, gold's constraint."""
    outputs = None
    if cache:
        outputs = gold_sets(problem.blocks, room=cache)
        outputs.alpha[:] = 0.0  # there are no weights here, so any output may be forgotten
    gold, zero = Planes.gold(problem), np.zeros(problem.dim)
    first = OneSlackState(w=zero, primal=np.nan, dual=0.0, planes=gold, violation=np.inf, outputs=outputs)
    return _exact(problem, first, 0.0)


def step(problem: Problem, state: OneSlackState, patience: int | None, most_planes: int) -> OneSlackState:
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
