import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from m3n import Problem, Status, minimize
from m3n.features import Dense, chain_features
from m3n.losses import Hamming, NormalizedHamming
from m3n.solvers import ExcessiveGap
from m3n.solvers.excessive_gap import LEAST_ANSWERS, MOST_ANSWERS, ROOM
from m3n.structures import Chain, Multiclass
from tests.solvers.algorithm2 import Algorithm2
from tests.tiny import Enumerated, PartCoordinates, chain_problem, iterates, multiclass_problem

PROBLEMS = [chain_problem, multiclass_problem]
ROUNDING = 1e-10  # sums of a few hundred terms of size 1e3 at most


def test_same_iterates_as_the_literal_algorithm_2():
    problem = chain_problem(lengths=(1, 3, 2, 5), labels=4)
    reference = Algorithm2(problem, problem.radius)
    for state in iterates(problem, ExcessiveGap(schedule="paper"), 60):
        assert state.mu == pytest.approx(reference.mu, rel=1e-12)
        np.testing.assert_allclose(state.w, reference.w, atol=1e-10)
        np.testing.assert_allclose(state.hull.points[0].u, reference.weights(reference.alpha), atol=1e-10)
        assert state.dual == pytest.approx(reference.dual(), abs=1e-10)
        reference.step()


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_theorem_on_every_iterate(make, seed):
    """Invariant, bound on the duality gap and its KL form on the dual gap; exact radius, independent optimum."""
    problem = make(seed=seed)
    known = Enumerated.of(problem)
    alpha_star = known.solve()
    best, divergence = known.dual(alpha_star), known.divergence(alpha_star)
    rate = 6 * known.radius**2 / problem.lam
    for k, state in enumerate(iterates(problem, ExcessiveGap(schedule="paper", radius=known.radius), 300), start=1):
        assert state.k == k
        assert state.mu == pytest.approx(rate / ((k + 1) * (k + 2)))
        assert state.lipschitz == pytest.approx(known.radius**2 / problem.lam)
        assert state.smoothed == pytest.approx(known.smoothed(state.w, state.mu), abs=ROUNDING)
        assert state.smoothed <= state.dual + ROUNDING
        gap = known.primal(state.w) - state.dual
        assert -ROUNDING <= gap <= state.mu * problem.log_size + ROUNDING
        assert gap <= state.bound + ROUNDING
        assert best - state.dual <= rate * divergence / ((k + 1) * (k + 2)) + ROUNDING


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_invariant_under_the_adaptive_schedule(make):
    problem = make()
    known = Enumerated.of(problem)
    solvers = {"center": "uniform"}, {"memory": 0}, {"strength": 50.0}, {"spend": 0.0}, {"spend": 0.9}, {"warm": 1}, {}
    for solver in (ExcessiveGap(**{"warm": 0, **settings}) for settings in solvers):
        state = joined(problem, solver)
        previous = state
        for _ in range(150):
            state = solver.step(problem, state)
            assert state.smoothed <= state.dual + ROUNDING
            assert state.dual >= previous.dual - ROUNDING or state.k > previous.k
            assert known.primal(state.w) - state.dual <= state.bound + ROUNDING
            previous = state
        assert state.k > 75  # most steps succeed


def joined(problem, solver):
    """The first state after the warm passes."""
    state = solver.init(problem)
    while state.early is not None:
        state = solver.step(problem, state)
    return state


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("memory", [None, 0])
def test_the_shifted_prox_keeps_the_theorem(make, memory):
    """After warm passes J_mu - c mu <= D, J_mu by enumeration, with the same shift c at every step."""
    problem = make(seed=3)
    known = Enumerated.of(problem)
    solver = ExcessiveGap(center="uniform", warm=2, memory=memory)
    state = joined(problem, solver)
    shift = state.diameter - problem.log_size
    assert shift >= 0.0
    assert state.smoothed == pytest.approx(min(state.dual, known.smoothed(state.w, state.mu)), abs=ROUNDING)
    for _ in range(60):
        assert known.smoothed(state.w, state.mu) - shift * state.mu == pytest.approx(state.smoothed, abs=ROUNDING)
        assert state.smoothed <= state.dual + ROUNDING
        assert known.primal(state.w) - state.dual <= state.bound + ROUNDING
        expected = known.divergence(known.gibbs(state.w, state.mu)) + shift
        assert state.divergence == pytest.approx(expected, abs=1e-8)
        state = solver.step(problem, state)


def test_a_shift_is_needed_and_used():
    """One warm pass at a low estimate leaves J_mu(w) above D: without the shift there would be no invariant."""
    problem = chain_problem(seed=3)
    known = Enumerated.of(problem)
    solver = ExcessiveGap(center="uniform", warm=1)
    state = solver.step(problem, solver.init(problem))
    low = replace(state, early=replace(state.early, estimate=1e-3))
    first = solver.step(problem, low)
    assert known.smoothed(first.w, first.mu) > first.dual + 0.01
    assert first.diameter > problem.log_size + 1.0
    assert first.smoothed == pytest.approx(first.dual)


def test_warm_passes_are_ordinary_steps():
    """Every one asks the exp-oracle once per example, knows a true dual point, and the last leaves nothing behind."""
    problem = chain_problem()
    best = Enumerated.of(problem).dual(Enumerated.of(problem).solve())
    solver = ExcessiveGap(warm=4)
    duals = []
    for k, state in enumerate(iterates(problem, solver, 6)):
        assert (state.early is not None) == (k <= 4)
        assert state.early is None or (state.bound == np.inf and not state.stalled)
        assert state.dual == pytest.approx(problem.dual(state.hull.points[0].u, state.hull.points[0].b))
        duals.append(state.dual)
    assert 0.0 == duals[0] < duals[1] <= duals[-1] <= best
    assert not problem._pieces  # no copy of the data
    assert ExcessiveGap(warm=0).init(problem).early is ExcessiveGap("paper").init(problem).early is None


def test_warm_passes_save_passes():
    problem = chain_problem(lengths=(3, 4, 5, 3, 6) * 8, labels=3, lam=0.01)
    cold, warm = (minimize(problem, ExcessiveGap(warm=count), tol=3e-2).soft_calls for count in (0, 5))
    assert warm < 0.8 * cold


def test_the_seed_is_that_of_the_batches():
    problem = chain_problem(lengths=(3, 4, 5, 3, 6) * 8, labels=3)
    first, same, other = (joined(problem, ExcessiveGap(seed=seed)).w for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_memory_by_the_size_of_the_weights():
    problem = chain_problem()
    assert ExcessiveGap()._kept(problem) == MOST_ANSWERS
    assert ExcessiveGap(memory=3)._kept(problem) == 3
    assert ExcessiveGap("paper")._kept(problem) == 0
    for dim, expected in ((ROOM // 10, 10), (10 * ROOM, LEAST_ANSWERS)):
        problem.dim = dim  # nothing of that size is allocated
        assert ExcessiveGap()._kept(problem) == expected


@pytest.mark.parametrize("make", PROBLEMS)
def test_divergence_is_that_of_the_oracle_from_the_centre(make):
    problem = make()
    known = Enumerated.of(problem)
    for state in iterates(problem, ExcessiveGap(center="uniform", warm=0), 40):
        assert state.divergence == pytest.approx(known.divergence(known.gibbs(state.w, state.mu)), abs=1e-8)


def test_spending_slack_saves_passes():
    problem = chain_problem(lengths=(3, 4, 5, 3, 6) * 4, labels=3, lam=0.01)
    passes = [minimize(problem, ExcessiveGap(spend=share), tol=1e-3).soft_calls for share in (0.0, 0.3)]
    assert passes[1] < 0.95 * passes[0]


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize(
    ("solver", "lam"),
    [
        (ExcessiveGap(), 0.1),
        (ExcessiveGap(center="uniform"), 0.1),
        (ExcessiveGap(memory=0), 0.1),
        (ExcessiveGap(warm=0), 0.1),
        (ExcessiveGap(schedule="paper", center="gold"), 1.0),  # passes grow as one over the root of lam
    ],
    ids=["default", "uniform", "no memory", "cold", "paper with gold centre"],
)
def test_optimum_of_an_independent_qp_solver(make, solver, lam):
    problem = make(seed=3, lam=lam)
    known = Enumerated.of(problem)
    best = known.dual(known.solve())
    result = minimize(problem, solver, tol=1e-4, max_passes=20_000)
    assert result.status is Status.TOLERANCE
    assert result.certificate.dual <= best + 1e-9 <= result.certificate.primal + 2e-9
    assert 0 <= result.certificate.gap <= 1e-4
    assert result.certificate.primal == pytest.approx(known.primal(result.w), abs=1e-12)


@pytest.mark.parametrize("solver", [ExcessiveGap(), ExcessiveGap(memory=0, warm=0), ExcessiveGap(schedule="paper")])
@pytest.mark.parametrize("make", PROBLEMS)
def test_the_dual_recomputed_from_scratch(make, solver):
    """In part coordinates the solver's vectors are marginals: alpha can be looked at, and D computed anew."""
    plain = make()
    parts = PartCoordinates(plain.features)
    y = plain.structure.unpack(plain.gold)
    loss = NormalizedHamming() if isinstance(plain.structure, Chain) else Hamming()
    lifted = Problem(plain.structure, parts, y, loss=loss, lam=plain.lam, n_jobs=1)
    gold = parts.adjoint(plain.structure.encode(plain.gold))
    for state, twin in zip(iterates(lifted, solver, 80), iterates(plain, solver, 80), strict=True):
        if solver.memory == 0 or solver.schedule == "paper":  # the small quadratic programme amplifies rounding
            assert state.dual == pytest.approx(twin.dual, abs=1e-8)
        marginals = parts.parts(gold - plain.n * plain.lam * state.hull.points[0].u)
        node = marginals[0]
        assert node.min() >= -1e-12
        np.testing.assert_allclose(node.sum(axis=1), 1.0, atol=1e-12)
        u = plain.features.adjoint(parts.parts(gold)) - plain.features.adjoint(marginals)
        u /= plain.n * plain.lam
        dual = plain.cost.expected(marginals) / plain.n - plain.lam / 2 * u @ u
        assert state.dual == pytest.approx(dual, abs=1e-10)


def test_chain_equals_its_enumeration(random):
    """A chain of equal lengths is also a multiclass problem with one label per labelling: same iterates."""
    problem = chain_problem(lengths=(2, 2, 2), labels=3)
    known = Enumerated.of(problem)
    state = ExcessiveGap(schedule="paper", radius=known.radius).init(problem)
    for _ in range(30):
        alpha = known.gibbs(state.w, state.mu)
        np.testing.assert_allclose(state.oracle.u, alpha @ known.psi / problem.lam, atol=1e-10)
        assert state.oracle.b == pytest.approx(alpha @ known.ell)
        state = ExcessiveGap(schedule="paper", radius=known.radius).step(problem, state)


def test_adaptive_beats_the_paper_by_far():
    problem = chain_problem(lengths=(3, 4, 5, 3, 6), labels=3, lam=0.05)
    adaptive = minimize(problem, ExcessiveGap(), tol=1e-2)
    paper = minimize(problem, ExcessiveGap(schedule="paper"), tol=1e-2, max_passes=10 * adaptive.trace[-1].passes)
    assert adaptive.converged
    assert not paper.converged


def test_one_exp_oracle_pass_per_step():
    problem = chain_problem()
    state = ExcessiveGap().init(problem)
    for _ in range(20):
        before = problem.soft_calls, problem.hard_calls
        state = ExcessiveGap().step(problem, state)
        assert problem.soft_calls - before[0] == problem.n
        assert problem.hard_calls == before[1]


def test_states_are_not_changed_in_place():
    problem = chain_problem()
    state = ExcessiveGap().init(problem)
    for _ in range(10):
        copies = state.w.copy(), [p.u.copy() for p in state.hull.points], state.hull.gram.copy()
        new = ExcessiveGap().step(problem, state)
        np.testing.assert_array_equal(state.w, copies[0])
        for point, copy in zip(state.hull.points, copies[1], strict=True):
            np.testing.assert_array_equal(point.u, copy)
        np.testing.assert_array_equal(state.hull.gram, copies[2])
        state = new


def test_gram_matrix_stays_true():
    problem = chain_problem()
    for state in iterates(problem, ExcessiveGap(memory=5), 100):
        exact = np.array([[p.u @ q.u for q in state.hull.points] for p in state.hull.points])
        np.testing.assert_allclose(state.hull.gram, exact, rtol=1e-9, atol=1e-9)
    assert len(state.hull.points) == 6


def test_same_settings_same_bits():
    results = [minimize(chain_problem(n_jobs=2), tol=1e-3) for _ in range(2)]
    np.testing.assert_array_equal(results[0].w, results[1].w)
    assert results[0].certificate == results[1].certificate


def test_stalls_instead_of_running_for_ever():
    """With a radius that is far too small, steps fail beyond the alleged ceiling, as they would by rounding."""
    problem = chain_problem(lam=1.0)
    result = minimize(problem, ExcessiveGap(radius=1e-3), tol=1e-9, max_passes=100_000)
    assert result.status is Status.STALLED
    known = Enumerated.of(problem)
    assert result.certificate.dual <= known.dual(known.solve()) + 1e-9 <= result.certificate.primal + 2e-9


@pytest.mark.parametrize("schedule", ["adaptive", "paper"])
def test_one_label_is_trivial(schedule):
    problem = Problem(Multiclass(3, 1), Dense(np.ones((3, 2)), 1), [0, 0, 0], n_jobs=1)
    result = minimize(problem, ExcessiveGap(schedule=schedule), tol=1e-9)
    assert result.status is Status.TOLERANCE
    assert result.certificate.primal == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"schedule": "fast"}, "schedule must be 'adaptive' or 'paper', got 'fast'"),
        ({"center": "middle"}, "center must be"),
        ({"strength": -1.0}, "must not be negative"),
        ({"memory": -1}, "must not be negative"),
        ({"warm": -1}, "must not be negative"),
        ({"spend": 1.0}, "0 <= spend < 1"),
        ({"shrink": 0.0}, "0 < shrink"),
        ({"grow": 1.0}, "0 < shrink"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ExcessiveGap(**settings)


def long_problem(n):
    random = np.random.default_rng(0)
    lengths = np.full(n, 10)
    X = random.normal(size=(10 * n, 5))
    y = random.integers(6, size=(n, 10))
    return Problem(Chain(lengths, 6), chain_features(Dense(X, 6), 6), y, n_jobs=1)


def state_bytes(state):
    return state.w.nbytes + state.hull.gram.nbytes + state.oracle.u.nbytes + sum(p.u.nbytes for p in state.hull.points)


def test_memory_does_not_grow_with_n():
    """Training keeps O(p) numbers; a step allocates less than a tenth of the score buffer besides."""
    sizes = []
    for n in (500, 4000):
        problem = long_problem(n)
        state = ExcessiveGap().init(problem)  # compiles, and allocates the one score buffer
        for _ in range(10):
            state = ExcessiveGap().step(problem, state)
        buffer = int(np.prod(problem.structure.shapes[0])) * 8
        tracemalloc.start()
        try:
            for _ in range(5):
                state = ExcessiveGap().step(problem, state)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert state.early is None
        assert peak < 0.1 * buffer + 60 * 8 * problem.dim
        sizes.append(state_bytes(state))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(("lam", "tol", "most"), [(0.01, 1e-1, 60), (0.01, 1e-2, 130), (None, 1e-1, 330)])
def test_passes_on_ocr(data_folder, lam, tol, most):
    """The figures of docs/experiments.md with some room (6251 training words), certificates included."""
    from benchmarks.datasets import ocr_problem

    problem = ocr_problem(data_folder, lam=lam)
    result = minimize(problem, ExcessiveGap(), tol=tol, max_passes=most)
    assert result.converged
    gaps = [record.gap for record in result.trace]
    assert all(a >= b for a, b in pairwise(gaps))
    again = Problem(
        problem.structure, problem.features, problem.structure.unpack(problem.gold), loss=NormalizedHamming(), lam=lam
    )
    assert again.primal(result.w) == pytest.approx(result.certificate.primal, abs=1e-9)


def test_replacing_a_setting_keeps_the_rest():
    assert replace(ExcessiveGap(strength=2.0), memory=3) == ExcessiveGap(strength=2.0, memory=3)
