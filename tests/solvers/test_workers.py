"""Sweeps on several threads: every visit once, the same in every run, states as true as those of one thread."""

from dataclasses import replace

import numpy as np
import pytest

from m3n import minimize
from m3n.compiled.sweeps.meetings import meet
from m3n.solvers import DualAscent, SequentialDual, SparseDualAscent, workers
from m3n.solvers.forms import BadState, check_state
from m3n.solvers.workers import Pace, alone, dealt, room_to_move, visited, workers_for
from tests.solvers.test_sequential_dual import differences
from tests.tiny import Enumerated, chain_problem, iterates

SOLVERS = {
    "sequential_dual": (SequentialDual(), {}),
    "dual_ascent": (DualAscent(), {"temperature": 1.0}),
    "sparse_dual_ascent": (SparseDualAscent(), {"temperature": 1.0, "l1": 0.05}),
}


@pytest.fixture
def busy(monkeypatch):
    """Small problems are visited on several threads, too."""
    monkeypatch.setattr(workers, "LEAST_WORK", 0)
    monkeypatch.setattr(workers, "LEAST_VISITS", 2)
    monkeypatch.setattr(Pace.__init__, "__defaults__", (8, workers.FIRST))  # all threads from the start


@pytest.fixture(params=["compared", "told"])
def way(request, busy, monkeypatch):
    """Weights are compared as a whole, or changes are told, as where weights are many."""
    if request.param == "told":
        monkeypatch.setattr(workers, "SMALL", 0)
    return request.param


def many(seed=0, jobs=2, **settings):
    lengths = np.random.default_rng(seed).integers(1, 6, size=40)
    return chain_problem(seed=seed, lengths=tuple(lengths), n_jobs=jobs, **settings)


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("each", [1, 4, 100])
def test_every_visit_is_dealt_once_and_evenly(count, each):
    work = np.random.default_rng(each).integers(1, 50, size=101)
    team = dealt(work, count, each, room_to_move([np.zeros(3)] * count))
    assert sorted(np.concatenate([worker.visits for worker in team]).tolist()) == list(range(101))
    rounds = len(team[0].cuts) - 1
    for number in range(rounds):
        visits = [worker.visits[worker.cuts[number] : worker.cuts[number + 1]] for worker in team]
        assert max(map(len, visits)) <= each
        inside = np.concatenate(visits)  # a round is a stretch of the order
        assert sorted(inside.tolist()) == list(range(number * count * each, min((number + 1) * count * each, 101)))
        loads = [work[own].sum() for own in visits]
        assert max(loads) - min(loads) <= work[inside].max() or number == rounds - 1


def test_one_worker_visits_in_order():
    worker = alone(4)
    assert (worker.visits.tolist(), worker.cuts.tolist(), worker.workers) == ([0, 1, 2, 3], [0, 4], 1)


def test_the_pace_follows_from_what_was_lost():
    assert Pace(round=8).after(2, 0.97, 1.0).round == 16
    longest = workers.LONGEST
    assert Pace(round=longest).after(2, 1.0, 1.0) == Pace(4, longest // 2)
    assert Pace(8, longest).after(4, 1.0, 1.0) == Pace(8, longest)  # there are no more threads
    assert Pace(round=8).after(2, 0.9, 1.0) == Pace(round=8)
    assert Pace(4, 8).after(4, 0.5, 1.0) == Pace(4, 4)
    assert Pace(8, 8).after(8, 0.9, 1.0) == Pace(8, 4)  # the more there are, the less may be lost
    assert Pace(4, 1).after(4, -3.0, 1.0).workers == 2  # visits side by side did harm: fewer of them
    assert Pace(workers=1, round=1).after(1, 0.5, 1.0).workers == 1
    assert Pace(round=8).after(2, 0.0, 0.0) == Pace(round=8)


@pytest.mark.parametrize("pace", [Pace(0), Pace(2, 0), Pace(2, -1), Pace(2, 1 << 40)])
def test_a_pace_from_a_file_is_checked(pace):
    problem = many()
    state = SequentialDual().init(problem)
    check_state(problem, SequentialDual(), state)
    with pytest.raises(BadState, match="no run has Pace"):
        check_state(problem, SequentialDual(), replace(state, pace=pace))


def test_little_work_is_done_on_one_thread(monkeypatch):
    assert workers_for(many(jobs=2), Pace(), "hard") == 1
    monkeypatch.setattr(workers, "LEAST_WORK", 0)
    monkeypatch.setattr(workers, "LEAST_VISITS", 2)
    assert workers_for(many(jobs=8), Pace(), "hard") == 2
    assert workers_for(many(jobs=100), Pace(64), "hard") == 20
    assert workers_for(many(jobs=8), Pace(workers=3), "hard") == 3


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("jobs", [2, 5])
def test_same_seed_and_threads_same_result(name, jobs, way):
    solver, settings = SOLVERS[name]
    first, second = (minimize(many(jobs=jobs, **settings), solver, tol=0.0, max_passes=12) for _ in range(2))
    np.testing.assert_array_equal(first.w, second.w)
    assert first.certificate == second.certificate


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("jobs", [2, 5])
@pytest.mark.parametrize("seed", range(2))
def test_threads_find_the_optimum_of_one(name, jobs, seed, way):
    solver, settings = SOLVERS[name]
    lam = 0.002
    ours = minimize(many(seed, jobs, lam=lam, **settings), solver, tol=1e-5, max_passes=2000)
    alone = minimize(many(seed, 1, lam=lam, **settings), solver, tol=1e-5, max_passes=2000)
    assert ours.converged and alone.converged
    assert max(ours.certificate.dual, alone.certificate.dual) <= min(ours.certificate.primal, alone.certificate.primal)


@pytest.mark.parametrize("jobs", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_caches_that_several_threads_filled_are_true(jobs, seed, busy):
    """Lists, losses, Gram matrices, weights, iterate and dual value after threads have shared a pool."""
    problem = chain_problem(seed, lengths=(2, 3, 1, 3, 2, 2, 3, 1, 2, 3, 2, 2), lam=0.01, n_jobs=jobs)
    for state in list(iterates(problem, SequentialDual(), 6))[1:]:
        check_state(problem, SequentialDual(), state)
        assert state.caches.size[0] <= len(state.caches.parts)
        u, loss = np.zeros(problem.dim), 0.0
        for i in range(problem.n):
            slots, psi, ell = zip(*differences(problem, state.caches, i), strict=True)
            alpha = state.caches.alpha[list(slots)]
            assert alpha.min() >= 0.0 and alpha.sum() == pytest.approx(1.0, abs=1e-12)
            np.testing.assert_allclose(state.caches.losses[list(slots)], ell, atol=1e-14)
            side, at = state.caches.first[i + 1] - state.caches.first[i], state.caches.squares[i]
            gram = state.caches.gram[at : at + side**2].reshape(side, side)[: len(slots), : len(slots)]
            np.testing.assert_allclose(gram, np.array(psi) @ np.array(psi).T, atol=1e-12)
            u += alpha @ np.array(psi) / (problem.lam * problem.n)
            loss += alpha @ np.array(ell) / problem.n
        w = state.proximal.iterate(problem.lam, u)
        if state.schedule.passes == 3:  # the centre moves only later
            np.testing.assert_allclose(state.iterate.point, w[state.support], atol=1e-11)
        assert state.iterate.loss == pytest.approx(loss, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_dual_stays_below_the_optimum(seed, way):
    for name, (solver, settings) in SOLVERS.items():
        if "l1" in settings:
            continue
        problem = many(seed, 3, lam=0.01, **settings)
        best = minimize(many(seed, 1, lam=0.01, **settings), solver, tol=1e-8, max_passes=4000).certificate
        for state in iterates(problem, solver, 6):
            assert state.dual <= best.primal + 1e-12, name


def test_dual_weights_are_those_of_the_distributions(way):
    """D and w of dual ascent on three threads, from its potentials by enumeration."""
    problem = chain_problem(1, lengths=(2, 3, 1, 3, 2, 2, 3, 1, 2), lam=0.05, n_jobs=3, temperature=1.0)
    *_, state = iterates(problem, DualAscent(), 4)
    point, known = state.memory.point, Enumerated.of(problem)
    vector, entropy = np.zeros(problem.dim), 0.0
    for i in range(problem.n):
        alone, _ = problem.structure.select(np.array([i]))
        potentials = point.potentials[point.starts[i] : point.starts[i + 1]]
        encoded = [alone.encode(y) for y in problem.structure.enumerate(i)]
        scores = np.array([np.concatenate([part.ravel() for part in parts]) @ potentials for parts in encoded])
        beta = np.exp(scores - scores.max())
        beta /= beta.sum()
        entropy -= beta @ np.log(beta)
        vector += beta @ known.psi[known.owner == i]
    u = vector / (problem.lam * problem.n)
    np.testing.assert_allclose(state.w, u, atol=1e-10)
    assert state.dual == pytest.approx(entropy / problem.n - problem.lam / 2 * u @ u, abs=1e-10)


def test_a_worker_that_fails_is_not_waited_for(busy):
    """The others go on without it, and its error is raised."""
    team = dealt(np.ones(8), 2, 1, room_to_move([np.zeros(1)] * 2))

    def visit(worker):
        if worker.number == 1:
            raise MemoryError("no room")
        for number in range(4):
            meet(worker, number)

    with pytest.raises(MemoryError, match="no room"):
        visited(visit, [(worker,) for worker in team], team)
