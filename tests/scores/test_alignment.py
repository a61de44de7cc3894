import pytest

from m3n.io import Alignment
from m3n.scores import alignment_scores

GOLD = [
    Alignment(frozenset({(0, 0), (1, 1)}), frozenset({(1, 2), (2, 2)})),
    Alignment(frozenset({(0, 1)})),
    Alignment(frozenset()),
]


def test_by_hand():
    """A: 3 + 1 + 1 links, of which 2 + 1 + 0 are sure or possible, 1 + 1 sure; S: 3, P: 2."""
    found = alignment_scores(GOLD, [[(0, 0), (2, 2), (0, 2)], {(0, 1)}, [(0, 0)]])
    assert (found.pairs, found.predicted, found.sure, found.possible) == (3, 5, 3, 2)
    assert found.precision == pytest.approx(3 / 5)
    assert found.recall == pytest.approx(2 / 3)
    assert found.f1 == pytest.approx(2 * (3 / 5) * (2 / 3) / (3 / 5 + 2 / 3))
    assert found.aer == pytest.approx(1 - (2 + 3) / (5 + 3))
    assert found.exact == pytest.approx(1 / 3)  # the second one


def test_possible_links_are_never_wrong():
    without, with_them = [[(0, 0), (1, 1)], [(0, 1)], []], [[(0, 0), (1, 1), (1, 2), (2, 2)], [(0, 1)], []]
    for predicted in (without, with_them):
        found = alignment_scores(GOLD, predicted)
        assert (found.aer, found.precision, found.recall, found.f1, found.exact) == (0.0, 1.0, 1.0, 1.0, 1.0)


def test_all_links_are_wrong():
    found = alignment_scores(GOLD, [[(3, 3)], [(0, 0)], []])
    assert (found.aer, found.precision, found.recall, found.f1) == (1.0, 0.0, 0.0, 0.0)
    assert found.exact == pytest.approx(1 / 3)


def test_without_any_links():
    nothing = alignment_scores([[], []], [[], []])
    assert (nothing.aer, nothing.precision, nothing.recall, nothing.f1, nothing.exact) == (0.0, 1.0, 1.0, 1.0, 1.0)
    missed = alignment_scores([[(0, 0)]], [[]])
    assert (missed.aer, missed.precision, missed.recall, missed.exact) == (1.0, 1.0, 0.0, 0.0)
    spurious = alignment_scores([[]], [[(0, 0)]])
    assert (spurious.aer, spurious.precision, spurious.recall) == (1.0, 0.0, 1.0)
    assert alignment_scores([], []).aer == 0.0


def test_predictions_may_be_possible_themselves():
    links = Alignment(frozenset({(0, 0)}), frozenset({(1, 1)}))
    assert alignment_scores([[(0, 0), (1, 1)]], [links]).aer == 0.0


def test_as_text_and_numbers():
    found = alignment_scores(GOLD, [[(0, 0)], [(0, 1)], []])
    assert str(found) == (
        "AER 20.00, precision 100.00, recall 66.67, whole pairs 66.67; 2 links, 3 sure and 2 possible ones in 3 pairs"
    )
    assert found.as_dict()["aer"] == found.aer
    with pytest.raises(ValueError, match="3 right alignments, but 1 predicted"):
        alignment_scores(GOLD, [[]])
