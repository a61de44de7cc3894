from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from m3n import Problem, Status, minimize
from m3n.features import Dense
from m3n.losses import Hamming, NormalizedHamming
from m3n.solvers import BMRM
from m3n.solvers.bmrm import LEAST, MOST
from m3n.structures import Chain, Multiclass
from tests.tiny import Enumerated, PartCoordinates, chain_problem, iterates, multiclass_problem

PROBLEMS = [chain_problem, multiclass_problem]
SOLVERS = [BMRM(), BMRM(stabilize="none"), BMRM(most_planes=6), BMRM(patience=None)]
NAMES = ["default", "plain", "few planes", "all planes"]
ROUNDING = 1e-10  # sums of a few hundred terms, and the accuracy of the small quadratic programme


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_optimum_of_an_independent_solver(make, temperature, solver):
    problem = make(seed=3, temperature=temperature)
    known = Enumerated.of(problem)
    best = known.optimum()
    tol = 1e-6 if solver.most_planes > 20 else 1e-3  # merged planes cost the last digits
    result = minimize(problem, solver, tol=tol, max_passes=5_000)
    assert result.status is Status.TOLERANCE
    assert result.certificate.dual <= best + ROUNDING
    assert best <= result.certificate.primal + ROUNDING
    assert result.certificate.primal == pytest.approx(best, abs=tol)
    assert result.certificate.primal == pytest.approx(known.primal(result.w), abs=1e-12)


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_promises_on_every_iterate(make, temperature, solver):
    """Monotone bounds enclose the optimum; planes lie below the risk; Gram and dual equal recomputed ones."""
    problem = make(seed=1, temperature=temperature)
    known = Enumerated.of(problem)
    best = known.optimum()
    states = list(iterates(problem, solver, 80))
    for old, new in pairwise(states):
        assert new.primal <= old.primal
        assert new.dual >= old.dual
    for state in states:
        planes, w = state.planes, state.planes.point(problem)
        assert state.primal == pytest.approx(known.primal(state.w), abs=1e-12)
        assert state.dual <= best + ROUNDING <= state.primal + 2 * ROUNDING
        assert state.dual == pytest.approx(planes.offset - problem.lam / 2 * w @ w, abs=ROUNDING)
        vectors = np.array(planes.vectors)
        np.testing.assert_allclose(planes.gram, vectors @ vectors.T, rtol=1e-9, atol=1e-9)
        heights = planes.offsets - vectors @ state.w
        assert heights.max() <= known.primal(state.w) - problem.lam / 2 * state.w @ state.w + ROUNDING
        assert len(planes) <= solver.most_planes
        assert state.metrics["bundle_gap"] == state.primal - state.dual
        assert state.metrics["planes"] == len(planes)


@pytest.mark.parametrize("make", PROBLEMS)
def test_lower_bound_is_the_minimum_of_the_model(make):
    """Without pruning: no point is lower in the model than the bound, and the next plain trial attains it."""
    problem = make()
    random = np.random.default_rng(0)
    for state in iterates(problem, BMRM(stabilize="none", patience=None), 40):
        vectors, offsets = np.array(state.planes.vectors), state.planes.offsets

        def model(w, offsets=offsets, vectors=vectors):
            return problem.lam / 2 * w @ w + (offsets - vectors @ w).max()

        assert model(state.trial) == pytest.approx(state.dual, abs=ROUNDING)
        for _ in range(10):
            assert model(state.trial + random.normal(size=problem.dim)) >= state.dual


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_line_search(make, temperature):
    """The reach grows only if the trial was no further than the minimum on the line, and shrinks only if no nearer."""
    problem = make(temperature=temperature)
    known = Enumerated.of(problem)
    grown = shrunk = 0
    for old, new in pairwise(iterates(problem, BMRM(), 60)):
        assert LEAST <= new.reach <= MOST
        here = known.primal(old.trial)
        line = [known.primal(old.w + s * (old.trial - old.w)) for s in np.linspace(0.0, 3.0, 31)]
        if new.reach > old.reach:
            grown += 1
            assert min(line[:11]) >= here - ROUNDING
        elif new.reach < old.reach:
            shrunk += 1
            assert min(line[10:]) >= here - ROUNDING
        assert new.primal == pytest.approx(min(old.primal, here), abs=1e-12)
    assert grown > 5 < shrunk


def test_line_search_saves_passes():
    problem = chain_problem(lengths=(3, 4, 5, 3, 6) * 4, labels=3, lam=0.001)
    near, far = (minimize(problem, BMRM(stabilize=kind), tol=1e-2).trace[-1].passes for kind in ("line_search", "none"))
    assert near < 0.7 * far


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_one_pass_per_step(temperature):
    problem = chain_problem(temperature=temperature)
    solver = BMRM()
    state = solver.init(problem)
    for _ in range(20):
        before = problem.hard_calls, problem.soft_calls
        state = solver.step(problem, state)
        made = problem.hard_calls - before[0], problem.soft_calls - before[1]
        assert made == ((0, problem.n) if temperature else (problem.n, 0))


def test_certificates_are_free():
    problem = chain_problem()
    result = minimize(problem, BMRM(), tol=1e-3)
    assert result.converged
    assert result.trace[-1].evaluation_calls == problem.n  # that of w = 0, before the solver began
    assert result.trace[-1].gap == pytest.approx(result.trace[-1].metrics["bundle_gap"], abs=1e-12)


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_states_are_not_changed_in_place(solver):
    problem = chain_problem()
    state = solver.init(problem)
    for _ in range(20):
        arrays = [state.w, state.trial, *state.planes.vectors, state.planes.gram, state.planes.weights]
        copies = [array.copy() for array in arrays]
        new = solver.step(problem, state)
        again = solver.step(problem, state)
        for array, copy in zip(arrays, copies, strict=True):
            np.testing.assert_array_equal(array, copy)
        np.testing.assert_array_equal(new.trial, again.trial)  # a step is a function of the state
        state = new


def test_resume_goes_on_where_it_stopped():
    problem = chain_problem()
    whole = minimize(problem, BMRM(), tol=1e-5)
    first = minimize(problem, BMRM(), tol=1e-2)
    second = minimize(problem, BMRM(), tol=1e-5, resume=first)
    assert first.state.k < second.state.k == whole.state.k
    np.testing.assert_array_equal(second.w, whole.w)
    assert second.certificate == whole.certificate


@pytest.mark.parametrize("make", PROBLEMS)
def test_same_in_coordinates_of_parts(make):
    """Weights may be coefficients: the solver sees them through inner products and combinations only."""
    plain = make()
    parts = PartCoordinates(plain.features)
    loss = NormalizedHamming() if isinstance(plain.structure, Chain) else Hamming()
    y = plain.structure.unpack(plain.gold)
    lifted = Problem(plain.structure, parts, y, loss=loss, lam=plain.lam, n_jobs=1)
    for state, twin in zip(iterates(lifted, BMRM(), 15), iterates(plain, BMRM(), 15), strict=True):
        assert state.dual == pytest.approx(twin.dual, abs=1e-8)
        assert state.primal == pytest.approx(twin.primal, abs=1e-8)
        np.testing.assert_allclose(parts.weights(state.w), twin.w, atol=1e-6)


def test_memory_is_bounded():
    """Three planes are enough to converge, slowly; the bound stays monotone and true all the way."""
    problem = multiclass_problem(lam=0.5)
    best = Enumerated.of(problem).optimum()
    duals = []
    for state in iterates(problem, BMRM(most_planes=3), 300):
        assert len(state.planes) <= 3
        duals.append(state.dual)
    assert duals == sorted(duals)
    assert best - 1e-2 <= duals[-1] <= best + ROUNDING


@pytest.mark.parametrize("stabilize", ["line_search", "none"])
def test_stalls_instead_of_running_for_ever(stabilize):
    problem = chain_problem()
    result = minimize(problem, BMRM(stabilize=stabilize), tol=0.0, max_passes=20_000)
    assert result.status in (Status.STALLED, Status.TOLERANCE)
    assert result.certificate.gap <= 1e-10
    assert result.certificate.primal == pytest.approx(Enumerated.of(problem).optimum(), abs=1e-9)


def test_one_label_is_trivial():
    problem = Problem(Multiclass(3, 1), Dense(np.ones((3, 2)), 1), [0, 0, 0], n_jobs=1)
    result = minimize(problem, BMRM(), tol=1e-9)
    assert result.status is Status.TOLERANCE
    assert result.certificate.primal == pytest.approx(0.0, abs=1e-12)


def test_same_settings_same_bits():
    results = [minimize(chain_problem(n_jobs=2), BMRM(), tol=1e-3) for _ in range(2)]
    np.testing.assert_array_equal(results[0].w, results[1].w)
    assert results[0].certificate == results[1].certificate


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stabilize": "trust"}, "stabilize must be 'line_search' or 'none', got 'trust'"),
        ({"patience": -1}, "patience must not be negative"),
        ({"most_planes": 2}, "most_planes must be at least 3"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        BMRM(**settings)


def test_passes_on_ocr(data_folder):
    """On the handwritten words (lam = 0.01) plain cutting planes stand at a gap near 0.5 after 150 passes."""
    from benchmarks.datasets import ocr_problem

    problem = ocr_problem(data_folder, lam=0.01, sparse=True)
    result = minimize(problem, BMRM(), tol=1e-2, max_passes=150)
    passes = {goal: next(r.passes for r in result.trace if r.gap <= goal) for goal in (1e-1, 1e-2)}
    assert passes[1e-1] <= 80
    assert passes[1e-2] <= 115
    assert max(record.metrics.get("planes", 0) for record in result.trace) <= 100


def test_replacing_a_setting_keeps_the_rest():
    assert replace(BMRM(patience=3), most_planes=7) == BMRM(patience=3, most_planes=7)
