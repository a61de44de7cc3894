"""sklearn-crfsuite: python-crfsuite behind scikit-learn's interface; it takes the whole corpus as lists."""

from __future__ import annotations

from benchmarks.solvers.base import Entry, Outcome, Task
from benchmarks.solvers.python_crfsuite import iterations, parameters
from benchmarks.weights import Weights


class SklearnCRFsuite(Entry):
    """``CRF.fit`` (which appends and trains) and ``CRF.predict``. Settings: ``max_iterations``."""

    name = "sklearn-crfsuite"
    modules = ("sklearn_crfsuite",)
    objectives = ("crf",)

    def run(self, task: Task) -> Outcome:
        import sklearn_crfsuite

        asked = parameters(task.objective)
        crf = sklearn_crfsuite.CRF(
            c1=asked["c1"],
            c2=asked["c2"],
            all_possible_states=asked["feature.possible_states"],
            all_possible_transitions=asked["feature.possible_transitions"],
            **iterations(task),
        )
        with task.clock("ingest"):
            X, y = map(list, zip(*task.dataset.sentences(task.dataset.train), strict=True))
        with task.clock("train"):
            crf.fit(X, y)
        lists = [attributes for attributes, _ in task.dataset.sentences(task.dataset.test)]
        found = task.clock.best("tag", lambda: crf.predict(lists))
        task.clock.each(crf.predict_single, task.asked)
        weights = Weights(crf.state_features_, crf.transition_features_)
        return Outcome(found=[list(labels) for labels in found], weights=weights)
