from itertools import pairwise

import numpy as np
import pytest

from m3n import Problem, Status, minimize
from m3n.features import Dense
from m3n.losses import NormalizedHamming
from m3n.solvers import ExponentiatedGradient
from m3n.structures import Multiclass
from tests.solvers.template import CASES, ROUNDING, SolverTemplate, iterates
from tests.tiny import Enumerated, chain_problem, multiclass_problem

PROBLEMS = [make for _, make in CASES.values()]
MARGIN = [make for heat, make in CASES.values() if not heat]
SMOOTH = [make for heat, make in CASES.values() if heat]


class TestExponentiatedGradient(SolverTemplate):
    solver = ExponentiatedGradient()
    tol = 2e-3  # 1700 passes on the chain

    def dual_point(self, state):
        return state.alpha.u, state.alpha.offset


def explicit(known, alpha, eta):
    """The update of the reference with alpha written out: one weight per output."""
    problem = known.problem
    gradient = known.ell - known.psi @ (alpha @ known.psi / problem.lam)
    gradient -= problem.temperature * (1 + np.log(problem.n * alpha))
    alpha = alpha * np.exp(eta * gradient)
    return alpha / (problem.n * np.bincount(known.owner, alpha)[known.owner])


@pytest.mark.parametrize("make", PROBLEMS)
def test_same_iterates_as_with_alpha_written_out(make):
    """alpha stays in the simplex and stays a Gibbs distribution with one v and one c."""
    problem = make()
    known = Enumerated.of(problem)
    solver = ExponentiatedGradient(strength=1.0)
    start = 1 / problem.temperature if problem.temperature else -1.0 / problem.worst_loss
    alpha = known.gibbs(np.zeros(problem.dim), 1.0, loss_scale=start)
    refused = 0
    for old, new in pairwise(iterates(problem, solver, 30)):
        if new.steps == old.steps:
            refused += 1
            continue
        alpha = explicit(known, alpha, old.eta)
        np.testing.assert_allclose(np.bincount(known.owner, alpha), 1 / problem.n, rtol=1e-12)
        gibbs = known.gibbs(new.alpha.v, 1.0, loss_scale=new.alpha.c)
        np.testing.assert_allclose(gibbs, alpha, atol=1e-9)
        np.testing.assert_allclose(new.alpha.u, alpha @ known.psi / problem.lam, atol=1e-8)
        assert new.dual == pytest.approx(known.dual(alpha), abs=1e-8)
    assert 0 < refused < 10


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_dual_never_decreases(make):
    problem = make()
    known = Enumerated.of(problem)
    for old, new in pairwise(iterates(problem, ExponentiatedGradient(), 300)):
        assert new.dual >= old.dual - 1e-12
        if new.steps > old.steps:
            before, after = (known.gibbs(s.alpha.v, 1.0, loss_scale=s.alpha.c) for s in (old, new))
            assert new.dual - old.dual >= divergence(before, after) / old.eta - 1e-12 / old.eta


def divergence(alpha, other):
    """KL with weights that sum to one over all examples."""
    return float(np.sum(alpha * np.log(alpha / other)))


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_safe_step_size_is_never_refused(make):
    problem = make()
    state = ExponentiatedGradient().init(problem)
    for _ in range(100):
        refused = ExponentiatedGradient(grow=1.0).step(problem, state)
        assert refused.steps == state.steps + 1
        state = type(state)(**{**vars(refused), "eta": state.safe})


@pytest.mark.parametrize("make", MARGIN)
@pytest.mark.parametrize("strength", [0.0, 2.0, None])
def test_the_bound_on_the_duality_gap(make, strength):
    """J(w) - D(alpha) <= max KL / sum eta on every iterate, and the bound that each pass gives is one."""
    problem = make()
    known = Enumerated.of(problem)
    solver = ExponentiatedGradient(strength=strength)
    states = list(iterates(problem, solver, 300))
    start = known.gibbs(np.zeros(problem.dim), 1.0, loss_scale=states[0].alpha.c)
    farthest = np.mean([-np.log(problem.n * start[known.owner == i].min()) for i in known.range])
    for state in states:
        if state.steps:
            gap = known.primal(state.w) - state.dual
            assert gap <= state.metrics["bound"] + ROUNDING
            assert gap <= farthest / state.weight + ROUNDING
    assert np.isnan(state.primal)


@pytest.mark.parametrize("make", MARGIN)
def test_w_is_the_average_of_the_w_of_alpha(make):
    problem = make()
    total, weight = np.zeros(problem.dim), 0.0
    for old, new in pairwise(iterates(problem, ExponentiatedGradient(), 50)):
        if new.steps > old.steps:
            total, weight = total + old.eta * old.alpha.u, weight + old.eta
            np.testing.assert_allclose(new.w, total / weight, atol=ROUNDING)


@pytest.mark.parametrize("make", SMOOTH)
def test_with_a_temperature_it_is_gradient_descent_with_a_free_certificate(make):
    problem = make()
    for old, new in pairwise(iterates(problem, ExponentiatedGradient(), 40)):
        assert new.alpha.c == pytest.approx(1 / problem.temperature)
        gradient = problem.lam * (old.w - old.alpha.u)
        assert old.primal - old.dual == pytest.approx(gradient @ gradient / (2 * problem.lam), abs=ROUNDING)
        if new.steps > old.steps:
            expected = old.w - old.eta * problem.temperature / problem.lam * gradient
            np.testing.assert_allclose(new.w, expected, atol=ROUNDING)


@pytest.mark.parametrize("make", SMOOTH)
def test_linear_convergence_with_a_temperature(make):
    problem = make()
    short, long = (minimize(problem, ExponentiatedGradient(), tol=tol, max_passes=2000) for tol in (1e-4, 1e-8))
    assert short.converged and long.converged
    assert long.trace[-1].passes < 3 * short.trace[-1].passes  # a power law would take 10 times as many or more


@pytest.mark.parametrize("make", [lambda: chain_problem(seed=1), lambda: chain_problem(seed=2), multiclass_problem])
def test_the_gap_falls_like_one_over_passes(make):
    trace = minimize(make(), ExponentiatedGradient(), tol=1e-9, max_passes=1500).trace
    late = np.array([(r.passes, r.gap) for r in trace if r.passes >= 150])
    slope = np.polyfit(*np.log(late.T), 1)[0]
    assert -1.4 < slope < -0.8


def test_one_pass_per_step():
    problem = chain_problem()
    state = ExponentiatedGradient().init(problem)
    for _ in range(20):
        before = problem.soft_calls, problem.hard_calls
        state = ExponentiatedGradient().step(problem, state)
        assert (problem.soft_calls - before[0], problem.hard_calls) == (problem.n, before[1])


def test_a_loss_without_features_ends_at_once_or_stalls():
    """psi = 0: D and J differ only by how close alpha comes to the worst output."""
    problem = Problem(Multiclass(3, 4), Dense(np.zeros((3, 2)), 4), [0, 1, 2], n_jobs=1)
    result = minimize(problem, ExponentiatedGradient(), tol=0.0, max_passes=500)
    assert result.status in (Status.TOLERANCE, Status.STALLED)
    assert result.certificate.gap <= 1e-12


def test_stalls_when_only_rounding_is_left():
    problem = chain_problem(temperature=1.0, lam=1.0)
    result = minimize(problem, ExponentiatedGradient(), tol=0.0, max_passes=3000)
    assert result.status in (Status.TOLERANCE, Status.STALLED)
    assert result.certificate.gap <= 1e-12


def test_one_label_is_trivial():
    problem = Problem(Multiclass(3, 1), Dense(np.ones((3, 2)), 1), [0, 0, 0], n_jobs=1)
    *_, last = iterates(problem, ExponentiatedGradient(), 5)
    assert last.dual == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strength": -1.0}, "strength must not be negative, got -1.0"),
        ({"shrink": 1.0}, "0 < shrink < 1 <= grow"),
        ({"grow": 0.9}, "0 < shrink < 1 <= grow"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ExponentiatedGradient(**settings)


def test_softmax_margin_differs_from_the_crf():
    """The cases above are not all the same problem."""
    losses = None, NormalizedHamming()
    values = [Enumerated.of(chain_problem(temperature=0.3, loss=loss)).optimum() for loss in losses]
    assert abs(values[0] - values[1]) > 1e-2
