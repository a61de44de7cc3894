"""SVM-struct against its own theory: violations, working sets, caches."""

import numpy as np
import pytest

from m3n import minimize
from m3n.solvers import BMRM, StructSVM
from m3n.solvers.working_sets import dual_point
from tests.tiny import Enumerated, chain_problem, multiclass_problem

PROBLEMS = [chain_problem, multiclass_problem]
FORMS = {"one slack": StructSVM(), "one slack, no cache": StructSVM(cache=0), "n slacks": StructSVM(slack="n")}


def iterates(problem, solver, steps):
    state = solver.init(problem)
    yield state
    for _ in range(steps):
        if state.stalled:
            return
        state = solver.step(problem, state)
        yield state


@pytest.mark.parametrize("solver", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("make", PROBLEMS)
def test_optimum_of_an_independent_solver_to_many_digits(make, solver):
    problem = make(seed=3)
    best = Enumerated.of(problem).optimum()
    result = minimize(problem, solver, tol=1e-6, max_passes=3000)
    assert result.converged
    assert result.certificate.dual <= best + 1e-9 <= result.certificate.primal + 2e-9


@pytest.mark.parametrize("cache", [0, 3])
@pytest.mark.parametrize("make", PROBLEMS)
def test_one_slack_violation_is_what_the_new_constraint_adds(make, cache):
    """b - <w, a> - xi with xi the slack of the old working set; for exact constraints J(w) - dual."""
    problem = make()
    known = Enumerated.of(problem)
    exact = 0
    for state in iterates(problem, StructSVM(cache=cache, patience=None, most_planes=10_000), 80):
        planes, w = state.planes, state.w
        heights = planes.offsets - np.array([vector @ w for vector in planes.vectors])
        slack = max(heights[:-1].max(), 0.0)
        assert state.violation == pytest.approx(heights[-1] - slack, abs=1e-9)
        if not np.isnan(state.primal):
            exact += 1
            assert heights[-1] == pytest.approx(known.primal(w) - problem.lam / 2 * w @ w, abs=1e-9)
            assert state.violation >= -1e-9  # no joint labelling is worse than the oracle's
    assert exact > 3


@pytest.mark.parametrize("make", PROBLEMS)
def test_one_slack_stops_with_a_violation_below_eps(make):
    for eps in (1e-1, 1e-2, 1e-4):
        result = minimize(make(), StructSVM(cache=0), tol=eps)
        assert result.converged
        assert result.trace[-1].metrics["violation"] <= eps + 1e-9
        assert result.trace[-2].metrics["violation"] > eps  # and not before


def test_n_slack_constraints_hold_up_to_eps():
    """Every output violates its example's constraint by no more than was seen at its last visit, at the end."""
    problem = chain_problem(lengths=(3, 4, 2, 5), labels=3)
    known = Enumerated.of(problem)
    *_, state = iterates(problem, StructSVM(slack="n"), 400)
    margins = known.ell - known.psi @ state.w
    for i, (inside, _) in enumerate(_margins(problem, state.sets, state.w)):
        assert margins[known.owner == i].max() <= max(inside) + max(2 * state.eps, 1e-9)


def _scores(problem, i, w):
    alone, rows = problem.structure.select(np.array([i]))
    return problem.features.select(rows).scores(w, alone.empty())


@pytest.mark.parametrize("make", PROBLEMS)
def test_n_slack_dual_is_that_of_its_working_sets(make):
    problem = make()
    previous = 0.0
    for state in iterates(problem, StructSVM(slack="n", batch=0.5), 60):
        u, b = dual_point(problem, state.sets)
        np.testing.assert_allclose(state.w, u, atol=1e-9)
        assert state.dual == pytest.approx(problem.dual(u, b), abs=1e-9)
        assert state.dual >= previous - 1e-12
        previous = state.dual


@pytest.mark.parametrize("make", PROBLEMS)
def test_one_slack_dual_is_monotone_and_below_the_optimum(make):
    problem = make()
    best = Enumerated.of(problem).optimum()
    previous = 0.0
    for state in iterates(problem, StructSVM(), 200):
        assert previous <= state.dual <= best + 1e-9
        previous = state.dual


@pytest.mark.parametrize(
    "solver", [StructSVM(cache=0), StructSVM(cache=0, patience=2), StructSVM(cache=0, most_planes=8)]
)
@pytest.mark.parametrize("make", PROBLEMS)
def test_promises_of_exact_constraints_on_every_iterate(make, solver):
    problem = make(seed=1)
    known = Enumerated.of(problem)
    best = known.optimum()
    for state in iterates(problem, solver, 60):
        vectors = np.array(state.planes.vectors)
        assert state.primal == pytest.approx(known.primal(state.w), abs=1e-12)
        assert state.dual <= best + 1e-10 <= state.primal + 2e-10
        np.testing.assert_allclose(state.planes.gram, vectors @ vectors.T, rtol=1e-9, atol=1e-9)
        assert state.violation == pytest.approx(state.primal - state.dual, abs=1e-9)  # xi is optimal: it is the gap
        assert len(state.planes) <= solver.most_planes


def test_without_a_cache_the_same_as_the_plain_bundle_method():
    """The algorithms differ only in their names as long as every constraint comes from the oracle."""
    problem = chain_problem()
    ours = list(iterates(problem, StructSVM(cache=0, patience=None), 25))
    plain = list(iterates(problem, BMRM(stabilize="none", patience=None), 25))
    assert min(len(ours), len(plain)) > 15
    for state, before in zip(ours[1:], plain[:-1], strict=False):  # either may find that it has arrived
        assert state.dual == pytest.approx(before.dual, abs=1e-8)
        np.testing.assert_allclose(state.w, before.trial, atol=1e-6)


def test_remembered_outputs_save_oracle_calls():
    problem = chain_problem(lengths=(3, 4, 5, 3, 6) * 4, labels=3, lam=0.01)
    cached, plain = (minimize(problem, StructSVM(cache=cache), tol=0.02) for cache in (10, 0))
    assert cached.converged
    assert plain.converged
    assert cached.hard_calls < 0.7 * plain.hard_calls


def test_forgotten_constraints_change_nothing_but_memory():
    problem = chain_problem(lengths=(3, 4, 5, 3, 6), labels=3, lam=0.01)
    best = Enumerated.of(problem).optimum()
    for solver in (StructSVM(patience=2), StructSVM(most_planes=8)):
        result = minimize(problem, solver, tol=0.02, max_passes=3000)
        assert result.converged
        assert result.certificate.dual <= best + 1e-9 <= result.certificate.primal + 2e-9
        assert len(result.state.planes) < 60
    assert len(result.state.planes) <= 8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"slack": "two"}, "slack must be 'one' or 'n', got 'two'"),
        ({"cache": -1}, "must not be negative"),
        ({"patience": -1}, "must not be negative"),
        ({"most_planes": 2}, "most_planes must be at least 3"),
        ({"batch": 0.0}, "0 < batch <= 1"),
    ],
)
def test_impossible_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        StructSVM(**settings)


def test_figure_on_ocr(data_folder):
    """One slack with its cache: a gap of 0.1 well within 150 passes."""
    from benchmarks.datasets import ocr_problem

    result = minimize(ocr_problem(data_folder, lam=0.01, sparse=True), StructSVM(), tol=0.1, max_passes=150)
    assert result.converged


def test_n_slack_violations_and_programme_against_enumeration():
    """Violations are those of the old working sets at the old weights; the programme is solved to a tenth of eps."""
    problem = chain_problem(lengths=(3, 4, 2, 5), labels=3, lam=0.02)
    known = Enumerated.of(problem)
    solver = StructSVM(slack="n", batch=1.0)
    state = solver.init(problem)
    for _ in range(25):
        new = solver.step(problem, state)
        worst = np.array([(known.ell - known.psi @ state.w)[known.owner == i].max() for i in range(problem.n)])
        slack = np.array([max(margins) for margins, _ in _margins(problem, state.sets, state.w)])
        np.testing.assert_allclose(new.violations, np.maximum(worst - slack, 0.0), atol=1e-9)
        if (new.violations > new.eps).any():
            inside = [max(margins) - alpha @ margins for margins, alpha in _margins(problem, new.sets, new.w)]
            assert np.mean(inside) <= 0.1 * new.eps + 1e-9
        state = new
    assert state.eps < 1e-3


def _margins(problem, sets, w):
    """ell - <w, psi> of every output in every working set, and their weights."""
    for i in range(problem.n):
        theta = np.concatenate([s.ravel() for s in _scores(problem, i, w)])
        gold = theta[problem.blocks.gold[i, : problem.blocks.gold_counts[i]]].sum()
        slots = range(sets.first[i], sets.first[i] + sets.used[i])
        scores = [sets.losses[k] + theta[sets.parts[k, : sets.counts[k]]].sum() - gold for k in slots]
        yield np.array(scores), sets.alpha[slots]
