"""A problem of this process as shards on disk, for workers elsewhere.

Every shard is one file: what is to be known of its objects, pickled, and behind it their arrays, which readers map into
memory and share. The files are made and read by one run and are gone with it; they are nothing to keep, or to give to
others: that is what ``m3n.shards`` are for.
"""

from __future__ import annotations

import mmap
import pickle
import struct
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from m3n.io.folders import temporary_folder
from m3n.packed.ragged import batches
from m3n.problem.problem import Problem
from m3n.problem.sources import Data, Source

MOST = 1 << 23  # scores of a shard, 64 MB of them
PAGE = 64  # bytes that arrays are aligned to
HEAD = struct.Struct("<QQ")  # sizes of the pickle and of the list of buffers


class Spooled(Source):
    """A problem in files of this run.

    Parameters
    ----------
    problem : Problem
        The data.
    lanes : int
        How many lanes there will be.
    folder : path or None
        Where to put the files, in a folder of their own; every worker must see it. None takes a temporary one.
    """

    def __init__(self, problem: Problem, lanes: int, folder: str | Path | None = None):
        if not problem.features.euclidean:
            raise TypeError(
                f"{type(problem.features).__name__} has an inner product of its own, which workers elsewhere cannot "
                'compute in parts: train on threads, or take features of the kernel, such as approximation="nystroem"'
            )
        self.dim, self.weight_sum, self.temperature = problem.dim, problem.weight_sum, problem.temperature
        self.rescale, self.name, self.relaxed = problem.rescale, problem.name, problem.relaxed
        self.oracles = problem.whole.oracles
        self.folder, self._removed = temporary_folder(self, folder)
        scores = problem.structure.layout.lengths.sum(axis=0)
        ends = np.cumsum(scores)
        cuts = np.searchsorted(ends, ends[-1] * np.arange(1, lanes) / lanes) + 1
        self.edges = np.unique([0, *np.minimum(cuts, problem.n).tolist(), problem.n])
        bounds = [
            (low + first, low + last)
            for low, high in pairwise(self.edges.tolist())
            for first, last in batches(scores[low:high], MOST)
        ]
        self.sizes = np.array([high - low for low, high in bounds])
        self.work = np.array([float(scores[low:high].sum()) for low, high in bounds])
        self.held = np.array([self._write(problem, k, *bound) for k, bound in enumerate(bounds)], dtype=np.float64)
        self.held += 8.0 * self.work  # scores of those that are not cut into pieces

    def open(self, shard: int) -> Data:
        """The examples of a shard, mapped from its file."""
        return Data(*_read(self._path(shard)))

    def parts(self) -> Mapping[str, str]:
        """The problem is compared as such."""
        return {}

    def close(self) -> None:
        """Remove the files."""
        self._removed()

    def __getstate__(self) -> dict[str, Any]:
        """What workers are told: the files are not theirs."""
        return {name: value for name, value in vars(self).items() if name != "_removed"}

    def _path(self, shard: int) -> Path:
        return self.folder / f"shard-{shard:05d}"

    def _write(self, problem: Problem, shard: int, low: int, high: int) -> int:
        part = problem.whole.over(np.arange(low, high))
        return _write(self._path(shard), (part.structure, part.features, part.cost, part.gold, part.weights))


def _write(path: Path, things: Any) -> int:
    """Pickle things with their arrays behind them; the size of the file."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickled(things, buffers)
    sizes = np.array([buffer.raw().nbytes for buffer in buffers], np.int64).tobytes()
    with open(path, "wb") as file:
        file.write(HEAD.pack(len(head), len(sizes)) + head + sizes)
        for buffer in buffers:
            file.write(bytes(-file.tell() % PAGE))
            file.write(buffer.raw())
        return file.tell()


def pickled(thing: Any, buffers: list[pickle.PickleBuffer]) -> bytes:
    """Anything as bytes and the memory of its arrays; classes of ``__main__`` go along, if cloudpickle is there.

    Parameters
    ----------
    thing : object
        What can be pickled.
    buffers : list
        Gets the memory of arrays.
    """
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    return cloudpickle.dumps(thing, protocol=5, buffer_callback=buffers.append)


def _read(path: Path) -> Any:
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)  # compiled code knows arrays that can be written
    head, sizes = HEAD.unpack_from(mapped)
    at = HEAD.size + head
    whole, buffers = memoryview(mapped), []
    counts = np.frombuffer(mapped, np.int64, sizes // 8, at).tolist()
    at += sizes
    for count in counts:
        at += -at % PAGE
        buffers.append(whole[at : at + count])
        at += count
    return pickle.loads(whole[HEAD.size : HEAD.size + head], buffers=buffers)
