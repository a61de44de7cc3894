"""Cached machine code must never outlive the code that it was made of."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import m3n

SCRIPT = "from probe.outer import outer; print(outer(1.0), sum(outer.stats.cache_hits.values()))"


def run(folder):
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    value, hits = done.stdout.split()
    return float(value), int(hits)


def test_a_change_in_another_file_compiles_anew(tmp_path):
    """Numba alone would go on with the old inner function, as the outer one's file is unchanged."""
    package = tmp_path / "probe"
    package.mkdir()
    shutil.copy(Path(m3n.__file__).parent / "compiled" / "jit.py", package / "jit.py")
    (package / "__init__.py").write_text("")
    inner = package / "inner.py"
    inner.write_text("from probe.jit import compiled\n@compiled\ndef inner(x):\n    return x + 1.0\n")
    outer = (
        "from probe.jit import compiled\nfrom probe.inner import inner\n@compiled\ndef outer(x):\n    return inner(x)\n"
    )
    (package / "outer.py").write_text(outer)
    assert run(tmp_path) == (2.0, 0)
    assert run(tmp_path) == (2.0, 1)  # nothing has changed: the cache serves
    inner.write_text("from probe.jit import compiled\n@compiled\ndef inner(x):\n    return x + 5.0\n")
    assert run(tmp_path) == (6.0, 0)
