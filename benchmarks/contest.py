"""Holding a contest: every entry in turn, each time in a process of its own, several rounds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import datasets, solvers
from benchmarks.child import WEIGHTS
from benchmarks.judge import Judge
from benchmarks.objectives import Objective
from benchmarks.weights import Weights

ROOT = Path(__file__).parent.parent
RIVALS = ROOT / "benchmarks" / ".venv-rivals" / "bin" / "python"
TIMEOUT = 3600.0  # seconds for one entry, once
QUICK = 2.0  # seconds of training in a smoke run, for entries that can be told


@dataclass(frozen=True)
class Run:
    """One line of a contest.

    Attributes
    ----------
    label : str
        In tables.
    entry : str
        Name of the solver.
    objective : Objective
        What it minimises.
    settings : dict
        The entry's own.
    once : bool
        Whether the first round is enough: rivals that share another's core.
    smoke : bool
        Whether it takes part in smoke runs.
    """

    label: str
    entry: str
    objective: Objective
    settings: dict[str, Any] = field(default_factory=dict)
    once: bool = False
    smoke: bool = True


@dataclass(frozen=True)
class Contest:
    """Runs on the same data.

    Attributes
    ----------
    name, dataset : str
        Of the contest and of its data.
    runs : tuple of Run
        In the order in which they take turns.
    quick : int
        Sequences of a smoke run.
    limit : int or None
        Sequences of every other run.
    """

    name: str
    dataset: str
    runs: tuple[Run, ...]
    quick: int = 150
    limit: int | None = None


@dataclass(frozen=True)
class Options:
    """How to hold contests.

    Attributes
    ----------
    repeats : int
        Rounds; minima count.
    limit : int or None
        Take the first sequences only.
    quick : bool
        A smoke run: one round on a few sequences.
    stop : float
        Relative distance to the best known objective value that counts as reached.
    only : tuple of str
        Words of which the label of a run must have one; all runs if there is none.
    """

    repeats: int = 3
    limit: int | None = None
    quick: bool = False
    stop: float = 1e-4
    only: tuple[str, ...] = ()

    def count(self, contest: Contest) -> int | None:
        """How many sequences to take."""
        return self.limit or (contest.quick if self.quick else contest.limit)

    def takes(self, run: Run) -> bool:
        """Whether a run takes part."""
        named = not self.only or any(word in run.label for word in self.only)
        return named and (run.smoke or not self.quick)


def hold(contest: Contest, options: Options, folder: Path, tell: Callable[[str], None]) -> dict[str, Any]:
    """Hold a contest; ``tell`` hears what happens."""
    home = folder / contest.name
    home.mkdir(parents=True, exist_ok=True)
    dataset = datasets.BY_NAME[contest.dataset].prepare(home, options.count(contest))
    answers: dict[str, list[dict[str, Any]]] = {}
    runs = {run.label: run for run in contest.runs if options.takes(run)}
    for turn in range(1 if options.quick else options.repeats):
        for place, (label, run) in enumerate(runs.items()):
            known = answers.setdefault(label, [])
            if not turn or not (run.once or "missing" in known[0]):
                tell(f"{contest.name}, round {turn + 1}: {label}")
                known.append(launch(run, dataset, options, home / f"{turn}-{place}"))
                tell("  " + (known[-1].get("missing") or _summary(known[-1]["seconds"])))
    judge = _Judgement(dataset)
    return {
        "data": dataset.origin,
        "measure": dataset.measure,
        "larger is better": dataset.larger_is_better,
        "stop": options.stop,
        "runs": {label: judge(runs[label], known) for label, known in answers.items()},
    }


def _summary(seconds: dict[str, float]) -> str:
    return ", ".join(
        f"{phase} {seconds[phase]:.3g} s" for phase in ("ingest", "train", "pass", "tag") if phase in seconds
    )


def launch(run: Run, dataset: datasets.Dataset, options: Options, folder: Path) -> dict[str, Any]:
    """One entry, once; an answer with ``missing`` says why there is none."""
    entry = solvers.BY_NAME[run.entry]
    python = sys.executable if entry.ours else rivals_python()
    if python is None:
        return {"missing": "no interpreter for rivals: make bench-rivals"}
    shutil.rmtree(folder, ignore_errors=True)  # an earlier run's weights must not be taken for this one's
    folder.mkdir()
    request, answer = folder / "request.json", folder / "answer.json"
    asked: dict[str, Any] = {"entry": run.entry, "dataset": dataset.request(), "objective": run.objective.request()}
    settings = run.settings | ({"max_seconds": QUICK} if options.quick else {})
    asked |= {"settings": settings, "stop": options.stop, "started": time.time()}
    request.write_text(json.dumps(asked))
    command = [python, "-m", "benchmarks.child", str(request), str(answer)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=_environment(entry), capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return {"missing": f"not finished after {TIMEOUT:g} s"}
    if not answer.exists():
        return {"missing": "failed: " + (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    told = json.loads(answer.read_text())
    weights = folder / WEIGHTS
    if weights.exists() and "missing" not in told:
        told["weights"] = str(weights)
    return told


def rivals_python() -> str | None:
    """The rivals' interpreter: M3N_RIVALS, or the one that ``make bench-rivals`` makes."""
    chosen = os.environ.get("M3N_RIVALS", str(RIVALS))
    return chosen if Path(chosen).exists() else None


def _environment(entry: solvers.Entry) -> dict[str, str]:
    """One thread unless the entry asks for more: libraries of linear algebra would take every core."""
    own = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.environ.get("PYTHONPATH", "") if entry.ours else ""
    return {**os.environ, **own, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), path]))}


class _Judgement:
    """What the answers of a run come to: minima, and its model's worth."""

    def __init__(self, dataset: datasets.Dataset):
        self.dataset, self.judge, self.gold = dataset, Judge(dataset), dataset.gold()

    def __call__(self, run: Run, answers: list[dict[str, Any]]) -> dict[str, Any]:
        first = answers[0]
        if "missing" in first:
            return {"missing": first["missing"]}
        good = [answer for answer in answers if "missing" not in answer]
        quickest = min(good, key=lambda answer: answer["seconds"].get("train", 0.0))
        passes = [answer["pass seconds"] for answer in good if answer["pass seconds"]]
        found = first["found"]
        return {
            "entry": run.entry,
            "objective": run.objective.request(),
            "settings": run.settings,
            "rounds": len(good),
            **{kind: _minima([answer[kind] for answer in good]) for kind in ("seconds", "cpu", "peak", "calls")},
            "pass": [min(column) for column in zip(*passes, strict=True)] if passes else None,
            "passes": first["passes"],
            "J": self._value(run, first),
            "J by its own account": first["objective"],
            "score": None if found is None else self.dataset.score(self.gold, found),
            "tokens": sum(map(len, self.gold)),
            "trace": quickest["trace"],
            "notes": first["notes"],
        }

    def _value(self, run: Run, answer: dict[str, Any]) -> float | None:
        if "weights" not in answer:
            return answer["objective"]
        return self.judge.objective(run.objective, Weights.load(Path(answer["weights"])))


def _minima(tables: list[dict[str, float]]) -> dict[str, float]:
    return {key: min(table[key] for table in tables) for key in tables[0]}
