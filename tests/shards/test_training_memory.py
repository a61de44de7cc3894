"""The memory that training on shards takes, in processes of their own."""

import subprocess
import sys

import numpy as np
import pytest

import m3n

# Training on so many bytes of shards, when everything that is compiled has been loaded by a small training.
MEASURED = """
import resource, sys, warnings
import m3n
warnings.simplefilter("ignore")
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
def train(folder, **settings):
    tagger = m3n.SequenceTagger(solver="excessive_gap", max_passes=3, n_jobs=1, rtol=0.0, **settings)
    return tagger.fit(m3n.Shards(folder))
train("small")
before = peak()
if sys.argv[1] == "limited":  # less than the shards need together; the bound follows from that
    with open("/proc/self/status") as file:
        size = next(int(line.split()[1]) for line in file if line.startswith("VmSize")) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (size + 150_000_000, size + 150_000_000))
    tagger = train("large")
else:
    tagger = train("large", backend=m3n.Local(memory=4e6))
assert tagger.certificate_.gap >= 0.0
print(peak() - before)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """320 MB of dense inputs in shards of 4 MB, and a few of them."""
    folder = tmp_path_factory.mktemp("corpus")

    def some(count):
        random = np.random.default_rng(0)
        for _ in range(count):
            yield random.normal(size=(100, 100)), random.integers(4, size=100)

    for name, count in (("small", 20), ("large", 4000)):
        m3n.pack(*m3n.io.unzip(some(count)), folder / name, memory="16MB", shard_size="4MB")
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="limits and measures of other systems differ")
@pytest.mark.parametrize("kind", ["bound", "limited"])
def test_training_on_twenty_times_the_memory(kind, folder):
    """With a bound of its own it takes a twentieth of the corpus; with a limit on the process it comes to its end."""
    result = subprocess.run([sys.executable, "-c", MEASURED, kind], cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    if kind == "bound":
        assert m3n.Shards(folder / "large").bytes.sum() >= 20 * int(result.stdout)
