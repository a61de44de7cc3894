from dataclasses import replace

import numpy as np
import pytest

from m3n import Problem, minimize
from m3n.features import Dense, chain_features
from m3n.losses import NormalizedHamming
from m3n.solvers import BatchFrankWolfe, ExcessiveGap
from m3n.solvers.batch_frank_wolfe import LEAST_BATCHES, MOST_BATCHES, ROOM
from m3n.structures import Chain, Multiclass
from tests.solvers.template import SolverTemplate
from tests.tiny import Enumerated, chain_problem, iterates, multiclass_problem

PROBLEMS = [chain_problem, multiclass_problem]


class HullPoint(SolverTemplate):
    tol = 5e-3

    def dual_point(self, state):
        point = state.hull.points[0]
        return point.u, point.b


class TestDefault(HullPoint):
    solver = BatchFrankWolfe()


class TestFewBatches(HullPoint):
    solver = BatchFrankWolfe(batches=2, seed=1)


class TestWithoutAcceleration(HullPoint):
    solver = BatchFrankWolfe(batches=3, proximity=0.0)
    tol = 2e-2  # plain Frank-Wolfe is slow


def strings(n, lam=0.01):
    random = np.random.default_rng(0)
    lengths = random.integers(2, 6, size=n)
    means = random.normal(size=(4, 5))
    y = [random.integers(4, size=length) for length in lengths]
    X = np.concatenate([means[t] + random.normal(size=(len(t), 5)) for t in y])
    features = chain_features(Dense(X, 4), 4)
    return Problem(Chain(lengths, 4), features, y, loss=NormalizedHamming(), lam=lam, n_jobs=1)


def total(state):
    return sum(point.u for point in state.shares), sum(point.b for point in state.shares)


def proximal_values(problem, known, state):
    """Primal and dual value of the proximal problem at the state's alpha, the primal by enumeration."""
    u, b = total(state)
    lam, kappa = problem.lam, state.kappa
    w = (lam * u + kappa * state.z) / (lam + kappa)
    penalty = kappa / 2 * (w - state.z) @ (w - state.z)
    return known.primal(w) + penalty, b + lam / 2 * w @ w - lam * u @ w + penalty


@pytest.mark.parametrize("make", PROBLEMS)
def test_one_batch_knows_its_gap(make):
    """With a single batch the estimate is the duality gap of the proximal problem, which only falls at a fixed z."""
    problem = make()
    known = Enumerated.of(problem)
    solver = BatchFrankWolfe(batches=1, proximity=0.2)
    state = solver.init(problem)
    for _ in range(40):
        primal, dual = proximal_values(problem, known, state)
        new = solver.step(problem, state)
        assert new.estimate == pytest.approx(primal - dual, abs=1e-10)
        fixed = proximal_values(problem, known, replace(new, z=state.z))
        assert fixed[1] >= dual - 1e-12
        state = new


@pytest.mark.parametrize("make", PROBLEMS)
def test_every_visit_is_the_best_step(make):
    """kappa = 0: a pass of one batch ends at the maximum of D on the segment, found by a fine grid."""
    problem = make()
    solver = BatchFrankWolfe(batches=1, proximity=0.0)
    for before in iterates(problem, solver, 5):
        u, b = total(before)
        answer = problem.hard(u)
        grid = np.linspace(0.0, 1.0, 2001)[:, None]
        mixed = (1 - grid) * u + grid * answer.vector / problem.lam
        values = (1 - grid[:, 0]) * b + grid[:, 0] * answer.loss - problem.lam / 2 * np.einsum("ij,ij->i", mixed, mixed)
        after = problem.dual(*total(solver.step(problem, before)))
        assert after >= values.max() - 1e-12
        assert after == pytest.approx(values.max(), abs=1e-4)


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_hull_is_never_worse_than_its_points(make):
    problem = make()
    previous = 0.0
    for state in iterates(problem, BatchFrankWolfe(batches=3), 40):
        assert state.dual >= max(problem.dual(*total(state)), previous) - 1e-12
        previous = state.dual


def test_acceleration_and_batches_save_passes():
    problem = strings(80)
    fast = passes(problem, BatchFrankWolfe(batches=20))
    assert fast < 0.7 * passes(problem, BatchFrankWolfe(batches=20, proximity=0.0))
    assert fast < 0.8 * passes(problem, BatchFrankWolfe(batches=4))
    assert fast < 0.8 * passes(problem, ExcessiveGap(memory=5, warm=0))


def passes(problem, solver):
    return minimize(problem, solver, tol=3e-2, max_passes=500).trace[-1].passes


def test_the_units_of_features_do_not_matter():
    """Twice the features and four times lam: half the weights, all else the same to the last bit."""

    def run(scale):
        random = np.random.default_rng(0)
        X, y = scale * random.normal(size=(40, 5)), random.integers(3, size=40)
        problem = Problem(Multiclass(40, 3), Dense(X, 3), y, lam=0.02 * scale**2, n_jobs=1)
        return minimize(problem, BatchFrankWolfe(batches=8), tol=0.0, max_passes=25)

    plain, scaled = run(1.0), run(2.0)
    np.testing.assert_array_equal(2.0 * scaled.w, plain.w)
    assert scaled.certificate == plain.certificate
    assert scaled.state.kappa == 4.0 * plain.state.kappa > 0.0


def test_the_centre_waits_for_the_proximal_problem():
    """z moves only after the estimate has fallen, or after ten passes."""
    problem = strings(100)
    solver = BatchFrankWolfe(batches=4)
    state, waits = solver.init(problem), []
    for _ in range(60):
        new = solver.step(problem, state)
        if new.waited == 0:
            root = np.sqrt(problem.lam / (problem.lam + new.kappa))
            waits.append(state.waited + 1)
            assert new.estimate <= (1 - root / 2) * state.target or waits[-1] == 10
            assert new.target == new.estimate
        else:
            np.testing.assert_array_equal(new.z, state.z)
        state = new
    assert 1 < max(waits) <= 10


def test_number_of_batches():
    def count(problem, **settings):
        return len(BatchFrankWolfe(**settings).init(problem).shares)

    assert count(strings(30)) == 30  # not more than examples
    assert count(strings(300)) == MOST_BATCHES
    assert count(strings(300), batches=7) == 7
    large = strings(30)
    for dim, expected in ((ROOM // 20, 20), (10 * ROOM, LEAST_BATCHES)):
        large.dim = dim  # nothing of that size is allocated
        assert BatchFrankWolfe()._count(large) == expected


def test_one_pass_asks_every_example_once():
    problem = chain_problem()
    solver = BatchFrankWolfe(batches=3)
    state = solver.init(problem)
    assert problem.hard_calls == 0
    for k in range(1, 4):
        state = solver.step(problem, state)
        assert (problem.hard_calls, problem.soft_calls) == (k * problem.n, 0)


def test_memory_does_not_grow_with_n():
    def numbers(n):
        *_, state = iterates(strings(n), BatchFrankWolfe(batches=10), 20)
        return sum(p.u.size for p in (*state.shares, *state.hull.points)) + state.z.size + state.anchor.size

    assert numbers(50) == numbers(500)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batches": 0}, "batches must be at least 1, got 0"),
        ({"memory": 0}, "memory must be at least 1, got 0"),
        ({"proximity": -1.0}, "proximity and share must not be negative"),
        ({"proximity": np.inf}, "proximity and share must not be negative or infinite"),
        ({"share": -0.1}, "proximity and share must not be negative"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        BatchFrankWolfe(**settings)


@pytest.mark.parametrize(("lam", "tol", "most"), [(0.01, 1e-2, 40), (None, 1e-1, 80)])
def test_passes_on_ocr(data_folder, lam, tol, most):
    """The figures of docs/experiments.md with some room, certificates included."""
    from benchmarks.datasets import ocr_problem

    problem = ocr_problem(data_folder, lam=lam)
    result = minimize(problem, BatchFrankWolfe(), tol=tol, max_passes=most)
    assert result.converged
    assert problem.primal(result.w) == pytest.approx(result.certificate.primal, abs=1e-9)
