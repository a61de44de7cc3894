from itertools import product

import numpy as np
import pytest
from hypothesis import strategies as st

from m3n.checks import check_problem
from m3n.features import Dense, Stack, Table
from m3n.losses import EdgeHamming, Hamming
from m3n.problem import Problem
from m3n.structures import Chain, HigherOrderChain
from tests.structures.agreement import (
    blocks_agree,
    solvers_find_the_optimum,
    terms_near_underflow,
    weights_count_examples,
)
from tests.structures.template import StructureTemplate
from tests.tiny import Enumerated


@st.composite
def chains(draw, sparse):
    labels = draw(st.integers(1, 3))
    order = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 5 if labels < 3 else 3), min_size=1, max_size=2))
    histories = None
    if sparse:  # label 0 may always follow itself, so that every length keeps an output
        random = np.random.default_rng(draw(st.integers(0, 1000)))
        every = [gram for k in range(1, order + 1) for gram in product(range(labels), repeat=k)]
        histories = [(0,) * order, *(gram for gram in every if random.random() < (0.7 if len(gram) == order else 0.2))]
    return HigherOrderChain(lengths, labels, order, histories=histories)


class TestHigherOrderChain(StructureTemplate):
    instances = chains(sparse=False)


class TestSparseHistories(StructureTemplate):
    instances = chains(sparse=True)


def score_by_hand(structure, theta, y):
    """The formula of the module, gram by gram."""
    node, _, start, end, *_ = theta
    total = start[y[0]] + end[y[-1]] + sum(node[t, label] for t, label in enumerate(y))
    for k in range(1, structure.order + 1):
        table = theta[1].ravel() if k == 1 else theta[2 + k]
        total += sum(table[structure.gram_number(y[t : t + k + 1])] for t in range(len(y) - k))
    return total


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_scores_by_hand(order, sparse, random):
    y = [0, 2, 1, 1, 0, 0, 2]
    histories = HigherOrderChain.observed([y, [1, 2], [0]], order) if sparse else None
    structure = HigherOrderChain([len(y)], 3, order, histories=histories)
    theta = tuple(random.normal(size=shape) for shape in structure.shapes)
    assert structure.score(theta, structure.pack([y]))[0] == pytest.approx(score_by_hand(structure, theta, y))


def allowed_by_hand(y, order, histories):
    windows = [tuple(y[t : t + order]) for t in range(max(len(y) - order, 0) + 1)]
    if len(y) >= order:
        return all(window in histories for window in windows)
    return any(tuple(y) == history[: len(y)] for history in histories)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_outputs_are_those_whose_histories_are_allowed(order):
    """Short sequences are beginnings of histories; in longer ones every window must be a history."""
    sequences = [[0, 1, 2, 2, 1], [2, 0], [1]]
    histories = HigherOrderChain.observed(sequences, order)
    structure = HigherOrderChain([1, 2, 3, 5], 3, order, histories=histories)
    for i, length in enumerate(structure.lengths):
        expected = [y for y in product(range(3), repeat=length) if allowed_by_hand(y, order, histories)]
        assert [tuple(y) for y in structure.enumerate(i)] == expected
    sizes = [sum(1 for _ in structure.enumerate(i)) for i in range(4)]
    np.testing.assert_allclose(structure.log_size(), np.log(sizes))


def test_grams_that_can_occur():
    structure = HigherOrderChain([4], 3, 3, histories=[(0, 1, 2), (1, 2, 2), (2, 2, 2)])
    assert structure.grams(3).tolist() == [[0, 1, 2, 2], [1, 2, 2, 2], [2, 2, 2, 2]]
    assert structure.grams(2).tolist() == [[0, 1, 2], [1, 2, 2], [2, 2, 2]]
    assert structure.shapes == ((4, 3), (3, 3), (3,), (3,), (3,), (3,))
    full = HigherOrderChain([4], 3, 2)
    assert full.grams(2).tolist() == [list(gram) for gram in product(range(3), repeat=3)]
    assert full.gram_number((2, 0, 1)) == 2 * 9 + 0 * 3 + 1
    assert full.gram_number((2, 1)) == 2 * 3 + 1


@pytest.mark.parametrize("mu", [1e-6, 1e-2, 1.0])
def test_order_one_is_a_chain(mu, random):
    lengths, labels = [1, 40, 7], 6
    chain, other = Chain(lengths, labels), HigherOrderChain(lengths, labels, 1)
    theta = tuple(random.normal(size=shape) for shape in chain.shapes)
    assert other.shapes == chain.shapes
    for a, b in zip(other.hard(theta), chain.hard(theta), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    value, marginals = chain.soft(tuple(array.copy() for array in theta), mu)
    values, parts = other.soft(theta, mu)
    np.testing.assert_allclose(values, value, rtol=1e-13)
    for a, b in zip(parts, marginals, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11 + 1e-13 / mu)
    np.testing.assert_allclose(other.log_size(), chain.log_size())


@pytest.mark.parametrize("order", [2, 3])
def test_tables_of_zeros_change_nothing(order, random):
    """Without scores of longer grams a higher order is a chain, long and at any temperature."""
    lengths, labels = [60, 2, 9], 3
    chain, other = Chain(lengths, labels), HigherOrderChain(lengths, labels, order)
    theta = tuple(random.normal(size=shape) for shape in chain.shapes)
    longer = tuple(np.zeros(shape) for shape in other.shapes[4:])
    np.testing.assert_array_equal(other.hard((*theta, *longer))[1], chain.hard(theta)[1])
    for mu in (1e-7, 1e-3, 1.0, 100.0):
        value, marginals = chain.soft(tuple(array.copy() for array in theta), mu)
        values, parts = other.soft(tuple(array.copy() for array in (*theta, *longer)), mu)
        np.testing.assert_allclose(values, value, rtol=1e-12)
        for a, b in zip(parts, marginals, strict=False):
            np.testing.assert_allclose(a, b, atol=1e-10 + 1e-14 / mu)
        np.testing.assert_allclose(parts[0].sum(axis=1), 1.0, rtol=1e-12)
        grams = parts[4].reshape((labels,) * 3)
        np.testing.assert_allclose(grams.sum(), 58 + 0 + 7, rtol=1e-10)


def test_terms_near_underflow():
    terms_near_underflow(HigherOrderChain([2], 2, 1))


def test_terms_that_underflow_would_lose():
    """The only allowed output looks hopeless position by position."""
    structure = HigherOrderChain([5], 2, 2, histories=[(1, 1)])
    theta = tuple(np.zeros(shape) for shape in structure.shapes)
    theta[0][:, 1] = -900.0
    value, marginals = structure.soft(theta, 1.0)
    assert value[0] == pytest.approx(-4500.0)
    np.testing.assert_allclose(marginals[0], [[0, 1]] * 5)
    both = HigherOrderChain([2, 2], 2, 1)
    node = np.array([[-2000.0, 0.0], [0.0, 3000.0], [-2.0, 0.0], [0.0, 3.0]])
    theta = node, np.array([[0.0, 0.0], [0.0, -np.inf]]), np.zeros(2), np.zeros(2)
    value, marginals = both.soft(theta, 1.0)
    assert value[0] == pytest.approx(1000.0)
    np.testing.assert_allclose(marginals[0][:2], [[1, 0], [0, 1]])


@pytest.mark.parametrize("histories", [[(0, 1)], [(0, 1), (1, 1)]])
def test_no_allowed_output_gives_minus_infinity(histories):
    structure = HigherOrderChain([4, 2], 2, 2, histories=histories)
    theta = tuple(np.zeros(shape) for shape in structure.shapes)
    theta[1][1, 1] = -np.inf
    values, labelling = structure.hard(theta)
    assert values.tolist() == [-np.inf, 0.0]
    assert labelling[4:].tolist() == [0, 1]
    value, marginals = structure.soft(theta, 1.0)
    assert value.tolist() == [-np.inf, 0.0]
    assert not any(np.isnan(array).any() for array in marginals)
    np.testing.assert_allclose(marginals[0].sum(axis=1), [0, 0, 0, 0, 1, 1])


def problem_of_grams(temperature=0.0, order=2, sparse=True, n_jobs=1):
    random = np.random.default_rng(2)
    y = [[0], [2, 1], [0, 2, 1, 1], [2, 1, 0]]
    histories = HigherOrderChain.observed([*y, [1, 0, 2, 0]], order) if sparse else None
    structure = HigherOrderChain([len(labels) for labels in y], 3, order, histories=histories)
    tables = (Table(*shape) for shape in structure.shapes[1:])
    features = Stack(Dense(random.normal(size=(10, 3)), 3), *tables)
    return Problem(structure, features, y, lam=0.1, temperature=temperature, n_jobs=n_jobs)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_solvers_find_the_optimum(temperature):
    solvers_find_the_optimum(problem_of_grams(temperature))


@pytest.mark.parametrize(("order", "sparse"), [(1, False), (2, True), (3, True)])
def test_blocks_agree(order, sparse):
    blocks_agree(lambda: problem_of_grams(order=order, sparse=sparse))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_weights_count_examples(order):
    weights_count_examples(problem_of_grams(order=order).structure)


@pytest.mark.parametrize("order", [2, 3])
def test_problem_against_enumeration(order):
    for sparse in (False, True):
        problem = problem_of_grams(order=order, sparse=sparse)
        check_problem(problem)
        assert Enumerated.of(problem).radius <= problem.radius * (1 + 1e-12)


def test_pairs_have_no_costs():
    problem = problem_of_grams()
    assert Hamming().cost(problem.structure, problem.gold).gold.tolist() == problem.gold.tolist()
    with pytest.raises(ValueError, match="HigherOrderChain has no array of theta with a row for every pair"):
        EdgeHamming().cost(problem.structure, problem.gold)


@pytest.mark.parametrize(
    ("arguments", "histories", "message"),
    [
        (([2, 0], 3, 2), None, "sequence 1 is empty; leave"),
        (([], 3, 2), None, "at least one sequence"),
        (([2], 3, 0), None, "an order of 1"),
        (([2], 1000, 3), None, r"steps between histories of 1000 labels are too many .*=HigherOrderChain.observed"),
        (([2], 3, 2), [(0, 1, 2)], r"history \(0, 1, 2\) must have 1 to 2 labels in 0..2"),
        (([2], 3, 2), [(0, 3)], r"history \(0, 3\) must have"),
        (([2], 3, 2), [(0,)], "no history of 2 labels; give some, or"),
    ],
)
def test_bad_settings_are_refused(arguments, histories, message):
    with pytest.raises(ValueError, match=message):
        HigherOrderChain(*arguments, histories=histories)


def test_bad_outputs_are_named():
    chain = HigherOrderChain([2, 4], 3, 2, histories=[(0, 0), (0, 1), (1, 0)])
    with pytest.raises(ValueError, match="2 sequences but 1 label"):
        chain.pack([[0, 0]])
    with pytest.raises(ValueError, match="sequence 1 has 4 positions but 3 labels"):
        chain.pack([[0, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match="sequence 1, position 2: label 7"):
        chain.pack([[0, 0], [0, 0, 7, 0]])
    with pytest.raises(ValueError, match=r"sequence 1, position 2: the labels \(1, 1\) in a row .* histories; add"):
        chain.pack([[0, 0], [0, 1, 1, 0]])
    with pytest.raises(ValueError, match=r"sequence 0, position 0: the labels \(2,\)"):
        chain.pack([[2, 0], [0, 0, 0, 0]])
    with pytest.raises(ValueError, match=r"gram \(1, 1, 0\) cannot occur"):
        chain.gram_number((1, 1, 0))
    with pytest.raises(ValueError, match="tables have the numbers 1 to 2, got 3"):
        chain.grams(3)
