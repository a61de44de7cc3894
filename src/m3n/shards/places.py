"""Where packed data are: in a folder, or at a URL from which files are fetched as they are needed.

A place with ``://`` in its name is opened by fsspec, which knows s3, gs, hdfs, http and others. A file is fetched into
a folder of this machine, compared with its checksum, and only then gets its name there, which holds the checksum:
whoever finds it has all of it, and packed data that are replaced are fetched anew. Several processes may fetch the same
file.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from m3n.shards.arrays import PIECE, ShardError
from m3n.shards.contents import check_checksum, check_size
from m3n.shards.manifest import LARGEST, NAME, Manifest, parsed, read_manifest

Entry = dict[str, Any]
CACHE = "M3N_SHARD_CACHE"  # the variable that names the folder for fetched files


class Place(ABC):
    """Where packed data are.

    Parameters
    ----------
    name : str
        What messages call it.
    """

    def __init__(self, name: str):
        self.name = name

    @abstractmethod
    def manifest(self) -> Manifest:
        """The manifest, checked."""

    @abstractmethod
    def check_sizes(self, entries: Iterable[Entry]) -> None:
        """Refuse files that are missing, or have other sizes than a manifest says."""

    @abstractmethod
    def file(self, entry: Entry, first: bool) -> Path:
        """A file on this machine, of the right size; the first time its checksum is compared, too."""


class Folder(Place):
    """A folder of this machine.

    Parameters
    ----------
    path : Path
        The folder.
    """

    def __init__(self, path: Path):
        super().__init__(str(path.absolute()))
        self.path = path

    def manifest(self) -> Manifest:
        return read_manifest(self.path)

    def check_sizes(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            check_size(self.path / entry["file"], entry)

    def file(self, entry: Entry, first: bool) -> Path:
        path = self.path / entry["file"]
        check_size(path, entry)
        if first:
            check_checksum(path, entry)
        return path


class Remote(Place):
    """A folder at a URL.

    Parameters
    ----------
    url : str
        The URL.
    cache : Path
        The folder of this machine for what is fetched.
    """

    def __init__(self, url: str, cache: Path):
        super().__init__(url.rstrip("/"))
        try:
            import fsspec
        except ImportError:
            raise ImportError(f"{url} needs fsspec to be read: pip install 'm3n[ray]', or pip install fsspec") from None
        self._system, self._root = fsspec.core.url_to_fs(self.name)
        self._cache = cache / hashlib.blake2b(self.name.encode(), digest_size=8).hexdigest()

    def manifest(self) -> Manifest:
        where = f"{self.name}/{NAME}"
        try:
            with self._system.open(f"{self._root}/{NAME}", "rb") as file:
                if file.size is not None and file.size > LARGEST:
                    raise ShardError(f"{where} is larger than any manifest")
                return parsed(file.read(), where)
        except FileNotFoundError:
            raise ShardError(f"{where} is not there: packing did not come to its end, or this is no place of shards")\
                from None  # fmt: skip

    def check_sizes(self, entries: Iterable[Entry]) -> None:
        found = {item["name"].rsplit("/", 1)[-1]: item["size"] for item in self._system.ls(self._root, detail=True)}
        for entry in entries:
            size = found.get(entry["file"])
            if size != entry["bytes"]:
                said = "is missing" if size is None else f"has {size} bytes"
                raise ShardError(f"{self.name}/{entry['file']} {said}, the manifest says {entry['bytes']} bytes")

    def file(self, entry: Entry, first: bool) -> Path:
        path = self._cache / f"{entry['checksum']}-{entry['file']}"
        if first and path.exists():
            try:
                check_size(path, entry)
                check_checksum(path, entry)
            except ShardError:
                path.unlink()
        if not path.exists():
            self._fetch(entry, path)
        check_size(path, entry)
        return path

    def _fetch(self, entry: Entry, path: Path) -> None:
        """A copy of a file, which is whole or not there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{secrets.token_hex(4)}.part")
        try:
            with self._system.open(f"{self._root}/{entry['file']}", "rb") as source, part.open("xb") as target:
                while piece := source.read(PIECE):
                    target.write(piece)
                    if target.tell() > entry["bytes"]:
                        break
            check_size(part, entry)
            check_checksum(part, entry)
            part.replace(path)
        except FileNotFoundError:
            raise ShardError(f"{self.name}/{entry['file']} is missing, which the manifest names") from None
        except ShardError as error:
            raise ShardError(str(error).replace(str(part), f"{self.name}/{entry['file']}", 1)) from None
        finally:
            part.unlink(missing_ok=True)


def place_of(path: str | os.PathLike[str], cache: str | os.PathLike[str] | None = None) -> Place:
    """The place of packed data.

    Parameters
    ----------
    path : path or str
        A folder, or a URL.
    cache : path, optional
        A folder for files that are fetched. The default is what M3N_SHARD_CACHE names, else one of the user's.
    """
    name = os.fspath(path)
    return Remote(name, _cache_folder(cache)) if "://" in name else Folder(Path(name))


def _cache_folder(given: str | os.PathLike[str] | None) -> Path:
    named = given or os.environ.get(CACHE)
    if named:
        return Path(named)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "m3n" / "shards"
    except RuntimeError:  # a user without a home
        return Path(tempfile.gettempdir()) / "m3n-shards"
