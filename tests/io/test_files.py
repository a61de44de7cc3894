import gzip

import pytest

from m3n.io.files import DataFileError, check_writable, lines_of, write_atomically
from m3n.io.formats import detect


def test_lines_are_numbered_and_unpacked_whatever_the_name(tmp_path):
    text = "größe a\r\n\nb c"
    (tmp_path / "plain.gz").write_bytes(text.encode())  # a wrong name does no harm
    (tmp_path / "packed.txt").write_bytes(gzip.compress(text.encode()))
    for name in ("plain.gz", "packed.txt"):
        assert list(lines_of(tmp_path / name)) == [(1, "größe a"), (2, ""), (3, "b c")]


def test_unreadable_files_name_file_and_line(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no data file '.*nowhere'"):
        list(lines_of(tmp_path / "nowhere"))
    (tmp_path / "latin").write_bytes("ok 1\nübel 2\n".encode("latin-1"))
    with pytest.raises(DataFileError, match=r"latin, line 2: this is not UTF-8 text"):
        list(lines_of(tmp_path / "latin"))
    packed = gzip.compress(b"word label\n" * 10_000)
    (tmp_path / "cut.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataFileError, match=r"cut.gz, line \d+: the gzip file is damaged or incomplete"):
        list(lines_of(tmp_path / "cut.gz"))


def test_places_that_cannot_be_written(tmp_path):
    check_writable(tmp_path / "new")
    with pytest.raises(FileNotFoundError, match=r"the folder .*no' does not exist"):
        check_writable(tmp_path / "no" / "new")
    with pytest.raises(IsADirectoryError, match="this is a folder"):
        write_atomically(tmp_path, b"")


def test_formats_are_told_by_content(tmp_path):
    path = tmp_path / "data"
    for text, kind in [
        ("\t".join(["1", "a", "-1", "1", "1", "0", *["0"] * 128]) + "\t\n", "letters"),
        ("\n\nThe DT B-NP\n", "columns"),
        ("The\tDT\tB-NP\n", "columns"),
        ("# # B-NP\n", "columns"),  # the pound sign of the newspaper
    ]:
        path.write_text(text)
        assert detect(path) == kind
    for text, message in [
        ("# sent_id = 1\n", "line 1: this looks like CoNLL-U"),
        ("1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n", "line 1: this looks like CoNLL-U"),
        ("\nword\n", "line 2: neither letter.data"),
        ("\n \n", "is empty"),
    ]:
        path.write_text(text)
        with pytest.raises(DataFileError, match=message):
            detect(path)
