"""Block Frank-Wolfe against its own theory: line search, averages, working sets, rate."""

from dataclasses import dataclass

import numpy as np
import pytest

from m3n import minimize
from m3n.compiled.sweeps.frank_wolfe import Totals, sweep
from m3n.solvers import BlockFrankWolfe, GapSampling, Pairwise, PlaneCache, Uniform
from m3n.solvers.working_sets import copied, dual_point, enlarged, gold_sets
from tests.problem.test_blocks import edge_problem
from tests.tiny import Enumerated, chain_problem, multiclass_problem

PROBLEMS = [chain_problem, multiclass_problem, edge_problem]
VARIANTS = {
    "plain": BlockFrankWolfe(),
    "pairwise": BlockFrankWolfe(move=Pairwise()),
    "cached": BlockFrankWolfe(cache=PlaneCache(4)),
    "all": BlockFrankWolfe(order=GapSampling(refresh=3, pieces=2), move=Pairwise(), cache=PlaneCache(2)),
}


def iterates(problem, solver, steps):
    state = solver.init(problem)
    for _ in range(steps):
        state = solver.step(problem, state)
        yield state


@dataclass
class Dense:
    """The algorithm with every alpha written out: the reference for visits, steps and averages."""

    known: Enumerated

    def __post_init__(self):
        known = self.known
        gold = (known.ell == 0) & (np.abs(known.psi).sum(axis=1) == 0)
        first = [np.flatnonzero((known.owner == i) & gold)[0] for i in range(known.problem.n)]
        self.alpha = np.zeros(len(known.ell))
        self.alpha[first] = 1 / known.problem.n
        self.average = self.alpha.copy()
        self.k = 0

    def visit(self, i, pairwise):
        known, lam = self.known, self.known.problem.lam
        mine = np.flatnonzero(known.owner == i)
        w = self.alpha @ known.psi / lam
        scores = known.ell[mine] - known.psi[mine] @ w
        corner = np.zeros(len(self.alpha))
        corner[mine[scores.argmax()]] = 1 / known.problem.n
        start, most = self.alpha * (known.owner == i), 1.0
        if pairwise:
            used = mine[self.alpha[mine] > 1e-17]
            away = used[(known.ell[used] - known.psi[used] @ w).argmin()]
            most = self.alpha[away] * known.problem.n
            start = np.zeros(len(self.alpha))
            start[away] = 1 / known.problem.n
        step = corner - start
        slope = step @ (known.ell - known.psi @ w)
        curvature = np.sum((step @ known.psi) ** 2) / lam
        gamma = min(most, slope / curvature) if curvature > 0 and slope > 0 else 0.0
        self.alpha = self.alpha + gamma * step
        rho = 2 / (self.k + 2)
        self.average = (1 - rho) * self.average + rho * self.alpha
        self.k += 1
        return gamma, step


@pytest.mark.parametrize("pairwise", [False, True])
@pytest.mark.parametrize("make", PROBLEMS)
def test_same_iterates_as_with_alpha_written_out(make, pairwise):
    problem = make(seed=1)
    solver = BlockFrankWolfe(move=Pairwise()) if pairwise else BlockFrankWolfe()
    known = Enumerated.of(problem)
    reference = Dense(known)
    for passes, state in enumerate(iterates(problem, solver, 6), start=1):
        for i in np.random.default_rng([solver.seed, passes]).permutation(problem.n):
            reference.visit(i, pairwise)
        np.testing.assert_allclose(state.u, reference.alpha @ known.psi / problem.lam, atol=1e-9)
        np.testing.assert_allclose(state.w, reference.average @ known.psi / problem.lam, atol=1e-9)
        assert state.alpha_dual == pytest.approx(known.dual(reference.alpha), abs=1e-10)
        assert state.average_dual == pytest.approx(known.dual(reference.average), abs=1e-10)


@pytest.mark.parametrize("pairwise", [False, True])
@pytest.mark.parametrize("make", PROBLEMS)
def test_steps_are_optimal_on_their_segment(make, pairwise):
    """The reference's visit agrees with the solver's; here it is compared with a fine search."""
    reference = Dense(Enumerated.of(make(seed=2)))
    known = reference.known
    for k in range(3 * known.problem.n):
        before = reference.alpha
        gamma, step = reference.visit(k % known.problem.n, pairwise)
        most = 1.0 if not pairwise else max(gamma, (known.problem.n * before[step < 0]).min(initial=1.0))
        best = max(known.dual(before + g * step) for g in np.linspace(0.0, most, 201))
        assert known.dual(reference.alpha) >= best - 1e-12


@pytest.mark.parametrize("solver", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("make", PROBLEMS)
def test_incremental_dual_equals_the_recomputed_one(make, solver):
    problem = make()
    previous = 0.0
    for state in iterates(problem, solver, 60):
        u, b = dual_point(problem, state.sets)
        np.testing.assert_allclose(state.u, u, atol=1e-9)
        assert state.totals[0] == pytest.approx(b, abs=1e-10)
        assert state.alpha_dual == pytest.approx(problem.dual(u, b), abs=1e-10)
        np.testing.assert_allclose(np.add.reduceat(state.sets.alpha, state.sets.first[:-1]), 1.0, atol=1e-12)
        assert state.sets.alpha.min() >= 0.0
        assert state.alpha_dual >= previous - 1e-12  # exact line search never loses
        previous = state.alpha_dual


def test_working_sets_hold_different_outputs_with_their_losses():
    problem = chain_problem(lengths=(3, 4, 2, 5), labels=3, lam=0.02)
    *_, state = iterates(problem, BlockFrankWolfe(), 25)
    sets, loss = state.sets, 0.0
    for i in range(problem.n):
        slots = range(sets.first[i], sets.first[i] + sets.used[i])
        outputs = [tuple(sets.parts[k, : sets.counts[k]]) for k in slots]
        assert len(set(outputs)) == len(outputs)
        labels = [[part % 3 for part in parts[: problem.structure.lengths[i]]] for parts in outputs]
        gold = np.array(problem.structure.unpack(problem.gold)[i])
        losses = [np.mean(np.array(y) != gold) for y in labels]
        np.testing.assert_allclose(sets.losses[slots], losses)
        loss += sets.alpha[slots] @ losses / problem.n
    assert state.totals[0] == pytest.approx(loss)


def test_full_working_sets_grow_without_a_trace():
    """A sweep that runs out of room goes on at the same visit after enlargement."""
    problem = chain_problem(lengths=(4, 5, 4), labels=3, lam=0.003)
    wide, narrow = gold_sets(problem.blocks, room=100), gold_sets(problem.blocks, room=1)
    order = np.tile(np.arange(problem.n), 40)
    outcomes = []
    for sets in (copied(wide), copied(narrow)):
        w, q, gaps = np.zeros(problem.dim), np.zeros(problem.dim), np.zeros(problem.n)
        totals = Totals(*(np.array([x]) for x in (0.0, 0.0, 1.0, 0.0)))
        at, grown = 0, 0
        while at < len(order):
            at = problem.blocks.run(
                sweep, sets, totals, order, at, 1, True, False, problem.lam, w, q, np.zeros(problem.dim), gaps
            )
            if at < len(order):
                sets, grown = enlarged(sets), grown + 1
        outcomes.append((w, totals.b[0], grown))
    assert outcomes[0][2] == 0 < outcomes[1][2]
    np.testing.assert_allclose(outcomes[0][0], outcomes[1][0], atol=1e-12)
    assert outcomes[0][1] == pytest.approx(outcomes[1][1])


def test_gap_estimates_bound_the_gap_of_alpha():
    """Right after a visit the block's gap is exact; with one example it is the whole duality gap."""
    problem = chain_problem(lengths=(4,), labels=3)
    known = Enumerated.of(problem)
    solver = BlockFrankWolfe()
    state = solver.init(problem)
    for _ in range(20):
        gap = known.primal(state.u) - state.alpha_dual
        state = solver.step(problem, state)
        assert state.metrics["duality_gap_estimate"] == pytest.approx(gap, abs=1e-10)


def test_gap_sampling_prefers_large_gaps():
    random = np.random.default_rng(0)
    gaps = np.array([0.0, 1.0, 3.0, 0.0])
    drawn = np.concatenate([piece for k in range(1, 200) for piece in GapSampling().visits(random, gaps, 10 * k + 1)])
    counts = np.bincount(drawn, minlength=4)
    assert counts[0] == counts[3] == 0
    assert counts[2] / counts[1] == pytest.approx(3.0, rel=0.2)
    (refresh,) = GapSampling().visits(random, gaps, 10)
    assert sorted(refresh) == [0, 1, 2, 3]
    assert sum(len(piece) for piece in GapSampling().visits(random, 0 * gaps, 1)) == 4
    (uniform,) = Uniform().visits(random, gaps, 1)
    assert len(uniform) == 4


def test_cached_sweeps_save_oracle_calls():
    problem = chain_problem(lengths=(3, 4, 5, 3, 6) * 4, labels=3, lam=0.01)
    plain = minimize(problem, BlockFrankWolfe(), tol=0.02)
    cached = minimize(problem, BlockFrankWolfe(move=Pairwise(), cache=PlaneCache(10)), tol=0.02)
    assert cached.hard_calls < 0.6 * plain.hard_calls


def test_one_pass_asks_every_example_once():
    problem = chain_problem()
    state = BlockFrankWolfe(cache=PlaneCache(5)).init(problem)
    before = problem.hard_calls
    BlockFrankWolfe(cache=PlaneCache(5)).step(problem, state)
    assert problem.hard_calls - before == problem.n


def test_rate_on_ocr(data_folder):
    """The figure of the benchmark: a gap of 2e-2 after at most 30 passes of its own."""
    from benchmarks.datasets import ocr_problem

    problem = ocr_problem(data_folder, lam=0.01, sparse=True)
    result = minimize(problem, BlockFrankWolfe(), tol=2e-2, max_passes=40)
    assert result.converged
    assert (result.hard_calls - result.trace[-1].evaluation_calls) / problem.n <= 30
