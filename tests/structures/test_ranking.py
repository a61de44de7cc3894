"""The k best outputs by the max-oracle alone against all outputs, sorted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.structures import Chain, NonProjectiveTree, ProjectiveTree, k_best
from tests.matching import Matching
from tests.structures.dependencies import trees
from tests.structures.template import draw_theta


def expected(structure, example, theta):
    """Scores of all outputs that are not forbidden, by their parts."""
    alone, _ = structure.select(np.array([example]))
    flat, scores = np.concatenate([array.ravel() for array in theta]), {}
    for y in structure.enumerate(example):
        parts, counts = alone.local_parts(y)
        own = parts[0, : counts[0]]
        scores[tuple(own.tolist())] = flat[own].sum()
    return {parts: score for parts, score in scores.items() if score > -np.inf}


def check(structure, theta, k, arrays=None):
    for i in range(structure.n):
        own = structure.own(theta, i)
        copies, every = [array.copy() for array in own], expected(structure, i, own)
        found = k_best(structure, i, own, k, arrays)
        assert len(found) == min(k, len(every))
        assert len({tuple(parts.tolist()) for _, parts in found}) == len(found)
        np.testing.assert_allclose([score for score, _ in found], sorted(every.values(), reverse=True)[:k], atol=1e-9)
        for score, parts in found:
            assert score == pytest.approx(every[tuple(parts.tolist())], abs=1e-12)
        assert all(np.array_equal(a, b) for a, b in zip(own, copies, strict=True))


STRUCTURES = [
    trees(ProjectiveTree),
    trees(NonProjectiveTree),
    trees(ProjectiveTree, siblings=True, grandchildren=True, most=3),
]


@pytest.mark.parametrize("instances", STRUCTURES)
def test_the_k_best_trees(instances):
    @given(st.data())
    def run(data):
        structure = data.draw(instances)
        telling = None if data.draw(st.booleans()) else ([0] if structure.arcs.labels == 1 else [1])
        check(structure, draw_theta(data.draw, structure), data.draw(st.sampled_from([1, 2, 5, 12])), telling)

    run()


@given(st.integers(0, 10_000), st.sampled_from([1, 3, 10, 40]))
def test_outputs_of_any_number_of_parts(seed, k):
    """Matchings may contain others, and one is empty."""
    random = np.random.default_rng(seed)
    structure = Matching([(2, 3), (1, 1), (2, 2)])
    theta = random.integers(-2, 3, size=structure.shapes[0]).astype(float)
    theta[random.random(theta.shape) < 0.2] = -np.inf
    check(structure, (theta,), k)


def test_it_agrees_with_chains(random):
    chain = Chain([4, 1, 3], 3)
    theta = tuple(random.normal(size=shape) for shape in chain.shapes)
    scores, _ = chain.k_best(theta, 20)
    for i in range(chain.n):
        found = [score for score, _ in k_best(chain, i, chain.own(theta, i), 20)]
        np.testing.assert_allclose(found, scores[i][scores[i] > -np.inf], atol=1e-9)


def test_long_sentences(random):
    """Best first, the first as the max-oracle says, and all of them different trees."""
    structure = NonProjectiveTree([25])
    theta = (random.normal(size=structure.shapes[0]),)
    found = k_best(structure, 0, theta, 30, [0])
    scores = [score for score, _ in found]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(structure.hard(theta)[0][0])
    outputs = {tuple(structure.output_of(parts, 0)) for _, parts in found}
    assert len(outputs) == 30
    assert all(
        np.isin(structure.parts_of(list(heads), 0), np.arange(structure.shapes[0][0])).all() for heads in outputs
    )


def test_k_must_be_positive():
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        k_best(ProjectiveTree([1]), 0, (np.zeros(1),), 0)
