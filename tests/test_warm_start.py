"""Runs that begin where another one, with another lam, has ended."""

from dataclasses import replace

import numpy as np
import pytest

from m3n import Status, minimize
from m3n.losses import NormalizedHamming
from m3n.solvers import (
    LBFGS,
    OWLQN,
    BlockFrankWolfe,
    DualAscent,
    ExcessiveGap,
    GapSampling,
    Pairwise,
    SequentialDual,
    SparseDualAscent,
)
from m3n.solvers.working_sets import _gold_slots, copied
from tests.tiny import Enumerated, chain_problem, multiclass_problem

MARGIN = {"chain": chain_problem, "multiclass": multiclass_problem}
SMOOTH = {
    "CRF": lambda **s: chain_problem(temperature=1.0, **s),
    "softmax-margin": lambda **s: chain_problem(temperature=0.5, loss=NormalizedHamming(), **s),
}
CASES = [
    *((solver, make) for solver in (SequentialDual(), BlockFrankWolfe(), BlockFrankWolfe(move=Pairwise()))
      for make in MARGIN.values()),
    *((solver, make) for solver in (DualAscent(), LBFGS()) for make in SMOOTH.values()),
    *((solver, lambda **s: chain_problem(temperature=1.0, l1=0.03, **s)) for solver in (OWLQN(), SparseDualAscent())),
]  # fmt: skip
LAMS = [(0.3, 0.1), (0.3, 0.01), (0.1, 0.1), (0.03, 0.3)]


@pytest.mark.parametrize(("solver", "make"), CASES)
@pytest.mark.parametrize(("before", "after"), LAMS)
def test_certificates_after_a_restart(solver, make, before, after):
    """D never exceeds the optimum of the new problem, J is the new problem's, and the tolerance is reached."""
    problem = make(seed=3, lam=before)
    first = minimize(problem, solver, tol=1e-3, max_passes=1000)
    second = problem.with_lam(after)
    known = Enumerated.of(second)
    best = known.optimum()
    state = solver.restart(second, first.state)
    assert -1e-12 <= state.dual <= best + 1e-8  # mixed with gold as is best, D is not below gold's
    for _ in range(15):
        assert state.dual <= best + 1e-8
        if not np.isnan(state.primal):
            assert state.primal == pytest.approx(known.primal(state.w), abs=1e-10)
        state = state if state.stalled else solver.step(second, state)
    result = minimize(second, solver, tol=5e-3, max_passes=3000, start=first)
    assert result.status is Status.TOLERANCE
    assert result.certificate.dual <= best + 1e-8 <= result.certificate.primal + 2e-8
    assert result.certificate.primal == pytest.approx(known.primal(result.w), abs=1e-10)


def sets_of(state):
    """The outputs and weights of every example's working set, spelled out."""
    sets = state.sets
    for i in range(len(sets.used)):
        for k in range(sets.first[i], sets.first[i] + sets.used[i]):
            yield i, sets.parts[k, : sets.counts[k]], sets.alpha[k], sets.losses[k]


@pytest.mark.parametrize("order", [None, GapSampling()])
def test_the_dual_of_working_sets_from_scratch(order):
    """alpha of a restarted block method, written out over enumerated outputs."""
    solver = BlockFrankWolfe(order=order) if order else BlockFrankWolfe()
    problem = chain_problem(seed=3, lam=0.3)
    first = minimize(problem, solver, tol=1e-3, max_passes=500)
    second = problem.with_lam(0.05)
    state = solver.restart(second, first.state)
    known = Enumerated.of(second)
    for _ in range(5):
        alpha = np.zeros(len(known.ell))
        for i, parts, weight, loss in sets_of(state):
            number = _number(second, known, i, parts)
            alpha[number] += weight / second.n
            assert known.ell[number] == pytest.approx(loss, abs=1e-12)
        np.testing.assert_allclose(np.bincount(known.owner, alpha), 1 / second.n, atol=1e-12)
        assert alpha.min() >= 0.0
        assert state.alpha_dual == pytest.approx(known.dual(alpha), abs=1e-10)
        state = solver.step(second, state)


def _number(problem, known, i, parts):
    """Which of the enumerated outputs has these parts."""
    outputs = np.flatnonzero(known.owner == i)
    for number, y in zip(outputs, problem.structure.enumerate(i), strict=True):
        alone, _ = problem.structure.select(np.array([i]))
        listed, counts = alone.local_parts(y)
        if np.array_equal(listed[0, : counts[0]], parts):
            return number
    raise AssertionError("no such output")


def test_the_dual_of_caches_from_scratch():
    """u of a restarted state lies in the span of enumerated psi with weights of a distribution: D by a projection."""
    problem = chain_problem(seed=3, lam=0.3)
    first = minimize(problem, SequentialDual(), tol=1e-4)
    for lam in (0.3, 0.1, 0.01):
        second = problem.with_lam(lam)
        state = SequentialDual().restart(second, first.state)
        caches = state.caches
        first_slot = caches.first[:-1]
        sums = [caches.alpha[a : a + used].sum() for a, used in zip(first_slot, caches.used, strict=True)]
        np.testing.assert_allclose(sums, 1.0, atol=1e-12)
        loss = sum(
            caches.alpha[a : a + used] @ caches.losses[a : a + used]
            for a, used in zip(first_slot, caches.used, strict=True)
        )
        assert state.dual == pytest.approx(loss / problem.n - lam / 2 * state.w @ state.w, abs=1e-12)
        # the same direction as before: only the share of gold and lam differ
        earlier = SequentialDual().restart(problem, first.state).w
        assert state.w @ earlier == pytest.approx(np.linalg.norm(state.w) * np.linalg.norm(earlier))


def test_gold_that_was_given_up_returns():
    """An output without weight may lose its place to another one, gold too."""
    problem = chain_problem(seed=3, lam=1e-3)
    solver = BlockFrankWolfe(move=Pairwise())
    state = minimize(problem, solver, tol=0.0, max_passes=60).state
    sets = copied(state.sets)
    gold, last = sets.first[3], sets.first[3] + sets.used[3] - 1
    for array in (sets.parts, sets.counts, sets.losses):
        array[gold] = array[last]
    sets.alpha[gold] += sets.alpha[last]
    sets.used[3] -= 1
    assert (_gold_slots(problem.blocks, sets) < 0).tolist() == [False, False, False, True]
    state = replace(state, sets=sets)
    restarted = solver.restart(problem.with_lam(1e-4), state)
    slots = _gold_slots(problem.blocks, restarted.sets)
    assert (slots >= 0).all()
    assert restarted.sets.alpha[slots].min() > 0.0


@pytest.mark.parametrize(("solver", "make"), CASES)
def test_earlier_states_are_not_changed(solver, make):
    problem = make(seed=3, lam=0.3)
    first = minimize(problem, solver, tol=1e-2, max_passes=500)
    w, dual = first.state.w.copy(), first.state.dual
    minimize(problem.with_lam(0.1), solver, tol=1e-2, max_passes=50, start=first)
    np.testing.assert_array_equal(first.state.w, w)
    assert first.state.dual == dual
    again = minimize(problem, solver, tol=1e-3, max_passes=1000, resume=first)
    assert again.certificate.gap <= first.certificate.gap


def test_a_step_from_an_old_state_of_a_warm_run_is_repeated_exactly():
    """The memory of dual ascent moves on; a step from a state that is not the newest begins at the warm start again."""
    problem = chain_problem(seed=3, lam=0.3, temperature=1.0)
    first = minimize(problem, DualAscent(), tol=1e-3)
    second = problem.with_lam(0.05)
    states = [DualAscent().restart(second, first.state)]
    for _ in range(3):
        states.append(DualAscent().step(second, states[-1]))
    again = DualAscent().step(second, states[1])
    np.testing.assert_array_equal(again.w, states[2].w)


@pytest.mark.parametrize("solver", [LBFGS(), OWLQN()])
def test_beginning_at_the_optimum(solver):
    """Given weights or the result of any other solver, one pass is enough to certify them."""
    problem = chain_problem(seed=3, temperature=1.0, l1=0.05 if solver.takes_l1 else 0.0)
    best = minimize(problem, solver, tol=1e-9)
    again = minimize(problem, solver, tol=1e-6, start=best.w)
    assert again.converged
    assert again.trace[-1].passes <= 1
    if not solver.takes_l1:
        other = minimize(problem, DualAscent(), tol=1e-7)
        assert minimize(problem, solver, tol=1e-5, start=other).trace[-1].passes <= 1


def test_a_warm_start_saves_passes():
    problem = chain_problem(seed=3, lam=0.05, temperature=1.0)
    for solver in (DualAscent(), LBFGS()):
        first = minimize(problem, solver, tol=1e-6)
        cold, warm = (minimize(problem.with_lam(0.04), solver, tol=1e-4, start=start) for start in (None, first))
        assert warm.trace[-1].passes < cold.trace[-1].passes


def test_what_cannot_be_started_is_refused():
    problem = chain_problem()
    result = minimize(problem, SequentialDual(), tol=1e-2)
    with pytest.raises(TypeError, match="BlockFrankWolfe cannot begin at given weights"):
        minimize(problem, BlockFrankWolfe(), start=result)
    with pytest.raises(TypeError, match="ExcessiveGap cannot begin at given weights"):
        minimize(problem, ExcessiveGap(), start=result.w)
    with pytest.raises(ValueError, match="either resume"):
        minimize(problem, SequentialDual(), start=result, resume=result)
    with pytest.raises(ValueError, match=r"start has weights of shape \(3,\)"):
        minimize(problem, LBFGS(), start=np.zeros(3))


def test_a_solver_without_a_restart_begins_anew():
    problem = chain_problem()
    first = minimize(problem, ExcessiveGap(), max_passes=5)
    second = problem.with_lam(0.2)
    np.testing.assert_array_equal(ExcessiveGap().restart(second, first.state).w, ExcessiveGap().init(second).w)
    assert minimize(second, ExcessiveGap(), tol=1e-2, start=first).converged
