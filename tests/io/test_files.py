import codecs
import gzip
import io
import os
import sys
import threading
from pathlib import Path

import pytest

from m3n.io.files import DataFileError, check_writable, hold, lines_of, reading, text_of, write_atomically, write_text


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


def test_an_error_while_reading_gets_its_line(tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("1\n\n2\nthree\n4\n")
    with pytest.raises(DataFileError, match=r"numbers.txt, line 4: invalid literal"), reading(path) as lines:
        list(map(int, filter(None, lines)))
    path.write_bytes(b"1\n\xff\n")
    with pytest.raises(DataFileError, match="line 2: this is not UTF-8"), reading(path) as lines:
        list(map(int, lines))
    with pytest.raises(KeyError), reading(path) as lines:  # only a ValueError is about the data
        raise KeyError(next(lines))


def test_places_that_cannot_be_written(tmp_path):
    check_writable(tmp_path / "new")
    with pytest.raises(FileNotFoundError, match=r"the folder .*no' does not exist"):
        check_writable(tmp_path / "no" / "new")
    with pytest.raises(IsADirectoryError, match="this is a folder"):
        write_atomically(tmp_path, b"")


def stdin(monkeypatch, content):
    """Let standard input have this content."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_standard_input(monkeypatch):
    text = "größe a\r\n\nb c"
    for content in (text.encode(), gzip.compress(text.encode()), codecs.BOM_UTF8 + text.encode()):
        stdin(monkeypatch, content)
        assert list(lines_of("-")) == [(1, "größe a"), (2, ""), (3, "b c")]
        assert not sys.stdin.buffer.closed
        stdin(monkeypatch, content)
        assert text_of(Path("-")) == text.encode()
    for read in (text_of, lambda path: list(lines_of(path))):
        stdin(monkeypatch, "a\nü".encode("latin-1"))
        with pytest.raises(DataFileError, match=r"^standard input, line 2: this is not UTF-8 text"):
            read("-")
        stdin(monkeypatch, gzip.compress(b"word label\n" * 10)[:-12])
        with pytest.raises(DataFileError, match=r"^standard input, line \d+: the gzip file is damaged"):
            read("-")


def test_what_can_be_read_once_is_held(monkeypatch, tmp_path):
    stdin(monkeypatch, b"a\nb")
    held = hold("-")
    assert list(lines_of(held)) == list(lines_of(held)) == [(1, "a"), (2, "b")]
    assert hold(held) is held
    (tmp_path / "file").write_text("x")
    assert hold(tmp_path / "file") == tmp_path / "file"
    with pytest.raises(FileNotFoundError, match="there is no data file"):
        hold(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="there is no data file"):
        text_of(tmp_path)


def test_a_pipe_is_a_file(tmp_path):
    """As in ``m3n train <(zcat data.gz)``."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(gzip.compress(b"a\nb\n")))
    writer.start()
    held = hold(tmp_path / "pipe")
    writer.join()
    assert held.name == str(tmp_path / "pipe")
    assert text_of(held) == b"a\nb\n"


def test_text_is_written_packed_or_to_standard_output(tmp_path, capfdbinary):
    for name in ("plain", "packed.gz"):
        write_text(tmp_path / name, ["größe\n", "b\n"])
        assert text_of(tmp_path / name) == "größe\nb\n".encode()
    packed = (tmp_path / "packed.gz").read_bytes()
    assert packed.startswith(b"\x1f\x8b")
    assert packed[4:8] == bytes(4)  # no time of writing: the same text makes the same file
    write_text("-", ["größe\n"])
    assert capfdbinary.readouterr().out == "größe\n".encode()
