"""crfs: CRFsuite's tagger in Rust. Its Python package tags and does not train, so it is given python-crfsuite's model.

The trainer of its Rust library has no package for Python.
"""

from __future__ import annotations

from typing import Any

from benchmarks.solvers.base import Entry, Outcome, Task
from benchmarks.solvers.python_crfsuite import iterations, parameters


class Crfs(Entry):
    """``Model.open`` and ``Model.tag``; training is not timed. Settings: ``max_iterations`` of python-crfsuite."""

    name = "crfs"
    modules = ("crfs", "pycrfsuite")
    objectives = ("crf",)

    def run(self, task: Task) -> Outcome:
        import crfs

        model = crfs.Model.open(_trained(task))
        ready = [_attributes(crfs, sentence) for sentence, _ in task.dataset.sentences(task.dataset.test)]
        found = task.clock.best("tag", lambda: [model.tag(sentence) for sentence in ready])
        task.clock.each(lambda sentence: model.tag(_attributes(crfs, sentence)), task.asked)
        return Outcome(found=found)


def _attributes(crfs: Any, sentence: list[list[str]]) -> list[list[Any]]:
    """Its own objects: given the strings themselves, it is several times slower."""
    return [[crfs.Attribute(name) for name in token] for token in sentence]


def _trained(task: Task) -> str:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params(parameters(task.objective) | iterations(task))
    for attributes, labels in task.dataset.sentences(task.dataset.train):
        trainer.append(attributes, labels)
    trainer.train(str(task.folder / "model"))
    return str(task.folder / "model")
