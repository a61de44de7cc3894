"""CRF++: a chain CRF in C++ with threads; its penalty is |w|^2 / (2 C), so C = 1 / (2 c2). All states have weights.

Its templates pad the ends of sentences with symbols, so its model has more attributes than ours and its objective value
is reported by its own account only.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.datasets.chunking import TEMPLATES, read
from benchmarks.objectives import CRF
from benchmarks.solvers.base import Outcome, Task, Unsuitable
from benchmarks.solvers.program import Program

PROGRESS = re.compile(r"iter=(\d+) .*obj=([\d.]+)")


class CRFpp(Program):
    """``crf_learn``, ``crf_test``. Settings: ``jobs``, threads."""

    name = "crf++"
    programs = ("crf_learn", "crf_test")
    objectives = ("crf",)

    def write(self, task: Task) -> None:
        if not isinstance(task.objective, CRF) or task.objective.states != "all" or task.dataset.name != "chunking":
            raise Unsuitable("CRF++ takes columns, and has weights for all states")
        if task.objective.c1:
            raise Unsuitable("CRF++ has one penalty or the other, not both")
        (task.folder / "template").write_text(template())
        for part in ("train", "test"):
            _write(getattr(task.dataset, part), task.folder / part)

    def train(self, task: Task) -> list[str]:
        assert isinstance(task.objective, CRF)
        penalty = ["-a", "CRF-L2", "-c", str(1 / (2 * task.objective.c2)), "-p", str(task.settings.get("jobs", 1))]
        return ["crf_learn", *penalty, *(str(task.folder / name) for name in ("template", "train", "model"))]

    def tag(self, task: Task) -> list[str]:
        return ["crf_test", "-m", str(task.folder / "model"), str(task.folder / "test")]

    def read(self, task: Task, log: str, told: str) -> Outcome:
        sentences = [block.splitlines() for block in told.strip().split("\n\n")]
        found = [[line.split()[-1] for line in lines] for lines in sentences]
        iterations = PROGRESS.findall(log)
        value = float(iterations[-1][1]) / len(task.labels)
        return Outcome(found=found, objective=value, passes=len(iterations))


def template() -> str:
    """Our windows in CRF++'s words."""
    lines = [
        f"U{k:02d}:" + "/".join(f"%x[{offset},{column}]" for offset in window)
        for k, (_, column, window) in enumerate(TEMPLATES)
    ]
    return "\n".join([*lines, "B", ""])


def _write(source: str, target: Path) -> None:
    with target.open("w", encoding="utf-8") as file:
        for rows in read(source):
            file.write("".join(" ".join(row) + "\n" for row in rows) + "\n")
