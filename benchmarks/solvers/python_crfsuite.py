"""python-crfsuite: the C library CRFsuite behind a thin wrapper, L-BFGS, one thread.

Sentences are appended as they are described, so no Python list of the whole corpus counts towards its memory.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from benchmarks.datasets import Sequences
from benchmarks.objectives import CRF, Objective
from benchmarks.solvers.base import Entry, Outcome, Point, Stopwatch, Task, Unsuitable
from benchmarks.weights import Weights


class PythonCRFsuite(Entry):
    """``Trainer.append``, ``Trainer.train`` with its own stop, ``Tagger.tag``.

    Settings: ``cold``, training only; ``max_iterations``, a limit that users set.
    """

    name = "python-crfsuite"
    modules = ("pycrfsuite",)
    objectives = ("crf",)

    def run(self, task: Task) -> Outcome:
        import pycrfsuite

        trace: list[Point] = []
        trainer = _watched(pycrfsuite, trace)
        trainer.set_params(parameters(task.objective) | iterations(task))
        task.clock.ready()
        with task.clock("ingest"):
            count = 0
            for attributes, labels in task.dataset.sentences(task.dataset.train):
                trainer.append(attributes, labels)
                count += 1
        model = str(task.folder / "model")
        with task.clock("train"):
            trainer.watch.start()
            trainer.train(model)
        if task.settings.get("cold"):
            return Outcome()
        tagger = pycrfsuite.Tagger()
        tagger.open(model)
        found = tag(task, tagger, pycrfsuite)
        info = tagger.info()
        trace = [replace(point, objective=point.objective / count) for point in trace if point.objective is not None]
        return Outcome(
            found=found,
            objective=trace[-1].objective,
            weights=Weights(info.state_features, info.transitions),
            trace=trace,
            passes=len(trace),
            pass_seconds=per_iteration(trace),
            notes={"weights": trainer.logparser.featgen_num_features},
        )


def parameters(objective: Objective) -> dict[str, Any]:
    """CRFsuite's names for the objective."""
    if not isinstance(objective, CRF):
        raise Unsuitable("CRFsuite trains conditional random fields only")
    every = objective.states == "all"
    possible = {"feature.possible_states": every, "feature.possible_transitions": every}
    return {"c1": objective.c1, "c2": objective.c2, **possible}


def iterations(task: Task) -> dict[str, int]:
    """The limit on iterations, if the contest sets one."""
    return {name: value for name, value in task.settings.items() if name == "max_iterations"}


def per_iteration(trace: list[Point]) -> tuple[float, float] | None:
    """Seconds and CPU seconds of the shortest iteration: one evaluation, without a longer line search."""
    pairs = list(pairwise(trace))
    if not pairs:
        return None
    return min(b.seconds - a.seconds for a, b in pairs), min(b.cpu - a.cpu for a, b in pairs)


def tag(task: Task, tagger: Any, pycrfsuite: Any) -> Sequences:
    """Tag the test sentences: from CRFsuite's own sequences, from the file as lists of strings, and those singly."""
    test = task.dataset.test
    ready = [pycrfsuite.ItemSequence(attributes) for attributes, _ in task.dataset.sentences(test)]
    with task.clock("file to labels"):
        for attributes, _ in task.dataset.sentences(test):
            tagger.tag(attributes)
    task.clock.each(tagger.tag, task.asked)
    return task.clock.best("tag", lambda: [tagger.tag(sequence) for sequence in ready])


def _watched(pycrfsuite: Any, trace: list[Point]) -> Any:
    """A trainer that notes the time and the loss of every iteration."""

    class Watched(pycrfsuite.Trainer):
        watch = Stopwatch()
        seen = 0

        def message(self, message: str) -> None:
            super().message(message)
            events = self.logparser.events
            if len(events) > self.seen and events[-1][0] == "iteration":
                now, info = self.watch.read(), self.logparser.last_iteration
                trace.append(Point(*now, info["loss"], passes=info["num"]))
            self.seen = len(events)

    return Watched(verbose=False)
