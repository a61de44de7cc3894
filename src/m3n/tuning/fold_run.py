"""One fold for one combination of a grid: its training problem, read once, and what its models score and prove."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from m3n.estimators.training import Prepared
from m3n.run.loop import Status
from m3n.run.paths import PathPoint, walk
from m3n.run.radius import plain_radius
from m3n.solvers import resolve_solver
from m3n.tuning.finality import obstacle, possible_labels
from m3n.tuning.guarantee import Cell, Solved, relative_radius
from m3n.tuning.settings import Fold, Judge, Scoring


class FoldRun:
    """A fold's training problem for one combination, the judge of its models, and what they prove.

    Parameters
    ----------
    model : estimator
        Not fitted, without a lam.
    fold : Fold
        The examples.
    scoring : str, callable or None
        How models are scored.
    number : int
        Of the fold.
    """

    def __init__(self, model: Any, fold: Fold, scoring: Scoring, number: int):
        self.model, self.number = model, number
        self.prepared: Prepared = model._prepared(fold.X, fold.y)
        self.judge = Judge(fold, scoring)
        self.trained: Any = None  # the newest model
        self.last: Any = None  # and the point of a path that it was made of
        self.gold: np.ndarray | None = None

    def walk(
        self, lams: Sequence[float], tolerances: Mapping[str, float], seconds: float = math.inf
    ) -> Iterator[PathPoint]:
        """The path along the estimator's lams, from where the last one ended; every run has at most so many seconds."""
        own, scale = self.model, self.prepared.setup.scale
        seconds = min(seconds, math.inf if own.max_seconds is None else own.max_seconds)
        limits = {"max_passes": own.max_passes, "max_seconds": seconds, "rtol": tolerances["rtol"]}
        values = [lam / scale for lam in lams]
        points = walk(
            self.prepared.problem, values, self._solver(values), backend=own.backend, tol=tolerances["tol"] / scale,
            start=None if self.last is None else self.last.result, **limits,
        )  # fmt: skip
        for point in points:
            if point.result.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            self.trained, self.last = self.model._trained(self.prepared, point.result, point.lam), point
            yield point

    def _solver(self, lams: Sequence[float]) -> Any:
        """One for the whole path: that of a fit at the lam in the middle."""
        own, middle = self.model, self.prepared.problem.with_lam(math.sqrt(lams[0] * lams[-1]))
        return resolve_solver(own.solver, own.random_state, middle, own.tol, own._relative()).solver

    def score(self) -> float:
        """The score of the newest model."""
        return self.judge(self.trained)

    @property
    def obstacle(self) -> str:
        """Why nothing can be proven about its models; empty if something can."""
        return obstacle(self.trained)

    def cell(self, ends: tuple[float, float]) -> Cell:
        """Bounds of the score for all lams in a range around that of the newest model."""
        return Cell(self.number, *ends, *self.enclosed(self.radius(ends)))

    def radius(self, cell: tuple[float, float]) -> float:
        """How far the optima of a cell are from the newest model's weights at most."""
        point, problem = self.last, self.prepared.problem
        gap = point.lam / 2 * plain_radius(point.certificate, point.lam) ** 2  # with what rounding may hide
        solved = Solved(point.lam, gap, math.sqrt(problem.inner(point.w, point.w)))
        return relative_radius(solved, min(cell[0], point.lam), max(cell[1], point.lam))

    def enclosed(self, radius: float) -> tuple[float, float]:
        """Bounds of the accuracy of all weights that are so near to those of the newest model."""
        inputs = self.judge.inputs(self.trained)
        possible, best = possible_labels(self.trained, inputs, radius)
        gold, rows = self._gold(), np.arange(len(best))
        known = gold >= 0
        may = known & possible[rows, np.maximum(gold, 0)]
        sure = (best == gold) & (possible.sum(axis=1) == 1)
        return float(sure.mean()), float(may.mean())

    def _gold(self) -> np.ndarray:
        """The numbers of the right labels; -1 for those that the model does not know."""
        if self.gold is None:
            numbers = {label: k for k, label in enumerate(self.trained.classes_.tolist())}
            labels = [label for given in self.judge.fold.test_y for label in np.asarray(given, dtype=object).tolist()]
            self.gold = np.array([numbers.get(label, -1) for label in labels], dtype=np.int64)
        return self.gold
