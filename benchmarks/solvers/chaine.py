"""chaine: a fork of CRFsuite's core that takes tokens as dicts."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.datasets import Sequences
from benchmarks.solvers.base import Entry, Outcome, Task
from benchmarks.solvers.python_crfsuite import iterations, parameters
from benchmarks.weights import Weights


class Chaine(Entry):
    """``Trainer.train`` (which appends and trains) by L-BFGS, ``Model.predict``. Settings: ``max_iterations``."""

    name = "chaine"
    modules = ("chaine",)
    objectives = ("crf",)

    def run(self, task: Task) -> Outcome:
        from chaine.crf import Model, Trainer
        from chaine.logging import set_verbosity

        set_verbosity(0)
        asked = parameters(task.objective)
        trainer = Trainer(
            "lbfgs",
            c1=asked["c1"],
            c2=asked["c2"],
            all_possible_states=asked["feature.possible_states"],
            all_possible_transitions=asked["feature.possible_transitions"],
            **iterations(task),
        )
        with task.clock("ingest"):
            X, y = _tokens(task, task.dataset.train)
        model = str(task.folder / "model")
        with task.clock("train"):
            trainer.train(X, y, model_filepath=model)
        tagger, test = Model(model), _tokens(task, task.dataset.test)[0]
        found = task.clock.best("tag", lambda: tagger.predict(test))
        task.clock.each(tagger.predict_single, test)
        return Outcome(found=found, weights=_weights(tagger, task))


def _tokens(task: Task, path: str) -> tuple[list[list[dict[str, bool]]], Sequences]:
    X, y = [], []
    for attributes, labels in task.dataset.sentences(path):
        X.append([dict.fromkeys(token, True) for token in attributes])
        y.append(labels)
    return X, y


def _weights(model: Any, task: Task) -> Weights:
    states, transitions = task.folder / "states.json", task.folder / "transitions.json"
    model.dump_states(str(states))
    model.dump_transitions(str(transitions))
    return Weights(
        {(row["feature"], row["label"]): row["weight"] for row in json.loads(states.read_text())},
        {(row["from"], row["to"]): row["weight"] for row in json.loads(transitions.read_text())},
    )
