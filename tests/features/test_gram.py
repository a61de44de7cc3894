import numpy as np
import pytest

from m3n.features import KernelFunction, gram
from m3n.features.gram import NotPositive, StoredGram, StreamedGram, check_positive, check_symmetric, make_gram
from m3n.packed import Threads

FUNCTION = KernelFunction("rbf", gamma=0.5)


@pytest.fixture
def X(random):
    return random.normal(size=(23, 3))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(gram, "BLOCK", 50)  # two rows at a time


@pytest.mark.parametrize("used", ["all", "few", "none"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("how", ["stored", "streamed"])
def test_product(how, threads, used, X, random, small_blocks):
    C = random.normal(size=(4, 23))
    C[:, {"all": [], "few": np.arange(3, 20), "none": np.arange(23)}[used]] = 0.0
    found = make_gram(FUNCTION, X, how).product(C, Threads(threads))
    np.testing.assert_allclose(found, C @ FUNCTION(X, X), atol=1e-13)


def test_zeros_cost_nothing(X, monkeypatch):
    asked = []
    streamed = StreamedGram(FUNCTION, X)
    monkeypatch.setattr(StreamedGram, "rows", lambda self, index: asked.append(index) or FUNCTION(X[index], X))
    C = np.zeros((2, 23))
    C[1, [3, 8]] = 1.0
    streamed.product(C)
    np.testing.assert_array_equal(np.concatenate(asked), [3, 8])


def test_stored_numbers(X):
    expected = FUNCTION(X, X)
    double, single = make_gram(FUNCTION, X), make_gram(FUNCTION, X, dtype=np.float32)
    assert double.stored.dtype == np.float64
    assert single.stored.dtype == np.float32
    np.testing.assert_array_equal(double.stored, double.stored.T)
    np.testing.assert_allclose(double.stored, expected, atol=1e-15)
    np.testing.assert_array_equal(single.stored, double.stored.astype(np.float32))


def test_sums_of_single_numbers_are_made_in_double_precision(X, random):
    C = random.normal(size=(2, 23))
    single = make_gram(FUNCTION, X, dtype=np.float32)
    exact = C @ single.stored.astype(np.float64)
    np.testing.assert_allclose(single.product(C), exact, rtol=1e-13, atol=1e-13)


def test_halves_are_equal(random, small_blocks):
    matrix = random.normal(size=(11, 11))
    expected = np.triu(matrix) + np.triu(matrix, 1).T
    np.testing.assert_array_equal(gram.symmetric(matrix), expected)


def test_memory_decides(X, monkeypatch):
    whole = 23 * 23 * 8
    for free, kind in ((2.1 * whole, np.float64), (1.1 * whole, np.float32), (0.9 * whole, None)):
        monkeypatch.setattr(gram, "free_memory", lambda free=free: free)
        stored = make_gram(FUNCTION, X, "auto").stored
        assert (None if stored is None else stored.dtype) == kind
    with pytest.raises(MemoryError, match=r"23 different inputs .* gram='streamed'.*float32.*Nystroem"):
        make_gram(FUNCTION, X, "stored")


@pytest.mark.parametrize(("how", "dtype"), [("held", np.float64), ("auto", np.int32)])
def test_wrong_words(how, dtype, X):
    with pytest.raises(ValueError, match="must be"):
        make_gram(FUNCTION, X, how, dtype)


def indefinite(random, size, smallest):
    """A matrix with eigenvalues of 1 to 2, and one that is given."""
    basis = np.linalg.qr(random.normal(size=(size, size)))[0]
    values = np.append(random.uniform(1.0, 2.0, size=size - 1), smallest)
    matrix = (basis * values) @ basis.T
    return (matrix + matrix.T) / 2


@pytest.mark.parametrize("exact", [True, False])
def test_a_negative_eigenvalue_is_named(exact, random, monkeypatch):
    monkeypatch.setattr(gram, "EXACT", 100 if exact else 0)
    with pytest.raises(NotPositive, match=r"eigenvalue -0\.25 ") as caught:
        check_positive(StoredGram(indefinite(random, 30, -0.25)))
    assert caught.value.smallest == pytest.approx(-0.25, rel=1e-4)


@pytest.mark.parametrize("exact", [True, False])
def test_singular_matrices_are_fine(exact, random, monkeypatch):
    monkeypatch.setattr(gram, "EXACT", 100 if exact else 0)
    X = random.normal(size=(30, 2))
    for matrix in (X @ X.T, np.zeros((30, 30)), np.ones((30, 30)), (X @ X.T).astype(np.float32)):
        check_positive(StoredGram(matrix))
    check_positive(StoredGram(np.empty((0, 0))))


def test_at_first_sight():
    with pytest.raises(ValueError, match=r"square, got shape \(2, 3\)"):
        check_symmetric(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"not symmetric: 5 at 0, 1 and 1 at 1, 0"):
        check_symmetric(np.array([[1.0, 5.0], [1.0, 1.0]]))
    with pytest.raises(ValueError, match="has nan at 0, 1"):
        check_symmetric(np.array([[1.0, np.nan], [np.nan, 1.0]]))
