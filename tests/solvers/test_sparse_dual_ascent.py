"""Dual ascent under an l1 penalty: formulas of a visit and of the dual value written out, and where runs may begin.

Optimum, zeros, weak duality, counters, seeds and resumption are tested in ``test_product`` and ``test_owl_qn``.
"""

import numpy as np
import pytest

from m3n import Problem, minimize
from m3n.compiled.maps.kinds import gather, scatter_all
from m3n.compiled.maps.shrunk import Shrunk
from m3n.compiled.sweeps.visits import local_scores, move_weights
from m3n.features import Dense, Observed, Stack, chain_features, observed_pairs
from m3n.losses import Hamming
from m3n.solvers import OWLQN, DualAscent, SparseDualAscent
from m3n.solvers import sparse_dual_ascent as module
from m3n.solvers.owl_qn import best_dual
from m3n.structures import Chain
from tests.features.test_codes import coded_problem
from tests.tiny import Enumerated, chain_problem, iterates


def crf(**settings):
    return chain_problem(**{"seed": 3, "temperature": 1.0, "lam": 0.02, "l1": 0.03} | settings)


def observed(**settings):
    """Weights of observed pairs only: runs with padding for attributes of many labels, lists for those of few."""
    random = np.random.default_rng(0)
    X = (random.random((10, 5)) < 0.3).astype(float)
    y = [random.integers(12, size=5) for _ in range(2)]
    node = Observed(X, observed_pairs(X, np.concatenate(y), 12))
    features = Stack(node, *chain_features(Dense(X, 12), 12).maps[1:])
    return Problem(Chain([5, 5], 12), features, y, temperature=1.0, n_jobs=1, **settings)


def written_out(problem, point):
    """v and offset of the stored potentials, by enumeration."""
    structure, vector, entropy, loss = problem.structure, np.zeros(problem.dim), 0.0, 0.0
    for i in range(problem.n):
        one = np.array([i])
        alone, rows = structure.select(one)
        features, cost = problem.features.select(rows), problem.cost.select(rows, one)
        p = point.potentials[point.starts[i] : point.starts[i + 1]]
        encoded = [alone.encode(y) for y in structure.enumerate(i)]
        scores = np.array([np.concatenate([a.ravel() for a in parts]) @ p for parts in encoded])
        beta = np.exp(scores - scores.max())
        beta /= beta.sum()
        entropy -= beta @ np.log(beta)
        loss += sum(b * cost.expected(parts) for b, parts in zip(beta, encoded, strict=True))
        gold = features.adjoint(alone.encode(problem.gold[structure.entries_of(one)]))
        vector += gold - sum(b * features.adjoint(parts) for b, parts in zip(beta, encoded, strict=True))
    return vector / problem.n, (loss + problem.temperature * entropy) / problem.n


@pytest.mark.parametrize("lam", [0.0, 0.02])
def test_the_dual_is_that_of_the_marginals(lam):
    """What is certified comes out again from the potentials alone, at every state."""
    problem, solver = crf(lam=lam, loss=Hamming()), SparseDualAscent()
    best, state = Enumerated.of(problem).optimum(), solver.init(problem)
    for _ in range(6):
        state = solver.step(problem, state)
        v, offset = written_out(problem, state.memory.point)
        found = best_dual(v, offset, lam, problem.l1)
        assert state.memory.dual(problem) == pytest.approx(found, abs=1e-12)
        assert found <= best + 1e-9
        strength = lam + state.memory.kappa
        u = (v + state.memory.kappa * state.memory.centre) / strength
        np.testing.assert_allclose(state.memory.u, u, atol=1e-12)
    assert 0 < np.count_nonzero(state.w) < problem.dim


PROBLEMS = {
    "runs": lambda: crf(loss=Hamming()),
    "observed pairs": lambda: observed(lam=0.1, l1=0.1),
    "codes": lambda: coded_problem(np.random.default_rng(0), temperature=1.0, l1=0.02),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_visits_see_the_soft_threshold(name, random):
    """Scores, what is added, and the growth of |w|^2, for every kind of rows."""
    problem = PROBLEMS[name]()
    rows, costs = problem.blocks.rows, problem.blocks.costs
    alive = np.zeros(problem.dim)
    for i in range(problem.n):  # padding stays zero
        scatter_all(rows, i, random.normal(size=rows.sizes[i]), 1.0, alive)
    u, threshold = random.normal(size=problem.dim) * (alive != 0.0), 0.6
    for i in range(problem.n):
        w = np.sign(u) * np.maximum(np.abs(u) - threshold, 0.0)
        expected, theta = np.empty(rows.sizes[i]), np.empty(rows.sizes[i])
        gather(rows, i, w, expected)
        gather(rows, i, Shrunk(u, threshold), theta)
        np.testing.assert_allclose(theta, expected, atol=1e-12)
        delta, moved, plain = random.normal(size=rows.sizes[i]), u.copy(), u.copy()
        scatter_all(rows, i, delta, -2.0, plain)
        local_scores(rows, costs, i, w, theta)
        square = move_weights(rows, costs, i, delta, theta @ delta, -2.0, Shrunk(moved, threshold))
        np.testing.assert_allclose(moved, plain, atol=1e-12)
        new = np.sign(moved) * np.maximum(np.abs(moved) - threshold, 0.0)
        slope = w @ (moved - u) / -2.0  # <w, F' delta>
        assert square == pytest.approx(((new @ new - w @ w) / -2.0 - 2.0 * slope) / -2.0)
        scatter_all(rows, i, delta, 2.0, Shrunk(moved, threshold))
        np.testing.assert_allclose(moved, u, atol=1e-12)


@pytest.mark.parametrize("name", ["observed pairs", "codes"])
def test_agrees_with_owl_qn(name):
    problem = PROBLEMS[name]()
    ours, theirs = (minimize(problem, solver, tol=1e-8, max_passes=3000) for solver in (SparseDualAscent(), OWLQN()))
    assert ours.converged
    assert theirs.converged
    np.testing.assert_allclose(ours.w, theirs.w, atol=1e-3)
    assert ours.certificate.dual <= theirs.certificate.primal + 1e-12


def test_the_observed_pairs_are_runs_with_padding_and_lists():
    """Or the tests above leave out a branch."""
    rows = observed(lam=0.1).blocks.rows
    assert (rows.columns < 0).any()
    assert 0 < (rows.lists < rows.pointers[1:]).sum() < len(rows.lists)


def test_the_gap_falls_at_a_linear_rate_without_a_square():
    problem = crf(lam=0.0, l1=0.05)
    best, errors = Enumerated.of(problem).optimum(), []
    for state in iterates(problem, SparseDualAscent(), 120):
        errors.append(best - state.dual)
    assert errors[60] < 0.05 * errors[20]
    assert errors[119] < 0.2 * errors[60]


def test_a_tiny_penalty_is_nearly_none():
    plain = minimize(crf(l1=0.0), DualAscent(), tol=1e-9, max_passes=3000)
    sparse = minimize(crf(l1=1e-9), SparseDualAscent(), tol=1e-8, max_passes=3000)
    np.testing.assert_allclose(sparse.w, plain.w, atol=1e-3)


def test_given_weights_are_a_start():
    """The optimum, found by anyone, is certified at once: their Gibbs distribution is that of the dual."""
    problem = crf()
    best = minimize(problem, OWLQN(), tol=1e-9)
    for start in (best, best.w):
        again = minimize(problem, SparseDualAscent(), tol=1e-6, start=start)
        assert again.converged
        assert again.trace[-1].passes <= 2
    weighted = observed(lam=0.02, l1=0.03, sample_weight=[1.0, 2.0])
    best = minimize(weighted, OWLQN(), tol=1e-9).w
    assert minimize(weighted, SparseDualAscent(), tol=1e-6, start=best).trace[-1].passes <= 2


@pytest.mark.parametrize("start", [None, "weights"])
def test_a_step_from_an_old_state_gives_the_same_again(start, random):
    problem, solver = crf(), SparseDualAscent(seed=5)
    state = solver.init(problem) if start is None else solver.start_at(problem, random.normal(size=problem.dim))
    first = solver.step(problem, state)
    second = solver.step(problem, first)
    solver.step(problem, second)
    again = solver.step(problem, first)
    np.testing.assert_array_equal(again.w, second.w)
    assert again.dual == second.dual


def test_the_proximal_term_fades_and_needs_no_features():
    problem = crf()
    state = minimize(problem, SparseDualAscent(), tol=0.0, max_passes=120).state
    square = np.mean(problem.features.norms()[0] ** 2)
    assert state.memory.kappa == pytest.approx(module.START * module.LEAST * square / problem.n)
    features = chain_features(Dense(np.zeros((5, 2)), 3), 3)
    empty = Problem(Chain([2, 3], 3), features, [[0, 1], [2, 0, 0]], temperature=1.0, lam=0.0, l1=0.1, n_jobs=1)
    assert minimize(empty, SparseDualAscent(), tol=1e-6).converged


def test_steps_stay_long_enough_for_examples_of_hardly_any_weight():
    """Every example has a temperature of its own, which step lengths are measured against."""
    problem = observed(lam=0.0, l1=0.02, sample_weight=[1e-3, 1.0])
    result = minimize(problem, SparseDualAscent(), tol=1e-5, max_passes=1000)
    assert result.converged
    assert (result.state.memory.point.eta > 0.0).all()
    plain = observed(lam=1.0, sample_weight=[1e-3, 1.0])
    first = minimize(plain, DualAscent(), tol=1e-4)
    weaker = minimize(plain.with_lam(0.1), DualAscent(), tol=1e-5, max_passes=1000, start=first)
    assert weaker.converged
    state = DualAscent().restart(plain.with_lam(0.1), first.state)
    assert (state.memory.point.eta > 0.0).all()


def test_auto_chooses_it_and_says_why():
    result = minimize(crf(), tol=1e-3)
    assert isinstance(result.solver, SparseDualAscent)
    assert "l1 penalty" in result.reason
