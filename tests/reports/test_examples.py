from m3n.estimators.forms import OFF, SETS
from m3n.reports.examples import CLOSE_CALLS, LONGEST, MOST, hardest
from m3n.reports.quality import Outcome
from tests.reports.pages import Page, fixed


def shown(gold, predicted, model=None, word="word", **more):
    outcome = Outcome(gold, predicted, lambda i: [f"{word}{t}" for t in range(len(gold[i]))], **more)
    return Page(hardest(outcome, model or fixed(predicted), None))


def test_most_errors_come_first_with_both_labels():
    page = shown([["A", "B"], ["A", "A"], ["B"]], [["A", "A"], ["B", "B"], ["B"]])
    assert page.texts("h4") == ["Sequence 1: 2 of 2 tokens wrong", "Sequence 0: 1 of 2 tokens wrong"]
    assert page.texts("li", "wrong") == ["word0right: A✗ predicted: B", "word1right: A✗ predicted: B",
                                         "word1right: B✗ predicted: A"]  # fmt: skip
    assert "2 of 3 sequences have errors; here are all of them" in page.texts("p")[0]


def test_at_most_twenty():
    page = shown([["A"]] * 50, [["B"]] * 50)
    assert len(page.all("article")) == MOST
    assert "the 20 with most" in page.texts("p")[0]


def test_long_examples_show_what_is_near_an_error():
    gold, predicted = ["A"] * 5000, ["A"] * 5000
    predicted[1000] = predicted[1008] = predicted[3000] = "B"
    page = shown([gold], [predicted])
    words = page.texts("span", "word")
    near = [*range(997, 1012), *range(2997, 3004)]
    assert words == [f"word{t}" for t in near]
    assert page.texts("li", "gap") == ["… 997 more …", "… 1985 more …", "… 1996 more …"]
    everything = shown([["A"] * 5000], [["B"] * 5000])
    assert len(everything.all("li", "wrong")) == LONGEST
    assert everything.texts("li", "gap") == [f"… {5000 - LONGEST} more …"]


def test_words_are_escaped_and_cut():
    page = shown([["<script>alert(1)</script>"]], [["B"]], word="<img src=x onerror=alert(1)>" + "long" * 20)
    assert not page.all("img") and not page.all("script")
    assert len(page.texts("span", "word")[0]) == 40


def test_close_calls_are_the_smallest_margins_of_right_ones():
    answers = [(["A"], 3.0), (["B"], 2.5)], [(["A"], 3.0), (["B"], 2.9)], [(["B"], 3.0), (["A"], 2.95)], [(["A"], 1.0)]
    model = fixed([["A"], ["A"], ["B"], ["A"]], predict_k_best=lambda X, k: answers)
    page = shown([["A"]] * 4, model.answers, model)
    assert page.texts("h4") == ["Sequence 2: 1 of 1 token wrong", "Sequence 1: margin 0.1", "Sequence 0: margin 0.5"]
    assert page.texts("li", "close") == ["word0right: A≈ second best: B"] * 2
    many = fixed([["A"]] * 40, predict_k_best=lambda X, k: [[(["A"], 1.0), (["B"], 0.0)]] * 40)
    everything_right = shown([["A"]] * 40, many.answers, many)
    assert len(everything_right.all("article")) == CLOSE_CALLS
    assert everything_right.texts("p")[0] == "Every sequence is right."


def test_of_sets_only_labels_that_are_on_are_shown():
    page = shown([["x", OFF, OFF]], [["x", "y", OFF]], form=SETS)
    assert page.texts("span", "word") == ["word0", "word1"]
    assert not page.all("li", "gap")
    assert page.texts("h4") == ["Example 0: 1 of 3 labels wrong"]


def test_no_examples_at_all():
    assert shown([], []).texts("p") == ["There are no sequences."]
