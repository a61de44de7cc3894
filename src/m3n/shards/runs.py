"""Sorted runs of records on disk, merged in the memory that there is.

Whatever comes block by block and must be counted (attributes, pairs of an attribute and a label) is sorted within each
block and written as a run. Merging takes ranges of keys one after another: the boundaries are quantiles of a sample of
all runs, so that the records of a range fit into memory; they are read from each run, where they stand side by side,
and sorted together. Everything is read and written once, whatever the number of runs is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SAMPLES = 64  # of every range
COPIES = 4  # of a range that sorting and counting hold


class Runs:
    """Records in sorted runs.

    Parameters
    ----------
    folder : Path
        Where to.
    name : str
        What their files are called.
    dtype : dtype
        Of a record, with the field "key".
    """

    def __init__(self, folder: Path, name: str, dtype: Any):
        self.folder, self.name, self.dtype = folder, name, np.dtype(dtype)
        self.sizes = list[int]()  # of the runs

    def add(self, records: np.ndarray) -> None:
        """One more run.

        Parameters
        ----------
        records : array
            The records, in any order.
        """
        if len(records):
            records[np.argsort(records["key"], kind="stable")].tofile(self._path(len(self.sizes)))
            self.sizes.append(len(records))

    def merged(self, memory: int) -> Iterator[np.ndarray]:
        """All records by their keys, those of a range of keys at a time; the runs are removed at the end.

        Parameters
        ----------
        memory : int
            How many bytes merging may take.
        """
        if not self.sizes:
            return
        bounds = self._bounds(COPIES * sum(self.sizes) * self.dtype.itemsize // memory + 1)
        for k in range(bounds.shape[1] - 1):
            pieces = [self._piece(run, *bounds[run, k : k + 2].tolist()) for run in range(len(bounds))]
            records = np.concatenate(pieces)
            del pieces
            yield records[np.argsort(records["key"], kind="stable")]
        self.clear()

    def clear(self) -> None:
        """Remove all runs."""
        for run in range(len(self.sizes)):
            self._path(run).unlink()
        self.sizes.clear()

    def _bounds(self, ranges: int) -> np.ndarray:
        """Where every range begins in every run (runs, ranges + 1)."""
        step = max(sum(self.sizes) // (ranges * SAMPLES), 1)
        samples = [self._mapped(run)["key"][::step].copy() for run in range(len(self.sizes))] if ranges > 1 else []
        sample = np.sort(np.concatenate(samples)) if samples else np.empty(0, np.int64)
        edges = sample[len(sample) * np.arange(1, ranges) // ranges] if len(sample) else sample
        rows = [[0, *self._places(run, edges), size] for run, size in enumerate(self.sizes)]
        return np.array(rows, np.int64)

    def _places(self, run: int, edges: np.ndarray) -> list[int]:
        """Where keys stand in a run. (``searchsorted`` would copy all keys out of the records.)"""
        keys = self._mapped(run)["key"]
        return [bisect_left(keys, edge) for edge in edges]

    def _piece(self, run: int, low: int, high: int) -> np.ndarray:
        return np.fromfile(self._path(run), self.dtype, high - low, offset=low * self.dtype.itemsize)

    def _mapped(self, run: int) -> np.ndarray:
        return np.memmap(self._path(run), self.dtype, "r")

    def _path(self, run: int) -> Path:
        return self.folder / f"{self.name}-{run:05d}.run"


def starts_of(keys: np.ndarray) -> np.ndarray:
    """Where every distinct key begins, in a sorted array.

    Parameters
    ----------
    keys : array
        The keys.
    """
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.empty(0, np.int64)
