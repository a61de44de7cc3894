"""Which labels arcs may have, against a dict of what has been seen."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from m3n.estimators.arc_labels import ArcLabels
from m3n.features.words import WordTable
from m3n.structures import Arcs

TAGS = [f"T{k}" for k in range(8)]


def words_of(tags):
    return WordTable.of([[{"form": "x", "upos": tag} for tag in sentence] for sentence in tags])


def chain(length):
    """Every word is below the next one, the last one below the root."""
    return Arcs.of([length], [[(d + 1 if d < length else 0, d) for d in range(1, length + 1)]])


def kind_of(tags, h, d):
    return "<root>" if h == 0 else tags[h - 1], tags[d - 1], h < d


def allowed(arcs):
    """The labels of every arc."""
    return [set(own.tolist()) for own in np.split(arcs.part_label, arcs.part_first[1:-1])]


@pytest.fixture
def seen(random):
    """Sentences with right arcs and their labels."""
    tags = [random.choice(TAGS, size=length).tolist() for length in (9, 1, 14, 30)]
    heads = [[(d + 1) % (len(own) + 1) if d % 2 else max(d - 3, 0) for d in range(1, len(own) + 1)] for own in tags]
    words = words_of(tags)
    pairs = [[(h, d) for d, h in enumerate(own, start=1)] for own in heads]
    return tags, words, Arcs.of(words.lengths, pairs), random.integers(0, 5, size=words.lengths.sum())


def test_labels_that_were_seen_between_these_tags_in_this_direction(seen):
    tags, words, right, labels = seen
    lists, known = ArcLabels.learn(words, right, labels, 5), defaultdict(set)
    for i, h, d, label in zip(right.sentence, right.head, right.dependent, labels.tolist(), strict=True):
        known[kind_of(tags[i], h, d)].add(label)
    for arcs in (right, Arcs.all(words.lengths)):
        found = lists.allow(words, arcs)
        expected = [
            known.get(kind_of(tags[i], h, d), set(range(5)))
            for i, h, d in zip(arcs.sentence, arcs.head, arcs.dependent, strict=True)
        ]
        assert allowed(found) == expected
        assert found.labels == 5
        np.testing.assert_array_equal(found.head, arcs.head)
    assert len(lists.keys) == len(known)
    assert any(len(own) == 5 for own in expected) and any(len(own) == 1 for own in expected)  # the test of the test


def test_direction_tells_arcs_apart():
    """For every pair of tags: the label of an arc to the left is not that of one to the right."""
    for tag in TAGS:
        words = words_of([["NOUN", tag, "NOUN"]])
        right = Arcs.of([3], [[(2, 1), (0, 2), (2, 3)]])
        found = ArcLabels.learn(words, right, np.array([0, 1, 2]), 3).allow(words, right)
        assert allowed(found) == [{0}, {1}, {2}]


def test_rare_labels_are_left_out():
    tags, labels = [["A"] * 4004], np.zeros(4004, np.int64)
    labels[:3], labels[10:15], labels[-1] = 1, 2, 3  # 3 and 5 of 4003 arcs of a kind, and the one from the root
    words, arcs = words_of(tags), chain(4004)
    found = allowed(ArcLabels.learn(words, arcs, labels, 4).allow(words, arcs))
    assert Counter(map(tuple, found)) == {(0, 2): 4003, (3,): 1}


def test_sentences_count_as_often_as_they_should():
    tags = [["A"] * 1500, ["A", "A"]]
    words, right = words_of(tags), Arcs.of([1500, 2], [[(d - 1, d) for d in range(1, n + 1)] for n in (1500, 2)])
    labels = np.array([0] * 1500 + [0, 1])
    once = ArcLabels.learn(words, right, labels, 2)
    often = ArcLabels.learn(words, right, labels, 2, np.array([1.0, 2.0]))
    assert allowed(once.allow(words, right))[-1] == {0}
    assert allowed(often.allow(words, right))[-1] == {0, 1}


def test_where_all_labels_are_rare_any_is_allowed():
    words, arcs = words_of([["A"] * 1500]), chain(1500)
    found = ArcLabels.learn(words, arcs, np.arange(1500), 1500).allow(words, arcs)
    assert [len(own) for own in allowed(found)] == [1500] * 1499 + [1]


def test_right_labels_may_be_added(seen):
    _, words, right, labels = seen
    arcs = Arcs.all(words.lengths)
    lists = ArcLabels.learn(words, right, labels, 5)
    before, extra = allowed(lists.allow(words, arcs)), (np.array([0, 7, 40]), np.array([4, 0, 3]))
    for arc, label in zip(*extra, strict=True):
        before[arc] = before[arc] | {label}
    assert allowed(lists.allow(words, arcs, extra)) == before
