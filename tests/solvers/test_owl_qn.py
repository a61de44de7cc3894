"""Sparse CRFs: zeros where they belong, and dual values that hold."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.optimize

from m3n import Problem, Status, minimize
from m3n.features import Dense, Observed, Stack, chain_features, observed_pairs
from m3n.solvers import LBFGS, OWLQN, SparseDualAscent
from m3n.solvers.owl_qn import best_dual, pseudo_gradient
from m3n.structures import Chain, Multiclass
from tests.solvers.test_product import Counting
from tests.tiny import Enumerated, PartCoordinates, chain_problem, iterates, multiclass_problem

CASES = {
    "l1 alone": lambda: chain_problem(seed=3, temperature=1.0, lam=0.0, l1=0.05),
    "elastic net": lambda: chain_problem(seed=3, temperature=1.0, lam=0.02, l1=0.03),
    "logistic regression": lambda: multiclass_problem(seed=1, temperature=1.0, lam=0.0, l1=0.02),
    "softmax-margin": lambda: chain_problem(seed=3, temperature=0.5, lam=0.01, l1=0.05),
}


BOTH = pytest.mark.parametrize("solver", [OWLQN(), SparseDualAscent()], ids=["owl_qn", "sparse_dual_ascent"])


@pytest.fixture(params=CASES)
def problem(request):
    return CASES[request.param]()


@BOTH
def test_the_optimum_and_the_zeros_of_an_independent_solver(problem, solver):
    w, best = Enumerated.of(problem).sparse_optimum()
    result = minimize(problem, solver, tol=1e-8, max_passes=3000)
    assert result.status is Status.TOLERANCE
    assert result.certificate.dual <= best + 1e-9 <= result.certificate.primal + 2e-9
    zeros = np.abs(w) < 1e-6
    assert 0 < zeros.sum() < problem.dim
    if problem.lam:  # the optimum is unique
        np.testing.assert_allclose(result.w, w, atol=1e-3)
        np.testing.assert_array_equal(result.w == 0.0, zeros)


def test_certificates_of_every_state_against_enumeration(problem):
    """J written out, and D of the mixture of alpha and gold written out, with the best share found by a search."""
    known = Enumerated.of(problem)
    gold = np.zeros(len(known.ell))
    for i in known.range:
        mine = np.flatnonzero(known.owner == i)
        gold[mine[np.flatnonzero((known.psi[mine] == 0.0).all(axis=1))[0]]] = 1.0 / problem.n
    best = known.sparse_optimum()[1]
    for state in iterates(problem, OWLQN(), 25):
        assert state.primal == pytest.approx(known.primal(state.w), abs=1e-11)
        alpha = known.gibbs(state.w, problem.temperature)

        def dual(t, alpha=alpha):
            """Below D of the mixture, whose entropy is larger than the mixture of entropies."""
            excess = np.maximum(np.abs(t * alpha @ known.psi) - problem.l1, 0.0)
            if problem.lam == 0.0 and excess.max() > 1e-12:
                return -np.inf
            square = excess @ excess / (2 * problem.lam) if problem.lam else 0.0
            offset = alpha @ known.ell + problem.temperature * known.entropy(alpha)
            mixture = t * alpha + (1 - t) * gold
            assert t * offset <= mixture @ known.ell + problem.temperature * known.entropy(mixture) + 1e-12
            return t * offset - square

        searched = max(dual(t) for t in np.linspace(0.0, 1.0, 400))
        assert searched - 1e-10 <= state.place.dual <= best + 1e-9
        assert state.place.dual <= searched + 0.02
        assert state.dual >= state.place.dual
    assert state.primal - state.dual < 0.1


@pytest.mark.parametrize("lam", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("scale", [0.05, 0.5, 5.0])
def test_the_best_share_against_a_scalar_search(lam, scale, random):
    v, offset, l1 = scale * random.normal(size=30), 0.7, 0.3

    def negative(t):
        excess = np.maximum(t * np.abs(v) - l1, 0.0)
        return -(t * offset - (excess @ excess / (2 * lam) if lam else 1e9 * excess.max()))

    searched = scipy.optimize.minimize_scalar(negative, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12})
    expected = max(-searched.fun, -negative(1.0))
    assert best_dual(v, offset, lam, l1) == pytest.approx(expected, abs=1e-7)


def test_the_pseudo_gradient_is_the_shortest_subgradient():
    w, gradient = np.array([1.0, -1.0, 0.0, 0.0, 0.0]), np.array([0.2, 0.2, 0.2, 2.0, -2.0])
    np.testing.assert_allclose(pseudo_gradient(w, gradient, 0.5), [0.7, -0.3, 0.0, 1.5, -1.5])


def test_every_step_lowers_the_objective_and_changes_no_sign_at_once(problem):
    for old, new in pairwise(iterates(problem, OWLQN(), 30)):
        assert new.primal <= old.primal + 1e-12
        assert np.all(old.w * new.w >= 0.0)


def test_a_strong_penalty_leaves_nothing():
    """At w = 0 the pseudo-gradient vanishes as soon as l1 is the largest entry of the gradient."""
    problem = chain_problem(temperature=1.0, lam=0.0, l1=1.0)
    largest = np.abs(problem.risk(np.zeros(problem.dim)).vector).max()
    above = minimize(problem.with_lam(0.0, 1.01 * largest), OWLQN(), tol=1e-9)
    assert not above.w.any()
    assert above.certificate.gap <= 1e-9
    below = minimize(problem.with_lam(0.0, 0.9 * largest), OWLQN(), tol=1e-9)
    assert 0 < np.count_nonzero(below.w) < problem.dim / 2


def test_a_tiny_penalty_is_nearly_that_of_lbfgs():
    plain = minimize(chain_problem(temperature=1.0), LBFGS(), tol=1e-10)
    sparse = minimize(chain_problem(temperature=1.0, l1=1e-9), OWLQN(), tol=1e-9, max_passes=500)
    np.testing.assert_allclose(sparse.w, plain.w, atol=1e-3)


def test_auto_chooses_it_where_examples_cannot_be_visited_and_says_why(random):
    problem = Problem(Counting(6, 3), Dense(random.normal(size=(6, 3)), 3), [0] * 6, lam=0.1, temperature=1.0, l1=0.1)
    result = minimize(problem, tol=1e-3)
    assert isinstance(result.solver, OWLQN)
    assert "l1 penalty, and Counting has no compiled visits" in result.reason


def test_padding_stays_zero(random):
    """The pairs that do not occur have weights in the vector, but none in the model."""
    X = (random.random((10, 5)) < 0.5).astype(float)
    y = [random.integers(3, size=5) for _ in range(2)]
    node = Observed(X, observed_pairs(X, np.concatenate(y), 3))
    features = Stack(node, *chain_features(Dense(X, 3), 3).maps[1:])
    problem = Problem(Chain([5, 5], 3), features, y, temperature=1.0, lam=0.0, l1=0.01, n_jobs=1)
    result = minimize(problem, tol=1e-6, max_passes=2000)
    assert result.converged
    assert not features.split(result.w)[0][~node.alive].any()
    assert features.split(result.w)[0].any()


def test_maps_with_an_inner_product_of_their_own_are_refused(random):
    for features in (PartCoordinates(Dense(np.eye(3), 3)), Stack(PartCoordinates(Dense(np.eye(3), 3)))):
        with pytest.raises(TypeError, match="an l1 penalty on its coefficients"):
            Problem(Multiclass(3, 3), features, [0, 1, 2], temperature=1.0, l1=0.1)


@pytest.mark.parametrize("l1", [-1.0, np.nan, np.inf])
def test_bad_penalties_are_refused(l1):
    with pytest.raises(ValueError, match="l1 must be 0 or a positive finite number"):
        chain_problem(temperature=1.0, l1=l1)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="memory must be at least 1"):
        OWLQN(memory=0)
