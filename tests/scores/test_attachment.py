import pytest

from m3n.scores import attachment_scores

GOLD = [[(2, "nsubj:pass"), (0, "root"), (2, "punct")], [(0, "root")]]
FOUND = [[(2, "nsubj"), (0, "root"), (1, "punct")], [(0, "root")]]


def test_heads_and_labels():
    found = attachment_scores(GOLD, FOUND)
    assert (found.words, found.sentences) == (4, 2)
    assert (found.uas, found.las, found.label_accuracy) == (3 / 4, 2 / 4, 3 / 4)
    assert (found.exact, found.exact_labelled) == (1 / 2, 1 / 2)


def test_without_punctuation_and_subtypes():
    tags = [["NOUN", "VERB", "PUNCT"], ["INTJ"]]
    assert attachment_scores(GOLD, FOUND, tags).words == 3
    assert attachment_scores(GOLD, FOUND, tags).uas == 1.0
    assert attachment_scores(GOLD, FOUND, tags).las == 2 / 3
    assert attachment_scores(GOLD, FOUND, tags, subtypes=False).las == 1.0
    assert attachment_scores(GOLD, FOUND, tags).exact == 1.0
    assert attachment_scores(GOLD, FOUND, tags).exact_labelled == 1 / 2


def test_heads_alone():
    found = attachment_scores([[2, 0], [0]], [[2, 0], [0]])
    assert (found.uas, found.las) == (1.0, 1.0)
    assert attachment_scores([[2, 0]], [[0, 1]]).uas == 0.0


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="2 right trees, but 1 predicted"):
        attachment_scores(GOLD, FOUND[:1])
    with pytest.raises(ValueError, match="sentence 1 has 1 words, but its predicted tree has 2"):
        attachment_scores([[0], [0]], [[0], [2, 0]])
