"""Projective trees against enumeration, closed formulas, and an independent solver."""

from math import comb

import numpy as np
import pytest

from m3n.checks import check_problem
from m3n.losses import PartLoss
from m3n.structures import Arcs, ProjectiveTree
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


class TestProjectiveTree(StructureTemplate):
    instances = trees(ProjectiveTree)


@pytest.mark.parametrize("single_root", [True, False])
def test_outputs_are_the_projective_trees(single_root):
    structure = ProjectiveTree([1, 2, 3, 4, 5], single_root=single_root)
    for i, length in enumerate(structure.arcs.lengths):
        alone = ProjectiveTree([length], single_root=single_root)
        found = [alone.unpack(y)[0] for y in structure.enumerate(i)]
        assert found == [heads for heads in all_trees(int(length), single_root) if is_projective(heads)]


@pytest.mark.parametrize("labels", [1, 3])
def test_numbers_of_trees(labels):
    """One root: C(3n - 2, n - 1)/n; several: C(3n, n)/(2n + 1)."""
    lengths = [1, 2, 3, 4, 5, 20, 60]
    one, several = (ProjectiveTree(lengths, labels, single_root=single).log_size() for single in (True, False))
    np.testing.assert_allclose(one, [np.log(comb(3 * n - 2, n - 1) / n) + n * np.log(labels) for n in lengths])
    np.testing.assert_allclose(several, [np.log(comb(3 * n, n) / (2 * n + 1)) + n * np.log(labels) for n in lengths])


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("mu", [1.0, 0.2])
def test_long_sentences(single_root, mu, random):
    long_sentences(ProjectiveTree([60, 1, 37, 59], 2, single_root=single_root), random, mu)


def test_huge_scores_in_long_sentences(random):
    """At low temperatures the marginals become the best tree."""
    structure = ProjectiveTree([40, 25])
    theta = (1e4 * random.normal(size=structure.shapes[0]),)
    best, packed = structure.hard(theta)
    value, (marginals,) = structure.soft((theta[0].copy(),), 1e-4)
    np.testing.assert_allclose(value, best, rtol=1e-12)
    np.testing.assert_allclose(marginals, structure.encode(packed)[0], atol=1e-9)


def tiny(labels=1, **settings):
    arcs = random_arcs(np.random.default_rng(2), [1, 3, 2, 4], labels, 0.6, labels == 1)
    return ProjectiveTree(arcs, **settings)


@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_solvers_find_the_optimum(labels, temperature):
    solvers_find_the_optimum(parsing_problem(tiny(labels), temperature=temperature))


@pytest.mark.parametrize("loss", [PartLoss(), PartLoss(missed=0.0, arrays=[1]), PartLoss(0.5, 0.5, arrays=[0])])
def test_losses_count_arcs(loss):
    """With labels the second array counts labelled arcs: each word that is wrong is missed once and spurious once."""
    problem = parsing_problem(tiny(2), loss=loss)
    check_problem(problem)
    structure = problem.structure
    for i, right in enumerate(structure.unpack(problem.gold)):
        alone, rows = structure.select(np.array([i]))
        for y in structure.enumerate(i):
            found = alone.unpack(y)[0]
            arcs = sum(a[0] != b[0] for a, b in zip(right, found, strict=True))
            labelled = sum(a != b for a, b in zip(right, found, strict=True))
            expected = {None: 2 * (arcs + labelled), 0: arcs, 1: labelled}[loss.arrays and loss.arrays[0]]
            assert problem.cost.select(rows, [i]).expected(alone.encode(y)) == pytest.approx(expected)


@pytest.mark.parametrize("labels", [1, 2])
def test_slack_rescaling_by_search(labels):
    slack_products_agree(tiny(labels))


def test_blocks_agree():
    blocks_agree(lambda: parsing_problem(tiny(2)))


def test_weights_count_examples():
    weights_count_examples(tiny(2))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([0, 1], "sentence 1 has 3 words, but its tree has 2"),
        ([0, 1, "a"], "sentence 1: a tree must be a list of heads, 0 for the root, all of them numbers"),
        ([[0, 1]] * 3, "sentence 1: a tree must be a list of heads"),
        ([0, 4, 1], "sentence 1, word 2: heads are 0 .the root. to 3, not 4"),
        ([-1, 1, 1], "sentence 1, word 1: heads are 0"),
        ([0, 1, 0], "sentence 1, word 3: the root has a child already, word 1"),
        ([0, 3, 2], "sentence 1, word 2: its head 3 is a descendant of it, or leads to a cycle"),
        ([0, 2, 1], "sentence 1, word 2: its head 2 is a descendant of it"),
        ([3, 0, 2], "sentence 1, word 2: its arc from 0 crosses that from 3 to word 1; take NonProjectiveTree"),
        ([0, 1, 2], "sentence 1, word 3: the arc from 2 is no candidate; add it to the arcs"),
    ],
)
def test_wrong_trees_are_named(tree, message):
    every = Arcs.all([1, 3])
    kept = (every.sentence == 0) | (every.head != 2) | (every.dependent != 3)
    arcs = Arcs(every.lengths, [0, 1, 9], every.head[kept], every.dependent[kept])
    with pytest.raises(ValueError, match=message):
        ProjectiveTree(arcs).pack([[0], tree])


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([0, 1], "sentence 0: a tree must be a list of pairs .head, label."),
        ([(0, 3), (1, 0)], "sentence 0, word 1: labels are 0 to 2, not 3"),
        ([(0, 0), (1, 1)], "sentence 0, word 2: label 1 is no candidate of its arc"),
    ],
)
def test_wrong_labels_are_named(tree, message):
    arcs = Arcs.of([2], [[(0, 1), (1, 2)]], 3, [[[0], [0, 2]]])
    assert ProjectiveTree(arcs).parts_of([(0, 0), (1, 2)], 0).tolist() == [0, 1, 2, 4]
    with pytest.raises(ValueError, match=message):
        ProjectiveTree(arcs).pack([tree])


def test_sentences_without_a_tree_are_named():
    arcs = Arcs.of([1, 3], [[(0, 1)], [(0, 2), (2, 1), (0, 3)]])
    assert ProjectiveTree(arcs, single_root=False).log_size().tolist() == [0.0, 0.0]
    structure = ProjectiveTree(arcs)
    with pytest.raises(ValueError, match=r"sentence 1 has no tree: .*single_root=False"):
        structure.log_size()
    values, packed = structure.hard((np.zeros(4),))
    assert values.tolist() == [0.0, -np.inf]
    with pytest.raises(ValueError, match="sentence 1 has no tree"):
        structure.unpack(packed)


def test_selections_are_compiled_too():
    structure = tiny(2)
    structure.log_size()
    part, _ = structure.select(np.array([3, 1]))
    assert type(part) is ProjectiveTree
    np.testing.assert_array_equal(part.log_size(), structure.log_size()[[3, 1]])
