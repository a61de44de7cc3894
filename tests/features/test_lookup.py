"""Attributes of new tokens are found as training has numbered them."""

import pickle
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.features import AttributeVectorizer

NAMES = st.sampled_from(["a", "b", "a:b", "b:", ":", "", "-1:a"])
TEXTS = st.sampled_from(["x", "y", "b", "", ":", "x:y", "b:x"])
NUMBERS = st.sampled_from([0, 1, 2, -1.5, 0.0, 1.0, np.float32(0.5), np.int64(1), np.bool_(True)])
VALUES = st.one_of(TEXTS, NUMBERS, st.booleans(), st.none())
DICTS = st.lists(st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=3), min_size=1, max_size=4)
LISTS = st.lists(st.lists(st.lists(NAMES, max_size=4), min_size=1, max_size=3), min_size=1, max_size=4)
COLLECTIONS = st.one_of(st.lists(NAMES, max_size=3), st.sets(NAMES, max_size=3))
NESTED = st.dictionaries(
    NAMES,
    st.recursive(st.one_of(VALUES, COLLECTIONS), lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=5),
    max_size=4,
)
OPENED = st.lists(st.lists(NESTED, min_size=1, max_size=3), min_size=1, max_size=4)


class Token(dict):
    """Not a plain dict, so it is read token by token."""


def by_definition(vectorizer, sequences):
    """The matrix of tokens, one attribute after another."""
    rows = []
    for token in (token for sequence in sequences for token in sequence):
        row = np.zeros(len(vectorizer.vocabulary))
        for name, value in token.items() if isinstance(token, dict) else ((name, True) for name in token):
            text = isinstance(value, str)
            joined = name if vectorizer.separator is None else f"{name}{vectorizer.separator}{value}"
            key = name if not text else (name, value) if vectorizer.separator is None else joined
            if key in vectorizer.vocabulary:
                row[vectorizer.vocabulary[key]] += 1.0 if text else float(value or 0.0)
        rows.append(row)
    return np.array(rows)


@given(st.one_of(DICTS, LISTS), st.one_of(DICTS, LISTS), st.sampled_from([None, ":"]))
def test_columns_are_those_of_the_vocabulary(known, new, separator):
    vectorizer = AttributeVectorizer(separator)
    vectorizer.fit_transform(known)
    expected = by_definition(vectorizer, new)
    for _ in range(2):  # names are learnt by the first call
        found = vectorizer.transform(new)
        assert found.has_canonical_format
        np.testing.assert_array_equal(found.toarray(), expected)


@given(DICTS, DICTS, st.sampled_from([None, ":"]))
def test_both_ways_of_reading_agree(known, new, separator):
    vectorizer = AttributeVectorizer(separator)
    vectorizer.fit_transform(known)
    slow = vectorizer.transform([[Token(token) for token in sequence] for sequence in new])
    np.testing.assert_array_equal(vectorizer.transform(new).toarray(), slow.toarray())


@given(OPENED, OPENED)
def test_collections_inside_of_dicts(known, new):
    """Everything is read twice: once names have been learnt, and once before."""
    vectorizer = AttributeVectorizer(":")
    vectorizer.fit_transform(known)
    slow = vectorizer.transform([[Token(token) for token in sequence] for sequence in new])
    for _ in range(2):
        assert vectorizer.find([token for sequence in new for token in sequence]) is not None  # not by the slow way
        np.testing.assert_array_equal(vectorizer.transform(new).toarray(), slow.toarray())


@given(LISTS, LISTS, st.sampled_from([tuple, set, frozenset]), st.sampled_from([None, ":"]))
def test_collections_of_texts(known, new, kind, separator):
    vectorizer = AttributeVectorizer(separator)
    vectorizer.fit_transform(known)
    others = [[kind(token) for token in sequence] for sequence in new]
    assert vectorizer.find([token for sequence in others for token in sequence]) is not None
    expected = by_definition(vectorizer, others)
    np.testing.assert_array_equal(vectorizer.transform(others).toarray(), expected)


def test_many_names_that_have_no_attributes():
    """They are remembered up to a limit, and what is forgotten is looked up again."""
    vectorizer = AttributeVectorizer(":")
    vectorizer.fit_transform([[{"a": "x", "in": {"b": "y"}}]])
    strangers = {f"n{k}": str(k) for k in range(12_000)}
    for token in (strangers | {"a": "x"}, {"in": strangers | {"b": "y"}, "a": "x"}, {k: {"b": "y"} for k in strangers}):
        for _ in range(2):
            expected = [[float("a" in token), float("in" in token)]]
            assert vectorizer.transform([[token]]).toarray().tolist() == expected


@pytest.mark.parametrize("separator", [None, ":"])
@pytest.mark.parametrize(
    ("token", "kind", "message"),
    [
        ({"a": float("nan")}, ValueError, "sequence 1, position 0: attribute 'a' has the value nan"),
        ({"a": float("inf")}, ValueError, "sequence 1, position 0: attribute 'a' has the value inf"),
        ({3: "x"}, TypeError, "sequence 1, position 0: a token must be a dict with string keys"),
        ({"a": 1j}, TypeError, "sequence 1, position 0: attribute 'a' must be a string, a number or a bool"),
        (["a", 3], TypeError, "sequence 1, position 0: a token must be"),
        (["a", ["b"]], TypeError, "sequence 1, position 0: a token must be"),
        ({"a": {3: "x"}}, TypeError, "sequence 1, position 0: "),
        ({"a": [1]}, TypeError, "sequence 1, position 0: "),
        ({"a": {"b": {1}}}, TypeError, "sequence 1, position 0: "),
        ({"a": {"b": {"c": 1j}}}, TypeError, "sequence 1, position 0: "),
        ({"a": {"b": float("nan")}}, (TypeError, ValueError), "sequence 1, position 0: "),
    ],
)
def test_mistakes_in_new_tokens_are_named(separator, token, kind, message):
    vectorizer = AttributeVectorizer(separator)
    vectorizer.fit_transform([[{"a": "x", "b": 1.0}]])
    with pytest.raises(kind, match=message):
        vectorizer.transform([[{"a": "x"}], [token]])


def test_tables_follow_the_vocabulary_and_stay_out_of_pickles():
    vectorizer = AttributeVectorizer(":")
    vectorizer.fit_transform([[{"a": "x"}]])
    small = len(pickle.dumps(vectorizer))
    assert vectorizer.transform([[{"a": "x"}]]).toarray().tolist() == [[1.0]]
    assert len(pickle.dumps(vectorizer)) == small
    vectorizer.fit_transform([[{"b": "x"}, {"a": "x"}]])
    assert vectorizer.transform([[{"a": "x"}, {"b": "x"}]]).toarray().tolist() == [[0.0, 1.0], [1.0, 0.0]]
    again = pickle.loads(pickle.dumps(vectorizer))
    assert again.transform([[{"a": "x"}]]).toarray().tolist() == [[0.0, 1.0]]


def test_numbers_that_equal_one_are_one():
    vectorizer = AttributeVectorizer()
    vectorizer.fit_transform([[{"size": 2.5}]])
    assert vectorizer.transform([[{"size": Decimal(1)}, {"size": 1}, {"size": True}]]).toarray().tolist() == [[1.0]] * 3
