"""Packing: blocks of sequences become shards with one numbering of attributes and labels, in memory that is bounded.

1. Every block is written as it comes, with attributes that it numbers by itself (``Packer.add``).
2. The attributes of all blocks are counted, rare ones are left out, the others get their numbers (``numbering``).
3. Every block is read again, its attributes get their final numbers, shards are cut, and the block is removed.
4. The files are moved to where they belong, the manifest last.

Everything happens in a folder of its own inside of the target, which is removed at the end, whatever happens.
"""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from m3n.features import Templates
from m3n.packed.memory import give_back
from m3n.shards.arrays import GrowingArrays
from m3n.shards.blocks import Block, Rows
from m3n.shards.labels import GrowingLabels, joint_labels
from m3n.shards.manifest import NAME, NAMES, TABLES, Manifest, read_manifest
from m3n.shards.numbering import Dictionary, Plan
from m3n.shards.observed import Seen
from m3n.shards.writer import Packed, ShardWriter

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
SHARE = 8  # of the memory, for what is merged at a time
SHARD = 64_000_000  # bytes, usually


@dataclass(frozen=True)
class Packing:
    """How to pack.

    Attributes
    ----------
    kind : {"attributes", "columns", "dense", "sparse"}
        What sequences are made of.
    min_freq : int
        Attributes that occur less often are left out.
    hash_bits : int or None
        Attributes are numbered by so many bits of their hash, instead of by a dictionary.
    memory : int
        Bytes that packing may take.
    shard_size : int or None
        Bytes of a shard; None: 64 MB, but not more than a quarter of the memory.
    templates : Templates or None
        What makes attributes of columns.
    columns : int
        How many columns there are.
    delimiter : str
        What separates them.
    """

    kind: str
    min_freq: int = 1
    hash_bits: int | None = None
    memory: int = 10**9
    shard_size: int | None = None
    templates: Templates | None = None
    columns: int = 0
    delimiter: str = " "

    @property
    def named(self) -> bool:
        """Whether there is a dictionary."""
        return self.kind in ("attributes", "columns") and self.hash_bits is None

    def settings(self) -> dict[str, Any]:
        """What a manifest says about how attributes are made."""
        made = self.templates
        return {
            "min_freq": self.min_freq,
            "hash_bits": self.hash_bits,
            "separator": None,
            "templates": made and {"patterns": list(made.patterns), "padding": made.padding, "syntax": made.syntax},
            "columns": self.columns,
            "delimiter": self.delimiter,
        }


class Given(NamedTuple):
    """Some sequences as they are given to be packed.

    Attributes
    ----------
    rows, pairs : Rows
        As in ``Block``.
    lengths : array of int (sequences,)
        Positions of every sequence; none is 0.
    labels : list
        Labels of all positions.
    weights : array (sequences,) or None
        How often every sequence counts.
    which : array of int (sequences,)
        The number of every sequence in the input.
    """

    rows: Rows
    pairs: Rows | None
    lengths: np.ndarray
    labels: list[Any]
    weights: np.ndarray | None
    which: np.ndarray


class Packer:
    """Writes packed data; a context that cleans up.

    Parameters
    ----------
    path : Path
        Where to: a folder that is empty or not there.
    force : bool
        Whether packed data that are there may be replaced.
    tell : callable, optional
        Called with what is being done and how much of it is done, from 0 to 1.
    """

    def __init__(self, path: Path, force: bool = False, tell: Callable[[str, float], None] | None = None):
        self.path, self.force = path, force
        self.labels, self.dropped = GrowingLabels(), {"empty": 0, "weightless": 0}
        self.positions = 0
        self._tell = tell
        self._blocks = list[Path]()
        self._widths = [0, 0]
        self._weight, self._weighted, self._paired = 0.0, False, False

    def __enter__(self) -> Self:
        check_target(self.path, self.force)
        self._new = not self.path.exists()
        self.folder = self.path / f".packing-{secrets.token_hex(4)}"
        self.folder.mkdir(parents=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if kind is not None and self._new:
            shutil.rmtree(self.path, ignore_errors=True)

    def add(self, given: Given) -> None:
        """Some more sequences.

        Parameters
        ----------
        given : Given
            The sequences.
        """
        codes = self.labels.add(given.labels, given.lengths, given.which)
        path = self.folder / f"block-{len(self._blocks):06d}"
        Block(given.rows, given.pairs, given.lengths, codes, given.weights).save(path)
        self._blocks.append(path)
        self.positions += len(codes)
        self._weighted |= given.weights is not None
        self._weight += len(given.lengths) if given.weights is None else float(given.weights.sum())
        self._paired |= given.pairs is not None
        for k, rows in enumerate((given.rows, given.pairs)):
            self._widths[k] = max(self._widths[k], 0 if rows is None else rows.matrix.shape[1])

    def finish(self, packing: Packing) -> None:
        """Write the shards of what was added.

        Parameters
        ----------
        packing : Packing
            How.
        """
        if not self._blocks:
            raise ValueError("there is nothing to pack: no sequence that is not empty has a weight")
        classes, counts, rank, transitions = self.labels.settled()
        plans, files = self._plans(packing)
        names, part = ("observed", "observed_pairs")[: 1 + self._paired], packing.memory // SHARE
        seen = [Seen(self.folder / name, len(classes) ** (1 + k), part) for k, name in enumerate(names)]
        writer = ShardWriter(self.folder, packing.shard_size or min(SHARD, packing.memory // 4))
        for packed in self._final(plans, rank):
            seen[0].add(packed.matrix, packed.labels)
            if packed.pairs is not None:
                seen[1].add(packed.pairs, joint_labels(packed.labels, packed.lengths, len(classes)))
            writer.add(packed)
        writer.close()
        tables = GrowingArrays(self.folder)
        for name, array in transitions.arrays().items():
            tables.add(name, array)
        for own, name in zip(seen, names, strict=True):
            own.write(tables, name)
        files.append({"file": TABLES} | tables.close(self.folder / TABLES))
        manifest = Manifest(
            packing.kind, plans[0].width, plans[1].width if self._paired else None, classes.tolist(), counts.tolist(),
            self._weight, self._weighted, writer.written, files, packing.settings(), self.dropped,
        )  # fmt: skip
        self._move(manifest)

    def _plans(self, packing: Packing) -> tuple[list[Plan], list[dict[str, Any]]]:
        """How columns of positions and of pairs are numbered, and the file with their names if they have some."""
        if not packing.named:
            return [Plan(width) for width in self._widths], []
        self._say("counting attributes", 0.0)
        dictionary = Dictionary(self.folder, self._blocks, self._paired, packing.memory)
        plans, arrays = dictionary.plans(packing.min_freq), GrowingArrays(self.folder)
        if packing.templates is None:
            dictionary.write_texts(plans[0], arrays)
        else:
            plans = dictionary.learn(packing.templates, plans, arrays)
        return plans, [{"file": NAMES} | arrays.close(self.folder / NAMES)]

    def _final(self, plans: list[Plan], rank: np.ndarray) -> Any:
        """All blocks with their final numbers; each is removed when it has been read."""
        for k, path in enumerate(self._blocks):
            self._say("writing shards", k / len(self._blocks))
            block = Block.load(path)
            path.unlink()
            weights = np.ones(len(block.lengths)) if self._weighted and block.weights is None else block.weights
            pairs = None if block.pairs is None else plans[1].apply(block.pairs)
            yield Packed(plans[0].apply(block.rows), block.lengths, rank[block.labels], weights, pairs)
            del block, weights, pairs
            give_back()

    def _say(self, phase: str, share: float) -> None:
        if self._tell is not None:
            self._tell(phase, share)

    def _move(self, manifest: Manifest) -> None:
        """Put the files in their place: from the old manifest's end to that of the new one, the folder has none."""
        remove_packed(self.path)
        for entry in manifest.files:
            (self.folder / entry["file"]).replace(self.path / entry["file"])
        manifest.write(self.path)


def check_target(path: Path, force: bool) -> None:
    """Refuse a folder in which there is something else than packed data that may be replaced.

    Parameters
    ----------
    path : Path
        Where to pack.
    force : bool
        Whether packed data that are there may be replaced.
    """
    if URL.match(str(path)):
        raise ValueError(f"cannot pack to the URL {str(path)!r}: pack into a folder, and copy that")
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file; choose a folder")
    if not path.exists() and not path.parent.is_dir():
        raise FileNotFoundError(f"cannot make {str(path)!r}: the folder {str(path.parent)!r} does not exist")
    if not path.exists() or not any(path.iterdir()):
        return
    if not force:
        raise FileExistsError(f"the folder {str(path)!r} is not empty; choose another one, or replace it (--force)")
    try:
        read_manifest(path)
    except ValueError as error:
        raise FileExistsError(
            f"the folder {str(path)!r} is not empty, and what is in it cannot be replaced: {error}"
        ) from None


def remove_packed(path: Path) -> None:
    """Remove packed data from a folder, the manifest first; other files stay.

    Parameters
    ----------
    path : Path
        The folder.
    """
    if (path / NAME).is_file():
        old = read_manifest(path)
        (path / NAME).unlink()
        for entry in old.files:
            (path / entry["file"]).unlink(missing_ok=True)
