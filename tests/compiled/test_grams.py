"""Kernel expansions example by example, against the feature map's own products with the Gram matrix."""

import numpy as np
import pytest

from m3n import Problem
from m3n.compiled.maps.grams import KernelRows
from m3n.compiled.maps.kinds import gather, scatter_all
from m3n.compiled.sweeps import visits
from m3n.features import CliqueKernel, Dense, Kernel, Scaled, Stack, Table, chain_features
from m3n.losses import Hamming
from m3n.solvers import SequentialDual, sequential_dual
from m3n.structures import Chain
from tests.tiny import iterates

LENGTHS, LABELS = (1, 3, 2, 4), 3


def inputs(seed=0):
    """Node and edge inputs with duplicates, two of them within one example."""
    random = np.random.default_rng(seed)
    X, Z = random.normal(size=(sum(LENGTHS), 4)), random.normal(size=(sum(LENGTHS) - len(LENGTHS), 2))
    X[4], X[7], Z[1], Z[4] = X[5], X[1], Z[0], Z[5]
    return X, Z


def label_kernel(labels=LABELS):
    A = np.random.default_rng(1).normal(size=(labels, labels))
    return A @ A.T


def maps():
    """Feature maps with expansions among their rows, and whether edges have features."""
    X, Z = inputs()
    tables = Table(LABELS, LABELS), Table(LABELS), Table(LABELS)
    pairs = (LABELS, LABELS)
    mixed = Kernel(X, LABELS, "rbf", label_kernel=label_kernel())
    every = np.random.default_rng(2).normal(size=(len(X) * LABELS, 50))
    return {
        "nodes": (chain_features(Kernel(X, LABELS, "poly", degree=2), LABELS), False),
        "edges": (chain_features(Kernel(X, LABELS, "rbf"), LABELS, Kernel(Z, pairs, "poly")), True),
        "only edges": (chain_features(Dense(X, LABELS), LABELS, Kernel(Z, pairs, "rbf")), True),
        "scaled": (Stack(Scaled(Kernel(X, LABELS, "poly"), 0.3), *tables), False),
        "labels that share": (chain_features(mixed, LABELS, Kernel(Z, pairs, label_kernel=label_kernel(9))), True),
        "cliques": (chain_features(CliqueKernel(X, LABELS, every @ every.T), LABELS), False),
        "32 bits": (chain_features(Kernel(X, LABELS, "poly", dtype=np.float32), LABELS), False),
        "two dtypes": (
            chain_features(Kernel(X, LABELS, dtype=np.float32), LABELS, Kernel(Z, pairs, "poly")), True,
        ),
    }  # fmt: skip


@pytest.fixture(params=maps())
def problem(request):
    return make(request.param)


def make(name, weights=None):
    features, edges = maps()[name]
    random = np.random.default_rng(3)
    y = [random.integers(LABELS, size=length) for length in LENGTHS]
    structure = Chain(LENGTHS, LABELS, edges=edges)
    return Problem(structure, features, y, loss=Hamming(), lam=0.1, n_jobs=1, sample_weight=weights)


def alone(problem, i):
    """Structure and feature map of one example."""
    structure, rows = problem.structure.select(np.array([i]))
    return structure, problem.features.select(rows)


def adjoint(problem, i, delta):
    structure, features = alone(problem, i)
    pieces = np.split(delta, np.cumsum([int(np.prod(shape)) for shape in structure.shapes])[:-1])
    return features.adjoint(tuple(piece.reshape(s) for piece, s in zip(pieces, structure.shapes, strict=True)))


def sparse_delta(problem, i, random):
    """Amounts of a few parts, as block methods hand them over."""
    size = problem.blocks.rows.sizes[i]
    touched = random.permutation(size)[: min(8, size)]
    delta = np.zeros(size)
    delta[touched[1:]] = random.normal(size=len(touched) - 1)  # the first was touched and came back to zero
    return delta, touched


def random_weights(problem, random):
    return problem.features.refresh(random.normal(size=problem.dim))


def test_rows_know_the_gram_matrices(problem):
    rows = problem.blocks.rows
    assert isinstance(rows, KernelRows)
    assert len({array.dtype for array in rows.grams}) == 1
    assert len(rows.grams) == 2  # one type, hence one compiled kernel, with and without a second one


def test_scores(problem, random):
    w = random_weights(problem, random)
    for i in range(problem.n):
        structure, features = alone(problem, i)
        expected = features.scores(w, tuple(np.empty(shape) for shape in structure.shapes))
        theta = np.full(problem.blocks.rows.sizes[i], np.nan)
        gather(problem.blocks.rows, i, w, theta)
        np.testing.assert_allclose(theta, np.concatenate([part.ravel() for part in expected]), atol=1e-12)


def test_additions(problem, random):
    rows = problem.blocks.rows
    for i in range(problem.n):
        delta = random.normal(size=rows.sizes[i]) * (random.random(rows.sizes[i]) < 0.7)
        start = random_weights(problem, random)
        expected, few, all_of_them = start - 2.0 * adjoint(problem, i, delta), start.copy(), start.copy()
        scatter_all(rows, i, delta, -2.0, all_of_them)
        visits.scatter(rows, i, delta, np.arange(len(delta)), len(delta), -2.0, few)
        np.testing.assert_allclose(all_of_them, expected, atol=1e-11)
        np.testing.assert_allclose(few, expected, atol=1e-11)


def test_a_move_tells_its_square(problem, random):
    rows, costs = problem.blocks.rows, problem.blocks.costs
    for i in range(problem.n):
        delta, w = random.normal(size=rows.sizes[i]), random_weights(problem, random)
        moved, theta, vector = w.copy(), np.empty(rows.sizes[i]), adjoint(problem, i, delta)
        visits.local_scores(rows, costs, i, w, theta)
        square = visits.move_weights(rows, costs, i, delta, theta @ delta, -0.5, moved)
        assert square == pytest.approx(problem.inner(vector, vector))
        np.testing.assert_allclose(moved, w - 0.5 * vector, atol=1e-11)


def test_the_square_of_a_few_parts(problem, random):
    rows, dense = problem.blocks.rows, np.zeros(problem.dim)
    for i in range(problem.n):
        delta, touched = sparse_delta(problem, i, random)
        vector = adjoint(problem, i, delta)
        square = visits.spread(rows, i, delta, touched, len(touched), dense)
        assert square == pytest.approx(problem.inner(vector, vector))
        visits.wipe(rows, i, delta, touched, len(touched), dense)
        assert not dense.any()


def test_what_is_spread_scores_the_example_itself(problem, random):
    """Caches read inner products off it."""
    rows, dense = problem.blocks.rows, np.zeros(problem.dim)
    for i in range(problem.n):
        delta, touched = sparse_delta(problem, i, random)
        visits.spread(rows, i, delta, touched, len(touched), dense)
        theta, expected = np.empty((2, rows.sizes[i]))
        gather(rows, i, dense, theta)
        gather(rows, i, adjoint(problem, i, delta), expected)
        np.testing.assert_allclose(theta, expected, atol=1e-12)
        w, q = np.zeros((2, problem.dim))
        visits.settle(rows, i, delta, touched, len(touched), dense, 3.0, w, -2.0, q)
        assert not dense.any()
        np.testing.assert_allclose(w, 3.0 * adjoint(problem, i, delta), atol=1e-11)
        np.testing.assert_allclose(q, -2.0 * adjoint(problem, i, delta), atol=1e-11)


@pytest.mark.parametrize("name", ["nodes", "labels that share"])
def test_weighted_examples(name, random):
    weights = np.array([0.5, 2.0, 1.0, 3.0])
    plain, weighted = make(name), make(name, weights)
    w, dense = random_weights(plain, random), np.zeros(plain.dim)
    for i in range(plain.n):
        theta, heavy = np.empty((2, plain.blocks.rows.sizes[i]))
        gather(plain.blocks.rows, i, w, theta)
        gather(weighted.blocks.rows, i, w, heavy)
        np.testing.assert_allclose(heavy, weighted.blocks.weights[i] * theta, atol=1e-12)
        delta, touched = sparse_delta(plain, i, random)
        vector = weighted.blocks.weights[i] * adjoint(plain, i, delta)
        square = visits.spread(weighted.blocks.rows, i, delta, touched, len(touched), dense)
        assert square == pytest.approx(plain.inner(vector, vector))
        visits.wipe(weighted.blocks.rows, i, delta, touched, len(touched), dense)


def test_squares_of_rows_bound_those_of_parts(problem):
    rows = problem.blocks.rows
    for i in range(problem.n):
        for use in range(rows.first[i], rows.first[i + 1]):
            lengths = []
            for j in range(rows.widths[rows.used[use]]):
                delta = np.zeros(rows.sizes[i])
                delta[rows.place[use] + j] = 1.0
                vector = adjoint(problem, i, delta)
                lengths.append(problem.inner(vector, vector))
            assert max(lengths) == pytest.approx(rows.squares[rows.used[use]], rel=1e-6)


def test_reach_counts_the_weights_of_a_part():
    problem = make("nodes")
    units = problem.features.maps[0].gram.size
    assert units == 8  # of ten rows, two are repeated
    uses = sum(LENGTHS) + 3 * len(LENGTHS)
    assert problem.blocks.reach == pytest.approx((sum(LENGTHS) * units + 3 * len(LENGTHS)) / uses)


@pytest.mark.parametrize("name", ["nodes", "labels that share", "cliques"])
def test_cached_products_and_support(name, monkeypatch):
    monkeypatch.setattr(sequential_dual, "SMALL", 0)
    problem = make(name)
    state = list(iterates(problem, SequentialDual(), 5))[-1]
    caches, compared = state.caches, 0
    for i in range(problem.n):
        first, used = caches.first[i], caches.used[i]
        side = caches.first[i + 1] - first
        vectors = [adjoint(problem, i, listed(problem, i, caches, slot)) for slot in range(first, first + used)]
        for a in range(used):
            for b in range(used):
                product = caches.gram[caches.squares[i] + a * side + b]
                assert product == pytest.approx(problem.inner(vectors[a], vectors[b]), abs=1e-10)
                compared += a != b
            assert set(np.flatnonzero(vectors[a])) <= set(state.support)
    assert compared > 20
    assert len(set(state.support)) == len(state.support)


def listed(problem, i, caches, slot):
    """The amounts of the parts of a slot."""
    delta = np.zeros(problem.blocks.rows.sizes[i])
    for code in caches.parts[caches.starts[slot] : caches.starts[slot] + caches.lengths[slot]]:
        delta[code if code >= 0 else ~code] += 1.0 if code >= 0 else -1.0
    return delta
