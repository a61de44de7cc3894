"""SVM-hmm: cutting planes with one slack and a cache, in C. It minimises 1/2 |w|^2 + C R(w) with C = 1/lam.

Its loss is the number of wrong labels; its tolerance epsilon is a gap in the units of R.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.objectives import Margin
from benchmarks.solvers.base import Outcome, Task, Unsuitable
from benchmarks.solvers.program import Program, cut


class SVMhmm(Program):
    """``svm_hmm_learn``, ``svm_hmm_classify``. Settings: ``tol``, the gap at which to stop."""

    name = "svm-hmm"
    programs = ("svm_hmm_learn", "svm_hmm_classify")
    objectives = ("margin",)

    def write(self, task: Task) -> None:
        if not isinstance(task.objective, Margin) or task.objective.loss != "hamming":
            raise Unsuitable("SVM-hmm counts wrong labels: use loss='hamming'")
        columns: dict[str, int] = {}
        numbers: dict[str, int] = {}
        write(task, task.dataset.train, task.folder / "train", columns, numbers, grow=True)
        write(task, task.dataset.test, task.folder / "test", columns, numbers, grow=False)
        (task.folder / "labels").write_text("\n".join(numbers))

    def train(self, task: Task) -> list[str]:
        tolerance = str(task.settings.get("tol", 0.1))
        model = [str(task.folder / "train"), str(task.folder / "model")]
        return ["svm_hmm_learn", "-c", repr(1 / task.lam), "-e", tolerance, *model]

    def tag(self, task: Task) -> list[str]:
        return ["svm_hmm_classify", *(str(task.folder / name) for name in ("test", "model", "found"))]

    def read(self, task: Task, log: str, told: str) -> Outcome:
        labels = (task.folder / "labels").read_text().split("\n")
        found = [labels[int(line.split()[0]) - 1] for line in (task.folder / "found").read_text().splitlines() if line]
        return Outcome(found=cut(found, task.dataset.gold()))


def write(task: Task, source: str, target: Path, columns: dict[str, int], numbers: dict[str, int], grow: bool) -> None:
    """Lines ``label qid:sentence column:1 ...``, columns in ascending order; unseen attributes are left out."""
    with target.open("w", encoding="utf-8") as file:
        for k, (attributes, labels) in enumerate(task.dataset.sentences(source), start=1):
            for token, label in zip(attributes, labels, strict=True):
                if grow:
                    numbers.setdefault(label, len(numbers) + 1)
                    for attribute in token:
                        columns.setdefault(attribute, len(columns) + 1)
                known = sorted({columns[attribute] for attribute in token if attribute in columns})
                file.write(f"{numbers.get(label, 1)} qid:{k} {' '.join(f'{c}:1' for c in known)}\n")
