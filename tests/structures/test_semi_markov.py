import numpy as np
import pytest
from hypothesis import strategies as st
from numba import typeof

from m3n.checks import check_problem
from m3n.features import Dense, Stack, Table
from m3n.losses import CostMatrix, EdgeHamming, Hamming, NormalizedHamming, PartLoss
from m3n.problem import Problem
from m3n.structures import Chain, SemiMarkov
from tests.structures.agreement import (
    blocks_agree,
    solvers_find_the_optimum,
    terms_near_underflow,
    weights_count_examples,
)
from tests.structures.template import StructureTemplate
from tests.tiny import Enumerated

COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [1.0, 0.5, 0.0]])


@st.composite
def segmentations(draw):
    labels = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 4 if labels < 3 else 3), min_size=1, max_size=3))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    bounds = draw(st.integers(1, 5)) if draw(st.booleans()) else random.integers(1, 5, size=labels)
    forbid = {}
    if draw(st.booleans()):  # label 0 may always follow itself, so that every length keeps an output
        forbid = {
            "forbidden": random.random((labels, labels)) < 0.4,
            "forbidden_start": random.random(labels) < 0.4,
            "forbidden_end": random.random(labels) < 0.4,
        }
        for mask in forbid.values():
            mask[(0,) * mask.ndim] = False
    return SemiMarkov(lengths, labels, bounds, **forbid)


class TestSemiMarkov(StructureTemplate):
    instances = segmentations()


def problem_of_segments(temperature=0.0, loss=None, n_jobs=1):
    """Features of positions and of segments, one label of single positions, a forbidden transition."""
    random = np.random.default_rng(1)
    structure = SemiMarkov([1, 3, 4, 2], 3, [1, 3, 2], forbidden=np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]], bool))
    tables = Table(3, 3), Table(3), Table(3)
    spans = structure.segments()
    segment = np.column_stack([random.normal(size=(len(spans), 2)), spans[:, 2] > 1])
    features = Stack(Dense(random.normal(size=(10, 2)), 3), *tables, Dense(segment, 3))
    y = [[(0, 1, 2)], [(0, 1, 0), (1, 3, 1)], [(0, 2, 2), (2, 3, 0), (3, 4, 0)], [(0, 2, 1)]]
    return Problem(structure, features, y, lam=0.1, temperature=temperature, loss=loss, n_jobs=n_jobs)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_solvers_find_the_optimum(temperature):
    solvers_find_the_optimum(problem_of_segments(temperature))


def test_one_bound_and_a_bound_per_label_are_of_one_type():
    """What is compiled for one of them serves the other."""
    bounds = 2, [1, 2], np.array([1, 2], np.int32)
    assert len({typeof(SemiMarkov([3], 2, bound).space()) for bound in bounds}) == 1


def test_blocks_agree():
    blocks_agree(problem_of_segments)


def test_weights_count_examples():
    weights_count_examples(problem_of_segments().structure)


def test_slack_rescaling_by_search():
    """No compiled oracle for products of loss and margin: the search with the max-oracle answers, exactly."""
    problem = problem_of_segments()
    slack = Problem(
        problem.structure, problem.features, problem.structure.unpack(problem.gold), lam=0.1, rescale="slack", n_jobs=1
    )
    known, w = Enumerated.of(problem), np.random.default_rng(0).normal(size=problem.dim)
    products = known.ell * (1.0 - known.psi @ w)
    best = np.mean([products[known.owner == i].max() for i in range(4)])
    assert slack.hard(w).value == pytest.approx(best)


@pytest.mark.parametrize("loss", [Hamming(class_weight=[1.0, 3.0, 0.5]), NormalizedHamming(), CostMatrix(COSTS)])
def test_label_losses_count_positions(loss):
    problem = problem_of_segments(loss=loss)
    check_problem(problem)
    structure, gold = problem.structure, [[2], [0, 1, 1], [2, 2, 0, 0], [1, 1]]
    by_hand = {
        Hamming: lambda g, y: (g != y) * np.array([1.0, 3.0, 0.5])[g],
        NormalizedHamming: lambda g, y: (g != y) / len(g),
        CostMatrix: lambda g, y: COSTS[g, y],
    }[type(loss)]
    for i, right in enumerate(gold):
        alone, rows = structure.select(np.array([i]))
        for y in alone.enumerate(0):
            labels = np.concatenate([[label] * (end - begin) for begin, end, label in alone.unpack(y)[0]])
            found = problem.cost.select(rows, [i]).expected(alone.encode(y))
            assert found == pytest.approx(by_hand(np.array(right), labels).sum())


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_wrong_and_missing_segments_have_prices(temperature):
    """2 per segment of gold that is missing, 0.5 per segment that should not be there, beside wrong positions."""
    loss = PartLoss(missed=2.0, spurious=0.5, arrays=[4]) + 0.25 * Hamming()
    problem = problem_of_segments(temperature, loss=loss)
    check_problem(problem)
    structure = problem.structure
    for i, right in enumerate(structure.unpack(problem.gold)):
        alone, rows = structure.select(np.array([i]))
        labels = structure.labels_of(problem.gold)[slice(*structure.offsets[i : i + 2])]
        for y in alone.enumerate(0):
            found = set(alone.unpack(y)[0])
            wrong = np.count_nonzero(alone.labels_of(y) != labels)
            expected = 2.0 * len(set(right) - found) + 0.5 * len(found - set(right)) + 0.25 * wrong
            assert problem.cost.select(rows, [i]).expected(alone.encode(y)) == pytest.approx(expected)
    solvers_find_the_optimum(problem)


def test_position_weights_and_pairs():
    problem = problem_of_segments()
    weights = [[0.5], [1.0, 0.0, 2.0], [1.0] * 4, [3.0, 1.0]]
    loss = NormalizedHamming(position_weight=weights).cost(problem.structure, problem.gold)
    np.testing.assert_allclose(loss.weight, np.concatenate([np.array(w) / sum(w) for w in weights]))
    with pytest.raises(ValueError, match="SemiMarkov has no array of theta with a row for every pair"):
        EdgeHamming().cost(problem.structure, problem.gold)


def test_radius_bounds_every_psi():
    for seed in range(5):
        problem = problem_of_segments()
        random = np.random.default_rng(seed)
        problem.features.maps[-1].X *= np.exp(random.normal(size=(problem.structure.shapes[4][0], 1)))
        assert Enumerated.of(problem).radius <= problem.radius * (1 + 1e-12)


@pytest.mark.parametrize("mu", [1e-6, 1e-2, 1.0])
def test_segments_of_one_position_are_a_chain(mu, random):
    lengths, labels = [1, 30, 7], 5
    forbid = {"forbidden": random.random((5, 5)) < 0.3, "forbidden_end": random.random(5) < 0.3}
    chain, semi = Chain(lengths, labels, **forbid), SemiMarkov(lengths, labels, 1, **forbid)
    theta = tuple(random.normal(size=shape) for shape in chain.shapes)
    extra = random.normal(size=semi.shapes[4])
    summed = theta[0] + extra, *theta[1:]
    best, labelling = chain.hard(summed)
    found, segments = semi.hard((*theta, extra))
    np.testing.assert_allclose(found, best, rtol=1e-13)
    np.testing.assert_array_equal(semi.labels_of(segments), labelling)
    assert semi.unpack(segments) == [[(t, t + 1, j) for t, j in enumerate(y)] for y in chain.unpack(labelling)]
    value, marginals = chain.soft(tuple(array.copy() for array in summed), mu)
    values, parts = semi.soft((*theta, extra), mu)
    np.testing.assert_allclose(values, value, rtol=1e-13)
    for a, b in zip(parts, (*marginals, marginals[0]), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11 + 1e-14 / mu)
    np.testing.assert_allclose(semi.log_size(), chain.log_size())


def test_marginals_are_those_of_a_distribution_at_any_temperature(random):
    """Long sequences: every position has a label, every segment an end, and each transition two neighbours."""
    lengths, labels = np.array([90, 5]), 4
    structure = SemiMarkov(lengths, labels, [1, 7, 3, 20])
    spans = structure.segments()
    assert len(spans) == structure.shapes[4][0]
    for mu in (1e-9, 1e-4, 1e-2, 1.0, 1e3):
        theta = tuple(random.normal(size=shape) for shape in structure.shapes)
        node, counts, start, end, segment = structure.soft(theta, mu)[1]
        assert min(array.min() for array in (node, counts, segment)) >= 0.0
        np.testing.assert_allclose(node.sum(axis=1), 1.0, rtol=1e-11)
        ends = spans[:, 1] + spans[:, 2] == lengths[spans[:, 0]]
        np.testing.assert_allclose(segment[ends].sum(axis=0), end, atol=1e-11)
        np.testing.assert_allclose(segment[spans[:, 1] == 0].sum(axis=0), start, atol=1e-11)
        np.testing.assert_allclose(counts.sum(axis=0), segment[spans[:, 1] > 0].sum(axis=0), atol=1e-10)
        np.testing.assert_allclose(counts.sum(axis=1), segment[~ends].sum(axis=0), atol=1e-10)


def test_terms_near_underflow():
    terms_near_underflow(SemiMarkov([2], 2, 1))


def test_terms_that_underflow_would_lose():
    """Labels that look hopeless one by one carry the only allowed output."""
    structure = SemiMarkov([4], 2, 2, forbidden=np.array([[True, False], [True, False]]), forbidden_start=[True, False])
    theta = tuple(np.zeros(shape) for shape in structure.shapes)
    theta[0][:, 1] = -900.0
    value, marginals = structure.soft(theta, 1.0)
    assert value[0] == pytest.approx(-3600.0 + np.log(5))  # 4 positions in ones and twos: 5 ways
    np.testing.assert_allclose(marginals[0], [[0, 1]] * 4)


def test_no_allowed_output_gives_minus_infinity():
    structure = SemiMarkov([3, 2], 2, 2, forbidden=np.ones((2, 2), dtype=bool))
    theta = tuple(np.zeros(shape) for shape in structure.shapes)
    assert structure.hard(theta)[0].tolist() == [-np.inf, 0.0]
    value, marginals = structure.soft(theta, 1.0)
    assert value.tolist() == [-np.inf, np.log(2)]
    assert not any(np.isnan(array).any() for array in marginals)
    np.testing.assert_allclose(marginals[0].sum(axis=1), [0, 0, 0, 1, 1])


def test_log_size_counts_outputs():
    structure = SemiMarkov([1, 2, 3, 9], 2, [1, 2])
    sizes = [sum(1 for _ in structure.enumerate(i)) for i in range(4)]
    assert sizes[:3] == [2, 5, 12]
    np.testing.assert_allclose(structure.log_size(), np.log(sizes))


def test_rows_of_theta_are_the_listed_spans():
    structure = SemiMarkov([3, 1, 4], 2, 2)
    gold = structure.pack([[(0, 2, 1), (2, 3, 0)], [(0, 1, 1)], [(0, 1, 0), (1, 3, 1), (3, 4, 1)]])
    rows, labels = np.nonzero(structure.encode(gold)[4])
    assert structure.segments()[rows].tolist() == [[0, 0, 2], [0, 2, 1], [1, 0, 1], [2, 0, 1], [2, 1, 2], [2, 3, 1]]
    assert labels.tolist() == [1, 0, 1, 0, 1, 1]
    assert structure.labels_of(gold).tolist() == [1, 1, 0, 1, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([2, 0], 3, 2), "sequence 1 is empty; leave"),
        (([], 3, 2), "at least one sequence"),
        (([2], 0, 2), "one label"),
        (([2], 3, 0), "max_length of label 0 is 0"),
        (([2], 3, [1, -1, 2]), "max_length of label 1 is -1"),
        (([2], 3, [1, 2]), r"one per label \(3\), got \[1, 2\]"),
        (([2], 3, 1.5), "whole number"),
    ],
)
def test_bad_settings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        SemiMarkov(*arguments)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([[(0, 2, 0)]], "2 sequences but 1 lists"),
        ([[(0, 1, 0)], [(0, 3, 0)]], "sequence 0 has 2 positions, but its segments end at 1"),
        ([[(0, 2, 0)], [(0, 2, 0), (1, 3, 0)]], r"sequence 1, segment 1 \(1, 3, 0\): .* begins at 2"),
        ([[(0, 3, 0)], [(0, 3, 0)]], r"sequence 0, segment 0 \(0, 3, 0\): .* ends at 1 to 2"),
        ([[(0, 2, 0)], [(0, 3, 2)]], r"sequence 1, segment 0 .*: the label is not in 0..1"),
        ([[(0, 2, 1)], [(0, 3, 0)]], "has 2 positions, but segments of label 1 have at most 1; raise max_length"),
        ([[(0, 2, 0)], [(0, 1, 1), (1, 2, 1), (2, 3, 0)]], "must not follow label 1"),
        ([[(0, 1, 1), (1, 2, 0)], [(0, 3, 0)]], "is a forbidden start"),
        ([[(0, 2, 0)], [(0, 2, 0), (2, 3, 1)]], "sequence 1 ends with label 1, which is a forbidden end"),
    ],
)
def test_bad_outputs_are_named(outputs, message):
    ban, pairs = np.array([False, True]), np.array([[False, False], [False, True]])
    start = ban if "start" in message else None
    structure = SemiMarkov([2, 3], 2, [3, 1], forbidden=pairs, forbidden_start=start, forbidden_end=ban)
    with pytest.raises(ValueError, match=message):
        structure.pack(outputs)
