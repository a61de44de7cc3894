"""Fitting from iterators: the same model as from lists, and nothing of the corpus stays in memory."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest
import scipy.sparse

from m3n import SegmentTagger, SequenceTagger
from m3n.compat.sklearn_crfsuite import CRF
from m3n.estimators import sequences
from m3n.estimators.inputs import SequenceReader
from m3n.features import word_templates
from m3n.io import Sentences, unzip
from m3n.io import sentences as columns

WORDS = ["a", "the", "dog", "cat", "barks", "runs"]


def corpus(random, n=60, most=7):
    """Sentences of dicts with labels that the words tell; some are empty."""
    lengths = [0 if i % 11 == 5 else 1 + int(random.integers(most)) for i in range(n)]
    numbers = [random.integers(len(WORDS), size=length) for length in lengths]
    X = [[{"w": WORDS[k], "long": bool(k > 2), "size": float(k)} for k in row] for row in numbers]
    return X, [["DNV"[k // 2] for k in row] for row in numbers]


def once(items):
    """An iterator, and not even of the same objects."""
    for item in items:
        yield pickle.loads(pickle.dumps(item))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(sequences, "MOST_POSITIONS", 20)
    monkeypatch.setattr(columns, "BLOCK", 4)


def same(one, other):
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.certificate_ == other.certificate_
    for name in ("coef_", "transitions_", "start_", "end_"):
        a, b = (getattr(model, name) for model in (one, other))
        a, b = (m.toarray() if scipy.sparse.issparse(m) else m for m in (a, b))
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("settings", [{}, {"observed_only": True, "objective": "crf"}, {"min_freq": 5}])
@pytest.mark.parametrize("which", ["both", "X", "y"])
def test_attributes(random, settings, which):
    X, y = corpus(random)
    expected = SequenceTagger(**settings).fit(X, y)
    found = SequenceTagger(**settings).fit(X if which == "y" else once(X), y if which == "X" else once(y))
    same(found, expected)
    assert found.reader_.vectorizer.vocabulary == expected.reader_.vectorizer.vocabulary
    assert found.predict(X) == expected.predict(X)


def test_lists_of_strings_and_a_mixture_of_tokens(random):
    X, y = corpus(random)
    lists = [[[f"w={token['w']}"] for token in x] for x in X]
    same(SequenceTagger().fit(once(lists), once(y)), SequenceTagger().fit(lists, y))
    mixed = [[tuple(token) for token in x] if i % 3 else [set(token) for token in x] for i, x in enumerate(lists)]
    same(SequenceTagger().fit(once(mixed), once(y)), SequenceTagger().fit(mixed, y))


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_matrices(random, form):
    X, y = corpus(random)
    rows = [form(random.normal(size=(len(x), 3))) for x in X]
    same(SequenceTagger(tol=0.1).fit(iter(rows), iter(y)), SequenceTagger(tol=0.1).fit(rows, y))
    with pytest.raises(ValueError, match="min_freq is for attributes"):
        SequenceTagger(min_freq=2).fit(iter(rows), iter(y))


def test_columns(random):
    X, y = corpus(random)
    words = [[(token["w"], str(token["long"])) for token in x] for x in X]
    expected = SequenceTagger(templates=word_templates(2)).fit(words, y)
    same(SequenceTagger(templates=word_templates(2)).fit(once(words), once(y)), expected)
    a, b = Sentences.of(words), Sentences.of(once(words))
    assert [column.values for column in a.columns] == [column.values for column in b.columns]
    assert a.tokens == b.tokens


def test_words_alone(random):
    X, y = corpus(random)
    words = [[token["w"] for token in x] for x in X]
    expected = SequenceTagger(templates=word_templates(1)).fit(words, y)
    same(SequenceTagger(templates=word_templates(1)).fit(once(words), once(y)), expected)


def test_labels_are_numbers(random):
    X, y = corpus(random)
    numbers = [np.array(["DNV".index(label) for label in labels]) for labels in y]
    same(SequenceTagger().fit(once(X), once(numbers)), SequenceTagger().fit(X, numbers))


def test_pairs_are_taken_apart(random):
    X, y = corpus(random)
    same(SequenceTagger().fit(*unzip(once(zip(X, y, strict=True)))), SequenceTagger().fit(X, y))
    with pytest.raises(ValueError, match=r"sequence 1: expected a pair \(x, y\), got 5"):
        SequenceTagger().fit(*unzip([(X[0], y[0]), 5]))


def test_sample_weights_and_a_second_fit(random):
    X, y = corpus(random)
    weights = random.integers(3, size=len(X))
    expected = SequenceTagger(warm_start=True).fit(X, y, weights)
    model = SequenceTagger(warm_start=True).fit(once(X), once(y), weights)
    same(model, expected)
    model.fit(once(X), once(y), weights)
    assert "goes on" in model.reason_ or model.certificate_ == expected.certificate_


def test_segments(random):
    X, _ = corpus(random)
    y = [[(0, len(x), "all")] if x else [] for x in X]
    same_segments = SegmentTagger().fit(X, y)
    found = SegmentTagger().fit(once(X), once(y))
    np.testing.assert_array_equal(found.coef_, same_segments.coef_)


@pytest.mark.parametrize("which", ["both", "X", "y"])
def test_the_stand_in_for_sklearn_crfsuite(random, which):
    X, y = corpus(random)
    expected = CRF(c2=0.5).fit(X, y)
    found = CRF(c2=0.5).fit(X if which == "y" else once(X), y if which == "X" else once(y))
    assert found.state_features_ == expected.state_features_
    assert found.classes_ == expected.classes_
    numbered = [[{b"w": token["w"].encode(), "size": np.float32(token["size"])} for token in x] for x in X]
    again = CRF(c2=0.5).fit(once(numbered), once(y)).state_features_
    assert again == CRF(c2=0.5).fit(numbered, y).state_features_


class Sentence(list):
    """A list that counts how many of its kind are alive."""

    alive = most = made = 0

    def __init__(self, items):
        super().__init__(items)
        cls = type(self)
        cls.alive, cls.made = cls.alive + 1, cls.made + 1
        cls.most = max(cls.most, cls.alive)

    def __del__(self):
        type(self).alive -= 1


def counted(X, y):
    """Pairs made when they are asked for, and the class that counts their sentences."""
    kind = type("Counted", (Sentence,), {"alive": 0, "most": 0, "made": 0})
    return ((kind(dict(token) for token in x), list(labels)) for x, labels in zip(X, y, strict=True)), kind


def many(random):
    X, y = corpus(random, n=400)
    return X, y, [[(token["w"],) for token in x] for x in X]


@pytest.mark.parametrize("how", ["attributes", "columns", "stand-in"])
def test_few_sentences_are_alive_at_a_time(random, how):
    X, y, words = many(random)
    given = words if how == "columns" else X
    pairs, kind = counted(given, y) if how != "columns" else counted_words(words, y)
    model = {
        "attributes": SequenceTagger(tol=0.1), "columns": SequenceTagger(tol=0.1, templates=word_templates(1)),
        "stand-in": CRF(max_iterations=3),
    }[how]  # fmt: skip
    model.fit(*unzip(pairs))
    assert kind.made == len(X)
    assert kind.most <= 24  # of 400: a block, and the one that is being read
    gc.collect()
    assert kind.alive == 0


def counted_words(X, y):
    kind = type("Counted", (Sentence,), {"alive": 0, "most": 0, "made": 0})
    return ((kind(x), list(labels)) for x, labels in zip(X, y, strict=True)), kind


def test_labels_are_read_in_step(random):
    """Neither iterator is asked for what the other has not come to."""
    X, y = corpus(random)
    read = {"X": 0, "y": 0}

    def told(items, name):
        for item in items:
            read[name] += 1
            assert abs(read["X"] - read["y"]) <= 1
            yield item

    SequenceTagger().fit(told(X, "X"), told(y, "y"))
    assert read == {"X": len(X), "y": len(X)}


class TestErrors:
    X = ((("a",), ("b",)), (("a",),), (("b",),))
    y = (("N", "V"), ("N",), ("V",))

    def refused(self, X, y, text, error=ValueError, **settings):
        with pytest.raises(error, match=text):
            SequenceTagger(**settings).fit(X, y)

    def test_lengths(self):
        self.refused(iter(self.X), iter(self.y[:2]), "X has more sequences than y, which ends after 2")
        self.refused(iter(self.X[:2]), iter(self.y), "y has more sequences than X, which ends after 2")
        self.refused(iter(self.X), self.y[:2], "X has 3 sequences but y has 2")
        self.refused(self.X, iter(self.y[:2]), "X has 3 sequences but y has 2")
        wrong = [["N", "V"], ["N", "V"], ["V"]]
        self.refused(iter(self.X), iter(wrong), "sequence 1 has 1 positions in X but 2 labels in y")

    def test_places(self):
        many = [[["a"]]] * 50
        self.refused(iter([*many, [["a"], [5]]]), None, "sequence 50, position 1", TypeError)
        self.refused(iter([*many, [["a"], {"b": np.nan}]]), None, "sequence 50, position 1: attribute 'b'")
        self.refused(iter([*many, 7]), None, "sequence 50: expected a list of positions", TypeError)
        self.refused(iter([*many, [["a"]]]), iter([["N"]] * 50 + [[None]]), "sequence 50, position 0: a label must be")
        self.refused(iter([*many, [["a"]]]), iter([["N"]] * 50 + ["N"]), "sequence 50: y must be a list")
        self.refused(iter(self.X), iter([["N", 1], ["N"], ["V"]]), "all strings or all numbers")

    def test_vectors(self):
        rows = [np.ones((3, 2))] * 10
        self.refused(iter([*rows, np.ones((2, 3))]), None, "sequence 10 has 3 attributes per position, but sequence 0")
        self.refused(iter([*rows, np.full((2, 2), np.nan)]), None, "sequence 10, position 0: NaN")

    def test_columns(self):
        words = [[("a", "D")]] * 9
        templates = word_templates(2)
        self.refused(iter([*words, [("a",)]]), None, "sequence 9, position 0: expected 2 columns", templates=templates)
        self.refused(iter([*words, [("a", 1)]]), None, "sequence 9, position 0", TypeError, templates=templates)

    def test_nothing(self):
        self.refused(iter([]), iter([]), "X is empty")
        self.refused(iter([[], []]), iter([[], []]), "X is empty")
        self.refused(iter(self.X), iter(self.y), "no attribute occurs 9 times", min_freq=9)
        with pytest.raises(ValueError, match="nothing to train on"):
            CRF().fit(iter([]), iter([]))


def test_an_iterator_of_the_reader_itself(random):
    """Blocks do not show: rows, lengths and vocabulary are those of a list."""
    X, _ = corpus(random)
    one, other = SequenceReader(), SequenceReader()
    a, b = one.fit(X), other.fit(iter(X))
    np.testing.assert_array_equal(a.lengths, b.lengths)
    for name in ("data", "indices", "indptr"):
        x, z = getattr(a.matrix, name), getattr(b.matrix, name)
        assert x.dtype == z.dtype
        np.testing.assert_array_equal(x, z)
    assert one.vectorizer.vocabulary == other.vectorizer.vocabulary
