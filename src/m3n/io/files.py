"""Files that are either whole or not there, and text files whose errors name the line.

The name ``-`` stands for standard input and output. Every reader of text takes its lines from ``lines_of`` or
``reading``, one by one, or the whole of a file from ``text_of``; all unpack gzip files, whatever their names are.
Inside of ``reading`` a reader only says what is wrong: the line is known.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import secrets
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

GZIP = b"\x1f\x8b"  # the first bytes of every gzip file, whatever its name
STANDARD = "-"


@dataclass(frozen=True)
class Held:
    """The content of a source that can be read only once, kept so that it can be read again.

    Attributes
    ----------
    name : str
        What messages call it.
    content : bytes
        All of it, still packed if it is a gzip file.
    before : int
        How many lines came before, if it is a part of a file.
    """

    name: str
    content: bytes
    before: int = 0


Source = str | os.PathLike[str] | Held


class DataFileError(ValueError):
    """A data file cannot be read; the message names the file, the line and the remedy."""

    @classmethod
    def at(cls, path: Source, line: int, what: str) -> DataFileError:
        """An error at a line of a file."""
        before = path.before if isinstance(path, Held) else 0
        return cls(f"{name_of(path)}, line {before + line}: {what}")

    @classmethod
    def empty(cls, path: Source, thing: str) -> DataFileError:
        """A file without a single one of what it should hold."""
        return cls(f"{name_of(path)} is empty: there is no {thing} in it")


def name_of(path: Source) -> str:
    """What messages call a file.

    Parameters
    ----------
    path : path
        The file, or ``-``.
    """
    if isinstance(path, Held):
        return path.name
    return "standard input" if os.fspath(path) == STANDARD else os.fspath(path)


def hold(path: Source) -> Source:
    """What can be read more than once: the path itself, or the content of standard input or of a pipe.

    Parameters
    ----------
    path : path
        The file, or ``-``.
    """
    if isinstance(path, Held) or Path(path).is_file():
        return path
    with _raw(path) as file:
        return Held(name_of(path), file.read())


def recoded(path: Source, encoding: str | None) -> Source:
    """A source in UTF-8: what is in another encoding is held.

    Parameters
    ----------
    path : path
        The file, or ``-``.
    encoding : str or None
        Its encoding, such as "latin-1"; None for UTF-8.
    """
    if encoding is None:
        return path
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ValueError(unknown_encoding(encoding)) from None
    with _raw(path) as file:
        found = file.read()
    content = gzip.decompress(found) if found.startswith(GZIP) else found
    try:
        return Held(name_of(path), content.decode(encoding).encode())
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataFileError.at(path, line, f"this is not {encoding} text; name another encoding") from None


def unknown_encoding(encoding: str) -> str:
    """What to say about an encoding that nobody knows.

    Parameters
    ----------
    encoding : str
        Its name.
    """
    return f"unknown encoding {encoding!r}; latin-1, cp1252, utf-16 and euc-jp are some"


def lines_of(path: Source) -> Iterator[tuple[int, str]]:
    """Numbered lines of a UTF-8 text file, unpacked if it is gzipped, without their line ends and a byte order mark.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    """
    number = 0
    with _raw(path) as raw:
        start = raw.peek(len(GZIP))[: len(GZIP)]
        packed = bool(start) and GZIP.startswith(start)
        file = gzip.GzipFile(fileobj=raw) if packed else raw
        try:
            for number, line in enumerate(cast(Iterable[bytes], file), start=1):
                mark = codecs.BOM_UTF8 if number == 1 else b""
                yield number, line.removeprefix(mark).decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise DataFileError.at(
                path, number, "this is not UTF-8 text; convert the file to UTF-8, or name its encoding"
            ) from None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataFileError.at(path, number + 1, f"the gzip file is damaged or incomplete ({error})") from None


@contextmanager
def reading(path: Source) -> Iterator[Iterator[str]]:
    """The lines of a text file as ``lines_of`` gives them; a ValueError inside of the block gets the file and the line.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    """
    number = 0

    def lines() -> Iterator[str]:
        nonlocal number
        for number, text in lines_of(path):  # noqa: B007 (the error below reads it)
            yield text

    try:
        yield lines()
    except DataFileError:
        raise
    except ValueError as error:
        raise DataFileError.at(path, number, str(error)) from None


def text_of(path: Source) -> bytes:
    """The whole of a UTF-8 text file, unpacked if it is gzipped, without a byte order mark; checked, but not decoded.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    """
    with _raw(path) as file:
        found = file.read()
    try:
        content = gzip.decompress(found) if found.startswith(GZIP) else found
        content.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        before = path.before if isinstance(path, Held) else 0
        for _ in lines_of(Held(name_of(path), found, before)):  # slower, and says in which line it is
            pass
        raise
    return content.removeprefix(codecs.BOM_UTF8)


def write_text(path: str | os.PathLike[str], pieces: Iterable[str]) -> None:
    """Write UTF-8 text atomically, or to standard output.

    Parameters
    ----------
    path : path
        Where to; packed by gzip if the name ends in ``.gz``. ``-`` is standard output.
    pieces : iterable of str
        The text, with its line ends.
    """
    content = "".join(pieces).encode()
    if os.fspath(path) == STANDARD:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    packed = os.fspath(path).endswith(".gz")
    write_atomically(path, gzip.compress(content, mtime=0) if packed else content)  # the same text, the same file


def write_pieces(path: str | os.PathLike[str], pieces: Iterable[str], encoding: str | None = None) -> None:
    """Write text as it comes: at once to standard output, or to a file that is either whole or not there.

    Parameters
    ----------
    path : path
        Where to; packed by gzip if the name ends in ``.gz``. ``-`` is standard output.
    pieces : iterable of str
        The text, with its line ends.
    encoding : str or None
        Its encoding; None for UTF-8.
    """
    encoder = codecs.getincrementalencoder(encoding or "utf-8")()
    if os.fspath(path) == STANDARD:
        sys.stdout.flush()
        for piece in pieces:
            sys.stdout.buffer.write(encoder.encode(piece))
            sys.stdout.buffer.flush()
        return
    with writing_atomically(path) as raw:
        packed = os.fspath(path).endswith(".gz")
        file = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if packed else raw  # the same text, the same file
        for piece in pieces:
            file.write(encoder.encode(piece))
        if packed:
            file.close()


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside its target and move it over: a crash leaves either the old file or the new one.

    Parameters
    ----------
    path : path
        Where to.
    content : bytes
        The whole file.
    """
    with writing_atomically(path) as file:
        file.write(content)


@contextmanager
def writing_atomically(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file beside its target, which is moved over it if the block ends well, and else removed.

    Parameters
    ----------
    path : path
        Where to.
    """
    target = Path(path)
    check_writable(target)
    temporary = target.with_name(f"{target.name}{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path to which no file can be written.

    Parameters
    ----------
    path : path
        Where a file is to be written later.
    """
    target = Path(path)
    folder = os.fspath(target.parent)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {os.fspath(path)!r}: the folder {folder!r} does not exist")
    if target.is_dir():
        raise IsADirectoryError(f"cannot write {os.fspath(path)!r}: this is a folder")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"cannot write {os.fspath(path)!r}: the folder {folder!r} does not allow it")


@contextmanager
def _raw(path: Source) -> Iterator[io.BufferedReader[Any]]:
    """The bytes of a source as they are stored; standard input stays open."""
    if isinstance(path, Held):
        yield io.BufferedReader(cast(io.RawIOBase, io.BytesIO(path.content)))
    elif os.fspath(path) == STANDARD:
        reader = io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer))
        try:
            yield reader
        finally:
            reader.detach()
    elif not Path(path).exists() or Path(path).is_dir():
        raise FileNotFoundError(f"there is no data file {os.fspath(path)!r}")
    else:
        with Path(path).open("rb") as file:
            yield file


def check_counts(X: Sequence[Any], y: Sequence[Sized] | None) -> None:
    """Refuse labels for more or fewer sequences than there are.

    Parameters
    ----------
    X : sequences
        Lists of tokens, or matrices with a row per token.
    y : sequences of labels, or None
        The labels, if there are any.
    """
    if y is not None and len(X) != len(y):
        raise ValueError(f"X has {len(X)} sequences but y has {len(y)}")


def check_lengths(X: Sequence[Any], y: Sequence[Sized] | None) -> None:
    """Refuse empty sequences, and labels that do not fit; X and y as in ``check_counts``."""
    check_counts(X, y)
    for i, sequence in enumerate(X):
        length = sequence.shape[0] if hasattr(sequence, "shape") else len(sequence)
        if not length:
            raise ValueError(f"sequence {i} is empty, which this format cannot say; leave it out")
        if y is not None and len(y[i]) != length:
            raise ValueError(f"sequence {i} has {length} positions in X but {len(y[i])} labels in y")
