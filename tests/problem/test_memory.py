"""What is kept in a short form says the same as in the long one."""

import numpy as np
import pytest
import scipy.sparse

from m3n import Problem, minimize
from m3n.features import Observed, ObservedTable, Sparse, Stack, Table, observed_pairs
from m3n.packed.memory import give_back
from m3n.problem import passes
from m3n.solvers import DualAscent, SequentialDual
from m3n.structures import Chain

LABELS = 5


def chain(random, value, kind, temperature=1.0, **settings):
    """Rows whose attributes all have one value, or all but the last entry."""
    lengths = random.integers(1, 6, size=30)
    gold = random.integers(LABELS, size=lengths.sum())
    X = scipy.sparse.random_array((lengths.sum(), 12), density=0.3, rng=random, format="csr")
    X.data[:] = value
    node = Sparse(X, LABELS) if kind is Sparse else Observed(X, observed_pairs(X, gold, LABELS))
    table = Table(LABELS, LABELS) if kind is Sparse else ObservedTable(random.random((LABELS, LABELS)) < 0.7)
    features = Stack(node, table, Table(LABELS), Table(LABELS))
    y = np.split(gold, np.cumsum(lengths)[:-1])
    return Problem(Chain(lengths, LABELS), features, y, lam=0.1, temperature=temperature, n_jobs=1, **settings), X


@pytest.mark.parametrize("kind", [Sparse, Observed])
@pytest.mark.parametrize("value", [1.0, 0.5])
def test_values_that_are_all_alike(random, kind, value):
    problem, X = chain(random, value, kind)
    rows = problem.features.maps[0].rows()
    assert len(rows.values) == len(rows.runs)
    w = np.where(getattr(problem.features.maps[0], "alive", True), random.normal(size=problem.features.maps[0].dim), 0)
    node = problem.features.maps[0]
    coef = node.coefficients(w).toarray() if kind is Observed else w.reshape(-1, LABELS)
    np.testing.assert_allclose(node.scores(w, (np.empty(node.shapes[0]),))[0], X @ coef, atol=1e-12)
    assert len(problem.blocks.rows.data) == (1 if value == 1.0 else len(problem.blocks.rows.runs))  # tables have ones
    np.testing.assert_allclose(np.sqrt(problem.blocks.rows.squares[: X.shape[0]]), node.norms()[0])
    chosen = random.permutation(X.shape[0])[:7]
    part = node.select((chosen,))
    np.testing.assert_allclose(part.scores(w, (np.empty(part.shapes[0]),))[0], X[chosen] @ coef, atol=1e-12)
    part = node.select((slice(3, 9),))
    np.testing.assert_allclose(part.scores(w, (np.empty(part.shapes[0]),))[0], X[3:9] @ coef, atol=1e-12)
    assert len(part.rows().runs) == part.rows().pointers[-1]


@pytest.mark.parametrize("solver", [DualAscent(), SequentialDual()])
@pytest.mark.parametrize("weighted", [False, True])
def test_solvers_find_the_optimum_of_the_long_form(random, solver, weighted):
    """The same problem with the value that all entries have moved from the data into the weights."""
    temperature = 1.0 if isinstance(solver, DualAscent) else 0.0
    settings = {"sample_weight": random.integers(1, 4, size=30).astype(float)} if weighted else {}
    problem, X = chain(random, 1.0, Sparse, temperature, **settings)
    other = Problem(
        problem.structure, Stack(Dearer(X, LABELS), *problem.features.maps[1:]), problem.structure.unpack(problem.gold),
        lam=0.1, temperature=temperature, n_jobs=1, **settings,
    )  # fmt: skip
    assert len(other.blocks.rows.data) > 1
    a, b = (minimize(p, solver, tol=1e-6, max_passes=300).certificate for p in (problem, other))
    assert a.primal == pytest.approx(b.primal, abs=2e-6)


class Dearer(Sparse):
    """Ones that do not look alike: an entry with the value 0 more."""

    def rows(self):
        rows = super().rows()
        pointers = np.concatenate([rows.pointers[:-1], rows.pointers[-1:] + 1])
        return type(rows)(pointers, np.append(rows.runs, 0), np.append(rows.values, 0.0), rows.widths, rows.arrays)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("kind", [Sparse, Observed])
def test_the_objective_comes_a_part_at_a_time(random, monkeypatch, kind, temperature):
    weights = random.integers(1, 4, size=30).astype(float)
    problem, _ = chain(random, 1.0, kind, temperature, sample_weight=weights)
    w = random.normal(size=problem.dim)
    whole = problem.whole._values(w)
    del vars(problem.whole)["buffer"]
    monkeypatch.setattr(passes, "MOST_SCORES", 100)
    assert len(problem.whole._cuts()) > 3
    np.testing.assert_array_equal(problem.whole.margins(w), whole)
    assert "buffer" not in vars(problem.whole)
    assert problem.primal(w) == pytest.approx(problem.penalty(w) + problem.risk(w).value, rel=1e-12)


def test_the_dual_point_of_rounded_potentials_is_exact(random):
    """w and the entropies of what is kept, computed anew, are those that the steps have brought."""
    from m3n.solvers.dual_points import filled

    problem, _ = chain(random, 1.0, Observed)
    state = DualAscent().init(problem)
    for _ in range(6):
        state = DualAscent().step(problem, state)
    point = state.memory.point
    assert point.potentials.dtype == np.float32
    before = point.marginals.copy(), point.entropies.copy()
    np.testing.assert_allclose(filled(problem, point, problem.lam), state.w, atol=1e-12)
    np.testing.assert_allclose(point.marginals, before[0], atol=1e-14)
    np.testing.assert_allclose(point.entropies, before[1], atol=1e-12)


def test_giving_memory_back_does_no_harm():
    give_back()
