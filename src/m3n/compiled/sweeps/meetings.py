"""Visits on several threads at once, the same in every run: rounds of visits, with meetings in between.

Every worker visits examples of its own one after another, with weights of its own. A sweep is cut into *rounds* of a
few visits each; after a round the workers meet, and everyone adds to its weights by how much the visits of the others
moved theirs. Who visits what is settled before the sweep: the result does not depend on which thread was quicker.
What they tell one another in a round may still be read in the next, so there is one place for even and one for odd
rounds, and one meeting per round is enough.

Visits side by side do not know of one another, so they may correct the same errors twice: of two workers, whose visits
moved w by d_1 and d_2, D rises by what both expected less lam <d_1, d_2>. That cannot be negative as each of them rose
by at least lam/2 |d_k|^2; of more workers it can. The caller compares the rise with what was expected, and adapts the
length of rounds and the number of workers (``solvers.workers``).
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.primitives.atomics import arrive


class Moved(NamedTuple):
    """Weights of workers, and by how much each has moved them; no room where weights are many."""

    last: np.ndarray  # (workers, dim) weights at the last meeting
    by: np.ndarray  # (2, workers, dim) in even and odd rounds


class Worker(NamedTuple):
    """One of the threads of a sweep, as it sees itself; the last two are shared by all."""

    number: int
    workers: int  # how many there are
    visits: np.ndarray  # places in the order that it visits
    cuts: np.ndarray  # (rounds + 1,) which of its visits belong to a round
    arrived: np.ndarray  # (1,) arrivals at meetings so far
    moved: Moved


@compiled
def meet(worker, number):
    """Wait until all workers have come to meeting ``number``; what they wrote before can be read after it."""
    arrive(worker.arrived, worker.workers * (number + 1))


@inner
def agree(worker, number, w):
    """Meet after a round; w = the weights at the last meeting, moved by all workers, in the same order everywhere."""
    side, moved = number % 2, worker.moved
    last, own = moved.last[worker.number], moved.by[side, worker.number]
    for m in range(w.shape[0]):
        own[m] = w[m] - last[m]
    meet(worker, number)
    for k in range(worker.workers):
        change = moved.by[side, k]
        for m in range(w.shape[0]):
            last[m] += change[m]
    for m in range(w.shape[0]):
        w[m] = last[m]
