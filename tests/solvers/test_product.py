"""Every solver on every kind of small problem: one optimum, true certificates, honest counters."""

from dataclasses import fields, is_dataclass
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array

from m3n import MissingOracle, Problem, Status, WrongObjective, minimize
from m3n.features import Dense, Sparse, chain_features
from m3n.losses import Hamming, NoLoss, NormalizedHamming
from m3n.run.radius import plain_radius
from m3n.solvers import (
    BMRM,
    BY_NAME,
    SMO,
    BlockFrankWolfe,
    ExcessiveGap,
    ExponentiatedGradient,
    GapSampling,
    Pairwise,
    PlaneCache,
    StructSVM,
    Subgradient,
    Uniform,
)
from m3n.structures import Chain, Multiclass
from tests.problem.test_blocks import edge_problem
from tests.structures.test_graph import graph_problem
from tests.tiny import Enumerated, chain_problem, multiclass_problem

SOLVERS = {
    **{name: kind() for name, kind in BY_NAME.items()},
    "exponentiated_gradient, online": ExponentiatedGradient(online=True),
    "bmrm, plain": BMRM(stabilize="none"),
    "struct_svm, no cache": StructSVM(cache=0),
    "struct_svm, n slacks": StructSVM(slack="n"),
    "excessive_gap, uniform centre": ExcessiveGap(center="uniform"),
    "block_frank_wolfe, gap sampling": BlockFrankWolfe(order=GapSampling()),
    "block_frank_wolfe, with replacement": BlockFrankWolfe(order=Uniform()),
    "block_frank_wolfe, pairwise": BlockFrankWolfe(move=Pairwise()),
    "block_frank_wolfe, cached": BlockFrankWolfe(cache=PlaneCache(3)),
    "block_frank_wolfe, pairwise, cached": BlockFrankWolfe(move=Pairwise(), cache=PlaneCache(3), order=GapSampling()),
}
PROBLEMS = {
    "chain": lambda: chain_problem(seed=3),
    "multiclass": lambda: multiclass_problem(seed=3),
    "edges": lambda: edge_problem(seed=3),
    "graph": lambda: graph_problem(seed=2),
    "chain CRF": lambda: chain_problem(seed=3, temperature=1.0),
    "logistic regression": lambda: multiclass_problem(seed=3, temperature=1.0),
    "softmax-margin": lambda: chain_problem(seed=3, temperature=0.3, loss=NormalizedHamming()),
    "sparse CRF": lambda: chain_problem(seed=3, temperature=1.0, lam=0.0, l1=0.05),
    "elastic net": lambda: multiclass_problem(seed=3, temperature=1.0, lam=0.05, l1=0.05),
}
NO_DUAL = (Subgradient,)


def pytest_generate_tests(metafunc):
    """Every solver with every problem that it can solve."""
    names = [name for name in ("solver", "problem") if name in metafunc.fixturenames]
    if names == ["solver"]:
        metafunc.parametrize("solver", SOLVERS, indirect=True)
    elif names:
        problems = {name: make() for name, make in PROBLEMS.items()}
        pairs = [(s, p) for s in SOLVERS for p in PROBLEMS if SOLVERS[s].fits(problems[p])]
        metafunc.parametrize(names, pairs, indirect=True, ids=[f"{s}-{p}" for s, p in pairs])


@pytest.fixture
def solver(request):
    return SOLVERS[request.param]


@pytest.fixture
def problem(request):
    return PROBLEMS[request.param]()


@pytest.fixture
def known(request):
    """The same problem written out."""
    return written_out(request.node.callspec.params["problem"])


@cache
def written_out(name):
    return Enumerated.of(PROBLEMS[name]())


def rounding(problem):
    """How exact the independent optimum is: SciPy's for a CRF has fewer digits than the QP solver's."""
    return 1e-8 if problem.temperature else 1e-9


def arrays_of(thing):
    """All arrays that a state holds."""
    if isinstance(thing, np.ndarray):
        yield thing
    elif is_dataclass(thing):
        for entry in fields(thing):
            yield from arrays_of(getattr(thing, entry.name))
    elif isinstance(thing, (tuple, list)):
        for entry in thing:
            yield from arrays_of(entry)


def test_optimum_of_an_independent_solver(solver, problem, known):
    best = known.best
    result = minimize(problem, solver, tol=5e-3, max_passes=4000)
    found = result.certificate
    assert found.dual <= best + rounding(problem) <= found.primal + 2 * rounding(problem)
    assert found.primal == pytest.approx(known.primal(result.w), abs=1e-10)
    if isinstance(solver, NO_DUAL):
        assert found.primal - best < 5e-3
        assert found.dual == 0.0  # nobody's dual but gold's
    else:
        assert result.status in (Status.TOLERANCE, Status.STALLED)
        assert found.gap <= 5e-3


def test_weak_duality_at_every_state(solver, problem, known):
    best = known.best
    state = solver.init(problem)
    for _ in range(80):
        assert state.dual <= best + rounding(problem)
        assert known.primal(state.w) >= best - rounding(problem)
        if not np.isnan(state.primal):
            assert state.primal == pytest.approx(known.primal(state.w), abs=1e-10)
        if state.stalled:
            break
        state = solver.step(problem, state)


def test_the_optimum_is_within_the_radius(solver, problem):
    """The weights of a tight run stand for the optimum; they are as near to it as their own radius says."""
    optimum = minimize(problem, "auto", tol=1e-11, max_passes=3000)
    for tol in (0.3, 1e-2):
        result = minimize(problem, solver, tol=tol, max_passes=300)
        plain = plain_radius(result.certificate, problem.lam)
        assert result.radius <= plain * (1.0 + 1e-12)
        assert np.linalg.norm(result.w - optimum.w) <= result.radius + optimum.radius


def test_same_seed_same_result(solver, problem):
    first, second = (minimize(problem, solver, tol=0.0, max_passes=25) for _ in range(2))
    np.testing.assert_array_equal(first.w, second.w)
    assert first.certificate == second.certificate
    assert [r.passes for r in first.trace] == [r.passes for r in second.trace]


def test_states_are_not_changed_in_place(solver, problem):
    state = solver.init(problem)
    for _ in range(12):
        copies = [array.copy() for array in arrays_of(state)]
        assert copies
        new = solver.step(problem, state)
        for array, copy in zip(arrays_of(state), copies, strict=True):
            np.testing.assert_array_equal(array, copy)
        state = new


def test_a_resumed_run_goes_on(solver, problem):
    half = minimize(problem, solver, tol=0.0, max_passes=20)
    rest = minimize(problem, solver, tol=0.0, max_passes=20, resume=half)
    assert rest.certificate.gap <= half.certificate.gap
    state = half.state
    for _ in range(250):  # a step may be a small part of a pass
        state = state if state.stalled else solver.step(problem, state)
        if np.array_equal(rest.state.w, state.w):
            return
    pytest.fail("a step was lost or repeated")


def test_metrics_contain_the_native_quantity(solver, problem):
    state = solver.step(problem, solver.init(problem))
    assert all(isinstance(value, (int, float)) for value in state.metrics.values())
    assert solver.native in state.metrics or isinstance(solver, NO_DUAL)
    for _ in range(30):  # until every example was visited
        state = state if state.stalled else solver.step(problem, state)
    assert np.isfinite(state.metrics.get(solver.native, 0.0))
    assert solver.rate
    assert solver.requires
    assert solver.rate_smooth or not problem.temperature


def degenerate():
    """Problems at the edge of what makes sense."""
    random = np.random.default_rng(0)

    def chain(lengths, labels, node, lam=0.1, **settings):
        y = [random.integers(labels, size=length) for length in lengths]
        return Problem(Chain(lengths, labels), chain_features(node, labels), y, lam=lam, n_jobs=1, **settings)

    X = random.normal(size=(5, 2))
    return {
        "one label": chain([2, 3], 1, Dense(X, 1)),
        "one example": chain([5], 3, Dense(X, 3)),
        "single positions": chain([1] * 5, 3, Dense(X, 3)),
        "zero features": chain([2, 3], 3, Dense(0 * X, 3)),
        "empty rows": chain([2, 3], 3, Sparse(csr_array((5, 4)), 3)),
        "no attributes": chain([2, 3], 3, Dense(X[:, :0], 3)),
        "huge features": chain([2, 3], 3, Dense(1e6 * X, 3)),
        "hardly any regularisation": chain([2, 3], 3, Dense(X, 3), lam=1e-8),
        "nothing but regularisation": chain([2, 3], 3, Dense(X, 3), lam=1e8),
        "no loss": chain([2, 3], 3, Dense(X, 3), loss=NoLoss()),
        "CRF with one label": chain([2, 3], 1, Dense(X, 1), temperature=1.0),
        "sparse CRF with one label": chain([2, 3], 1, Dense(X, 1), temperature=1.0, l1=0.1),
        "sparse CRF without a square": chain([2, 3], 3, Dense(X, 3), lam=0.0, temperature=1.0, l1=0.1),
        "nothing but an l1 penalty": chain([2, 3], 3, Dense(X, 3), lam=0.0, temperature=1.0, l1=1e8),
        "hardly any l1 penalty": chain([2, 3], 3, Dense(X, 3), lam=0.0, temperature=1.0, l1=1e-8),
    }


@pytest.mark.parametrize("case", degenerate())
def test_degenerate_problems(solver, case):
    problem = degenerate()[case]
    if solver.fits(problem):
        result = minimize(problem, solver, tol=1e-6, max_passes=40)
        assert 0.0 <= result.certificate.gap <= problem.worst_loss
        assert np.isfinite(result.w).all()


def lowest_temperature(solver):
    """0, or 1 for a solver of CRFs only."""
    return 0.0 if solver.oracles(0.0) is not None else 1.0


def needed_l1(solver):
    """0, or something for a solver that needs it."""
    return 0.01 if solver.takes_l1 else 0.0


class Counting(Multiclass):
    """Counts what is really asked of it, in examples."""

    calls = 0

    def space(self):
        return None  # no compiled functions: everything passes through here

    def hard(self, theta, threads=None):
        Counting.calls += self.n
        return super().hard(theta)

    def soft(self, theta, mu, threads=None):
        Counting.calls += self.n
        values, marginals = super().soft(theta, mu)
        return values, marginals

    def select(self, examples):
        part, rows = super().select(examples)
        return Counting(part.n, self.labels), rows


def test_counters_equal_real_calls(solver):
    if isinstance(solver, SMO):
        pytest.skip("its oracle on the support exists in compiled form only")
    random = np.random.default_rng(0)
    X, y = random.normal(size=(6, 3)), random.integers(3, size=6)
    heat = lowest_temperature(solver)
    settings = {"loss": Hamming(), "lam": 0.1, "temperature": heat, "l1": needed_l1(solver), "n_jobs": 1}
    problem = Problem(Counting(6, 3), Dense(X, 3), y, **settings)
    Counting.calls = 0
    result = minimize(problem, solver, tol=0.0, max_passes=20)
    assert result.hard_calls + result.soft_calls == Counting.calls > 0
    assert result.trace[-1].passes == Counting.calls / 6
    assert 0 < result.trace[-1].evaluation_calls < Counting.calls


def test_compiled_and_interpreted_visits_agree(solver):
    """A structure without compiled functions runs the same kernels in the interpreter."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(6, 3)), random.integers(3, size=6)
    settings = {"loss": Hamming(), "lam": 0.1, "temperature": lowest_temperature(solver), "l1": needed_l1(solver)}
    settings["n_jobs"] = 1
    compiled = Problem(Multiclass(6, 3), Dense(X, 3), y, **settings)
    plain = Problem(Counting(6, 3), Dense(X, 3), y, **settings)
    if isinstance(solver, SMO):
        pytest.skip("its oracle on the support exists in compiled form only")
    results = [minimize(p, solver, tol=0.0, max_passes=12) for p in (compiled, plain)]
    np.testing.assert_allclose(results[0].w, results[1].w, atol=1e-9)
    assert results[0].certificate.dual == pytest.approx(results[1].certificate.dual, abs=1e-9)


class MaxOnly(Multiclass):
    oracles = frozenset({"hard"})


class ExpOnly(Multiclass):
    oracles = frozenset({"soft"})


def test_refuses_structures_without_its_oracle(solver):
    X, y = np.eye(3), [0, 1, 2]
    heat = lowest_temperature(solver)
    for structure in (MaxOnly(3, 3), ExpOnly(3, 3)):
        settings = {"loss": Hamming(), "lam": 0.1, "temperature": heat, "l1": needed_l1(solver)}
        problem = Problem(structure, Dense(X, 3), y, **settings)
        if solver.oracles(heat) <= structure.oracles and ("soft" if heat else "hard") in structure.oracles:
            assert minimize(problem, solver, tol=10.0).converged
        else:
            with pytest.raises(MissingOracle, match="needs the"):
                minimize(problem, solver)


def test_refuses_a_crf_or_solves_it(solver):
    problem = chain_problem(temperature=1.0, l1=needed_l1(solver))
    if solver.requires_smooth is None:
        with pytest.raises(WrongObjective, match=rf"{type(solver).__name__} .*at temperature 1 choose from \["):
            minimize(problem, solver)
        return
    best = Enumerated.of(problem).optimum()
    result = minimize(problem, solver, tol=1e-4, max_passes=3000)
    assert result.converged
    assert result.certificate.dual <= best + 1e-9 <= result.certificate.primal + 2e-9


def test_refuses_an_l1_penalty_or_needs_one(solver):
    name = type(solver).__name__
    wrong = chain_problem(temperature=1.0, l1=0.0 if solver.takes_l1 else 0.1)
    refusal = rf"{name} cannot .* choose from \['OWLQN', 'SparseDualAscent'\]"
    message = f"{name} is for problems with an l1 penalty" if solver.takes_l1 else refusal
    with pytest.raises(WrongObjective, match=message):
        minimize(wrong, solver)
    with pytest.raises(WrongObjective, match=r"no solver minimises an l1 penalty .* at temperature 0"):
        minimize(chain_problem(l1=0.1), solver)


@pytest.mark.parametrize("lam", [0.0, -1.0, np.nan, np.inf])
def test_refuses_impossible_regularisation(lam):
    with pytest.raises(ValueError, match="lam must be a positive finite number"):
        chain_problem(lam=lam)
