"""dlib's structural SVM solver (cutting planes with cached planes), with a max-oracle in NumPy.

It minimises 1/2 |w|^2 + C R(w), R the mean of the losses, until R is known to within epsilon: that is J / lam with
C = 1/lam, and epsilon is a gap in the units of J.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.objectives import Margin
from benchmarks.solvers.base import Entry, Outcome, Task
from benchmarks.solvers.words import Model, Words, features, images, size, training_words


class Dlib(Entry):
    """``solve_structural_svm_problem``. Settings: ``tol``, the gap at which to stop."""

    name = "dlib"
    modules = ("dlib", "numpy")
    objectives = ("margin",)

    def run(self, task: Task) -> Outcome:
        import dlib

        with task.clock("ingest"):
            words = training_words(task.dataset)
            problem = _Problem(dlib, words, task)
        with task.clock("train"):
            w = np.array(dlib.solve_structural_svm_problem(problem))
        model, test = Model.of(w, len(words.classes)), images(task.dataset, task.dataset.test)[0]
        return Outcome(
            found=task.clock.best("tag", lambda: model.tag(test, words.classes), times=1),
            weights=model.weights(words.classes),
            passes=problem.calls / len(words.X),
            notes={"weights": len(w)},
        )


class _Problem:
    """What dlib asks for."""

    def __init__(self, dlib: Any, words: Words, task: Task):
        assert isinstance(task.objective, Margin)
        self.vector, self.X, self.y = dlib.vector, words.X, words.y
        self.labels = len(words.classes)
        self.num_samples, self.num_dimensions = len(words.X), size(self.labels)
        self.C = 1 / task.objective.lam(len(words.X))
        self.epsilon = task.settings.get("tol", 0.1)
        self.normalized = task.objective.loss == "normalized_hamming"
        self.calls = 0
        self.state: Any = None

    def get_truth_joint_feature_vector(self, i: int) -> Any:
        return self.vector(features(self.X[i], self.y[i], self.labels).tolist())

    def separation_oracle(self, i: int, w: Any) -> tuple[float, Any]:
        model = self._model(w)
        self.calls += 1
        letters, unit = self.y[i], 1 / len(self.y[i]) if self.normalized else 1.0
        cost = np.full((len(letters), self.labels), unit)
        cost[np.arange(len(letters)), letters] = 0.0
        found = model.best(self.X[i], cost)
        return unit * float((found != letters).sum()), self.vector(features(self.X[i], found, self.labels).tolist())

    def _model(self, w: Any) -> Model:
        """The weights as arrays; they stay the same for many calls, and converting takes ten times the oracle."""
        state = w.__getstate__()
        if state != self.state:
            self.state, self.model = state, Model.of(np.array(w), self.labels)
        return self.model
