"""The k best outputs of chains against all outputs, sorted."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.checks import total_score
from m3n.packed import Threads
from m3n.structures import Chain
from tests.structures.template import draw_theta
from tests.structures.test_chain import chains


def enumerated(chain, theta, example):
    """The score of every output of one example that is not -inf."""
    alone, rows = chain.select(np.array([example]))
    mine = tuple(a if row is None else a[row] for a, row in zip(theta, rows, strict=True))
    scores = {tuple(y.tolist()): total_score(mine, alone.encode(y)) for y in chain.enumerate(example)}
    return {y: score for y, score in scores.items() if score > -np.inf}


@pytest.mark.parametrize("edges", [False, True])
def test_the_k_best_of_all_outputs(edges):
    @given(st.data())
    def check(data):
        chain = data.draw(chains(edges=edges))
        theta = draw_theta(data.draw, chain)
        k = data.draw(st.sampled_from([1, 2, 3, 7, 100]))
        copy = tuple(a.copy() for a in theta)
        scores, labellings = chain.k_best(theta, k)
        assert all(np.array_equal(a, b) for a, b in zip(theta, copy, strict=True))
        outputs = [chain.unpack(labelling) for labelling in labellings]
        for i in range(chain.n):
            expected = enumerated(chain, theta, i)
            count = min(k, len(expected))
            found = [tuple(outputs[r][i]) for r in range(count)]
            assert len(set(found)) == count
            np.testing.assert_allclose(scores[i, :count], [expected[y] for y in found], atol=1e-12)
            best = sorted(expected.values(), reverse=True)[:count]
            np.testing.assert_allclose(scores[i, :count], best, atol=1e-12)
            assert (scores[i, count:] == -np.inf).all()
            assert (np.diff(scores[i, :count]) <= 0).all()

    check()


def test_the_first_is_the_answer_of_the_max_oracle(random):
    """Bit for bit, ties included: integers make many of them."""
    for values in (random.normal, lambda size: random.integers(-1, 2, size=size).astype(float)):
        chain = Chain(random.integers(1, 30, size=40), 7, edges=True)
        theta = tuple(values(size=shape) for shape in chain.shapes)
        value, labelling = chain.hard(theta)
        for threads in (Threads(1), Threads(2)):
            scores, labellings = chain.k_best(theta, 4, threads)
            np.testing.assert_array_equal(scores[:, 0], value)
            np.testing.assert_array_equal(labellings[0], labelling)
            for r in range(4):
                full = scores[:, r] > -np.inf
                np.testing.assert_allclose(scores[full, r], chain.score(theta, labellings[r])[full], rtol=1e-12)


def kept(node, transition, start, end, edge, k):
    """The k best scores of one sequence: all prefixes that continue the k best of every label, cut to k again."""
    lists = [[value] for value in node[0] + start]
    for t in range(1, len(node)):
        table = transition + edge[t - 1]
        longer = [[f + table[i, j] + node[t, j] for i, old in enumerate(lists) for f in old] for j in range(len(end))]
        lists = [sorted(values, reverse=True)[:k] for values in longer]
    return sorted((f + last for old, last in zip(lists, end, strict=True) for f in old), reverse=True)[:k]


@pytest.mark.parametrize("k", [5, 60])
def test_long_chains(k, random):
    """Every position's lists must grow; answers are all different and none is left out."""
    lengths, labels = [25, 1, 40, 3], 3
    chain = Chain(lengths, labels, edges=True)
    theta = tuple(random.normal(size=shape) for shape in chain.shapes)
    scores, labellings = chain.k_best(theta, k, Threads(2))
    edges = np.cumsum([0, *(length - 1 for length in lengths)])
    for i, (low, high) in enumerate(pairwise(chain.offsets)):
        expected = kept(theta[0][low:high], *theta[1:4], theta[4][edges[i] : edges[i + 1]], k)
        np.testing.assert_allclose(scores[i, : len(expected)], expected, rtol=1e-12)
        assert (scores[i, len(expected) :] == -np.inf).all()
        assert len({tuple(labels) for labels in labellings[: len(expected), low:high].tolist()}) == len(expected)


def test_no_output_at_all():
    chain = Chain([2, 1], 2, forbidden=np.ones((2, 2), dtype=bool))
    scores, labellings = chain.k_best(tuple(np.zeros(shape) for shape in chain.shapes), 3)
    assert scores.tolist() == [[-np.inf] * 3, [0.0, 0.0, -np.inf]]
    assert labellings[:2, 2].tolist() == [0, 1]


def test_no_memory_for_outputs_that_cannot_exist():
    chain = Chain([1, 3], 2)
    assert chain.k_best(tuple(np.zeros(shape) for shape in chain.shapes), 10**12)[0].shape == (2, 8)


def test_k_must_be_positive():
    chain = Chain([1], 2)
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        chain.k_best(chain.empty(), 0)
