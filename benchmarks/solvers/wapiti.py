"""Wapiti: a chain CRF in C with threads, with weights for all states.

Its penalty is rho1 |w|_1 + rho2/2 |w|^2, so rho1 = c1 and rho2 = 2 c2. It is given our attributes as they are (raw
features that begin with ``u``, and ``b`` for transitions), so that it does not pad the ends of sentences as its
patterns would.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.objectives import CRF
from benchmarks.solvers.base import Outcome, Point, Task, Unsuitable
from benchmarks.solvers.program import Program, blocks, call
from benchmarks.weights import Weights

PROGRESS = re.compile(r"\[\s*(\d+)\]\s+obj=\s*([\d.]+).*time=\s*[\d.]+s/\s*([\d.]+)s")


class Wapiti(Program):
    """``wapiti train``, ``wapiti label``. Settings: ``jobs``, threads."""

    name = "wapiti"
    programs = ("wapiti",)
    objectives = ("crf",)

    def write(self, task: Task) -> None:
        if not isinstance(task.objective, CRF) or task.objective.states != "all":
            raise Unsuitable("Wapiti has weights for all states")
        for part in ("train", "test"):
            _write(task, getattr(task.dataset, part), task.folder / part, labelled=part == "train")

    def train(self, task: Task) -> list[str]:
        assert isinstance(task.objective, CRF)
        penalty = ["--rho1", str(task.objective.c1), "--rho2", str(2 * task.objective.c2)]
        threads = ["--nthread", str(task.settings.get("jobs", 1))]
        return ["wapiti", "train", *penalty, *threads, str(task.folder / "train"), str(task.folder / "model")]

    def tag(self, task: Task) -> list[str]:
        model, test, found = (str(task.folder / name) for name in ("model", "test", "found"))
        return ["wapiti", "label", "--model", model, "--label", test, found]

    def read(self, task: Task, log: str, told: str) -> Outcome:
        found = [[line.split()[-1] for line in block] for block in blocks(task.folder / "found")]
        dump = task.folder / "dump"
        call("wapiti", "dump", "--prec", "17", str(task.folder / "model"), str(dump))
        trace = progress(log, len(task.labels))
        return Outcome(found=found, weights=read_dump(dump), trace=trace, passes=len(trace))


def progress(log: str, n: int) -> list[Point]:
    """The trace, from lines such as ``[  12] obj=13139.36  act=452755  err= 1.2%/8.3% time=0.40s/4.9s``."""
    found = PROGRESS.findall(log)
    return [Point(float(s), float(s), float(value) / n, passes=float(k)) for k, value, s in found]


def read_dump(path: Path) -> Weights:
    """Weights from lines of feature, label before (``#`` for none), label and weight between tabs."""
    states, transitions = {}, {}
    for line in filter(None, path.read_text(encoding="utf-8").split("\n")):  # some versions put empty lines between
        feature, before, label, value = line.split("\t")
        if before == "#":
            states[feature.removeprefix("u:"), label] = float(value)
        else:
            transitions[before, label] = float(value)
    return Weights(states, transitions)


def _write(task: Task, source: str, target: Path, labelled: bool) -> None:
    with target.open("w", encoding="utf-8") as file:
        for attributes, labels in task.dataset.sentences(source):
            for token, label in zip(attributes, labels, strict=True):
                columns = [*("u:" + attribute for attribute in token), "b", *([label] if labelled else [])]
                file.write("\t".join(columns) + "\n")
            file.write("\n")
