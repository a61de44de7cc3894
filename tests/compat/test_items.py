"""Tokens as python-crfsuite reads them, beside python-crfsuite itself."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import m3n
from m3n.compat import ItemSequence, Tagger, Trainer
from m3n.compat.items import is_items, listed, plain_label, plain_labels

pycrfsuite = pytest.importorskip("pycrfsuite")

SEQUENCES = {
    "nothing": [],
    "lists": [["a", "b"], [], ["b", "b"]],
    "other collections": [("a", "b"), {"c"}, {"d": 1}.keys(), frozenset({"e"})],
    "dicts": [{"a": 1.0, "b": True, "c": False, "": 2}, {}, {"w": "x", "empty": ""}],
    "separators": [{"a:b": "c", "a": "b:c", "d": {":": "x"}}],
    "nested": [{"a": {"b": {"c": "d", "n": -0.5}, "l": ["x", "y"]}, "s": {"z"}, "e": {}, "e2": []}],
    "bytes": [{b"a": b"b", "c": "é".encode(), "d": {b"e": [b"f"]}}, [b"x", "y"]],
    "numbers": [{"a": Decimal("0.5"), "b": Fraction(1, 4), "c": np.float32(0.5), "d": np.int8(3), "e": np.bool_(True)}],
    "arrays": [{"a": np.array(0.5), "b": np.array(2)}],
    "texts of NumPy": [{np.str_("a"): np.str_("b"), "c": np.bytes_(b"d")}, [np.str_("e")]],
    "not finite": [{"a": float("inf"), "b": -float("inf")}],
    "languages": [{"слово": "привет", "日本": {"語": ["x"]}}],
    "an iterator": [["a"], ["b"]],
}


def given(case):
    return iter(SEQUENCES[case]) if case == "an iterator" else SEQUENCES[case]


@pytest.mark.parametrize("case", SEQUENCES)
def test_items(case):
    ours, theirs = ItemSequence(given(case)), pycrfsuite.ItemSequence(given(case))
    assert ours.items() == theirs.items()
    assert len(ours) == len(theirs)
    assert repr(ours) == repr(theirs)
    assert ItemSequence(ours).items() == ItemSequence(theirs).items() == ours.items()
    assert all(type(name) is str and type(value) is float for item in ours.items() for name, value in item.items())


def test_an_attribute_that_comes_twice_counts_twice():
    """CRFsuite adds the values up, and shows the last one."""
    sequence = [["a", "a"], {"w": "x", "w:x": 3.0}]
    assert ItemSequence(sequence).items() == pycrfsuite.ItemSequence(sequence).items() == [{"a": 1.0}, {"w:x": 3.0}]
    assert listed(ItemSequence(sequence)) == ItemSequence(sequence).counted() == [{"a": 2.0}, {"w:x": 4.0}]


@pytest.mark.parametrize(
    ("sequence", "kind", "message"),
    [
        (None, TypeError, "not iterable"),
        ([["a"], [1]], TypeError, "position 1: names of attributes must be texts, got 1"),
        ([{1: 2}], TypeError, "position 0: names of attributes must be texts, got 1"),
        ([{"a": object()}], TypeError, "position 0: attribute 'a' must be a string, a number or a bool"),
        ([{"a": (1, 2)}], TypeError, "position 0: attribute 'a' must be"),
        ([{"a": [1]}], TypeError, "position 0: names of attributes must be texts, got 1"),
        ([{"a": np.zeros(2)}], TypeError, "position 0: attribute 'a' must be"),
        ([{"a": b"\xff"}], ValueError, "position 0: 'utf-8' codec can't decode"),
    ],
)
def test_mistakes(sequence, kind, message):
    with pytest.raises(kind, match=message):
        ItemSequence(sequence)
    with pytest.raises((kind, SystemError)):  # a TypeError inside of its C++ surfaces as the latter
        pycrfsuite.ItemSequence(sequence).items()


@pytest.mark.parametrize("sequence", ["ab", ["ab"]])
def test_texts_are_no_tokens(sequence):
    """python-crfsuite takes the letters for attributes."""
    assert pycrfsuite.ItemSequence(sequence).items()
    with pytest.raises(TypeError, match="position 0: a token must be a dict or a collection of texts, got 'a"):
        ItemSequence(sequence)


def test_none_is_nothing():
    """python-crfsuite refuses it."""
    with pytest.raises((TypeError, SystemError)):
        pycrfsuite.ItemSequence([{"a": None}])
    assert ItemSequence([{"a": None, "b": 1}]).items() == [{"b": 1.0}]


def test_which_objects_are_item_sequences():
    assert is_items(ItemSequence([])) and is_items(pycrfsuite.ItemSequence([]))
    assert not is_items([["a"]])


def test_labels():
    assert plain_label(b"\xc3\xa9") == "é" and plain_label(np.array("N")) == "N" and plain_label(3) == 3
    assert plain_labels([b"N", "V", np.array("D")]) == ["N", "V", "D"]
    assert plain_labels(np.array(["N", "V"])) == ["N", "V"]
    assert plain_labels("NV") == "NV" and plain_labels(None) is None


@pytest.fixture(scope="module")
def tagger():
    trainer = Trainer(verbose=False)
    for case, sequence in SEQUENCES.items():
        if case not in ("nothing", "not finite"):
            trainer.append(sequence, ["N", "V", "D", "N"][: len(sequence)])
    trainer.train(None)
    return Tagger(trainer.model_)


@pytest.mark.parametrize("case", sorted(set(SEQUENCES) - {"nothing", "not finite"}))
def test_all_kinds_of_tokens_are_tagged_alike(case, tagger):
    sequence, shares = SEQUENCES[case], []
    wrapped = [sequence, ItemSequence(sequence), ItemSequence(sequence).counted()]
    if case not in ("lists", "separators"):  # where attributes come twice, of which theirs shows only one
        wrapped.append(pycrfsuite.ItemSequence(sequence))
    for tokens in wrapped:
        assert tagger.tag(tokens) == tagger.tag() == tagger.tag(sequence)
        tagger.set(tokens)
        shares.append([tagger.marginal("N", t) for t in range(len(sequence))])
        assert shares[-1] == pytest.approx(shares[0])


def test_values_that_are_not_finite_have_no_score(tagger):
    with pytest.raises(ValueError, match="attribute 'a' has the value inf"):
        tagger.tag(SEQUENCES["not finite"])
    with pytest.raises(ValueError, match="attribute 'a' has the value nan"):
        tagger.tag([{"a": np.array(np.nan)}])


def test_the_module_is_there_after_importing_m3n():
    assert m3n.compat.ItemSequence is ItemSequence
    assert m3n.compat.sklearn_crfsuite.CRF.__name__ == "CRF"
