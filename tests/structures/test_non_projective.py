"""Trees whose arcs may cross against enumeration, closed formulas, the matrix inverse and an independent solver."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.checks import check_structure
from m3n.losses import PartLoss
from m3n.structures import Arcs, NonProjectiveTree, ProjectiveTree
from tests.structures.agreement import blocks_agree, solvers_find_the_optimum, weights_count_examples
from tests.structures.dependencies import (
    all_trees,
    is_projective,
    long_sentences,
    parsing_problem,
    random_arcs,
    slack_products_agree,
    trees,
)
from tests.structures.template import StructureTemplate


class TestNonProjectiveTree(StructureTemplate):
    instances = trees(NonProjectiveTree)


@pytest.mark.parametrize("single_root", [True, False])
def test_outputs_are_all_trees(single_root):
    structure = NonProjectiveTree([1, 2, 3, 4], single_root=single_root)
    for i, length in enumerate(structure.arcs.lengths):
        alone = NonProjectiveTree([length], single_root=single_root)
        found = [alone.unpack(y)[0] for y in structure.enumerate(i)]
        assert found == list(all_trees(int(length), single_root))


@pytest.mark.parametrize("labels", [1, 3])
def test_numbers_of_trees(labels):
    """Cayley: n^(n - 1) rooted trees; the root is one more vertex of (n + 1)^(n - 1) trees."""
    n = np.array([1, 2, 3, 4, 5, 20, 60, 150])
    one, several = (NonProjectiveTree(n, labels, single_root=single).log_size() for single in (True, False))
    np.testing.assert_allclose(one, (n - 1) * np.log(n) + n * np.log(labels), rtol=1e-13)
    np.testing.assert_allclose(several, (n - 1) * np.log(n + 1) + n * np.log(labels), rtol=1e-13)


@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([1e-8, 1e-4, 1e-2, 1.0, 30.0]))
def test_few_arcs_of_five_words(seed, single_root, mu):
    """Words that only some words can be the head of: the sum falls apart into a core and the rest."""
    random = np.random.default_rng(seed)
    structure = NonProjectiveTree(random_arcs(random, [5, 5], density=0.25), single_root=single_root)
    theta = 1e4 * random.normal(size=structure.shapes[0])
    check_structure(structure, (theta,), 1e4 * mu)
    check_structure(structure, (random.integers(-1, 2, size=structure.shapes[0]).astype(float),), mu)


def by_inverse(weights, single_root):
    """Marginals (head, dependent) and log Z by determinants of the Laplacian: subtractions, but few words."""
    n = len(weights)
    total, marginals = 0.0, np.zeros((n, n))
    for child in range(1, n) if single_root else [None]:
        own = weights.copy()
        if child is not None:
            own[0, np.arange(n) != child] = 0.0
            own[1:, child] = 0.0
        laplacian = np.diag(own.sum(axis=0)[1:]) - own[1:, 1:]
        z, inverse = np.linalg.det(laplacian), np.linalg.inv(laplacian)
        total += z
        marginals[0, 1:] += z * own[0, 1:] * np.diag(inverse)
        marginals[1:, 1:] += z * own[1:, 1:] * (np.diag(inverse)[None, :] - inverse.T)
    return np.log(total), marginals / total


@pytest.mark.parametrize("single_root", [True, False])
def test_longer_sentences_by_inverse(single_root, random):
    for length in (6, 7, 13, 24):
        structure = NonProjectiveTree([length], single_root=single_root)
        theta, arcs = random.normal(size=structure.shapes[0]), structure.arcs
        weights = np.zeros((length + 1, length + 1))
        weights[arcs.head, arcs.dependent] = np.exp(theta)
        expected, table = by_inverse(weights, single_root)
        value, (marginals,) = structure.soft((theta.copy(),), 1.0)
        assert value[0] == pytest.approx(expected, rel=1e-10)
        np.testing.assert_allclose(marginals, table[arcs.head, arcs.dependent], atol=1e-9)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("mu", [1.0, 0.2])
def test_long_sentences(single_root, mu, random):
    long_sentences(NonProjectiveTree([60, 1, 37, 59], 2, single_root=single_root), random, mu)


@pytest.mark.parametrize("single_root", [True, False])
def test_weights_and_their_logarithms_agree(single_root, random):
    """Where numbers become too small for weights, at lower temperatures, nothing jumps."""
    for length in (9, 30):
        structure = NonProjectiveTree([length], single_root=single_root)
        theta = random.normal(size=structure.shapes[0])
        for mu in np.logspace(-2.6, 0, 30):
            one, two = (structure.soft((theta.copy(),), m) for m in (mu, mu * (1 + 1e-7)))
            np.testing.assert_allclose(one[0], two[0], rtol=1e-5)
            np.testing.assert_allclose(one[1][0], two[1][0], atol=1e-5 / mu)
            np.testing.assert_allclose(np.add.reduceat(one[1][0], structure.arcs.word_first[:-1]), 1.0, rtol=1e-12)


@pytest.mark.parametrize("single_root", [True, False])
def test_huge_scores_in_long_sentences(single_root, random):
    """At low temperatures the marginals become the best tree: two algorithms that share nothing."""
    structure = NonProjectiveTree([40, 25, 1, 2, 90], single_root=single_root)
    for scale in (1.0, 1e4):
        theta = (scale * random.normal(size=structure.shapes[0]),)
        best, packed = structure.hard(theta)
        value, (marginals,) = structure.soft((theta[0].copy(),), 1e-6 * scale)
        np.testing.assert_allclose(value, best, rtol=1e-9)
        np.testing.assert_allclose(marginals, structure.encode(packed)[0], atol=1e-6)


def test_it_is_not_below_the_projective_one(random):
    """The best tree of all is the best projective one where that is allowed to cross and does not want to."""
    lengths = random.integers(1, 12, size=60)
    one, other = NonProjectiveTree(lengths), ProjectiveTree(lengths)
    theta = (random.normal(size=one.shapes[0]),)
    (values, packed), (lower, projective) = one.hard(theta), other.hard(theta)
    assert (values >= lower - 1e-12).all()
    straight = [is_projective(heads) for heads in one.unpack(packed)]
    assert 0 < sum(straight) < 60
    pairs = zip(straight, one.unpack(packed), other.unpack(projective), strict=True)
    assert all(heads == others for same, heads, others in pairs if same)


def tiny(labels=1, **settings):
    arcs = random_arcs(np.random.default_rng(2), [1, 3, 2, 4], labels, 0.6, labels == 1)
    return NonProjectiveTree(arcs, **settings)


@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_solvers_find_the_optimum(labels, temperature):
    solvers_find_the_optimum(parsing_problem(tiny(labels, single_root=labels == 1), temperature=temperature))


@pytest.mark.parametrize("labels", [1, 2])
def test_slack_rescaling_by_search(labels):
    slack_products_agree(tiny(labels))


def test_blocks_agree():
    blocks_agree(lambda: parsing_problem(tiny(2), loss=PartLoss(arrays=[1])))


def test_weights_count_examples():
    weights_count_examples(tiny(2))


def test_crossing_arcs_are_welcome():
    structure = NonProjectiveTree([4])
    assert structure.unpack(structure.pack([[3, 0, 2, 2]])) == [[3, 0, 2, 2]]
    with pytest.raises(ValueError, match="sentence 0, word 1: its head 2 is a descendant of it"):
        structure.pack([[2, 1, 0, 3]])


def test_sentences_without_a_tree_are_named():
    """Two closed circles; words that only the root can be the head of; a circle that the root does not reach."""
    circles = [(2, 1), (1, 2), (4, 3), (3, 4), (0, 1), (0, 3)]
    stars = [(0, 1), (0, 2)]
    lost = [(0, 1), (3, 2), (2, 3), (2, 1)]
    for pairs, length, several in ((circles, 4, True), (stars, 2, True), (lost, 3, False)):
        arcs = Arcs.of([1, length], [[(0, 1)], pairs])
        for single_root in (True, False):
            structure = NonProjectiveTree(arcs, single_root=single_root)
            values, _ = structure.hard((np.zeros(len(arcs.head)),))
            assert values[0] == 0.0
            assert (values[1] > -np.inf) == (several and not single_root)
            if not values[1] > -np.inf:
                value, (marginals,) = structure.soft((np.zeros(len(arcs.head)),), 1.0)
                assert value[1] == -np.inf
                assert not marginals[1:].any()
                with pytest.raises(ValueError, match="sentence 1 has no tree"):
                    structure.log_size()
