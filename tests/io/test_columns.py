import gzip

import pytest

from m3n.io.columns import attributes, read_columns
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


def test_attributes_describe_the_token_and_its_neighbours():
    first, second, third = attributes([("The", "DT"), ("Dog", "NN"), ("barks", "VBZ")])
    assert first == ["bias", "0=The", "1=DT", "lower=the", "+1:0=Dog", "+1:1=NN", "+1:lower=dog"]
    assert second[:4] == ["bias", "0=Dog", "1=NN", "lower=dog"]
    assert second[4:7] == ["-1:0=The", "-1:1=DT", "-1:lower=the"]
    assert second[7:] == ["+1:0=barks", "+1:1=VBZ", "+1:lower=barks"]
    assert third[4:] == ["-1:0=Dog", "-1:1=NN", "-1:lower=dog"]
    assert attributes([("Go",)]) == [["bias", "0=Go", "lower=go"]]


@pytest.mark.parametrize(
    "text, message",
    [
        ("a DT X\nb NN\n", "line 2: expected 3 columns as in the lines before, found 2"),
        ("a X\n\nb X Y\n", "line 3: expected 2 columns as in the lines before, found 3"),
        ("word\n", "line 1: a token needs at least two columns"),
        ("\n\n", "is empty: there is no token in it"),
        ("-DOCSTART- O\n\n", "is empty: there is no token in it"),
    ],
)
def test_malformed_files_are_named(tmp_path, text, message):
    (tmp_path / "file").write_text(text)
    with pytest.raises(DataFileError, match=message):
        read_columns(tmp_path / "file")


def test_the_real_files(data_folder):
    """Counts that were taken from the files by other means."""
    read = read_columns(data_folder / "conll2000" / "train.txt.gz")
    assert len(read.tokens) == 8936
    assert sum(map(len, read.tokens)) == 211_727
    assert len({label for sentence in read.labels for label in sentence}) == 22
    entities = read_columns(data_folder / "conll2003" / "eng.testb.gz")
    assert (len(entities.tokens), sum(map(len, entities.tokens))) == (3453, 46_435)
