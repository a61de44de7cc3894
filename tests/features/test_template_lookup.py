"""The attributes that compiled code finds are those of the matrix that NumPy makes, template by template."""

import pickle

import numpy as np
import pytest

from m3n.features import Templates, template_lookup
from m3n.io import Sentences

PATTERNS = (
    "bias",
    "U00:%x[0,0]",
    "U01:%x[-2,1]",
    "U02:%x[-1,0]/%x[0,0]",
    "U03:%x[0,0]+%x[ 2 , 1 ]+%x[-3,0]!",
    "first=%x[@1,0]",
    "%x[@-2,1]|%x[0,0:suffix2]",
    '%m[-6,0,"[0-9]"]%x[0,1]',
    "|".join(f"%x[{k % 9 - 4},{k % 2}]" for k in range(40)),  # more than an integer holds
    "B01:%x[0,0]",
)
OF_WAPITI = 'U1:%x[-6,0]\n*2:%X[1,0]\nu3:%t[0,0,"[aw]"]/%x[@-1,1]\nu4:%m[7,0,"[0-9]$"]\n'


def sentences(random, count, words=20):
    return [
        [(f"w{random.integers(words)}x", f"p{random.integers(4)}") for _ in range(random.integers(1, 7))]
        for _ in range(count)
    ]


def rows_of(templates, X):
    found = templates.lookup().read(X, 0)
    rows = []
    for piece in found.pieces(0, len(X)):
        assert piece.first == found.offsets[piece.low]
        for low, high in zip(piece.pointers, piece.pointers[1:], strict=False):
            rows.append([column for column in piece.columns[low:high].tolist() if column >= 0])
    return rows


def rows_of_matrix(templates, X):
    matrix = templates.transform(Sentences.of(X))
    return [row.tolist() for row in np.split(matrix.indices, matrix.indptr[1:-1])]


@pytest.mark.parametrize("least", [1, 3])
@pytest.mark.parametrize(
    "templates", [*(Templates(PATTERNS, padding) for padding in ("symbols", "marks", "none")), Templates(OF_WAPITI)]
)
def test_the_same_as_pass_by_pass(monkeypatch, templates, least):
    monkeypatch.setattr(template_lookup, "PIECE", 11)
    monkeypatch.setattr(template_lookup, "MOST_WORDS", 15)  # fewer than there are
    monkeypatch.setattr(template_lookup, "BUCKETS", 1 / 8)  # searches in tables as small as these
    monkeypatch.setattr(template_lookup, "ALWAYS", 2)
    random = np.random.default_rng(0)
    templates = templates.unfitted()
    templates.fit_transform(Sentences.of(sentences(random, 60)), least)
    new = sentences(random, 40, words=25)  # some that training has not seen
    expected = rows_of_matrix(templates, new)
    assert len({len(row) for row in expected}) > 1
    assert rows_of(templates, new) == rows_of(templates, Sentences.of(new)) == expected
    assert rows_of(templates, [[list(token) for token in sentence] for sentence in new]) == expected
    assert rows_of(pickle.loads(pickle.dumps(templates)), new) == expected
    assert rows_of(templates, Sentences.of(new)[7:9]) == rows_of_matrix(templates, new[7:9])


def test_what_is_not_plain_is_left():
    templates = Templates(["%x[0,0]/%x[1,1]"], "none")
    templates.fit_transform(Sentences.of([[("a", "b"), ("c", "d")]]))
    read = templates.lookup().read
    plain = [("a", "b"), ("c", "d")]
    assert read([plain], 2) is not None
    assert read((plain, plain), 0) is not None
    for given in ([], [[]], iter([plain]), [plain, []], [iter(plain)], ["ab"], [[("a",)]], [[("a", "b", "c")]]):
        assert read(given, 2) is None
    for given in ([[("a", 1)]], [[("a", ["b"])]], [[("a", "b"), ("a",)]], [[("a", "b"), "c"]], [[{"a": "b"}]]):
        assert read(given, 2) is None
    assert read(Sentences.of([[("a",)]]), 2) is None


def test_words_stand_for_tokens_of_one_column():
    templates = Templates(["%x[0,0]", "%x[-1,0]"], "none")
    templates.fit_transform(Sentences.of([[("a",), ("b",)]]))
    read = templates.lookup().read
    assert read([["b", "a"]], 1).codes.tolist() == read([[("b",), ("a",)]], 1).codes.tolist() == [[1], [0]]
    for given in ([["b", "a"]], Sentences.of([[("b",), ("a",)]])):
        codes = read(given, 1).codes
        assert codes.flags.writeable and codes.flags.c_contiguous  # or compiled code would be made once more
    assert read([("b", "a")], 1) is None  # likely a token, without the list around it
    unread = Templates(["%x[0,1]"], "none")
    unread.fit_transform(Sentences.of([[("a", "x")]]))
    assert unread.lookup().read([[("b", "x")]], 2) is not None
    assert unread.lookup().read([[(2, "x")]], 2) is None  # nobody reads it, but it is no text
