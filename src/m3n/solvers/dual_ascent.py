"""Dual ascent for CRFs: one example at a time, every position with a step length of its own.

The dual of a CRF has one block per example. In the potentials of a block the gradient of D is simple: they should be
the example's scores under w = w(alpha), divided by T. A visit moves them there, position by position as far as a secant
says (formulas in ``sweeps.dual_ascent``), and changes w at once, so that the next example sees it. Online
exponentiated gradient is the same with one step length for all positions of an example, which the position in most
doubt dictates; here the others need not wait for it. Convergence is linear.

The start is all but gold, where D = 0: potentials that favour its labels by ``LEAN``.

Another lam. Any alpha is feasible for every lam, but w(alpha) grows like 1/lam: at a tenth of lam the optimum of the
old problem is far off. What nearly stays is w = 1/lam sum alpha psi, so the examples' distributions must come as much
closer to gold as lam has shrunk: a new run adds log(lam before / lam) to the potentials of gold's labels, which divides
the odds of all others by that ratio. Of a step length eta, 1/eta - T is proportional to 1/lam.

State. The potentials and marginals of all examples are too large to be copied at every step. They are changed in place
in a ``Memory`` that knows of how many steps it is the outcome. A step from a state that is not the newest (after an
interrupted step, or from an old result) computes them anew, so it still gives what it would have given before.

Potentials are kept in 32 bits. Any potentials stand for a distribution, so alpha is exactly that of the rounded ones:
D and w(alpha) are no less exact than with 64. Marginals cannot be rounded like that, because rounded ones belong to no
distribution, and D would be that of none.

Letters: w = w(alpha), eta step lengths, T temperature. Cost per step: n exp-oracle calls, those of trials that were
refused, and the sparse products. Memory: potentials and marginals of all parts of all examples, 12 bytes for each of
n (length x labels + labels^2) parts for chains.

References: Collins, Globerson, Koo, Carreras, Bartlett, "Exponentiated gradient algorithms for conditional random
fields and max-margin Markov networks", 2008; Le Priol, Piché, Lacoste-Julien, "Adaptive stochastic dual coordinate
ascent for conditional random fields", 2018.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from m3n.compiled.sweeps.dual_ascent import Ascent, Told, sweep
from m3n.problem import Objective, Problem, Sharded
from m3n.solvers import dual_ascent_lanes as lanes
from m3n.solvers.base import SOFT, NeverStalls, Solver, UnknownPrimal, examples_held, parts_of_all
from m3n.solvers.dual_ascent_lanes import LanesAscentState
from m3n.solvers.dual_ascent_points import Origin, begin, closer_to_gold, gold
from m3n.solvers.dual_points import check_potentials, dual_value, filled
from m3n.solvers.forms import Weights, require
from m3n.solvers.workers import Pace, alone, dealt, few, room_to_move, visited, workers_for

MOST_TOLD = 1 << 22  # numbers, of all threads between two meetings


class Memory:
    """The dual point of all examples and its w(alpha), changed in place.

    Attributes
    ----------
    point : Ascent
        Potentials, marginals and step lengths.
    w : array (dim,)
        w(alpha).
    steps : int
        How many steps have led to it; -1 while one is being made.
    lam : float
        The problem's.
    origin : Origin or None
        Where they began; None at all but gold.
    pace : Pace
        How threads go side by side.
    """

    point: Annotated[Ascent, check_potentials]
    w: Weights
    steps: int
    lam: float
    origin: Origin | None
    pace: Pace

    def __init__(self, problem: Problem, origin: Origin | None = None):
        self.point = begin(problem, gold(problem) if origin is None else origin.copied())
        self.w = filled(problem, self.point, problem.lam)
        self.steps, self.lam, self.origin = 0, problem.lam, origin
        self.pace = Pace()

    def advance(self, problem: Problem, seed: int) -> None:
        """One pass over the examples in random order."""
        order = np.random.default_rng([seed, self.steps]).permutation(problem.n)
        steps, self.steps = self.steps + 1, -1
        workers, before = workers_for(problem, self.pace, "soft"), self.dual(problem)
        vectors = [self.w, *(self.w.copy() for _ in range(1, workers))]
        expected = ascended(
            problem, self.point, order, lam=problem.lam, turn=steps, weights=vectors, vectors=vectors, pace=self.pace
        )
        self.pace = self.pace.after(workers, self.dual(problem) - before, expected)
        self.steps = steps

    def dual(self, problem: Problem) -> float:
        """D(alpha)."""
        return dual_value(problem, self.point, self.w)

    def check(self, problem: Problem) -> None:
        """Refuse what does not fit the problem."""
        if self.origin is not None:
            check_potentials(problem, begin(problem, self.origin), "origin")
        require(0.0 < self.lam < np.inf, f"the memory belongs to lam={self.lam}")


@dataclass(frozen=True)
class DualAscentState(UnknownPrimal, NeverStalls):
    """w(alpha), D(alpha) and the memory, which may have moved on since."""

    w: Weights
    dual: float
    memory: Memory
    steps: int = 0

    def dual_point(self, problem: Objective) -> tuple[np.ndarray, float]:
        """w(alpha), and D there."""
        return self.w, self.dual

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"dual": self.dual, "eta": float(np.median(self.memory.point.eta)), "steps": self.steps}


@dataclass(frozen=True)
class DualAscent(Solver[DualAscentState | LanesAscentState]):
    """Dual ascent by examples, for CRFs.

    Parameters
    ----------
    seed : int
        Seed of the order of the examples.
    """

    seed: int = 0

    requires = SOFT
    visits = True
    divides = True
    requires_smooth = SOFT
    native = "dual"
    rate = "none: for CRFs only"
    rate_smooth = "log(1/eps) / lam"
    smooth_only = True

    def footprint(self, problem: Objective) -> float:
        """Potentials and marginals; where examples are in lanes, what these hold besides."""
        return 16.0 * parts_of_all(problem) + examples_held(problem)

    def init(self, problem: Any) -> DualAscentState | LanesAscentState:
        """All but gold: one pass of the exp-oracle for its marginals."""
        return lanes.start(problem) if isinstance(problem, Sharded) else _state(problem, Memory(problem))

    def restart(self, problem: Any, state: Any) -> DualAscentState | LanesAscentState:
        """The earlier run's newest dual point, closer to gold if lam is much smaller: a pass for its marginals.

        A point that is worse than gold alone, D < 0, is given up for the usual start: lam has changed too much.
        """
        if isinstance(problem, Sharded):
            return lanes.restart(problem, state) if isinstance(state, LanesAscentState) else self.init(problem)
        if isinstance(state, LanesAscentState):
            return self.init(problem)
        memory = Memory(problem, closer_to_gold(problem, state.memory.point, state.memory.lam / problem.lam))
        return _state(problem, memory) if memory.dual(problem) >= 0.0 else self.init(problem)

    def step(self, problem: Any, state: Any) -> DualAscentState | LanesAscentState:
        """One pass over the examples."""
        if isinstance(problem, Sharded):
            return state.held.step(problem, state, partial(lanes.advance, seed=self.seed))
        return _state(problem, advanced(problem, state, self.seed))


def advanced(problem: Problem, state: Any, seed: int) -> Any:
    """The memory of a state after one more pass; if it has moved on since, the passes to that state are repeated.

    Parameters
    ----------
    problem : Problem
        The data.
    state : state
        With ``memory``, of any kind of dual ascent, and ``steps``.
    seed : int
        Seed of the order of the examples.
    """
    memory = state.memory
    if memory.steps != state.steps:
        memory = type(memory)(problem, memory.origin)
        for _ in range(state.steps):
            memory.advance(problem, seed)
    memory.advance(problem, seed)
    return memory


def ascended(
    problem: Problem,
    point: Ascent,
    order: np.ndarray,
    *,
    lam: float,
    turn: int,
    weights: Sequence[Any],
    vectors: Sequence[np.ndarray],
    pace: Pace,
) -> float:
    """Visit examples, with as many threads as there are weights; by how much D rises as the visits see it.

    Parameters
    ----------
    problem : Problem
        The data.
    point : Ascent
        The dual point, which changes in place.
    order : array of int
        Examples.
    lam : float
        What the dual vector is divided by.
    turn : int
        Number of the sweep.
    weights : sequence
        Equal weights, or soft thresholds, for every thread; they change in place, all in the same way up to rounding.
    vectors : sequence of arrays
        What these are made of.
    pace : Pace
        How many examples a thread visits between two meetings.
    """
    heats, count, longest = problem.temperature * problem.blocks.weights, len(weights), problem.blocks.largest
    told_all = count > 1 and not few(problem.dim)
    each = int(np.clip(MOST_TOLD // (count * longest), 1, pace.round)) if told_all else pace.round
    room = each if told_all else 1
    told = Told(
        counts=np.zeros((2, count), np.int64), examples=np.zeros((2, count, room), np.int64),
        changes=np.empty((2, count, room, longest)),
    )  # fmt: skip
    workers = [alone(len(order))]
    if count > 1:
        workers = dealt(problem.blocks.rows.sizes[order], count, each, room_to_move(vectors))
    calls = [
        (point, order, heats, lam, turn, w, vector, worker, told)
        for w, vector, worker in zip(weights, vectors, workers, strict=True)
    ]
    made = visited(partial(problem.visit, sweep, asks="soft"), calls, workers)
    problem.count(soft=int(sum(trials for trials, _ in made)))
    return float(sum(risen for _, risen in made)) / problem.n


def _state(problem: Problem, memory: Memory) -> DualAscentState:
    return DualAscentState(memory.w.copy(), memory.dual(problem), memory, memory.steps)
