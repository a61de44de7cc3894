"""The visits of the sequential dual method, on one thread or several, and what they change in place.

Where weights are few, every thread has a copy of them, see ``compiled.sweeps.meetings``. Where they are many a visit
waits for memory, and following the visits of others costs as much as it saves: there is one thread
(docs/experiments.md). Lists of parts go into one pool; a thread that finds new outputs has a stretch of it, and the
stretches are closed up afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from m3n.compiled.sweeps.caches import Caches, Touched, join
from m3n.compiled.sweeps.meetings import Worker
from m3n.compiled.sweeps.sequential import Sums, curvature_per_loss, learn, online, sweep, totals
from m3n.compiled.sweeps.supports import fill, pick, place
from m3n.packed import Threads, together
from m3n.problem import Problem
from m3n.solvers.base import copied
from m3n.solvers.sequential_state import SequentialDualState, dense, price, priced
from m3n.solvers.workers import alone, dealt, few, room_to_move, visited, workers_for
from m3n.solvers.working_sets import roomier

VISIT = 8  # parts, the work of a visit besides its parts
NOBODY = Touched(member=np.zeros(0, np.bool_), listed=np.zeros(0, np.int64), size=np.zeros(1, np.int64))


class Visits:
    """Compiled visits, and what they change in place: copies of the caches, the iterate and the spreads.

    Parameters
    ----------
    problem : Problem
        The data.
    state : SequentialDualState
        Where they begin.
    seeds : list of int
        What the order of visits depends on.
    """

    def __init__(self, problem: Problem, state: SequentialDualState, seeds: list[int]):
        self.random = np.random.default_rng(seeds)
        self.problem, self.blocks, self.threads = problem, problem.blocks, problem.threads
        self.caches, count = copied(state.caches), len(state.support)
        member, listed = np.zeros(problem.dim, np.bool_), np.empty(problem.dim, np.int64)
        member[state.support], listed[:count] = True, state.support
        self.support = Touched(member=member, listed=listed, size=np.array([count]))
        self.gaps, self.loss, self.pace = state.gaps.copy(), state.iterate.loss, state.pace
        workers = workers_for(problem, state.pace, "hard") if few(problem.dim) else 1
        spare = self.blocks.vectors(problem.dim, 2 * workers)
        self.vectors, self.zeros = spare[:workers], spare[workers:]
        together(fill, [(state.iterate.point, state.support, w) for w in self.vectors])

    @property
    def listed(self) -> np.ndarray:
        """The support by now."""
        return self.support.listed[: self.support.size[0]]

    @property
    def point(self) -> np.ndarray:
        """The iterate on the support."""
        out, listed = np.empty(len(self.listed)), self.listed
        self.threads.run(pick, self.threads.rows(len(listed)), self.vectors[0], listed, out)
        return out

    @point.setter
    def point(self, values: np.ndarray) -> None:
        together(place, [(values, self.listed, w) for w in self.vectors])

    def dense(self, values: np.ndarray) -> np.ndarray:
        """A vector of the support, or of its beginning, as one of all weights."""
        return dense(self.problem.dim, self.listed, values)

    @property
    def spread(self) -> float:
        """Mean spread of the scores of cached outputs, at the last visits."""
        return float(self.gaps.mean())

    def spread_of(self, piece: np.ndarray) -> float:
        """The same of some examples."""
        return float(self.gaps[piece].mean())

    @property
    def curvature(self) -> float:
        """Mean of |d|^2 / ell."""
        return float(curvature_per_loss(self.caches))

    def pieces(self, count: int) -> list[np.ndarray]:
        """All examples in random order, cut for ``online``."""
        order = self.random.permutation(self.problem.n)
        return np.array_split(order, min(count, len(order)))

    def online(self, order: np.ndarray, stamp: int, scale: float) -> None:
        """Visits with the oracle at the newest weights."""
        self.problem.count(hard=len(order))
        if len(self.vectors) == 1:
            self._online_alone(order, stamp, scale)
            return
        blocks, before = self.blocks, self._value(scale)
        workers = self._workers(blocks.rows.sizes[order])
        lists = blocks.gold_counts + blocks.most
        if (self.caches.used == np.diff(self.caches.first))[order].any():
            self.caches = roomier(self.caches, 0)
        views, start = self._stretches([int(lists[order[worker.visits]].sum()) for worker in workers])
        given = blocks.gold, blocks.gold_counts, order, 0, stamp, scale
        calls = [
            (view, NOBODY, *given, w, self.gaps, zeros, worker)
            for view, w, zeros, worker in zip(views, self.vectors, self.zeros, workers, strict=True)
        ]
        found = visited(partial(self.problem.visit, online), calls, workers)
        self._close_up(views, start)
        self._add_up([sums for _, sums in found], scale, before)

    def _online_alone(self, order: np.ndarray, stamp: int, scale: float) -> None:
        blocks, at, worker = self.blocks, 0, alone(len(order))
        while at < len(order):
            given = blocks.gold, blocks.gold_counts, order, at, stamp, scale
            changed = self.vectors[0], self.gaps, self.zeros[0]
            at, sums = self.problem.visit(online, self.caches, self.support, *given, *changed, worker)
            self._add_up([sums])
            if at < len(order):
                self.caches = roomier(self.caches, 2 * blocks.gold.shape[1])

    def cached(self, lazy: float | None, stamp: int, scale: float) -> float | None:
        """Visits without a call of the oracle, of all examples or those whose spread is above ``lazy`` times the mean.

        Returns how many parts a visit scored on average, if these were all. More than two threads may do harm: then
        nothing has happened, but the pace is another.
        """
        chosen = np.arange(self.problem.n)
        if lazy is not None:
            chosen = np.flatnonzero(self.gaps > lazy * self.gaps.mean())
        order, several = self.random.permutation(chosen), len(self.vectors) > 1
        before = self._value(scale) if several else None
        kept = (self.caches.alpha.copy(), self.vectors[0].copy(), self.loss) if several else None
        workers = self._workers(self._lengths()[order] + VISIT)
        given = self.blocks.rows, self.caches, order, stamp, scale
        calls = [(*given, w, self.gaps, worker) for w, worker in zip(self.vectors, workers, strict=True)]
        found = visited(sweep, calls, workers)
        self._add_up(found, scale, before)
        if before is not None and kept is not None and self._value(scale) < before:
            self._go_back(*kept)
        everyone = len(order) == self.problem.n
        return sum(sums.parts for sums in found) / max(len(order), 1) if everyone else None

    def _go_back(self, alpha: np.ndarray, w: np.ndarray, loss: float) -> None:
        self.caches.alpha[:], self.loss = alpha, loss
        for vector in self.vectors:
            vector[:] = w

    def ask(self, w: np.ndarray, stamp: int) -> float:
        """J(w) without the regulariser, by the oracle, whose answers for all examples join the caches."""
        margins, found, counts = self.problem.outputs(w)
        self._learn(found, counts, stamp)
        return float(margins.mean())

    def _learn(self, found: np.ndarray, counts: np.ndarray, stamp: int) -> None:
        blocks = self.blocks
        lists = blocks.gold_counts + counts
        lanes = self._lanes(lists)
        while lanes:
            free = len(self.caches.parts) - int(self.caches.size[0])  # enough for one thread, who can ask for more
            needs = [int(lists[low:high].sum()) for low, high in lanes] if len(lanes) > 1 else [free]
            views, start = self._stretches(needs)
            given, changed = (blocks.gold, blocks.gold_counts), (stamp, found, counts)
            calls = [
                (blocks.rows, blocks.costs, view, NOBODY, *given, *lane, *changed, zeros)
                for view, lane, zeros in zip(views, lanes, self.zeros, strict=False)
            ]
            ends = together(learn, calls)
            self._close_up(views, start)
            lanes = [(end, high) for end, (_, high) in zip(ends, lanes, strict=True) if end < high]
            if lanes:
                self.caches = roomier(self.caches, 2 * blocks.gold.shape[1])

    def settle(self) -> np.ndarray:
        """u and the loss from the caches alone: sums that visits keep would drift. The iterate must be set anew."""
        problem, listed = self.problem, self.listed
        self.point = np.zeros(len(listed))
        lanes = self._lanes(self._lengths() + VISIT)
        calls = [(self.blocks.rows, self.caches, *lane, w) for lane, w in zip(lanes, self.vectors, strict=False)]
        self.loss = sum(together(totals, calls)) / problem.n
        u = sum(vector[listed] for vector in self.vectors[: len(lanes)])
        return u / (-problem.lam * problem.n)

    def price(self, parts: float) -> float:
        """What an oracle visit costs in cached visits that score so many parts."""
        return price(priced(self.blocks), parts)

    def state(self, **others: Any) -> SequentialDualState:
        """The new state, of which the others are parts."""
        return SequentialDualState(
            caches=self.caches, support=self.listed.copy(), gaps=self.gaps, pace=self.pace, **others
        )

    def _lanes(self, work: np.ndarray) -> list[tuple[int, int]]:
        if len(self.vectors) == 1:
            return [(0, self.problem.n)]
        return Threads(len(self.vectors)).lanes(np.concatenate([[0], np.cumsum(work)]))

    def _workers(self, work: np.ndarray) -> list[Worker]:
        if len(self.vectors) == 1:
            return [alone(len(work))]
        return dealt(work, len(self.vectors), self.pace.round, room_to_move(self.vectors))

    def _lengths(self) -> np.ndarray:
        """Parts in the lists of every example."""
        return np.add.reduceat(self.caches.lengths, self.caches.first[:-1], dtype=np.int64)

    def _value(self, scale: float) -> float:
        """D with the proximal term, but for a constant."""
        w = self.vectors[0]
        return self.loss - self.problem.inner(w, w) / (2.0 * scale * self.problem.n)

    def _add_up(self, found: Sequence[Sums], scale: float = 1.0, before: float | None = None) -> None:
        n = self.problem.n
        self.loss += sum(sums.loss for sums in found) / n
        if before is not None:
            expected = sum(sums.rise for sums in found) / n
            self.pace = self.pace.after(len(found), self._value(scale) - before, expected)

    def _stretches(self, needs: Sequence[int]) -> tuple[list[Caches], int]:
        """The caches as several threads see them, each with room of its own in the pool, and where that begins."""
        if self.caches.size[0] + sum(needs) > len(self.caches.parts):
            self.caches = roomier(self.caches, sum(needs))
        caches, views = self.caches, []
        ends = int(caches.size[0]) + np.cumsum(needs)
        for need, end in zip(needs, ends.tolist(), strict=True):
            pool: dict[str, Any] = {"parts": caches.parts[:end], "uses": caches.uses[:end]}
            views.append(caches._replace(**pool, size=np.array([end - need])))
        return views, int(caches.size[0])

    def _close_up(self, views: Sequence[Caches], before: int) -> None:
        """Push the lists in these stretches together, and let the weights that they touch join the support."""
        caches, at, begin = self.caches, before, before
        for view in views:
            end = int(view.size[0])
            if at < begin:
                moved = (caches.starts >= begin) & (caches.starts < end)
                for pool in caches.parts, caches.uses:
                    pool[at : at + end - begin] = pool[begin:end].copy()
                caches.starts[moved] -= begin - at
            at, begin = at + end - begin, len(view.parts)
        caches.size[0] = at
        if len(self.listed) < self.problem.dim:
            join(self.blocks.rows, caches, self.support, before)
