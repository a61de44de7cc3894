from collections import UserDict, deque

import numpy as np
import pytest
from sklearn.feature_extraction import DictVectorizer

from m3n.features import AttributeVectorizer


def test_dicts_like_scikit_learn():
    tokens = [{"word": "Paris", "capital": True, "length": 5.0}, {"word": "in", "length": 2}, {"word": "Paris"}]
    ours = AttributeVectorizer()
    matrix = ours.fit_transform([tokens])
    theirs = DictVectorizer(sparse=False)
    expected = theirs.fit_transform(tokens)
    columns = [ours.names.index(name) for name in theirs.get_feature_names_out()]
    np.testing.assert_array_equal(matrix.toarray()[:, columns], expected)


def test_strings():
    vectorizer = AttributeVectorizer()
    matrix = vectorizer.fit_transform([[["a", "b"], ["b"]], [["c", "a", "a"]]])
    assert vectorizer.names == ["a", "b", "c"]
    np.testing.assert_array_equal(matrix.toarray(), [[1, 1, 0], [0, 1, 0], [2, 0, 1]])


def test_unseen_attributes_are_ignored():
    vectorizer = AttributeVectorizer()
    vectorizer.fit_transform([[{"w": "a", "x": 2.0}]])
    matrix = vectorizer.transform([[{"w": "b", "x": 3.0, "new": 9.0}, {"w": "a"}], [{"other": "thing"}]])
    np.testing.assert_array_equal(matrix.toarray(), [[0, 3], [1, 0], [0, 0]])
    assert list(vectorizer.vocabulary) == [("w", "a"), "x"]  # transform must not learn


def test_pairs_and_plain_names_do_not_collide():
    vectorizer = AttributeVectorizer()
    matrix = vectorizer.fit_transform([[{"a": "b"}, {"a=b": True}]])
    np.testing.assert_array_equal(matrix.toarray(), np.eye(2))


def test_false_and_none_count_as_nothing():
    matrix = AttributeVectorizer().fit_transform([[{"a": True, "b": False, "c": None, "d": "x"}, {"b": True}]])
    assert matrix.toarray().tolist() == [[1, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    "tokens",
    [
        [["a", "b"], ("b", "a", "a"), []],
        [{"w": "x", "v": "y"}, {}, {"w": "y"}],
        [{"w": "x", "n": 2.0, "yes": True, "no": False}, {"none": None, "empty": "", "n": 0}, {"n": np.float32(3)}],
    ],
)
def test_all_ways_of_reading_agree(tokens):
    """Other collections of the same contents are read token by token; plain ones in sweeps over everything."""
    others = [UserDict(token) if isinstance(token, dict) else deque(token) for token in tokens]
    plain, slow = AttributeVectorizer(), AttributeVectorizer()
    matrix = plain.fit_transform([tokens, tokens[:1]])
    np.testing.assert_array_equal(slow.fit_transform([others, others[:1]]).toarray(), matrix.toarray())
    assert list(plain.vocabulary) == list(slow.vocabulary)
    mixed = [*tokens, *others, ["new"], {"n": "new", "x": 1.0}]
    expected = np.concatenate([matrix.toarray()[: len(tokens)]] * 2 + [np.zeros((2, matrix.shape[1]))])
    np.testing.assert_array_equal(plain.transform([mixed]).toarray(), expected)
    np.testing.assert_array_equal(plain.transform([tokens]).toarray(), expected[: len(tokens)])


def test_strings_of_numpy_are_strings():
    matrix = AttributeVectorizer().fit_transform([[[np.str_("a"), "b"], ["a"]]])
    assert matrix.toarray().tolist() == [[1, 1], [1, 0]]


def test_a_token_without_attributes_is_allowed():
    matrix = AttributeVectorizer().fit_transform([[[], {}, ["a"]]])
    assert matrix.toarray().tolist() == [[0], [0], [1]]


@pytest.mark.parametrize(
    ("token", "error", "message"),
    [
        ({"x": float("nan")}, ValueError, "sequence 1, position 1: attribute 'x' has the value nan"),
        ({"x": np.inf}, ValueError, "attribute 'x' has the value inf"),
        ({"x": [1, 2]}, TypeError, "attribute 'x' must be a string, a number or a bool"),
        ({3: "a"}, TypeError, "string keys"),
        ("word", TypeError, "a token must be a dict"),
        (["a", 3], TypeError, "a token must be a dict"),
        ([("x", "a")], TypeError, "a token must be a dict"),
        (["a", []], TypeError, "a token must be a dict"),
        (7, TypeError, "a token must be a dict"),
    ],
)
@pytest.mark.parametrize("good", [{"x": 1.0}, {"x": "1"}, ["x"]])
def test_errors_name_the_place(token, error, message, good):
    with pytest.raises(error, match=message):
        AttributeVectorizer().fit_transform([[good], [good, token]])
    vectorizer = AttributeVectorizer()
    vectorizer.fit_transform([[good]])
    with pytest.raises(error, match=message):
        vectorizer.transform([[good], [good, token]])


def test_a_separator_names_attributes_as_crfsuite_does():
    pycrfsuite = pytest.importorskip("pycrfsuite")
    tokens = [
        {"w": "a:b", "w:a": "b", "n": 2.5, "yes": True, "deep": {"list": ["x", "y"], "n": {"m": -1}}, "s": {"z"}},
        {"é": "日\t本", "empty": {}, "list": ["x", "x"]},
    ]
    plain = [{"w": "a:b", "w:a": "b"}, {"w": "c"}]  # read in one sweep
    for given in (tokens, plain):
        vectorizer = AttributeVectorizer(":")
        matrix = vectorizer.fit_transform([given]).toarray()
        found = [{vectorizer.names[k]: row[k] for k in np.flatnonzero(row)} for row in matrix]
        expected = [dict(item) for item in pycrfsuite.ItemSequence(given).items()]
        if given is plain:
            expected[0]["w:a:b"] = 2.0  # CRFsuite counts an attribute that comes twice twice; its dict shows it once
        else:
            expected[0]["w:a:b"], expected[1]["list:x"] = 2.0, 2.0
        assert found == expected
        np.testing.assert_array_equal(vectorizer.transform([given]).toarray(), matrix)


def test_a_separator_reads_lists_and_dicts_alike():
    vectorizer = AttributeVectorizer(":")
    vectorizer.fit_transform([[{"w": "a"}, {"w": "b"}]])
    matrix = vectorizer.transform([[["w:b", "unseen"], {"w": "a", "v": "b"}]])
    np.testing.assert_array_equal(matrix.toarray(), [[0, 1], [1, 0]])
    assert vectorizer.names == ["w:a", "w:b"]
    with pytest.raises(TypeError, match="sequence 0, position 0: attribute 'w' must be"):
        AttributeVectorizer().fit_transform([[{"w": ["x"]}]])  # only a separator makes names of nested values
