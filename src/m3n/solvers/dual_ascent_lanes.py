"""Dual ascent for CRFs on several workers: potentials and marginals stay in the lanes.

A step is a pass over all examples in a few rounds. In a round every lane visits some of its examples as
``dual_ascent`` does, in an order of its own, with weights that know of its own visits alone; ``combination`` says how
careful it is and what happens if that was not enough. u = w(alpha) and the offset of D add up exactly, so there is a
dual value after each round.

What one lane does depends on its examples, the weights that it is told and the seed. With one lane this is
``DualAscent`` on one thread, up to the order of the visits.

Shipped per round: u to every lane, d_k from every lane, 8 dim bytes each. Memory of the lanes: as ``DualAscent``, and
the old values of the examples of a round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from m3n.compiled.sweeps.dual_ascent import Ascent, Told, put_back, set_aside, sweep
from m3n.problem import Sharded
from m3n.problem.holdings import Holdings
from m3n.problem.lanes import Lane
from m3n.problem.sections import Section, sections, shared_out
from m3n.solvers.base import NeverStalls, UnknownPrimal
from m3n.solvers.combination import Change, care, careful, most_care, moved, rounds_of, shown
from m3n.solvers.dual_ascent_points import begin, closer_to_gold, gold
from m3n.solvers.dual_points import check_potentials, filled, offset_of
from m3n.solvers.forms import Weights, require
from m3n.solvers.workers import alone

SAVED = ("potentials", "marginals", "entropies", "losses", "eta", "kappa", "joint")
ROUNDS = (2, 64)  # of a pass; with one, visits of a lane know nothing of the others for a whole pass
SHARE = 0.6  # of what lanes look at, in a pass, may be shipped
ROUNDING = 1e-13  # of D: a round that changes nothing any more does not lower it


class Round(NamedTuple):
    """What lanes are told of a round besides the weights."""

    lam: float
    sigma: float
    seed: int
    step: int
    number: int  # of the round in its step
    rounds: int
    wary: bool  # whether it may be taken back


class Old(NamedTuple):
    """The dual point of some examples before a round."""

    examples: np.ndarray
    potentials: np.ndarray
    marginals: np.ndarray
    entropies: np.ndarray
    losses: np.ndarray

    @classmethod
    def of(cls, point: Ascent, examples: np.ndarray) -> Old:
        """Copies."""
        count = int((point.starts[examples + 1] - point.starts[examples]).sum())
        kept, shares = np.empty(count, point.potentials.dtype), np.empty(count)
        set_aside(point.starts, examples, point.potentials, point.marginals, kept, shares)
        return cls(examples, kept, shares, point.entropies[examples], point.losses[examples])

    def put_back(self, point: Ascent) -> None:
        """Undo what came after."""
        point.entropies[self.examples], point.losses[self.examples] = self.entropies, self.losses
        put_back(point.starts, self.examples, self.potentials, self.marginals, point.potentials, point.marginals)


class Points:
    """The dual points of a lane, one per section, and what they were before the last round."""

    def __init__(self, points: list[Ascent]):
        self.points = points
        self.old: list[Old] = []

    def arrays(self) -> Mapping[str, np.ndarray]:
        """All that is to be saved."""
        return {f"{k}.{name}": getattr(point, name) for k, point in enumerate(self.points) for name in SAVED}


def begin_at_gold(lane: Lane, lam: float) -> tuple[Points, Change]:
    """All but gold, as ``DualAscent`` begins."""
    own = sections(lane)
    points = Points([begin(part, gold(part)) for part in own])
    return points, _from_nothing(lane, points, lam)


def lean(lane: Lane, points: Points, lam: float, ratio: float) -> Change:
    """The same as much closer to gold as lam is smaller."""
    own = sections(lane)
    points.points = [
        begin(part, closer_to_gold(part, point, ratio)) for part, point in zip(own, points.points, strict=True)
    ]
    points.old = []
    return _from_nothing(lane, points, lam)


def ascend(lane: Lane, points: Points, u: np.ndarray, way: Round) -> Change:
    """Visit some of the lane's examples."""
    own = sections(lane)
    order = np.random.default_rng([way.seed, way.step, lane.number]).permutation(lane.n)
    orders = list(shared_out(own, np.array_split(order, way.rounds)[way.number]))
    points.old = []
    if way.wary:
        points.old = [Old.of(point, chosen) for point, chosen in zip(points.points, orders, strict=True)]
    w, calls = own[0].blocks.vectors(len(u), 2)[0], 0
    w[:] = u
    for part, point, chosen in zip(own, points.points, orders, strict=True):
        calls += _visited(part, point, chosen, w, way)
    return moved(w, u, way.sigma, _offset(own, points), calls)


def take_back(lane: Lane, points: Points) -> float:
    """Undo the last round; the offset."""
    for point, old in zip(points.points, points.old, strict=True):
        old.put_back(point)
    points.old = []
    return _offset(sections(lane), points)


def restored(lane: Lane, arrays: dict[str, np.ndarray]) -> Points:
    """What a file has held, checked."""
    points = []
    for k, part in enumerate(sections(lane)):
        point = begin(part, gold(part))._replace(**{name: arrays.pop(f"{k}.{name}") for name in SAVED})
        _check(part, point)
        points.append(point)
    require(not arrays, f"it has more than that: {sorted(arrays)[:3]}")
    return Points(points)


class HeldPoints(Holdings):
    """Dual points of examples in lanes."""

    restored = staticmethod(restored)


@dataclass(frozen=True)
class LanesAscentState(UnknownPrimal, NeverStalls):
    """u = w(alpha) and the offset; the rest is in the lanes."""

    w: Weights
    offset: float
    lam: float
    held: HeldPoints
    sigma: float
    rounds: int
    calls: int = 0
    steps: int = 0

    @property
    def dual(self) -> float:
        """D(alpha)."""
        return self.offset - self.lam / 2 * float(self.w @ self.w)

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"dual": self.dual, "steps": self.steps, **shown(self.sigma, self.rounds)}

    def dual_point(self, problem: Sharded) -> tuple[np.ndarray, float]:
        """w(alpha), and D there."""
        return self.w, self.dual

    def check(self, problem: Sharded) -> None:
        """Refuse what does not fit the problem, and bring the lanes to where they were."""
        fine = 1.0 <= self.sigma <= most_care(problem) and self.rounds >= 1 and self.calls >= 0 and self.steps >= 0
        require(fine and np.isfinite(self.dual), f"no run has {self.metrics}")
        self.held.require_readable(problem, self)


def start(problem: Sharded) -> LanesAscentState:
    """All but gold: one pass of the exp-oracle for its marginals.

    Parameters
    ----------
    problem : Sharded
        The examples.
    """
    return HeldPoints(problem).begun(_first)


def restart(problem: Sharded, state: LanesAscentState) -> LanesAscentState:
    """The earlier run's dual point, as much closer to gold as lam is smaller.

    ``start`` where that is worse than gold, or where other lanes held it.

    Parameters
    ----------
    problem : Sharded
        The examples, with the new lam.
    state : LanesAscentState
        The earlier run's.
    """
    if not state.held.within(problem):
        return start(problem)
    ratio = state.lam / problem.lam
    first = HeldPoints(problem).taken_over(state, _state, lean, problem.lam, ratio)
    return first if first.dual >= 0.0 else start(problem)


def advance(problem: Sharded, state: LanesAscentState, seed: int) -> LanesAscentState:
    """One pass over all examples.

    Parameters
    ----------
    problem : Sharded
        The examples.
    state : LanesAscentState
        Where it begins; the lanes must be there.
    seed : int
        Seed of the order of the examples.
    """
    held, lanes, sigma = state.held, problem.engine.lanes, state.sigma
    u, offset, dual = state.w, state.offset, state.dual
    for number in range(state.rounds):
        way = Round(problem.lam, sigma, seed, state.steps, number, state.rounds, wary=sigma < lanes)
        change = held.total(ascend, u, way)
        problem.count(soft=int(change.counts[0]))
        new = u + change.vector
        risen = problem.dual(new, change.offset)
        if way.wary and risen < dual - ROUNDING * (1.0 + abs(dual)):
            held.total(take_back)
            sigma = careful(sigma, lanes)
        else:
            u, offset, dual, sigma = new, change.offset, risen, care(change, lanes)
    return replace(state, w=u, offset=offset, sigma=sigma, calls=held.calls, steps=state.steps + 1)


def _first(held: HeldPoints) -> LanesAscentState:
    return _state(held, held.hold(begin_at_gold, held.problem.lam))


def _state(held: HeldPoints, change: Change) -> LanesAscentState:
    problem = held.problem
    problem.count(soft=problem.n)
    lanes = problem.engine.lanes
    return LanesAscentState(
        w=change.vector, offset=change.offset, lam=problem.lam, held=held, sigma=max(1.0, lanes / 2),
        rounds=rounds_of(problem, SHARE, *ROUNDS), calls=held.calls,
    )  # fmt: skip


def _from_nothing(lane: Lane, points: Points, lam: float) -> Change:
    """The lane's share of u and of the offset, with marginals filled in."""
    own = sections(lane)
    u = np.zeros(lane.source.dim)
    for part, point in zip(own, points.points, strict=True):
        u += filled(part, point, lam / part.share)
    return Change(u, 0.0, _offset(own, points), np.zeros(1, np.int64))


def _visited(part: Section, point: Ascent, order: np.ndarray, w: np.ndarray, way: Round) -> int:
    """Visits of a section; calls of the exp-oracle."""
    heats = part.temperature * part.blocks.weights
    nobody = Told(np.zeros((2, 1), np.int64), np.zeros((2, 1, 1), np.int64), np.empty((2, 1, 1, part.blocks.largest)))
    strength = way.lam / (part.share * way.sigma)  # sums are divided by the section's number of examples
    given = point, order, heats, strength, way.step
    return int(part.visit(sweep, *given, w, w, alone(len(order)), nobody, asks="soft")[0])


def _offset(own: list[Section], points: Points) -> float:
    return sum(part.share * offset_of(part, point) for part, point in zip(own, points.points, strict=True))


def _check(part: Section, point: Ascent) -> None:
    """Refuse numbers, read from a file, that no run can have written."""
    check_potentials(part, point, "it")
    for name in SAVED[:-1]:
        require(np.isfinite(getattr(point, name)).all(), f"{name} are not finite")
    positive = (point.eta > 0.0).all() and (point.kappa >= 0.0).all() and (point.entropies > -1.0).all()
    require(positive and (point.marginals > -1.0).all(), "its numbers are out of range")
