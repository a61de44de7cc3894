"""The slack-rescaled objective: J, D and its optimum against the enumerated problem, for every solver that can."""

import numpy as np
import pytest

from m3n import Problem, Status, WrongObjective, minimize
from m3n.features import Dense, chain_features
from m3n.losses import Cost, Hamming, Loss, NormalizedHamming
from m3n.solvers import (
    BMRM,
    BY_NAME,
    BatchFrankWolfe,
    BlockFrankWolfe,
    GapSampling,
    Pairwise,
    PlaneCache,
    StructSVM,
    Subgradient,
    choose,
)
from m3n.solvers.working_sets import dual_point
from m3n.structures import Chain, Multiclass, Structure
from m3n.structures.slack import InexactOracle
from tests.solvers.template import lifted
from tests.structures.test_graph import graph_problem
from tests.tiny import Enumerated, iterates

LENGTHS, LABELS = (1, 3, 2, 4), 3


class Graded(Loss):
    """Costs 1, 2 and 3 for single labels."""

    def cost(self, structure, gold):
        labels = structure.shapes[0][1]
        table = 1.0 + (np.add.outer(np.arange(labels), 2 * np.arange(labels)) % 3)
        np.fill_diagonal(table, 0.0)
        return Cost(gold, np.ones(len(gold)), table)


class Searching(Multiclass):
    """A user's structure: no compiled functions, no slack oracle of its own."""

    slack = Structure.slack
    oracles = frozenset({"hard"})

    def space(self):
        return None

    def select(self, examples):
        return Searching(len(np.arange(self.n)[examples]), self.labels), (examples,)


def slack_chain(loss=None, seed=0, lam=0.1, weights=None, edges=False, n_jobs=1, **masks):
    random = np.random.default_rng(seed)
    X = random.normal(size=(sum(LENGTHS), 4))
    y = [np.zeros(length, int) if masks else random.integers(LABELS, size=length) for length in LENGTHS]
    edge = random.normal(size=(sum(LENGTHS) - len(LENGTHS), 2)) if edges else None
    features = chain_features(Dense(X, LABELS), LABELS, *([Dense(edge, (LABELS, LABELS))] if edges else []))
    structure = Chain(LENGTHS, LABELS, edges=edges, **masks)
    settings = {"loss": loss or NormalizedHamming(), "lam": lam, "sample_weight": weights, "n_jobs": n_jobs}
    return Problem(structure, features, y, rescale="slack", **settings)


def slack_multiclass(kind=Multiclass, loss=None, weights=None):
    random = np.random.default_rng(1)
    X, y = random.normal(size=(12, 3)), random.integers(4, size=12)
    settings = {"loss": loss or Hamming(), "lam": 0.1, "sample_weight": weights, "n_jobs": 1}
    return Problem(kind(12, 4), Dense(X, 4), y, rescale="slack", **settings)


def slack_graph():
    """A tree, a cycle with a triple and a lonely variable; single labels cost 1 or 1.7."""
    margin = graph_problem(seed=2)
    y = margin.structure.unpack(margin.gold)
    settings = {"loss": Hamming(class_weight=[1.0, 1.7]), "lam": 0.2, "n_jobs": 1}
    return Problem(margin.structure, margin.features, y, rescale="slack", **settings)


CASES = {
    "chain": slack_chain,
    "graded chain": lambda: slack_chain(Graded()),
    "constrained chain": lambda: slack_chain(Hamming(), forbidden=np.eye(3)[[1, 2, 0]].astype(bool)),
    "multiclass": slack_multiclass,
    "graded multiclass": lambda: slack_multiclass(loss=Graded()),
    "searched": lambda: slack_multiclass(Searching),
    "graded, searched": lambda: slack_multiclass(Searching, Graded()),
    "graph": slack_graph,
}
SOLVERS = {
    "bmrm": BMRM(),
    "one slack": StructSVM(),
    "one slack, no cache": StructSVM(cache=0),
    "n slacks": StructSVM(slack="n"),
    "pairwise": BlockFrankWolfe(move=Pairwise(), cache=PlaneCache()),
}
INTERPRETED = {"graph": ("bmrm", "pairwise")}  # slow: not with every solver
PAIRS = [(case, solver) for case in CASES for solver in INTERPRETED.get(case, SOLVERS)]
OTHERS = {"gap sampling": BlockFrankWolfe(order=GapSampling(), move=Pairwise()), "mini-batches": BatchFrankWolfe()}


def enumerated(problem):
    """The problem written out, with ell psi in place of psi."""
    known = Enumerated.of(problem)
    known.psi = known.ell[:, None] * known.psi
    return known


@pytest.mark.parametrize("case", CASES)
def test_the_objective_is_the_enumerated_one(case, random):
    problem = CASES[case]()
    known = enumerated(problem)
    for scale in (0.0, 0.3, 3.0):
        w = scale * random.normal(size=problem.dim)
        answer = problem.hard(w)
        assert problem.primal(w) == pytest.approx(known.primal(w), abs=1e-10)
        assert problem.lam / 2 * w @ w + answer.value == pytest.approx(known.primal(w), abs=1e-10)
        assert answer.value == pytest.approx(answer.offset - w @ answer.vector, abs=1e-10)  # a tangent
        values, parts, counts = problem.outputs(w)
        assert values.mean() == pytest.approx(answer.value, abs=1e-10)
        assert parts.shape[0] == counts.shape[0] == problem.n
        other = random.normal(size=problem.dim)
        assert problem.risk(other).value >= answer.offset - other @ answer.vector - 1e-10
    halves = problem.hard(w, slice(0, 2)), problem.hard(w, np.arange(2, problem.n))
    np.testing.assert_allclose(halves[0].vector + halves[1].vector, problem.hard(w).vector, atol=1e-12)


@pytest.mark.parametrize(("case", "solver"), [*PAIRS, *(("chain", solver) for solver in OTHERS)])
def test_every_solver_finds_the_optimum_of_an_independent_one(case, solver):
    problem = CASES[case]()
    known = enumerated(problem)
    best = known.optimum()
    result = minimize(problem, {**SOLVERS, **OTHERS}[solver], tol=1e-3, max_passes=3000)
    assert result.status is Status.TOLERANCE
    assert result.certificate.dual <= best + 1e-8 <= result.certificate.primal + 2e-8
    assert result.certificate.primal == pytest.approx(known.primal(result.w), abs=1e-10)


@pytest.mark.parametrize("case", ["chain", "searched"])
def test_steps_towards_the_optimum(case):
    """The plain step and the subgradient method, which are slow near the end."""
    problem = CASES[case]()
    best = enumerated(problem).optimum()
    result = minimize(problem, BlockFrankWolfe(), tol=0.05, max_passes=200)
    assert result.status is Status.TOLERANCE
    result = minimize(problem, Subgradient(), tol=0.0, max_passes=50)
    assert best - 1e-9 <= result.certificate.primal <= best + 0.1


@pytest.mark.parametrize("case", ["chain", "graded multiclass", "searched"])
@pytest.mark.parametrize("move", [BlockFrankWolfe(), SOLVERS["pairwise"], StructSVM(slack="n")])
def test_the_dual_recomputed_from_the_outputs(case, move):
    """D of the alpha on the working sets: from the enumerated ell and psi, and from the kernels' own sums."""
    problem = CASES[case]()
    known, structure = enumerated(problem), problem.structure
    outputs = [
        structure.select(np.array([i]))[0].local_parts(y) for i in range(problem.n) for y in structure.enumerate(i)
    ]
    number = {
        (i, *parts[0, : counts[0]]): k for k, (i, (parts, counts)) in enumerate(zip(known.owner, outputs, strict=True))
    }
    for state in iterates(problem, move, 12):
        sets, alpha = state.sets, np.zeros(len(known.ell))
        for i in range(problem.n):
            for slot in range(sets.first[i], sets.first[i] + sets.used[i]):
                output = number[i, *sets.parts[slot, : sets.counts[slot]]]
                alpha[output] += sets.alpha[slot] / problem.n
                assert sets.losses[slot] == pytest.approx(known.ell[output], abs=1e-12)
        np.testing.assert_allclose(np.bincount(known.owner, alpha), 1 / problem.n, atol=1e-12)
        u, b = dual_point(problem, sets)
        np.testing.assert_allclose(u, alpha @ known.psi / problem.lam, atol=1e-10)
        assert b == pytest.approx(alpha @ known.ell, abs=1e-12)
        exact = state.alpha_dual if isinstance(move, BlockFrankWolfe) else state.dual
        assert exact == pytest.approx(known.dual(alpha), abs=1e-10)


@pytest.mark.parametrize(
    "make", [slack_chain, slack_multiclass, lambda weights: slack_multiclass(Searching, None, weights)]
)
@pytest.mark.parametrize("solver", ["bmrm", "one slack", "n slacks", "pairwise"])
def test_a_weight_of_two_is_the_example_twice(make, solver):
    """The weighted optimum against the enumerated problem whose margins count as often as the weights say."""
    n = make(weights=None).n
    weights = np.random.default_rng(3).integers(1, 4, size=n).astype(float)
    problem = make(weights=weights)
    known = enumerated(problem)
    scale = (weights / weights.mean())[known.owner]
    known.psi, known.ell = scale[:, None] * known.psi, scale * known.ell
    result = minimize(problem, SOLVERS[solver], tol=1e-4, max_passes=3000)
    assert result.status is Status.TOLERANCE
    assert result.certificate.dual <= known.optimum() + 1e-8 <= result.certificate.primal + 2e-8
    assert result.certificate.primal == pytest.approx(known.primal(result.w), abs=1e-10)


def test_edge_scores_and_threads(random):
    problem, threaded = (slack_chain(edges=True, n_jobs=jobs) for jobs in (1, 2))
    known = enumerated(problem)
    w = random.normal(size=problem.dim)
    assert problem.primal(w) == pytest.approx(known.primal(w), abs=1e-10)
    np.testing.assert_allclose(problem.hard(w).vector, threaded.hard(w).vector, atol=1e-14)
    result = minimize(problem, tol=1e-4)
    assert result.certificate.dual <= known.optimum() + 1e-8 <= result.certificate.primal + 2e-8


def test_two_losses_make_both_objectives_one(random):
    """With losses 0 and 1 only, slack and margin rescaling are the same multiclass machine."""
    slack = slack_multiclass()
    margin = Problem(slack.structure, slack.features, slack.gold, loss=Hamming(), lam=slack.lam, n_jobs=1)
    for _ in range(5):
        w = random.normal(size=slack.dim)
        assert slack.primal(w) == pytest.approx(margin.primal(w), abs=1e-12)


@pytest.mark.parametrize("name", sorted(name for name, kind in BY_NAME.items() if not kind.rescales))
def test_the_others_refuse(name):
    with pytest.raises(
        WrongObjective, match=r"whole outputs.*'BMRM', 'BatchFrankWolfe', 'BlockFrankWolfe', 'StructSVM'"
    ):
        minimize(slack_chain(), name)


def test_which_solvers_rescale():
    able = {"batch_frank_wolfe", "block_frank_wolfe", "bmrm", "struct_svm", "subgradient"}
    assert {name for name, kind in BY_NAME.items() if kind.rescales} == able


def test_auto():
    choice = choose(slack_chain(), seed=4)
    assert choice.solver == BlockFrankWolfe(move=Pairwise(), cache=PlaneCache(), seed=4)
    assert "slack rescaling" in choice.reason
    problem = slack_chain()
    other = lifted(problem)
    other.rescale = "slack"
    assert isinstance(choose(other).solver, BatchFrankWolfe)
    known = enumerated(problem)
    result = minimize(other, tol=1e-3)
    assert result.certificate.dual <= known.optimum() + 1e-8 <= result.certificate.primal + 2e-8


def test_no_exp_oracle():
    problem = slack_chain()
    assert problem.oracles == {"hard"}
    with pytest.raises(TypeError, match="multiplies the score of the whole output"):
        problem.soft(np.zeros(problem.dim), 1.0)
    with pytest.raises(ValueError, match="no other scale"):
        problem.hard(np.zeros(problem.dim), loss_scale=0.5)


def test_settings_that_make_no_sense():
    problem = slack_chain()
    arguments = problem.structure, problem.features, problem.structure.unpack(problem.gold)
    with pytest.raises(ValueError, match="'margin' or 'slack', got 'loss'"):
        Problem(*arguments, rescale="loss")
    with pytest.raises(ValueError, match="needs temperature 0, got 1"):
        Problem(*arguments, rescale="slack", temperature=1.0)


def test_weights_that_are_no_numbers():
    problem = slack_chain()
    with pytest.raises(FloatingPointError, match="weights contain NaN"):
        problem.hard(np.full(problem.dim, np.nan))


def test_a_refusal_names_the_example(monkeypatch):
    """Three losses on one label: some example's optimum is below the hull, sooner or later."""
    monkeypatch.setattr(Searching, "one_label_per_row", False)
    problem = slack_multiclass(Searching, Graded())
    with pytest.raises(InexactOracle, match=r"example \d+: .* cannot exclude .* Searching does not say how to divide"):
        for seed in range(50):
            problem.hard(3.0 * np.random.default_rng(seed).normal(size=problem.dim))
