"""Matchings against enumeration, SciPy's assignments and linear programmes, and a general convex solver."""

import clarabel
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog

from m3n.packed import Threads
from m3n.structures import Matching
from tests.structures.alignments import alignments
from tests.structures.template import StructureTemplate

FERTILITIES = [(1, 1), (2, 1), (1, 2), (2, 3)]


class TestMatching(StructureTemplate):
    instances = alignments(lambda draw, sizes, allowed: Matching(sizes, (1, 1), allowed))


class TestFertileMatching(StructureTemplate):
    instances = alignments(
        lambda draw, sizes, allowed: Matching(sizes, draw(st.sampled_from(FERTILITIES[1:])), allowed), most=2
    )


def random_theta(random, structure, ties=False, holes=0.0):
    theta = tuple(random.normal(size=shape) for shape in structure.shapes)
    if ties:
        theta = tuple(np.round(array) for array in theta)
    theta[0][random.random(structure.shapes[0]) < holes] = -np.inf
    return theta


def by_assignment(link, source, target):
    """The best matching with one slot per word: every word meets another or itself."""
    m, n = link.shape
    table = np.full((m + n, n + m), -1e9)
    table[:m, :n] = np.where(np.isfinite(link), link, -1e9)
    table[:m, n:][np.diag_indices(m)] = source
    table[m:, :n][np.diag_indices(n)] = target
    table[m:, n:] = 0.0
    return table[linear_sum_assignment(table, maximize=True)].sum()


def equations(m, n):
    """Every slot of a word is used or free, for the variables (link, source null, target null)."""
    rows = np.hstack([np.kron(np.eye(m), np.ones((1, n))), np.eye(m), np.zeros((m, n))])
    columns = np.hstack([np.kron(np.ones((1, m)), np.eye(n)), np.zeros((n, m)), np.eye(n)])
    return np.vstack([rows, columns])


def by_programme(theta, size, fertility):
    """The best matching by the simplex method on what it relaxes to."""
    m, n = size
    score = np.concatenate([array.ravel() for array in theta])
    usable = np.isfinite(score)
    bounds = [(0, float(use)) for use in usable[: m * n]] + [(0, None if use else 0) for use in usable[m * n :]]
    slots = np.repeat(fertility, (m, n))
    found = linprog(-np.where(usable, score, 0.0), A_eq=equations(m, n), b_eq=slots, bounds=bounds, method="highs")
    return -found.fun if found.status == 0 else -np.inf


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("holes", [0.0, 0.5])
def test_max_oracle_agrees_with_assignments(ties, holes, random):
    sizes = [(20, 25), (25, 20), (1, 30), (30, 1), (12, 12)] * 4
    structure = Matching(sizes)
    theta = random_theta(random, structure, ties, holes)
    values = structure.hard(theta)[0]
    for i, size in enumerate(sizes):
        link, source, target = structure.own(theta, i)
        assert values[i] == pytest.approx(by_assignment(link.reshape(size), source.ravel(), target.ravel()), abs=1e-9)


@pytest.mark.parametrize("fertility", FERTILITIES)
@pytest.mark.parametrize("ties", [False, True])
def test_max_oracle_agrees_with_linear_programmes(fertility, ties, random):
    sizes = [(8, 11), (11, 8), (1, 5), (6, 2)] * 3
    structure = Matching(sizes, fertility)
    theta = random_theta(random, structure, ties, 0.2)
    for null in theta[1:]:
        null[random.random(null.shape) < 0.05] = -np.inf  # these words must use all of their slots
    values, packed = structure.hard(theta)
    expected = [by_programme(structure.own(theta, i), size, fertility) for i, size in enumerate(sizes)]
    np.testing.assert_allclose(values, expected, atol=1e-9)
    np.testing.assert_allclose(structure.score(theta, packed)[np.isfinite(values)], values[np.isfinite(values)])


def test_scores_that_differ_little_from_large_ones(random):
    """Shifting all links of a word, and its null part, changes no choice."""
    structure = Matching([(15, 18)])
    theta = random_theta(random, structure)
    shift = 1e6 * random.normal(size=(15, 1))
    moved = (theta[0] + np.repeat(shift, 18, axis=0), theta[1] + shift, theta[2])
    np.testing.assert_array_equal(structure.hard(theta)[1], structure.hard(moved)[1])


def test_links_without_a_gain_are_left_out():
    structure = Matching([(2, 3)], fertility=(2, 2))
    assert structure.unpack(structure.hard(tuple(np.zeros(shape) for shape in structure.shapes))[1]) == [[]]


def test_an_example_without_an_output_is_named():
    structure = Matching([(1, 1), (2, 1)])
    theta = (np.zeros((3, 1)), np.array([[0.0], [-np.inf], [-np.inf]]), np.zeros((2, 1)))
    values, packed = structure.hard(theta)
    np.testing.assert_array_equal(values, [0.0, -np.inf])
    with pytest.raises(ValueError, match="example 1 has no output"):
        structure.unpack(packed)
    smoothed, marginals = structure.soft(theta, 0.5)
    assert smoothed[1] == -np.inf
    assert not any(np.isnan(array).any() for array in marginals)


def test_null_parts_count_free_slots():
    structure = Matching([(2, 2)], fertility=(3, 1))
    packed = structure.pack([[(1, 0), (1, 1)]])
    link, source, target = structure.encode(packed)
    np.testing.assert_array_equal(link.ravel(), [0, 0, 1, 1])
    np.testing.assert_array_equal(source.ravel(), [3, 1])
    np.testing.assert_array_equal(target.ravel(), [0, 0])
    assert structure.unpack(packed) == [[(1, 0), (1, 1)]]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([(0, 0), (1, 0)], r"example 0, link \(1, 0\): its column has 1 already; raise fertility"),
        ([(0, 0), (0, 1), (0, 2)], r"example 0, link \(0, 2\): its row has 2 already; raise fertility"),
        ([(2, 0)], r"example 0, link \(2, 0\): rows are 0 to 1"),
        ([(1, 2)], r"example 0, link \(1, 2\): it is not allowed"),
    ],
)
def test_wrong_links_are_named(links, message):
    structure = Matching([(2, 3)], (2, 1), [[[1, 1, 1], [1, 1, 0]]])
    with pytest.raises(ValueError, match=message):
        structure.pack([links])


@pytest.mark.parametrize("fertility", [(0, 1), (1,), (1.5, 1), 2])
def test_wrong_fertilities_are_refused(fertility):
    with pytest.raises(ValueError, match="fertility must be two whole numbers"):
        Matching([(1, 1)], fertility)


# the smoothed maximum


def entropy(link, source, target, fertility):
    """h by its definition."""

    def terms(x, slots):
        used = x > 0.0
        return -(x[used] * np.log(x[used] / slots)).sum()

    return terms(link, 1) + terms(source, fertility[0]) + terms(target, fertility[1])


def by_cones(theta, size, fertility, mu):
    """The smoothed maximum and its means by an interior-point method: -x log(x/c) with an exponential cone each."""
    m, n = size
    score = np.concatenate([array.ravel() for array in theta])
    usable = np.flatnonzero(np.isfinite(score))
    count, links = len(usable), int((usable < m * n).sum())
    slots = np.repeat([1, *fertility], (m * n, m, n))[usable]
    # variables (x, h): (h, x, c) in the cone {h <= x log(c/x)}
    cones = np.zeros((3 * count, 2 * count))
    cones[3 * np.arange(count), count + np.arange(count)] = -1.0
    cones[3 * np.arange(count) + 1, np.arange(count)] = -1.0
    right = np.zeros(3 * count)
    right[2::3] = slots
    sums = np.hstack([equations(m, n)[:, usable], np.zeros((m + n, count))])
    bounds = np.eye(2 * count)[:links]
    A = scipy.sparse.csc_matrix(np.vstack([sums, bounds, cones]))
    b = np.concatenate([np.repeat(fertility, (m, n)), np.ones(links), right])
    kinds = [clarabel.ZeroConeT(m + n), clarabel.NonnegativeConeT(links), *[clarabel.ExponentialConeT()] * count]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    objective = -np.concatenate([score[usable], np.full(count, mu)])
    zero = scipy.sparse.csc_matrix((2 * count, 2 * count))
    found = clarabel.DefaultSolver(zero, objective, A, b, kinds, settings).solve()
    means = np.zeros(len(score))
    means[usable] = found.x[:count]
    return -found.obj_val, means


@pytest.mark.parametrize("fertility", FERTILITIES)
@pytest.mark.parametrize("mu", [0.05, 1.0])
def test_smoothed_maximum_agrees_with_a_convex_solver(fertility, mu, random):
    structure = Matching([(4, 6), (5, 3)], fertility)
    theta = random_theta(random, structure, holes=0.2)
    values, _ = structure.soft(tuple(array.copy() for array in theta), mu)
    for i, size in enumerate(structure.sizes):
        own = structure.own(theta, i)
        expected, means = by_cones(own, size, fertility, mu)
        assert values[i] == pytest.approx(expected, abs=1e-6)
        found = np.concatenate([array.ravel() for array in structure.smoothed(i, own, mu)[1]])
        np.testing.assert_allclose(found, means, atol=1e-3)
        np.testing.assert_allclose(found.sum(), means.sum(), atol=1e-3)


def means_are_feasible(marginals, structure, i):
    link, source, target = (array.ravel() for array in structure.own(marginals, i))
    link = link.reshape(structure.sizes[i])
    assert all(part.min() >= 0.0 for part in (link, source, target))
    assert link.max() <= 1.0
    np.testing.assert_allclose(link.sum(axis=1) + source, structure.fertility[0], atol=1e-12)
    np.testing.assert_allclose(link.sum(axis=0) + target, structure.fertility[1], atol=1e-12)


@given(
    st.integers(0, 10_000),
    st.sampled_from(FERTILITIES),
    st.sampled_from([1e-9, 1e-6, 1e-4, 1e-2, 0.3, 30.0]),
    st.booleans(),
)
def test_the_value_is_attained_by_a_mixture(seed, fertility, mu, ties):
    random = np.random.default_rng(seed)
    structure = Matching([(10, 13), (13, 10), (1, 4)], fertility)
    theta = random_theta(random, structure, ties, 0.3)
    best, diameter = structure.hard(theta)[0], structure.diameter()
    values, marginals = structure.soft(tuple(array.copy() for array in theta), mu)
    assert np.all(values >= best - 1e-12)
    assert np.all(values <= best + mu * diameter + 1e-12)
    for i in range(structure.n):
        means_are_feasible(marginals, structure, i)
        own, means = structure.own(theta, i), structure.own(marginals, i)
        h = entropy(*means, fertility)
        assert 0.0 <= h <= diameter[i]
        score = sum((t[m > 0] * m[m > 0]).sum() for t, m in zip(own, means, strict=True))
        assert values[i] == pytest.approx(score + mu * h, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("fertility", FERTILITIES)
def test_the_cold_limit_is_the_best_output(fertility, random):
    structure = Matching([(12, 9)] * 3, fertility)
    theta = random_theta(random, structure)
    values, packed = structure.hard(theta)
    outputs = structure.encode(packed)
    for mu in (1e-5, 1e-8, 1e-14):
        cold, marginals = structure.soft(tuple(array.copy() for array in theta), mu)
        np.testing.assert_allclose(cold, values, atol=30 * mu + 1e-12)
        for a, b in zip(marginals, outputs, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("fertility", FERTILITIES)
def test_the_diameter_is_attained_without_scores(fertility):
    """By all links that are allowed; where some are not it is a bound."""
    sizes = [(1, 1), (3, 5), (20, 4), (2, 30)]
    structure = Matching(sizes, fertility)
    zero = tuple(np.zeros(shape) for shape in structure.shapes)
    np.testing.assert_allclose(structure.soft(zero, 1.0)[0], structure.diameter(), rtol=1e-9)
    random = np.random.default_rng(0)
    for density in (0.0, 0.2, 0.8):
        fewer = Matching(sizes, fertility, [random.random(size) < density for size in sizes])
        zero = tuple(np.zeros(shape) for shape in fewer.shapes)
        assert np.all(fewer.soft(zero, 1.0)[0] <= fewer.diameter() + 1e-9)
        assert np.all(fewer.diameter() <= structure.diameter())


def test_words_that_must_use_all_slots(random):
    """All words of a square table: doubly stochastic matrices, no free slots."""
    structure = Matching([(7, 7)])
    theta = (random.normal(size=(49, 1)), np.full((7, 1), -np.inf), np.full((7, 1), -np.inf))
    for mu in (1e-3, 0.1, 10.0):
        value, (link, source, target) = structure.soft(tuple(array.copy() for array in theta), mu)
        expected, _ = by_cones(theta, (7, 7), (1, 1), mu)
        assert value[0] == pytest.approx(expected, abs=1e-6 * max(1.0, mu))
        np.testing.assert_allclose(link.reshape(7, 7).sum(axis=0), 1.0, atol=1e-11)
        assert not source.any()
        assert not target.any()


def test_weights_and_threads_of_the_smoothed_pass(random):
    structure = Matching([(4, 5), (2, 2), (6, 3), (1, 7)])
    theta, weights = random_theta(random, structure), np.array([2.0, 0.5, 0.0, 1.0])
    value, marginals = structure.soft(tuple(array.copy() for array in theta), 0.2)
    again, weighted = structure.soft(tuple(array.copy() for array in theta), 0.2, Threads(2), weights=weights)
    np.testing.assert_array_equal(value, again)
    for a, b, span in zip(marginals, weighted, structure.spans(), strict=True):
        np.testing.assert_array_equal(np.repeat(weights, np.diff(span))[:, None] * a, b)


def test_only_one_slot_per_word_has_a_factored_dual():
    assert Matching([(1, 1)]).oracles == {"hard", "smoothed", "support"}
    assert Matching([(1, 1)], (2, 1)).oracles == {"hard", "smoothed"}
    with pytest.raises(TypeError, match="Matching does not say how many outputs it has"):
        Matching([(1, 1)]).log_size()
