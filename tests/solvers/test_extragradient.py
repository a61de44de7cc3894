from itertools import pairwise

import numpy as np
import pytest

from m3n import Problem, Status, WrongObjective, minimize
from m3n.features import Dense
from m3n.solvers import Extragradient
from m3n.structures import Multiclass
from tests.solvers.template import CASES, ROUNDING, SolverTemplate, iterates
from tests.tiny import Enumerated, chain_problem, multiclass_problem

PROBLEMS = [make for heat, make in CASES.values() if not heat]


class TestExtragradient(SolverTemplate):
    solver = Extragradient()

    def dual_point(self, state):
        return state.hull.points[0].u, state.hull.points[0].b


class Literal:
    """The method with alpha written out, one weight per output, and the condition as the proof states it."""

    def __init__(self, known, omega):
        self.known, self.omega, self.lam = known, omega, known.problem.lam
        self.w = np.zeros(known.problem.dim)
        self.alpha = known.gibbs(self.w, 1.0, loss_scale=0.0)

    def gradient(self, w, alpha):
        return self.lam * w - alpha @ self.known.psi, self.known.ell - self.known.psi @ w

    def moved(self, eta, gradient):
        alpha = self.alpha * np.exp(eta * gradient[1])
        alpha /= self.known.problem.n * np.bincount(self.known.owner, alpha)[self.known.owner]
        return self.w - eta * self.omega * gradient[0], alpha

    def distance(self, one, other):
        """V(one, other), with KL(one || other)."""
        square = np.sum((one[0] - other[0]) ** 2) / (2 * self.omega)
        return float(np.sum(one[1] * np.log(one[1] / other[1])) + square)

    def step(self, eta):
        """The look ahead z, the new point x' and by how much the condition is met."""
        here = self.w, self.alpha
        first = self.gradient(*here)
        ahead = self.moved(eta, first)
        second = self.gradient(*ahead)
        there = self.moved(eta, second)
        left = np.dot(second[0] - first[0], ahead[0] - there[0])
        left -= np.dot(second[1] - first[1], ahead[1] - there[1])  # L is to be maximised in alpha
        return ahead, there, self.distance(there, ahead) + self.distance(ahead, here) - eta * left


@pytest.mark.parametrize("make", PROBLEMS)
def test_same_iterates_as_with_alpha_written_out(make):
    problem = make()
    known = Enumerated.of(problem)
    states = iterates(problem, Extragradient(), 30)
    literal = Literal(known, next(iterates(problem, Extragradient(), 0)).omega)
    total_w, total_alpha, weight, refused = 0.0, 0.0, 0.0, 0
    for old, new in pairwise(states):
        ahead, there, slack = literal.step(old.eta)
        assert (slack >= -ROUNDING) if new.steps > old.steps else (slack <= ROUNDING)
        if new.steps == old.steps:
            refused += 1
            continue
        literal.w, literal.alpha = there
        total_w, total_alpha, weight = (
            total_w + old.eta * ahead[0],
            total_alpha + old.eta * ahead[1],
            weight + old.eta,
        )
        np.testing.assert_allclose(new.here.w, there[0], atol=1e-8)
        np.testing.assert_allclose(new.here.alpha.u, there[1] @ known.psi / problem.lam, atol=1e-7)
        np.testing.assert_allclose(new.w, total_w / weight, atol=1e-8)
        np.testing.assert_allclose(new.average.u, total_alpha / weight @ known.psi / problem.lam, atol=1e-7)
        assert problem.dual(new.average.u, new.average.b) == pytest.approx(known.dual(total_alpha / weight), abs=1e-8)
    assert 0 < refused < 10


@pytest.mark.parametrize("make", [*PROBLEMS, lambda: chain_problem(lam=0.01)])
def test_the_theorem_on_every_iterate(make):
    """J(w_avg) - D(alpha_avg) <= (log|Y| + |w(alpha_avg)|^2 / (2 omega)) / S, and the free bound is one."""
    problem = make()
    known = Enumerated.of(problem)
    for state in iterates(problem, Extragradient(), 200):
        if state.steps:
            average = problem.dual(state.average.u, state.average.b)
            gap = known.primal(state.w) - average
            promise = (problem.log_size + state.average.u @ state.average.u / (2 * state.omega)) / state.weight
            assert gap <= state.duality_gap + ROUNDING
            assert gap <= promise + ROUNDING
            assert state.dual >= average - ROUNDING  # the best mixture is never worse


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_safe_step_size_is_never_refused(make):
    problem = make()
    state = Extragradient().init(problem)
    for _ in range(100):
        new = Extragradient().step(problem, state)
        assert new.steps == state.steps + 1
        state = type(state)(**{**vars(new), "eta": state.safe})


def test_the_search_finds_far_larger_steps():
    problem = chain_problem(lengths=(3, 4, 5, 3, 6) * 4, lam=0.01)
    *_, state = iterates(problem, Extragradient(), 60)
    assert state.eta > 3 * state.safe
    assert state.steps > 50  # and few steps are refused


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_dual_never_decreases(make):
    for old, new in pairwise(iterates(make(), Extragradient(), 100)):
        assert new.dual >= old.dual - 1e-12
    assert new.dual > 0.0


@pytest.mark.parametrize("make", [lambda: chain_problem(seed=1), lambda: chain_problem(seed=2), multiclass_problem])
def test_the_gap_falls_like_one_over_passes(make):
    trace = minimize(make(), Extragradient(), tol=1e-9, max_passes=1500).trace
    late = [r for r in trace if r.passes >= 150]
    passes = np.log([r.passes for r in late])
    for values in ([r.gap for r in late], [r.metrics["duality_gap"] for r in late]):
        assert -1.5 < np.polyfit(passes, np.log(values), 1)[0] < -0.8


def test_two_passes_per_step():
    problem = chain_problem()
    state = Extragradient().init(problem)
    for _ in range(20):
        before = problem.soft_calls, problem.hard_calls
        state = Extragradient().step(problem, state)
        assert (problem.soft_calls - before[0], problem.hard_calls) == (2 * problem.n, before[1])


def test_refuses_a_crf():
    with pytest.raises(WrongObjective, match="Extragradient trains max-margin networks only"):
        minimize(chain_problem(temperature=1.0), Extragradient())


def test_a_loss_without_features_ends_at_once_or_stalls():
    problem = Problem(Multiclass(3, 4), Dense(np.zeros((3, 2)), 4), [0, 1, 2], n_jobs=1)
    result = minimize(problem, Extragradient(), tol=0.0, max_passes=500)
    assert result.status in (Status.TOLERANCE, Status.STALLED)
    assert result.certificate.gap <= 1e-12


def test_one_label_is_trivial():
    problem = Problem(Multiclass(3, 1), Dense(np.ones((3, 2)), 1), [0, 0, 0], n_jobs=1)
    *_, last = iterates(problem, Extragradient(), 5)
    assert last.dual == pytest.approx(0.0, abs=1e-12)


def test_gap_on_ocr(data_folder):
    """A gap of 0.1 on the handwritten words (6251 training words, lam = 0.01) within 280 passes."""
    from benchmarks.datasets import ocr_problem

    result = minimize(ocr_problem(data_folder, lam=0.01, sparse=True), Extragradient(), tol=0.1, max_passes=280)
    assert result.converged
