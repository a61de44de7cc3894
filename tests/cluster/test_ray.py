"""Workers of a Ray cluster on this machine: the bits of threads, and the same answer whoever is killed when."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import m3n
from m3n import EngineLost, Problem, minimize
from m3n.checkpoint import Checkpoint
from m3n.cluster import placed
from m3n.cluster.workers import lent
from m3n.features import Dense, chain_features
from m3n.problem.engines import ThreadEngine
from m3n.problem.lanes import Lane
from m3n.problem.sharded import Sharded
from m3n.problem.spool import Spooled
from m3n.run.loop import Status
from m3n.solvers import (
    BMRM,
    LBFGS,
    BatchFrankWolfe,
    DualAscent,
    ExcessiveGap,
    ExponentiatedGradient,
    Extragradient,
    SequentialDual,
)
from m3n.structures import Chain

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def cluster():
    """Six processors, to which this process is connected: engines find it by themselves."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(address="local", num_cpus=6, include_dashboard=False, log_to_driver=False)
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


def some_problem(temperature=0.0, n=60):
    random = np.random.default_rng(0)
    lengths = random.integers(2, 9, n)
    features = chain_features(Dense(random.normal(size=(lengths.sum(), 5)), 4), 4)
    gold = [random.integers(0, 4, length) for length in lengths]
    weights = random.uniform(0.5, 2.0, n)
    return Problem(Chain(lengths, 4), features, gold, lam=0.05, temperature=temperature, sample_weight=weights)


def on_threads(problem, lanes):
    return Sharded(ThreadEngine(Spooled(problem, lanes), 2, lanes), problem.lam)


def process_of(lane: Lane):
    return os.getpid()


def nap(lane: Lane, seconds):
    time.sleep(seconds)


@pytest.fixture(scope="module")
def there(cluster):
    """Seven lanes of two workers."""
    with placed(some_problem(), m3n.Ray(workers=2, lanes=7)) as problem:
        yield problem


def test_answers_have_the_bits_of_threads(there, random):
    problem = some_problem()
    here, w = on_threads(problem, 7), random.normal(size=problem.dim)
    large = np.zeros(20_000)  # weights of this size go through the object store
    assert len(set(there.engine.run(process_of))) == 2
    for question, *arguments in [("hard", w), ("soft", w, 0.5), ("hard", w, np.arange(3, 50, 2))]:
        one, other = (getattr(p, question)(*arguments) for p in (there, here))
        np.testing.assert_array_equal(one.vector, other.vector)
        assert one.vector.flags.writeable
        assert (one.value, one.loss, one.offset) == (other.value, other.loss, other.offset)
    assert there.primal(w) == here.primal(w)
    assert (there.log_size, there.radius) == (here.log_size, here.radius)
    for one, other in zip(there.outputs(w), here.outputs(w), strict=True):
        np.testing.assert_array_equal(one, other)
    assert there.engine.run(shape_of, large) == [(20_000, True)] * 7


def shape_of(lane: Lane, array):
    return len(array), array.flags.writeable


def test_arrays_are_lent_without_a_copy():
    given = np.arange(3.0)
    given.flags.writeable = False
    (own, number), memory = lent([given, 4]), given.ctypes.data
    assert own.flags.writeable and own.ctypes.data == memory and number == 4
    del given
    np.testing.assert_array_equal(own, [0.0, 1.0, 2.0])  # its memory is still there


@pytest.mark.parametrize(
    "solver", [ExcessiveGap(), BMRM(), Extragradient(), ExponentiatedGradient(), BatchFrankWolfe()]
)
def test_batch_solvers_run_as_they_are(there, solver):
    settings = {"tol": 1e-3, "max_passes": 25}
    one, other = (minimize(problem, solver, **settings) for problem in (there, on_threads(some_problem(), 7)))
    np.testing.assert_array_equal(one.w, other.w)
    assert one.certificate == other.certificate
    assert [r.passes for r in one.trace] == [r.passes for r in other.trace]


def test_paths_keep_their_workers(cluster):
    """A problem of this process goes to workers and back."""
    problem = some_problem(temperature=1.0)
    there = m3n.path(problem, [0.1, 0.01], LBFGS(), tol=1e-6, backend=m3n.Ray(workers=2))
    here = m3n.path(on_threads(problem, 2), [0.1, 0.01], LBFGS(), tol=1e-6)
    for one, other in zip(there, here, strict=True):
        np.testing.assert_array_equal(one.w, other.w)
        assert one.certificate == other.certificate
        assert one.certificate.primal == pytest.approx(problem.with_lam(one.lam).primal(one.w), abs=1e-12)


def test_estimators_and_structures_of_users(cluster):
    """A class of this module goes along; what is in memory is written to files for the workers."""
    train, test = m3n.datasets.digit_strings(n_train=20, n_test=3)
    settings = {"solver": "excessive_gap", "lam": 1.0, "tol": 0.05}
    there = m3n.SequenceTagger(backend=m3n.Ray(workers=2), **settings).fit(train.inputs, train.labels)
    here = m3n.SequenceTagger(**settings).fit(train.inputs, train.labels)
    assert there.certificate_.gap <= 0.05
    np.testing.assert_allclose(there.coef_, here.coef_, atol=0.1)
    assert there.predict(test.inputs) == here.predict(test.inputs)


@pytest.mark.parametrize(("temperature", "solver"), [(0.0, SequentialDual()), (1.0, DualAscent())])
def test_default_solvers_and_what_they_hold(cluster, temperature, solver, tmp_path):
    """Local dual steps on two workers: the bits of threads, also after one was killed and after a break."""
    problem = some_problem(temperature=temperature)
    settings = {"tol": 0.0, "max_passes": 20}
    calm = minimize(on_threads(problem, 2), solver, **settings)
    killed, saved = [], Checkpoint(tmp_path / "run", every=0.0)
    with placed(problem, m3n.Ray(workers=2)) as there:

        def kill(snapshot):
            if snapshot.record.passes > 5 and not killed:
                killed.append(there.engine.run(process_of)[0])
                os.kill(killed[0], signal.SIGKILL)

        result = minimize(there, solver, **settings, callbacks=[kill])
        assert len(killed) == 1
        np.testing.assert_array_equal(result.w, calm.w)
        assert result.certificate == calm.certificate
        saved.close(minimize(there, solver, tol=0.0, max_passes=8, callbacks=[saved]))
    here = on_threads(problem, 2)
    cut = minimize(here, solver, tol=0.0, max_passes=8)
    same = minimize(here, solver, tol=0.0, max_passes=8, resume=cut)
    with placed(problem, m3n.Ray(workers=1, lanes=2)) as there:  # others than those that have saved it
        loaded = Checkpoint(tmp_path / "run").load(there)
        np.testing.assert_array_equal(loaded.w, cut.w)
        on = minimize(there, solver, tol=0.0, max_passes=8, resume=loaded)
    np.testing.assert_array_equal(on.w, same.w)
    assert on.certificate == same.certificate and on.certificate.gap < cut.certificate.gap


def test_a_worker_is_killed_between_passes(there):
    calm = minimize(there, ExcessiveGap(), tol=0.0, max_passes=20)
    killed = []

    def kill(snapshot):
        if len(killed) < 2:
            killed.append(there.engine.run(process_of)[-len(killed)])
            os.kill(killed[-1], signal.SIGKILL)

    result = minimize(there, ExcessiveGap(), tol=0.0, max_passes=20, callbacks=[kill])
    assert len(killed) == 2 and not set(killed) & set(there.engine.run(process_of))
    np.testing.assert_array_equal(result.w, calm.w)
    assert result.certificate == calm.certificate


def test_a_worker_is_killed_in_the_middle_of_a_pass(there, random):
    """While it works for a lane; the question is answered anew, by all lanes."""
    before = there.engine.run(process_of)
    w = random.normal(size=there.dim)
    calm = there.hard(w)
    threading.Timer(0.5, os.kill, (before[0], signal.SIGKILL)).start()
    assert len(there.engine.run(nap, 0.3)) == 7  # about a second for every worker
    assert before[0] not in there.engine.run(process_of)
    np.testing.assert_array_equal(there.hard(w).vector, calm.vector)


def test_workers_that_are_lost_for_good(cluster, tmp_path):
    """The run ends with what it knows and a checkpoint, and goes on with other workers to the same bits."""
    problem, saved = some_problem(), Checkpoint(tmp_path / "run", every=0.0)
    whole = minimize(on_threads(problem, 2), ExcessiveGap(), tol=0.0, max_passes=30)
    with placed(problem, m3n.Ray(workers=2, restarts=0)) as there:

        def kill(snapshot):
            if snapshot.record.passes > 10:
                os.kill(there.engine.run(process_of)[0], signal.SIGKILL)

        result = minimize(there, ExcessiveGap(), tol=0.0, callbacks=[saved, kill])
        saved.close(result)
    assert result.status is Status.LOST
    assert result.certificate.primal == pytest.approx(problem.primal(result.w))
    with placed(problem, m3n.Ray(workers=1, lanes=2)) as there:
        loaded = Checkpoint(tmp_path / "run").load(there)
        left = 30 - round(loaded.hard_calls + loaded.soft_calls) / problem.n
        on = minimize(there, ExcessiveGap(), tol=0.0, max_passes=left, resume=loaded)
        with pytest.raises(ValueError, match="with sums of 2 lanes, not 3"):
            minimize(on_threads(problem, 3), ExcessiveGap(), resume=loaded)
    assert abs(on.certificate.dual - whole.certificate.dual) <= 0.1


def test_a_cluster_that_is_gone(tmp_path):
    """Ray ends the process that is connected to it; the run does not end with it."""
    problem = some_problem()
    saved = Checkpoint(tmp_path / "run", every=0.0)
    with placed(problem, m3n.Ray(address="local", workers=1)) as there:

        def pull_the_plug(snapshot):
            if snapshot.record.passes > 5:
                there.engine._process.kill()

        result = minimize(there, ExcessiveGap(), tol=0.0, callbacks=[saved, pull_the_plug])
        saved.close(result)
        with pytest.raises(EngineLost, match="the cluster is gone"):
            there.hard(np.zeros(problem.dim))
    assert result.status is Status.LOST and (tmp_path / "run").exists()


def test_what_goes_wrong_on_a_worker_is_raised_here(there):
    with pytest.raises(FloatingPointError, match="the weights contain NaN"):
        there.hard(np.full(there.dim, np.nan))
    there.hard(np.zeros(there.dim))  # and it goes on


def test_memory_is_given_back_when_the_run_is_killed(cluster):
    """The process between notices, and removes the files that both have mapped."""
    program = (
        "import m3n, time\n"
        "from tests.cluster.test_ray import some_problem\n"
        f"with m3n.cluster.placed(some_problem(), m3n.Ray(address={cluster!r}, workers=1)) as problem:\n"
        "    print(problem.engine._hung_up.peek()[2][0], flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as run:
        folder = Path(run.stdout.readline().strip())
        assert folder.is_dir()
        run.kill()
    end = time.monotonic() + 20.0
    while folder.exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert not folder.exists()


def test_patience_has_an_end(there):
    engine = there.engine
    engine.settings = m3n.Ray(deadline=0.2)
    with pytest.raises(EngineLost, match="hangs"):
        engine.run(nap, 0.3)
    engine.settings = m3n.Ray()
    assert engine.run(process_of)  # the late answer was not taken for this one


def test_an_interrupted_wait_leaves_nothing_behind(there):
    """Ctrl-C while workers compute: the answer that comes later is not that of the next question."""
    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        there.engine.run(nap, 0.3)
    assert all(isinstance(found, int) for found in there.engine.run(process_of))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"workers": 9}, "9 workers with 1 threads each need 9 processors, but the cluster has 6"),
        ({"address": "127.0.0.1:1"}, "there is no cluster at '127.0.0.1:1'"),
    ],
)
def test_clusters_that_will_not_do(cluster, settings, match):
    with pytest.raises(EngineLost, match=match), placed(some_problem(), m3n.Ray(**settings)):
        pass


def test_workers_that_do_not_see_the_shards(cluster, tmp_path):
    """As on a machine without the folder: the error is what the worker met."""
    shards = m3n.pack([[["a"], ["b"]]] * 4, [["A", "B"]] * 4, tmp_path / "shards")
    source, _ = m3n.SequenceTagger()._source(shards)
    (tmp_path / "shards").rename(tmp_path / "elsewhere")
    with pytest.raises((EngineLost, FileNotFoundError), match="there is no folder"):
        m3n.Ray(workers=1).engine(lambda lanes: source, None)


def test_workers_that_find_no_room(there, caplog):
    """Two processors are taken, four are left: whoever waits is told so, and not for ever."""
    match = "workers have not started within 3 s, and . processors of the cluster are free"
    settings = m3n.Ray(workers=5, start=3.0)
    with caplog.at_level("INFO", "m3n"), pytest.raises(EngineLost, match=match), placed(some_problem(), settings):
        pass
    assert "5 processors, and 4 are free: waiting for others to end" in caplog.text  # said by the process between


def test_settings_are_checked():
    for wrong in ({"workers": 0}, {"threads": 0}, {"lanes": 0}, {"restarts": -1}, {"deadline": -1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            m3n.Ray(**wrong)
    with pytest.raises(ValueError, match="unknown backend 'spark'"):
        minimize(some_problem(), backend="spark")
    with pytest.raises(TypeError, match="somewhere else already"):
        minimize(on_threads(some_problem(), 2), backend="ray")
