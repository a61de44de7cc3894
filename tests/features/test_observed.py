"""Observed pairs against the dense map with the other weights held at zero."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse

from m3n import Problem, minimize
from m3n.checks import check_adjoint
from m3n.compiled.maps.kinds import scatter_all
from m3n.compiled.sweeps import visits
from m3n.features import Dense, Observed, ObservedTable, Stack, Table, observed_pairs, observed_transitions
from m3n.features import observed as module
from m3n.packed import Threads
from m3n.solvers import BlockFrankWolfe, ExponentiatedGradient
from m3n.structures import Chain

LENGTHS, LABELS = np.array([3, 1, 4, 2, 5]), 7


def data(random):
    """Attribute 0 occurs everywhere (a run), 1 nowhere, the others here and there (lists of one to three labels)."""
    X = (random.random((LENGTHS.sum(), 9)) < 0.2) * random.normal(size=(LENGTHS.sum(), 9))
    X[:, 0], X[:, 1] = 1.0, 0.0
    return X, random.integers(0, LABELS, LENGTHS.sum())


def node_map(X, gold):
    sparse = scipy.sparse.csr_array(X)
    return Observed(sparse, observed_pairs(sparse, gold, LABELS))


def chain_map(X, gold):
    ends = ObservedTable(np.zeros(LABELS, bool)), Table(LABELS)
    return Stack(node_map(X, gold), ObservedTable(observed_transitions(gold, LENGTHS, LABELS)), *ends)


def problem(random, temperature=0.0, lam=0.1):
    X, gold = data(random)
    y = np.split(gold, np.cumsum(LENGTHS)[:-1])
    settings = {"lam": lam, "temperature": temperature, "n_jobs": 1}
    return Problem(Chain(LENGTHS, LABELS), chain_map(X, gold), y, **settings)


def test_the_example_has_runs_with_padding_lists_and_an_attribute_that_never_occurs(random):
    features = node_map(*data(random))
    counts = np.diff(features.pairs.indptr)
    wide = counts * module.WIDE >= LABELS
    assert counts[1] == 0
    assert wide.any()
    assert (counts[~wide] == 1).any()
    assert not features.alive.all()


def test_pairs_and_transitions_are_those_that_occur(random):
    X, gold = data(random)
    pairs = {(a, gold[t]) for t, a in zip(*np.nonzero(X), strict=True)}
    found = observed_pairs(scipy.sparse.csr_array(X), gold, LABELS)
    assert set(zip(*found.nonzero(), strict=True)) == pairs
    sequences = np.split(gold, np.cumsum(LENGTHS)[:-1])
    follows = {pair for y in sequences for pair in pairwise(y)}
    assert set(zip(*np.nonzero(observed_transitions(gold, LENGTHS, LABELS)), strict=True)) == follows


def test_pairs_of_large_tables_are_sorted(random, monkeypatch):
    X, gold = data(random)
    small = observed_pairs(scipy.sparse.csr_array(X), gold, LABELS)
    monkeypatch.setattr(module, "SMALL", 0)
    large = observed_pairs(scipy.sparse.csr_array(X), gold, LABELS)
    np.testing.assert_array_equal(small.toarray(), large.toarray())


@pytest.mark.parametrize("wide", [1, 5, 100])
def test_equals_the_dense_map_with_masked_weights(random, monkeypatch, wide):
    monkeypatch.setattr(module, "WIDE", wide)  # nothing but lists, both, nothing but runs
    X, gold = data(random)
    features, dense = node_map(X, gold), Dense(X, LABELS)
    w, parts = random.normal(size=features.dim), (random.normal(size=(len(X), LABELS)),)
    coefficients = features.coefficients(w)
    pairs = observed_pairs(scipy.sparse.csr_array(X), gold, LABELS).toarray()
    for threads in (Threads(1), Threads(3)):
        (a,) = features.scores(w, (np.empty((len(X), LABELS)),), threads)
        (b,) = dense.scores(coefficients.toarray().ravel(), (np.empty((len(X), LABELS)),), threads)
        np.testing.assert_allclose(a, b, atol=1e-12)
        expected = np.where(pairs, dense.adjoint(parts).reshape(-1, LABELS), 0.0)
        found = features.adjoint(parts, threads)
        np.testing.assert_allclose(features.coefficients(found).toarray(), expected, atol=1e-12)
        assert not found[~features.alive].any()
    np.testing.assert_allclose(features.norms()[0], dense.norms()[0])
    np.testing.assert_array_equal(features.pack(coefficients.data), np.where(features.alive, w, 0.0))


def test_adjoint_and_selection(random):
    X, gold = data(random)
    features = chain_map(X, gold)
    check_adjoint(features)
    chosen = np.array([4, 0, 11])
    part = features.select((chosen, None, None, None))
    check_adjoint(part)
    w = random.normal(size=features.dim)
    whole = features.scores(w, tuple(np.empty(s) for s in features.shapes))
    some = part.scores(w, tuple(np.empty(s) for s in part.shapes))
    np.testing.assert_array_equal(some[0], whole[0][chosen])


@pytest.mark.parametrize("labels", [2, 3, 4, 23, 24, 25, 30])
def test_any_number_of_labels(labels, random):
    X = scipy.sparse.csr_array((random.random((150, 9)) < 0.4) * random.normal(size=(150, 9)))
    features = Observed(X, observed_pairs(X, random.integers(0, labels, 150), labels))
    w = np.where(features.alive, random.normal(size=features.dim), 0.0)
    found = features.scores(w, (np.full((150, labels), np.nan),))[0]
    np.testing.assert_allclose(found, X @ features.coefficients(w).toarray(), atol=1e-12)
    check_adjoint(features)


def test_a_stack_shares_its_entries(random):
    features = chain_map(*data(random))
    w = random.normal(size=features.dim)
    before = features.scores(w, tuple(np.empty(s) for s in features.shapes))
    rows = features.rows()
    assert np.shares_memory(rows.data, features.maps[0].data)
    assert np.shares_memory(rows.runs, features.maps[0].runs)
    after = features.scores(w, tuple(np.empty(s) for s in features.shapes))
    np.testing.assert_array_equal(after[0], before[0])


def test_matrices_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="X has 4 attributes, but pairs speaks of 3"):
        Observed(scipy.sparse.csr_array((2, 4)), scipy.sparse.csr_array((3, 2)))


def test_visits_meet_the_same_weights(random):
    """Every function on an example's rows against the map restricted to that example."""
    p = problem(random)
    rows, alive = p.blocks.rows, p.features.adjoint(tuple(np.ones(s) for s in p.features.shapes)) != 0
    w = np.where(alive, random.normal(size=p.dim), 0.0)
    for i in range(p.n):
        structure, chosen = p.structure.select(np.array([i]))
        mine = p.features.select(chosen)
        theta = np.empty(rows.sizes[i])
        visits.gather(rows, i, w, theta)
        expected = mine.scores(w, structure.empty())
        np.testing.assert_allclose(theta, np.concatenate([a.ravel() for a in expected]), atol=1e-12)
        delta = random.normal(size=len(theta))
        parts = tuple(a.reshape(s) for a, s in zip(_cut(delta, structure.shapes), structure.shapes, strict=True))
        vector = mine.adjoint(parts)
        touched = np.arange(len(theta))
        one, two, three, zeros = np.zeros((4, p.dim))
        scatter_all(rows, i, delta, 2.0, one)
        visits.scatter(rows, i, delta, touched, len(touched), 2.0, two)
        np.testing.assert_allclose(one, 2 * vector, atol=1e-12)
        np.testing.assert_allclose(two, 2 * vector, atol=1e-12)
        moved = w.copy()
        square = visits.move_weights(rows, p.blocks.costs, i, delta, _rise(p, i, w, delta), 2.0, moved)
        assert square == pytest.approx(vector @ vector)
        np.testing.assert_allclose(moved, w + 2 * vector, atol=1e-12)
        assert visits.spread(rows, i, delta, touched, len(touched), zeros) == pytest.approx(vector @ vector)
        visits.settle(rows, i, delta, touched, len(touched), zeros, 2.0, three, 0.0, np.zeros(p.dim))
        np.testing.assert_allclose(three, 2 * vector, atol=1e-12)
        assert not zeros.any()


def _rise(p, i, w, delta):
    theta = np.empty(len(delta))
    return visits.local_scores(p.blocks.rows, p.blocks.costs, i, w, theta) @ delta


def _cut(vector, shapes):
    return np.split(vector, np.cumsum([int(np.prod(s)) for s in shapes])[:-1])


@pytest.mark.parametrize(
    ("temperature", "solver"), [(0.0, BlockFrankWolfe()), (1.0, ExponentiatedGradient(online=True))]
)
def test_block_methods_agree_with_a_batch_method(random, temperature, solver):
    p = problem(random, temperature, lam=1.0)
    result = minimize(p, solver, tol=1e-4, max_passes=10_000)
    other = minimize(problem(np.random.default_rng(0), temperature, lam=1.0), "auto", tol=1e-4, max_passes=200)
    assert result.converged
    assert p.primal(result.w) == pytest.approx(result.certificate.primal, rel=1e-12)
    assert result.certificate.primal >= other.certificate.dual - 1e-12
    assert other.certificate.primal >= result.certificate.dual - 1e-12


def test_slope_of_the_risk(random):
    """Differences of the risk against its gradient, along a direction of weights that exist."""
    p = problem(random, temperature=1.0)
    w, direction = random.normal(size=(2, p.dim))
    answer = p.risk(w)
    steps = np.array([1e-2, 1e-3])
    errors = [abs(p.risk(w + h * direction).value - answer.value + h * (answer.vector @ direction)) for h in steps]
    assert np.log10(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
