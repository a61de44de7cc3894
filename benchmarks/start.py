"""What a newcomer waits for: the import, first runs with nothing compiled, and what is compiled in them.

Every task of ``benchmarks.tasks`` runs in a process of its own, with an empty folder for machine code and again with
what the first run left there. ``--record`` writes what the tasks asked for to ``compiled/tasks.json``, which ``m3n
warmup``, first fits and ``make wheel`` go by. ``--tree`` runs the same tasks with an earlier checkout, in turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.tasks import AFTERWARDS, TASKS
from m3n.compiled.ahead import TASKS as LIST

HEAD = """
import atexit, json, time
begin = time.perf_counter()
from numba.core import event
class Clock(event.Listener):
    def __init__(self):
        self.open, self.done, self.functions = [], [], 0
    def on_start(self, happening):
        self.open.append(time.perf_counter())
    def on_end(self, happening):
        seconds, function = time.perf_counter() - self.open.pop(), happening.data["dispatcher"].py_func
        self.functions += 1
        if not self.open:
            self.done.append((f"{function.__module__}:{function.__qualname__}", seconds))
clock = Clock()
event.register("numba:compile", clock)
"""
RECORD = """
from m3n.compiled import ahead
from m3n.compiled.progress import progress
progress.asked, marks, expect = [], [], ahead.expect
def marked(run):
    marks.append((run, len(progress.asked)))
    expect(run)
import m3n.run.loop
m3n.run.loop.expect = marked
"""
TAIL = """
def told():
    found = {"seconds": time.perf_counter() - begin, "functions": clock.functions, "entries": clock.done}
    if RECORDED:
        found |= {"asked": [(need.name, need.types) for need in progress.asked], "marks": marks}
    with open("told.json", "w") as file:
        json.dump(found, file)
RECORDED = "progress" in globals()
atexit.register(told)
"""


def run(tree: Path | None = None, record: bool = False) -> dict[str, Any]:
    """Seconds of imports and of all tasks, first and later runs; seconds per entry point of each task."""
    figures: dict[str, Any] = {"imports": imports()}
    told = {}
    for name, code in TASKS.items():
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            figures[name] = {}
            for which, source in {"earlier": tree, "now": Path(__file__).parents[1]}.items():
                if source is not None:
                    fresh = {"M3N_KERNEL_CACHE": str(place / which), "NUMBA_CACHE_DIR": str(place / which)}
                    first, later = (_told(code, source, fresh, False) for _ in range(2))
                    figures[name][f"{which}, nothing compiled"] = first["seconds"]
                    figures[name][f"{which}, later"] = later["seconds"]
                    figures[name][f"{which}, functions compiled"] = first["functions"]
            if record:
                alone = {"M3N_KERNEL_CACHE": str(place / "alone"), "M3N_COMPILE_PROCESSES": "1"}
                told[name] = _told(code, source, alone, True)
                longest = sorted(told[name]["entries"], key=lambda entry: -entry[1])
                figures[name]["seconds per entry point"] = dict(longest)
        print(name, figures[name], flush=True)
    if record:
        LIST.write_text(json.dumps(listed(told), indent=0) + "\n")
    return figures


def listed(told: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What ``tasks.json`` holds: functions by number, and tasks and runs as lists of numbers."""
    seconds = dict(entry for one in told.values() for entry in one["entries"])
    asked = dict.fromkeys(tuple(need) for one in told.values() for need in one["asked"])
    numbers = {need: str(k) for k, need in enumerate(sorted(asked))}
    runs: dict[str, dict[str, None]] = {}
    for one in (one for name, one in told.items() if name not in AFTERWARDS):
        needs = [numbers[tuple(need)] for need in one["asked"]]
        ends = [start for _, start in one["marks"][1:]] + [len(needs)]
        for (name, start), end in zip(one["marks"], ends, strict=True):
            runs.setdefault(name, {}).update(dict.fromkeys(needs[start:end]))
    return {
        "functions": {k: [*need, round(seconds.get(need[0], 0.1), 1)] for need, k in numbers.items()},
        "tasks": {name: [numbers[tuple(need)] for need in one["asked"]] for name, one in told.items()},
        "runs": {name: list(needs) for name, needs in runs.items()},
    }


def imports(repeats: int = 5) -> dict[str, float]:
    """Seconds of imports in a new process, beyond those of the interpreter."""
    bare = min(_seconds("pass") for _ in range(repeats))
    lines = {"m3n": "import m3n", "SequenceTagger": "import m3n; m3n.SequenceTagger", "command": "import m3n.cli.app"}
    return {name: min(_seconds(line) for _ in range(repeats + 1)) - bare for name, line in lines.items()}


def _told(code: str, tree: Path, environment: dict[str, str], record: bool) -> dict[str, Any]:
    """What a task says about itself."""
    with tempfile.TemporaryDirectory() as folder:
        paths = os.pathsep.join((str(tree / "src"), os.environ.get("PYTHONPATH", "")))
        full = HEAD + (RECORD if record else "") + TAIL + code
        _seconds(full, {**os.environ, **environment, "PYTHONPATH": paths}, folder)
        return json.loads((Path(folder) / "told.json").read_text())


def _seconds(code: str, environment: dict[str, str] | None = None, folder: str | None = None) -> float:
    begin = time.perf_counter()
    command = [sys.executable, "-c", code]
    subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    return time.perf_counter() - begin
