"""The toy languages: what their sentences have, and that the links are right."""

from collections import defaultdict

import pytest

from m3n.datasets import PARTICLES, parallel_sentences


@pytest.fixture(scope="module")
def sentences():
    return parallel_sentences(300, 50, seed=3, words=40)


def test_same_seed_same_sentences(sentences):
    assert parallel_sentences(300, 50, seed=3, words=40) == sentences
    assert parallel_sentences(300, 50, seed=4, words=40) != sentences
    assert [len(part.pairs) for part in sentences] == [300, 50]


def test_links_lead_to_words(sentences):
    for part in sentences:
        for (source, target), (sure, possible) in zip(part.pairs, part.alignments, strict=True):
            assert source
            assert target
            assert all(i in range(len(source)) and j in range(len(target)) for i, j in sure | possible)
            assert not sure & possible
            assert {j for _, j in sure | possible} == set(range(len(target)))


def test_everything_that_makes_alignment_hard_occurs(sentences):
    """Names, translations by two words, words without translation, particles, and another order."""
    train, _ = sentences
    found = set()
    for (source, target), (sure, possible) in zip(train.pairs, train.alignments, strict=True):
        for i, word in enumerate(source):
            linked = [j for k, j in sure if k == i]
            found.add(len(linked))
            if word[0].isupper():
                assert [target[j] for j in linked] == [word]
                found.add("name")
        assert all(target[j] in PARTICLES for _, j in possible)
        found |= {"particle"} if possible else set()
        found |= {"order"} if any(a < c and b > d for a, b in sure for c, d in sure) else set()
    assert found == {0, 1, 2, "name", "particle", "order"}


def test_a_word_has_one_translation(sentences):
    """But for a few that are by chance two entries of the dictionary."""
    known = defaultdict(set)
    for part in sentences:
        for (source, target), (sure, _) in zip(part.pairs, part.alignments, strict=True):
            for i, word in enumerate(source):
                words = tuple(target[j] for k, j in sorted(sure) if k == i)
                known[word] |= {words} if words else set()
    assert len(known) > 60
    assert sum(len(translations) > 1 for translations in known.values()) <= 2
