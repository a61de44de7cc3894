"""The sequential dual method: what its caches hold, what a visit reaches, what the acceleration keeps."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import random_array

from m3n import Problem, minimize
from m3n.features import Dense, Observed, Sparse, chain_features, observed_pairs
from m3n.losses import NormalizedHamming
from m3n.solvers import BlockFrankWolfe, SequentialDual
from m3n.solvers.sequential_state import Schedule
from m3n.solvers.working_sets import roomier
from m3n.structures import Chain
from tests.problem.test_blocks import edge_problem
from tests.tiny import Enumerated, chain_problem, iterates, multiclass_problem

CASES = {
    "chain": lambda: chain_problem(seed=3),
    "long chains": lambda: chain_problem(seed=1, lengths=(6, 5, 7, 1, 6), labels=2, lam=0.01),
    "multiclass": lambda: multiclass_problem(seed=3),
    "edges": lambda: edge_problem(seed=3),
}


@pytest.fixture(params=CASES)
def problem(request):
    return CASES[request.param]()


def outputs_of(problem, caches, i):
    """The parts of every cached output of example i, found again from its difference to gold."""
    blocks = problem.blocks
    gold = blocks.gold[i, : blocks.gold_counts[i]]
    for slot in range(caches.first[i], caches.first[i] + caches.used[i]):
        counts = np.bincount(gold, minlength=blocks.largest)
        for code in caches.parts[caches.starts[slot] : caches.starts[slot] + caches.lengths[slot]]:
            counts[code if code >= 0 else ~code] += 1 if code >= 0 else -1
        yield slot, counts


def differences(problem, caches, i):
    """psi and ell of every cached output of example i, looked up in the enumeration."""
    known = Enumerated.of(problem)
    alone, _ = problem.structure.select(np.array([i]))
    listed = []
    for y, psi, ell in zip(
        problem.structure.enumerate(i), known.psi[known.owner == i], known.ell[known.owner == i], strict=True
    ):
        encoded = np.concatenate([part.ravel() for part in alone.encode(y)])
        listed.append((encoded, psi, ell))
    for slot, counts in outputs_of(problem, caches, i):
        found = [(psi, ell) for encoded, psi, ell in listed if np.array_equal(encoded, counts[: len(encoded)])]
        assert len(found) == 1, "a cached output is no output of the example"
        yield slot, *found[0]


def test_caches_hold_outputs_with_their_losses_and_gram_matrices(problem):
    *_, state = iterates(problem, SequentialDual(), 6)
    caches = state.caches
    for i in range(problem.n):
        slots, psi, ell = zip(*differences(problem, caches, i), strict=True)
        assert len(np.unique(psi, axis=0)) == len(psi) or problem.dim < 10  # no output twice
        np.testing.assert_allclose(caches.losses[list(slots)], ell, atol=1e-14)
        np.testing.assert_array_equal(psi[0], 0.0)  # gold comes first
        side, at = caches.first[i + 1] - caches.first[i], caches.squares[i]
        gram = caches.gram[at : at + side**2].reshape(side, side)[: len(slots), : len(slots)]
        np.testing.assert_allclose(gram, np.array(psi) @ np.array(psi).T, atol=1e-12)


def test_the_iterate_is_that_of_the_weights(problem):
    """w = (lam u + kappa z)/(lam + kappa) with u and b recomputed from alpha by enumeration."""
    solver = SequentialDual()
    for state in list(iterates(problem, solver, 8))[1:]:
        u, loss = np.zeros(problem.dim), 0.0
        for i in range(problem.n):
            weights = state.caches.alpha[state.caches.first[i] : state.caches.first[i] + state.caches.used[i]]
            assert weights.min() >= 0.0
            assert weights.sum() == pytest.approx(1.0, abs=1e-12)
            for slot, psi, ell in differences(problem, state.caches, i):
                u += state.caches.alpha[slot] * psi / (problem.lam * problem.n)
                loss += state.caches.alpha[slot] * ell / problem.n
        centre, point = np.zeros(problem.dim), np.zeros(problem.dim)
        centre[state.support[: len(state.proximal.centre)]] = state.proximal.centre
        point[state.support[: len(state.iterate.point)]] = state.iterate.point
        strength = problem.lam + state.proximal.kappa
        np.testing.assert_allclose(point, (problem.lam * u + state.proximal.kappa * centre) / strength, atol=1e-10)
        assert state.iterate.loss == pytest.approx(loss, abs=1e-12)
        assert state.dual >= loss - problem.lam / 2 * u @ u - 1e-12  # alpha is one of the points that are mixed


def test_without_acceleration_the_dual_never_falls(problem):
    duals = [state.dual for state in iterates(problem, SequentialDual(proximity=0.0), 15)]
    assert all(b >= a - 1e-14 for a, b in pairwise(duals))


@pytest.mark.parametrize("proximity", [None, 0.0, 0.5])
@pytest.mark.parametrize("sweeps", [None, 1, 4])
def test_every_setting_reaches_the_optimum(problem, proximity, sweeps):
    result = minimize(problem, SequentialDual(proximity=proximity, sweeps=sweeps), tol=1e-5, max_passes=3000)
    assert result.certificate.gap <= 1e-5
    assert result.certificate.dual <= Enumerated.of(problem).optimum() + 1e-9


def test_steps_after_the_online_passes_know_their_primal_value(problem):
    known = Enumerated.of(problem)
    states = list(iterates(problem, SequentialDual(online=2), 6))
    assert [np.isnan(state.primal) for state in states[:4]] == [True, True, False, False]
    for state in states[2:]:
        assert state.primal == pytest.approx(known.primal(state.w), abs=1e-12)
    assert [state.schedule.passes for state in states[:5]] == [0, 1, 3, 4, 5]


def test_certificates_cost_no_pass_of_their_own(problem):
    result = minimize(problem, SequentialDual(), tol=1e-9, max_passes=30)
    last = result.trace[-1]
    assert result.hard_calls == problem.n * result.state.schedule.passes + last.evaluation_calls
    assert last.evaluation_calls <= 2 * problem.n  # J(0), and one more where an estimate promised too much
    assert len(result.trace) >= result.state.schedule.passes - 2


def test_more_room_changes_nothing(problem):
    *_, state = iterates(problem, SequentialDual(), 5)
    caches = state.caches
    bigger = roomier(caches, 100)
    assert len(bigger.parts) >= caches.lengths.sum() + 100
    for i in range(problem.n):
        before, after = outputs_of(problem, caches, i), outputs_of(problem, bigger, i)
        side, wide = np.diff(caches.first)[i], np.diff(bigger.first)[i]
        used = caches.used[i]
        assert wide == (2 * side if used == side else side)
        for (old, counts), (new, same) in zip(before, after, strict=True):
            np.testing.assert_array_equal(counts, same)
            for array in ("alpha", "losses", "seen"):
                assert getattr(caches, array)[old] == getattr(bigger, array)[new]
        gram = caches.gram[caches.squares[i] : caches.squares[i + 1]].reshape(side, side)
        copy = bigger.gram[bigger.squares[i] : bigger.squares[i + 1]].reshape(wide, wide)
        np.testing.assert_array_equal(gram[:used, :used], copy[:used, :used])


def test_observed_pairs_only():
    random = np.random.default_rng(0)
    lengths, labels = (3, 2, 4, 3), 3
    X = (random.random((sum(lengths), 6)) < 0.4).astype(float)
    y = [random.integers(labels, size=length) for length in lengths]
    features = chain_features(Observed(X, observed_pairs(X, np.concatenate(y), labels)), labels)
    settings = {"loss": NormalizedHamming(), "lam": 0.05, "n_jobs": 1}
    problem = Problem(Chain(lengths, labels), features, y, **settings)
    result = minimize(problem, SequentialDual(), tol=1e-6, max_passes=2000)
    assert result.certificate.dual <= Enumerated.of(problem).optimum() + 1e-9 <= result.certificate.primal + 2e-9
    assert result.certificate.gap <= 1e-6


def test_fewer_passes_than_block_frank_wolfe():
    """On a problem with little regularisation, which is what the acceleration is for."""
    random = np.random.default_rng(0)
    lengths = random.integers(2, 7, size=60)
    y = [random.integers(4, size=length) for length in lengths]
    X = np.eye(4)[np.concatenate(y)] + 0.8 * random.normal(size=(lengths.sum(), 4))
    problem = Problem(Chain(lengths, 4), chain_features(Dense(X, 4), 4), y, lam=1 / 600, n_jobs=1)
    ours, theirs = (
        minimize(problem, solver, tol=1e-2 * problem.start(), max_passes=2000)
        for solver in (SequentialDual(), BlockFrankWolfe())
    )
    assert ours.certificate.gap <= 1e-2 * problem.worst_loss
    assert 3 * ours.trace[-1].passes < theirs.trace[-1].passes


def test_no_sweeps_beyond_the_usual_ones_where_outputs_are_missing():
    """Few sentences, many rare words: every pass finds better outputs, and sweeps over the known ones gain nothing."""
    random = np.random.default_rng(0)
    lengths = random.integers(10, 30, size=20)
    X = random_array((int(lengths.sum()), 2000), density=0.004, format="csr", rng=random)
    gold = np.split(random.integers(6, size=X.shape[0]), np.cumsum(lengths)[:-1])
    problem = Problem(Chain(lengths, 6), chain_features(Sparse(X, 6), 6), gold, lam=1.0 / 20, n_jobs=1)
    result = minimize(problem, SequentialDual(), tol=0.0, rtol=0.05)
    assert result.converged
    assert result.state.schedule.swept <= 20 * result.state.schedule.passes  # 20 is the most of the usual ones


def test_effort_grows_where_sweeps_have_something_left_to_close():
    schedule = Schedule(passes=20, effort=2.0)
    assert schedule.judged(rise=0.0, gap=1.0, spread=0.5, n=10, lagged=True).effort == 4.0
    assert schedule.judged(rise=0.0, gap=1.0, spread=0.01, n=10, lagged=True).effort == 1.0  # outputs are missing
    late = Schedule(passes=1000, effort=2.0)
    assert late.judged(rise=0.0, gap=1.0, spread=0.01, n=10, lagged=True).effort == 4.0  # that has lasted for too long
    assert schedule.judged(rise=0.0, gap=1.0, spread=0.5, n=10, lagged=False).effort == 1.0  # for the first time
    assert schedule.judged(rise=0.5, gap=1.0, spread=0.5, n=10, lagged=True).effort == 1.0
    assert schedule.judged(rise=0.0, gap=1.0, spread=0.5, n=5000, lagged=True).effort == 2.0  # 10,000 visits a sweep


@pytest.mark.parametrize("settings", [{"proximity": -1.0}, {"sweeps": 0}, {"online": 0}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ValueError, match="must"):
        SequentialDual(**settings)
