"""What a newcomer waits for: the import, the first fit, the first compilation, the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COMPILE = """
import time
from pathlib import Path
from numba.core import event
class Clock(event.Listener):
    depth, total = 0, 0.0
    def on_start(self, happening):
        if self.depth == 0:
            self.begin = time.perf_counter()
        self.depth += 1
    def on_end(self, happening):
        self.depth -= 1
        if self.depth == 0:
            Clock.total += time.perf_counter() - self.begin
event.register("numba:compile", Clock())
from m3n.cli.demo import run
run(Path({picture!r}), tol=1e-3, seed=0)
print(Clock.total)
"""
FIRST_FIT = """
import random, time
import m3n
draw = random.Random(0)
X = [[[f"w={draw.randrange(50)}", f"p={draw.randrange(5)}"] for _ in range(20)] for _ in range(100)]
y = [["A" if token[1] == "p=0" else draw.choice("BC") for token in sentence] for sentence in X]
m3n.SequenceTagger(lam=0.1, tol=0.1, n_jobs=1).fit(X, y)
print(time.process_time())
"""


def run(repeats: int = 5) -> dict[str, Any]:
    """Seconds of ``import m3n`` (warm), of a first fit, of compiling what the demo needs, of the demo."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder) / "cache")}
        code = COMPILE.format(picture=str(Path(folder) / "demo.png"))
        compiling = float(_python(code, fresh)[1].splitlines()[-1])
        fresh["NUMBA_CACHE_DIR"] = str(Path(folder) / "second")
        demo = "from m3n.cli import main; main()"
        arguments = ["demo", "--output", str(Path(folder) / "demo.png")]
        first = _python(demo, fresh, arguments)[0]
        again = min(_python(demo, fresh, arguments)[0] for _ in range(2))
        fits = first_fits(Path(folder), repeats)
    _python("import m3n", os.environ)
    bare = min(_python("pass", os.environ)[0] for _ in range(repeats))
    with_import = min(_python("import m3n", os.environ)[0] for _ in range(repeats))
    tagger = min(_python("import m3n; m3n.SequenceTagger", os.environ)[0] for _ in range(repeats))
    return {
        "import m3n": with_import - bare,
        "import m3n and SequenceTagger": tagger - bare,
        "first fit in a new process, 100 sentences": fits[0],
        "the same, CPU seconds": fits[1],
        "compilation for the demo": compiling,
        "demo, first run, nothing compiled": first,
        "demo, later runs": again,
    }


def first_fits(folder: Path, repeats: int) -> tuple[float, float]:
    """Seconds and CPU seconds of a new process that imports m3n and fits 100 sentences; compiled code is cached."""
    warm = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}  # as after an installation
    warm.pop("PYTHONDONTWRITEBYTECODE", None)
    _python(FIRST_FIT, warm)
    runs = [_python(FIRST_FIT, warm) for _ in range(repeats)]
    return min(seconds for seconds, _ in runs), min(float(shown) for _, shown in runs)


def _python(code: str, environment: Any, arguments: list[str] | None = None) -> tuple[float, str]:
    begin = time.perf_counter()
    command = [sys.executable, "-c", code, *(arguments or [])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return time.perf_counter() - begin, done.stdout
