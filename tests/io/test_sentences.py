import numpy as np
import pytest

from m3n.io import Sentences

TOKENS = [[("The", "DT"), ("dog", "NN")], [], [("the", "DT"), ("Dog", "NN"), ("runs", "VB")], [("Run", "VB")]]


def test_lists_and_back():
    sentences = Sentences.of(TOKENS)
    assert sentences.tokens == list(sentences) == TOKENS
    assert (len(sentences), sentences.lengths.tolist()) == (4, [2, 0, 3, 1])
    assert sentences[2] == TOKENS[2]
    assert sentences.columns[1].values == ["DT", "NN", "VB"]
    assert sentences.columns[1].codes.tolist() == [0, 1, 0, 1, 2, 2]
    assert Sentences.of(sentences) is sentences
    assert Sentences.of([[["a", "b"]]]).tokens == [[("a", "b")]]


@pytest.mark.parametrize("which", [slice(1, 3), slice(None, None, -1), slice(3), slice(9, 12), slice(0, None, 2)])
def test_slices_are_sentences(which):
    assert Sentences.of(TOKENS)[which].tokens == TOKENS[which]


def test_slices_keep_labels():
    sentences = Sentences.of(TOKENS)
    labelled = Sentences(sentences.columns, sentences.offsets, sentences.columns[1])
    assert labelled[2:].labels == [["DT", "NN", "VB"], ["VB"]]
    assert labelled.with_column(str.lower).labels == labelled.labels


def test_a_function_is_called_once_per_distinct_value():
    seen = []
    wider = Sentences.of(TOKENS).with_column(lambda word: seen.append(word) or word.lower())
    assert sorted(seen) == ["Dog", "Run", "The", "dog", "runs", "the"]
    assert wider.tokens[2] == [("the", "DT", "the"), ("Dog", "NN", "dog"), ("runs", "VB", "runs")]
    assert len(wider.columns[2].values) == 4
    assert wider.with_column(str.lower, column=1)[3] == [("Run", "VB", "run", "vb")]


@pytest.mark.parametrize(
    ("token", "error", "message"),
    [
        ("word", TypeError, "sequence 1, position 1: a token must be a tuple of strings, one per column, got 'word'"),
        (("a", 3), TypeError, "sequence 1, position 1: a token must be a tuple of strings"),
        ({"a": "b"}, TypeError, "sequence 1, position 1: a token must be a tuple of strings"),
        (("a",), ValueError, "sequence 1, position 1: expected 2 columns as in the tokens before, found 1"),
        ((), ValueError, "sequence 1, position 1: expected 2 columns as in the tokens before, found 0"),
    ],
)
def test_bad_tokens_are_named(token, error, message):
    with pytest.raises(error, match=message):
        Sentences.of([[("a", "b")], [("a", "b"), token]])


def test_a_subclass_of_str_is_a_string():
    """NumPy's strings, for instance."""
    assert Sentences.of([[(np.str_("a"), "b")]]).tokens == [[("a", "b")]]
