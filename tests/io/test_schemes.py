"""Chunks against seqeval, against conlleval's own rules written down once more, and against themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, IOE1, IOE2, Entities

from m3n.io import read_columns
from m3n.io.schemes import WRITTEN, Chunk, LabelError, chunks, convert, detect_scheme, repair

STRICT = {"iob1": IOB1, "iob2": IOB2, "ioe1": IOE1, "ioe2": IOE2, "bioes": IOBES, "bilou": BILOU}
LETTERS = {"bioes": "BIES", "bilou": "BILU", "bmes": "BMES", "bmewo": "BMEW"}


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
    """But for chunks of one token in IOE1: seqeval sees E at the beginning of one only behind an E of its kind."""
    labels = data.draw(sequences(WRITTEN[scheme][1:]))
    (expected,) = Entities([labels], STRICT[scheme]).entities
    found = chunks(labels, scheme)
    if scheme == "ioe1":
        found = [c for c in found if labels[c.begin][0] != "E" or labels[max(c.begin - 1, 0)] == labels[c.begin]]
        found = [c for c in found if c.begin > 0 or labels[0][0] != "E"]
    assert found == [(entity.tag, entity.start, entity.end) for entity in expected]


def with_ends(kind, length, letters):
    begin, inside, end, single = letters
    return [f"{begin}-{kind}", *[f"{inside}-{kind}"] * (length - 2), f"{end}-{kind}"] if length > 1 else [
        f"{single}-{kind}"
    ]  # fmt: skip


def plain(split):
    """Pieces of text as chunks, and each scheme's labels, piece by piece."""
    found, written, last = [], {scheme: [] for scheme in WRITTEN}, None
    for kind, length in split:
        labels = {scheme: ["O"] * length for scheme in WRITTEN}
        if kind is not None:
            begin = len(written["iob1"])
            found.append(Chunk(kind, begin, begin + length))
            labels = {scheme: [f"I-{kind}"] * length for scheme in WRITTEN}
            labels["iob2"][0], labels["ioe2"][-1] = f"B-{kind}", f"E-{kind}"
            if kind == last:
                labels["iob1"][0], written["ioe1"][-1] = f"B-{kind}", f"E-{kind}"
            labels |= {scheme: with_ends(kind, length, letters) for scheme, letters in LETTERS.items()}
        for scheme in WRITTEN:
            written[scheme] += labels[scheme]
        last = kind
    return found, written


@given(SPLIT)
def test_every_scheme_says_the_same(split):
    found, written = plain(split)
    for source, labels in written.items():
        assert chunks(labels, source) == chunks(labels) == found
        assert convert(labels, "conll", "iob2") == written["iob2"]
        for target in written:
            assert convert(labels, source, target) == written[target]
        first = next(scheme for scheme in written if written[scheme] == labels)
        assert detect_scheme([labels, [], ["O"]]) == (first if found else None)


@given(sequences("BIESLUMW", min_size=1, max_size=4))
def test_a_scheme_is_what_can_be_written_again(labels):
    """detect_scheme names the first scheme whose labels come back, if any."""
    expected = None
    for scheme in reversed(WRITTEN):
        try:
            back = convert(convert(labels, "conll", scheme), scheme, scheme)
        except ValueError:
            back = None
        if back == labels and chunks(labels):
            expected = scheme
    assert detect_scheme([labels]) == expected


@pytest.mark.parametrize("scheme", WRITTEN)
@given(y=st.lists(sequences("BIESLUMW", max_size=5), max_size=4))
def test_repaired_labels_are_what_conlleval_reads(scheme, y):
    mended = repair(y, scheme)
    assert [chunks(labels, scheme) for labels in mended.labels] == [chunks(labels) for labels in y]
    assert [convert(labels, scheme, scheme) for labels in mended.labels] == mended.labels
    pairs = [(old, new) for rows in zip(y, mended.labels, strict=True) for old, new in zip(*rows, strict=True)]
    assert mended.positions == sum(old != new for old, new in pairs)
    assert mended.sequences == sum(old != new for old, new in zip(y, mended.labels, strict=True))
    assert repair(mended.labels, scheme) == (mended.labels, 0, 0)


def test_what_cannot_be_repaired_is_named_with_its_place():
    with pytest.raises(LabelError, match="sequence 1, position 2 of y: 'NN' is no label of chunks") as error:
        repair([["O"], ["B", "I", "NN"]], "iob2")
    assert (error.value.sequence, error.value.position) == (1, 2)
    with pytest.raises(ValueError, match="unknown scheme 'conll'"):
        repair([["O"]], "conll")


def test_labels_without_a_kind_and_with_dashes():
    assert chunks(["B", "I", "O", "S"]) == [("", 0, 2), ("", 3, 4)]
    assert chunks(["B-a-b", "I-a-b"]) == [("a-b", 0, 2)]
    assert convert(["B", "I", "B-a-b"], "iob2", "bioes") == ["B", "E", "S-a-b"]
    assert chunks([]) == []


def test_mistakes_are_named():
    with pytest.raises(
        ValueError, match="'NN' is no label of the scheme conll: O, or B-, I-, M-, E-, L-, S-, U- or W- and a"
    ):
        chunks(["O", "NN"])
    with pytest.raises(
        ValueError, match="'S-X' is no label of the scheme iob2: O, or B- or I- and a kind, such as B-NP"
    ):
        chunks(["S-X"], "iob2")
    with pytest.raises(ValueError, match="'BX' is no label"):
        chunks(["BX"])
    with pytest.raises(ValueError, match="3 is no label"):
        chunks([3])
    for scheme in ("iob3", "conll"):
        with pytest.raises(
            ValueError, match=f"unknown scheme {scheme!r}; choose one of iob1, iob2, ioe1, ioe2, bioes, bilou"
        ):
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
