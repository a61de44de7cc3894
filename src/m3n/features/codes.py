"""Indicator features of single parts, such as arcs of a tree: for every part the numbers of the weights that it meets.

theta[r] = sum of w[c] over the codes c of row r. There is one part per row and no value per entry, so that hundreds of
millions of entries fit into memory: four bytes each here, five for block methods. Codes usually come from a hash of
what templates see (``m3n.features.AnchoredTemplates``).
"""

from __future__ import annotations

import numpy as np

from m3n.compiled.maps.codes import add_codes, sum_codes
from m3n.features.base import FeatureMap, InPlace, SparseRows
from m3n.packed import SERIAL, Threads
from m3n.packed.ragged import numbers
from m3n.structures.base import Parts, Selection


class Codes(InPlace):
    """theta[r] = sum of w[c] over the codes c of row r.

    Parameters
    ----------
    pointers : array of int (rows + 1,)
        Where the codes of every row begin.
    codes : array of int32 (entries,)
        The number of the weight that every entry meets; no number twice in a row.
    dim : int
        Number of weights.
    """

    def __init__(self, pointers: np.ndarray, codes: np.ndarray, dim: int):
        self.pointers = np.ascontiguousarray(pointers, dtype=np.int64)
        self.codes = np.ascontiguousarray(codes, dtype=np.int32)
        if self.codes.size and not 0 <= self.codes.min() <= self.codes.max() < dim:
            raise ValueError(f"codes must be in 0..{dim - 1}, got {self.codes.min()}..{self.codes.max()}")
        self.dim, self.shapes = dim, ((len(self.pointers) - 1,),)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        threads.run(sum_codes, threads.lanes(self.pointers), self.pointers, self.codes, w, out[0])
        return out

    def add_adjoint(self, parts: Parts, scale: float, out: np.ndarray, threads: Threads = SERIAL) -> None:
        lanes = threads.lanes(self.pointers)
        vectors = [out, *(np.zeros(self.dim) for _ in lanes[1:])]
        targets = dict(zip(lanes, vectors, strict=False))

        def lane(low: int, high: int) -> None:
            add_codes(low, high, self.pointers, self.codes, parts[0], scale, targets[low, high])

        threads.run(lane, lanes)
        for vector in vectors[1:]:
            out += vector

    def norms(self) -> Parts:
        return (np.sqrt(np.diff(self.pointers)),)

    def rows(self) -> SparseRows:
        count = self.shapes[0][0]
        return SparseRows(
            self.pointers, self.codes, np.ones(len(self.codes), np.int8), np.ones(count, np.int64), (count,)
        )

    def share(self, rows: SparseRows) -> None:
        if rows.runs.dtype == self.codes.dtype:
            self.codes = rows.runs[: len(self.codes)]

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        chosen = np.arange(self.shapes[0][0])[rows[0]]
        counts = np.diff(self.pointers)[chosen]
        entries = numbers(self.pointers[chosen], counts)
        return Codes(np.concatenate([[0], np.cumsum(counts)]), self.codes[entries], self.dim)
