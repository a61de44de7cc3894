import numpy as np
import pytest
import scipy.sparse

from m3n.features import Sparse
from m3n.packed import Threads

WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 22, 24, 25, 26, 28, 33, 48, 50, 51, 52]


@pytest.mark.parametrize("width", WIDTHS)
def test_scores_and_adjoint_against_scipy(width, random):
    """Every split of a row into vectors and a rest; rows without entries, attributes without rows, several threads."""
    X = scipy.sparse.random_array((23, 40), density=0.2, rng=random, format="csr")
    X.data[::3] = 1.0
    features = Sparse(X, width)
    w, marginals = random.normal(size=(40, width)), random.normal(size=(23, width))
    for threads in (Threads(1), Threads(2), Threads(5)):
        (theta,) = features.scores(w.ravel(), (np.full((23, width), np.nan),), threads)
        np.testing.assert_allclose(theta, X @ w, rtol=1e-12, atol=1e-12)
        vector = features.adjoint((marginals,), threads)
        np.testing.assert_allclose(vector.reshape(40, width), X.T @ marginals, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("width", [2, 4, 22, 26])
def test_rows_of_a_few_numbers(width, random):
    """What remains of two labellings: rows with two numbers, with none, and with many, mixed."""
    X = scipy.sparse.random_array((60, 30), density=0.2, rng=random, format="csr")
    marginals = random.normal(size=(60, width))
    for r in range(60):
        marginals[r, random.permutation(width)[r % 6 :]] = 0.0
    vector = random.normal(size=30 * width)
    expected = vector.reshape(30, width) - 0.5 * (X.T @ marginals)
    Sparse(X, width).add_adjoint((marginals,), -0.5, vector, Threads(2))
    np.testing.assert_allclose(vector.reshape(30, width), expected, rtol=1e-12, atol=1e-12)


def test_attributes_in_any_order_leave_the_input_alone(random):
    """Threads share the columns out, which needs them in order; the caller's matrix stays as it was."""
    X = scipy.sparse.random_array((30, 12), density=0.5, rng=random, format="csr")
    mixed = scipy.sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    for r in range(30):
        row = slice(X.indptr[r], X.indptr[r + 1])
        mixed.indices[row], mixed.data[row] = X.indices[row][::-1].copy(), X.data[row][::-1].copy()
    before = mixed.indices.copy()
    marginals = random.normal(size=(30, 5))
    expected = mixed.T @ marginals
    for count in (1, 2, 3):
        vector = Sparse(mixed, 5).adjoint((marginals,), Threads(count))
        np.testing.assert_allclose(vector.reshape(12, 5), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(mixed.indices, before)


def test_an_attribute_twice_in_a_row_counts_twice(random):
    X = scipy.sparse.csr_array((np.ones(3), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2))
    features, w = Sparse(X, 26), random.normal(size=(2, 26))
    (theta,) = features.scores(w.ravel(), (np.empty((1, 26)),))
    np.testing.assert_allclose(theta[0], w[0] + 2 * w[1])
    m = random.normal(size=(1, 26))
    np.testing.assert_allclose(features.adjoint((m,)).reshape(2, 26), [m[0], 2 * m[0]])
