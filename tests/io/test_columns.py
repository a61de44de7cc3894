import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.io.columns import read_columns
from m3n.io.files import DataFileError

TEXT = """
-DOCSTART- -X- O

The DT B-NP
Dog NN I-NP
barks\tVBZ   B-VP


Run VB B-VP
"""


def test_reads_sentences(tmp_path):
    (tmp_path / "plain").write_text(TEXT)
    (tmp_path / "packed").write_bytes(gzip.compress(TEXT.encode()))
    for name in ("plain", "packed"):
        read = read_columns(tmp_path / name)
        assert read.tokens == [[("The", "DT"), ("Dog", "NN"), ("barks", "VBZ")], [("Run", "VB")]]
        assert read.labels == [["B-NP", "I-NP", "B-VP"], ["B-VP"]]


@pytest.mark.parametrize(
    "text, message",
    [
        ("a DT X\nb NN\n", "line 2: expected 3 columns as in the lines before, found 2"),
        ("a X\n\nb X Y\n", "line 3: expected 2 columns as in the lines before, found 3"),
        ("word\n", "line 1: a token needs at least two columns"),
        ("a X\r\n\r\nb\u00a0c X Y\r\n", "line 3: expected 2 columns as in the lines before, found 3"),
        ("-DOCSTART- O\n\na X\nb\n", "line 4: expected 2 columns"),
        ("\n\n", "is empty: there is no token in it"),
        ("-DOCSTART- O\n\n", "is empty: there is no token in it"),
    ],
)
def test_malformed_files_are_named(tmp_path, text, message):
    (tmp_path / "file").write_text(text)
    with pytest.raises(DataFileError, match=message):
        read_columns(tmp_path / "file")


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "latin").write_bytes("a X\n\nü X\n".encode("latin-1"))
    with pytest.raises(DataFileError, match=r"latin, line 3: this is not UTF-8 text"):
        read_columns(tmp_path / "latin")
    packed = gzip.compress(TEXT.encode())
    for name, content in {"cut": packed[:-12], "wrong": packed[:30] + b"x" + packed[31:]}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataFileError, match=rf"{name}, line \d+: the gzip file is damaged or incomplete"):
            read_columns(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="there is no data file"):
        read_columns(tmp_path / "nothing")


def test_files_without_labels(tmp_path):
    (tmp_path / "file").write_text("The\nDog\n\nRun\n")
    read = read_columns(tmp_path / "file", labelled=False)
    assert read.tokens == [[("The",), ("Dog",)], [("Run",)]]
    with pytest.raises(ValueError, match="these sentences have no labels"):
        _ = read.labels


def test_only_ascii_blanks_separate(tmp_path):
    """A no-break space belongs to its word; a byte order mark and other line ends do not matter."""
    (tmp_path / "file").write_bytes("\ufeffa\u00a0b\tX \r\n  語\u3000 Y\r\n \r\nc X".encode())
    read = read_columns(tmp_path / "file")
    assert read.tokens == [[("a\u00a0b",), ("語\u3000",)], [("c",)]]
    assert read.labels == [["X", "Y"], ["X"]]


def test_documents_end_a_sentence(tmp_path):
    (tmp_path / "file").write_text("a X\n-DOCSTART- O\nb X\n-DOCSTART-s X\n -DOCSTART-\n")
    assert read_columns(tmp_path / "file").tokens == [[("a",)], [("b",), ("-DOCSTART-s",)]]


@given(st.lists(st.lists(st.sampled_from(["a X", "b\tY", " c  X ", "-DOCSTART- X"]), max_size=4), max_size=5))
def test_the_same_as_reading_line_by_line(tmp_path_factory, sentences):
    lines = [line for sentence in sentences for line in [*sentence, ""]]
    path = tmp_path_factory.mktemp("columns") / "file"
    path.write_text("\n".join(["d Y", *lines]))
    expected = [[]]
    for line in ["d Y", *lines, ""]:
        fields = line.split()
        if fields and fields[0] != "-DOCSTART-":
            expected[-1].append(tuple(fields))
        elif expected[-1]:
            expected.append([])
    read = read_columns(path)
    assert read.tokens == [[(word,) for word, _ in sentence] for sentence in expected[:-1]]
    assert read.labels == [[label for _, label in sentence] for sentence in expected[:-1]]


def test_the_real_files(data_folder):
    """Counts that were taken from the files by other means."""
    read = read_columns(data_folder / "conll2000" / "train.txt.gz")
    assert len(read.tokens) == 8936
    assert sum(map(len, read.tokens)) == 211_727
    assert len({label for sentence in read.labels for label in sentence}) == 22
    entities = read_columns(data_folder / "conll2003" / "eng.testb.gz")
    assert (len(entities.tokens), sum(map(len, entities.tokens))) == (3453, 46_435)
