"""Sentence pairs: one file or two, with links or without, and what is refused."""

import gzip
import io
import re

import pytest

from m3n.io import Alignment, DataFileError, detect, read_parallel, read_sequences, write_parallel

TEXT = "the  house ||| la maison\n\tit rains\u00a0. ||| il pleut .\n"
PAIRS = [(["the", "house"], ["la", "maison"]), (["it", "rains\u00a0."], ["il", "pleut", "."])]
LINKS = [Alignment(frozenset({(0, 0)}), frozenset({(1, 1)})), Alignment(frozenset())]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pairs"


def test_pairs(path):
    path.write_text(TEXT)
    assert read_parallel(path) == (PAIRS, None)
    path.write_bytes(gzip.compress(TEXT.replace("\n", "\r\n").encode()))
    assert read_parallel(path) == (PAIRS, None)
    assert detect(path) == "parallel"


@pytest.mark.parametrize("last", ["|||", "||| "])
def test_links_in_a_third_field(path, last):
    one, other = TEXT.splitlines()
    path.write_text(f"{one} ||| 0-0 1?1\n{other} {last}\n")
    assert read_parallel(path) == (PAIRS, LINKS)


def test_two_files(tmp_path, monkeypatch):
    for name, text in (("e", "the house\nit  rains\u00a0.\n"), ("f", "la maison\nil pleut .")):
        (tmp_path / name).write_text(text)
    assert read_parallel(tmp_path / "e", tmp_path / "f") == (PAIRS, None)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "e").read_bytes())))
    assert read_parallel("-", tmp_path / "f") == (PAIRS, None)
    with pytest.raises(ValueError, match="standard input can be read only once"):
        read_parallel("-", "-")


def test_what_is_written_is_read_again(tmp_path):
    for name, links in (("a", None), ("b.gz", LINKS)):
        write_parallel(tmp_path / name, PAIRS, links)
        assert read_parallel(tmp_path / name) == (PAIRS, links)
    write_parallel(tmp_path / "c", PAIRS, [[(1, 1)], []])
    assert (tmp_path / "c").read_text().splitlines()[0] == "the house ||| la maison ||| 1-1"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("the house | la maison", r"no \|\|\| between blanks in this line, but \|;"),
        ("the house || la maison", r"no \|\|\| between blanks in this line, but \|\|;"),
        ("the house\tla maison", r"no \|\|\| between blanks in this line, but a tab; .* two files"),
        ("the house|||la maison", r"but a \|\|\| without blanks around it"),
        ("the house", r"no \|\|\| between blanks in this line; a line is: source words \|\|\| target words"),
        ("", "this line is empty, and a sentence pair needs words on both sides"),
        ("the house |||", "the target is empty; take the pair out"),
        ("||| la maison", "the source is empty"),
        ("the ||| la ||| 0-0 ||| 0-0", r"3 times \|\|\|"),
        ("the ||| la ||| le", "'le' is no link"),
        ("the ||| la ||| 0-0", "some lines have links in a third field, others have none"),
        ("the ||| la ||| 0-1", "the link of word 0 with word 1 does not fit"),
    ],
)
def test_wrong_lines_are_named(path, line, message):
    path.write_text(f"{TEXT}{line}\n{TEXT}")
    with pytest.raises(DataFileError, match=f"{re.escape(str(path))}, line 3: .*{message}"):
        read_parallel(path)


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ("a\nb\nc\n", "x\ny\n", "f ends after 2 lines, but .*e has more: line i of one file"),
        ("a\n", "x\ny\n", "e ends after 1 lines, but .*f has more"),
        ("a\n\nc\n", "x\ny\nz\n", "e, line 2: this line is empty, and words cannot be aligned with nothing"),
        ("a\nb ||| y\n", "x\ny\n", r"e, line 2: this line has both sides \(\|\|\|\); give this file alone"),
        ("", "", "e is empty: there is no sentence"),
    ],
)
def test_wrong_files_of_two(tmp_path, one, other, message):
    (tmp_path / "e").write_text(one)
    (tmp_path / "f").write_text(other)
    with pytest.raises(DataFileError, match=message):
        read_parallel(tmp_path / "e", tmp_path / "f")


def test_what_cannot_be_written(path):
    for pair in ((["a b"], ["c"]), (["|||"], ["c"]), ([""], ["c"]), (["a"], []), (["a\n"], ["b"])):
        with pytest.raises(ValueError, match="sentence pair 0: "):
            write_parallel(path, [pair])
    with pytest.raises(ValueError, match="1 sentence pairs, but 2 alignments"):
        write_parallel(path, PAIRS[:1], LINKS)
    path.write_text("")
    with pytest.raises(DataFileError, match="is empty: there is no sentence pair"):
        read_parallel(path)


def test_it_is_not_for_taggers(path):
    path.write_text(TEXT)
    with pytest.raises(DataFileError, match=r"holds no labels of sequences: it is sentence pairs: .*\(m3n align\)"):
        read_sequences(path)
    path.write_text("(a b) ||| (c d)\n")
    assert detect(path) == "parallel"
    path.write_text("||| SYM O\n")  # a word of a column file
    assert detect(path) == "columns"
