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
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from m3n.compiled.progress import clock
from m3n.estimators.trained import Trained
from m3n.solvers.base import at_least, seed_of
from m3n.tuning.candidates import Candidate, mean
from m3n.tuning.fold_run import FoldRun
from m3n.tuning.guarantee import Cell, Guarantee, cells_of, joined
from m3n.tuning.progress import Bar
from m3n.tuning.refinement import Refinement
from m3n.tuning.result import Tuning, scoring_name
from m3n.tuning.settings import (
    Data,
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

Told = Callable[[str], None]


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
    search = Search(estimator, data, settings, values, scoring, rtol, proves=guarantee is not False)
    with ExitStack() as stack:
        if verbose:
            search.tell = stack.enter_context(Bar(search.size)).tell
        return search.go(None if isinstance(guarantee, bool) else float(guarantee), budget, refit)


class Search:
    """A search on its way.

    Parameters
    ----------
    estimator : estimator
        With all settings that are not searched.
    data : Data
        The examples and their folds.
    settings : list of dict
        The combinations of the grid.
    lams : list of float
        The values of lam, the largest first.
    scoring, rtol
        As in ``tune``.
    proves : bool
        Whether bounds are wanted.
    """

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
        k, best = self.best()
        if wish is not None and self.proves and not self.obstacles[k]:
            spent = clock() - begin
            Refinement(self, k, wish, spent if budget is None else budget).go()
            k, best = self.best()
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

    def best(self) -> tuple[int, Candidate]:
        """The best of those that saw all folds, and its combination."""
        full = [
            (k, candidate)
            for k, line in enumerate(self.candidates)
            for candidate in line
            if not candidate.abandoned and len(candidate.scores) == self.data.folds
        ]
        return max(full, key=lambda entry: (mean(entry[1].scores), entry[1].lam))

    def proven(self, k: int, wish: float | None = None) -> Guarantee:
        """What is known of all lams, for a combination."""
        lams = [candidate.lam for candidate in self.candidates[k]]
        best = mean(self.best()[1].scores)
        return Guarantee(joined(self.cells[k], self.data.folds, min(lams), max(lams)), best, wish)

    # one fold of one combination

    def _visit(self, k: int, number: int) -> None:
        line = [candidate for candidate in self.candidates[k] if not candidate.abandoned]
        if not line:
            return
        run = self.fold_run(k, number)
        cells = cells_of(candidate.lam for candidate in line)
        self.tell(self._name(k, number))
        for candidate, point in zip(line, run.walk([c.lam for c in line], self._tolerances()), strict=True):
            candidate.note(run.score(), point)
            self.obstacles[k] = self.obstacles[k] or run.obstacle
            if self.proves and not self.obstacles[k]:
                self.cells[k].append(run.cell(cells[candidate.lam]))
            self.tell(f"{self._name(k, number)} lam {candidate.lam:.3g}")

    def fold_run(self, k: int, number: int) -> FoldRun:
        """A fold with one of the combinations, read anew."""
        model = self._model({**self.settings[k], "lam": None})
        return FoldRun(model, self.data.fold(number), self.scoring, number)

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
        best = max(alive, key=lambda candidate: (mean(candidate.scores), candidate.lam))
        usual = math.sqrt(mean([float(np.var(candidate.scores, ddof=1)) for candidate in alive]))
        for candidate in alive:
            away = np.subtract(best.scores, candidate.scores)
            spread = max(float(np.std(away, ddof=1)), usual)
            if float(away.mean()) > FAR * spread:
                candidate.abandoned = True
                log.info(
                    "tune gives up %s lam=%.4g after %d folds: %.4g below the best, with a spread of %.2g",
                    candidate.params, candidate.lam, len(candidate.scores), float(away.mean()), spread,
                )  # fmt: skip


def _ordered(line: list[Candidate]) -> list[Candidate]:
    return sorted(line, key=lambda candidate: -candidate.lam)
