from itertools import pairwise

import numpy as np
import pytest

from m3n import Problem, Status, WrongObjective, minimize
from m3n.features import Dense
from m3n.solvers import BMRM, StructSVM, struct_svm
from m3n.solvers.planes import Plane
from m3n.structures import Multiclass
from tests.tiny import Enumerated, chain_problem, multiclass_problem

PROBLEMS = [chain_problem, multiclass_problem]
ROUNDING = 1e-10  # sums of a few hundred terms, and the accuracy of the small quadratic programme


def iterates(problem, solver, steps):
    state = solver.init(problem)
    yield state
    for _ in range(steps):
        state = solver.step(problem, state)
        yield state


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("solver", [StructSVM(), StructSVM(patience=2), StructSVM(most_planes=8)])
def test_optimum_of_an_independent_qp_solver(make, solver):
    problem = make(seed=3)
    known = Enumerated.of(problem)
    best = known.optimum()
    tol = 1e-6 if solver.most_planes > 20 else 1e-3  # merged planes cost the last digits
    result = minimize(problem, solver, tol=tol, max_passes=5_000)
    assert result.status is Status.TOLERANCE
    assert result.certificate.dual <= best + ROUNDING <= result.certificate.primal + 2 * ROUNDING
    assert result.certificate.primal == pytest.approx(best, abs=tol)
    assert result.certificate.primal == pytest.approx(known.primal(result.w), abs=1e-12)


@pytest.mark.parametrize("make", PROBLEMS)
def test_stops_by_the_rule_of_its_authors(make):
    """The most violated constraint is violated by at most eps; it was by more in every step before."""
    eps = 1e-4
    problem = make()
    result = minimize(problem, StructSVM(), tol=eps)
    violations = [record.metrics["violation"] for record in result.trace if record.metrics]
    assert result.converged
    assert violations[-1] <= eps < min(violations[:-1])


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("solver", [StructSVM(), StructSVM(patience=2), StructSVM(most_planes=8)])
def test_promises_on_every_iterate(make, solver):
    problem = make(seed=1)
    known = Enumerated.of(problem)
    best = known.optimum()
    states = list(iterates(problem, solver, 60))
    for old, new in pairwise(states):
        assert new.dual >= old.dual
        assert new.k == old.k + 1
    for state in states:
        vectors = np.array(state.planes.vectors)
        assert state.primal == pytest.approx(known.primal(state.w), abs=1e-12)
        assert state.dual <= best + ROUNDING <= state.primal + 2 * ROUNDING
        assert state.dual == pytest.approx(problem.dual(state.w, state.planes.offset), abs=ROUNDING)
        np.testing.assert_allclose(state.planes.gram, vectors @ vectors.T, rtol=1e-9, atol=1e-9)
        # xi is the optimal slack of the working set, so the violation is the gap at w
        assert state.violation == pytest.approx(state.primal - state.dual, abs=ROUNDING)
        assert len(state.planes) <= solver.most_planes
        assert state.metrics == {"violation": state.violation, "constraints": len(state.planes), "steps": state.k}


def test_most_violated_constraint_is_that_of_the_best_joint_labelling():
    problem = chain_problem()
    known = Enumerated.of(problem)
    for state in iterates(problem, StructSVM(), 20):
        margins = known.ell - known.psi @ state.w
        rows = [np.flatnonzero(known.owner == i)[margins[known.owner == i].argmax()] for i in known.range]
        newest = state.planes.offsets[-1], state.planes.vectors[-1]
        assert newest[0] - newest[1] @ state.w == pytest.approx(margins[rows].mean(), abs=1e-12)


def test_inactive_constraints_are_dropped():
    problem = multiclass_problem(n=30)
    sizes = [
        max(len(state.planes) for state in iterates(problem, StructSVM(patience=patience), 60))
        for patience in (3, None)
    ]
    assert sizes[0] < sizes[1] == 62  # gold's constraint and one per pass


def test_same_as_the_plain_bundle_method():
    """The algorithms differ only in their names as long as every constraint comes from the oracle."""
    problem = chain_problem()
    ours = list(iterates(problem, StructSVM(patience=None), 25))
    plain = list(iterates(problem, BMRM(stabilize="none", patience=None), 25))
    for state, before in zip(ours[1:], plain[:-1], strict=True):
        assert state.dual == pytest.approx(before.dual, abs=1e-8)
        np.testing.assert_allclose(state.w, before.trial, atol=1e-6)


def test_constraints_from_elsewhere(monkeypatch):
    """A constraint that is not the most violated one is as good for the bound; J is then unknown."""

    def at_half(problem, state, w):
        answer = problem.hard(w / 2)
        return Plane(answer.offset, answer.vector), np.nan

    problem = chain_problem()
    best = Enumerated.of(problem).optimum()
    state = StructSVM().init(problem)
    with monkeypatch.context() as patch:
        patch.setattr(struct_svm, "exact_constraint", at_half)
        for _ in range(10):
            state = StructSVM().step(problem, state)
            assert np.isnan(state.primal)
            assert not state.stalled
            assert state.dual <= best + ROUNDING
    for _ in range(60):
        state = StructSVM().step(problem, state)
    assert state.dual == pytest.approx(best, abs=1e-5)


def test_one_pass_per_step_and_free_certificates():
    problem = chain_problem()
    result = minimize(problem, StructSVM(), tol=1e-3)
    assert result.soft_calls == 0
    assert result.hard_calls == problem.n * (result.state.k + 1)  # J(0) was needed before the solver began
    assert result.trace[-1].evaluation_calls == problem.n


def test_states_are_not_changed_in_place():
    problem = chain_problem()
    solver = StructSVM(patience=3, most_planes=6)
    state = solver.init(problem)
    for _ in range(20):
        arrays = [state.w, *state.planes.vectors, state.planes.gram, state.planes.weights, state.planes.idle]
        copies = [array.copy() for array in arrays]
        new, again = solver.step(problem, state), solver.step(problem, state)
        for array, copy in zip(arrays, copies, strict=True):
            np.testing.assert_array_equal(array, copy)
        np.testing.assert_array_equal(new.w, again.w)
        state = new


def test_resume_goes_on_where_it_stopped():
    problem = chain_problem()
    whole = minimize(problem, StructSVM(), tol=1e-5)
    first = minimize(problem, StructSVM(), tol=1e-2)
    second = minimize(problem, StructSVM(), tol=1e-5, resume=first)
    assert first.state.k < second.state.k == whole.state.k
    assert second.certificate == whole.certificate


def test_stalls_instead_of_running_for_ever():
    problem = chain_problem()
    result = minimize(problem, StructSVM(), tol=0.0, max_passes=20_000)
    assert result.status in (Status.STALLED, Status.TOLERANCE)
    assert result.certificate.gap <= 1e-10


def test_refuses_conditional_random_fields():
    with pytest.raises(WrongObjective, match="StructSVM trains max-margin networks only"):
        minimize(chain_problem(temperature=1.0), StructSVM())


def test_one_label_is_trivial():
    problem = Problem(Multiclass(3, 1), Dense(np.ones((3, 2)), 1), [0, 0, 0], n_jobs=1)
    result = minimize(problem, StructSVM(), tol=1e-9)
    assert result.status is Status.TOLERANCE


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"slack": "n"}, "slack must be 'one', got 'n'"),
        ({"patience": -1}, "patience must not be negative"),
        ({"most_planes": 2}, "most_planes must be at least 3"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        StructSVM(**settings)
