from itertools import pairwise

import numpy as np
import pytest
import scipy.optimize

from m3n import Problem, Status, minimize
from m3n.features import Dense
from m3n.solvers import LBFGS
from m3n.solvers.lbfgs import ARMIJO, WOLFE, Change, _direction
from m3n.structures import Multiclass
from tests.solvers.template import CASES, ROUNDING, SolverTemplate, iterates, lifted
from tests.tiny import Enumerated, chain_problem, multiclass_problem

MARGIN = [make for heat, make in CASES.values() if not heat]
SMOOTH = [make for heat, make in CASES.values() if heat]


class TestLBFGS(SolverTemplate):
    solver = LBFGS(mu=1e-4)
    tol = 1e-4

    def dual_point(self, state):
        return state.hull.points[0].u, state.hull.points[0].b


@pytest.mark.parametrize("make", SMOOTH)
def test_same_optimum_as_scipy_on_the_same_problem(make):
    problem = make()

    def objective(w):
        answer = problem.risk(w)
        return problem.lam / 2 * w @ w + answer.value, problem.lam * w - answer.vector

    theirs = scipy.optimize.minimize(
        objective, np.zeros(problem.dim), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}
    )
    before = problem.soft_calls
    ours = minimize(problem, LBFGS(), tol=1e-10)
    assert ours.converged
    assert ours.certificate.primal == pytest.approx(theirs.fun, abs=1e-9)
    np.testing.assert_allclose(ours.w, theirs.x, atol=1e-4)
    assert (problem.soft_calls - before) / problem.n < 2 * theirs.nfev  # about as many passes


@pytest.mark.parametrize("make", SMOOTH)
def test_the_gap_of_a_crf_is_that_of_its_gradient(make):
    problem = make()
    known = Enumerated.of(problem)
    for state in iterates(problem, LBFGS(), 20):
        alpha = known.gibbs(state.w, problem.temperature)
        gradient = problem.lam * state.w - alpha @ known.psi
        assert state.gradient_norm == pytest.approx(np.linalg.norm(gradient), abs=ROUNDING)
        own = state.primal - problem.dual(state.place.alpha.u, state.place.alpha.b)
        assert own == pytest.approx(gradient @ gradient / (2 * problem.lam), abs=ROUNDING)
        assert state.primal == pytest.approx(known.primal(state.w), abs=ROUNDING)
        assert state.primal - state.dual <= own + ROUNDING  # the mixture is never worse


@pytest.mark.parametrize("make", MARGIN)
def test_the_smoothed_objective_of_a_margin_network(make):
    """F is above J by at most mu log|Y|, and its gradient is right."""
    problem = make()
    known = Enumerated.of(problem)
    for state in iterates(problem, LBFGS(mu=0.05), 10):
        primal, smoothed = known.primal(state.w), known.smoothed(state.w, 0.05) + 0.05 * problem.log_size
        assert state.place.value == pytest.approx(smoothed, abs=ROUNDING)
        assert primal - ROUNDING <= state.place.value <= primal + 0.05 * problem.log_size + ROUNDING
        assert primal - state.dual <= state.metrics["bound"] + ROUNDING
        numeric = scipy.optimize.approx_fprime(state.w, lambda w: known.smoothed(w, 0.05), 1e-7)
        np.testing.assert_allclose(state.place.gradient, numeric, atol=1e-5)  # differences of step 1e-7
        assert np.isnan(state.primal)


@pytest.mark.parametrize("make", MARGIN)
def test_the_smoothing_error_is_what_remains(make):
    problem = make()
    result = minimize(problem, LBFGS(), tol=0.0, max_passes=3000)
    assert result.status is Status.STALLED
    mu = result.state.mu
    assert mu * problem.log_size == pytest.approx(0.01 * problem.worst_loss)
    assert 0.0 < result.certificate.gap <= mu * problem.log_size
    assert result.state.gradient_norm**2 / (2 * problem.lam) <= 1e-8 * mu * problem.log_size


@pytest.mark.parametrize("make", MARGIN)
def test_mixtures_beat_single_dual_points(make):
    problem = make()
    known = Enumerated.of(problem)
    best = known.optimum()
    single, mixture = [], []
    for state in iterates(problem, LBFGS(), 30):
        single.append(best - known.dual(known.gibbs(state.w, state.mu)))
        mixture.append(best - state.dual)
    assert all(m <= s + ROUNDING for m, s in zip(mixture, single, strict=True))
    assert all(new <= old + ROUNDING for old, new in pairwise(mixture))
    assert np.exp(np.mean(np.log(single[10:])) - np.mean(np.log(mixture[10:]))) > 3.0


@pytest.mark.parametrize("make", [make for _, make in CASES.values()])
def test_wolfes_conditions(make):
    problem = make()
    for old, new in pairwise(iterates(problem, LBFGS(mu=1e-2), 15)):
        if new.stalled:
            break
        step = new.w - old.w
        slope, new_slope = old.place.gradient @ step, new.place.gradient @ step
        assert slope < 0.0
        assert new.place.value <= old.place.value + ARMIJO * slope
        assert new_slope >= WOLFE * slope


def dense_inverse_hessian(changes, size):
    """The BFGS updates of a matrix, written out."""
    last = changes[-1]
    H = np.eye(size) * (last.s @ last.y) / (last.y @ last.y)
    for change in changes:
        V = np.eye(size) - change.rho * np.outer(change.y, change.s)
        H = V.T @ H @ V + change.rho * np.outer(change.s, change.s)
    return H


def test_the_recursion_equals_the_matrix(random):
    problem = multiclass_problem()
    A = random.normal(size=(problem.dim, problem.dim))
    A = A @ A.T + np.eye(problem.dim)
    moves = random.normal(size=(5, problem.dim))
    changes = [Change(s, A @ s, 1 / (s @ A @ s)) for s in moves]
    H, gradient = dense_inverse_hessian(changes, problem.dim), random.normal(size=problem.dim)
    np.testing.assert_allclose(_direction(problem, gradient, changes), -H @ gradient, atol=1e-10)
    np.testing.assert_allclose(_direction(problem, changes[-1].y, changes), -changes[-1].s, atol=1e-10)  # secant


def test_memory_is_bounded_and_used():
    problem = chain_problem(temperature=1.0, lam=0.01)
    for state in iterates(problem, LBFGS(memory=3), 10):
        assert len(state.changes) <= 3
        assert len(state.hull.points) == 1
    passes = [minimize(problem, LBFGS(memory=m), tol=1e-6).trace[-1].passes for m in (1, 10)]
    assert passes[1] < passes[0]
    *_, state = iterates(chain_problem(), LBFGS(memory=4), 10)
    assert len(state.hull.points) == 5


def test_nearly_one_pass_per_step():
    problem = chain_problem(temperature=1.0, lam=0.01)
    result = minimize(problem, LBFGS(), tol=1e-8)
    assert result.trace[-1].passes <= 1.3 * result.state.steps + 2


def test_kinks_of_a_small_mu_do_not_stop_the_line_search():
    """mu = 1e-5 is nearly no smoothing: slopes jump within a step."""
    problem = chain_problem(lam=0.01)
    result = minimize(problem, LBFGS(mu=1e-5), tol=1e-3, max_passes=2000)
    assert result.converged


def test_works_with_another_inner_product():
    """Part coordinates have more dimensions than weights, and a singular Gram matrix."""
    problem = chain_problem(temperature=1.0)
    other = lifted(problem)
    results = [minimize(p, LBFGS(), tol=1e-8) for p in (problem, other)]
    assert results[0].certificate.primal == pytest.approx(results[1].certificate.primal, abs=2e-8)
    assert results[1].trace[-1].passes <= results[0].trace[-1].passes + 3


def test_stalls_when_only_rounding_is_left():
    result = minimize(chain_problem(temperature=1.0, lam=1.0), LBFGS(), tol=0.0, max_passes=500)
    assert result.status in (Status.TOLERANCE, Status.STALLED)
    assert result.certificate.gap <= 1e-13


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_one_label_is_trivial(temperature):
    features = Dense(np.ones((3, 2)), 1)
    problem = Problem(Multiclass(3, 1), features, [0, 0, 0], temperature=temperature, n_jobs=1)
    state = LBFGS().init(problem)
    assert state.stalled
    assert state.dual == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"memory": 0}, "memory must be at least 1, got 0"),
        ({"mu": 0.0}, "mu must be positive and finite, got 0.0"),
        ({"mu": float("inf")}, "mu must be positive and finite"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        LBFGS(**settings)
