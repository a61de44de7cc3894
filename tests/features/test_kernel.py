import numpy as np
import pytest
import scipy.sparse

from m3n import Problem, minimize
from m3n.checks import check_adjoint, check_problem
from m3n.features import CliqueKernel, Copies, Dense, Kernel, Scaled, Stack, chain_features
from m3n.features.gram import NotPositive
from m3n.features.kernel import different_rows
from m3n.packed import Threads
from m3n.structures import Chain
from tests.tiny import Enumerated

LENGTHS, LABELS = (1, 3, 2, 4), 3


def inputs(random):
    X = random.normal(size=(10, 4))
    X[5], X[9] = X[1], X[1]  # equal inputs are one unit
    return X


def maps(random):
    X = inputs(random)
    mix = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 2.0]])
    node = {
        "linear": Kernel(X, LABELS, "linear"),
        "sparse": Kernel(scipy.sparse.csr_array(X * (X > 0)), LABELS, "poly", degree=2),
        "rbf": Kernel(X, LABELS, "rbf", dtype=np.float32),
        "streamed": Kernel(X, LABELS, "rbf", gram="streamed"),
        "precomputed": Kernel(X @ X.T, LABELS, "precomputed"),
        "laplacian": Kernel(X, LABELS, "laplacian"),
        "label kernel": Kernel(X, LABELS, "poly", label_kernel=mix),
        "cliques": CliqueKernel(X, LABELS, lambda A, a, B, b: (A @ B.T + 1) ** 2 * (1 + (a[:, None] == b))),
    }
    whole = {name: chain_features(part, LABELS) for name, part in node.items()}
    whole["scaled"] = Stack(Scaled(node["rbf"], 2.0), *whole["rbf"].maps[1:])
    Z = random.normal(size=(6, 2))
    whole["edges"] = chain_features(node["linear"], LABELS, Kernel(Z, (LABELS, LABELS), "rbf"))
    whole["cliques of pairs"] = chain_features(node["linear"], LABELS, CliqueKernel(Z, (LABELS, LABELS), pair_kernel))
    return whole


def pair_kernel(A, a, B, b):
    """Pairs with the same second label are alike."""
    return np.exp(-((A[:, None] - B) ** 2).sum(axis=2)) * (a[:, None, 1] == b[:, 1])


def problem_of(features, random, **settings):
    y = [random.integers(LABELS, size=length) for length in LENGTHS]
    return Problem(Chain(LENGTHS, LABELS, edges=len(features.shapes) > 4), features, y, lam=0.1, n_jobs=1, **settings)


@pytest.mark.parametrize("name", list(maps(np.random.default_rng(0))))
def test_adjoint_and_enumeration(name, random):
    features = maps(random)[name]
    check_adjoint(features)
    check_problem(problem_of(features, random))


def test_scores_are_sums_over_units(random):
    X = inputs(random)
    features = Kernel(X, LABELS, "poly", degree=2, gamma=0.5)
    assert features.gram.size == 8
    C = random.normal(size=(LABELS, 8))
    (theta,) = features.scores(features.expand(C), (np.empty((10, LABELS)),), Threads(3))
    units = X[[0, 1, 2, 3, 4, 6, 7, 8]]
    np.testing.assert_array_equal(features.inputs, units)
    np.testing.assert_allclose(theta, (0.5 * X @ units.T + 1) ** 2 @ C.T)
    np.testing.assert_array_equal(features.coefficients(features.expand(C)), C)


def test_adjoint_adds_up_equal_inputs(random):
    features = Kernel(np.array([[1.0], [2.0], [1.0]]), 2, "linear")
    parts = random.normal(size=(3, 2))
    C = features.coefficients(features.adjoint((parts,)))
    np.testing.assert_allclose(C.T, [parts[0] + parts[2], parts[1]])


def test_inner_product_of_explicit_features(random):
    """(gamma <x, z> + c)^2 is the inner product of all products of two attributes of (sqrt(gamma) x, sqrt(c))."""
    X = inputs(random)
    kernel = Kernel(X, LABELS, "poly", degree=2, gamma=0.5, coef0=0.3)
    dense = Dense(quadratic(X, 0.5, 0.3), LABELS)
    first, second = random.normal(size=(2, 10, LABELS))
    u, v = kernel.adjoint((first,)), kernel.adjoint((second,))
    explicit = dense.inner(dense.adjoint((first,)), dense.adjoint((second,)))
    assert kernel.inner(u, v) == pytest.approx(explicit)
    assert kernel.inner(v, u) == kernel.inner(u, v)
    np.testing.assert_allclose(kernel.norms()[0], dense.norms()[0])


def quadratic(X, gamma, coef0):
    lifted = np.hstack([np.sqrt(gamma) * X, np.full((len(X), 1), np.sqrt(coef0))])
    return np.einsum("ra,rb->rab", lifted, lifted).reshape(len(X), -1)


def test_optimum_of_explicit_features(random):
    """A quadratic kernel has the optimum of explicit quadratic features, and that of a QP over all outputs."""
    X, seed = inputs(random), random.integers(100)
    kernel = chain_features(Kernel(X, LABELS, "poly", degree=2, gamma=0.5, coef0=0.3), LABELS)
    dense = chain_features(Dense(quadratic(X, 0.5, 0.3), LABELS), LABELS)
    first, second = (problem_of(features, np.random.default_rng(seed)) for features in (kernel, dense))
    found = minimize(first, "excessive_gap", tol=1e-4, max_passes=2000)
    best = Enumerated.of(second).optimum()
    assert found.certificate.dual - 1e-9 <= best <= found.certificate.primal + 1e-9
    assert found.certificate.gap <= 1e-4
    theta = first.features.scores(found.w, first.structure.empty())
    assert first.primal(found.w) == pytest.approx(found.certificate.primal)
    assert recomputed(second, theta, first.inner(found.w, found.w)) == pytest.approx(found.certificate.primal)


def recomputed(problem, theta, square):
    """J from part scores, by enumeration."""
    total = 0.0
    for i in range(problem.n):
        alone, rows = problem.structure.select(np.array([i]))
        span = problem.structure.entries_of(np.array([i]))
        mine = [array if row is None else array[row] for array, row in zip(theta, rows, strict=True)]
        cost, gold = problem.cost.select(rows, [i]), alone.encode(problem.gold[span])
        base = sum((a * b).sum() for a, b in zip(mine, gold, strict=True))
        outputs = [alone.encode(y) for y in problem.structure.enumerate(i)]
        scores = [sum((a * b).sum() for a, b in zip(mine, parts, strict=True)) for parts in outputs]
        total += max(s + cost.expected(parts) - base for s, parts in zip(scores, outputs, strict=True))
    return problem.lam / 2 * square + total / problem.n


def test_product_kernel_of_labels_and_clique_kernel_agree(random):
    X = inputs(random)
    mix = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 2.0]])
    product = Kernel(X, LABELS, "rbf", gamma=0.3, label_kernel=mix)
    whole = CliqueKernel(X, LABELS, lambda A, a, B, b: product.function(A, B) * mix[np.ix_(a, b)])
    parts = random.normal(size=(10, LABELS))
    a, b = product.adjoint((parts,)), whole.adjoint((parts,))
    (first,) = product.scores(a, (np.empty((10, LABELS)),))
    (second,) = whole.scores(b, (np.empty((10, LABELS)),))
    np.testing.assert_allclose(first, second)
    assert product.inner(a, a) == pytest.approx(whole.inner(b, b))
    assert (product.norms()[0] <= whole.norms()[0] + 1e-12).all()


def test_selection(random):
    for features in (Kernel(inputs(random), LABELS, "rbf"), CliqueKernel(inputs(random), LABELS, np.eye(30))):
        w = features.adjoint((random.normal(size=(10, LABELS)),))
        chosen = np.array([7, 2, 2])
        (whole,) = features.scores(w, (np.empty((10, LABELS)),))
        part = features.select((chosen,))
        (some,) = part.scores(w, (np.empty((3, LABELS)),))
        np.testing.assert_array_equal(some, whole[chosen])
        check_adjoint(part)


def test_refresh_restores_the_scores(random):
    features = chain_features(Kernel(inputs(random), LABELS, "rbf"), LABELS)
    w = features.adjoint(tuple(random.normal(size=shape) for shape in features.shapes))
    spoilt = w.copy()
    spoilt[24:48] = 7.0  # the second half of 2 * 3 labels * 8 units
    np.testing.assert_allclose(features.refresh(spoilt), w, atol=1e-12)


def test_a_map_in_a_file(random, tmp_path):
    X = inputs(random)
    mapped = np.memmap(tmp_path / "gram", np.float64, "w+", shape=(10, 10))
    mapped[...] = X @ X.T
    features = Kernel(mapped, LABELS, "precomputed")
    assert isinstance(features.gram.matrix, np.memmap)
    check_adjoint(features)


def test_no_inner_product(random):
    X = inputs(random)
    worst = np.linalg.eigvalsh(-np.unique(X, axis=0) @ np.unique(X, axis=0).T)[0]
    with pytest.raises(NotPositive, match=f"eigenvalue {worst:.6g}"):
        Kernel(X, LABELS, lambda A, B: -A @ B.T)
    with pytest.raises(NotPositive, match="eigenvalue -1 "):
        Kernel(np.array([[1.0, 2.0], [2.0, 1.0]]), LABELS, "precomputed")
    with pytest.raises(NotPositive):
        Kernel(X, LABELS, "rbf", label_kernel=np.array([[1, 2, 0], [2, 1, 0], [0, 0, 1]]))
    with pytest.raises(NotPositive):
        CliqueKernel(X, LABELS, lambda A, a, B, b: -np.ones((len(A), len(B))))


def test_a_negative_square_is_no_rounding(random):
    features = Kernel(inputs(random), LABELS, "linear")
    features.gram.matrix[...] = -np.eye(8)
    parts = (random.normal(size=(10, LABELS)),)
    for whole in (features, Scaled(features, 2.0), Stack(features), Copies(features, np.arange(10))):
        w = whole.adjoint(parts)
        with pytest.raises(NotPositive):
            whole.inner(w, w)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Kernel(np.ones(3), 2), "must be a 2-D array"),
        (lambda: Kernel(np.ones((3, 2)), 2, label_kernel=np.eye(3)), r"must have shape \(2, 2\)"),
        (lambda: Kernel(np.ones((3, 2)), 2, "precomputed"), "square"),
        (lambda: CliqueKernel(np.ones((3, 1)), 2, np.eye(3)), "a Gram matrix of 6, got 3"),
    ],
)
def test_wrong_inputs(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_streamed_grams_have_no_rows(random):
    with pytest.raises(TypeError, match="not in memory"):
        Kernel(inputs(random), LABELS, "rbf", gram="streamed").rows()


@pytest.mark.parametrize("sparse", [False, True])
def test_different_rows(sparse):
    X = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
    rows, units = different_rows(scipy.sparse.csr_array(X) if sparse else X)
    np.testing.assert_array_equal(rows.toarray() if sparse else rows, X[[0, 1, 3]])
    np.testing.assert_array_equal(units, [0, 1, 0, 2, 1])


def test_l1_is_refused(random):
    with pytest.raises(TypeError, match="an inner product of its own"):
        problem_of(chain_features(Kernel(inputs(random), LABELS), LABELS), random, l1=0.1, temperature=1.0)
