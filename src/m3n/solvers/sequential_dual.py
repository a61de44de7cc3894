"""The accelerated sequential dual method: cached outputs, pairwise steps, a proximal outer loop.

Every example keeps a small cache of outputs with weights alpha_ik that sum to one, gold being the first. A *visit*
maximises D over the weights of one example; it costs a few features if the outputs are known (``sweeps.caches``)
and an oracle call more if a new one is asked for.

Small lam makes that slow, so the objective gets a proximal term kappa/2 |w - z|^2, whose centre z moves ahead of the
iterates (Catalyst). With lk = lam + kappa and u = w(alpha), the visits keep

    w = (lam u + kappa z) / lk,

and after every third sweep, with q = lam/lk and beta = (1 - sqrt q)/(1 + sqrt q),

    z' = w + beta (w - w_prev);   w_prev = w;   w += kappa/lk (z' - z);   z = z'.

A step of the solver is one pass of the max-oracle:

- the first passes visit examples *online*, each with the newest w, as there is nothing in the caches yet;
- later ones ask for the best outputs at the *fixed* weighted average of the iterates: they give J there exactly, so
  every step has a certificate that costs nothing; they run on all threads; their outputs join the caches;
- in between come sweeps over the caches alone, every fourth over all examples, the others over those that had at
  least ``LAZY`` times the mean spread of scores at their last visit.

Where examples depend on one another so much that cached sweeps hardly raise D while the gap stays (few examples, or
weights that are hardly regularised), twice as many of them come before a pass and before a move of z, up to ``EFFORT``,
as long as they leave a good part of the gap on the cached outputs themselves: if not, these lack outputs. And every
other pass asks at u of the best dual point, whose gap closes once the caches have the outputs that matter.

The dual value is D at the best mixture of alpha, of a running average of alpha (u is noisy where kappa >> lam) and of
the best mixture before. All are feasible. u and the loss are computed anew from the caches at every step, so sums that
visits keep do not drift.

kappa follows from the problem: it is the geometric mean of lam and of what one example pulls at w, which is the mean of
|d|^2/ell over the cached outputs after the first pass, divided by n. Both have the unit of lam, |phi|^2/loss.

Cost per step: one oracle pass and ``sweeps`` cached sweeps, O(dim) in all besides. Memory: 6 to 10 differences per
example and their Gram matrices, 8 dim numbers.

References: Lin, Mairal, Harchaoui, "A universal catalyst for first-order optimization", 2015; Shah, Kolmogorov,
Lampert, "A multi-plane block-coordinate Frank-Wolfe algorithm for training structural SVMs", 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from m3n.compiled.sweeps.caches import Caches
from m3n.compiled.sweeps.sequential import curvature_per_loss, totals
from m3n.problem import Objective, Problem, Sharded
from m3n.solvers import sequential_lanes as lanes
from m3n.solvers.base import HARD, Solver, at_least, copied, examples_held
from m3n.solvers.dual_points import Point
from m3n.solvers.sequential_lanes import LanesDualState, LaneVisits
from m3n.solvers.sequential_state import DualHull, Iterate, Proximal, Schedule, SequentialDualState, dense, inner
from m3n.solvers.sequential_visits import Visits
from m3n.solvers.working_sets import gold_caches

PIECES = 4  # of an online pass; after each of them the average is updated
LAZY = 0.2
DAMPED = 2.0  # fits the gaps of eight problems after one and two passes within a factor of 1.5
OUTPUTS = 4000.0  # bytes of cached outputs per example, roughly
SMALL = 1 << 14  # weights that are not worth a look at which of them are touched


@dataclass(frozen=True)
class SequentialDual(Solver[SequentialDualState | LanesDualState]):
    """Accelerated sequential dual method on cached outputs.

    Parameters
    ----------
    proximity : float or None
        Weight kappa of the proximal term; None chooses it from the problem, 0 does without acceleration.
    sweeps : int or None
        Sweeps over the caches per oracle pass, fewer in the first passes; None chooses their number from what a cached
        visit and an oracle visit cost.
    online : int
        Passes at the start that ask the oracle at the newest weights.
    seed : int
        Seed of the order of visits.
    """

    proximity: float | None = None
    sweeps: int | None = None
    online: int = 3
    seed: int = 0

    requires = HARD
    visits = True
    divides = True
    native = "duality_gap_estimate"
    rate = "1 + sqrt(R^2 / (n lam eps))"
    exponent = -2.0
    certifies = True

    def __post_init__(self) -> None:
        if self.proximity is not None and not 0.0 <= self.proximity < np.inf:
            raise ValueError(f"proximity must not be negative, got {self.proximity}")
        at_least(1, sweeps=self.sweeps, online=self.online, why="nothing else changes the weights")

    def footprint(self, problem: Objective) -> float:
        """Where examples are in lanes: what these hold."""
        return examples_held(problem) + (OUTPUTS * problem.n if isinstance(problem, Sharded) else 0.0)

    def init(self, problem: Any) -> SequentialDualState | LanesDualState:
        """All weight on gold: w = 0, D = 0. No oracle call."""
        if isinstance(problem, Sharded):
            return lanes.start(problem, self.proximity or 0.0)
        small = problem.dim <= SMALL
        support, zero = np.arange(problem.dim if small else 0), np.zeros(problem.dim if small else 0)
        gold = Point(zero, 0.0)
        return SequentialDualState(
            w=np.zeros(problem.dim), caches=gold_caches(problem.blocks), support=support, gaps=np.zeros(problem.n),
            iterate=Iterate(point=zero, average=zero), hull=DualHull(mean=gold, best=gold), schedule=Schedule(),
            proximal=Proximal(kappa=self.proximity or 0.0, centre=zero, previous=zero),
        )  # fmt: skip

    def restart(self, problem: Any, state: Any) -> SequentialDualState | LanesDualState:
        """The earlier caches, alpha mixed with gold as is best for the new lam, acceleration from rest. No oracle call.

        As the caches are rich already, there are no online passes.
        """
        if isinstance(problem, Sharded) != isinstance(state, LanesDualState):
            return self.init(problem)
        if isinstance(problem, Sharded):
            return lanes.restart(problem, state, self.proximity, self.online)
        caches, support = copied(state.caches), state.support
        u, loss = _dual_point(problem, caches, support)
        square = problem.lam * inner(problem, support, u, u)
        t = min(loss / square, 1.0) if square > 0.0 else 1.0
        caches.alpha[:] *= t
        caches.alpha[caches.first[:-1]] += 1.0 - t
        caches.seen[:] = 0
        u, loss = _dual_point(problem, caches, support)
        kappa = _pull(problem, curvature_per_loss(caches)) * problem.lam if self.proximity is None else self.proximity
        dual = loss - problem.lam / 2 * inner(problem, support, u, u)
        return SequentialDualState(
            w=dense(problem.dim, support, u), caches=caches, support=support, gaps=state.gaps,
            iterate=Iterate(point=u, average=u, loss=loss), proximal=Proximal(kappa=kappa, centre=u, previous=u),
            hull=DualHull(mean=Point(u, loss), best=Point(u, loss), value=dual),
            schedule=Schedule(passes=self.online, parts=state.schedule.parts),
        )  # fmt: skip

    def step(self, problem: Any, state: Any) -> SequentialDualState | LanesDualState:
        """One oracle pass (two where the online passes end) with the cached sweeps before it."""
        if isinstance(problem, Sharded):
            return state.held.step(problem, state, self._step)
        return self._step(problem, state)

    def _step(self, problem: Any, state: Any) -> Any:
        run = _Round(problem, self, state)
        if run.schedule.passes < self.online:
            run.ask_online()
        run.sweep(run.schedule.sweeps(self.sweeps, run.visits))
        run.settle()
        if run.schedule.passes >= self.online:
            run.evaluate()
        return run.state


class _Round:
    """A step on its way: the visits, and the parts of the new state as they are by now."""

    def __init__(self, problem: Any, solver: SequentialDual, state: Any):
        self.problem, self.solver, self.before = problem, solver, state
        seeds = [solver.seed, state.schedule.passes]
        here: Any = LaneVisits if isinstance(problem, Sharded) else Visits
        self.visits = here(problem, state, seeds)
        self.iterate, self.proximal, self.hull = state.iterate, state.proximal, state.hull
        self.schedule = replace(state.schedule, lagging=False)
        self.asked: np.ndarray | None = None  # where J is known
        self.primal, self.estimate = np.nan, state.estimate

    @property
    def scale(self) -> float:
        """What a visit multiplies differences by: 1/((lam + kappa) n)."""
        return 1.0 / ((self.problem.lam + self.proximal.kappa) * self.problem.n)

    def ask_online(self) -> None:
        """One pass of the oracle at the newest weights, n visits; iterates on the way join the average."""
        visits = self.visits
        self.schedule = replace(self.schedule, passes=self.schedule.passes + 1)
        for piece in visits.pieces(PIECES):
            visits.online(piece, self.schedule.passes, self.scale)
            self.iterate = self.iterate.joined(visits.point)
        pull = _pull(self.problem, visits.curvature)
        if self.schedule.passes == 1 and self.solver.proximity is None:
            here = visits.point
            self.proximal = Proximal(kappa=pull * self.problem.lam, centre=here, previous=here)
        # spreads at the last visits are those of single iterates; the average does better, the more lam damps
        self.estimate = visits.spread_of(piece) * pull / (pull + DAMPED)

    def sweep(self, count: int) -> None:
        """Visit examples without a call of the oracle, every fourth time all; now and then the centre follows."""
        before = self.schedule
        parts = before.parts
        for number in range(count):
            scored = self.visits.cached(LAZY if number % 4 else None, before.passes, self.scale)
            parts = parts if scored is None else scored
            if (before.swept + number + 1) % before.between_moves == 0:
                self._move()
        self.schedule = replace(before, swept=before.swept + count, parts=parts)

    def _move(self) -> None:
        lam, visits, w = self.problem.lam, self.visits, self.visits.point
        self.iterate = self.iterate.joined(w)
        if self.proximal.kappa:
            self.hull = self.hull.averaged_with(Point(self.proximal.dual_weights(lam, w), visits.loss))
            self.proximal, visits.point = self.proximal.moved(lam, w)

    def settle(self) -> None:
        """The dual point of the caches, where it is certified next; the best mixture of dual points."""
        problem, visits, lam = self.problem, self.visits, self.problem.lam
        if self.schedule.passes >= self.solver.online:
            u = visits.settle()
            visits.point = self.proximal.iterate(lam, u)
        else:
            u = self.proximal.dual_weights(lam, visits.point)
        self.hull = self.hull.improved(problem, visits.listed, Point(u, visits.loss))

    def evaluate(self) -> None:
        """J at the average or the best dual point, exactly: a pass of the oracle, whose answers join the caches."""
        problem, visits, before, passes = self.problem, self.visits, self.before, self.schedule.passes
        asked = self.hull.best.u if before.schedule.lagging and passes % 2 else self.iterate.average
        self.asked = visits.dense(asked)
        risk = visits.ask(self.asked, passes + 1)
        self.primal = problem.lam / 2 * inner(problem, visits.listed, asked, asked) + risk
        rise, self.estimate = self.hull.value - before.dual, self.primal - self.hull.value
        spread, lagged = visits.spread, before.schedule.lagging
        judged = self.schedule.judged(rise, self.estimate, spread, problem.n, lagged)
        self.schedule = replace(judged, passes=passes + 1)
        if judged.lagging:  # alpha hardly moves any more: old iterates only hold the average back
            self.iterate = replace(self.iterate, averaged=0)

    @property
    def state(self) -> SequentialDualState | LanesDualState:
        """The new state."""
        visits = self.visits
        w = visits.dense(self.iterate.average) if self.asked is None else self.asked
        return visits.state(
            w=w, iterate=replace(self.iterate, point=visits.point, loss=visits.loss), proximal=self.proximal,
            hull=self.hull, schedule=self.schedule, estimate=self.estimate, primal=self.primal,
        )  # fmt: skip


def _dual_point(problem: Problem, caches: Caches, support: np.ndarray) -> tuple[np.ndarray, float]:
    """u = w(alpha) on the support and b = sum ell alpha, from the caches alone."""
    vector = np.zeros(problem.dim)
    loss = totals(problem.blocks.rows, caches, 0, problem.n, vector) / problem.n
    return vector[support] / (-problem.lam * problem.n), loss


def _pull(problem: Objective, curvature: float) -> float:
    """How strongly single examples pull at w, against lam, from the mean of |d|^2/ell."""
    return float(np.sqrt(curvature / (problem.n * problem.lam)))
