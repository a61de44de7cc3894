"""SMO against its own theory: monotone dual, consistent marginals, analytic steps."""

from itertools import pairwise

import numpy as np
import pytest

from m3n import MissingOracle, minimize
from m3n.solvers import SMO
from tests.problem.test_blocks import edge_problem
from tests.solvers.test_product import Counting
from tests.tiny import Enumerated, chain_problem, multiclass_problem

PROBLEMS = [chain_problem, multiclass_problem, edge_problem]


def iterates(problem, steps):
    state = SMO().init(problem)
    for _ in range(steps):
        state = SMO().step(problem, state)
        yield state


def marginals(problem, state):
    """Node and pair marginals of a chain, or label weights of a multiclass problem, example by example."""
    s, masses = problem.structure.labels, state.masses
    lengths = getattr(problem.structure, "lengths", np.ones(problem.n, int))
    for i, length in enumerate(lengths):
        flat = np.zeros(max((length - 1) * s, 1) * s)
        flat[masses.ids[i, : masses.used[i]]] = masses.masses[i, : masses.used[i]]
        yield flat if length == 1 else flat.reshape(length - 1, s, s)


@pytest.mark.parametrize("make", PROBLEMS)
def test_masses_are_consistent_marginals(make):
    problem = make()
    for state in iterates(problem, 40):
        for masses in marginals(problem, state):
            if masses.ndim == 1:
                assert masses.sum() == pytest.approx(1.0)
                continue
            np.testing.assert_allclose(masses.sum(axis=(1, 2)), 1.0, atol=1e-12)
            np.testing.assert_allclose(masses[:-1].sum(axis=1), masses[1:].sum(axis=2), atol=1e-12)
            assert masses.min() >= 0.0


@pytest.mark.parametrize("make", PROBLEMS)
def test_dual_never_decreases_and_equals_the_recomputed_one(make):
    problem = make()
    previous = 0.0
    for state in iterates(problem, 80):
        parts = problem.structure.empty()
        for array in parts:
            array[:] = 0.0
        row, edge = 0, 0
        for masses in marginals(problem, state):
            if masses.ndim == 1:
                rows = masses[None]
            else:
                rows = np.vstack([masses.sum(axis=2), masses[-1].sum(axis=0)[None]])
                parts[1][:] += masses.sum(axis=0)
                if len(parts) > 4:
                    parts[4][edge : edge + len(masses)] = masses
                    edge += len(masses)
            parts[0][row : row + len(rows)] = rows
            if len(parts) > 1:
                parts[2][:] += rows[0]
                parts[3][:] += rows[-1]
            row += len(rows)
        gold = problem.features.adjoint(problem.structure.encode(problem.gold)).copy()
        u = (gold - problem.features.adjoint(parts)) / (problem.lam * problem.n)
        np.testing.assert_allclose(state.w, u, atol=1e-9)
        assert state.b == pytest.approx(problem.cost.expected(parts) / problem.n, abs=1e-10)
        assert state.dual == pytest.approx(problem.dual(u, state.b), abs=1e-10)
        assert state.dual >= previous - 1e-12
        previous = state.dual


def test_multiclass_steps_equal_pairwise_steps_written_out():
    """With labels as outputs the factored dual is the plain one: steepest pair, analytic step."""
    problem = multiclass_problem(n=6)
    known = Enumerated.of(problem)
    alpha = np.zeros((6, 4))
    alpha[np.arange(6), problem.gold] = 1 / 6
    psi, ell = known.psi.reshape(6, 4, -1), known.ell.reshape(6, 4)
    order = np.random.default_rng([0, 0]).permutation(6)[:3]
    for i in order:
        w = np.einsum("iy,iyp->p", alpha, psi) / problem.lam
        scores = ell[i] - psi[i] @ w
        high = scores.argmax()
        low = np.where(alpha[i] > 0, scores, np.inf).argmin()
        step = psi[i, high] - psi[i, low]
        gain = scores[high] - scores[low]
        amount = min(alpha[i, low], gain * problem.lam / (step @ step)) if gain > 0 else 0.0
        alpha[i, high] += amount
        alpha[i, low] -= amount
    state = SMO().step(problem, SMO().init(problem))
    np.testing.assert_allclose(state.w, np.einsum("iy,iyp->p", alpha, psi) / problem.lam, atol=1e-12)
    assert state.dual == pytest.approx(known.dual(alpha.ravel()))


def test_reaches_the_optimum_and_its_own_stopping_rule():
    problem = multiclass_problem(seed=3)
    best = Enumerated.of(problem).optimum()
    result = minimize(problem, SMO(), tol=1e-6, max_passes=5000)
    assert result.certificate.dual == pytest.approx(best, abs=1e-6)
    assert result.trace[-1].metrics["kkt_violation"] < 1e-2 < result.trace[3].metrics["kkt_violation"]


def test_counts_both_of_its_oracles():
    problem = chain_problem()
    state = SMO().init(problem)
    before = problem.hard_calls
    SMO().step(problem, state)
    assert problem.hard_calls - before == problem.n  # n/2 visits, two calls each


def test_needs_a_factored_dual():
    from m3n import Problem
    from m3n.features import Dense

    class NoSupport(Counting):
        oracles = frozenset({"hard", "soft"})

    problem = Problem(NoSupport(3, 3), Dense(np.eye(3), 3), [0, 1, 2], lam=0.1)
    with pytest.raises(MissingOracle, match="min-oracle on the support"):
        minimize(problem, SMO())


def test_chain_steps_equal_steps_on_enumerated_cliques():
    """Steepest pair, and the longest step that the cliques which only lose allow; ties may go either way."""
    problem = chain_problem(lengths=(4,), labels=3, lam=0.02)
    known = Enumerated.of(problem)
    outputs = [tuple(y) for y in problem.structure.enumerate(0)]
    pairs = [{(t * 3 + a) * 3 + b for t, (a, b) in enumerate(pairwise(y))} for y in outputs]
    state, clipped = SMO().init(problem), 0
    for _ in range(200):
        kept = state.masses
        mass = dict(zip(kept.ids[0, : kept.used[0]], kept.masses[0, : kept.used[0]], strict=True))
        scores = known.ell - known.psi @ state.w
        high = int(scores.argmax())
        held = [k for k, cliques in enumerate(pairs) if cliques <= mass.keys()]
        lowest = min(scores[k] for k in held)
        new, expected = SMO().step(problem, state), []
        for low in (k for k in held if scores[k] <= lowest + 1e-9):
            spare = min((mass[c] for c in pairs[low] - pairs[high]), default=0.0)
            step = known.psi[high] - known.psi[low]
            best = problem.lam * (scores[high] - scores[low]) / (step @ step) if step.any() else 0.0
            expected.append((np.abs(state.w + min(spare, best) * step / problem.lam - new.w).max(), spare < best))
        error, was_clipped = min(expected)
        assert error < 1e-9
        clipped += was_clipped
        state = new
    assert clipped > 3
