import pytest

from m3n.io import ParseTree
from m3n.scores import bracket_scores
from m3n.scores.brackets import brackets

GOLD = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks) (PRT (RP up)) (NP (NP (DT a) (NN tree)))) (. .)))"


def test_brackets_by_hand():
    """Words are the five... six that are no punctuation; TOP is no bracket, PRT is ADVP, NP over NP counts twice."""
    found = brackets(ParseTree.parse(GOLD))
    expected = [("S", 0, 6), ("NP", 0, 2), ("VP", 2, 6), ("ADVP", 3, 4), ("NP", 4, 6), ("NP", 4, 6)]
    assert sorted(found) == sorted(expected)


def test_scores_by_hand():
    other = "(S (NP (DT the) (NN dog)) (VP (VBZ barks) (ADVP (RB up)) (NP (DT a) (NN tree)) (. .)))"
    scores = bracket_scores([GOLD, GOLD], [other, GOLD])
    assert (scores.right, scores.gold, scores.predicted) == (5 + 6, 12, 5 + 6)
    assert scores.precision == 1.0
    assert scores.recall == pytest.approx(11 / 12)
    assert scores.f1 == pytest.approx(22 / 23)
    assert (scores.exact, scores.sentences) == (0.5, 2)
    assert scores.tagging == pytest.approx(13 / 14)
    assert "F1 95.65" in str(scores)


def test_punctuation_may_stand_anywhere():
    one = "(S (`` ``) (NP (NN a)) (, ,) (VP (VB b)) (. .))"
    two = "(S (NP (`` ``) (NN a) (, ,)) (VP (VB b) (. .)))"
    assert bracket_scores([one], [two]).exact == 1.0


def test_gold_says_what_is_punctuation_and_empty_brackets_do_not_count():
    gold = "(S (NP (NN a)) (X (. .)))"
    scores = bracket_scores([gold], ["(S (NP (NN a) (SYM .)))"])
    assert (scores.right, scores.gold, scores.predicted) == (2, 2, 2)


def test_nothing_to_score():
    scores = bracket_scores([], [])
    assert (scores.f1, scores.precision, scores.recall, scores.exact) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        (["(NN a)"], [], "1 gold trees but 0"),
        (["(S (NN a) (NN b))"], ["(S (NN a) (NN c))"], "sentence 0: .* from word 1 on"),
        (["(S (NN a) (NN b))"], ["(S (NN a))"], "sentence 0: .* from word 1 on"),
    ],
)
def test_trees_of_other_words_are_refused(gold, predicted, message):
    with pytest.raises(ValueError, match=message):
        bracket_scores(gold, predicted)
