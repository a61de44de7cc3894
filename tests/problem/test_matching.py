"""A structure that says its arrays, its parts and ``best`` alone: everything else must follow."""

import inspect
import textwrap
from pathlib import Path

import numpy as np
import pytest

from m3n import MissingOracle, Problem, minimize
from m3n.checks import brute_force, check_problem, check_structure, total_score
from m3n.compiled.jit import compiled
from m3n.compiled.oracles.hooks import best, workspace
from m3n.features import Dense
from m3n.losses import Cost, Hamming, Loss, PartLoss
from m3n.packed import Threads
from m3n.solvers import BMRM, LBFGS, SMO, BlockFrankWolfe, DualAscent, ExcessiveGap, Pairwise, StructSVM, Subgradient
from m3n.structures import Structure
from tests.matching import Matching
from tests.tiny import Enumerated

SIZES = [(2, 3), (1, 1), (3, 2), (2, 2)]
LINKS = [[(0, 1), (1, 2)], [], [(2, 0)], [(0, 0), (1, 1)]]
LOSS = PartLoss(missed=3.0, spurious=1.0)


def matching_problem(loss=LOSS, lam=0.05, weights=None, **settings):
    structure, random = Matching(SIZES), np.random.default_rng(0)
    features = Pairs(random.normal(size=(structure.shapes[0][0], 3)))
    return Problem(structure, features, LINKS, loss=loss, lam=lam, sample_weight=weights, n_jobs=1, **settings)


class Pairs(Dense):
    """A row of features for every pair of words; weights are shared by all pairs."""

    def __init__(self, X):
        self.X, self.dim, self.shapes = X, X.shape[1], ((len(X),),)

    def scores(self, w, out, threads=None):
        out[0][:] = self.X @ w
        return out

    def adjoint(self, parts, threads=None):
        return self.X.T @ parts[0]

    def add_adjoint(self, parts, scale, out, threads=None):
        out += scale * self.adjoint(parts)

    def norms(self):
        return (np.sqrt(2.0) * np.linalg.norm(self.X, axis=1),)

    def select(self, rows):
        return Pairs(self.X[rows[0]])

    def rows(self):
        return super(Dense, self).rows()  # written out part by part


@compiled
def sweep_best(space, rows, costs, w):
    best(space, 0, np.zeros(6), np.zeros(2, np.int64), workspace(space))


def by_hand(y, gold):
    """3 per missed link, 1 per spurious one."""
    return 3.0 * len(set(gold) - set(y)) + len(set(y) - set(gold))


def rescaled(problem):
    """The enumerated problem with ell psi for psi."""
    known = Enumerated.of(problem)
    known.psi = known.ell[:, None] * known.psi
    return known


def test_the_worked_example_of_contributing_is_this_class():
    source = inspect.getsource(Matching).split("    def enumerate")[0].rstrip()
    assert textwrap.indent(source, "   ") in (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    assert len(source.splitlines()) <= 60


def test_oracles_agree_with_enumeration(random):
    structure = Matching(SIZES)
    for _ in range(20):
        theta = (np.round(2.0 * random.normal(size=structure.shapes[0])) / 2.0,)
        theta[0][random.random(theta[0].shape) < 0.2] = -np.inf
        values, packed = structure.hard(theta, Threads(2))
        np.testing.assert_allclose(values, brute_force(structure, theta, 0.0)[0])
        np.testing.assert_allclose(structure.score(theta, packed), values)
        assert total_score(theta, structure.encode(packed)) == pytest.approx(values.sum())
        assert np.array_equal(structure.pack(structure.unpack(packed)), packed)


def test_the_public_checks_take_a_structure_with_best_alone(random):
    check_structure(Matching(SIZES), (random.normal(size=17),), mu=1.0)
    check_problem(matching_problem())

    class Greedy(Matching):
        def best(self, example, theta):
            return [int(theta[0].argmax())] if theta[0].max() > 0.0 else []

    with pytest.raises(AssertionError, match="value of the max-oracle"):
        check_structure(Greedy(SIZES), (np.ones(17),), mu=1.0)


def test_selections_and_lists(random):
    structure = Matching(SIZES)
    gold = structure.pack(LINKS)
    assert structure.unpack(gold) == LINKS
    chosen = np.array([3, 0, 3])
    part, rows = structure.select(chosen)
    assert part.unpack(gold[structure.entries_of(chosen)]) == [LINKS[i] for i in chosen]
    theta = (random.normal(size=structure.shapes[0]),)
    np.testing.assert_array_equal(part.hard((theta[0][rows[0]],))[0], structure.hard(theta)[0][chosen])
    again, _ = part.select(np.array([1]))
    assert again.unpack(again.pack([LINKS[0]])) == [LINKS[0]]
    parts, counts = structure.local_parts(gold)
    assert [parts[i, : counts[i]].tolist() for i in range(4)] == [[1, 5], [], [4], [0, 3]]
    left = structure.encode(gold, weights=np.arange(1.0, 5.0))
    np.testing.assert_array_equal(left[0][[1, 5, 11, 13, 16]], [1, 1, 3, 4, 4])
    structure.subtract(gold, left, weights=np.arange(1.0, 5.0))
    assert not left[0].any()


def test_missed_and_spurious_links_have_prices():
    problem = matching_problem()
    structure = problem.structure
    for i in range(problem.n):
        alone, rows = structure.select(np.array([i]))
        cost = problem.cost.select(rows, [i])
        for y in structure.enumerate(i):
            assert cost.expected(alone.encode(y)) == by_hand(alone.unpack(y)[0], LINKS[i])


@pytest.mark.parametrize("loss", [LOSS, LOSS + PartLoss(0.5, 0.25), 2.0 * PartLoss()])
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5, 3.0]])
def test_answers_agree_with_enumeration(loss, weights, random):
    problem = matching_problem(loss, weights=weights)
    known, w = Enumerated.of(problem), random.normal(size=problem.dim)
    scale = np.ones(4) if problem.weights is None else problem.weights
    margins = known.ell - known.psi @ w
    worst = [int(np.flatnonzero(known.owner == i)[margins[known.owner == i].argmax()]) for i in range(4)]
    answer = problem.hard(w)
    assert answer.value == pytest.approx(np.mean(scale * margins[worst]))
    assert answer.loss == pytest.approx(np.mean(scale * known.ell[worst]))
    np.testing.assert_allclose(answer.vector, scale @ known.psi[worst] / 4)
    assert problem.primal(w) == pytest.approx(problem.lam / 2 * w @ w + answer.value)
    assert known.radius <= problem.radius


SOLVERS = [
    "auto",
    BlockFrankWolfe(),
    BlockFrankWolfe(move=Pairwise()),
    BMRM(),
    StructSVM(),
    StructSVM(slack="n"),
    Subgradient(),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 1.0, 3.0]], ids=["once each", "weighted"])
def test_solvers_find_the_optimum_of_a_quadratic_programme(solver, weights):
    repeated = np.repeat(np.arange(4), 1 if weights is None else np.array(weights, dtype=int))
    structure, random = Matching([SIZES[i] for i in repeated]), np.random.default_rng(0)
    X = random.normal(size=(17, 3))
    rows = np.concatenate([np.arange(17)[Matching(SIZES).select([i])[1][0]] for i in repeated])
    twice = Problem(structure, Pairs(X[rows]), [LINKS[i] for i in repeated], loss=LOSS, lam=0.05, n_jobs=1)
    best = Enumerated.of(twice).optimum()
    check(matching_problem(weights=weights), solver, best)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_slack_rescaling_finds_its_optimum(solver):
    best = rescaled(matching_problem(lam=1.0)).optimum()
    check(matching_problem(lam=1.0, rescale="slack"), solver, best, slow=2e-2)


def check(problem, solver, best, slow=3e-3):
    """Gaps of two of the solvers fall like 1 / passes: they are asked for less."""
    if isinstance(solver, Subgradient):  # it has no dual value
        result = minimize(problem, solver, max_passes=5 / slow, tol=1e-9)
        assert best - 1e-9 <= result.certificate.primal <= best + 2 * slow
        return
    result = minimize(problem, solver, tol=slow if solver == BlockFrankWolfe() else 1e-4, max_passes=3000)
    assert result.converged
    assert result.certificate.dual - 1e-9 <= best <= result.certificate.primal + 1e-9
    assert problem.primal(result.w) == pytest.approx(result.certificate.primal, abs=1e-12)


def test_slack_products_agree_with_enumeration(random):
    """Where no corner of the hull is best, outputs are divided by a part that is forbidden, or required."""
    structure = Matching([(3, 3)] * 12)
    gold = structure.pack([[(0, 0), (1, 1), (2, 2)]] * 12)
    cost = PartLoss(1.0, 0.7).cost(structure, gold)
    for scale in (0.5, 1.0, 4.0):
        theta = (scale * random.normal(size=structure.shapes[0]),)
        values, packed, losses = structure.slack(theta, gold, cost)
        margins_found = 1.0 + structure.score(theta, packed) - structure.score(theta, gold)
        np.testing.assert_allclose(np.where(losses > 0.0, losses * margins_found, 0.0), values)
        for i in range(12):
            alone, rows = structure.select(np.array([i]))
            mine, own = (theta[0][rows[0]],), cost.select(rows, [i])
            outputs = list(structure.enumerate(i))
            ell = np.array([own.expected(alone.encode(y)) for y in outputs])
            base = alone.score(mine, gold[structure.entries_of([i])])[0]
            margins = 1.0 + np.array([alone.score(mine, y)[0] for y in outputs]) - base
            assert values[i] == pytest.approx(max((ell * margins).max(), 0.0))


def test_outputs_are_divided_by_a_part(random):
    """Every output is in one of the two sets, and the two that are told apart are not in the same."""
    structure = Matching([(3, 2)])
    outputs = list(structure.enumerate(0))
    for _ in range(30):
        one, other = random.choice(len(outputs), size=2, replace=False)
        sets = structure.branches(outputs[one], outputs[other])
        inside = np.array(
            [[bool(structure.encode(y)[k][mask].all()) == required for y in outputs] for k, mask, required in sets]
        )
        np.testing.assert_array_equal(inside.sum(axis=0), 1)
        assert inside[:, one].tolist() != inside[:, other].tolist()
    assert structure.branches(outputs[0], outputs[0]) == []


def test_what_is_missing_is_refused_by_name():
    problem = matching_problem()
    assert problem.oracles == {"hard"}
    for solver, oracle in ((ExcessiveGap(), "exp-oracle"), (SMO(), "min-oracle")):
        with pytest.raises(MissingOracle, match=rf"{oracle}.* Matching does not offer.*BMRM.*BlockFrankWolfe"):
            minimize(problem, solver)
    smooth = matching_problem(loss=None, temperature=1.0)
    for solver in (DualAscent(), LBFGS()):
        with pytest.raises(MissingOracle, match="exp-oracle, which Matching does not offer"):
            minimize(smooth, solver)
    with pytest.raises(TypeError, match="has no exp-oracle: it defines neither marginals nor soft"):
        problem.structure.marginals(0, (np.zeros(6),), 1.0)


def test_losses_of_labels_are_refused():
    with pytest.raises(TypeError, match=r"Matching do not have one label per row of theta.*PartLoss"):
        matching_problem(Hamming())


class Custom(Loss):
    """Any costs and constant."""

    def __init__(self, costs, constant):
        self.costs, self.constant = costs, constant

    def cost(self, structure, gold):
        return Cost.of_parts(structure, gold, {0: self.costs}, self.constant)


@pytest.mark.parametrize(
    ("costs", "constant", "message"),
    [
        (-np.ones(17), None, r"must not be negative: parts\[0\]\[0\] is -1.0"),
        (np.ones(17), None, "example 0: the loss of the right output is 2.0, but must be 0"),
        (-np.ones(17), "gold", r"example 1: there is an output with a loss of -1, below that of the right one, 0"),
        (np.ones(17), np.array([1.0, 0, 0, 0]), "the loss of the right output is"),
        (np.ones(17), np.ones(3), r"constant must have shape \(4,\), got \(3,\)"),
        (np.ones(16), "gold", "."),
        (np.full(17, np.nan), "gold", "must be finite"),
        (np.ones(17), "silver", "constant must be an array"),
    ],
)
def test_improper_losses_are_refused(costs, constant, message):
    with pytest.raises((ValueError, IndexError), match=message):
        matching_problem(Custom(costs, constant))


@pytest.mark.parametrize("price", [-1.0, np.inf, np.nan])
def test_improper_prices_are_refused(price):
    with pytest.raises(ValueError, match="missed must be a finite price"):
        PartLoss(missed=price)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([[(0, 3)], [], [], []], "example 0: links must be in 0..1 and 0..2"),
        ([[(0, 0), (1, 0)], [], [], []], "a word is in two links"),
        ([[], [], []], "4 examples but 3 outputs"),
    ],
)
def test_wrong_outputs_are_named(links, message):
    with pytest.raises(ValueError, match=message):
        Matching(SIZES).pack(links)


class Broken(Matching):
    def parts_of(self, output, example):
        return output


def test_parts_that_do_not_exist_are_named():
    with pytest.raises(ValueError, match=r"example 1 has a part 1, but its own theta has the parts 0\.\.0"):
        Broken(SIZES).pack([[0], [1], [], []])
    with pytest.raises(ValueError, match=r"example 0 has 3 parts, but most_parts\(\) says 2"):
        Broken(SIZES).pack([[0, 1, 2], [], [], []])


class Wild(Matching):
    answer = (0,)

    def best(self, example, theta):
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((-1,), r"example 0 has a part -1, but its own theta has the parts 0\.\.5"),
        ((7,), "example 0 has a part 7"),
        ((0, 1, 2), r"example 0 has 3 parts, but most_parts\(\) says 2"),
    ],
)
def test_answers_that_are_no_outputs_are_named(answer, message):
    structure = Wild(SIZES)
    structure.answer = answer
    features = Pairs(np.ones((17, 1)))
    with pytest.raises(ValueError, match=message):
        structure.hard((np.zeros(17),))
    problem = Problem(Matching(SIZES), features, LINKS, loss=LOSS, lam=0.1, n_jobs=1)
    problem.structure.__class__ = Wild
    problem.structure.answer = answer
    with pytest.raises(ValueError, match=r"has a part|parts, but most_parts"):
        problem.visit(sweep_best, np.zeros(1))


class Nothing(Structure):
    n, shapes = 1, ((1,),)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (lambda s: s.spans(), "define spans"),
        (lambda s: s.best(0, (np.zeros(1),)), "neither best, for one example, nor hard"),
        (lambda s: s.parts_of([], 0), "define parts_of"),
        (lambda s: s.output_of([], 0), "define output_of"),
        (lambda s: s.log_size(), "define log_size"),
        (lambda s: s.enumerate(0), "does not enumerate"),
        (lambda s: s.smoothed(0, (np.zeros(1),), 1.0), "no smoothed oracle"),
    ],
)
def test_what_a_structure_does_not_define_is_said(question, message):
    assert Nothing().oracles == frozenset()
    with pytest.raises(TypeError, match=message):
        question(Nothing())
