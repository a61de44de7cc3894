"""The default solvers on several lanes: the optimum, duals that rise and are true, and what is refused."""

import numpy as np
import pytest

from m3n import MissingOracle, WrongObjective, minimize
from m3n.problem import Sharded
from m3n.problem.engines import ThreadEngine
from m3n.problem.spool import Spooled
from m3n.run.memory import TooLarge
from m3n.solvers import DualAscent, SequentialDual, choose
from m3n.solvers import choice as module
from m3n.solvers.combination import Change, care, careful
from tests.solvers.lanes import LENGTHS, in_lanes, problem_of, steps
from tests.solvers.test_sequential_dual import differences
from tests.tiny import Enumerated, chain_problem

KINDS = {"crf": (1.0, DualAscent), "margin": (0.0, SequentialDual)}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.mark.parametrize("lanes", [1, 2, 3, 7, 10])
def test_the_optimum_is_that_of_one_process_and_of_independent_solvers(kind, lanes):
    temperature, solver = kind
    problem = problem_of(temperature)
    best = Enumerated.of(problem).best
    with in_lanes(problem, lanes).engine as engine:
        result = minimize(Sharded(engine, problem.lam), solver(), tol=1e-7, max_passes=400)
    assert result.converged
    assert result.certificate.dual <= best + 1e-9 <= result.certificate.primal + 2e-9
    usual = minimize(problem, solver(), tol=1e-7, max_passes=400)
    np.testing.assert_allclose(result.w, usual.w, atol=3e-3)


@pytest.mark.parametrize(("lanes", "shards"), [(2, 5), (3, 10), (4, 1)])
def test_lanes_of_several_shards_and_shards_of_several_lanes(kind, lanes, shards):
    temperature, solver = kind
    problem = problem_of(temperature)
    sharded = in_lanes(problem, lanes, shards=shards)
    result = minimize(sharded, solver(), tol=1e-6, max_passes=400)
    assert result.converged
    assert result.certificate.dual <= Enumerated.of(problem).best + 1e-9 <= result.certificate.primal + 2e-9


@pytest.mark.parametrize("lanes", [2, 3])
def test_sample_weights(kind, lanes):
    temperature, solver = kind
    problem = problem_of(temperature, weights=1.0 + np.arange(len(LENGTHS)) % 3)
    ours = minimize(in_lanes(problem, lanes), solver(), tol=1e-7, max_passes=400)
    usual = minimize(problem, solver(), tol=1e-7, max_passes=400)
    assert ours.converged
    assert ours.certificate.primal == pytest.approx(usual.certificate.primal, abs=3e-7)


@pytest.mark.parametrize("lanes", [2, 3, 7])
def test_the_dual_never_falls(kind, lanes):
    """Also where all examples have everything in common, at a small lam: adding the changes as they are would fail."""
    temperature, solver = kind
    problem = problem_of(temperature, lam=0.003)
    sharded, state, duals = in_lanes(problem, lanes), None, []
    state = solver().init(sharded)
    for _ in range(25):
        duals.append(state.dual)
        assert problem.primal(state.w) >= state.dual - 1e-9
        state = solver().step(sharded, state)
    assert (np.diff(duals) >= -1e-12).all()


@pytest.mark.parametrize("lanes", [1, 3])
def test_the_dual_of_a_crf_is_that_of_the_potentials_in_the_lanes(lanes):
    """w and the offset from the potentials by enumeration."""
    problem = problem_of(1.0)
    sharded = in_lanes(problem, lanes)
    state = steps(sharded, DualAscent(), 4)
    held = [lane.kept["held"].what.points[0] for lane in sharded.engine.crew.lanes]
    potentials = [p.potentials[low:high] for p in held for low, high in zip(p.starts[:-1], p.starts[1:], strict=True)]
    vector, entropy = np.zeros(problem.dim), 0.0
    for i, p in enumerate(potentials):
        alone, rows = problem.structure.select(np.array([i]))
        features = problem.features.select(rows)
        encoded = [alone.encode(y) for y in problem.structure.enumerate(i)]
        scores = np.array([np.concatenate([a.ravel() for a in parts]) @ p for parts in encoded])
        beta = np.exp(scores - scores.max())
        beta /= beta.sum()
        entropy -= beta @ np.log(beta)
        gold = features.adjoint(alone.encode(problem.gold[problem.structure.entries_of(np.array([i]))])).copy()
        vector += gold - sum(b * features.adjoint(parts) for b, parts in zip(beta, encoded, strict=True))
    np.testing.assert_allclose(state.w, vector / (problem.lam * problem.n), atol=1e-10)
    assert state.offset == pytest.approx(entropy / problem.n, abs=1e-10)


@pytest.mark.parametrize("lanes", [1, 3])
def test_the_dual_of_a_network_is_that_of_the_outputs_in_the_lanes(lanes):
    """u and b from the cached outputs, looked up in the enumeration; what visits have added up is the same."""
    problem = problem_of()
    sharded = in_lanes(problem, lanes)
    state = steps(sharded, SequentialDual(), 3)  # online passes alone: nothing has been added up anew
    vector, loss, first = np.zeros(problem.dim), 0.0, 0
    for lane in sharded.engine.crew.lanes:
        (caches,), n = lane.kept["held"].what.caches, lane.n
        part = problem_of_examples(problem, np.arange(first, first + n))
        for i in range(n):
            own = caches.alpha[caches.first[i] : caches.first[i] + caches.used[i]]
            assert own.sum() == pytest.approx(1.0, abs=1e-12)
            assert (own >= 0.0).all()
            for slot, psi, ell in differences(part, caches, i):
                vector += caches.alpha[slot] * psi
                loss += caches.alpha[slot] * ell
        first += n
    u = state.proximal.dual_weights(problem.lam, state.iterate.point)
    np.testing.assert_allclose(u, vector / (problem.lam * problem.n), atol=1e-9)
    assert state.iterate.loss == pytest.approx(loss / problem.n, abs=1e-10)


def problem_of_examples(problem, examples):
    """Some examples as a problem of their own."""
    from m3n import Problem
    from m3n.losses import NormalizedHamming

    structure, rows = problem.structure.select(examples)
    gold = [problem.structure.unpack(problem.gold)[i] for i in examples]
    return Problem(structure, problem.features.select(rows), gold, loss=NormalizedHamming(), lam=1.0, n_jobs=1)


def test_the_same_on_any_number_of_threads(kind):
    temperature, solver = kind
    problem = problem_of(temperature)
    one, two = (minimize(in_lanes(problem, 3, threads=k), solver(), tol=0.0, max_passes=12) for k in (1, 2))
    np.testing.assert_array_equal(one.w, two.w)
    assert one.certificate == two.certificate
    other = minimize(in_lanes(problem, 3), solver(seed=1), tol=0.0, max_passes=12)
    assert (other.w != one.w).any()


@pytest.mark.parametrize("ratio", [0.3, 3.0, 100.0])
def test_another_lam_begins_where_the_last_run_ended(kind, ratio):
    temperature, solver = kind
    sharded = in_lanes(problem_of(temperature), 3)
    first = minimize(sharded, solver(), tol=1e-5, max_passes=400)
    problem = problem_of(temperature, lam=0.1 * ratio)
    again = sharded.with_lam(0.1 * ratio)
    warm = minimize(again, solver(), tol=1e-5, max_passes=400, start=first)
    cold = minimize(problem, solver(), tol=1e-6, max_passes=400)
    assert warm.converged
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, abs=2e-5)
    if ratio < 1.0:
        assert solver().restart(again, minimize(sharded, solver(), tol=1e-5).state).dual > 0.0


def test_care_follows_what_lanes_have_in_common():
    def change(*vectors):
        vectors = np.array(vectors)
        return Change(vectors.sum(axis=0), float((vectors**2).sum()), 0.0, np.zeros(0))

    assert care(change([1.0, 0.0], [0.0, 1.0]), 2) == 1.0  # nothing
    assert care(change([1.0, 0.0], [1.0, 0.0]), 2) == 2.0  # everything
    assert care(change([1.0, 0.0], [-1.0, 0.0]), 2) == 1.0
    assert 1.0 < care(change([1.0, 0.0], [0.5, 1.0]), 2) < 2.0
    assert care(change([0.0, 0.0], [0.0, 0.0]), 2) == 1.0
    assert careful(1.5, 2) == 2.0


def test_what_lanes_cannot_do_is_refused_with_words(kind):
    temperature, solver = kind
    slack = chain_problem(seed=3)
    slack.rescale = "slack"
    with pytest.raises(WrongObjective, match="slack rescaling" if not temperature else "CRFs only|slack"):
        minimize(in_lanes(slack, 2), solver())
    with pytest.raises(WrongObjective, match="l1"):
        sharded = in_lanes(problem_of(1.0), 2)
        minimize(Sharded(sharded.engine, 0.1, l1=0.1), DualAscent())
    with pytest.raises(MissingOracle, match="visits examples one by one, which passes made elsewhere do not allow"):
        minimize(in_lanes(problem_of(), 2), "block_frank_wolfe")


def test_too_little_memory_is_told_beforehand(kind, monkeypatch):
    temperature, solver = kind
    monkeypatch.setattr("m3n.run.memory.free_memory", lambda unknown: 1.0)
    monkeypatch.setattr("m3n.run.memory.SMALL", 0.0)
    with pytest.raises(TooLarge, match=f"{solver.__name__} needs about"):
        minimize(in_lanes(problem_of(temperature), 2), solver())


def test_auto_says_why(kind, monkeypatch):
    temperature, solver = kind
    sharded = in_lanes(problem_of(temperature), 2)
    chosen = choose(sharded)
    assert isinstance(chosen.solver, solver)
    assert "one by one" in chosen.reason
    monkeypatch.setattr(module, "MOST_BYTES", 1.0)
    assert "too large for memory" in choose(sharded).reason
    monkeypatch.undo()
    monkeypatch.setattr(module, "MOST_LANES", 1)
    assert ("correct the same errors" in choose(sharded).reason) == bool(temperature)


def test_auto_knows_what_cannot_be_visited():
    slack = chain_problem(seed=3)
    slack.rescale = "slack"
    chosen = choose(in_lanes(slack, 2))
    assert "slack rescaling" in chosen.reason
    assert type(chosen.solver).__name__ == "BatchFrankWolfe"


def test_lanes_are_those_of_a_thread_engine_or_any_other(kind):
    """One lane: ``DualAscent`` and ``SequentialDual`` on one thread, up to the order of visits."""
    temperature, solver = kind
    problem = problem_of(temperature)
    alone = Sharded(ThreadEngine(Spooled(problem, 1), n_jobs=1, lanes=1), problem.lam)
    ours, usual = (minimize(p, solver(), tol=1e-4, max_passes=100) for p in (alone, problem))
    assert ours.trace[-1].passes < 1.6 * usual.trace[-1].passes
