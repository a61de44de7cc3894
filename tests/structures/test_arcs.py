"""Lists of candidate arcs against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.structures import Arcs, ProjectiveTree
from tests.structures.dependencies import random_arcs


@st.composite
def candidates(draw):
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    labels, density = draw(st.integers(1, 3)), draw(st.sampled_from([0.0, 0.5, 1.0]))
    return random_arcs(random, lengths, labels, density, draw(st.booleans()))


def listed(arcs):
    """(sentence, head, dependent) of every arc."""
    return list(zip(arcs.sentence.tolist(), arcs.head.tolist(), arcs.dependent.tolist(), strict=True))


def test_all_arcs():
    arcs = Arcs.all([1, 3], labels=2)
    expected = [(0, 0, 1)] + [(1, h, d) for d in (1, 2, 3) for h in range(4) if h != d]
    assert listed(arcs) == expected
    assert arcs.first.tolist() == [0, 1, 10]
    assert arcs.parts == 20
    assert arcs.part_arc.tolist() == np.repeat(np.arange(10), 2).tolist()
    assert arcs.part_label.tolist() == [0, 1] * 10


@given(candidates())
def test_pairs_of_arcs(arcs):
    triples = listed(arcs)
    siblings, grandchildren = [], []
    for a, (i, h, d) in enumerate(triples):
        same = [(s, b) for b, (j, g, s) in enumerate(triples) if (i, h) == (j, g)]
        inner = [(abs(s - h), b) for s, b in same if h < s < d or d < s < h]
        siblings += [(a, -1), *((a, b) for _, b in sorted(inner))]
        uppers = sorted((g, b) for b, (j, g, s) in enumerate(triples) if i == j and s == h and g != d)
        grandchildren += [(a, b) for _, b in uppers if h != 0]
    assert list(zip(*(x.tolist() for x in arcs.siblings()), strict=True)) == siblings
    assert list(zip(*(x.tolist() for x in arcs.grandchildren()), strict=True)) == grandchildren
    for first, parts in ((arcs.sibling_first, siblings), (arcs.grandchild_first, grandchildren)):
        assert np.diff(first).tolist() == [sum(a == b for b, _ in parts) for a in range(len(triples))]
    for a, (i, h, d) in enumerate(triples):
        into = [g for j, g, s in triples if (j, s) == (i, h)]
        assert arcs.reverse[a] == (into.index(d) if d in into else -1)


@given(candidates(), st.data())
def test_selections(arcs, data):
    chosen = np.array(data.draw(st.lists(st.integers(0, arcs.n - 1), min_size=1, max_size=4)))
    part, triples = arcs.select(chosen), listed(arcs)
    assert part.lengths.tolist() == arcs.lengths[chosen].tolist()
    assert listed(part) == [(k, h, d) for k, i in enumerate(chosen) for j, h, d in triples if i == j]
    labels = [(arcs.sentence[a], label) for a, label in zip(arcs.part_arc, arcs.part_label, strict=True)]
    assert part.part_label.tolist() == [label for i in chosen for j, label in labels if i == j]
    every = arcs.select(slice(None))
    assert listed(every) == triples


def test_labels_of_arcs_are_sorted_with_them():
    arcs = Arcs.of([2], [[(1, 2), (0, 2), (0, 1)]], 3, [[[2, 1], [0], [1]]])
    assert listed(arcs) == [(0, 0, 1), (0, 0, 2), (0, 1, 2)]
    assert arcs.label.tolist() == [1, 0, 1, 2]
    assert arcs.label_first.tolist() == [0, 1, 2, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lengths": []}, "lengths must list the number of words of at least one sentence"),
        ({"lengths": [0]}, "sentence 0 has no words"),
        ({"lengths": [1.5]}, "lengths must be whole numbers"),
        ({"first": [0, 2]}, "first must be 2 ascending numbers from 0 to the number of arcs, 3"),
        ({"head": [0, 0]}, "first must be 2"),
        ({"dependent": [1, 2]}, "3 heads, but 2 dependents"),
        ({"head": [3, 0, 1]}, "sentence 0, word 1: arc from 3: dependents are words 1 to 2, heads these or 0"),
        ({"head": [1, 0, 1]}, "sentence 0, word 1: arc from 1: .*no word is its own head"),
        ({"head": [0, 1, 1]}, "sentence 0, word 2: arc from 1: it is listed twice, or arcs are not sorted"),
        ({"dependent": [1, 2, 1], "head": [0, 0, 2]}, "sentence 0, word 1: arc from 2: .*Arcs.of sorts them"),
        ({"dependent": [1, 1, 1], "head": [0, 2, 3], "lengths": [3]}, "sentence 0, word 2 has no candidate head"),
        ({"labels": 0}, "labels must be at least 1, got 0"),
        ({"label_first": [0, 1, 2, 2], "label": [0, 1]}, "sentence 0, word 2: arc from 1: it has no label"),
        (
            {"label_first": [0, 1, 3, 4], "label": [0, 1, 0, 1]},
            "word 2: arc from 0: its labels must ascend within 0..1",
        ),
        ({"label_first": [0, 1, 2, 3], "label": [0, 1, 2]}, "word 2: arc from 1: its labels must ascend"),
        ({"label_first": [0, 1, 2], "label": [0, 1]}, "label_first must be 4 numbers"),
    ],
)
def test_wrong_arcs_are_named(arguments, message):
    right = {"lengths": [2], "first": [0, 3], "head": [0, 0, 1], "dependent": [1, 2, 2], "labels": 2}
    Arcs(**right)
    with pytest.raises(ValueError, match=message):
        Arcs(**right | arguments)


def test_every_sentence_needs_a_list():
    with pytest.raises(ValueError, match="2 sentences need as many lists of arcs"):
        Arcs.of([1, 1], [[(0, 1)]])
    with pytest.raises(ValueError, match="labels=3, but the arcs have 2; leave labels out"):
        ProjectiveTree(Arcs.all([2], 2), 3)
