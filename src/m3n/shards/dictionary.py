"""Which attributes there are, how often they occur, and which number each gets: counted on disk.

Every block gives a record per attribute: its key, how often it occurs there, and where it stood first. Sorted runs of
these are merged (``runs``), attributes that are too rare are left out, and the others get their numbers: texts by
falling frequency, then first appearance, so that what compiled code asks for most often stands side by side; attributes
of templates in the order that ``Templates`` gives them. What must be in memory are the keys of attributes that are kept
with their numbers.

Two attributes may have the same key of 64 bits, one pair among 600 million on average. Their second keys tell: then all
keys are made anew with another seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from m3n.packed.memory import give_back
from m3n.shards.arrays import GrowingArrays
from m3n.shards.names import Texts, cut
from m3n.shards.runs import Runs, starts_of

RECORD = np.dtype([("key", "<u8"), ("check", "<u8"), ("first", "<i8"), ("count", "<i8")])
EACH = 64  # bytes of memory that an attribute takes while they are numbered
TEXTS = 1 << 12  # at a time: more would not be faster


class Collision(Exception):
    """Two attributes have the same key."""


class Numbering(NamedTuple):
    """The numbers of attributes that are kept.

    Attributes
    ----------
    keys : array of uint64 (attributes,)
        Their keys, sorted.
    numbers : array of int32 (attributes,)
        The number of each.
    firsts : array of int (attributes,)
        By numbers: where each stood first, among the attributes of all blocks.
    """

    keys: np.ndarray
    numbers: np.ndarray
    firsts: np.ndarray

    def find(self, keys: np.ndarray) -> np.ndarray:
        """The numbers of these keys, -1 for attributes that are left out."""
        if not len(self.keys):
            return np.full(len(keys), -1, np.int32)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, self.numbers[places], np.int32(-1))


class Counts:
    """How often attributes occur in blocks.

    Parameters
    ----------
    path : Path
        What files are called, but for a number.
    memory : int
        Bytes that merging may take.
    """

    def __init__(self, path: Path, memory: int):
        self.runs = Runs(path, RECORD, _added_up, memory)
        self.begins = [0]  # where the attributes of each block begin, among those of all

    def add(self, keys: np.ndarray, counts: np.ndarray) -> None:
        """The attributes of one more block.

        Parameters
        ----------
        keys : array of uint64 (attributes, 2)
            Their keys.
        counts : array of int (attributes,)
            How often each occurs.
        """
        records = np.empty(len(keys), RECORD)
        records["key"], records["check"] = keys.T
        records["first"], records["count"] = self.begins[-1] + np.arange(len(keys)), counts
        own = records[np.argsort(records["key"], kind="stable")]
        self.runs.add(_added_up(own, starts_of(own["key"])))
        self.begins.append(self.begins[-1] + len(keys))

    def kept(self, least: int) -> Iterator[np.ndarray]:
        """Attributes that occur so often: a record for each, by their keys, some at a time.

        Parameters
        ----------
        least : int
            How often.
        """
        return (records[records["count"] >= least] for records in self.runs.merged())


def _added_up(records: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """A record for every attribute."""
    checks = records["check"]
    if (np.minimum.reduceat(checks, starts) != np.maximum.reduceat(checks, starts)).any():
        raise Collision
    found = records[starts]
    found["first"] = np.minimum.reduceat(records["first"], starts)
    found["count"] = np.add.reduceat(records["count"], starts)
    return found


def by_frequency(kept: Iterable[np.ndarray], most: int, folder: Path) -> Numbering:
    """Number attributes by falling frequency, then by first appearance.

    Parameters
    ----------
    kept : iterable of arrays
        Records, by their keys.
    most : int
        How many there may be.
    folder : Path
        Where records wait.
    """
    waiting = GrowingArrays(folder)
    for part in kept:
        for name in ("key", "first", "count"):
            waiting.add(name, part[name])
        if waiting.size("key") > most:
            raise TooMany(most)
    counts, firsts = waiting.take("count"), waiting.take("first")
    order = np.lexsort((firsts, np.negative(counts, out=counts)))
    del counts
    numbers = np.empty(len(order), np.int32)
    numbers[order] = np.arange(len(order), dtype=np.int32)
    return Numbering(waiting.take("key"), numbers, firsts[order])


class TooMany(Exception):
    """More attributes than memory has room for."""


def gathered(
    blocks: Sequence[Path], begins: Sequence[int], firsts: np.ndarray
) -> Iterator[tuple[np.ndarray, Path, np.ndarray]]:
    """Block by block the attributes that stood there first: their numbers, the block, and which of its own they are.

    Parameters
    ----------
    blocks : sequence of Path
        The files of all blocks.
    begins : sequence of int (blocks + 1,)
        Where the attributes of each begin.
    firsts : array of int
        By number: where attributes stood first.
    """
    order = np.argsort(firsts, kind="stable")
    edges = np.searchsorted(firsts[order], begins)
    for block, path in enumerate(blocks):
        which = order[edges[block] : edges[block + 1]]
        if len(which):
            yield which, path, firsts[which] - begins[block]


def write_texts(found: Iterable[tuple[np.ndarray, Texts]], count: int, names: GrowingArrays) -> None:
    """Write the texts of attributes in the order of their numbers.

    They come in the order in which they are found, wait in a file, and are picked from it by their numbers.

    Parameters
    ----------
    found : iterable of arrays of int and Texts
        Numbers of attributes, and their texts.
    count : int
        How many attributes there are.
    names : GrowingArrays
        Gets the arrays "letters" and "ends".
    """
    waiting, begins, lengths, place = (
        names.folder / "texts.waiting",
        np.zeros(count, np.int64),
        np.zeros(count, np.int32),
        0,
    )
    with waiting.open("wb") as file:
        for which, texts in found:
            texts.letters.tofile(file)
            begins[which], lengths[which] = place + texts.ends[:-1], np.diff(texts.ends)
            place += len(texts.letters)
    end = 0
    names.add("ends", np.zeros(1, np.int64))
    for low in range(0, count, TEXTS):
        first, sizes = begins[low : low + TEXTS], lengths[low : low + TEXTS].astype(np.int64)
        mapped = np.memmap(waiting, np.uint8, "r")  # anew, so that what has been looked at is no longer ours
        names.add("letters", Texts.joined(list(cut(mapped, first, first + sizes))).letters)
        names.add("ends", end + np.cumsum(sizes))
        end += int(sizes.sum())
    give_back()
    waiting.unlink()
