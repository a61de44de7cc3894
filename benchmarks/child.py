"""``python -m benchmarks.child request.json answer.json``: one entry, once, in this interpreter.

The request names the entry, the data's files and the objective; the answer holds seconds, memory, trace and the labels
found. Weights go into an archive beside it.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import datasets, solvers
from benchmarks.objectives import objective
from benchmarks.solvers.base import cpu_seconds

WEIGHTS = "weights.npz"


def main(request: Path, answer: Path) -> None:
    """Do what the request says."""
    asked = json.loads(request.read_text())
    entry = solvers.BY_NAME[asked["entry"]]
    wanted = asked["objective"]["name"]
    reason = entry.missing() if wanted in entry.objectives else f"does not minimise the objective {wanted!r}"
    try:
        told = {"missing": reason} if reason else _run(entry, asked, answer.parent)
    except solvers.Unsuitable as error:
        told = {"missing": str(error)}
    answer.write_text(json.dumps(told))


def _run(entry: solvers.Entry, asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    task = solvers.Task(
        datasets.dataset(asked["dataset"]), objective(asked["objective"]), asked["settings"], asked["stop"], folder
    )
    outcome = entry.run(task)
    elapsed = time.time() - asked["started"]  # since the parent launched this process
    if outcome.weights is not None:
        outcome.weights.save(folder / WEIGHTS)
    clock = task.clock
    return {
        "seconds": clock.seconds | {"process": elapsed},
        "cpu": clock.cpu | {"process": cpu_seconds()},
        "peak": clock.peak,
        "calls": clock.calls,
        "objective": outcome.objective,
        "trace": [asdict(point) for point in outcome.trace],
        "passes": outcome.passes,
        "pass seconds": outcome.pass_seconds,
        "found": outcome.found,
        "notes": {"version": _version(entry), "python": platform.python_version(), **outcome.notes},
    }


def _version(entry: solvers.Entry) -> str:
    try:
        return version(entry.name)
    except PackageNotFoundError:
        return "unknown"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
