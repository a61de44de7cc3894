import numpy as np
import pytest

from m3n import Problem
from m3n.checks import check_problem
from m3n.features import Dense, chain_features
from m3n.losses import NormalizedHamming
from m3n.structures import Chain, Multiclass
from tests.tiny import Enumerated, chain_problem, multiclass_problem

PROBLEMS = [chain_problem, multiclass_problem]


@pytest.mark.parametrize("make", PROBLEMS)
def test_oracles_against_enumeration(make, random):
    problem = make()
    known = Enumerated.of(problem)
    for scale in (0.0, 0.3, 3.0):
        w = scale * random.normal(size=problem.dim)
        assert problem.primal(w) == pytest.approx(known.primal(w))
        for mu, loss_scale in ((0.1, 1.0), (2.0, 0.4), (1.0, -3.0), (0.5, 0.0)):
            answer = problem.soft(w, mu, loss_scale=loss_scale)
            alpha = known.gibbs(w, mu, loss_scale)
            np.testing.assert_allclose(answer.vector, alpha @ known.psi, atol=1e-12)
            assert answer.loss == pytest.approx(alpha @ known.ell)
        smoothed = problem.lam / 2 * w @ w + problem.soft(w, 0.2).value - 0.2 * problem.log_size
        assert smoothed == pytest.approx(known.smoothed(w, 0.2))


@pytest.mark.parametrize("make", PROBLEMS)
def test_hard_answer_is_a_subgradient_of_the_risk(make, random):
    problem = make()
    w = random.normal(size=problem.dim)
    answer = problem.hard(w)
    assert answer.value == pytest.approx(answer.loss - w @ answer.vector)


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_objective_and_tangent_at_every_temperature(make, temperature, random):
    """J and D by enumeration; the answer is a tangent of the risk and its offset is loss + T entropy."""
    problem = make(temperature=temperature)
    known = Enumerated.of(problem)
    w = random.normal(size=problem.dim)
    answer = problem.risk(w)
    assert problem.primal(w) == pytest.approx(known.primal(w))
    assert answer.value == pytest.approx(answer.offset - w @ answer.vector)
    if temperature:
        alpha = known.gibbs(w, temperature)
        assert problem.dual(answer.vector / problem.lam, answer.offset) == pytest.approx(known.dual(alpha))
        other = problem.soft(w, 0.2, loss_scale=0.3)  # any distribution has its own entropy
        assert other.offset == pytest.approx(other.loss + temperature * known.entropy(known.gibbs(w, 0.2, 0.3)))
    assert known.optimum() <= problem.primal(w)


def test_softmax_margin_has_a_loss_in_the_exponent(random):
    problem = chain_problem(temperature=1.0, loss=NormalizedHamming())
    w = random.normal(size=problem.dim)
    assert problem.primal(w) == pytest.approx(Enumerated.of(problem).primal(w))
    assert problem.primal(w) > chain_problem(temperature=1.0).primal(w)


@pytest.mark.parametrize("temperature", [-1.0, np.nan, np.inf])
def test_impossible_temperatures(temperature):
    with pytest.raises(ValueError, match="temperature must be 0 or a positive finite number"):
        chain_problem(temperature=temperature, loss=NormalizedHamming())


@pytest.mark.parametrize("make", PROBLEMS)
def test_blocks_add_up(make, random):
    problem = make()
    w = random.normal(size=problem.dim)
    blocks = [slice(0, 2), slice(2, problem.n)]
    shuffled = [np.array([problem.n - 1, 0]), np.arange(1, problem.n - 1)]
    for cut in (blocks, shuffled):
        for oracle in (lambda b: problem.hard(w, b), lambda b: problem.soft(w, 0.3, b)):
            whole, parts = oracle(None), [oracle(block) for block in cut]
            assert sum(p.value for p in parts) == pytest.approx(whole.value)
            assert sum(p.loss for p in parts) == pytest.approx(whole.loss)
            np.testing.assert_allclose(sum(p.vector for p in parts), whole.vector, atol=1e-12)


@pytest.mark.parametrize("make", PROBLEMS)
def test_random_parts_add_up(make, random):
    problem = make()
    w = random.normal(size=problem.dim)
    whole = problem.hard(w)
    before = problem.hard_calls
    answers = [part.hard(w) for part in problem.pieces(3, seed=5)]
    assert problem.hard_calls - before == problem.n
    assert sum(a.value for a in answers) == pytest.approx(whole.value)
    assert sum(a.loss for a in answers) == pytest.approx(whole.loss)
    np.testing.assert_allclose(sum(a.vector for a in answers), whole.vector, atol=1e-12)
    assert problem.pieces(3, seed=5) is problem.pieces(3, seed=5)
    again = [part.hard(w).value for part in make().pieces(3, seed=5)]
    assert again == [a.value for a in answers]


def test_blocks_of_chains_with_edges(random):
    lengths, labels = [2, 1, 3, 4], 2
    edge = Dense(random.normal(size=(6, 2)), (labels, labels))
    features = chain_features(Dense(random.normal(size=(10, 3)), labels), labels, edge)
    y = [random.integers(labels, size=length) for length in lengths]
    problem = Problem(Chain(lengths, labels, edges=True), features, y, n_jobs=1)
    w = random.normal(size=problem.dim)
    whole, parts = problem.soft(w, 0.3), [problem.soft(w, 0.3, np.array(b)) for b in ([3, 1], [0], [2])]
    np.testing.assert_allclose(sum(p.vector for p in parts), whole.vector, atol=1e-12)
    assert sum(p.value for p in parts) == pytest.approx(whole.value)


def test_calls_are_counted_in_examples(random):
    problem = chain_problem()
    w = random.normal(size=problem.dim)
    problem.hard(w)
    problem.soft(w, 1.0, slice(0, 3))
    problem.primal(w)
    assert (problem.hard_calls, problem.soft_calls) == (8, 3)
    assert problem.passes == pytest.approx(11 / 4)


@pytest.mark.parametrize("make", PROBLEMS)
def test_same_threads_same_bits(make, random):
    for n_jobs in (1, 2, 3):
        one, two = make(n_jobs=n_jobs), make(n_jobs=n_jobs)
        w = random.normal(size=one.dim)
        a, b = one.soft(w, 0.1), two.soft(w, 0.1)
        assert (a.value, a.loss) == (b.value, b.loss)
        np.testing.assert_array_equal(a.vector, b.vector)


def test_default_lam_is_one_over_n():
    assert chain_problem(lam=None).lam == 0.25


@pytest.mark.parametrize("lam", [0.0, -1.0, np.nan, np.inf])
def test_bad_lam_is_refused(lam):
    with pytest.raises(ValueError, match="lam must be a positive finite number"):
        chain_problem(lam=lam)


def test_mismatched_shapes_are_refused():
    with pytest.raises(ValueError, match=r"shapes \(\(3, 2\),\), but Multiclass has \(\(4, 2\),\)"):
        Problem(Multiclass(4, 2), Dense(np.ones((3, 1)), 2), [0, 0, 1, 1])


def test_numbers_that_are_not_finite_are_explained():
    problem = multiclass_problem()
    with pytest.raises(FloatingPointError, match="weights contain NaN"):
        problem.hard(np.full(problem.dim, np.nan))
    broken = Problem(Multiclass(2, 2), Dense(np.array([[1.0], [np.nan]]), 2), [0, 1], n_jobs=1)
    with pytest.raises(FloatingPointError, match="example 1 is nan: check its features"):
        broken.hard(np.ones(2))


def test_an_example_without_outputs_is_named(random):
    structure = Chain([1, 2], 2, forbidden_end=[True, True])
    structure.pack = lambda y: np.concatenate(y)  # as if the check of gold were not there
    problem = Problem(structure, chain_features(Dense(np.ones((3, 1)), 2), 2), [[0], [0, 1]], n_jobs=1)
    with pytest.raises(FloatingPointError, match="example 0 has no allowed output"):
        problem.soft(np.zeros(problem.dim), 1.0)


@pytest.mark.parametrize("make", PROBLEMS)
def test_check_problem_accepts_ours_and_notices_lies(make):
    check_problem(make())
    problem = make()
    problem.structure.radius = lambda norms: 0.1
    with pytest.raises(AssertionError, match="but the radius claims"):
        check_problem(problem)
    problem = make()
    problem.cost.gold = (problem.gold + 1) % len(problem.cost.table)
    with pytest.raises(AssertionError, match="the loss of gold is not 0"):
        check_problem(problem)
    problem = make()
    problem.structure.hard = lambda theta, threads: (np.zeros(problem.n), problem.gold)
    with pytest.raises(AssertionError, match="max-oracle"):
        check_problem(problem)


def test_blocks_by_mask(random):
    for make in PROBLEMS:
        problem = make()
        w = random.normal(size=problem.dim)
        mask = np.arange(problem.n) % 2 == 0
        assert problem.hard(w, mask).value == pytest.approx(problem.hard(w, np.flatnonzero(mask)).value)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_combine_is_the_linear_combination(n_jobs, random):
    """Also beyond the size of a chunk, and with vectors whose coefficient is zero."""
    for attributes in (2, 30_000):
        X = random.normal(size=(3, attributes))
        problem = Problem(Multiclass(3, 2), Dense(X, 2), [0, 1, 0], n_jobs=n_jobs)
        vectors = random.normal(size=(3, problem.dim))
        for coefficients in ([0.5, -2.0, 0.0], [0.0, 0.0, 3.0], np.array([1.0, 1.0, 1.0])):
            combined = problem.combine(coefficients, list(vectors))
            np.testing.assert_allclose(combined, np.asarray(coefficients) @ vectors, rtol=1e-13, atol=1e-13)
        assert problem.combine([2.0], [vectors[0]]) is not vectors[0]
