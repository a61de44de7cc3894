"""Files of links: two formats, what is refused, and that what is written can be read again."""

import gzip
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.io import Alignment, DataFileError, read_alignments, read_parallel, write_alignments
from m3n.io.parallel import sizes_of

EXPECTED = [
    Alignment(frozenset({(0, 0), (1, 2)}), frozenset({(1, 1)})),
    Alignment(frozenset()),
    Alignment(frozenset({(0, 1)})),
]
SIZES = [(2, 3), (1, 1), (1, 2)]
PHARAOH = "0-0 1-2 1?1\n\n0-1\n"
NAACL = "0001 1 1 S\n0001 2 3\n0001 2 2 P 0.25\n3 1 2 S\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "links"


@pytest.mark.parametrize("text", [PHARAOH, PHARAOH.replace("?", "p"), NAACL, "0-0:0.9 1-2:1 1?1:.1\n\n0-1\n"])
@pytest.mark.parametrize("sizes", [None, SIZES])
def test_both_formats(path, text, sizes):
    path.write_text(text)
    assert read_alignments(path, sizes) == EXPECTED
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()))
    assert read_alignments(path, sizes) == EXPECTED


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PHARAOH.encode())))
    assert read_alignments("-", SIZES) == EXPECTED


def test_pairs_after_the_last_link(path):
    path.write_text(NAACL)
    assert read_alignments(path, pairs=5) == [*EXPECTED, Alignment(frozenset()), Alignment(frozenset())]
    path.write_text("")
    assert read_alignments(path, format="naacl", pairs=2) == [Alignment(frozenset())] * 2


def test_numbers_of_pairs_in_any_form_and_order(path):
    path.write_text("00000000010 1 1\n2 1 1 P\n\n002 1 1 S\n")
    found = read_alignments(path)
    assert len(found) == 10
    assert found[1] == found[9] == Alignment(frozenset({(0, 0)}))  # sure wins


def test_words_without_a_translation(path):
    path.write_text("1 0 2 S\n1 1 0 P 0.5\n1 1 1 0.75\n")
    assert read_alignments(path) == [Alignment(frozenset({(0, 0)}))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-0\n0:1\n", "line 2: '0:1' is no link; links look like 0-0"),
        ("0-0\n1 -1\n", "line 2: '1' is no link"),
        ("0-0 2-0\n", "line 1: the link of word 2 with word 0 does not fit: the source has 2 words and the target 3"),
        ("0-0\n0-1\n\n", "line 2: the link of word 0 with word 1 does not fit"),
        ("\n\n\n\n", "line 4: there are only 3 sentence pairs"),
        ("\n0-0\n", "ends after 2 lines, but there are 3 sentence pairs; a pair without links has an empty line"),
        ("", "ends after 0 lines"),
        ("the ||| la\n", "line 1: 'the' is no link"),
        ("1 1 1 S\n1 1 X S\n", "line 2: '1 1 X S' is no line such as 0001 1 3 S"),
        ("1 1 1 S\n1 1 1 Q\n", "line 2: '1 1 1 Q' is no line"),
        ("1 1 1 S\n1 3 1 S\n", "line 2: the link of word 3 with word 1 does not fit: .* counted from 1"),
        ("1 1 1 S\n4 1 1 S\n", "line 2: this is a link of pair 4, but there are only 3 sentence pairs"),
        ("0 1 1 S\n", "line 1: this is a link of pair 0, but sentence pairs are counted from 1"),
    ],
)
def test_wrong_files_are_named_by_line(path, text, message):
    path.write_text(text)
    with pytest.raises(DataFileError, match=f"{re.escape(str(path))},? {message}"):
        read_alignments(path, SIZES)


def test_a_number_that_would_fill_the_memory(path):
    path.write_text("999999999999 1 1 S\n")
    with pytest.raises(DataFileError, match="line 1: this is a link of pair 999999999999, but there are only"):
        read_alignments(path)


def test_without_a_single_pair(path):
    path.write_text("")
    for kind in (None, "naacl"):
        with pytest.raises(DataFileError, match="is empty: there is no"):
            read_alignments(path, format=kind)
    with pytest.raises(ValueError, match="unknown format 'giza'; choose one of pharaoh, naacl"):
        read_alignments(path, format="giza")
    with pytest.raises(ValueError, match="unknown format 'giza'; choose one of pharaoh, naacl"):
        write_alignments(path, [], "giza")


LINKS = st.frozensets(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=6)
ALIGNMENTS = st.lists(st.builds(lambda sure, possible: Alignment(sure, possible - sure), LINKS, LINKS), min_size=1)


@given(ALIGNMENTS, st.sampled_from(["pharaoh", "naacl"]), st.booleans())
def test_what_is_written_is_read_again(tmp_path_factory, alignments, kind, packed):
    path = tmp_path_factory.mktemp("round") / ("links.gz" if packed else "links")
    write_alignments(path, alignments, kind)
    assert read_alignments(path, [(13, 13)] * len(alignments), kind) == alignments


def test_text_and_probabilities(path):
    write_alignments(path, EXPECTED)
    assert path.read_text() == "0-0 1?1 1-2\n\n0-1\n"
    write_alignments(path, EXPECTED, "naacl")
    assert path.read_text() == "0001 1 1 S\n0001 2 2 P\n0001 2 3 S\n0003 1 2 S\n"
    shares = [np.full(size, 0.25) for size in SIZES]
    for kind, text in (("pharaoh", "1?1:0.250000"), ("naacl", "0001 2 2 P 0.250000\n")):
        write_alignments(path, EXPECTED, kind, probabilities=shares)
        assert text in path.read_text()
        assert read_alignments(path, SIZES) == EXPECTED
    write_alignments(path, [[(1, 0), (np.int64(0), 0)]])
    assert path.read_text() == "0-0 1-0\n"


@pytest.mark.parametrize(("name", "counts"), [("trial", (37, 338, 1446)), ("test", (447, 4038, 13_400))])
def test_the_real_files(data_folder, name, counts):
    """Counts that were taken from the files by other means."""
    folder = data_folder / "hansards"
    pairs, _ = read_parallel(folder / f"{name}.e.gz", folder / f"{name}.f.gz")
    links = read_alignments(folder / f"{name}.wa.nonullalign.gz", sizes_of(pairs))
    assert (len(links), sum(len(a.sure) for a in links), sum(len(a.possible) for a in links)) == counts
