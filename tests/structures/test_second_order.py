"""Projective trees with scores of siblings and grandchildren against enumeration and against scores of arcs alone."""

import numpy as np
import pytest
from hypothesis import strategies as st

from m3n.losses import PartLoss
from m3n.structures import ProjectiveTree
from tests.structures.agreement import blocks_agree, solvers_find_the_optimum, weights_count_examples
from tests.structures.dependencies import (
    long_sentences,
    parsing_problem,
    random_arcs,
    slack_products_agree,
    trees,
)
from tests.structures.template import StructureTemplate

OPTIONS = [{"siblings": True}, {"grandchildren": True}, {"siblings": True, "grandchildren": True}]


class TestPairsOfArcs(StructureTemplate):
    instances = st.one_of(*(trees(ProjectiveTree, **options) for options in OPTIONS))


def by_hand(structure, theta, heads, labels):
    """The score of a tree of the only sentence, from the definition of its parts."""
    arcs, length = structure.arcs, len(heads)
    number = {(h, d): a for a, (h, d) in enumerate(zip(arcs.head.tolist(), arcs.dependent.tolist(), strict=True))}
    chosen = [number[head, word] for word, head in enumerate(heads, 1)]
    total, rest = sum(theta[0][a] for a in chosen), list(theta[1:])
    if arcs.labels > 1:
        labelled = list(zip(arcs.part_arc.tolist(), arcs.part_label.tolist(), strict=True))
        score = rest.pop(0)
        total += sum(score[labelled.index((a, label))] for a, label in zip(chosen, labels, strict=True))
    if structure.siblings:
        pairs, score = list(zip(*(x.tolist() for x in arcs.siblings()), strict=True)), rest.pop(0)
        for word, head in enumerate(heads, 1):
            between = [
                s for s in range(1, length + 1) if heads[s - 1] == head and min(head, word) < s < max(head, word)
            ]
            inner = number[head, max(between, key=lambda s: abs(s - head))] if between else -1
            total += score[pairs.index((number[head, word], inner))]
    if structure.grandchildren:
        pairs, score = list(zip(*(x.tolist() for x in arcs.grandchildren()), strict=True)), rest.pop(0)
        for word, head in enumerate(heads, 1):
            if head:
                total += score[pairs.index((number[head, word], number[heads[head - 1], head]))]
    return total


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("labels", [1, 2])
def test_scores_by_their_definition(options, labels, random):
    for length in (3, 5):
        structure = ProjectiveTree(random_arcs(random, [length], labels, 0.7, False), single_root=False, **options)
        theta = tuple(random.normal(size=shape) for shape in structure.shapes)
        scores = []
        for y in structure.enumerate(0):
            (output,) = structure.unpack(y)
            heads, marks = zip(*output, strict=True) if labels > 1 else (output, None)
            scores.append(by_hand(structure, theta, list(heads), marks))
            assert structure.score(theta, y)[0] == pytest.approx(scores[-1])
            parts, counts = structure.local_parts(y)
            assert np.array_equal(structure.checked_parts(structure.parts_of(output, 0), 0), parts[0, : counts[0]])
        assert structure.hard(theta)[0][0] == pytest.approx(max(scores))
        value = structure.soft(tuple(array.copy() for array in theta), 0.5)[0][0]
        assert value == pytest.approx(0.5 * np.logaddexp.reduce(np.array(scores) / 0.5))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("single_root", [True, False])
def test_without_scores_of_pairs_it_is_the_first_order(options, single_root, random):
    arcs = random_arcs(random, [1, 17, 2, 30, 9], 3, 0.3)
    first, second = (
        ProjectiveTree(arcs, single_root=single_root),
        ProjectiveTree(arcs, single_root=single_root, **options),
    )
    theta = tuple(random.normal(size=shape) for shape in first.shapes)
    more = (*theta, *(np.zeros(shape) for shape in second.shapes[2:]))
    np.testing.assert_allclose(second.hard(more)[0], first.hard(theta)[0], rtol=1e-13)
    assert second.unpack(second.hard(more)[1]) == first.unpack(first.hard(theta)[1])
    np.testing.assert_allclose(second.log_size(), first.log_size(), rtol=1e-13)
    for mu in (1e-3, 1.0):
        one, two = (s.soft(tuple(a.copy() for a in t), mu) for s, t in ((first, theta), (second, more)))
        np.testing.assert_allclose(two[0], one[0], rtol=1e-12)
        for a, b in zip(one[1], two[1], strict=False):
            np.testing.assert_allclose(a, b, atol=1e-11)


@pytest.mark.parametrize("options", OPTIONS)
def test_long_sentences(options, random):
    long_sentences(ProjectiveTree(random_arcs(random, [60, 1, 37], 2, 0.1), **options), random)


def test_every_arc_has_one_of_its_pairs(random):
    """Marginals of siblings, and of grandchildren below a word, sum to that of the arc."""
    structure = ProjectiveTree(random_arcs(random, [30, 12], 1, 0.2), siblings=True, grandchildren=True)
    arcs = structure.arcs
    theta = tuple(random.normal(size=shape) for shape in structure.shapes)
    _, (arc, sibling, grandchild) = structure.soft(theta, 0.7)
    np.testing.assert_allclose(np.bincount(arcs.siblings()[0], sibling, len(arc)), arc, atol=1e-12)
    below = arcs.head > 0
    sums = np.bincount(arcs.grandchildren()[0], grandchild, len(arc))
    np.testing.assert_allclose(sums[below], arc[below], atol=1e-12)


def tiny(options, labels=1):
    return ProjectiveTree(random_arcs(np.random.default_rng(2), [1, 3, 2, 4], labels, 0.6), **options)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_solvers_find_the_optimum(temperature):
    solvers_find_the_optimum(parsing_problem(tiny(OPTIONS[2]), temperature=temperature))


def test_slack_rescaling_by_search():
    slack_products_agree(tiny(OPTIONS[2]))


def test_blocks_agree():
    blocks_agree(lambda: parsing_problem(tiny(OPTIONS[0], 2), loss=PartLoss(arrays=[1])))


def test_weights_count_examples():
    weights_count_examples(tiny(OPTIONS[2], 2))


def test_selections_are_compiled_too():
    structure = tiny(OPTIONS[1])
    part, _ = structure.select(np.array([3, 1]))
    assert type(part) is ProjectiveTree
    assert part.grandchildren
    assert not part.siblings
