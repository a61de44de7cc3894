"""``python -m m3n.compiled.ship FOLDER``: machine code for every processor with the features of a baseline.

``make wheel`` puts the files into the package. Which functions, and for which types, ``tasks.json`` says.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from m3n.compiled import ahead, store


def ship(target: Path, task: str = "all") -> int:
    """Compile for the baseline of this platform, in other processes; returns the number of files."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = baseline_environment() | {"M3N_KERNEL_CACHE": scratch}
        command = [sys.executable, "-c", f"from m3n.compiled.ahead import compile_all; compile_all({task!r})"]
        subprocess.run(command, env={**os.environ, **environment}, check=True)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        made = list(Path(scratch).rglob("*.code"))
        for path in made:
            shutil.copy(path, target)
        (target / store.MADE_FOR).write_text(f"{store.versions()}\n{store.baseline()}\n")
    return len(made)


def baseline_environment() -> dict[str, str]:
    """What makes Numba compile for the baseline of this platform, in another process."""
    machine = store.machine()
    if machine not in store.BASELINES:
        raise SystemExit(f"no machine code is shipped for {platform.machine()}")
    name, features = store.BASELINES[machine]
    return {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": store.target_features(features)}


if __name__ == "__main__":
    folder, wanted = Path(sys.argv[1]), len(ahead.needs("all"))
    made = ship(folder)
    print(f"{made} of {wanted} functions in {folder}")
    sys.exit(made < wanted)
