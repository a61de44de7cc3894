"""From a column file to a saved model: the command ``m3n train`` beside a script that uses python-crfsuite.

Both are processes of their own, with CRF++'s template for chunking, all weights on both sides; CPU seconds of the whole
process, start and reading included. The command runs twice: the first run compiles, with an empty cache.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import data_folder

WORDS, TAGS = range(-2, 3), range(-2, 3)
TEMPLATE = [
    *(f"U{k:02}:%x[{row},0]" for k, row in enumerate(WORDS)),
    "U05:%x[-1,0]/%x[0,0]",
    "U06:%x[0,0]/%x[1,0]",
    *(f"U{k}:%x[{row},1]" for k, row in enumerate(TAGS, start=10)),
    *(f"U{k}:%x[{row},1]/%x[{row + 1},1]" for k, row in enumerate(range(-2, 2), start=15)),
    *(f"U{k}:%x[{row},1]/%x[{row + 1},1]/%x[{row + 2},1]" for k, row in enumerate(range(-2, 1), start=20)),
    "B",
]
SCRIPT = """
import gzip, sys
import pycrfsuite
places = [[(r, 0)] for r in range(-2, 3)] + [[(-1, 0), (0, 0)], [(0, 0), (1, 0)]] + [[(r, 1)] for r in range(-2, 3)]
places += [[(r, 1), (r + 1, 1)] for r in range(-2, 2)] + [[(r, 1), (r + 1, 1), (r + 2, 1)] for r in range(-2, 1)]
def value(rows, t, k):
    return rows[t][k] if 0 <= t < len(rows) else f"_B{t}" if t < 0 else f"_B+{t - len(rows) + 1}"
def features(rows, t):
    return [f"{n}:" + "/".join(value(rows, t + r, k) for r, k in place) for n, place in enumerate(places)]
def sentences(path):
    rows = []
    for line in gzip.open(path, "rt"):
        if line.strip():
            rows.append(line.split())
        elif rows:
            yield rows
            rows = []
    if rows:
        yield rows
trainer = pycrfsuite.Trainer(verbose=False)
trainer.set_params({"c1": 0.0, "c2": 1.0, "feature.possible_states": True, "feature.possible_transitions": True})
for rows in sentences(sys.argv[1]):
    trainer.append([features(rows, t) for t in range(len(rows))], [row[-1] for row in rows])
trainer.train(sys.argv[2])
"""


def run() -> dict[str, Any]:
    """CPU seconds, test F1, and their ratio."""
    folder = data_folder()
    if folder is None:
        return {"left out": "M3N_DATA does not name the folder of real data sets"}
    train, test = (str(folder / "conll2000" / f"{name}.txt.gz") for name in ("train", "test"))
    with tempfile.TemporaryDirectory() as place:
        template, model = Path(place) / "template", str(Path(place) / "model")
        template.write_text("\n".join(TEMPLATE) + "\n")
        fresh = {**os.environ, "NUMBA_CACHE_DIR": str(Path(place) / "cache")}
        command = [sys.executable, "-m", "m3n", "train", train, "-m", model, "-t", str(template), "--jobs", "1"]
        first = _seconds([*command, "--quiet"], fresh)
        ours = _seconds([*command, "--quiet"], fresh)
        scored = subprocess.run(
            [sys.executable, "-m", "m3n", "evaluate", test, "-m", model, "--json"], capture_output=True, check=True
        )
        theirs = _seconds([sys.executable, "-c", SCRIPT, train, model], fresh)
    return {
        "m3n train, first time (compiles)": first,
        "m3n train": ours,
        "test F1": 100.0 * json.loads(scored.stdout)["chunks"]["f1"],
        "script with python-crfsuite": theirs,
        "ratio": theirs / ours,
    }


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    """CPU seconds of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
