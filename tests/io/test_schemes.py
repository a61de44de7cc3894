"""Chunks against seqeval, against conlleval's own rules written down once more, and against themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB1, IOB2, IOBES, Entities

from m3n.io import read_columns
from m3n.io.schemes import Chunk, chunks, convert, detect_scheme

STRICT = {"iob1": IOB1, "iob2": IOB2, "bioes": IOBES}


def sequences(prefixes, **size):
    """Random labels of two kinds, most of them impossible in any scheme."""
    labels = ["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in ("X", "Y"))]
    return st.lists(st.sampled_from(labels), **(size or {"max_size": 9}))


SPLIT = st.lists(st.tuples(st.sampled_from(["X", "Y", None]), st.integers(1, 3)), max_size=5)


def conlleval(labels):
    """The tables of the Perl script: between which neighbours a chunk ends, and begins, if the kind is the same."""
    ends = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
    begins = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}
    found, start = [], None
    before, kind_before = "O", ""
    for t, label in enumerate([*labels, "O"]):
        prefix, _, kind = label.partition("-")
        if start is not None and (before + prefix in ends or (before != "O" and kind_before != kind)):
            found.append((kind_before, start, t))
            start = None
        if before + prefix in begins or (prefix != "O" and kind_before != kind):
            start = t
        before, kind_before = prefix, kind
    return found


@given(st.one_of(sequences("BI"), sequences("IE")))
def test_conll_is_conlleval(labels):
    """On the prefixes for which the script has rules for every pair of neighbours."""
    assert chunks(labels) == conlleval(labels)


@given(sequences("BIES"))
def test_conll_is_the_lenient_mode_of_seqeval(labels):
    assert chunks(labels) == [(kind, first, last + 1) for kind, first, last in get_entities(labels)]


@pytest.mark.parametrize("scheme", STRICT)
@given(data=st.data())
def test_strict_schemes_are_those_of_seqeval(scheme, data):
    labels = data.draw(sequences("BIES" if scheme == "bioes" else "BI"))
    (expected,) = Entities([labels], STRICT[scheme]).entities
    assert chunks(labels, scheme) == [(entity.tag, entity.start, entity.end) for entity in expected]


def plain(split):
    """Pieces of text as chunks, and each scheme's labels, piece by piece."""
    found, iob1, iob2, bioes, last = [], [], [], [], None
    for kind, length in split:
        if kind is None:
            parts = [["O"] * length] * 3
        else:
            found.append(Chunk(kind, len(iob1), len(iob1) + length))
            inside = [f"I-{kind}"] * length
            ends = [f"B-{kind}", *inside[2:], f"E-{kind}"] if length > 1 else [f"S-{kind}"]
            parts = [([f"B-{kind}"] if kind == last else inside[:1]) + inside[1:], [f"B-{kind}", *inside[1:]], ends]
        for labels, part in zip((iob1, iob2, bioes), parts, strict=True):
            labels += part
        last = kind
    return found, {"iob1": iob1, "iob2": iob2, "bioes": bioes}


@given(SPLIT)
def test_every_scheme_says_the_same(split):
    found, written = plain(split)
    for source, labels in written.items():
        assert chunks(labels, source) == chunks(labels) == found
        assert convert(labels, "conll", "iob2") == written["iob2"]
        for target in written:
            assert convert(labels, source, target) == written[target]
        assert detect_scheme([labels, [], ["O"]]) == (source if found else None)


@given(sequences("BIES", min_size=1, max_size=4))
def test_a_scheme_is_what_can_be_written_again(labels):
    """detect_scheme names the scheme whose labels come back, if any."""
    expected = None
    for scheme in STRICT:
        try:
            back = convert(convert(labels, "conll", scheme), scheme, scheme)
        except ValueError:
            back = None
        if back == labels and chunks(labels):
            expected = scheme
    assert detect_scheme([labels]) == expected


def test_labels_without_a_kind_and_with_dashes():
    assert chunks(["B", "I", "O", "S"]) == [("", 0, 2), ("", 3, 4)]
    assert chunks(["B-a-b", "I-a-b"]) == [("a-b", 0, 2)]
    assert convert(["B", "I", "B-a-b"], "iob2", "bioes") == ["B", "E", "S-a-b"]
    assert chunks([]) == []


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="'NN' is no label of the scheme conll: O, or B- or I- or E- or S- and a kind"):
        chunks(["O", "NN"])
    with pytest.raises(ValueError, match="'S-X' is no label of the scheme iob2: O, or B- or I- and a kind"):
        chunks(["S-X"], "iob2")
    with pytest.raises(ValueError, match="'BX' is no label"):
        chunks(["BX"])
    with pytest.raises(ValueError, match="3 is no label"):
        chunks([3])
    for scheme in ("iob3", "conll"):
        with pytest.raises(ValueError, match=f"unknown scheme {scheme!r}; choose one of iob1, iob2, bioes"):
            convert(["O"], "iob1", scheme)
    with pytest.raises(ValueError, match="unknown scheme 'x'; choose one of conll, iob1"):
        chunks([], "x")
    with pytest.raises(ValueError, match=r"position 1: 'I-X' is not what iob2 writes here; source=\"conll\" reads"):
        convert(["O", "I-X"], "iob2", "iob1")
    assert detect_scheme([["NN", "DT"]]) is None
    assert detect_scheme([["B-X"], ["I-X"]]) is None


def test_sequences_are_read_one_by_one():
    assert detect_scheme([["I-X"], ["I-X", "B-X"]]) == "iob1"
    assert detect_scheme([["I-X"], ["B-X"]]) is None


def test_the_real_files(data_folder):
    assert detect_scheme(read_columns(data_folder / "conll2000" / "test.txt.gz").labels) == "iob2"
    labels = read_columns(data_folder / "conll2003" / "eng.testb.gz").labels
    assert detect_scheme(labels) == "iob1"
    assert sum(map(len, map(chunks, labels))) == 5648  # as the shared task's paper says
