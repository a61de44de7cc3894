"""Scores against scikit-learn, seqeval and counting by hand."""

import json
import time
import warnings
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import accuracy_score, f1_score, sequence_labeling, v1
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, IOE2
from sklearn import metrics
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from m3n.io import read_columns
from m3n.io.schemes import chunks
from m3n.scores import chunk_scores, confusion, set_scores, token_scores


def pairs(prefixes):
    """Gold and predicted labels of the same lengths, some sequences empty, some equal."""
    labels = st.sampled_from(["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in ("X", "Y"))])
    token = st.one_of(labels.map(lambda label: (label, label)), st.tuples(labels, labels))
    full = st.lists(token, min_size=1, max_size=7)
    return st.tuples(full, st.lists(st.lists(token, max_size=7), max_size=3)).map(
        lambda drawn: tuple([[pair[k] for pair in sequence] for sequence in [drawn[0], *drawn[1]]] for k in (0, 1))
    )


@given(pairs("BI"))
def test_token_scores(drawn):
    gold, predicted = drawn
    scores = token_scores(gold, predicted)
    flat = [list(chain.from_iterable(labels)) for labels in (gold, predicted)]
    labels = sorted({*flat[0], *flat[1]})
    expected = precision_recall_fscore_support(*flat, labels=labels, zero_division=0)
    assert [row.label for row in scores.rows] == labels
    for row, *numbers in zip(scores.rows, *expected, strict=True):
        assert (row.precision, row.recall, row.f1, row.support) == pytest.approx(tuple(numbers))
        assert row.predicted == flat[1].count(row.label)
    right = [a == b for a, b in zip(*flat, strict=True)]
    assert scores.accuracy == scores.precision == scores.recall == scores.f1 == pytest.approx(np.mean(right))
    assert scores.macro_f1 == pytest.approx(np.mean(expected[2]))
    assert scores.sequence_accuracy == pytest.approx(np.mean([a == b for a, b in zip(gold, predicted, strict=True)]))
    matrix, classes = confusion(gold, predicted)
    assert classes == labels
    expected = confusion_matrix(*flat, labels=[*labels, "none"])  # it warns of a single label
    np.testing.assert_array_equal(matrix, expected[:-1, :-1])


SETTINGS = {
    "conll": ("BIES", sequence_labeling, {}),
    "iob1": ("BI", v1, {"scheme": IOB1}),  # v1 is what mode="strict" calls
    "iob2": ("BI", v1, {"scheme": IOB2}),
    "ioe2": ("IE", v1, {"scheme": IOE2}),
    "bioes": ("BIES", v1, {"scheme": IOBES}),
    "bilou": ("BILU", v1, {"scheme": BILOU}),
}


@pytest.mark.parametrize("scheme", SETTINGS)
@given(data=st.data())
def test_chunk_scores_are_those_of_seqeval(scheme, data):
    prefixes, module, settings = SETTINGS[scheme]
    gold, predicted = data.draw(pairs(prefixes))
    scores = chunk_scores(gold, predicted, scheme)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of kinds that are never predicted
        score = module.precision_recall_fscore_support
        rows = zip(*score(gold, predicted, average=None, **settings), strict=True)
        total = score(gold, predicted, average="micro", **settings)
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx(total[:3])
    assert [(r.precision, r.recall, r.f1, r.support) for r in scores.rows] == [pytest.approx(row) for row in rows]
    assert scores.accuracy == pytest.approx(accuracy_score(gold, predicted))
    said = [chunk.kind for labels in predicted for chunk in chunks(labels, scheme)]
    assert [row.predicted for row in scores.rows] == [said.count(row.label) for row in scores.rows]


def test_numbers_as_labels():
    scores = token_scores([np.array([10, 9]), [2]], [np.array([10, 10]), [2]])
    assert [row.label for row in scores.rows] == [2, 9, 10]
    assert [type(row.label) for row in scores.rows] == [int] * 3
    matrix, classes = confusion([[10, 9], [2]], [[10, 10], [2]], classes=np.array([10, 9, 5, 2]))
    assert (classes, matrix.tolist()) == ([10, 9, 5, 2], [[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]])


def test_no_chunks_at_all():
    scores = chunk_scores([["O", "O"]], [["O", "O"]])
    assert (scores.precision, scores.f1, scores.macro_f1, scores.rows) == (0.0, 0.0, 0.0, ())
    assert (scores.accuracy, scores.sequence_accuracy) == (1.0, 1.0)
    assert str(scores).splitlines()[1].split() == ["all", "0.00", "0.00", "0.00", "0", "0"]


def test_as_dict_and_table():
    scores = chunk_scores([["B-long kind", "O"], ["B-X"]], [["B-long kind", "O"], ["O"]])
    content = json.loads(json.dumps(scores.as_dict()))
    assert content["recall"] == 0.5
    assert content["rows"][1] == {
        "label": "long kind", "precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1, "predicted": 1
    }  # fmt: skip
    assert set(content) == {"accuracy", "precision", "recall", "f1", "macro_f1", "sequence_accuracy", "rows"}
    lines = str(scores).splitlines()
    assert len({len(line) for line in lines[:-1]}) == 1
    assert lines[3].split() == ["all", "100.00", "50.00", "66.67", "2", "1"]
    assert lines[4] == "right: tokens 66.67%, sequences 50.00%; mean F1 of the rows 50.00"


@pytest.mark.parametrize("score", [token_scores, chunk_scores, confusion])
def test_mistakes_are_named(score):
    with pytest.raises(ValueError, match=r"sequence 1 \(counted from 0\) has 2 gold labels but 1 predicted ones"):
        score([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="there are 2 gold sequences but 1 predicted ones"):
        score([["O"], ["O"]], [["O"]])
    for empty in ([], [[]]):
        with pytest.raises(ValueError, match="there is no label to score"):
            score(empty, empty)
    with pytest.raises(ValueError, match="labels must be all strings or all numbers; found both"):
        score([["O"]], [[1]])


def test_classes_and_schemes_are_checked():
    with pytest.raises(ValueError, match="the label 'B' occurs but is not among the classes; add it"):
        confusion([["A"]], [["B"]], classes=["A"])
    with pytest.raises(ValueError, match="classes must not name a label twice"):
        confusion([["A"]], [["A"]], classes=["A", "A"])
    with pytest.raises(ValueError, match="'NN' is no label of the scheme conll"):
        chunk_scores([["NN"]], [["O"]])
    with pytest.raises(ValueError, match="1 is no label of the scheme conll"):
        chunk_scores([[1]], [[1]])
    with pytest.raises(ValueError, match="unknown scheme 'iob'"):
        chunk_scores([["O"]], [["O"]], scheme="iob")


def test_the_real_files(data_folder):
    gold = read_columns(data_folder / "conll2000" / "test.txt.gz").labels
    random = np.random.default_rng(0)
    predicted = [
        [label if keep else "O" for label, keep in zip(s, random.random(len(s)) < 0.9, strict=True)] for s in gold
    ]
    begin = time.process_time()
    scores = chunk_scores(gold, predicted)
    assert time.process_time() - begin < 0.5  # about 0.02 s
    assert sum(row.support for row in scores.rows) == 23_852  # as conlleval says of this file
    assert scores.f1 == pytest.approx(f1_score(gold, predicted))
    entities = read_columns(data_folder / "conll2003" / "eng.testa.gz").labels
    perfect = chunk_scores(entities, entities, scheme="iob1")
    assert {row.label: row.support for row in perfect.rows} == {"LOC": 1837, "MISC": 922, "ORG": 1341, "PER": 1842}
    assert (perfect.f1, perfect.macro_f1, perfect.sequence_accuracy) == (1.0, 1.0, 1.0)


@given(st.integers(1, 6), st.integers(2, 4), st.randoms())
def test_sets_of_labels(count, width, draws):
    gold, found = (
        np.array([[draws.random() < 0.5 for _ in range(width)] for _ in range(count)], dtype=int) for _ in "gf"
    )
    names = [f"label{k}" for k in range(width)]
    sets = [[{names[k] for k in np.flatnonzero(row)} for row in rows] for rows in (gold, found)]
    scores = set_scores(*sets, classes=names)
    assert scores.accuracy == pytest.approx(1 - metrics.hamming_loss(gold, found))
    assert scores.sequence_accuracy == pytest.approx((gold == found).all(axis=1).mean())
    for average, value in (("micro", scores.f1), ("macro", scores.macro_f1)):
        assert value == pytest.approx(metrics.f1_score(gold, found, average=average, zero_division=0))
    assert [row.support for row in scores.rows] == gold.sum(axis=0).tolist()


def test_mistakes_in_sets():
    with pytest.raises(ValueError, match="there are 1 gold sets but 2 predicted ones"):
        set_scores([{"a"}], [{"a"}, set()])
    with pytest.raises(ValueError, match="the label 'b' occurs but is not among the classes"):
        set_scores([{"a"}], [{"b"}], classes=["a"])
    with pytest.raises(ValueError, match="there is no label to score"):
        set_scores([set()], [set()])
