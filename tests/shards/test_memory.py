"""The memory that packing takes, in processes of their own."""

import subprocess
import sys

import pytest

# A corpus of so many times the bound; what the process takes above what it had before, and how large the corpus was.
MEASURED = """
import resource, sys
import numpy as np
import m3n, m3n.estimators.packing
kind, limited = sys.argv[1:]
bound, size, random = 16_000_000, 0, np.random.default_rng(0)
names = [f"attribute {k:05d} of a token, which has a long name and a long value so that it is much to read" for k in
         range(40_000)]
def attributes():
    global size
    while size < 20 * bound:
        rows = (40_000 * random.random((300, 8)) ** 3).astype(int).tolist()
        x = [[names[k] for k in row] for row in rows]
        size += sum(len(name) for row in x for name in row)
        yield x, random.integers(5, size=300)
def columns():
    global size
    while size < 20 * bound:
        words = (30 * random.random(50_000) ** 2).astype(int).tolist()
        x = [(names[k], "NN", names[-k]) for k in words]
        size += sum(map(len, (value for token in x for value in token)))
        yield x, random.integers(5, size=50_000)
def dense():
    global size
    while size < 20 * bound:
        x = random.normal(size=(500, 100))
        size += x.nbytes
        yield x, random.integers(5, size=500)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
X, y = m3n.io.unzip({"attributes": attributes, "columns": columns, "dense": dense}[kind]())
templates = m3n.features.Templates(["U0:%x[0,0]", "U1:%x[-1,0]/%x[1,2]"]) if kind == "columns" else None
before = peak()
if limited == "yes":
    with open("/proc/self/status") as file:
        data = next(int(line.split()[1]) for line in file if line.startswith("VmData")) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (data + bound, data + bound))
m3n.pack(X, y, "packed", templates=templates, memory=bound)
assert size >= 20 * bound
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits and measures of other systems differ")
@pytest.mark.parametrize(("kind", "limited"), [("attributes", "yes"), ("columns", "no"), ("dense", "yes")])
def test_packing_stays_below_its_bound_on_a_corpus_of_twenty_times_as_much(kind, limited, tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", MEASURED, kind, limited], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < 16_000_000
