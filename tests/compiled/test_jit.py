"""Machine code on disk: never older than its sources, shared by processes, shipped in wheels, and not made twice."""

import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numba import types

import m3n
from m3n.compiled import ahead, store
from m3n.compiled.jit import borrowing, compiled, inner
from m3n.compiled.oracles import hooks
from m3n.compiled.oracles.chain_block import ChainSpace
from m3n.compiled.progress import clock
from m3n.compiled.ship import baseline_environment
from m3n.compiled.signatures import text_of, types_of
from m3n.compiled.sweeps.sequential import sweep
from m3n.compiled.sweeps.visits import add_parts

MACHINERY = ("jit", "linking", "runtime", "store", "signatures", "ahead", "progress")
INNER = "from m3n.compiled.jit import inner\n@inner\ndef shift(x):\n    return x + {}\n"
OUTER = """
from m3n.compiled.jit import compiled
from m3n.compiled.inside import shift
@compiled
def outer(x):
    return shift(x) * 2.0
@compiled
def wrong(x):
    return x.nothing
"""
SCRIPT = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, format="%(name)s %(levelname)s %(message)s")
logging.getLogger("numba").setLevel(logging.WARNING)
from numba.core import event
events = []
class Counter(event.Listener):
    def on_start(self, happening): events.append(happening)
    def on_end(self, happening): pass
event.register("numba:compile", Counter())
from m3n.compiled.outside import outer
print(outer(1.0), sum(1 for e in events if e.data["dispatcher"] is outer))
"""


@pytest.fixture
def probe(tmp_path):
    """A package of its own with our machinery and two functions."""
    package = tmp_path / "package" / "m3n" / "compiled"
    package.mkdir(parents=True)
    for name in MACHINERY:
        shutil.copy(Path(m3n.__file__).parent / "compiled" / f"{name}.py", package)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    (package / "inside.py").write_text(INNER.format(1.0))
    (package / "outside.py").write_text(OUTER)
    return package


def start(probe, **environment):
    """A process that calls the outer function, with no settings but those given."""
    known = {key: value for key, value in os.environ.items() if key not in ("NUMBA_CACHE_DIR", "M3N_KERNEL_CACHE")}
    known |= {"PYTHONPATH": str(probe.parents[1]), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT], env=known, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(probe, **environment):
    """What the outer function gives, how often it was compiled, and what was logged."""
    child = start(probe, **environment)
    out, errors = child.communicate()
    assert child.returncode == 0, errors
    value, count = out.split()
    return float(value), int(count), errors


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".code", ".lock"))


def test_a_change_in_another_file_compiles_anew(probe):
    assert run(probe)[:2] == (4.0, 1)
    assert run(probe)[:2] == (4.0, 0)  # nothing has changed
    (probe / "inside.py").write_text(INNER.format(5.0))
    assert run(probe)[:2] == (12.0, 1)


def test_old_versions_are_forgotten(tmp_path):
    for age in range(store.KEPT + 2):
        made = tmp_path / f"{age:016x}"
        made.mkdir()
        os.utime(made, (1e9 - age, 1e9 - age))
    (tmp_path / "something else").mkdir()
    store._forget_old_versions(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{k:016x}" for k in range(store.KEPT)] + [
        "something else"
    ]


def test_eight_processes_that_start_together_compile_once(probe):
    children = [start(probe) for _ in range(8)]
    found = [child.communicate()[0].split() for child in children]
    assert [float(value) for value, _ in found] == [4.0] * 8
    assert sum(int(count) for _, count in found) == 1
    assert [path.suffix for path in files(probe)] == [".code"]


def test_a_read_only_installation_uses_the_users_folder(probe, tmp_path):
    (probe / "__pycache__").write_text("")  # no folder can be made there
    home = tmp_path / "home"
    settings = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    assert run(probe, **settings)[:2] == (4.0, 1)
    assert run(probe, **settings)[:2] == (4.0, 0)
    assert len(files(home)) == 1


NO_HOME = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"}


def test_without_a_home_the_temporary_files_take_it_with_one_warning(probe, tmp_path):
    (probe / "__pycache__").write_text("")
    settings = NO_HOME | {"TMPDIR": str(tmp_path)}
    value, count, logged = run(probe, **settings)
    (private,) = tmp_path.glob("m3n*")
    assert (value, count) == (4.0, 1)
    (warned,) = (line for line in logged.splitlines() if "WARNING" in line)
    assert f"kept in {private}" in warned
    assert "set M3N_KERNEL_CACHE to a folder that can be written" in warned
    assert private.stat().st_mode & 0o077 == 0
    assert len(files(private)) == 1
    assert run(probe, **settings)[:2] == (4.0, 0)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="temporary files are every user's own here")
@pytest.mark.parametrize("trap", ["writable", "link"])
def test_machine_code_of_others_is_not_taken(trap, probe, tmp_path):
    (probe / "__pycache__").write_text("")
    private, other = tmp_path / f"m3n-{os.getuid()}", tmp_path / "other"
    other.mkdir()
    if trap == "link":
        private.symlink_to(other)
    else:
        private.mkdir()
        private.chmod(0o777)
    value, count, logged = run(probe, **NO_HOME, TMPDIR=str(tmp_path))
    assert (value, count) == (4.0, 1)
    assert "every process compiles for itself; set M3N_KERNEL_CACHE" in logged
    assert not files(tmp_path / private.name)


def test_the_cache_can_be_named_and_switched_off(probe, tmp_path):
    assert run(probe, M3N_KERNEL_CACHE="0")[:2] == (4.0, 1)
    assert not files(tmp_path)
    run(probe, M3N_KERNEL_CACHE=str(tmp_path / "mine"))
    assert len(files(tmp_path / "mine")) == len(files(tmp_path)) == 1


def test_a_damaged_file_is_ignored(probe):
    run(probe)
    (path,) = files(probe)
    for damage in (lambda old: old[:-7], lambda old: old[:500] + b"x" + old[501:], lambda old: b""):
        path.write_bytes(damage(path.read_bytes()))
        value, count, logged = run(probe)
        assert (value, count) == (4.0, 1)
        assert "is of no use" in logged
        assert store.read(path)  # it was replaced
    assert run(probe)[:2] == (4.0, 0)


def test_what_cannot_be_compiled_leaves_no_lock(probe):
    code = SCRIPT.rsplit("\n", 2)[0].replace("import outer", "import wrong") + "\nwrong(1.0)\n"
    environment = {**os.environ, "PYTHONPATH": str(probe.parents[1]), "M3N_KERNEL_CACHE": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "TypingError" in done.stderr
    assert not files(probe)


def test_a_numba_that_refuses_our_way_compiles_in_its_own(probe):
    path = probe / "linking.py"
    path.write_text(path.read_text().replace("def emit(self, kept", "def gone(self, kept"))
    value, _, logged = run(probe)
    assert value == 4.0
    assert "takes longer" in logged
    assert run(probe)[:2] == (4.0, 0)


@pytest.mark.parametrize("kind", [inner, borrowing])
def test_inner_functions_refuse_calls_from_python(kind):
    @kind
    def part(x):
        return x + 1

    @compiled
    def whole(x):
        return part(x) * 2

    with pytest.raises(TypeError, match=r"part of other compiled functions.*mark it as compiled"):
        part(1)
    assert whole(1) == 4
    with pytest.raises(TypeError, match="part of other compiled functions"):
        part(1)  # now that it has been compiled, too


def test_programmes_that_contain_python_are_not_started_again(monkeypatch):
    monkeypatch.delenv("M3N_COMPILE_PROCESSES", raising=False)
    monkeypatch.setattr(sys, "executable", "/usr/bin/uwsgi")
    assert ahead.processes() == 1


def test_a_run_is_compiled_by_several_processes(tmp_path):
    """What a first fit of this kind announces is made by others while this process does something else."""
    code = """
import time
from m3n.compiled import ahead
run = next(name for name in ahead.listed()["runs"] if name.startswith("Chain") and "margin" in name)
known = sorted((ahead.Need(*row) for row in ahead.listed()["functions"].values()), key=lambda need: need.seconds)
ahead.needs = lambda name: known[:3]
ahead.WORTH = 0.0
ahead.expect(run)
end = time.time() + 60
while time.time() < end and not all(need.ready for need in ahead.needs(run)[:2]):
    time.sleep(0.1)
print(sum(need.ready for need in ahead.needs(run)))
"""
    settings = {"M3N_KERNEL_CACHE": str(tmp_path), "M3N_COMPILE_PROCESSES": "3"}
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **settings}, capture_output=True, text=True)
    assert int(done.stdout) >= 2, done.stderr


def test_foreign_functions_leave_nothing_on_disk(probe, tmp_path):
    """The names of files tell the sources of our folder alone: others may change unseen."""
    own = tmp_path / "package" / "mine.py"
    for shift in (1.0, 5.0):
        own.write_text(OUTER.replace("* 2.0", f"+ {shift}"))
        code = "from mine import outer; print(outer(1.0))"
        environment = {**os.environ, "PYTHONPATH": str(own.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        environment |= {"M3N_KERNEL_CACHE": str(tmp_path / "mine")}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert float(done.stdout) == 2.0 + shift
    assert not files(tmp_path)


@pytest.mark.parametrize("function", [sweep, add_parts])
def test_a_pickle_holds_the_name(function):
    assert pickle.loads(pickle.dumps(function)) is function


def test_types_are_read_as_they_were_written():
    number, table = types.int64, types.Array(types.float64, 2, "C")
    odd = types.Array(types.boolean, 1, "A", readonly=True)
    space = types.NamedTuple([types.Array(types.int64, 1, "C"), number, types.boolean], ChainSpace)
    same = types.NamedUniTuple(number, 3, ChainSpace)
    for kinds in ((number, table), (odd,), (space, types.UniTuple(table, 2)), (same, types.Tuple((number, odd)))):
        assert types_of(text_of(kinds)) == kinds


FIT = """
import sys
import numpy as np
from numba.core import event
events = []
class Counter(event.Listener):
    def on_start(self, happening): events.append(happening.data["dispatcher"])
    def on_end(self, happening): pass
event.register("numba:compile", Counter())
from m3n.compiled.progress import progress
progress.asked = []
from benchmarks.tasks import SENTENCES
import m3n
assert m3n.__file__.startswith(sys.argv[1]), m3n.__file__
exec(SENTENCES)
model = m3n.SequenceTagger().fit(X, y)
model.predict(X)
np.save(sys.argv[2], np.concatenate([v.ravel() for v in (model.transitions_, model.coef_) if hasattr(v, "ravel")]))
print(len(events))
for need in progress.asked:
    print(need.name, need.types, sep="\\t")
"""


def test_all_types_of_the_list_can_be_read():
    """Else they would not be compiled beforehand."""
    for need in ahead.needs("all"):
        assert text_of(types_of(need.types)) == need.types


def test_spaces_come_with_their_hooks():
    """A process that compiles beforehand imports the module of a space, and no other."""
    for (name, space), function in hooks._IMPLEMENTATIONS.items():
        if space.__module__.startswith("m3n.") and name == "workspace":
            assert function.__module__ == space.__module__


def fit(package, weights, **environment):
    """Fit in a new process; how much was compiled, what was asked for, the weights."""
    known = {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{Path(__file__).parents[2]}", **environment}
    command = [sys.executable, "-c", FIT, str(package), str(weights)]
    done = subprocess.run(command, env=known, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count, *asked = done.stdout.splitlines()
    return int(count), [tuple(line.split("\t")) for line in asked], np.load(weights)


@pytest.mark.skipif(store.baseline() is None, reason="no machine code is shipped for this processor")
def test_shipped_machine_code_fits_without_compiling(tmp_path):
    """As after the installation of a wheel, with code that was made for the baseline."""
    made = tmp_path / "made"
    settings = baseline_environment() | {"M3N_KERNEL_CACHE": str(made), "M3N_COMPILE_PROCESSES": "1"}
    count, asked, weights = fit(Path(m3n.__file__).parents[1], tmp_path / "compiled.npy", **settings)
    assert count > 50
    package = tmp_path / "package"
    shutil.copytree(Path(m3n.__file__).parent, package / "m3n", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "m3n" / "compiled" / "shipped").mkdir()
    for path in files(made):
        shutil.copy(path, package / "m3n" / "compiled" / "shipped")
    made_for = f"{store.versions()}\n{store.baseline()}\n"
    (package / "m3n" / "compiled" / "shipped" / store.MADE_FOR).write_text(made_for)
    off = {"M3N_KERNEL_CACHE": "0"}
    again, _, shipped = fit(package, tmp_path / "shipped.npy", **off)
    assert again == 0
    np.testing.assert_array_equal(shipped, weights)
    listed = {(need.name, need.types) for need in ahead.needs("tagging")}
    assert set(asked) <= listed, "tasks.json is older than the code: python -m benchmarks start --record"
    source = package / "m3n" / "compiled" / "primitives" / "vector.py"
    source.write_text(source.read_text() + "\n# changed\n")
    stale = f"from m3n.compiled import store; print(store.find({asked[0][0]!r}, {asked[0][1]!r}))"
    environment = {**os.environ, "PYTHONPATH": str(package), **off}
    done = subprocess.run([sys.executable, "-c", stale], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None"  # changed source: no old machine code


def test_the_clock_stands_still_while_something_is_compiled():
    @compiled
    def doubled(x):
        return 2.0 * x

    begin, working = time.perf_counter(), clock()
    assert doubled(1.5) == 3.0
    elapsed, worked = time.perf_counter() - begin, clock() - working
    assert 0.0 <= worked < elapsed / 2
    time.sleep(0.02)
    assert clock() - working >= worked + 0.02
