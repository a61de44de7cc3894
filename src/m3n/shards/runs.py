"""Sorted runs of records on disk, merged in the memory that there is.

Whatever comes block by block and must be counted (attributes, pairs of an attribute and a label) is sorted within each
block and written as a run. Merging takes ranges of keys one after another: the boundaries are quantiles of a sample of
all runs, so that the records of a range fit into memory; they are read from each run, where they stand side by side,
sorted together, and those with the same key become one. Whenever there are many runs of about one size they are merged
to a larger one: so there are never many, and what comes again and again is kept once.

Every record is read and written once for each factor of 32 by which its run has grown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MANY = 32  # runs of a size
SAMPLES = 64  # of every range
COPIES = 6  # of a range that sorting and counting hold
Reduce = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Run(NamedTuple):
    """A run in a file.

    Attributes
    ----------
    path : Path
        The file.
    size : int
        How many records it has.
    """

    path: Path
    size: int


class Runs:
    """Records in sorted runs.

    Parameters
    ----------
    path : Path
        What their files are called, but for a number.
    dtype : dtype
        Of a record, with the field "key".
    reduce : callable
        From sorted records, and where each distinct key begins in them, to a record for every key.
    memory : int
        How many bytes merging may take.
    """

    def __init__(self, path: Path, dtype: Any, reduce: Reduce, memory: int):
        self.path, self.dtype, self.memory = path, np.dtype(dtype), memory
        self._reduce, self._made = reduce, 0
        self._tiers: list[list[Run]] = [[]]  # runs of which each was made of MANY of the tier before

    def add(self, records: np.ndarray) -> None:
        """One more run.

        Parameters
        ----------
        records : array
            The records, in any order.
        """
        if not len(records):
            return
        self._tiers[0].append(self._written([records[np.argsort(records["key"], kind="stable")]]))
        for k, tier in enumerate(self._tiers):
            if len(tier) < MANY:
                break
            if k + 1 == len(self._tiers):
                self._tiers.append([])
            self._tiers[k + 1].append(self._written(self._merged(tier)))
            tier.clear()

    def merged(self) -> Iterator[np.ndarray]:
        """A record for every key, by the keys, those of a range of keys at a time; the runs are removed."""
        return self._merged([run for tier in self._tiers for run in tier])

    def _merged(self, runs: list[Run]) -> Iterator[np.ndarray]:
        bounds = self._bounds(runs)
        for k in range(bounds.shape[1] - 1):
            pieces = [self._piece(run, *bounds[r, k : k + 2].tolist()) for r, run in enumerate(runs)]
            records = np.concatenate(pieces)
            del pieces
            records = records[np.argsort(records["key"], kind="stable")]
            if len(records):
                yield self._reduce(records, starts_of(records["key"]))
        for run in runs:
            run.path.unlink()

    def _written(self, parts: Any) -> Run:
        """A run of parts that come one after another."""
        path, size = self.path.with_name(f"{self.path.name}-{self._made}.run"), 0
        self._made += 1
        with path.open("wb") as file:
            for part in parts:
                part.tofile(file)
                size += len(part)
        return Run(path, size)

    def _bounds(self, runs: list[Run]) -> np.ndarray:
        """Where every range begins in every run (runs, ranges + 1)."""
        total = sum(run.size for run in runs)
        ranges = COPIES * total * self.dtype.itemsize // self.memory + 1 if runs else 0
        bounds = np.zeros((len(runs), ranges + 1), np.int64)
        if ranges > 1:
            step = max(total // (ranges * SAMPLES), 1)
            first = [r * step // len(runs) for r in range(len(runs))]  # not the same ones of all runs
            samples = [self._mapped(run)["key"][low::step].copy() for run, low in zip(runs, first, strict=True)]
            sample = np.sort(np.concatenate(samples))
            edges = sample[len(sample) * np.arange(1, ranges) // ranges]
            for r, run in enumerate(runs):
                keys = self._mapped(run)["key"]
                bounds[r, 1:-1] = [bisect_left(keys, edge) for edge in edges]  # searchsorted would copy all keys
        if ranges:
            bounds[:, -1] = [run.size for run in runs]
        return bounds

    def _piece(self, run: Run, low: int, high: int) -> np.ndarray:
        return np.fromfile(run.path, self.dtype, high - low, offset=low * self.dtype.itemsize)

    def _mapped(self, run: Run) -> np.ndarray:
        return np.memmap(run.path, self.dtype, "r")


def starts_of(keys: np.ndarray) -> np.ndarray:
    """Where every distinct key begins, in a sorted array.

    Parameters
    ----------
    keys : array
        The keys.
    """
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.empty(0, np.int64)
