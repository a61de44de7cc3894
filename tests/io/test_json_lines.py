import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m3n.io import DataFileError, Sentences, read_json_lines, write_json_lines


def test_reads_sequences(tmp_path):
    (tmp_path / "file").write_text(
        '{"tokens": ["The", "dog"], "labels": ["DT", 3]}\n\n{"id": 5, "labels": [], "tokens": []}\n'
    )
    assert read_json_lines(tmp_path / "file") == ([["The", "dog"], []], [["DT", 3], []])
    (tmp_path / "file").write_text('{"tokens": [["a", "b"], ["c"]]}\n{"tokens": [["d"]], "labels": null}\n')
    assert read_json_lines(tmp_path / "file") == ([[["a", "b"], ["c"]], [["d"]]], None)
    (tmp_path / "file").write_text('{"tokens": [{"a": 1.5, "b": true, "c": "x", "d": null, "e": 2}]}')
    assert read_json_lines(tmp_path / "file") == ([[{"a": 1.5, "b": True, "c": "x", "d": None, "e": 2}]], None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"tokens": ["a"]', r"this is not JSON: .* at column \d+; write one object per line"),
        ("[1]", "expected an object with a list of tokens, such as"),
        ('{"labels": ["X"]}', "expected an object with a list of tokens"),
        ('{"tokens": "abc", "labels": ["X"]}', "expected an object with a list of tokens"),
        ('{"tokens": ["a", 3], "labels": ["X", "Y"]}', "token 1 must be a text, a list of texts or an object, got 3"),
        ('{"tokens": [["a"]], "labels": ["X"]}', "token 0 is of kind list, those before of kind text"),
        ('{"tokens": ["a"]}', "labels are missing here; give all lines labels, or none"),
        ('{"tokens": ["a"], "labels": ["X", "Y"]}', "there are 1 tokens but 2 labels"),
        ('{"tokens": ["a"], "labels": [true]}', r"labels must be a list of texts or whole numbers, got \[True\]"),
        ('{"tokens": ["a"], "labels": "X"}', "labels must be a list of texts or whole numbers, got 'X'"),
    ],
)
def test_malformed_lines_are_named(tmp_path, line, message):
    (tmp_path / "file").write_text(f'{{"tokens": ["a"], "labels": ["X"]}}\n{line}\n')
    with pytest.raises(DataFileError, match=f"file, line 2: {message}"):
        read_json_lines(tmp_path / "file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"tokens": [["a", 1]]}', "line 1: token 0 must be a list of texts"),
        ('{"tokens": [{"a": [1]}]}', "line 1: token 0: the values of attributes must be numbers, texts or true"),
        ('{"tokens": [{"a": NaN}]}', "line 1: NaN is no number of JSON; leave the attribute out"),
        ('{"tokens": ["a"]}\n{"tokens": ["a"], "labels": ["X"]}', "line 2: labels are only here"),
    ],
)
def test_malformed_tokens_are_named(tmp_path, text, message):
    (tmp_path / "file").write_text(text)
    with pytest.raises(DataFileError, match=message):
        read_json_lines(tmp_path / "file")


WORDS = st.text('aü\n"\\\u2028{', max_size=4)
VALUES = st.one_of(WORDS, st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
TOKENS = st.one_of(
    *(st.lists(st.lists(kind, max_size=3), min_size=1, max_size=3)
      for kind in (WORDS, st.lists(WORDS, max_size=2), st.dictionaries(WORDS, VALUES, max_size=2)))
)  # fmt: skip


@settings(max_examples=40)
@given(TOKENS, st.sampled_from(["X", "ü", 3]))
def test_round_trip(tmp_path_factory, X, label):
    path = tmp_path_factory.mktemp("json_lines") / "file.gz"
    y = [[label] * len(tokens) for tokens in X]
    write_json_lines(path, X, y)
    assert read_json_lines(path) == (X, y)
    write_json_lines(path, X)
    assert read_json_lines(path) == (X, None)


def test_other_sequences(tmp_path):
    """Sentences, NumPy's labels and numbers."""
    sentences = Sentences.of([[("größe", "NN")]])
    write_json_lines(tmp_path / "file", sentences, [np.array(["X"])])
    assert (tmp_path / "file").read_text() == '{"tokens": [["größe", "NN"]], "labels": ["X"]}\n'
    write_json_lines(tmp_path / "file", [[{"a": np.float32(0.5), "b": np.int64(2)}]], [np.array([7])])
    assert json.loads((tmp_path / "file").read_text()) == {"tokens": [{"a": 0.5, "b": 2}], "labels": [7]}


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([["a"]], [["X"], ["Y"]], "X has 1 sequences but y has 2"),
        ([["a"], ["b"]], [["X"], []], "sequence 1 cannot be written: there are 1 tokens but 0 labels"),
        ([["a"], [["b"]]], None, "sequence 1 cannot be written: token 0 is of kind list, those before of kind text"),
        ([[{"a": float("nan")}]], None, "sequence 0 cannot be written: Out of range float"),
        ([[{"a": object}]], None, "sequence 0 cannot be written: <class 'object'> is neither text nor number"),
    ],
)
def test_what_cannot_be_written_is_named(tmp_path, X, y, message):
    with pytest.raises(ValueError, match=message):
        write_json_lines(tmp_path / "file", X, y)
    assert not (tmp_path / "file").exists()
