"""Files that are either whole or not there, and text files whose errors name the line."""

from __future__ import annotations

import codecs
import gzip
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

GZIP = b"\x1f\x8b"  # the first bytes of every gzip file, whatever its name


class DataFileError(ValueError):
    """A data file cannot be read; the message names the file, the line and the remedy."""

    @classmethod
    def at(cls, path: str | os.PathLike[str], line: int, what: str) -> DataFileError:
        """An error at a line of a file."""
        return cls(f"{os.fspath(path)}, line {line}: {what}")


def lines_of(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Numbered lines of a UTF-8 text file, unpacked if it is gzipped, without their line ends.

    Parameters
    ----------
    path : path
        The file.
    """
    name, number = Path(path), 0
    if not name.is_file():
        raise FileNotFoundError(f"there is no data file {os.fspath(path)!r}")
    with name.open("rb") as raw:
        packed = raw.read(2) == GZIP
    try:
        with gzip.open(name, "rb") if packed else name.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield number, line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise DataFileError.at(path, number, "this is not UTF-8 text; convert the file to UTF-8") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataFileError.at(path, number + 1, f"the gzip file is damaged or incomplete ({error})") from None


def text_of(path: str | os.PathLike[str]) -> bytes:
    """The whole of a UTF-8 text file, unpacked if it is gzipped, without a byte order mark; checked, but not decoded.

    Parameters
    ----------
    path : path
        The file.
    """
    try:
        content = Path(path).read_bytes()
        if content.startswith(GZIP):
            content = gzip.decompress(content)
        content.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        for _ in lines_of(path):  # slower, and says in which line it is
            pass
        raise
    return content.removeprefix(codecs.BOM_UTF8)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside its target and move it over: a crash leaves either the old file or the new one.

    Parameters
    ----------
    path : path
        Where to.
    content : bytes
        The whole file.
    """
    target = Path(path)
    check_writable(target)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
