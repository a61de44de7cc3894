import numpy as np
import pytest
import scipy.sparse

from m3n.checks import check_adjoint
from m3n.features import Dense, NoFeatures, Sparse, Stack, Table, chain_features
from m3n.packed import Threads
from tests.tiny import PartCoordinates


def maps(random):
    X = scipy.sparse.random_array((11, 6), density=0.4, rng=random)
    Z = random.normal(size=(7, 2))
    return {
        "dense": Dense(X.toarray(), 3),
        "sparse": Sparse(X, 3),
        "table": Table(3, 2),
        "dense edges": Dense(Z, (3, 3)),
        "sparse edges": Sparse(scipy.sparse.csr_array(Z), (3, 3)),
        "chain": chain_features(Dense(X.toarray(), 3), 3),
        "chain with edges": chain_features(Sparse(X, 3), 3, Dense(Z, (3, 3))),
        "nothing but zeros": Sparse(scipy.sparse.csr_array((4, 6)), 3),
        "no rows": Dense(np.empty((0, 2)), (3, 3)),
        "no features": NoFeatures(4, 3),
        "chain with edges that have no features": chain_features(Sparse(X, 3), 3, NoFeatures(7, 3, 3)),
    }


@pytest.mark.parametrize("name", list(maps(np.random.default_rng(0))))
def test_adjoint(name, random):
    check_adjoint(maps(random)[name])


def test_sparse_equals_dense(random):
    X = scipy.sparse.random_array((20, 6), density=0.3, rng=random)
    dense, sparse = Dense(X.toarray(), 4), Sparse(X, 4)
    w, parts = random.normal(size=dense.dim), (random.normal(size=(20, 4)),)
    for threads in (Threads(1), Threads(2), Threads(5)):
        (a,) = dense.scores(w, (np.empty((20, 4)),), threads)
        (b,) = sparse.scores(w, (np.empty((20, 4)),), threads)
        np.testing.assert_allclose(a, b)
        np.testing.assert_allclose(dense.adjoint(parts, threads), sparse.adjoint(parts, threads))
    np.testing.assert_allclose(dense.norms()[0], sparse.norms()[0])


def test_sparse_adjoint_does_not_depend_on_threads(random):
    X = scipy.sparse.random_array((50, 30), density=0.2, rng=random)
    features, parts = Sparse(X, 4), (random.normal(size=(50, 4)),)
    np.testing.assert_array_equal(features.adjoint(parts, Threads(1)), features.adjoint(parts, Threads(3)))


def test_selection_takes_rows(random):
    features = chain_features(Dense(random.normal(size=(6, 2)), 3), 3)
    part = features.select((np.array([4, 1]), None, None, None))
    w = random.normal(size=features.dim)
    whole = features.scores(w, tuple(np.empty(s) for s in features.shapes))
    some = part.scores(w, tuple(np.empty(s) for s in part.shapes))
    np.testing.assert_allclose(some[0], whole[0][[4, 1]])
    np.testing.assert_array_equal(some[1], whole[1])


def test_stack_splits_weights_and_sums_inner_products(random):
    stack = Stack(Table(2, 3), Table(4))
    u, v = random.normal(size=(2, 10))
    assert [len(piece) for piece in stack.split(u)] == [6, 4]
    assert stack.inner(u, v) == pytest.approx(u @ v)


def test_parts_without_features_score_nothing(random):
    """In a stack, in the middle of it too, and written out as rows."""
    stack = Stack(NoFeatures(4, 2, 3), Dense(random.normal(size=(2, 2)), 3))
    assert stack.dim == 6
    theta = stack.scores(random.normal(size=6), tuple(np.full(shape, np.nan) for shape in stack.shapes))
    assert not theta[0].any()
    rows = stack.rows()
    assert rows.arrays == (4, 2)
    np.testing.assert_array_equal(rows.pointers, [0, 0, 0, 0, 0, 2, 4])
    np.testing.assert_array_equal(rows.widths, [6, 6, 6, 6, 3, 3])
    assert stack.select((np.array([3, 1]), slice(0, 1))).shapes == ((2, 2, 3), (1, 3))
    assert not stack.norms()[0].any()


def test_vectors_are_refused():
    with pytest.raises(ValueError, match="2-D array"):
        Dense(np.ones(3), 2)


def test_check_adjoint_notices_a_wrong_adjoint_and_accepts_own_coordinates(random):
    features = Dense(random.normal(size=(5, 2)), 3)
    check_adjoint(PartCoordinates(features))
    features.adjoint = lambda parts, threads=None: np.zeros(6)
    with pytest.raises(AssertionError, match="adjoint"):
        check_adjoint(features)
