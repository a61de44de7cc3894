"""Algorithm 1 on problems whose optimum is known otherwise: every promise of the paper, on every iterate."""

import dataclasses
import importlib.util
import itertools
import math
from pathlib import Path
from typing import NamedTuple

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import m3n
from m3n.run import saddle as generic

EXAMPLES = next(p / "examples" for p in Path(__file__).resolve().parents if (p / "examples/binary_svm.py").exists())

# J_mu, J and D of the test problems are sums of at most 100 terms of size 1: rounding errors near 1e-14.
ROUNDING = 1e-12
# The interior-point solutions below are asked for 1e-11 and were seen to be right to 3e-12 in value.
INDEPENDENT = 1e-10


def load_example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


svm = load_example("binary_svm")
game = load_example("matrix_game")


class Case(NamedTuple):
    """A saddle point with what the theory speaks about and the algorithm does not know."""

    saddle: m3n.SaddlePoint
    prox: object  # d
    norm: object  # the norm of alpha in which d is strongly convex
    draw: object  # rng -> a random point of Q
    w: object  # optimal points, from another solver or a formula
    alpha: object

    @property
    def value(self):
        return self.saddle.dual(self.alpha)


def svm_data(n=40, p=5):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, p))
    noise = rng.normal(size=n)  # puts some alpha at 0, some at 1/n, some between
    y = np.where(X @ rng.normal(size=p) + noise > 0, 1.0, -1.0)
    return X, y, 0.1


def svm_dual_by_clarabel(X, y, lam):
    """Maximise D over the box as a quadratic program."""
    n = len(y)
    signed = y[:, None] * X
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-12
    quadratic = sparse.csc_matrix(np.triu(signed @ signed.T / lam))
    box = sparse.csc_matrix(np.vstack([np.eye(n), -np.eye(n)]))
    limits = np.r_[np.full(n, 1.0 / n), np.zeros(n)]
    cones = [clarabel.NonnegativeConeT(2 * n)]
    solution = clarabel.DefaultSolver(quadratic, -np.ones(n), box, limits, cones, options).solve()
    return np.clip(solution.x, 0.0, 1.0 / n)


def svm_case(prox):
    X, y, lam = svm_data()
    saddle = svm.build(X, y, lam, prox)
    alpha = svm_dual_by_clarabel(X, y, lam)
    n = len(y)
    return Case(
        saddle,
        prox(n).value,
        np.linalg.norm,
        lambda rng: rng.uniform(0, 1 / n, n),
        saddle.weights(alpha),
        alpha,
    )


def game_case():
    A = np.random.default_rng(3).uniform(-1.0, 1.0, size=(8, 6))
    w, alpha = game.independent(A, 0.2)
    return Case(
        game.build(A, 0.2),
        game.prox,
        lambda v: np.abs(v).sum(),
        lambda rng: rng.dirichlet(np.full(8, 0.5)),
        w / w.sum(),
        alpha / alpha.sum(),
    )


def clip(x, low=-1.0, high=1.0):
    return min(max(x, low), high)


def scalar_case(a=1.5, b=0.7, c=0.8, sigma=3.0):
    """f = w^2/2, g = b alpha + c/2 alpha^2 on Q = [-1, 1], d = sigma/2 alpha^2; points are plain floats.

    D(alpha) = -b alpha - (a^2 + c)/2 alpha^2 has its maximum at clip(-b / (a^2 + c)); L = a^2 + c is exact.
    """

    def smoothed(w, mu):
        return clip((a * w - b) / (c + mu * sigma))

    def smoothed_primal(w, mu):
        alpha = smoothed(w, mu)
        return w * w / 2 + (a * w - b) * alpha - (c + mu * sigma) / 2 * alpha**2

    def best_answer(w):  # mu = 0, where c = 0 makes the objective linear
        slope = a * w - b
        return clip(slope / c) if c > 0 else math.copysign(1.0, slope)

    saddle = m3n.SaddlePoint(
        primal=lambda w: w * w / 2 + (a * w - b) * best_answer(w) - c / 2 * best_answer(w) ** 2,
        dual=lambda alpha: -b * alpha - (a * a + c) / 2 * alpha**2,
        dual_gradient=lambda alpha: -b - (a * a + c) * alpha,
        weights=lambda alpha: -a * alpha,
        smoothed=smoothed,
        project=lambda alpha, v: clip(alpha - v / sigma),
        center=0.0,
        lipschitz=a * a + c,
        convexity=sigma,
        diameter=sigma / 2,
        smoothed_primal=smoothed_primal,
    )
    alpha = clip(-b / (a * a + c))
    return Case(saddle, lambda x: sigma / 2 * x * x, abs, lambda rng: rng.uniform(-1, 1), -a * alpha, alpha)


CASES = {
    "svm, euclidean": svm_case(svm.euclidean),
    "svm, entropy": svm_case(svm.entropy),
    "game": game_case(),
    "scalar": scalar_case(),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
every_schedule = pytest.mark.parametrize("schedule", ["paper", "adaptive"])


def states(saddle, count, schedule="paper"):
    return itertools.islice(generic.iterate(saddle, schedule), count)


# ---------------------------------------------------------------- the problems are what they claim to be


@every_case
def test_known_points_are_optimal(case):
    assert case.saddle.primal(case.w) == pytest.approx(case.value, abs=INDEPENDENT)


@every_case
def test_lipschitz_constant_holds_in_the_norm_of_the_prox(case):
    saddle, rng = case.saddle, np.random.default_rng(0)
    for _ in range(200):
        a, b = case.draw(rng), case.draw(rng)
        linear = saddle.dual(a) + np.sum(saddle.dual_gradient(a) * (b - a))
        error = linear - saddle.dual(b)  # in [0, L/2 |a - b|^2] by concavity and smoothness
        assert -ROUNDING <= error <= saddle.lipschitz / 2 * case.norm(a - b) ** 2 + ROUNDING


def test_svm_lipschitz_constant_is_attained():
    X, y, lam = svm_data()
    saddle = svm.build(X, y, lam)
    direction = np.linalg.svd(y[:, None] * X)[0][:, 0]  # top left singular vector, of length 1
    change = saddle.dual_gradient(saddle.center + direction) - saddle.dual_gradient(saddle.center)
    assert np.linalg.norm(change) == pytest.approx(saddle.lipschitz)


def test_game_lipschitz_constant_is_attained():
    """Matching pennies: D = -rho log(2 cosh(s (2p - 1) / rho)) for alpha = (p, 1-p), steepest at p = 1/2."""
    s, rho, step = 3.0, 0.5, 1e-5
    saddle = game.build(np.array([[s, -s], [-s, s]]), rho)
    move = np.array([step, -step])
    change = saddle.dual_gradient(saddle.center + move) - saddle.dual_gradient(saddle.center)
    assert saddle.lipschitz == s**2 / rho
    # the norms are L1 for alpha and its dual, the largest entry, for the gradient; the error is O(step^2)
    assert np.abs(change).max() / np.abs(move).sum() == pytest.approx(saddle.lipschitz, rel=1e-6)


@every_case
def test_prox_is_strongly_convex_with_its_minimum_at_the_center(case):
    saddle, rng = case.saddle, np.random.default_rng(1)
    assert case.prox(saddle.center) == pytest.approx(0.0, abs=ROUNDING)
    for _ in range(200):
        a, b = case.draw(rng), case.draw(rng)
        middle = 0.5 * (a + b)
        chord = 0.5 * (case.prox(a) + case.prox(b)) - case.prox(middle)
        assert chord >= saddle.convexity / 8 * case.norm(a - b) ** 2 - ROUNDING
        assert 0.0 <= case.prox(a) <= saddle.diameter + ROUNDING


@every_case
def test_maps_solve_their_problems(case):
    saddle, rng = case.saddle, np.random.default_rng(2)
    for mu in (1e-2, 1.0, 10.0):
        w, v = saddle.weights(case.draw(rng)), saddle.dual_gradient(case.draw(rng))
        primal, smoothed = saddle.primal(w), saddle.smoothed_primal(w, mu)
        assert primal - mu * saddle.diameter - ROUNDING <= smoothed <= primal + ROUNDING
        # V(alpha_0, v) minimises d + <v, .>, for grad d(alpha_0) = 0 along Q in all these cases
        projected = saddle.project(saddle.center, v)
        least = case.prox(projected) + np.sum(v * projected)
        for _ in range(50):
            other = case.draw(rng)
            assert least <= case.prox(other) + np.sum(v * other) + ROUNDING


# ---------------------------------------------------------------- the paper's theorems


@every_case
@every_schedule
def test_excessive_gap_on_every_iterate(case, schedule):
    for state in states(case.saddle, 400, schedule):
        assert case.saddle.smoothed_primal(state.w, state.mu) <= case.saddle.dual(state.alpha) + ROUNDING


@every_case
@every_schedule
def test_gap_is_between_zero_and_mu_times_diameter(case, schedule):
    for state in states(case.saddle, 400, schedule):
        gap = case.saddle.primal(state.w) - case.saddle.dual(state.alpha)
        assert -ROUNDING <= gap <= state.mu * case.saddle.diameter + ROUNDING


@every_case
def test_theorem_and_corollary_on_every_iterate(case):
    saddle = case.saddle
    for k, state in enumerate(states(saddle, 400), start=1):
        rate = 6 * saddle.lipschitz / (saddle.convexity * (k + 1) * (k + 2))
        gap = saddle.primal(state.w) - saddle.dual(state.alpha)
        assert gap <= rate * saddle.diameter + ROUNDING
        assert case.value - saddle.dual(state.alpha) <= rate * case.prox(case.alpha) + INDEPENDENT


@every_case
def test_smoothing_has_its_closed_form(case):
    saddle = case.saddle
    for k, state in enumerate(states(saddle, 300), start=1):
        assert state.k == k
        assert state.tau == (1.0 if k == 1 else pytest.approx(2 / (k + 2)))  # tau_{k-1} led to iterate k
        # k roundings of relative size 1e-16
        expected = 6 * saddle.lipschitz / (saddle.convexity * (k + 1) * (k + 2))
        assert state.mu == pytest.approx(expected, rel=1e-13)


@every_case
def test_iterates_are_those_of_algorithm_1_line_by_line(case):
    s = case.saddle
    mu = s.lipschitz / s.convexity
    w, alpha = s.weights(s.center), s.project(s.center, -s.dual_gradient(s.center) / mu)
    for k, state in enumerate(states(s, 100), start=1):
        np.testing.assert_allclose(state.w, w, rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(state.alpha, alpha, rtol=0, atol=ROUNDING)
        tau = 2 / (k + 3)
        beta = s.smoothed(w, mu)
        hat = (1 - tau) * alpha + tau * beta
        w = (1 - tau) * w + tau * s.weights(hat)
        tilde = s.project(beta, -tau / ((1 - tau) * mu) * s.dual_gradient(hat))
        alpha = (1 - tau) * alpha + tau * tilde
        mu = (1 - tau) * mu


@pytest.mark.parametrize("name", ["svm, entropy", "game"])
@every_schedule
def test_entropy_projection_is_the_next_smoothed_point(name, schedule):
    """With g linear and entropy as d, V(...) = alpha_mu(w) at the new w and mu: pins all of the step."""
    saddle = CASES[name].saddle
    for old, new in itertools.pairwise(states(saddle, 100, schedule)):
        expected = (1 - new.tau) * old.alpha + new.tau * saddle.smoothed(new.w, new.mu)
        # scores / mu grow to some hundred in 100 steps and lose that many units in the last place
        np.testing.assert_allclose(new.alpha, expected, rtol=0, atol=ROUNDING)


def test_too_small_a_lipschitz_constant_breaks_the_invariant():
    """The checks above have power: they fail where the theorem does not apply."""
    for case in CASES.values():
        saddle = dataclasses.replace(case.saddle, lipschitz=case.saddle.lipschitz / 100)
        slack = [saddle.dual(s.alpha) - saddle.smoothed_primal(s.w, s.mu) for s in states(saddle, 50)]
        assert min(slack) < -1e-6


@every_case
def test_scaling_the_prox_changes_nothing_but_mu(case):
    """c d with c sigma and c max d is the same problem; only mu is divided by c."""
    c, s = 5.0, case.saddle
    scaled = dataclasses.replace(
        s,
        smoothed=lambda w, mu: s.smoothed(w, c * mu),
        project=lambda alpha, v: s.project(alpha, v / c),
        convexity=c * s.convexity,
        diameter=c * s.diameter,
    )
    for one, other in zip(states(s, 50), states(scaled, 50), strict=True):
        np.testing.assert_allclose(one.alpha, other.alpha, rtol=0, atol=ROUNDING)
        assert one.mu == pytest.approx(c * other.mu, rel=1e-13)


# ---------------------------------------------------------------- the optimum


@every_case
@every_schedule
def test_agrees_with_the_independent_solution(case, schedule):
    result = m3n.excessive_gap(case.saddle, tol=2e-6, schedule=schedule)
    assert result.status == "tolerance reached"
    assert 0.0 <= result.gap <= 2e-6
    assert result.dual - INDEPENDENT <= case.value <= result.primal + INDEPENDENT
    # f of every case is at least 0.1-strongly convex: |w - w*|^2 <= 2 gap / 0.1
    assert np.linalg.norm(result.w - case.w) <= math.sqrt(2 * 2e-6 / 0.1)


def test_svm_agrees_with_liblinear():
    X, y, lam = svm_data()
    saddle = svm.build(X, y, lam)
    result = m3n.excessive_gap(saddle, tol=1e-7, schedule="adaptive")
    assert result.primal == pytest.approx(saddle.primal(svm.independent(X, y, lam)), abs=1e-7)


@every_case
@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_adaptive_needs_no_more_work_than_the_paper(case, tol):
    paper = m3n.excessive_gap(case.saddle, tol=tol)
    adaptive = m3n.excessive_gap(case.saddle, tol=tol, schedule="adaptive")
    assert paper.status == adaptive.status == "tolerance reached"
    assert adaptive.iterations + adaptive.redone <= paper.iterations
    assert abs(adaptive.primal - paper.primal) <= tol  # both in [optimum, optimum + tol]


@given(
    a=st.floats(0.1, 10).flatmap(lambda x: st.sampled_from([x, -x])),
    b=st.floats(-5, 5),
    c=st.just(0.0) | st.floats(0.01, 5),
    sigma=st.floats(0.1, 10),
    schedule=st.sampled_from(["paper", "adaptive"]),
)
@settings(deadline=None, max_examples=100)
def test_scalar_problems_reach_their_formula(a, b, c, sigma, schedule):
    case = scalar_case(a, b, c, sigma)
    result = m3n.excessive_gap(case.saddle, tol=1e-5, schedule=schedule)
    assert type(result.w) is type(result.alpha) is float
    assert result.status == "tolerance reached"
    # values up to 100 here: ten digits below them are rounding-free
    assert result.dual - 1e-9 <= case.value <= result.primal + 1e-9
    assert abs(result.w - case.w) <= math.sqrt(2e-5) + 1e-9  # f is 1-strongly convex
    assert result.gap <= result.bound + 1e-9


class Vector:
    """A point that can be added and scaled from the left, and nothing else."""

    def __init__(self, *entries):
        self.entries = entries

    def __add__(self, other):
        return Vector(*(x + y for x, y in zip(self.entries, other.entries, strict=True)))

    def __rmul__(self, scalar):
        return Vector(*(scalar * x for x in self.entries))


@every_schedule
def test_points_need_only_addition_and_scaling(schedule):
    one = scalar_case().saddle
    wrapped = m3n.SaddlePoint(
        primal=lambda w: one.primal(*w.entries),
        dual=lambda alpha: one.dual(*alpha.entries),
        dual_gradient=lambda alpha: Vector(one.dual_gradient(*alpha.entries)),
        weights=lambda alpha: Vector(one.weights(*alpha.entries)),
        smoothed=lambda w, mu: Vector(one.smoothed(*w.entries, mu)),
        project=lambda alpha, v: Vector(one.project(*alpha.entries, *v.entries)),
        center=Vector(one.center),
        lipschitz=one.lipschitz,
        convexity=one.convexity,
        diameter=one.diameter,
        smoothed_primal=lambda w, mu: one.smoothed_primal(*w.entries, mu),
    )
    result, expected = (m3n.excessive_gap(s, schedule=schedule) for s in (wrapped, one))
    assert result.w.entries == (expected.w,)
    assert result.trace == expected.trace


# ---------------------------------------------------------------- the report of a run


@every_case
@every_schedule
def test_result_holds_the_best_points_and_a_faithful_trace(case, schedule):
    seen, saddle = [], case.saddle
    result = m3n.excessive_gap(saddle, tol=1e-12, max_iter=60, schedule=schedule, callback=seen.append)
    run = list(states(saddle, 60, schedule))
    primals, duals = [saddle.primal(s.w) for s in run], [saddle.dual(s.alpha) for s in run]
    for k, record in enumerate(result.trace, start=1):
        assert (record.k, record.mu, record.bound) == (k, run[k - 1].mu, run[k - 1].mu * saddle.diameter)
        assert (record.primal, record.dual) == (min(primals[:k]), max(duals[:k]))
        assert record.gap == max(record.primal - record.dual, 0.0)
        assert {type(x) for x in (record.mu, record.primal, record.dual, record.bound)} == {float}
    last = result.trace[-1]
    assert tuple(seen) == result.trace
    assert (result.primal, result.dual, result.gap) == (last.primal, last.dual, last.gap)
    assert (result.iterations, result.mu, result.bound) == (last.k, last.mu, last.bound)
    assert saddle.primal(result.w) == result.primal and saddle.dual(result.alpha) == result.dual


def test_values_are_not_monotone():
    """Otherwise the test above could not tell the best points from the last."""
    saddle = CASES["game"].saddle
    run = list(states(saddle, 60, "adaptive"))
    assert np.diff([saddle.primal(s.w) for s in run]).max() > 1e-6
    assert np.diff([saddle.dual(s.alpha) for s in run]).min() < -1e-6


def test_gap_is_never_negative():
    assert generic.SaddleRecord(k=1, mu=1.0, primal=1.0, dual=1.0 + 1e-15, bound=1.0).gap == 0.0


def test_stops_at_the_first_iterate_within_tolerance():
    result = m3n.excessive_gap(CASES["game"].saddle, tol=1e-3)
    assert result.status is m3n.SaddleStatus.TOLERANCE and str(result.status) == "tolerance reached"
    assert [r.gap <= 1e-3 for r in result.trace] == (result.iterations - 1) * [False] + [True]
    result = m3n.excessive_gap(CASES["game"].saddle, tol=1e-3, max_iter=1)
    assert result.status == "iteration limit" and result.iterations == len(result.trace) == 1


def test_redone_steps_are_counted():
    calls, saddle = [], CASES["game"].saddle
    counted = dataclasses.replace(saddle, project=lambda *args: calls.append(1) or saddle.project(*args))
    result = m3n.excessive_gap(counted, tol=1e-5, schedule="adaptive")
    assert result.redone > 0
    assert len(calls) == result.iterations + result.redone


def test_adaptive_smoothing_never_underflows_where_any_estimate_will_do():
    saddle = dataclasses.replace(scalar_case(a=1e-100, b=1.0, c=0.0).saddle, lipschitz=1.0)
    *_, last = states(saddle, 5000, "adaptive")
    # L^ stops at 2e-16, mu then falls like 4 L^ / k^2, to 1e-22; with no floor like 0.9^k, to 1e-229
    assert 1e-24 < last.mu < 1e-20 and math.isfinite(last.w)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("field", ["lipschitz", "convexity"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_refuses_constants_that_are_not_positive(field, value):
    with pytest.raises(ValueError, match=f"{field} must be positive and finite, got"):
        dataclasses.replace(scalar_case().saddle, **{field: value})


@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_refuses_a_negative_diameter(value):
    with pytest.raises(ValueError, match="diameter is the maximum of d >= 0 and cannot be"):
        dataclasses.replace(scalar_case().saddle, diameter=value)


@pytest.mark.parametrize("tol", [0.0, -1e-3, math.nan])
def test_refuses_a_tolerance_that_is_not_positive(tol):
    with pytest.raises(ValueError, match="tol must be positive and finite, got"):
        m3n.excessive_gap(scalar_case().saddle, tol=tol)


def test_refuses_no_iterations():
    with pytest.raises(ValueError, match="max_iter must be at least 1, got 0"):
        m3n.excessive_gap(scalar_case().saddle, max_iter=0)


def test_refuses_an_unknown_schedule():
    with pytest.raises(ValueError, match="unknown schedule 'fast'; choose one of 'paper', 'adaptive'"):
        m3n.excessive_gap(scalar_case().saddle, schedule="fast")


def test_refuses_adaptive_without_smoothed_primal():
    saddle = dataclasses.replace(scalar_case().saddle, smoothed_primal=None)
    with pytest.raises(ValueError, match="give SaddlePoint a smoothed_primal"):
        m3n.excessive_gap(saddle, schedule="adaptive")
    assert m3n.excessive_gap(saddle).status == "tolerance reached"


@pytest.mark.parametrize("shift", [-5.0, math.nan])
def test_refuses_maps_that_contradict_weak_duality(shift):
    saddle = scalar_case().saddle
    wrong = dataclasses.replace(saddle, primal=lambda w: saddle.primal(w) + shift)
    with pytest.raises(ValueError, match="contradict weak duality at iteration 1"):
        m3n.excessive_gap(wrong)
