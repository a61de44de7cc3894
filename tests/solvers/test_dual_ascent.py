"""Dual ascent: formulas of a visit against enumeration, and a memory that is only a cache."""

import numpy as np
import pytest

from m3n import Problem, WrongObjective, minimize
from m3n.compiled.sweeps.visits import local_scores, move_weights
from m3n.features import Dense, Sparse, chain_features
from m3n.losses import Hamming
from m3n.solvers import LBFGS, DualAscent, choose_smooth
from m3n.solvers import choice as module
from m3n.structures import Chain
from tests.solvers.test_product import Counting
from tests.tiny import Enumerated, PartCoordinates, chain_problem


def crf(seed=3, **settings):
    return chain_problem(seed=seed, temperature=1.0, **settings)


def test_the_dual_is_that_of_the_marginals():
    """D and w recomputed from the stored potentials by enumeration."""
    problem = crf()
    state = DualAscent().init(problem)
    for _ in range(3):
        state = DualAscent().step(problem, state)
    point, structure = state.memory.point, problem.structure
    vector, entropy = np.zeros(problem.dim), 0.0
    for i in range(problem.n):
        alone, rows = structure.select(np.array([i]))
        features = problem.features.select(rows)
        p = point.potentials[point.starts[i] : point.starts[i + 1]]
        encoded = [alone.encode(y) for y in structure.enumerate(i)]
        scores = np.array([np.concatenate([a.ravel() for a in parts]) @ p for parts in encoded])
        beta = np.exp(scores - scores.max())
        beta /= beta.sum()
        entropy -= beta @ np.log(beta)
        gold = features.adjoint(alone.encode(problem.gold[structure.entries_of(np.array([i]))]))
        vector += gold - sum(b * features.adjoint(parts) for b, parts in zip(beta, encoded, strict=True))
    np.testing.assert_allclose(state.w, vector / (problem.lam * problem.n), atol=1e-10)
    expected = entropy / problem.n - problem.lam / 2 * state.w @ state.w
    assert state.dual == pytest.approx(expected, abs=1e-10)


def test_the_dual_rises_to_the_optimum_at_a_linear_rate():
    problem = crf()
    best = Enumerated.of(problem).optimum()
    state, errors = DualAscent().init(problem), []
    for _ in range(60):
        state = DualAscent().step(problem, state)
        errors.append(best - state.dual)
    assert errors[19] < 1e-2 * errors[4]
    assert errors[34] < 1e-2 * errors[19]
    assert abs(errors[-1]) < 1e-8


@pytest.mark.parametrize("lam", [1e-3, 1e-1, 10.0])
def test_agrees_with_lbfgs(lam):
    ours = minimize(crf(lam=lam), DualAscent(), tol=1e-8, max_passes=3000)
    theirs = minimize(crf(lam=lam), LBFGS(), tol=1e-8, max_passes=3000)
    assert ours.converged
    np.testing.assert_allclose(ours.w, theirs.w, atol=1e-3)
    assert ours.certificate.primal == pytest.approx(theirs.certificate.primal, abs=2e-8)


def test_rows_with_everything_in_common_do_not_overshoot():
    """One attribute in every position: the square is length times what single rows say."""
    lengths = [12] * 6
    y = [np.arange(12) % 3 for _ in lengths]
    features = chain_features(Dense(np.full((72, 1), 5.0), 3), 3)
    problem = Problem(Chain(lengths, 3), features, y, lam=0.1, temperature=1.0, n_jobs=1)
    assert minimize(problem, DualAscent(), tol=1e-6, max_passes=500).converged


def test_a_step_from_an_old_state_gives_the_same_again():
    problem, solver = crf(), DualAscent(seed=5)
    first = solver.step(problem, solver.init(problem))
    second = solver.step(problem, first)
    solver.step(problem, second)
    again = solver.step(problem, first)
    np.testing.assert_array_equal(again.w, second.w)
    assert again.dual == second.dual


def test_an_interrupted_sweep_is_not_gone_on_with(monkeypatch):
    problem, solver = crf(), DualAscent()
    first = solver.step(problem, solver.init(problem))
    expected = solver.step(problem, first).w
    first = solver.step(problem, solver.init(problem))

    def interrupted(*arguments, **asks):
        first.memory.w[:] = np.nan
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(problem.blocks, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            solver.step(problem, first)
    np.testing.assert_array_equal(solver.step(problem, first).w, expected)


def test_moving_the_weights_tells_the_length_of_the_way(random):
    problem = crf(loss=Hamming())
    rows, costs = problem.blocks.rows, problem.blocks.costs
    for i in range(problem.n):
        alone, chosen = problem.structure.select(np.array([i]))
        delta = random.normal(size=rows.sizes[i])
        cuts = np.cumsum([int(np.prod(s)) for s in alone.shapes])[:-1]
        parts = tuple(a.reshape(s) for a, s in zip(np.split(delta, cuts), alone.shapes, strict=True))
        vector = problem.features.select(chosen).adjoint(parts)
        w = random.normal(size=problem.dim)
        moved, theta = w.copy(), np.empty(rows.sizes[i])
        local_scores(rows, costs, i, w, theta)
        assert move_weights(rows, costs, i, delta, theta @ delta, -2.0, moved) == pytest.approx(vector @ vector)
        np.testing.assert_allclose(moved, w - 2.0 * vector, atol=1e-12)


def test_refuses_max_margin_networks():
    with pytest.raises(WrongObjective, match="DualAscent trains CRFs only"):
        minimize(chain_problem(), DualAscent())


class TestChoice:
    def test_depends_on_the_regularisation_and_the_threads(self):
        assert isinstance(choose_smooth(crf(lam=10.0)).solver, DualAscent)
        choice = choose_smooth(crf(lam=1e-6))
        assert isinstance(choice.solver, LBFGS)
        assert "weak regularisation" in choice.reason
        assert isinstance(minimize(crf(lam=10.0), tol=10.0).solver, DualAscent)

    def test_needs_compiled_visits_of_examples(self, random, monkeypatch):
        problem = crf(lam=10.0)
        y = problem.structure.unpack(problem.gold)
        other = Problem(problem.structure, PartCoordinates(problem.features), y, lam=10.0, temperature=1.0, n_jobs=1)
        plain = Problem(Counting(6, 3), Dense(random.normal(size=(6, 3)), 3), [0] * 6, lam=10.0, temperature=1.0)
        for case, text in ((other, "single examples"), (plain, "no compiled visits")):
            choice = choose_smooth(case)
            assert isinstance(choice.solver, LBFGS)
            assert text in choice.reason
        monkeypatch.setattr(module, "MOST_BYTES", 100)
        assert "memory" in choose_smooth(problem).reason

    def test_empty_rows(self):
        from scipy.sparse import csr_array

        features = chain_features(Sparse(csr_array((3, 2)), 2), 2)
        problem = Problem(Chain([1, 2], 2), features, [[0], [1, 0]], temperature=1.0, n_jobs=1)
        assert minimize(problem, tol=1e-6).converged
