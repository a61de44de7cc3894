"""Alignments with jumps against enumeration, the definition, and alignments without jumps."""

import numpy as np
import pytest
from hypothesis import strategies as st

from m3n.structures import AlignmentChain, OneToMany
from tests.structures.alignments import alignments
from tests.structures.template import StructureTemplate


class TestAlignmentChain(StructureTemplate):
    instances = alignments(
        lambda draw, sizes, allowed: AlignmentChain(sizes, draw(st.integers(1, 4)), allowed),
    )


def by_definition(links, reach):
    """The numbers of the jumps of an output."""
    last, jumps = -1, []
    for _, column in sorted(links):
        jumps.append(min(max(column - last, -reach), reach) + reach)
        last = column
    return jumps


def test_jumps_are_those_of_the_definition(random):
    structure = AlignmentChain([(6, 9)], reach=2)
    for _ in range(20):
        links = [(i, int(random.integers(9))) for i in range(6) if random.random() < 0.7]
        counts = structure.encode(structure.pack([links]))[2]
        np.testing.assert_array_equal(counts, np.bincount(by_definition(links, 2), minlength=5))


@pytest.mark.parametrize("mu", [1e-3, 1.0])
def test_without_scores_of_jumps_words_are_independent(mu, random):
    sizes = [(7, 12), (1, 30), (15, 1)]
    chain, words = AlignmentChain(sizes, reach=3), OneToMany(sizes)
    theta = tuple(random.normal(size=shape) for shape in words.shapes)
    jumps = np.full(7, 0.4)
    expected = words.soft((theta[0] + 0.4, theta[1].copy()), mu)
    found = chain.soft((theta[0].copy(), theta[1].copy(), jumps), mu)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    for a, b in zip(found[1], expected[1], strict=False):
        np.testing.assert_allclose(a, b, atol=1e-10)
    np.testing.assert_allclose(found[1][2].sum(), expected[1][0].sum(), rtol=1e-10)


@pytest.mark.parametrize("mu", [1e-6, 0.1, 3.0])
def test_long_pairs_do_not_depend_on_the_way_of_adding_up(mu, random):
    """A reach beyond all columns scores every jump by itself: no running sums."""
    near, far = AlignmentChain([(30, 40)], reach=4), AlignmentChain([(30, 40)], reach=40)
    theta = tuple(random.normal(size=shape) for shape in near.shapes)
    jumps = theta[2][np.clip(np.arange(-40, 41), -4, 4) + 4]
    one = near.soft(tuple(a.copy() for a in theta), mu)
    other = far.soft((theta[0].copy(), theta[1].copy(), jumps.copy()), mu)
    np.testing.assert_allclose(one[0], other[0], rtol=1e-12)
    np.testing.assert_allclose(one[1][0], other[1][0], atol=1e-9)
    assert near.hard(theta)[0] == pytest.approx(far.hard((theta[0], theta[1], jumps))[0], rel=1e-13)


def test_wrong_reach_is_refused():
    with pytest.raises(ValueError, match="reach must be at least 1, got 0"):
        AlignmentChain([(1, 1)], reach=0)
