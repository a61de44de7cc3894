"""Every solver on problems of alignment: one optimum, true certificates, refusals with a reason."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import nnls

from m3n import MissingOracle, WrongObjective, minimize
from m3n.checks import check_problem
from m3n.losses import PartLoss
from m3n.problem import Objective
from m3n.solvers import (
    BY_NAME,
    LBFGS,
    SMO,
    DualAscent,
    ExcessiveGap,
    ExponentiatedGradient,
    SequentialDual,
    Subgradient,
    choose,
)
from m3n.solvers.sequential_state import dense
from m3n.structures import AlignmentChain, Matching, OneToMany
from tests.problem.test_blocks import all_best, both
from tests.structures.agreement import check_blocks, check_parts, weights_count_examples
from tests.structures.alignments import SIZES, alignment_problem
from tests.tiny import Enumerated, iterates

MASKS = [np.ones((2, 3)), np.ones((1, 1)), [[1, 0], [1, 1], [0, 1]], np.eye(2), [[1, 1, 0, 1]], np.ones((3, 3))]
STRUCTURES = {
    "matching": lambda: Matching(SIZES),
    "matching, some links": lambda: Matching(SIZES, allowed=MASKS),
    "matching, (2, 2)": lambda: Matching(SIZES, (2, 2)),
    "one to many": lambda: OneToMany(SIZES, MASKS),
    "chain": lambda: AlignmentChain(SIZES, reach=1),
}
SOLVERS = {**{name: kind() for name, kind in BY_NAME.items()}, "online": ExponentiatedGradient(online=True)}


@cache
def problem_of(name, **settings):
    return alignment_problem(STRUCTURES[name](), **settings)


@cache
def optimum_of(name):
    known = Enumerated.of(problem_of(name))
    return known, known.optimum()


def pairs(name):
    """The solvers that can solve a problem."""
    return [solver for solver, settings in SOLVERS.items() if settings.fits(problem_of(name))]


SOME = {
    "matching": pairs("matching"),
    "matching, some links": ["sequential_dual", "excessive_gap", "smo"],
    "matching, (2, 2)": ["sequential_dual", "excessive_gap", "extragradient", "exponentiated_gradient", "bmrm"],
    "one to many": ["sequential_dual", "excessive_gap", "smo"],
    "chain": ["sequential_dual", "excessive_gap"],
}


SOLVED = [(solver, name) for name, some in SOME.items() for solver in some]


@pytest.mark.parametrize(("solver", "name"), SOLVED)
def test_solvers_find_the_optimum(solver, name):
    known, best = optimum_of(name)
    result = minimize(problem_of(name), SOLVERS[solver], tol=1e-2, max_passes=4000)
    found = result.certificate
    assert found.dual <= best + 1e-9 <= found.primal + 2e-9
    assert found.primal == pytest.approx(known.primal(result.w), abs=1e-10)
    if isinstance(SOLVERS[solver], Subgradient):
        assert found.primal - best < 1e-2
    else:
        assert found.gap <= 1e-2


@pytest.fixture
def dual_points(monkeypatch):
    """All u and b whose D is asked for, by that."""
    original, asked = Objective.dual, {}

    def noted(self, u, offset):
        value = original(self, u, offset)
        asked[value] = np.array(u), offset
        return value

    monkeypatch.setattr(Objective, "dual", noted)
    return asked


@pytest.mark.parametrize(("solver", "name"), [pair for pair in SOLVED if pair[0] != "subgradient"])
def test_dual_values_belong_to_distributions_over_outputs(solver, name, dual_points):
    """The certified D computed anew: of an alpha with the features and the loss of the solver's dual point."""
    problem, (known, _) = problem_of(name), optimum_of(name)
    result = minimize(problem, SOLVERS[solver], tol=1e-2, max_passes=4000)
    if isinstance(result.solver, SequentialDual):
        best = result.state.hull.best
        dual_points[result.state.dual] = dense(problem.dim, result.state.support, best.u), best.b
    u, loss = dual_points[result.certificate.dual]
    alpha = mixture(known, problem.lam * u, loss)
    assert alpha.sum() == pytest.approx(1.0)
    assert known.dual(alpha) == pytest.approx(result.certificate.dual, abs=1e-7)
    assert known.primal(result.w) - known.dual(alpha) == pytest.approx(result.certificate.gap, abs=1e-7)


def mixture(known, vector, loss):
    """Weights of all outputs, those of an example adding up to 1/n, with these mean features and this loss."""
    n = known.problem.n
    sums = (known.owner == np.arange(n)[:, None]).astype(float)
    alpha, distance = nnls(
        np.vstack([known.psi.T, known.ell, sums]), np.concatenate([vector, [loss], np.full(n, 1.0 / n)])
    )
    assert distance < 1e-9
    return alpha


def test_who_trains_matchings():
    """All that maximise or smooth; none that needs sums over outputs."""
    able = set(pairs("matching"))
    assert able >= {"excessive_gap", "extragradient", "exponentiated_gradient", "block_frank_wolfe", "bmrm"}
    assert able >= {"struct_svm", "subgradient", "sequential_dual", "smo"}
    assert not able & {"lbfgs", "dual_ascent", "owl_qn", "sparse_dual_ascent", "online"}
    assert able - set(pairs("matching, (2, 2)")) == {"smo"}
    assert set(SOLVERS) - set(pairs("one to many")) == {"dual_ascent", "owl_qn", "sparse_dual_ascent"}
    assert set(pairs("one to many")) - set(pairs("chain")) == {"smo"}


@pytest.mark.parametrize(
    ("name", "solver", "settings", "error", "message"),
    [
        ("matching", LBFGS(), {}, MissingOracle, "LBFGS needs the exp-oracle, which Matching does not offer; choose"),
        (
            "matching",
            ExponentiatedGradient(online=True),
            {},
            MissingOracle,
            "needs the exp-oracle, which Matching does",
        ),
        (
            "matching",
            LBFGS(),
            {"temperature": 1.0},
            MissingOracle,
            "exp-oracle, .* no solver can go on at temperature 1",
        ),
        ("matching", DualAscent(), {}, WrongObjective, r"DualAscent trains CRFs only.* choose from \['BMRM'"),
        ("matching, (2, 2)", SMO(), {}, MissingOracle, "SMO needs the min-oracle on the support of a factored dual"),
        ("chain", SMO(), {}, MissingOracle, "factored dual, which AlignmentChain does not offer"),
    ],
)
def test_refusals(name, solver, settings, error, message):
    with pytest.raises(error, match=message):
        minimize(problem_of(name, **settings), solver)


def test_auto_visits_examples_one_by_one():
    for name in STRUCTURES:
        assert isinstance(choose(problem_of(name), tol=1e-3).solver, SequentialDual)


@pytest.mark.parametrize(("name", "solver"), [("one to many", LBFGS()), ("chain", LBFGS()), ("chain", DualAscent())])
def test_conditional_random_fields(name, solver):
    problem = problem_of(name, temperature=1.0)
    known = Enumerated.of(problem)
    result = minimize(problem, solver, tol=1e-6, max_passes=2000)
    assert result.converged
    assert result.certificate.dual - 1e-8 <= known.optimum() <= result.certificate.primal + 1e-8


@pytest.mark.parametrize("name", STRUCTURES)
def test_problems_agree_with_enumeration(name):
    check_problem(problem_of(name))
    weights_count_examples(STRUCTURES[name]())
    if "(2, 2)" not in name:  # there null parts may be listed several times
        check_parts(lambda: problem_of(name))


@pytest.mark.parametrize("name", ["one to many", "chain"])
def test_blocks_agree(name):
    check_blocks(lambda: problem_of(name), np.random.default_rng(0))


@pytest.mark.parametrize("name", ["matching", "matching, (2, 2)"])
def test_best_outputs_of_blocks(name, random):
    """Compiled and interpreted, against the pass."""
    problem = problem_of(name)
    w = random.normal(size=problem.dim)
    _, expected, expected_counts = problem.whole.outputs(w)
    for blocks in both(problem):
        values, counts, parts = np.empty(problem.n), np.empty(problem.n, np.int64), np.zeros_like(expected)
        blocks.run(all_best, w, values, parts, counts)
        np.testing.assert_array_equal(counts, expected_counts)
        for one, other, count in zip(parts, expected, counts, strict=True):
            np.testing.assert_array_equal(one[:count], other[:count])


@pytest.mark.parametrize("name", ["matching", "matching, some links", "matching, (2, 2)"])
@pytest.mark.parametrize("center", ["uniform", "gold"])
def test_excessive_gap_keeps_its_invariant_and_bound(name, center):
    """With the entropy of links as prox, at every iterate; the gap from the enumerated problem."""
    problem, (known, best) = problem_of(name), optimum_of(name)
    for state in iterates(problem, ExcessiveGap(schedule="paper", center=center), 40):
        assert state.smoothed <= state.dual + 1e-10
        assert known.primal(state.w) - state.dual <= state.bound + 1e-10
        assert state.dual <= best + 1e-10
    assert problem.log_size == pytest.approx(STRUCTURES[name]().diameter().mean())


@pytest.mark.parametrize("name", ["matching", "matching, (2, 2)"])
@pytest.mark.parametrize("mu", [1e-6, 0.1, 5.0])
def test_smoothed_answers_are_dual_points(name, mu, random):
    """A distribution over outputs has the features and the loss of the answer, and so its D."""
    problem, (known, _) = problem_of(name), optimum_of(name)
    answer = problem.soft(random.normal(size=problem.dim), mu)
    alpha = mixture(known, answer.vector, answer.loss)
    assert problem.dual(answer.vector / problem.lam, answer.loss) == pytest.approx(known.dual(alpha), abs=1e-7)


@pytest.mark.parametrize(("name", "solver"), [("matching", SequentialDual()), ("matching", ExcessiveGap())])
def test_weights_of_examples(name, solver):
    structure, weights = STRUCTURES[name](), np.array([1.0, 3.0, 2.0, 1.0, 1.0, 4.0])
    result = minimize(alignment_problem(structure, sample_weight=weights), solver, tol=1e-3, max_passes=3000)
    known, _ = optimum_of(name)
    margins = known.ell - known.psi @ result.w
    worst = [margins[known.owner == i].max() for i in range(structure.n)]
    expected = 0.05 * result.w @ result.w + weights @ worst / weights.sum()
    assert result.certificate.primal == pytest.approx(expected, rel=1e-9)
    assert result.converged


@pytest.mark.parametrize("name", STRUCTURES)
def test_slack_rescaling(name):
    """The largest loss times margin by the search of branches, against all outputs; then training with it."""
    structure, random = STRUCTURES[name](), np.random.default_rng(0)
    losses = [PartLoss(0.5, 0.5, arrays=[0])] + [PartLoss(1.0, 0.7)] * ("(2, 2)" not in name)
    for loss in losses:
        problem = alignment_problem(structure, loss=loss, rescale="slack")
        known = Enumerated.of(alignment_problem(structure, loss=loss))
        for scale in (0.3, 3.0):
            w = scale * random.normal(size=problem.dim)
            products = known.ell * (1.0 - known.psi @ w)
            best = np.mean([max(products[known.owner == i].max(), 0.0) for i in range(structure.n)])
            assert problem.hard(w).value == pytest.approx(best)
    if name == "matching":
        assert minimize(problem, tol=0.5).converged


@pytest.mark.parametrize("solver", [ExcessiveGap(), SequentialDual(), SMO()])
def test_threads_do_not_change_the_result(solver):
    one, two = (minimize(problem_of("matching", n_jobs=jobs), solver, tol=0.0, max_passes=15) for jobs in (1, 2))
    np.testing.assert_allclose(one.w, two.w, rtol=1e-10, atol=1e-12)
    again = minimize(problem_of("matching", n_jobs=2), solver, tol=0.0, max_passes=15)
    np.testing.assert_array_equal(two.w, again.w)
