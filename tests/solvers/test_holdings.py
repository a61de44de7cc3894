"""What lanes hold outlives whoever works for them, and the process: lost states, checkpoints, files refused."""

import logging
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from m3n import EngineLost, minimize
from m3n.checkpoint import Checkpoint, CheckpointError
from m3n.problem import holdings, places
from m3n.problem.holdings import Unreadable
from m3n.run.loop import Status
from m3n.solvers import DualAscent, SequentialDual
from tests.solvers.lanes import forget, in_lanes, problem_of, same, steps

KINDS = {"crf": (1.0, DualAscent()), "margin": (0.0, SequentialDual())}
LAST = 7


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def solver(kind):
    return kind[1]


@pytest.fixture
def sharded(kind):
    with in_lanes(problem_of(kind[0]), 3).engine as engine:
        yield in_lanes_of(engine)


def in_lanes_of(engine):
    from m3n.problem import Sharded

    return Sharded(engine, 0.1)


@pytest.fixture
def often(monkeypatch):
    """Every second state is made safe."""
    monkeypatch.setattr(holdings, "OFTEN", 2)


@pytest.mark.parametrize("what", ["held", "all"])
@pytest.mark.parametrize("lost", range(LAST))
def test_a_lost_worker_between_two_steps(solver, sharded, often, lost, what):
    """As if nothing had happened; what is repeated does not count as passes."""
    whole = steps(sharded, solver, LAST)
    calls = sharded.hard_calls + sharded.soft_calls
    state = solver.init(sharded)
    for step in range(LAST):
        if step == lost:
            forget(sharded, 1, what)
        state = solver.step(sharded, state)
    same(state, whole)
    assert sharded.hard_calls + sharded.soft_calls == 2 * calls


class Dies:
    """A lane that is lost when so many calls have changed it."""

    def __init__(self, engine, calls):
        self.engine, self.left, self.total = engine, calls, engine.total

    def __call__(self, function, *arguments, each=None):
        self.left -= function is places.call
        if self.left == 0:
            self.engine.crew.lanes[2].kept.clear()
        return self.total(function, *arguments, each=each)


@pytest.mark.parametrize("calls", [1, 2, 3, 5, 8, 11, 14])
def test_a_lost_worker_amid_a_step(solver, sharded, often, calls, monkeypatch):
    whole = steps(sharded, solver, LAST)
    monkeypatch.setattr(sharded.engine, "total", Dies(sharded.engine, calls))
    same(steps(sharded, solver, LAST), whole)


def test_an_interrupted_step_is_made_again(solver, sharded):
    """Some lanes have gone on, others have not."""
    whole = steps(sharded, solver, 5)
    state = steps(sharded, solver, 4)

    def interrupted(*arguments, each=None):
        sharded.engine.crew.lanes[0].kept["held"] = places.Held(None, None)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sharded.engine, "total", interrupted)
        solver.step(sharded, state)
    same(solver.step(sharded, state), whole)


def test_a_step_from_an_old_state(solver, sharded, often):
    old = steps(sharded, solver, 3)
    new = old
    for _ in range(4):
        new = solver.step(sharded, new)
    again = solver.step(sharded, old)
    for _ in range(3):
        again = solver.step(sharded, again)
    same(again, new)


def test_two_runs_on_the_same_lanes(solver, sharded, often):
    """Each takes the lanes from the other, and they come to the same."""
    whole = steps(sharded, solver, 4)
    one, two = solver.init(sharded), solver.init(sharded)
    for _ in range(4):
        one, two = solver.step(sharded, one), solver.step(sharded, two)
    same(one, whole)
    same(two, whole)


def test_a_warm_run_that_loses_a_worker(solver, sharded, often):
    """It cannot begin again by itself: its first state is written to files."""

    def run(lost):
        first = steps(sharded, solver, 3)
        again = sharded.with_lam(0.03)
        state = solver.restart(again, first)
        for step in range(5):
            if step == lost:
                forget(sharded, 0)
            state = solver.step(again, state)
        return state

    whole = run(None)
    for lost in (0, 1, 4):
        same(run(lost), whole)


def remove_files(sharded):
    for path in sharded.engine.scratch.rglob("*.npz"):
        path.unlink()


def test_without_its_files_a_run_begins_again(solver, sharded, often):
    """A worker on another machine that does not see them."""
    whole, state = steps(sharded, solver, 6), steps(sharded, solver, 5)
    remove_files(sharded)
    forget(sharded, 1, "all")
    same(solver.step(sharded, state), whole)


def test_without_its_files_a_warm_run_is_lost(solver, sharded, often):
    again = sharded.with_lam(0.03)
    state = solver.step(again, solver.restart(again, steps(sharded, solver, 3)))
    remove_files(sharded)
    forget(sharded, 1)
    with pytest.raises(EngineLost, match=r"what workers held is lost: .*lane-00000.* is missing"):
        solver.step(again, state)


def test_a_cluster_that_forgets_all_the_time_is_given_up(solver, sharded, monkeypatch):
    state, total = steps(sharded, solver, 2), sharded.engine.total

    def forgetful(function, *arguments, each=None):
        forget(sharded, 1, "all")
        return total(function, *arguments, each=each)

    monkeypatch.setattr(sharded.engine, "total", forgetful)
    with pytest.raises(EngineLost, match="lost what they held 20 times in the same step"):
        solver.step(sharded, state)


def test_few_files_are_left_and_none_in_the_end(solver, sharded, often):
    steps(sharded, solver, 9)
    scratch = sharded.engine.scratch
    assert len(list(scratch.rglob("*.npz"))) == sharded.engine.lanes
    sharded.engine.close()
    assert not scratch.exists()


def test_files_that_cannot_be_written_do_not_end_a_run(solver, sharded, often, caplog):
    sharded.engine.scratch = sharded.engine.source.folder / "shard-00000" / "no folder"
    with caplog.at_level(logging.WARNING, "m3n"):
        state = steps(sharded, solver, 4)
    assert "what workers hold could not be written" in caplog.text
    forget(sharded, 1)
    same(solver.step(sharded, state), steps(sharded, solver, 5))


GO_ON = """
import sys
from m3n import minimize
from m3n.checkpoint import Checkpoint
from tests.solvers.lanes import in_lanes, problem_of
path, temperature = sys.argv[1:]
sharded = in_lanes(problem_of(float(temperature)), 3)
loaded = Checkpoint(path).load(sharded)
state = minimize(sharded, loaded.solver, tol=0.0, max_passes=7, resume=loaded).state
print(state.calls, state.dual.hex(), state.w.tobytes().hex())
"""


def test_a_run_goes_on_in_a_new_process(kind, tmp_path):
    """The same bits as without a break."""
    temperature, solver = kind
    saved = Checkpoint(tmp_path / "run", every=0.0)
    with in_lanes(problem_of(temperature), 3).engine as engine:
        cut = minimize(in_lanes_of(engine), solver, tol=0.0, max_passes=7, callbacks=[saved])
    saved.close(cut)  # as estimators do, when the workers are gone
    command = [sys.executable, "-c", GO_ON, tmp_path / "run", str(temperature)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    calls, dual, w = found.stdout.split()
    assert int(calls) > cut.state.calls
    sharded = in_lanes(problem_of(temperature), 3)
    whole = solver.init(sharded)
    while whole.calls < int(calls):
        whole = solver.step(sharded, whole)
    assert (whole.calls, whole.dual.hex(), whole.w.tobytes().hex()) == (int(calls), dual, w)


def test_a_resumed_run_makes_the_very_steps(kind, tmp_path):
    """State by state, also when a worker is lost after the break."""
    temperature, solver = kind
    sharded = in_lanes(problem_of(temperature), 3)
    whole = [steps(sharded, solver, count) for count in (5, 9)]
    result = minimize(sharded, solver, tol=0.0, max_passes=3)
    saved = Checkpoint(tmp_path / "run")
    saved.save(replace(result, state=steps(sharded, solver, 3)))
    other = in_lanes(problem_of(temperature), 3)
    state = saved.load(other).state
    for step in range(3, 9):
        if step == 7:
            forget(other, 2)
        state = solver.step(other, state)
        if step == 4:
            same(state, whole[0])
    same(state, whole[1])


@pytest.fixture
def saved(kind, tmp_path):
    """The path of a checkpoint in lanes."""
    with in_lanes(problem_of(kind[0]), 3).engine as engine:
        callback = Checkpoint(tmp_path / "run", every=0.0)
        minimize(in_lanes_of(engine), kind[1], tol=0.0, max_passes=6, callbacks=[callback])
    return tmp_path / "run"


def files(path, lane):
    (found,) = (path.parent / "run.lanes" / f"lane-{lane:05d}").glob("*.npz")
    return found


def rewritten(path, **changes):
    """The same file with other arrays."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(path, **{name: changes.get(name, lambda a: a)(array) for name, array in arrays.items()})


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


def first_array(kind):
    return "0.potentials" if kind[0] else "0.alpha"


HARM = {
    "missing": (lambda path, name: path.unlink(), "is missing"),
    "cut off": (lambda path, name: path.write_bytes(path.read_bytes()[:200]), "is damaged"),
    "a flipped bit": (lambda path, name: flip(path), "is damaged"),
    "another run": (lambda path, name: rewritten(path, run=lambda a: np.array("0" * 16)), "belongs to another run"),
    "another step": (lambda path, name: rewritten(path, calls=lambda a: a + 1), "belongs to another run, step or lane"),
    "too short": (lambda path, name: rewritten(path, **{name: lambda a: a[:-1]}), "is damaged"),
    "another type": (lambda path, name: rewritten(path, **{name: lambda a: a.astype(np.int64)}), "is damaged"),
    "not finite": (lambda path, name: rewritten(path, **{name: lambda a: a * np.nan}), "is damaged"),
    "objects": (lambda path, name: np.savez(path, run=np.array([print], dtype=object)), "is damaged"),
    "no archive": (lambda path, name: path.write_bytes(b"text"), "is damaged"),
}


@pytest.mark.parametrize("harm", HARM)
def test_files_of_lanes_that_do_not_fit_are_refused_by_name(kind, saved, harm):
    harms, message = HARM[harm]
    harms(files(saved, 1), first_array(kind))
    with pytest.raises(CheckpointError, match=r"run' lacks what workers held \(.*lane-00001.*" + message):
        Checkpoint(saved).load(in_lanes(problem_of(kind[0]), 3))


def test_the_file_of_another_lane_is_refused(kind, saved):
    shutil.copy(files(saved, 0), files(saved, 1))
    with pytest.raises(CheckpointError, match="belongs to another run, step or lane"):
        Checkpoint(saved).load(in_lanes(problem_of(kind[0]), 3))


@pytest.mark.parametrize("name", ["first", "starts", "parts"])
def test_numbers_that_serve_as_indices_are_checked(saved, kind, name):
    if kind[0]:
        pytest.skip("potentials have none")
    rewritten(files(saved, 2), **{f"0.{name}": lambda a: a + 1000})
    with pytest.raises(CheckpointError, match="is damaged"):
        Checkpoint(saved).load(in_lanes(problem_of(0.0), 3))


def test_other_lanes_are_refused(kind, saved):
    with pytest.raises(CheckpointError, match="with sums of 3 lanes, not 2"):
        Checkpoint(saved).load(in_lanes(problem_of(kind[0]), 2))


def test_without_lanes_the_first_step_refuses(kind, saved):
    """Who loads a checkpoint before there are workers, as estimators do."""
    problem = in_lanes(problem_of(kind[0]), 3)
    loaded = Checkpoint(saved).load(problem)
    unlinked = in_lanes(problem_of(kind[0]), 3)
    files(saved, 2).unlink()
    with pytest.raises(Unreadable, match=r"lane-00002.* is missing"):
        minimize(unlinked, loaded.solver, resume=replace(loaded, state=pickle.loads(pickle.dumps(loaded.state))))


def test_a_state_without_files_says_so(solver, sharded):
    state = pickle.loads(pickle.dumps(steps(sharded, solver, 2)))
    forget(sharded, 0)
    with pytest.raises(Unreadable, match=r"saved without what workers held; m3n\.checkpoint\.Checkpoint saves both"):
        solver.step(sharded, state)


def test_a_checkpoint_has_one_file_per_lane_and_goes_with_them(kind, tmp_path):
    saved = Checkpoint(tmp_path / "run", every=0.0)
    result = minimize(in_lanes(problem_of(kind[0]), 3), kind[1], tol=0.0, max_passes=9, callbacks=[saved])
    assert len(list((tmp_path / "run.lanes").rglob("*.npz"))) == 3
    saved.close(replace(result, status=Status.TOLERANCE))
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_stays_as_it_was_if_the_workers_are_lost(kind, tmp_path, caplog, monkeypatch):
    sharded = in_lanes(problem_of(kind[0]), 3)
    saved = Checkpoint(tmp_path / "run", every=0.0)
    result = minimize(sharded, kind[1], tol=0.0, max_passes=6, callbacks=[saved])
    before = (tmp_path / "run").read_bytes()

    def lost(*arguments, each=None):
        raise EngineLost("nobody is left")

    later = kind[1].step(sharded, result.state)
    monkeypatch.setattr(sharded.engine, "total", lost)
    saved.close(replace(result, state=later, status=Status.LOST))
    assert (tmp_path / "run").read_bytes() == before
    assert "stays as it was" in caplog.text


def test_names_of_runs_are_no_paths(solver, sharded):
    state = steps(sharded, solver, 1)
    state.held.run = "../../elsewhere"
    with pytest.raises(ValueError, match=r"no run is called \.\./"):
        pickle.loads(pickle.dumps(state))
