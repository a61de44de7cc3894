"""The search: fold by fold, combination by combination, along a path over lam.

A fold's training examples are read once for a combination of the grid; all values of lam share what is made of them,
and every run begins where the one before has ended (``m3n.run.paths``). Models of the search are trained to 5 % of
their objective (``SEARCH``) unless the estimator itself asks for less; the last fit keeps the estimator's own.

After two folds or more, settings are given up that are hopeless: those that the best one so far beats by more than
``FAR`` times the spread, on average over the folds that both have. The spread is the standard deviation of the
differences, fold by fold, or if larger that of the scores of a setting, in the mean of all: two folds that agree by
chance give up nobody.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from m3n.compiled.progress import clock
from m3n.estimators.trained import Trained
from m3n.estimators.training import Prepared
from m3n.run.loop import Status
from m3n.run.paths import PathPoint, walk
from m3n.solvers import resolve_solver
from m3n.solvers.base import at_least, seed_of
from m3n.tuning.finality import obstacle, possible_labels
from m3n.tuning.guarantee import POINTS, Cell, Guarantee, Solved, cells_of, joined, relative_radius
from m3n.tuning.result import Row, Tuning, scoring_name
from m3n.tuning.settings import (
    Data,
    Judge,
    Scoring,
    check_estimator,
    check_scoring,
    combinations,
    cut,
    values_of_lam,
)

log = logging.getLogger("m3n")

SEARCH = 0.05  # of the objective: differences between values of lam are seen at it, see docs/tuning.md
FAR = 3.0
FIRST = 0.01  # half the width of the first cell of a guarantee, in logarithms
OVERLAP = 1.8  # of the reach: how far the next lam is from the edge of a cell that may be as wide, at most 2
STRICTER = 4.0  # how much smaller a reach is taken where the gap alone is too large
GROWTH, TRIES = 1.3, 3  # how cells are made wider, and how often from one to the next
FINE = 0.25  # radius of the gap, by |w| and the reach, of which a cell has a half at its ends
THINNEST = 1e-5  # reach of a cell

Told = Callable[[str], None]


@dataclass
class Candidate:
    """A setting on its way through the folds."""

    params: dict[str, Any]
    lam: float
    scores: list[float] = field(default_factory=list)
    gap: float = 0.0
    passes: float = 0.0
    seconds: float = 0.0
    abandoned: bool = False
    added: bool = False

    def row(self) -> Row:
        """What became of it."""
        return Row(**(vars(self) | {"scores": tuple(self.scores)}))


def tune(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    lams: Iterable[float] | int | None = None,
    grid: Mapping[str, Iterable[Any]] | None = None,
    cv: int = 5,
    validation: tuple[Any, Any] | None = None,
    scoring: Scoring = None,
    rtol: float | None = None,
    guarantee: bool | float = True,
    budget: float | None = None,
    refit: bool = True,
    seed: Any = 0,
    verbose: bool = False,
) -> Tuning:
    """Find lam, and other settings, by scores on examples that are held out, and prove what other lams could bring.

    Parameters
    ----------
    estimator : estimator
        With all settings that are not searched; it stays as it is.
    X : examples
        As in ``fit``, one entry per example, in memory.
    y : outputs
        As in ``fit``.
    lams : iterable of float, int or None
        Values of lam, or how many; None means 20 of them, from 30/n to 0.3/n at equal ratios.
    grid : mapping or None
        Values of further parameters by name, such as ``{"objective": ["margin", "crf"]}``; all combinations are tried.
    cv : int
        Folds of the cross-validation: whole examples, in random order.
    validation : tuple or None
        Inputs and outputs that models are scored on, instead of cross-validation.
    scoring : {"accuracy", "f1"}, callable or None
        "accuracy" or None for the estimator's ``score`` (of labels at positions), "f1" for that of chunks, or a
        function of the right and the predicted outputs; larger is better.
    rtol : float or None
        Models of the search are trained until the gap is this part of the objective. None means 0.05, or the
        estimator's own tolerance if that is larger.
    guarantee : bool or float
        Whether to prove what all lams between the searched ones could score, for linear models of sequences that are
        scored by accuracy. A number asks for more: lams are added and solved better until no lam in the range can be
        better than the best one by more than so many points (hundredths of the score), or the budget ends.
    budget : float or None
        Seconds for that; None: as long as the search itself took.
    refit : bool
        Whether to fit the chosen setting to all examples.
    seed : int, RandomState, Generator or None
        Of the order of examples in folds.
    verbose : bool
        Show a progress bar.

    Returns
    -------
    Tuning
        Scores of all settings, the best one, its model, and what is proven.

    Examples
    --------
    >>> import m3n
    >>> X = [[["word=the"], ["word=dog"]], [["word=dogs"], ["word=bark"]]] * 5
    >>> y = [["D", "N"], ["N", "V"]] * 5
    >>> found = m3n.tune(m3n.SequenceTagger(), X, y, lams=[1.0, 0.1, 0.01], cv=2)
    >>> found.best_score, found.estimator.lam == found.best_lam
    (1.0, True)
    """
    check_estimator(estimator)
    check_scoring(scoring, estimator)
    at_least(0, rtol=rtol, budget=budget, guarantee=float(guarantee))
    data = cut(X, y, cv, validation, seed_of(seed))
    settings = combinations(estimator, grid)
    values = values_of_lam(lams, estimator._usual_strength() / data.count)
    search = _Search(estimator, data, settings, values, scoring, rtol, proves=guarantee is not False)
    with ExitStack() as stack:
        if verbose:
            search.tell = stack.enter_context(_Bar(search.size)).tell
        return search.go(None if isinstance(guarantee, bool) else float(guarantee), budget, refit)


class _Search:
    """A search on its way."""

    def __init__(
        self,
        estimator: Trained,
        data: Data,
        settings: list[dict[str, Any]],
        lams: list[float],
        scoring: Scoring,
        rtol: float | None,
        *,
        proves: bool,
    ):
        self.estimator, self.data, self.settings, self.scoring = estimator, data, settings, scoring
        self.rtol, self.proves = rtol, proves
        self.candidates = [[Candidate(params, lam) for lam in lams] for params in settings]
        self.cells: list[list[Cell]] = [[] for _ in settings]
        self.obstacles = ["" if scoring in (None, "accuracy") else "it is scored otherwise"] * len(settings)
        self.size = len(lams) * len(settings) * data.folds
        self.tell: Told = lambda text: None

    def go(self, wish: float | None, budget: float | None, refit: bool) -> Tuning:
        begin = clock()
        for number in range(self.data.folds):
            for k in range(len(self.settings)):
                self._visit(k, number)
            if 1 < number + 1 < self.data.folds:
                self._give_up()
        k, best = self._best()
        if wish is not None and self.proves and not self.obstacles[k]:
            spent = clock() - begin
            _Refinement(self, k, wish, spent if budget is None else budget).go()
            k, best = self._best()
        seconds = clock() - begin
        model = self._model(best.params).set_params(lam=best.lam) if refit else None
        if model is not None:
            self.tell("last fit")
            model.fit(self.data.X, self.data.y)
        return self._outcome(k, best, wish, model, seconds)

    def _outcome(self, k: int, best: Candidate, wish: float | None, model: Any, seconds: float) -> Tuning:
        pairs = [(candidate, candidate.row()) for line in self.candidates for candidate in _ordered(line)]
        chosen = next(row for candidate, row in pairs if candidate is best)
        why = self.obstacles[k] if self.proves else ""
        proven = self.proven(k, wish) if self.proves and not why else None
        return Tuning(
            tuple(row for _, row in pairs), chosen, scoring_name(self.scoring), self.data.folds, model, proven, why,
            seconds,
        )  # fmt: skip

    def _best(self) -> tuple[int, Candidate]:
        """The best of those that saw all folds, and its combination."""
        full = [
            (k, candidate)
            for k, line in enumerate(self.candidates)
            for candidate in line
            if not candidate.abandoned and len(candidate.scores) == self.data.folds
        ]
        return max(full, key=lambda entry: (_mean(entry[1].scores), entry[1].lam))

    def proven(self, k: int, wish: float | None = None) -> Guarantee:
        """What is known of all lams, for a combination."""
        lams = [candidate.lam for candidate in self.candidates[k]]
        best = _mean(self._best()[1].scores)
        return Guarantee(joined(self.cells[k], self.data.folds, min(lams), max(lams)), best, wish)

    # one fold of one combination

    def _visit(self, k: int, number: int) -> None:
        line = [candidate for candidate in self.candidates[k] if not candidate.abandoned]
        if not line:
            return
        fold = FoldRun(self, k, number)
        cells = cells_of(candidate.lam for candidate in line)
        self.tell(self._name(k, number))
        for candidate, point in zip(line, fold.walk([c.lam for c in line], self._tolerances()), strict=True):
            _note(candidate, fold.score(), point)
            if self.proves:
                fold.prove(cells[candidate.lam])
            self.tell(f"{self._name(k, number)} lam {candidate.lam:.3g}")

    def _tolerances(self) -> dict[str, float]:
        """Those of the search."""
        own = self.estimator
        return {"tol": own.tol, "rtol": max(own._relative(), SEARCH) if self.rtol is None else self.rtol}

    def _name(self, k: int, number: int) -> str:
        words = [f"fold {number + 1}/{self.data.folds}"] if self.data.folds > 1 else []
        return " ".join([*words, *([f"setting {k + 1}/{len(self.settings)}"] if len(self.settings) > 1 else [])])

    def _model(self, params: Mapping[str, Any]) -> Any:
        """An unfitted estimator with some parameters."""
        own = type(self.estimator)(**self.estimator.get_params(deep=False))
        return own.set_params(**params)

    # settings without hope

    def _give_up(self) -> None:
        """Those that are far behind the best, given how much scores vary from fold to fold."""
        alive = [candidate for line in self.candidates for candidate in line if not candidate.abandoned]
        best = max(alive, key=lambda candidate: (_mean(candidate.scores), candidate.lam))
        usual = math.sqrt(_mean([float(np.var(candidate.scores, ddof=1)) for candidate in alive]))
        for candidate in alive:
            away = np.subtract(best.scores, candidate.scores)
            spread = max(float(np.std(away, ddof=1)), usual)
            if float(away.mean()) > FAR * spread:
                candidate.abandoned = True
                log.info(
                    "tune gives up %s lam=%.4g after %d folds: %.4g below the best, with a spread of %.2g",
                    candidate.params, candidate.lam, len(candidate.scores), float(away.mean()), spread,
                )  # fmt: skip


class FoldRun:
    """A fold's training problem for one combination, the judge of its models, and what they prove.

    Parameters
    ----------
    search : _Search
        The search.
    k : int
        Number of the combination.
    number : int
        Number of the fold.
    """

    def __init__(self, search: Any, k: int, number: int):
        self.search, self.k, self.number = search, k, number
        fold = search.data.fold(number)
        self.model = search._model({**search.settings[k], "lam": None})
        self.prepared: Prepared = self.model._prepared(fold.X, fold.y)
        self.judge = Judge(fold, search.scoring)
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

    def prove(self, cell: tuple[float, float]) -> None:
        """Bounds of the score for all lams in a cell around that of the newest model."""
        search, why = self.search, obstacle(self.trained)
        if why or search.obstacles[self.k]:
            search.obstacles[self.k] = search.obstacles[self.k] or why
            return
        search.cells[self.k].append(Cell(self.number, *cell, *self.enclosed(self.radius(cell))))

    def radius(self, cell: tuple[float, float]) -> float:
        """How far the optima of a cell are from the newest model's weights at most."""
        point, problem = self.last, self.prepared.problem
        solved = Solved(point.lam, point.certificate.gap, math.sqrt(problem.inner(point.w, point.w)))
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


class _Refinement:
    """More lams, solved better, from the best one outwards, each in the middle of a cell as wide as the wish allows."""

    def __init__(self, search: _Search, k: int, wish: float, budget: float):
        self.search, self.k, self.wish, self.until = search, k, wish, clock() + budget
        self.range = min(c.lam for c in search.candidates[k]), max(c.lam for c in search.candidates[k])
        self.runs: list[FoldRun] = []
        self.reach = FIRST  # half the width of a cell, in logarithms

    def go(self) -> None:
        """Extend what is proven, upwards and downwards in turn, to the ends of the range or of time."""
        if not self._left():
            return
        self.runs = [FoldRun(self.search, self.k, number) for number in range(self.search.data.folds)]
        begin = self.search._best()[1].lam
        if not self._cover(begin):
            return
        edges = {1.0: begin * math.exp(self.reach), -1.0: begin * math.exp(-self.reach)}
        while self._left() and (ahead := [way for way, edge in edges.items() if self._inside(edge)]):
            way = min(ahead, key=lambda way: abs(math.log(edges[way] / begin)))
            further = self._extend(edges[way], way)
            if further == edges[way]:
                return
            edges[way] = further

    def _left(self) -> float:
        return max(self.until - clock(), 0.0)

    def _inside(self, edge: float) -> bool:
        return self.range[0] < edge < self.range[1]

    def _extend(self, edge: float, way: float) -> float:
        """The new edge after one more cell that meets the old one; the old one if there is none."""
        step = OVERLAP * self.reach
        while self._left() and step > THINNEST:
            lam = min(max(edge * math.exp(way * step), self.range[0]), self.range[1])
            if self._cover(lam) and way * math.log(edge / lam) >= -self.reach:
                return lam * math.exp(way * self.reach)
            step /= 2.0
        return edge

    def _cover(self, lam: float) -> bool:
        """Solve for a lam and prove a cell around it; False if not even that lam can be proven to be no better."""
        self._solve(lam)
        while not self._enough(self._bounds(lam, 0.0)):
            if not self._left() or self.reach < THINNEST:
                return False
            self.reach /= STRICTER
            self._solve(lam)
        bounds = self._widest(lam)
        if bounds:
            cell = lam * math.exp(-self.reach), lam * math.exp(self.reach)
            self.search.cells[self.k] += [Cell(run.number, *cell, *b) for run, b in zip(self.runs, bounds, strict=True)]
        self.search.tell(f"proven {math.exp(2 * self.reach) - 1:.1%} around {lam:.3g}")
        return bool(bounds)

    def _solve(self, lam: float) -> None:
        """On all folds, as well as cells of this reach want it."""
        made, limit = Candidate(self.search.settings[self.k], lam, added=True), self._left()
        for run in self.runs:
            for point in run.walk([lam], {"tol": 0.0, "rtol": (FINE * self.reach) ** 2 / 2.0}, limit):
                _note(made, run.score(), point)
        self.search.candidates[self.k].append(made)

    def _widest(self, lam: float) -> list[tuple[float, float]]:
        """Bounds of all folds for the widest cell that fulfils the wish, which sets the reach; none if none does."""
        bounds = self._bounds(lam)
        if self._enough(bounds):
            for _ in range(TRIES):
                self.reach *= GROWTH
                wider = self._bounds(lam)
                if not self._enough(wider):
                    self.reach /= GROWTH
                    break
                bounds = wider
            return bounds
        while self.reach > THINNEST:
            self.reach /= GROWTH
            bounds = self._bounds(lam)
            if self._enough(bounds):
                return bounds
        return []

    def _bounds(self, lam: float, reach: float | None = None) -> list[tuple[float, float]]:
        """Those of all folds for a cell, of this reach if no other is given."""
        reach = self.reach if reach is None else reach
        cell = lam * math.exp(-reach), lam * math.exp(reach)
        return [run.enclosed(run.radius(cell)) for run in self.runs]

    def _enough(self, bounds: list[tuple[float, float]]) -> bool:
        best = _mean(self.search._best()[1].scores)
        return POINTS * (_mean([upper for _, upper in bounds]) - best) <= self.wish


def _note(candidate: Candidate, score: float, point: PathPoint) -> None:
    candidate.scores.append(score)
    candidate.gap = max(candidate.gap, point.certificate.gap)
    candidate.passes += point.passes
    candidate.seconds += point.seconds


def _mean(scores: Sequence[float]) -> float:
    return math.fsum(scores) / len(scores)


def _ordered(line: list[Candidate]) -> list[Candidate]:
    return sorted(line, key=lambda candidate: -candidate.lam)


class _Bar:
    """A line on standard error: how many models of the search are trained."""

    def __init__(self, size: int):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), MofNCompleteColumn()
        self.progress = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))
        self.task = self.progress.add_task("reading", total=size)

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def tell(self, text: str) -> None:
        """A step has been made, if it names a lam."""
        self.progress.update(self.task, description=text, advance=1 if " lam " in f" {text}" else 0)
