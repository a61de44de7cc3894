"""Data that are read piece by piece: files of any size, and pipes whose writers wait for answers.

``batches`` cuts the text of a source between examples, so that the readers of whole files read the pieces one after
another. As long as more is there at once, a batch grows to about 256 kB; where a writer pauses, what is complete
goes on its way. Examples end

    blank   at an empty line
    line    with their line; empty ones do not count
    pair    the same, but they do: a line that is missing would shift all answers
    tree    where all brackets are closed
    group   where a line belongs to another sequence than the one before: SVM-hmm, letter.data
"""

from __future__ import annotations

import codecs
import io
import os
import re
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from m3n.io.files import GZIP, STANDARD, DataFileError, Held, name_of, unknown_encoding

READ = 1 << 16  # bytes that are asked for at a time
SIZE = 1 << 18  # of a batch, about
SEQUENCE = re.compile(rb"\S+\s+(qid:\d+)")
ENDS = {  # of examples, by formats
    "columns": "blank", "attributes": "blank", "conllu": "blank", "json_lines": "line", "svmlight": "line",
    "parallel": "pair", "text": "line", "brackets": "tree", "svm_hmm": "group", "letters": "group",
}  # fmt: skip


def batches(
    path: str | os.PathLike[str], format_of: Callable[[Held], str], encoding: str | None = None, size: int = SIZE
) -> Iterator[Held]:
    """The content of a source in pieces of whole examples.

    Parameters
    ----------
    path : path
        The file, which may be gzipped, or ``-``.
    format_of : callable
        From the first lines to the name of the format; called once.
    encoding : str or None
        The encoding of the source; None for UTF-8. The pieces are UTF-8.
    size : int
        About how many bytes a piece has, if they are there at once.
    """
    name, pending, lines, ends = name_of(path), b"", 0, ""
    for piece, more in _text(path, encoding):
        pending += piece
        if more and len(pending) < size:
            continue
        if not ends:
            head = pending[: pending.rfind(b"\n") + 1]
            if not _tells(head):
                continue
            ends = ENDS[format_of(Held(name, head))]
        end = CUTS[ends](pending)
        if pending[:end].strip() or (end and ends == "pair"):
            yield Held(name, pending[:end], lines)
        lines += pending.count(b"\n", 0, end)
        pending = pending[end:]
    if pending.strip() or not ends:
        if not ends:
            format_of(Held(name, pending))
        yield Held(name, pending, lines)


def _tells(text: bytes) -> bool:
    """Whether there is a line that is no comment, so that the format can be told."""
    return any(line.strip() and not line.startswith(b"#") for line in text.split(b"\n"))


def _text(path: str | os.PathLike[str], encoding: str | None) -> Iterator[tuple[bytes, bool]]:
    """Unpacked UTF-8, and whether more of it is there already."""
    decode, lines = _decoding(path, encoding), 1
    for piece, more in _unpacked(path):
        text = decode(piece, lines)
        lines += text.count(b"\n")
        yield text, more
    yield decode(b"", lines), True


def _decoding(path: str | os.PathLike[str], encoding: str | None) -> Callable[[bytes, int], bytes]:
    """What makes UTF-8 of further bytes, which begin in some line; none are the end."""
    if encoding is None:
        return lambda piece, line: piece
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise ValueError(unknown_encoding(encoding)) from None

    def decode(piece: bytes, line: int) -> bytes:
        try:
            return decoder.decode(piece, final=not piece).encode()
        except UnicodeDecodeError as error:
            place = line + piece.count(b"\n", 0, error.start)
            raise DataFileError.at(path, place, f"this is not {encoding} text; name another encoding") from None

    return decode


def _unpacked(path: str | os.PathLike[str]) -> Iterator[tuple[bytes, bool]]:
    """What a source holds, unpacked if it is a gzip file."""
    start, packed = b"", None
    unpack = _Gzip(path)
    for piece, more in _raw(path):
        start += piece
        if packed is None:
            if len(start) < len(GZIP) and GZIP.startswith(start):
                continue  # too little to tell
            packed = start.startswith(GZIP)
        yield unpack.add(start) if packed else start, more
        start = b""
    if start:
        yield start, True
    if packed:
        unpack.close()


class _Gzip:
    """Unpacks gzip files piece by piece; they may have several parts."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = path
        self.part: Any = None

    def add(self, piece: bytes) -> bytes:
        """The text of a further piece."""
        found = []
        while piece if self.part else piece.strip(b"\0"):  # some writers fill up their last block
            part = self.part or zlib.decompressobj(wbits=31)
            try:
                found.append(part.decompress(piece))
            except zlib.error as error:
                raise self._damaged(str(error)) from None
            piece, self.part = part.unused_data, None if part.eof else part
        return b"".join(found)

    def close(self) -> None:
        """Refuse a file that has no end."""
        if self.part is not None:
            raise self._damaged("its end is missing")

    def _damaged(self, why: str) -> DataFileError:
        return DataFileError(f"{name_of(self.path)}: the gzip file is damaged or incomplete ({why})")


def _raw(path: str | os.PathLike[str]) -> Iterator[tuple[bytes, bool]]:
    """Bytes as they arrive, and whether more of them can be read at once."""
    with _opened(path) as file:
        ready = _readiness(file)
        while piece := file.read1(READ):
            yield piece, ready()


def _opened(path: str | os.PathLike[str]) -> AbstractContextManager[Any]:
    if os.fspath(path) == STANDARD:
        return nullcontext(sys.stdin.buffer)
    if not Path(path).exists() or Path(path).is_dir():
        raise FileNotFoundError(f"there is no data file {os.fspath(path)!r}")
    return Path(path).open("rb")


def _readiness(file: Any) -> Callable[[], bool]:
    """What tells whether a file can be read without waiting; one on disk always can."""
    try:
        number = file.fileno()
    except (AttributeError, io.UnsupportedOperation):  # in memory
        return lambda: True
    if stat.S_ISREG(os.fstat(number).st_mode):
        return lambda: True

    def ready() -> bool:
        try:
            return bool(select.select([number], [], [], 0)[0])
        except (OSError, ValueError):  # a system that cannot tell
            return False

    return ready


def _after_blank(text: bytes) -> int:
    """The place behind the last empty line."""
    end = text.rfind(b"\n")
    while end >= 0:
        before = text.rfind(b"\n", 0, end)
        if not text[before + 1 : end].strip():
            return end + 1
        end = before
    return 0


def _after_line(text: bytes) -> int:
    """The place behind the last line that is complete."""
    return text.rfind(b"\n") + 1


def _after_tree(text: bytes) -> int:
    """The place behind the last line at whose end all brackets are closed."""
    depth = end = place = 0
    for line in text.splitlines(keepends=True):
        depth += line.count(b"(") - line.count(b")")
        place += len(line)
        end = place if depth == 0 and line.endswith(b"\n") else end
    return end


def _before_group(text: bytes) -> int:
    """The place at which the last sequence begins; behind it if an empty line ends it."""
    end = _after_line(text)
    last, start = None, end
    while start > 0:
        before = text.rfind(b"\n", 0, start - 1) + 1
        line = text[before:start]
        group = _group(line)
        if not line.strip() and last is None:
            return start
        if group is not None and last is not None and group != last:
            return start
        last = group or last
        start = before
    return 0


def _group(line: bytes) -> bytes | None:
    """What names the sequence of a line of SVM-hmm or of ``letter.data``; nothing in a comment."""
    found = SEQUENCE.match(line)
    if found:
        return found[1]
    fields = line.split(b"\t", 4)
    return fields[3] if len(fields) > 4 else None


CUTS: dict[str, Callable[[bytes], int]] = {
    "blank": _after_blank, "line": _after_line, "pair": _after_line, "tree": _after_tree, "group": _before_group,
}  # fmt: skip
