"""A strength of regularisation for every group of weights."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from m3n import Problem, minimize
from m3n.checks import check_adjoint
from m3n.features import Dense, Observed, ObservedTable, Scaled, Sparse, Stack, Table
from m3n.losses import NormalizedHamming
from m3n.solvers import (
    LBFGS,
    SMO,
    BatchFrankWolfe,
    BlockFrankWolfe,
    DualAscent,
    ExcessiveGap,
    SequentialDual,
)
from m3n.structures import Chain
from tests.tiny import Enumerated, PartCoordinates

LENGTHS, LABELS, LAM = (1, 3, 2, 4), 3, 0.1
FACTORS = (0.5, 3.0, 1.0, 2.0)  # nodes, transitions, start, end


def problem(factors=FACTORS, node=Dense, **settings):
    random = np.random.default_rng(3)
    X = random.normal(size=(sum(LENGTHS), 4))
    y = [random.integers(LABELS, size=length) for length in LENGTHS]
    maps = [node(X, LABELS), Table(LABELS, LABELS), Table(LABELS), Table(LABELS)]
    scaled = Stack(*(m if f == 1.0 else Scaled(m, f) for m, f in zip(maps, factors, strict=True)))
    return Problem(Chain(LENGTHS, LABELS), scaled, y, lam=LAM, n_jobs=1, **settings)


def strengths(plain):
    """lam / factor^2 of every weight."""
    return np.concatenate([np.full(m.dim, LAM / f**2) for m, f in zip(plain.features.maps, FACTORS, strict=True)])


def own_weights(features, v):
    pieces = zip(features.maps, features.split(v), strict=True)
    return np.concatenate([m.weights(piece) if isinstance(m, Scaled) else piece for m, piece in pieces])


def weighted_crf_optimum(plain):
    """SciPy on the enumerated objective with the regulariser written out, weight by weight."""
    known, strength = Enumerated.of(plain), strengths(plain)

    def objective(w):
        value = known.primal(w) - LAM / 2 * w @ w + w @ (strength * w) / 2
        return value, strength * w - known.gibbs(w, 1.0) @ known.psi

    found = scipy.optimize.minimize(objective, np.zeros(plain.dim), jac=True, method="BFGS", options={"gtol": 1e-9})
    return found.x, found.fun


@pytest.mark.parametrize("solver", [DualAscent(), LBFGS()], ids=str)
def test_the_optimum_is_that_of_the_weighted_regulariser(solver):
    w, best = weighted_crf_optimum(problem((1.0,) * 4, temperature=1.0))
    scaled = problem(temperature=1.0)
    result = minimize(scaled, solver, tol=1e-10, max_passes=3000)
    assert result.certificate.dual <= best + 1e-9 <= result.certificate.primal + 2e-9
    np.testing.assert_allclose(own_weights(scaled.features, result.w), w, atol=1e-4)
    plain = minimize(problem((1.0,) * 4, temperature=1.0), LBFGS(), tol=1e-8)
    assert abs(plain.certificate.primal - best) > 0.01  # the factors matter


def test_an_l1_penalty_is_divided_by_the_factor():
    """l1 |v|_1 = sum_k l1/factor_k |w_k|: SciPy on w = p - q with costs of their own."""
    plain, scaled = problem((1.0,) * 4, temperature=1.0), problem(temperature=1.0, l1=0.05)
    known, strength, dim = Enumerated.of(plain), strengths(plain), plain.dim
    price = 0.05 * np.sqrt(strength / LAM)

    def objective(pq):
        w = pq[:dim] - pq[dim:]
        gradient = strength * w - known.gibbs(w, 1.0) @ known.psi
        value = known.primal(w) - LAM / 2 * w @ w + w @ (strength * w) / 2 + price @ (pq[:dim] + pq[dim:])
        return value, np.concatenate([gradient + price, price - gradient])

    settings = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000}
    start, bounds = np.zeros(2 * dim), [(0, None)] * (2 * dim)
    best = scipy.optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=settings)
    result = minimize(scaled, tol=1e-7, max_passes=3000)
    assert result.certificate.primal == pytest.approx(best.fun, abs=1e-6)


SOLVERS = [SequentialDual(), BlockFrankWolfe(), BatchFrankWolfe(), ExcessiveGap(), SMO()]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("node", [Dense, lambda X, labels: Sparse(scipy.sparse.csr_array(X), labels)])
def test_margin_solvers_agree_with_a_quadratic_programme(solver, node):
    scaled = problem(node=node, loss=NormalizedHamming())
    best = Enumerated.of(scaled).optimum()
    result = minimize(scaled, solver, tol=1e-2, max_passes=3000)
    assert result.converged
    assert result.certificate.dual <= best + 1e-8 <= result.certificate.primal + 2e-8


def maps(random):
    X = scipy.sparse.random_array((10, 6), density=0.5, rng=random)
    pairs = scipy.sparse.random_array((6, 3), density=0.6, rng=random)
    return {
        "dense": Dense(X.toarray(), 3),
        "sparse": Sparse(X, 3),
        "table": Table(3, 2),
        "observed": Observed(X, pairs),
        "observed table": ObservedTable(random.random((3, 3)) < 0.5),
        "own coordinates": PartCoordinates(Dense(X.toarray(), 3)),
        "twice": Scaled(Sparse(X, 3), 2.0),
        "stack": Stack(Dense(X.toarray(), 3), Table(3, 3)),
    }


@pytest.mark.parametrize("name", list(maps(np.random.default_rng(0))))
def test_scores_adjoint_norms_and_inner_product(name, random):
    plain = maps(random)[name]
    scaled = Scaled(plain, 2.5)
    check_adjoint(scaled)
    w, out = random.normal(size=plain.dim), [tuple(np.empty(shape) for shape in plain.shapes) for _ in range(2)]
    for ours, theirs in zip(scaled.scores(w, out[0]), plain.scores(w, out[1]), strict=True):
        np.testing.assert_allclose(ours, 2.5 * theirs)
    np.testing.assert_array_equal(scaled.weights(w), 2.5 * w)
    for ours, theirs in zip(scaled.norms(), plain.norms(), strict=True):
        np.testing.assert_allclose(ours, 2.5 * theirs)
    assert scaled.inner(w, w) == plain.inner(w, w)
    assert scaled.euclidean == (name != "own coordinates")
    total = np.ones(plain.dim)
    parts = tuple(random.normal(size=shape) for shape in plain.shapes)
    scaled.add_adjoint(parts, -2.0, total)
    np.testing.assert_allclose(total, 1.0 - 5.0 * plain.adjoint(parts))


@pytest.mark.parametrize("name", ["dense", "sparse", "table", "observed", "observed table"])
def test_rows_are_scaled(name, random):
    plain = maps(random)[name]
    ours, theirs = Scaled(plain, 0.5).rows(), plain.rows()
    np.testing.assert_allclose(ours.data, 0.5 * theirs.data)
    assert np.any(ours.data)
    np.testing.assert_array_equal(ours.runs, theirs.runs)


def test_a_kernel_has_no_rows_scaled_or_not(random):
    with pytest.raises(TypeError, match="inner product of its own"):
        Scaled(PartCoordinates(Dense(random.normal(size=(4, 2)), 3)), 2.0).rows()


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
def test_bad_factors_are_refused(factor):
    with pytest.raises(ValueError, match="factor must be a positive finite number"):
        Scaled(Table(2), factor)
