"""Compiled hooks one by one: what is not compiled runs in the interpreter, what is not there is refused."""

import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from m3n import MissingOracle, Problem, minimize
from m3n.compiled.oracles.hooks import implemented, implements
from m3n.features import Dense
from m3n.solvers import SMO, BatchFrankWolfe, BlockFrankWolfe, DualAscent, ExponentiatedGradient, SequentialDual
from m3n.structures import LabelStructure, Multiclass
from tests.tiny import Enumerated


class LargestSpace(NamedTuple):
    labels: int


@implements("workspace", LargestSpace)
def workspace(space):
    return np.empty(0)


@implements("best", LargestSpace)
def best(space, i, theta, parts, work):
    parts[0] = theta.argmax()
    return theta.max(), 1


class Largest(LabelStructure):
    """Multiclass with a compiled max-oracle, and an exp-oracle in Python."""

    asked = 0

    def __init__(self, n, labels):
        self.n, self.labels, self.shapes = n, labels, ((n, labels),)

    def spans(self):
        return (np.arange(self.n + 1),)

    def most_parts(self):
        return np.ones(self.n, np.int64)

    def space(self):
        return LargestSpace(self.labels)

    def marginals(self, example, theta, mu):
        Largest.asked += 1
        top = theta[0].max()
        chances = np.exp((theta[0] - top) / mu)
        return float(top + mu * np.log(chances.sum())), (chances / chances.sum(),)

    def log_size(self):
        return np.full(self.n, np.log(self.labels))

    def enumerate(self, example):
        return (np.array([label]) for label in range(self.labels))


def problem_of(structure, temperature):
    random = np.random.default_rng(5)
    X, y = random.normal(size=(10, 3)), random.integers(3, size=(10, 1))
    y = y if isinstance(structure, Largest) else y.ravel()
    return Problem(structure, Dense(X, 3), y, lam=0.1, temperature=temperature, n_jobs=1)


def test_hooks_are_known_by_name():
    assert implemented(("workspace", "best"), LargestSpace)
    assert not implemented(("workspace", "soft"), LargestSpace)
    blocks = problem_of(Largest(10, 3), 0.0).blocks
    assert [blocks.compiles(asks) for asks in ("hard", "soft", "support")] == [True, False, False]


@pytest.mark.parametrize(
    ("solver", "temperature"),
    [(SequentialDual(), 0.0), (BlockFrankWolfe(), 0.0), (DualAscent(), 1.0), (ExponentiatedGradient(online=True), 1.0)],
    ids=lambda x: type(x).__name__,
)
def test_solvers_take_what_is_compiled_and_what_is_not(solver, temperature):
    problem = problem_of(Largest(10, 3), temperature)
    Largest.asked = 0
    result = minimize(problem, solver, tol=1e-2, max_passes=2000)
    assert result.converged
    assert bool(Largest.asked) == bool(temperature)
    best = Enumerated.of(problem_of(Multiclass(10, 3), temperature)).optimum()
    assert result.certificate.dual - 1e-8 <= best <= result.certificate.primal + 1e-8


def test_passes_use_the_same_hooks(random):
    largest, known = problem_of(Largest(10, 3), 0.0), problem_of(Multiclass(10, 3), 0.0)
    w = random.normal(size=known.dim)
    for ask in (lambda p: p.hard(w), lambda p: p.soft(w, 0.3)):
        one, two = ask(largest), ask(known)
        assert one.value == pytest.approx(two.value)
        np.testing.assert_allclose(one.vector, two.vector, atol=1e-12)


def test_a_factored_dual_that_is_not_there_is_refused():
    with pytest.raises(MissingOracle, match=r"SMO needs the min-oracle.* Largest does not offer.*SequentialDual"):
        minimize(problem_of(Largest(10, 3), 0.0), SMO())


def test_selections_use_compiled_hooks(random):
    """A structure whose only max-oracle is compiled: parts of the data, one example alone, mini-batches."""
    largest, known = problem_of(Largest(10, 3), 0.0), problem_of(Multiclass(10, 3), 0.0)
    w = random.normal(size=known.dim)
    chosen = np.array([7, 2, 2])
    assert largest.hard(w, chosen).value == pytest.approx(known.hard(w, chosen).value)
    assert largest.soft(w, 0.3, chosen).value == pytest.approx(known.soft(w, 0.3, chosen).value)
    theta = (random.normal(size=(10, 3)),)
    assert list(largest.structure.best(4, largest.structure.own(theta, 4))) == [int(theta[0][4].argmax())]
    assert minimize(largest, BatchFrankWolfe(), tol=1e-2).converged


SCRIPT = """
import numpy as np
from typing import NamedTuple
from m3n.compiled.oracles.hooks import implements
from m3n.structures import Multiclass

class Space(NamedTuple):
    labels: int

@implements("workspace", Space)
def workspace(space):
    return np.empty(0)

@implements("best", Space)
def best(space, i, theta, parts, work):
    parts[0] = theta.{0}()
    return theta[parts[0]], 1

class Mine(Multiclass):
    hard = Multiclass.__mro__[2].hard  # the default of all structures

    def space(self):
        return Space(self.labels)

print(Mine(1, 3).hard((np.array([[1.0, 3.0, 2.0]]),))[1][0])
"""


def test_a_change_of_foreign_code_never_meets_old_machine_code(tmp_path):
    """Our caches on disk are stamped with our sources alone."""
    module, found = tmp_path / "mine.py", []
    for word in ("argmax", "argmin"):
        module.write_text(SCRIPT.format(word))
        done = subprocess.run([sys.executable, "-B", "-c", "import mine"], cwd=tmp_path, capture_output=True, text=True)
        found.append(done.stdout.strip() or done.stderr)
    assert found == ["1", "0"]
