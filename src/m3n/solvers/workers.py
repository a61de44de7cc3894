"""Sweeps cut for several threads: how many there are, who visits what, and how many visits make a round.

See ``m3n.compiled.sweeps.meetings``. A round's visits are dealt so that all workers have about equal work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from m3n.compiled.maps.codes import CodeRows
from m3n.compiled.sweeps.meetings import Moved, Worker
from m3n.compiled.sweeps.visits import MapRows
from m3n.packed import together
from m3n.problem import Problem
from m3n.solvers.forms import require

T = TypeVar("T")

LEAST_WORK = 1 << 17  # parts of all examples: less is done before a second thread has begun
LEAST_VISITS = 64  # of a sweep, for every worker
EVERYBODY = 1 << 62  # more arrivals than anyone waits for
SMALL = 1 << 14  # weights that are compared as a whole
FIRST, LONGEST = 8, 64  # visits of every worker in a round, at first and at most
LITTLE, MUCH = 0.1, 0.4  # of the expected rise may be lost, divided by the workers: more of them do more harm


@dataclass(frozen=True)
class Pace:
    """How visits of several threads go side by side; it follows from how much they were in each other's way.

    Attributes
    ----------
    workers : int
        Threads at most. Two do no harm; there are more as long as long rounds lose little.
    round : int
        Visits of every worker between two meetings.
    """

    workers: int = 2
    round: int = FIRST

    def check(self, problem: Problem) -> None:
        """Refuse numbers that no run can have."""
        require(self.workers >= 1 and 1 <= self.round <= LONGEST, f"no run has {self}")

    def after(self, workers: int, risen: float, expected: float) -> Pace:
        """What to do next, when D rose by ``risen`` and the visits of so many workers, each alone, expected more."""
        if workers == 1 or expected <= 0.0:
            return self
        lost = workers * (1.0 - risen / expected)
        if lost < LITTLE and self.round < LONGEST:
            return Pace(self.workers, 2 * self.round)
        if lost < LITTLE and workers == self.workers:
            return Pace(2 * workers, self.round // 2)
        if lost > MUCH:
            return Pace(self.workers, self.round // 2) if self.round > 1 else Pace(max(workers // 2, 1))
        return self


def workers_for(problem: Problem, pace: Pace, asks: str) -> int:
    """On how many threads examples are visited: one where it is too little work, or where visits are not compiled.

    Parameters
    ----------
    problem : Problem
        The data.
    pace : Pace
        How many there should be at most.
    asks : str
        The oracle that visits call.
    """
    blocks, count = problem.blocks, min(problem.threads.count, problem.n // LEAST_VISITS)
    if blocks.rows.sizes.sum() < LEAST_WORK or not isinstance(blocks.rows, MapRows | CodeRows):
        return 1
    if not blocks.compiles(asks):
        return 1
    return max(min(count, pace.workers), 1)


def few(dim: int) -> bool:
    """Whether workers compare their weights as a whole."""
    return dim <= SMALL


def alone(visits: int) -> Worker:
    """The only worker of so many visits."""
    moved = Moved(np.zeros((1, 0)), np.zeros((2, 1, 0)))
    return Worker(0, 1, np.arange(visits), np.array([0, visits]), np.zeros(1, np.int64), moved)


def dealt(work: np.ndarray, workers: int, each: int, moved: Moved) -> list[Worker]:
    """The workers of a sweep: a round's heaviest visits go to all in turn, there and back.

    Parameters
    ----------
    work : array
        What every visit costs, in the order of the visits.
    workers, each : int
        Threads, and visits of each in a round.
    moved : Moved
        Where they compare weights.
    """
    size, count = workers * each, len(work)
    rounds = -(-count // size)
    places, weight = np.full(rounds * size, -1), np.ones(rounds * size)
    places[:count], weight[:count] = np.arange(count), -work
    heaviest = np.argsort(weight.reshape(rounds, size), axis=1, kind="stable")
    deal = np.take_along_axis(places.reshape(rounds, size), heaviest, axis=1).reshape(rounds, each, workers)
    deal[:, 1::2] = deal[:, 1::2, ::-1].copy()
    arrived, made = np.zeros(1, np.int64), []
    for k in range(workers):
        own = deal[:, :, k]
        real = own >= 0
        cuts = np.concatenate([[0], np.cumsum(real.sum(axis=1))])
        made.append(Worker(k, workers, own[real], cuts, arrived, moved))
    return made


def room_to_move(vectors: Sequence[np.ndarray]) -> Moved:
    """For weights of all workers that agree now; no room where they are many."""
    count, dim = len(vectors), len(vectors[0]) if few(len(vectors[0])) else 0
    return Moved(np.array([vector[:dim] for vector in vectors]), np.empty((2, count, dim)))


def visited(sweep: Callable[..., T], calls: Sequence[tuple[Any, ...]], workers: Sequence[Worker]) -> list[T]:
    """Let every worker do its call; if one fails, the others do not wait for it in vain."""
    arrived = workers[0].arrived
    return together(sweep, calls, release=lambda: arrived.fill(EVERYBODY))
