"""A structure that smooths its maximum with a prox of its own: no exp-oracle, and yet methods of smoothing work."""

import numpy as np
import pytest

from m3n import MissingOracle, Problem, minimize
from m3n.checks import check_gradient, check_problem, check_structure
from m3n.features import Dense
from m3n.losses import PartLoss
from m3n.solvers import LBFGS, ExcessiveGap, ExponentiatedGradient, Extragradient
from m3n.structures import Structure
from tests.tiny import Enumerated, iterates


class Choice(Structure):
    """One part out of several per example, smoothed by h(m) = (1 - |m|^2)/2, whose maximum is a projection."""

    def __init__(self, n, size):
        self.n, self.size, self.shapes = n, size, ((n, size),)

    def spans(self):
        return (np.arange(self.n + 1),)

    def most_parts(self):
        return np.ones(self.n, np.int64)

    def parts_of(self, output, example):
        return [output]

    def output_of(self, parts, example):
        return int(parts[0])

    def best(self, example, theta):
        return [int(theta[0].argmax())]

    def smoothed(self, example, theta, mu):
        score = theta[0].ravel() / mu
        order = np.sort(score)[::-1]
        levels = (np.cumsum(order) - 1.0) / np.arange(1, self.size + 1)
        level = levels[np.flatnonzero(order > levels)[-1]]
        m = np.maximum(score - level, 0.0)
        return float(mu * (score @ m + (1.0 - m @ m) / 2.0)), (m.reshape(theta[0].shape),)

    def diameter(self):
        return np.full(self.n, (1.0 - 1.0 / self.size) / 2.0)

    def enumerate(self, example):
        return (np.array([k]) for k in range(self.size))


def problem_of_choices(**settings):
    random = np.random.default_rng(2)
    X, y = random.normal(size=(9, 3)), random.integers(4, size=9)
    return Problem(Choice(9, 4), Dense(X, 4), y, loss=PartLoss(0.5, 0.5), lam=0.1, n_jobs=1, **settings)


def test_the_smoothed_oracle_is_within_its_diameter(random):
    problem = problem_of_choices()
    w = random.normal(size=problem.dim)
    assert problem.log_size == pytest.approx(3 / 8)
    best = problem.hard(w).value
    for mu in (1e-3, 0.1, 5.0):
        answer = problem.soft(w, mu)
        assert best - 1e-12 <= answer.value <= best + mu * problem.log_size + 1e-12
        step = 1e-6 * random.normal(size=problem.dim)
        slope = (problem.soft(w + step, mu).value - problem.soft(w - step, mu).value) / 2
        assert slope == pytest.approx(-answer.vector @ step, rel=1e-4, abs=1e-12)


def test_the_public_checks_know_a_smoothed_oracle(random):
    theta = (random.normal(size=(9, 4)),)
    for mu in (1e-2, 1.0):
        check_structure(Choice(9, 4), theta, mu)
    check_gradient(Choice(9, 4), (0.1 * theta[0],), mu=1.0)  # all of the simplex: the value is smooth there
    check_problem(problem_of_choices())

    class Outside(Choice):
        def smoothed(self, example, theta, mu):
            value, (m,) = super().smoothed(example, theta, mu)
            return value, (1.01 * m,)

    class Below(Choice):
        def smoothed(self, example, theta, mu):
            value, parts = super().smoothed(example, theta, mu)
            return value - 2.0 * mu, parts

    for wrong, message in ((Outside, "away from all mixtures of outputs"), (Below, "the smoothed maximum is")):
        with pytest.raises(AssertionError, match=message):
            check_structure(wrong(9, 4), theta, mu=1.0)


@pytest.mark.parametrize("solver", [ExcessiveGap(), Extragradient(), ExponentiatedGradient()], ids=str)
def test_solvers_that_smooth_find_the_optimum(solver):
    problem = problem_of_choices()
    best = Enumerated.of(problem).optimum()
    result = minimize(problem, solver, tol=2e-3, max_passes=20_000)
    assert result.converged
    assert result.certificate.dual - 1e-9 <= best <= result.certificate.primal + 1e-9


def test_excessive_gap_keeps_its_invariant_and_bound():
    problem = problem_of_choices()
    for state in iterates(problem, ExcessiveGap(schedule="paper", center="uniform"), 40):
        assert state.smoothed <= state.dual + 1e-10
        assert problem.primal(state.w) - state.dual <= state.mu * problem.log_size + 1e-10


def test_a_crf_needs_the_true_exp_oracle():
    with pytest.raises(MissingOracle, match="exp-oracle, which Choice does not offer"):
        minimize(problem_of_choices(temperature=1.0), LBFGS())
