"""The sequential dual method on several workers: cached outputs stay in the lanes, vectors of all weights do not.

The method is ``sequential_dual``, whoever visits the examples; here the lanes do, side by side. A piece of an online
pass is a round, and so is a sweep over the caches, or a piece of it: every lane begins at the iterate w, and
``combination`` says how careful it is.

alpha before and after a round are both feasible, and so are their mixtures, of which D is a parabola,

    D(t) = D + t (db - lk <w, d>) - t^2 lk/2 |d|^2,    lk = lam + kappa,  d = sum_k d_k,  0 <= t <= 1,

in the change of the loss and of the iterate: the best t is known at once. D never falls. Where t < 1 lanes are told of
it and mix their weights.

Shipped per round: w to every lane, d_k from every lane. A pass asks for the best outputs at given weights: they stay
in the lanes, and a number comes back. Memory of the driver: 10 vectors of all weights; no list of those that are
touched, as vectors go over the wire whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from m3n.problem import Sharded
from m3n.problem.holdings import Holdings
from m3n.solvers import cached_lanes
from m3n.solvers.cached_lanes import Way
from m3n.solvers.combination import Change, care, careful, most_care, rounds_of, shown
from m3n.solvers.dual_points import Point
from m3n.solvers.forms import Weights, require
from m3n.solvers.sequential_state import Certified, DualHull, Iterate, Prices, Proximal, Schedule, price

ROUNDS = (1, 16)  # of a sweep, of which there are several in a pass
LOOKED_AT = 0.25  # of all scores by cached visits, with what belongs to them


class HeldOutputs(Holdings):
    """Cached outputs of examples in lanes."""

    restored = staticmethod(cached_lanes.restored)


@dataclass(frozen=True)
class Pooled:
    """What is known of all lanes together."""

    prices: Prices
    rounds: int  # of a sweep
    sigma: float
    spread: float = 0.0  # mean, at the last visits
    curvature: float = 0.0  # mean of |d|^2 / ell
    outputs: float = 1.0  # per example, when they were last counted


@dataclass(frozen=True)
class LanesDualState(Certified):
    """The iterate, and what the certificate needs; alpha is in the lanes."""

    w: Weights
    iterate: Iterate
    proximal: Proximal
    hull: DualHull
    schedule: Schedule
    held: HeldOutputs
    pooled: Pooled
    estimate: float = np.inf  # of the gap, or the gap itself
    primal: float = np.nan
    calls: int = 0

    @property
    def metrics(self) -> Mapping[str, float]:
        known = shown(self.pooled.sigma, self.pooled.rounds)
        return known | {
            "duality_gap_estimate": self.estimate, "outputs": self.pooled.outputs, "kappa": self.proximal.kappa,
        }  # fmt: skip

    def dual_point(self, problem: Sharded) -> tuple[np.ndarray, float]:
        """The best mixture's."""
        u = self.hull.best.u
        return u, self.hull.best.b - problem.lam / 2 * problem.inner(u, u)

    def check(self, problem: Sharded) -> None:
        """Refuse what does not fit the problem, and bring the lanes to where they were."""
        iterate, term, hull = self.iterate, self.proximal, self.hull
        vectors = iterate.point, iterate.average, term.centre, term.previous, hull.mean.u, hull.best.u
        require(all(len(vector) == problem.dim for vector in vectors), "a vector has another number of weights")
        fine = 1.0 <= self.pooled.sigma <= most_care(problem) and self.calls >= 0
        require(fine and len(self.pooled.prices) == len(Prices._fields), f"no run has {self.metrics}")
        self.held.require_readable(problem, self)


def start(problem: Sharded, kappa: float) -> LanesDualState:
    """All weight on gold: w = 0, D = 0. No oracle call.

    Parameters
    ----------
    problem : Sharded
        The examples.
    kappa : float
        Weight of the proximal term.
    """

    def first(held: HeldOutputs) -> LanesDualState:
        prices, zero = held.hold(cached_lanes.begin_at_gold), np.zeros(problem.dim)
        return _state(held, Point(zero, 0.0), prices=prices, kappa=kappa, schedule=Schedule())

    return HeldOutputs(problem).begun(first)


def restart(problem: Sharded, state: LanesDualState, kappa: float | None, passes: int) -> LanesDualState:
    """The earlier run's outputs, alpha mixed with gold as is best for the new lam, acceleration from rest.

    Parameters
    ----------
    problem : Sharded
        The examples, with the new lam.
    state : LanesDualState
        The earlier run's.
    kappa : float or None
        Weight of the proximal term; None chooses it.
    passes : int
        Passes that count as made: there are none at the newest weights.
    """
    if not state.held.within(problem):
        return start(problem, kappa or 0.0)

    def first(held: HeldOutputs, found: Change) -> LanesDualState:
        u, loss = found.vector / (-problem.lam * problem.n), found.offset / problem.n
        square = problem.lam * float(u @ u)
        t = min(loss / square, 1.0) if square > 0.0 else 1.0
        held.total(cached_lanes.dilute, t)
        pull = np.sqrt(found.counts[1] / max(found.counts[2], 1.0) * problem.lam / problem.n)
        schedule = Schedule(passes=passes, parts=state.schedule.parts)
        point, own = Point(t * u, t * loss), pull if kappa is None else kappa
        return _state(held, point, prices=state.pooled.prices, kappa=float(own), schedule=schedule)

    return HeldOutputs(problem).taken_over(state, first, cached_lanes.settle)


def _state(held: HeldOutputs, point: Point, *, prices: Prices, kappa: float, schedule: Schedule) -> LanesDualState:
    problem, lanes = held.problem, held.problem.engine.lanes
    rounds = rounds_of(problem, LOOKED_AT, *ROUNDS)
    return LanesDualState(
        w=point.u, iterate=Iterate(point=point.u, average=point.u, loss=point.b),
        proximal=Proximal(kappa=kappa, centre=point.u, previous=point.u), schedule=schedule, held=held,
        hull=DualHull(mean=point, best=point, value=problem.dual(point.u, point.b)), calls=held.calls,
        pooled=Pooled(prices=prices, rounds=rounds, sigma=max(1.0, lanes / 2)),
    )  # fmt: skip


class LaneVisits:
    """Visits in lanes, as ``sequential_visits.Visits``.

    Parameters
    ----------
    problem : Sharded
        The examples.
    state : LanesDualState
        Where they begin.
    seeds : list of int
        What the order of visits depends on.
    """

    def __init__(self, problem: Sharded, state: LanesDualState, seeds: list[int]):
        self.problem, self.held, self.seeds, self.sweeps = problem, state.held, seeds, 0
        self.point, self.loss, self.pooled = state.iterate.point, state.iterate.loss, state.pooled
        self.sigma, self.spread, self.curvature = state.pooled.sigma, state.pooled.spread, state.pooled.curvature
        self.outputs = state.pooled.outputs
        self.listed = np.empty(0, np.int64)  # vectors have all weights, whether anything touches them or not

    def dense(self, values: np.ndarray) -> np.ndarray:
        """Vectors are."""
        return values

    def pieces(self, count: int) -> list[tuple[int, int]]:
        """Rounds of a pass, by their number."""
        count = min(count, min(self.problem.engine.sizes))
        self.sweeps += 1
        return [(number, count) for number in range(count)]

    def online(self, piece: tuple[int, int], stamp: int, scale: float) -> None:
        """Visits with the oracle at the newest weights."""
        found = self._round(cached_lanes.visit_online, self._way(piece, stamp, scale))
        seen, visited, curved, outputs, spread = found.counts
        self.problem.count(hard=int(visited))
        self.spread, self.curvature, self._seen = spread / self.problem.n, curved / max(outputs, 1.0), seen / visited

    def spread_of(self, piece: tuple[int, int]) -> float:
        """Mean spread of the scores of the examples that were visited last."""
        del piece
        return float(self._seen)

    def cached(self, lazy: float | None, stamp: int, scale: float) -> float | None:
        """As ``Visits.cached``."""
        self.sweeps += 1
        parts, visits = 0.0, 0.0
        way = self._way((0, self.pooled.rounds), stamp, scale)
        for number in range(self.pooled.rounds):
            least = -1.0 if lazy is None else lazy * self.spread
            found = self._round(cached_lanes.visit_cached, way._replace(number=number, least=least))
            parts, visits = parts + found.counts[0], visits + found.counts[1]
            self.spread = found.counts[2] / self.problem.n
        return parts / visits if visits == self.problem.n else None

    def settle(self) -> np.ndarray:
        """u and the loss from the caches alone: sums that rounds keep would drift. The iterate must be set anew."""
        problem, found = self.problem, self.held.total(cached_lanes.settle)
        self.loss, self.outputs = found.offset / problem.n, found.counts[0] / problem.n
        return found.vector / (-problem.lam * problem.n)

    def ask(self, w: np.ndarray, stamp: int) -> float:
        """J(w) without the regulariser, by the oracle, whose answers for all examples join the caches."""
        self.problem.count(hard=self.problem.n)
        return float(self.held.total(cached_lanes.ask, w, stamp)[0]) / self.problem.n

    def price(self, parts: float) -> float:
        """What an oracle visit costs in cached visits that score so many parts."""
        return price(self.pooled.prices, parts)

    def state(self, **others: Any) -> LanesDualState:
        """The new state, of which the others are parts."""
        pooled = replace(
            self.pooled, sigma=self.sigma, spread=float(self.spread), curvature=float(self.curvature),
            outputs=float(self.outputs),
        )  # fmt: skip
        return LanesDualState(held=self.held, pooled=pooled, calls=self.held.calls, **others)

    def _way(self, piece: tuple[int, int], stamp: int, scale: float) -> Way:
        return Way(scale, self.sigma, stamp, (*self.seeds, self.sweeps), *piece)

    def _round(self, visit: Any, way: Way) -> Change:
        """One round of visits, and the best mixture of alpha before and after it."""
        lanes, w, strength = self.problem.engine.lanes, self.point, 1.0 / (way.scale * self.problem.n)
        found = self.held.total(visit, w, way._replace(sigma=self.sigma))
        risen, square = found.offset / self.problem.n, strength * float(found.vector @ found.vector)
        slope = risen - strength * float(w @ found.vector)
        t = 1.0 if slope >= square else max(slope / square, 0.0)
        if t < 1.0:
            self.held.total(cached_lanes.mix, t)
        self.point, self.loss = w + t * found.vector, self.loss + t * risen
        self.sigma = care(found, lanes) if t > 0.0 else careful(self.sigma, lanes)
        return found
