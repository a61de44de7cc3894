"""The files of shards: rows of sequences, cut where a shard is full.

A shard holds whole sequences, at least one. Its arrays grow in files, so that the size of a shard costs no memory:

    indptr, indices, data      the rows of all positions as in ``scipy.sparse.csr_array``; one number as data: for all
    matrix                     instead, dense rows
    lengths, labels, weights   of sequences, of positions, of sequences if there are any
    pair_indptr, ...           rows of neighbouring positions, if templates make attributes of them
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from m3n.shards.arrays import GrowingArrays
from m3n.shards.blocks import Matrix

LARGEST = 2**31 - 2**24  # entries of a shard: they are counted by 32 bits
PIECE = 1 << 16


class Packed(NamedTuple):
    """Sequences as they stand in shards.

    Attributes
    ----------
    matrix : array or csr_array (positions, attributes)
        All positions, with sorted columns.
    lengths : array of int64 (sequences,)
        Positions of every sequence.
    labels : array of int32 (positions,)
        Numbers of labels.
    weights : array (sequences,) or None
        How often every sequence counts.
    pairs : csr_array (neighbouring positions, attributes of pairs) or None
        Attributes of pairs.
    """

    matrix: Matrix
    lengths: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None
    pairs: Matrix | None

    def between(self, low: int, high: int) -> Packed:
        """Sequences low..high-1."""
        ends = np.concatenate([[0], np.cumsum(self.lengths)])
        begin, end = ends[low], ends[high]
        return Packed(
            self.matrix[begin:end],
            self.lengths[low:high],
            self.labels[begin:end],
            None if self.weights is None else self.weights[low:high],
            None if self.pairs is None else self.pairs[begin - low : end - high],
        )

    def sizes(self) -> np.ndarray:
        """About how many bytes each sequence takes."""
        size = self.lengths * 8
        ends = np.cumsum(self.lengths)
        for matrix, last in ((self.matrix, ends), (self.pairs, ends - np.arange(1, len(ends) + 1))):
            if matrix is None:
                continue
            if scipy.sparse.issparse(matrix):
                each = 4 if matrix.nnz == 0 or (matrix.data == matrix.data[0]).all() else 12
                size = size + each * np.diff(matrix.indptr[np.concatenate([[0], last])])
            else:
                size = size + self.lengths * matrix.shape[1] * 8
        return size


class ShardWriter:
    """Shards of about one size.

    Parameters
    ----------
    folder : Path
        Where to.
    size : int
        Bytes of a shard, about.
    """

    def __init__(self, folder: Path, size: int):
        self.folder, self.size = folder, size
        self.written = list[dict[str, Any]]()
        self._arrays = GrowingArrays(folder)
        self._filled = 0
        self._counts = dict.fromkeys(("sequences", "positions", "entries", "pair_entries"), 0)
        self._values: dict[str, float] = {}  # of arrays that have one value only, so far

    def add(self, packed: Packed) -> None:
        """Some more sequences.

        Parameters
        ----------
        packed : Packed
            The sequences.
        """
        ends, low = np.concatenate([[0], np.cumsum(packed.sizes())]), 0
        while low < len(packed.lengths):
            high = int(np.searchsorted(ends, ends[low] + self.size - self._filled, side="right")) - 1
            if high <= low and self._filled:
                self._end()
                continue
            high = max(high, low + 1)
            self._extend(packed.between(low, high))
            self._filled += int(ends[high] - ends[low])
            low = high

    def close(self) -> None:
        """End the last shard."""
        if self._filled:
            self._end()

    def _extend(self, packed: Packed) -> None:
        self._arrays.add("lengths", packed.lengths.astype(np.int64))
        self._arrays.add("labels", packed.labels.astype(np.int32))
        if packed.weights is not None:
            self._arrays.add("weights", packed.weights)
        self._counts["sequences"] += len(packed.lengths)
        self._counts["positions"] += len(packed.labels)
        self._counts["entries"] += self._add_rows("", packed.matrix)
        self._counts["pair_entries"] += 0 if packed.pairs is None else self._add_rows("pair_", packed.pairs)

    def _add_rows(self, prefix: str, matrix: Matrix) -> int:
        """Rows; how many entries they have."""
        if not scipy.sparse.issparse(matrix):
            self._arrays.add("matrix", matrix)
            return int(matrix.size)
        before = self._counts[f"{prefix}entries"]
        if before + matrix.nnz > LARGEST:
            raise ValueError(f"a shard would have {before + matrix.nnz:,} entries; choose a smaller shard_size")
        known = self._arrays.size(f"{prefix}indptr")
        self._arrays.add(f"{prefix}indptr", (before + matrix.indptr[known > 0 :]).astype(np.int32))
        self._arrays.add(f"{prefix}indices", matrix.indices.astype(np.int32))
        self._add_values(f"{prefix}data", matrix.data, before)
        return int(matrix.nnz)

    def _add_values(self, name: str, values: np.ndarray, before: int) -> None:
        """Values of entries; as long as there is one value alone, nothing is written."""
        if not len(values):
            return
        known = self._values.get(name, values[0] if not before else None)
        if known is not None and (values == known).all():
            self._values[name] = known
            return
        if known is not None:  # those before were all the same
            self._values.pop(name, None)
            for low in range(0, before, PIECE):
                self._arrays.add(name, np.full(min(PIECE, before - low), known))
        self._arrays.add(name, values)

    def _end(self) -> None:
        for name in [name for name in ("data", "pair_data") if self._arrays.size(f"{name[:-4]}indptr")]:
            if not self._arrays.size(name):
                self._arrays.add(name, np.array([self._values[name]] if name in self._values else []))
        file = f"shard-{len(self.written):05d}.safetensors"
        self.written.append({"file": file} | self._arrays.close(self.folder / file) | self._counts)
        self._filled = 0
        self._values.clear()
        self._counts = dict.fromkeys(self._counts, 0)
