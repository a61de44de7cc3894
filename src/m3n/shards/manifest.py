"""The manifest of packed data: what there is, file by file, with sizes and checksums; written last, in one step.

A folder without a manifest is no packed data: packing has not come to its end. What the manifest says is compared with
itself and with the files before anything is opened.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from types import NoneType
from typing import Any

import m3n
from m3n.io.files import write_atomically
from m3n.shards.arrays import ShardError

NAME = "manifest.json"
FORMAT = "m3n shards"
VERSION = 1
LARGEST = 1 << 28  # bytes of a manifest: a million shards have that
FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")  # names that stay in the folder
KINDS = ("attributes", "columns", "dense", "sparse")
TABLES, NAMES = "tables.safetensors", "attributes.safetensors"
SETTINGS: dict[str, Any] = {
    "min_freq": int, "hash_bits": (int, NoneType), "separator": (str, NoneType), "templates": (dict, NoneType),
    "columns": int, "delimiter": str,
}  # fmt: skip
COUNTS = ("sequences", "positions", "entries", "pair_entries")


@dataclass(frozen=True)
class Manifest:
    """What packed data consist of.

    Attributes
    ----------
    kind : str
        What sequences were made of.
    width : int
        Attributes of a position.
    pair_width : int or None
        Attributes of a pair of positions.
    classes : list
        The labels, sorted.
    label_counts : list of int
        How often each occurs.
    total_weight : float
        The sum of the weights of sequences.
    weighted : bool
        Whether sequences have weights.
    shards : list of dict
        File, bytes, checksum and counts of every shard.
    tables : list of dict
        File, bytes and checksum of what belongs to all shards.
    settings : dict
        How attributes were made: min_freq, hash_bits, separator, templates, columns, delimiter.
    dropped : dict
        How many sequences were left out, as they were empty or had no weight.
    """

    kind: str
    width: int
    pair_width: int | None
    classes: list[Any]
    label_counts: list[int]
    total_weight: float
    weighted: bool
    shards: list[dict[str, Any]]
    tables: list[dict[str, Any]]
    settings: dict[str, Any] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def files(self) -> list[dict[str, Any]]:
        """All files but the manifest."""
        return [*self.shards, *self.tables]

    @property
    def named(self) -> bool:
        """Whether attributes have names."""
        return self.kind in ("attributes", "columns") and self.settings["hash_bits"] is None

    @property
    def digest(self) -> str:
        """What tells these data from others."""
        known = [self.kind, self.width, self.classes, [entry["checksum"] for entry in self.files]]
        return hashlib.blake2b(json.dumps(known).encode(), digest_size=16).hexdigest()

    def count(self, name: str) -> int:
        """How many there are in all shards.

        Parameters
        ----------
        name : str
            "sequences", "positions", "entries", "pair_entries" or "bytes".
        """
        return sum(shard[name] for shard in self.shards)

    def write(self, folder: Path) -> None:
        """Write the manifest in one step.

        Parameters
        ----------
        folder : Path
            The folder of the shards.
        """
        known = {"format": FORMAT, "version": VERSION, "m3n": m3n.__version__} | asdict(self)
        write_atomically(folder / NAME, json.dumps(known, indent=1, allow_nan=False).encode())


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder, after checking that it says what a manifest says.

    Parameters
    ----------
    folder : Path
        The folder of the shards.
    """
    path = folder / NAME
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {str(folder)!r}")
    if not path.is_file():
        raise ShardError(
            f"{folder} holds no {NAME}: packing did not come to its end, or this is no folder of shards; pack again"
        )
    if path.stat().st_size > LARGEST:
        raise ShardError(f"{path} is larger than any manifest; pack again")
    return parsed(path.read_bytes(), str(path))


def parsed(content: bytes, path: str) -> Manifest:
    """A manifest, after checking that it says what a manifest says.

    Parameters
    ----------
    content : bytes
        The whole file.
    path : str
        What messages call it.
    """
    try:
        known = json.loads(content)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ShardError(f"{path} is no JSON: it is damaged; pack again") from None
    if not isinstance(known, dict) or known.pop("format", None) != FORMAT:
        raise ShardError(f"{path} is no manifest of shards")
    version, made = known.pop("version", None), known.pop("m3n", "?")
    if version != VERSION:
        raise ShardError(
            f"{path} has format version {version} (m3n {made}), this m3n ({m3n.__version__}) reads {VERSION}: pack "
            "again, or install the other version"
        )
    try:
        manifest = Manifest(**known)
        _check(manifest)
    except (KeyError, TypeError, ValueError) as error:
        raise ShardError(f"{path}: {error}; it is damaged, pack again") from None
    return manifest


def _check(manifest: Manifest) -> None:
    """Refuse what cannot be, with words about what it is."""
    _require(manifest.kind in KINDS, f"kind is {manifest.kind!r}, not one of {KINDS}")
    _check_labels(manifest.classes, manifest.label_counts)
    _require(_is_count(manifest.width), f"width is {manifest.width!r}")
    _require(manifest.pair_width is None or _is_count(manifest.pair_width), f"pair_width is {manifest.pair_width!r}")
    _require(type(manifest.weighted) is bool, f"weighted is {manifest.weighted!r}")
    total = manifest.total_weight
    _require(isinstance(total, (int, float)) and 0 < total < float("inf"), f"total_weight is {total!r}")
    _check_settings(manifest.settings)
    _require(isinstance(manifest.dropped, dict), "dropped is missing")
    _require(len(manifest.shards) > 0, "there is no shard")
    for entry in manifest.files:
        name = entry["file"]
        _require(isinstance(name, str) and FILE.fullmatch(name) is not None, f"{name!r} is no file of this folder")
        _require(_is_count(entry["bytes"]), f"{name} has {entry['bytes']!r} bytes")
        _require(isinstance(entry["checksum"], str), f"{name} has no checksum")
    for shard in manifest.shards:
        for name in COUNTS:
            _require(_is_count(shard[name]), f"{shard['file']} has {shard[name]!r} {name}")
    names = [entry["file"] for entry in manifest.files]
    _require(len(set(names)) == len(names), "a file is named twice")
    for name in (TABLES, NAMES)[: 1 + manifest.named]:
        _require(name in names, f"{name} is not named")
    counted = sum(manifest.label_counts)
    _require(counted == manifest.count("positions"), f"{counted} labels at {manifest.count('positions')} positions")


def _check_settings(settings: Any) -> None:
    known = isinstance(settings, dict) and all(
        name in settings and isinstance(settings[name], kind) for name, kind in SETTINGS.items()
    )
    _require(known, "settings are missing, or of other types")
    made = settings["templates"]
    _require(made is None or set(made) == {"patterns", "padding", "syntax"}, "templates are no templates")


def _check_labels(classes: Any, counts: Any) -> None:
    _require(isinstance(classes, list) and len(classes) > 0, "there are no labels")
    _require(len({isinstance(label, str) for label in classes}) == 1, "labels are texts and numbers")
    _require(all(isinstance(label, (str, int, float)) for label in classes), "labels are neither texts nor numbers")
    _require(all(a < b for a, b in pairwise(classes)), "labels are not sorted")
    _require(isinstance(counts, list) and len(counts) == len(classes), "label_counts are not as many as classes")
    _require(all(map(_is_count, counts)), "label_counts are no counts")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)


def _is_count(number: Any) -> bool:
    return type(number) is int and 0 <= number < 1 << 62
