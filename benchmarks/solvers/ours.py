"""m3n itself: the same phases as its rivals, machine code loaded on a sample before the clock runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks.solvers.base import Clock, Entry, Outcome, Point, Stopwatch, Task
from benchmarks.solvers.packed import Packed, ingest
from benchmarks.weights import Weights

WARM_UP = 300  # passes over the sample: enough to meet all of a solver's machine code


class Ours(Entry):
    """m3n's functions.

    Settings: ``solver`` (a name, "auto" if absent), ``jobs`` (threads, 1 if absent), ``tol`` (an absolute gap instead
    of the relative one), ``rtol`` (a relative one instead of the contest's), ``watch`` (test score along the way),
    ``max_seconds``, ``max_passes``.
    """

    name = "m3n"
    modules = ("m3n",)
    ours = True
    objectives = ("crf", "margin")

    def run(self, task: Task) -> Outcome:
        with task.clock("warm-up"):
            brief = task.settings | {"max_seconds": None, "max_passes": WARM_UP}
            _run(replace(task, dataset=task.dataset.small, settings=brief, clock=Clock()))
        task.clock.ready()
        return _run(task)


class FirstFit(Entry):
    """The estimator in a new process, as a user meets it: nothing is loaded, machine code comes from the cache."""

    name = "m3n, first fit"
    modules = ("m3n",)
    ours = True
    objectives = ("crf", "margin")

    def run(self, task: Task) -> Outcome:
        X, y = map(list, zip(*task.dataset.sentences(task.dataset.train), strict=True))
        with task.clock("import"):
            from m3n import SequenceTagger
            from m3n.estimators import sequence_tagger

        known = getattr(sequence_tagger, "OBJECTIVES", self.objectives)
        objective = task.objective.name if task.objective.name in known else "margin"
        lam, limit = task.objective.lam(len(y)), task.settings.get("max_seconds")
        with task.clock("train"):
            tagger = SequenceTagger(objective, lam=lam, max_seconds=limit, n_jobs=1).fit(X, y)
        return Outcome(notes={"objective": objective, "gap": tagger.certificate_.gap})


def _run(task: Task) -> Outcome:
    clock, jobs = task.clock, task.settings.get("jobs", 1)
    with clock("ingest"):
        packed = ingest(task.dataset)
    score = _scorer(task, packed, jobs) if task.settings.get("watch") else None
    with clock("train") as stopwatch:
        watch = Watch(stopwatch, _relative(task), score)
        features = packed.features(task.objective, packed.X)
        packed = packed.without_rows()
        problem = packed.problem(task.objective, features, jobs)
        result = _minimize(problem, task, watch)
    test, lengths = _test(task, packed)
    clock.best("file to labels", lambda: packed.tag(*_test(task, packed), result.w, jobs))
    weights = packed.weights(problem.features, result.w)
    tagger = _tagger(weights, packed.classes)
    clock.each(lambda sentence: tagger.predict([sentence]), task.asked)
    return Outcome(
        found=clock.best("tag", lambda: packed.tag(test, lengths, result.w, jobs), times=5),
        objective=problem.primal(result.w),
        weights=weights,
        trace=watch.trace,
        passes=result.trace[-1].passes,
        pass_seconds=_pass_seconds(problem, result.w),
        notes={"weights": problem.dim, "status": str(result.status), "solver": type(result.solver).__name__},
    )


def _test(task: Task, packed: Packed) -> tuple[Any, np.ndarray]:
    """The feature map of the test sequences, and their lengths."""
    rows, lengths = packed.read(task.dataset.test)
    return packed.features(task.objective, rows), lengths


def _tagger(weights: Weights, classes: list[str]) -> Any:
    """The estimator that answers single calls: it takes lists of strings, as the rivals do."""
    from m3n.compat.imported import attribute_reader, tagger_of

    number = {label: k for k, label in enumerate(classes)}
    row = {attribute: k for k, attribute in enumerate(dict.fromkeys(attribute for attribute, _ in weights.states))}
    places = [(row[attribute], number[label]) for attribute, label in weights.states]
    values, shape = list(weights.states.values()), (len(row), len(classes))
    coef = csr_array((values, tuple(zip(*places, strict=True))), shape=shape)
    transitions = np.zeros((len(classes), len(classes)))
    for (before, after), value in weights.transitions.items():
        transitions[number[before], number[after]] = value
    return tagger_of(classes, attribute_reader(row), coef, transitions, n_jobs=1)


def _scorer(task: Task, packed: Packed, jobs: int) -> Callable[[np.ndarray], float]:
    test, gold = _test(task, packed), task.dataset.gold()
    return lambda w: task.dataset.score(gold, packed.tag(*test, w, jobs))


class Watch:
    """A callback that keeps the trace; what it spends on test scores is not charged to training.

    Parameters
    ----------
    stopwatch : Stopwatch
        The time of training.
    relative : float or None
        End the run when the gap is at most this share of the primal value.
    score : callable or None
        From weights to a test score.
    """

    def __init__(self, stopwatch: Stopwatch, relative: float | None, score: Callable[[np.ndarray], float] | None):
        self.stopwatch = stopwatch
        self.relative = relative
        self.score = score
        self.trace: list[Point] = []

    def __call__(self, snapshot: Any) -> bool:
        now, record = self.stopwatch.read(), snapshot.record
        with self.stopwatch.paused():
            score = self.score(snapshot.w) if self.score else None
        self.trace.append(Point(*now, record.primal, record.gap, score, record.passes))
        return self.relative is not None and record.gap <= self.relative * abs(record.primal)


def _relative(task: Task) -> float | None:
    return None if "tol" in task.settings else task.settings.get("rtol", task.stop)


def _minimize(problem: Any, task: Task, watch: Watch) -> Any:
    from m3n import minimize

    settings, relative = task.settings, _relative(task)
    goal = {"tol": settings.get("tol", 0.0)}
    if relative is not None and "rtol" in inspect.signature(minimize).parameters:
        goal["rtol"] = relative
    limits = {name: settings.get(name) for name in ("max_passes", "max_seconds")}
    return minimize(problem, settings.get("solver", "auto"), **goal, **limits, callbacks=[watch])


def _pass_seconds(problem: Any, w: np.ndarray) -> tuple[float, float]:
    """The shortest of many passes (objective and gradient at w), as CRFsuite's is the shortest of its iterations."""
    from m3n.packed.threads import single_threaded_blas

    clock = Clock()
    with single_threaded_blas():
        clock.best("pass", lambda: problem.risk(w), times=60)
    return clock.seconds["pass"], clock.cpu["pass"]
