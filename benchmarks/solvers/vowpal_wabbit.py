"""Vowpal Wabbit's sequence task: learning to search, online. Another objective, so only time and test score compare."""

from __future__ import annotations

from pathlib import Path

from benchmarks.datasets import Sequences
from benchmarks.solvers.base import Entry, Outcome, Task

SEARCH = "--search_task sequence --search_rollout none --search_alpha 1e-8 --search_history_length 1"
PASSES = 5
TABLE = str.maketrans({":": "_C", "|": "_P", " ": "_S"})  # signs that have a meaning in its format


class VowpalWabbit(Entry):
    """Training and prediction from text files, which is what its users do."""

    name = "vowpalwabbit"
    modules = ("vowpalwabbit",)
    objectives = ("crf", "margin")

    def run(self, task: Task) -> Outcome:
        train, test, model, found = (task.folder / name for name in ("train.vw", "test.vw", "model", "found"))
        with task.clock("ingest"):
            labels = sorted({label for _, sentence in task.dataset.sentences(task.dataset.train) for label in sentence})
            _write(task, task.dataset.train, train, {label: k + 1 for k, label in enumerate(labels)})
        _write(task, task.dataset.test, test, {})
        learn = f"--search {len(labels)} {SEARCH} -b 24 --passes {PASSES} --holdout_off -k --cache_file {model}.cache"
        with task.clock("train"):
            _drive(f"{learn} -d {train} -f {model}")
        with task.clock("tag"):
            _drive(f"-t -i {model} -d {test} -p {found}")
        return Outcome(found=_read(found, labels), passes=PASSES)


def _drive(arguments: str) -> None:
    import vowpalwabbit

    vowpalwabbit.Workspace(f"{arguments} --quiet").finish()


def _write(task: Task, source: str, target: Path, numbers: dict[str, int]) -> None:
    """Sentences as blocks of lines; without numbers there are no labels."""
    with target.open("w", encoding="utf-8") as file:
        for attributes, labels in task.dataset.sentences(source):
            for token, label in zip(attributes, labels, strict=True):
                described = " ".join(attribute.translate(TABLE) for attribute in token)
                file.write(f"{numbers.get(label, '')} | {described}\n")
            file.write("\n")


def _read(path: Path, labels: list[str]) -> Sequences:
    with path.open(encoding="utf-8") as file:
        return [[labels[int(k) - 1] for k in line.split()] for line in file if line.strip()]
