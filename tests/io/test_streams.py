"""Cutting streams between examples: the pieces are the whole, however it arrives, and each can be read by itself."""

import gzip
import io
import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m3n.io import DataFileError, read_brackets, read_columns, read_json_lines, read_svm_hmm
from m3n.io import read_attributes as attributes
from m3n.io.streams import batches
from tests.io.test_formats import LETTERS

TEXTS = {
    "columns": "The DT\ndög NN\n\n\nRun VB\r\n\r\n# X\n \nlast one",
    "attributes": "A\tw=a\n@weight:2\n\nB\tw=b\nB\tw=c\n",
    "json_lines": '{"tokens": ["a"]}\n\n{"tokens": ["b", "ü"]}\n',
    "svm_hmm": "1 qid:1 1:1\n2 qid:1 2:1\n# a comment\n1 qid:2 1:1\n3 qid:3 1:1\n1 qid:3 2:1",
    "brackets": "(S (NP (PRP it))\n (VP (VBZ rains)))\n( (S (VB go)))\n(S\n(VB run))\n",
    "letters": LETTERS + LETTERS.replace("\t1\t1\t", "\t1\t2\t"),
}
SENTENCES = {
    "columns": lambda source: [read_columns(source, labelled=False).tokens],
    "attributes": lambda source: [attributes(source)[0]],
    "json_lines": lambda source: [read_json_lines(source)[0]],
    "svm_hmm": lambda source: [read_svm_hmm(source)[1]],
    "brackets": lambda source: [read_brackets(source)],
}


class Trickle(io.RawIOBase):
    """A pipe that delivers a text in some pieces."""

    def __init__(self, content, sizes):
        self.content, self.sizes = content, list(sizes)

    def readable(self):
        return True

    def read1(self, size):
        length = self.sizes.pop(0) if self.sizes else size
        piece, self.content = self.content[:length], self.content[length:]
        return piece

    def fileno(self):
        raise io.UnsupportedOperation


def filled(text):
    """The lines that are not empty."""
    return [line for line in text.split(b"\n") if line.strip()]


def cut(monkeypatch, content, kind, sizes=(), size=1, **settings):
    monkeypatch.setattr("sys.stdin", type("Standard", (), {"buffer": Trickle(content, sizes)}))
    return list(batches("-", lambda head: kind, size=size, **settings))


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
@settings(max_examples=20)
@given(data=st.data())
def test_pieces_are_the_whole_and_can_be_read_one_by_one(kind, packed, data):
    text = TEXTS[kind].encode()
    content = gzip.compress(text[:20]) + gzip.compress(text[20:]) if packed else text
    sizes = data.draw(st.lists(st.integers(1, 30), max_size=20))
    with pytest.MonkeyPatch.context() as patch:
        parts = cut(patch, content, kind, sizes, data.draw(st.sampled_from([1, 25, 10**6])))
    assert filled(b"".join(part.content for part in parts)) == filled(text)
    for part in parts:
        assert part.before == text[: text.index(part.content)].count(b"\n")
    if kind in SENTENCES:
        with pytest.MonkeyPatch.context() as patch:
            (whole,) = cut(patch, text, kind, size=10**6)
        read = SENTENCES[kind]
        assert [example for part in parts for found in read(part) for example in found] == read(whole)[0]


def test_many_small_pieces(monkeypatch):
    """As many as there are examples, if a writer pauses after each."""
    text = TEXTS["columns"].encode()
    assert len(cut(monkeypatch, text, "columns", [len(b"The DT\nd\xc3\xb6g NN\n\n"), 1, 1000])) == 3
    lines = b'{"tokens": ["a"]}\n' * 3
    assert len(cut(monkeypatch, lines, "json_lines", [18, 18, 18])) == 3
    pairs = b"a ||| b\n\nc ||| d\n"
    assert [part.content for part in cut(monkeypatch, pairs, "parallel", [8, 1, 8])] == [
        b"a ||| b\n",
        b"\n",
        b"c ||| d\n",
    ]


def test_a_writer_that_waits_for_its_answer(tmp_path):
    """Through a real pipe: a sentence comes out before the next one goes in."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    answered, seen = threading.Event(), []

    def write():
        with open(path, "w") as pipe:
            for word in ("one", "two"):
                pipe.write(f"{word} X\n\n")
                pipe.flush()
                seen.append(answered.wait(10))
                answered.clear()

    writer = threading.Thread(target=write)
    writer.start()
    for k, part in enumerate(batches(path, lambda head: "columns")):
        assert read_columns(part).tokens == [[(("one", "two")[k],)]]
        answered.set()
    writer.join()
    assert seen == [True, True]


def test_plenty_comes_in_large_pieces(tmp_path):
    (tmp_path / "file").write_text("word X\n\n" * 500_000)
    sizes = [len(part.content) for part in batches(tmp_path / "file", lambda head: "columns")]
    assert sum(sizes) == 4_000_000
    assert len(sizes) <= 20


def test_other_encodings(monkeypatch):
    for encoding in ("latin-1", "utf-16", "cp1252"):
        content = "Ä X\n\né Y\n".encode(encoding)
        parts = cut(monkeypatch, content, "columns", [1, 3, 5, 1], encoding=encoding)
        assert b"".join(part.content for part in parts).decode() == "Ä X\n\né Y\n"
    with pytest.raises(DataFileError, match="standard input, line 2: this is not ascii text"):
        cut(monkeypatch, "A X\né Y\n".encode(), "columns", [4, 3], encoding="ascii")
    with pytest.raises(DataFileError, match="line 1: this is not utf-16 text"):
        cut(monkeypatch, "A".encode("utf-16")[:-1], "columns", encoding="utf-16")
    with pytest.raises(ValueError, match="unknown encoding 'klingon'"):
        cut(monkeypatch, b"A X\n", "columns", encoding="klingon")


def test_mistakes_are_named(monkeypatch, tmp_path):
    for content in (gzip.compress(b"word X\n" * 100)[:-9], gzip.compress(b"word X\n") + b"more"):
        with pytest.raises(DataFileError, match="standard input: the gzip file is damaged or incomplete"):
            cut(monkeypatch, content, "columns")
    with pytest.raises(FileNotFoundError, match="there is no data file"):
        list(batches(tmp_path / "nothing", lambda head: "columns"))
    (part,) = cut(monkeypatch, b"", "columns")
    assert part.content == b""  # its reader says so
