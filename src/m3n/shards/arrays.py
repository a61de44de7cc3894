"""Files of arrays in the safetensors format: written piece by piece, mapped into memory when they are read.

    8 bytes     length of the header, little endian
    header      JSON: {"indices": {"dtype": "I32", "shape": [9], "data_offsets": [0, 36]}, ...}, blanks at its end
    arrays      one after another, without gaps, little endian

The library of that format copies every array that it reads, so the header is read here. Nothing is allocated before
the header has been compared with the size of the file: what it says may be anything. Mapped arrays take memory only
where they are looked at, and the system takes it back when it needs it. They can be written on, which changes nothing
in the file (copy on write): so compiled code sees arrays of the type that it knows.

Cost of reading: that of the header. Writing holds one piece at a time; arrays whose size is known at the end alone wait
in files of their own.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

TYPES = {"U8": "<u1", "BOOL": "|b1", "I32": "<i4", "I64": "<i8", "U64": "<u8", "F64": "<f8"}
CODES = {np.dtype(kind).str: code for code, kind in TYPES.items()}
LONGEST = 1 << 20  # bytes of a header: a few dozen arrays need 4 kB
PIECE = 1 << 18  # bytes that are read at a time
Arrays = dict[str, np.ndarray]


class ShardError(ValueError):
    """Packed data cannot be read; the message names the file and the remedy."""


class Entry(NamedTuple):
    """An array of a file.

    Attributes
    ----------
    dtype : dtype
        What it is made of.
    shape : tuple of int
        How many there are.
    begin, end : int
        Where it stands, in bytes from the beginning of the file.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


def mapped(path: Path) -> Arrays:
    """All arrays of a file, without reading them.

    Parameters
    ----------
    path : Path
        The file.
    """
    entries = layout(path)
    whole = np.memmap(path, np.uint8, "c") if any(entry.end > entry.begin for entry in entries.values()) else b""
    return {name: np.frombuffer(whole, e.dtype, math.prod(e.shape), e.begin).reshape(e.shape) if e.end > e.begin
            else np.empty(e.shape, e.dtype) for name, e in entries.items()}  # fmt: skip


def loaded(path: Path) -> Arrays:
    """All arrays of a file, read into memory.

    Parameters
    ----------
    path : Path
        The file.
    """
    entries = layout(path)
    return {
        name: np.fromfile(path, e.dtype, math.prod(e.shape), offset=e.begin).reshape(e.shape)
        for name, e in entries.items()
    }


def layout(path: Path) -> dict[str, Entry]:
    """Where the arrays of a file stand, after checking that they are in it.

    Parameters
    ----------
    path : Path
        The file.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(LONGEST, size - 8):
                raise ShardError(f"{path}: a header of {length} bytes in a file of {size}; {DAMAGED}")
            header = json.loads(file.read(length))
    except FileNotFoundError:
        raise ShardError(f"{path} is missing; {DAMAGED}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ShardError(f"{path}: its header is no JSON; {DAMAGED}") from None
    return _entries(path, header, 8 + length, size)


DAMAGED = "the file is damaged or from another packing; pack again"


def _entries(path: Path, header: Any, first: int, size: int) -> dict[str, Entry]:
    """The entries of a header, one after another, which fill the file."""
    try:
        named = {name: _entry(value, first) for name, value in header.items() if name != "__metadata__"}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ShardError(f"{path}: its header does not describe arrays; {DAMAGED}") from None
    place = first
    for name, entry in sorted(named.items(), key=lambda item: item[1].begin):
        if entry.begin != place or entry.end > size:
            raise ShardError(
                f"{path}: the array {name!r} is said to be at bytes {entry.begin} to {entry.end}, but it should begin "
                f"at {place} and the file has {size}; {DAMAGED}"
            )
        if math.prod(entry.shape) * entry.dtype.itemsize != entry.end - entry.begin:
            raise ShardError(
                f"{path}: the array {name!r} of shape {entry.shape} has {entry.end - entry.begin} bytes; {DAMAGED}"
            )
        place = entry.end
    if place != size:
        raise ShardError(f"{path} has {size} bytes, its arrays end at {place}; {DAMAGED}")
    return named


def _entry(value: Mapping[str, Any], first: int) -> Entry:
    """One entry; whatever is wrong with it is an error of Python's own kinds."""
    begin, end = value["data_offsets"]
    numbers = [*value["shape"], begin, end]
    if not all(type(number) is int and 0 <= number < 1 << 62 for number in numbers):
        raise ValueError("these are no sizes")
    dtype = np.dtype(TYPES[value["dtype"]])
    if (first + begin) % dtype.itemsize:
        raise ValueError("numbers stand where processors cannot read them")
    return Entry(dtype, tuple(value["shape"]), first + begin, first + end)


def checksum(path: Path) -> str:
    """What tells the content of a file from others.

    Parameters
    ----------
    path : Path
        The file.
    """
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


class GrowingArrays:
    """Arrays that grow at their ends, in files; then all of them in one file.

    Parameters
    ----------
    folder : Path
        Where the growing arrays wait.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._growing: dict[str, tuple[Path, np.dtype[Any], list[int]]] = {}

    def add(self, name: str, array: np.ndarray) -> None:
        """Some more entries, or rows, of an array.

        Parameters
        ----------
        name : str
            Its name.
        array : array
            The entries; of one kind and, but for their number, one shape.
        """
        if name not in self._growing:
            self._growing[name] = self.folder / f"{name}.growing", array.dtype, [0, *array.shape[1:]]
        path, dtype, shape = self._growing[name]
        assert array.dtype == dtype and list(array.shape[1:]) == shape[1:]
        with path.open("ab" if shape[0] else "wb") as file:
            np.ascontiguousarray(array).tofile(file)
        shape[0] += len(array)

    def size(self, name: str) -> int:
        """How many entries an array has.

        Parameters
        ----------
        name : str
            Its name.
        """
        return self._growing[name][2][0] if name in self._growing else 0

    def take(self, name: str) -> np.ndarray:
        """An array as it is in its file, which is removed.

        Parameters
        ----------
        name : str
            Its name.
        """
        if name not in self._growing:
            return np.empty(0)
        path, dtype, shape = self._growing.pop(name)
        found = np.fromfile(path, dtype).reshape(shape)
        path.unlink()
        return found

    def close(self, path: Path) -> dict[str, Any]:
        """Write the file; how many bytes it has, and its checksum.

        Parameters
        ----------
        path : Path
            Where to.
        """
        known = {name: (dtype, tuple(shape)) for name, (_, dtype, shape) in self._growing.items()}
        with path.open("wb") as file:
            digest = hashlib.blake2b(digest_size=16)
            _write(file, digest, _header(known))
            for name in _order(known):
                own = self._growing[name][0]
                with own.open("rb") as part:
                    while piece := part.read(PIECE):
                        _write(file, digest, piece)
                own.unlink()
            size = file.tell()
        self._growing.clear()
        return {"bytes": size, "checksum": digest.hexdigest()}


def save(path: Path, arrays: Arrays) -> dict[str, Any]:
    """Write arrays that are in memory; how many bytes the file has, and its checksum.

    Parameters
    ----------
    path : Path
        Where to.
    arrays : dict of arrays
        Arrays by their names.
    """
    digest = hashlib.blake2b(digest_size=16)
    known = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    with path.open("wb") as file:
        _write(file, digest, _header(known))
        for name in _order(known):
            _write(file, digest, np.ascontiguousarray(arrays[name]).data if arrays[name].size else b"")
        return {"bytes": file.tell(), "checksum": digest.hexdigest()}


def _write(file: IO[bytes], digest: Any, content: Any) -> None:
    file.write(content)
    digest.update(content)


def _order(known: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]) -> Iterable[str]:
    """Wide numbers first, so that all of them stand where processors read them best."""
    return sorted(known, key=lambda name: (-known[name][0].itemsize, name))


def _header(known: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]) -> bytes:
    """The length of the header and the header of arrays of these types and shapes."""
    place, entries = 0, dict[str, Any]()
    for name in _order(known):
        dtype, shape = known[name]
        end = place + math.prod(shape) * dtype.itemsize
        code = CODES[dtype.newbyteorder("<").str]
        entries[name] = {"dtype": code, "shape": list(shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
