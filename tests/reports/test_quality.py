from itertools import chain

import numpy as np
import pytest
from seqeval.metrics import f1_score
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

import m3n
from m3n.reports.quality import MOST, Outcome, chunks, confusions, proven, scores, unseen
from tests.reports.pages import Page


def outcome(gold, predicted, **more):
    return Outcome(gold, predicted, lambda i: ["word"] * len(gold[i]), **more)


def flat(sequences):
    return list(chain.from_iterable(sequences))


def drawn(random, labels, n=30):
    lengths = random.integers(1, 9, size=n)
    return [[[labels[k] for k in random.integers(len(labels), size=m)] for m in lengths] for _ in range(2)]


def test_tiles_and_table_against_scikit_learn(random):
    gold, predicted = drawn(random, "ABC")
    page = Page(scores(outcome(gold, predicted), None))
    both = flat(gold), flat(predicted)
    right = np.mean([a == b for a, b in zip(gold, predicted, strict=True)])
    assert page.texts("strong")[0] == f"{100 * accuracy_score(*both):.1f}\u202f%"
    assert page.texts("strong")[1] == f"{100 * right:.1f}\u202f%"
    expected = precision_recall_fscore_support(*both, labels=list("ABC"))
    for row in page.all("tr")[1:]:
        k = "ABC".index(row["text"][0])
        shown = "".join(f"{100 * part[k]:.1f}\u202f%" for part in expected[:3])
        assert row["text"] == f"{'ABC'[k]}{shown}{expected[3][k]}{both[1].count('ABC'[k])}"
    assert "Chunks" not in "".join(page.texts("h3"))


def test_chunks_are_found_by_their_labels(random):
    gold, predicted = drawn(random, ["O", "B-x", "I-x", "B-y", "I-y"])
    found = chunks(outcome(gold, predicted), None)
    assert found.f1 == pytest.approx(f1_score(gold, predicted))
    page = Page(scores(outcome(gold, predicted), None))
    assert page.texts("h3") == ["Chunks by kind", "Tokens by label"]
    assert page.texts("strong")[0] == f"{100 * found.f1:.1f}\u202f%"
    strict = chunks(outcome(gold, predicted), "iob2")
    assert strict.f1 != found.f1
    assert "rules of iob2" in scores(outcome(gold, predicted), "iob2")


@pytest.mark.parametrize("labels", [["O"], ["A", "O"], ["B-x", "word"], [0, 1]])
def test_other_labels_have_no_chunks(labels):
    assert chunks(outcome([labels], [labels]), None) is None


def test_prefixes_alone_are_chunks_of_one_kind():
    found = chunks(outcome([["B", "I", "O", "B"]], [["B", "O", "O", "B"]]), None)
    assert (found.precision, found.recall) == (0.5, 0.5)


def test_confusion_matrix_against_scikit_learn(random):
    gold, predicted = drawn(random, "ABC")
    page = Page(confusions(outcome(gold, predicted)))
    cells = [td["text"] for td in page.all("td") if "tbody" in td["inside"]]
    expected = confusion_matrix(flat(gold), flat(predicted), labels=list("ABC")).ravel()
    assert cells == [str(n) if n else "·" for n in expected]
    colours = [td["attributes"].get("class", "") for td in page.all("td") if "tbody" in td["inside"]]
    assert all(
        colour.startswith("blue" if k % 4 == 0 else "orange") for k, colour in enumerate(colours) if cells[k] != "·"
    )


def test_rare_labels_are_taken_together(random):
    labels = [f"label {k:03d}" for k in range(200)]
    gold = [[label] * (200 - k) for k, label in enumerate(labels)]
    predicted = [[labels[0], *sequence[1:]] for sequence in gold]
    page = Page(confusions(outcome(gold, predicted)))
    heads = [th["text"] for th in page.all("th") if "thead" in th["inside"]]
    assert heads == [*labels[:MOST], "other"]
    cells = [td for td in page.all("td") if "tbody" in td["inside"]]
    counted = sum(int(td["text"].replace("\u202f", "")) for td in cells if td["text"] != "·")
    assert counted == sum(map(len, gold))
    assert cells[-1]["attributes"].get("class") is None  # right and wrong ones among rare labels are not told apart
    assert "Less frequent labels, 175 in number," in page.texts("p")[0]


def test_one_class_and_a_class_named_other():
    for label in ("A", "other", 7):
        page = Page(confusions(outcome([[label]], [[label]])))
        assert "ess frequent" not in page.texts("p")[0]
        assert Page(scores(outcome([[label]], [[label]]), None)).texts("strong")[0] == "100.0\u202f%"


def test_nothing_to_score():
    assert "no tokens to score" in scores(outcome([], []), None)
    assert "nothing to compare" in confusions(outcome([[]], [[]]))


def test_labels_that_the_model_does_not_know():
    words = unseen(outcome([["A", "Z"], ["Z", "Y"]], [["A", "A"], ["A", "A"]]), ["A"])
    assert words.startswith("The model does not know 2 labels of these data (“Z”, “Y”; 3 tokens)")
    assert unseen(outcome([["A"]], [["A"]]), ["A"]) is None


def test_the_share_of_proven_predictions():
    train, test = m3n.datasets.digit_strings(n_train=20, n_test=5)
    tagger = m3n.SequenceTagger("crf", lam=1.0, tol=1e-6, rtol=0.0).fit(train.inputs, train.labels)
    share = tagger.certify(test.inputs).share
    assert share > 0.5
    assert f"Final: {share:.1%} of" in "".join(Page(proven(tagger, test.inputs)).texts("p"))
    assert proven(object(), test.inputs) is None  # other programmes' models
    assert proven(tagger, []) is None
