"""Whether a run fits into memory is said before it begins."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from m3n import Problem, minimize
from m3n.features import Dense, chain_features
from m3n.packed.memory import free_memory
from m3n.run import memory
from m3n.run.memory import TooLarge, check_memory, memory_of
from m3n.solvers import BY_NAME, BlockFrankWolfe, DualAscent, ExcessiveGap, SequentialDual
from m3n.structures import Chain
from tests.tiny import chain_problem, multiclass_problem


@pytest.fixture
def free(monkeypatch):
    """A function that says how much memory is free."""
    monkeypatch.setattr(memory, "SMALL", 0.0)
    return lambda size: monkeypatch.setattr(memory, "free_memory", lambda unknown: float(size))


def dense_problem(temperature=0.0):
    random = np.random.default_rng(0)
    features = chain_features(Dense(random.normal(size=(400, 20)), 3), 3)
    gold = np.split(random.integers(3, size=400), 100)
    return Problem(Chain([4] * 100, 3), features, gold, lam=0.1, temperature=temperature, n_jobs=1)


def test_a_solver_that_needs_more_than_there_is_is_refused_with_advice(free):
    problem, calls = dense_problem(), 0
    needed = memory_of(problem, SequentialDual())
    assert needed >= 12 * 400 * 20  # the inputs as lists
    free(needed / 1.1)
    with pytest.raises(TooLarge, match=r"SequentialDual needs about .* for these 100 examples.*ExcessiveGap") as caught:
        minimize(problem, SequentialDual())
    assert "BlockFrankWolfe" not in str(caught.value), "it needs as much"
    assert problem.hard_calls == calls, "nothing has begun"
    assert minimize(problem, ExcessiveGap(), tol=0.5).converged


def test_most_of_the_memory_is_worth_a_warning(free):
    problem = dense_problem()
    free(1.5 * memory_of(problem, SequentialDual()))
    with pytest.warns(UserWarning, match="SequentialDual needs about .* are free. If that is too much: choose from"):
        assert minimize(problem, SequentialDual(), tol=0.5).converged
    free(100 * memory_of(problem, SequentialDual()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_memory(problem, SequentialDual())


def test_nobody_hears_of_a_few_megabytes(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda unknown: 1.0)
    check_memory(dense_problem(), SequentialDual())


def test_the_dual_point_of_a_crf_counts_all_parts():
    problem = dense_problem(temperature=1.0)
    parts = problem.blocks.rows.sizes.sum()
    assert DualAscent().footprint(problem) == 16 * parts


def test_working_sets_grow_with_the_length_of_outputs():
    problem = chain_problem()
    assert BlockFrankWolfe().footprint(problem) >= 4 * problem.structure.most_parts().max() * problem.n


@pytest.mark.parametrize("name", BY_NAME)
def test_every_solver_has_an_estimate(name):
    for problem in (chain_problem(), multiclass_problem()):
        assert 0.0 <= memory_of(problem, BY_NAME[name]()) < np.inf


@pytest.mark.skipif(sys.platform != "linux", reason="limits of other systems differ")
def test_limits_of_the_process_count():
    """As ``ulimit`` sets them."""
    code = (
        "import resource; from m3n.packed.memory import free_memory; "
        "kind = resource.RLIMIT_{kind}; resource.setrlimit(kind, (4 << 30, 4 << 30)); print(free_memory())"
    )
    for kind in ("AS", "DATA"):
        found = subprocess.run([sys.executable, "-c", code.format(kind=kind)], capture_output=True, text=True)
        assert 0.0 < float(found.stdout) < 4 << 30


def test_a_system_that_does_not_tell_refuses_nothing(monkeypatch, tmp_path):
    assert 1e6 < free_memory() < np.inf
    monkeypatch.setattr("m3n.packed.memory.Path", lambda *names: tmp_path / "nothing")
    assert free_memory(unknown=np.inf) == np.inf
    monkeypatch.setattr(memory, "SMALL", 0.0)
    check_memory(dense_problem(), SequentialDual())
