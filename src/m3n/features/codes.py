"""Indicator features of parts, such as arcs of a tree: for every part the numbers of the weights that it meets.

A row of codes scores one part, or several that differ in a mask: part p of row r scores the sum of w[c ^ mask_p]
over the codes c of the row. With a random mask for every label, an arc with any of its labels has features of its
own, and its codes are kept once. There is no value per entry, so hundreds of millions of entries fit into memory,
four bytes each. Codes usually come from a hash of what templates see (``m3n.features.AnchoredTemplates``)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from m3n.compiled.maps.codes import add_codes, sum_codes
from m3n.features.base import FeatureMap, InPlace, SparseRows
from m3n.packed import SERIAL, Threads
from m3n.packed.ragged import numbers
from m3n.structures.base import Parts, Selection


@dataclass(frozen=True)
class CodedRows:
    """Rows of codes, array after array, for block methods.

    Attributes
    ----------
    pointers : array of int (rows + 1,)
        Where the codes of every row begin.
    codes : array of int32 (entries,)
        Numbers of weights before the mask, counted from ``bases`` on.
    bases : array of int (rows,)
        Where the weights of a row's map begin.
    values : array (rows,)
        How often a row counts.
    firsts : tuple of arrays of int (rows of an array + 1,)
        For every array of theta the first part of each of its rows.
    masks : array of int32 (parts,)
        The mask of every part.
    """

    pointers: np.ndarray
    codes: np.ndarray
    bases: np.ndarray
    values: np.ndarray
    firsts: tuple[np.ndarray, ...]
    masks: np.ndarray

    @classmethod
    def joined(cls, pieces: list[CodedRows], cuts: np.ndarray) -> CodedRows:
        """The rows of several maps, one after another, whose weights begin at ``cuts``."""
        entries = np.cumsum([0, *(len(p.codes) for p in pieces)])
        return cls(
            np.concatenate([[0], *(p.pointers[1:] + e for p, e in zip(pieces, entries, strict=False))]),
            np.concatenate([p.codes for p in pieces]),
            np.concatenate([p.bases + cut for p, cut in zip(pieces, cuts, strict=True)]),
            np.concatenate([p.values for p in pieces]),
            tuple(first for p in pieces for first in p.firsts),
            np.concatenate([p.masks for p in pieces]),
        )


class Codes(InPlace):
    """Sums of weights whose numbers are listed, part by part.

    Parameters
    ----------
    pointers : array of int (rows + 1,)
        Where the codes of every row begin.
    codes : array of int32 (entries,)
        Numbers of weights; none twice in a row.
    dim : int
        Number of weights; with masks a power of two.
    firsts : array of int (rows + 1,), optional
        The first part of every row; without it a row is a part.
    masks : array of int32 (parts,), optional
        Part p of a row meets the weights ``code ^ masks[p]``; without it the codes themselves.
    """

    def __init__(
        self,
        pointers: np.ndarray,
        codes: np.ndarray,
        dim: int,
        firsts: np.ndarray | None = None,
        masks: np.ndarray | None = None,
    ):
        self.pointers = np.ascontiguousarray(pointers, dtype=np.int64)
        self.codes = np.ascontiguousarray(codes, dtype=np.int32)
        rows = len(self.pointers) - 1
        self.firsts = np.arange(rows + 1) if firsts is None else np.ascontiguousarray(firsts, dtype=np.int64)
        parts = int(self.firsts[-1])
        self.masks = np.zeros(parts, np.int32) if masks is None else np.ascontiguousarray(masks, dtype=np.int32)
        if masks is not None and dim & (dim - 1):
            raise ValueError(f"with masks the number of weights must be a power of two, got {dim}")
        for name, values in (("codes", self.codes), ("masks", self.masks)):
            if values.size and not 0 <= values.min() <= values.max() < dim:
                raise ValueError(f"{name} must be in 0..{dim - 1}, got {values.min()}..{values.max()}")
        self.dim, self.shapes = dim, ((parts,),)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        threads.run(sum_codes, threads.lanes(self._effort), *self._arrays, w, out[0])
        return out

    def add_adjoint(self, parts: Parts, scale: float, out: np.ndarray, threads: Threads = SERIAL) -> None:
        lanes = threads.lanes(self._effort)
        vectors = [out, *(np.zeros(self.dim) for _ in lanes[1:])]
        targets = dict(zip(lanes, vectors, strict=False))

        def lane(low: int, high: int) -> None:
            add_codes(low, high, *self._arrays, parts[0], scale, targets[low, high])

        threads.run(lane, lanes)
        for vector in vectors[1:]:
            out += vector

    def norms(self) -> Parts:
        return (np.repeat(np.sqrt(np.diff(self.pointers)), np.diff(self.firsts)),)

    def rows(self) -> SparseRows:
        """Sparse rows, one per part, for use beside maps of other kinds."""
        row = np.repeat(np.arange(len(self.firsts) - 1), np.diff(self.firsts))
        counts = np.diff(self.pointers)[row]
        runs = self.codes[numbers(self.pointers[row], counts)] ^ np.repeat(self.masks, counts)
        ones = np.ones(len(row), np.int64)
        return SparseRows(np.concatenate([[0], np.cumsum(counts)]), runs, np.ones(len(runs)), ones, (len(row),))

    def coded(self) -> CodedRows:
        rows = len(self.firsts) - 1
        bases = np.zeros(rows, np.int64)
        return CodedRows(self.pointers, self.codes, bases, np.ones(rows), (self.firsts,), self.masks)

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        own = rows[0]
        parts = (
            np.arange(*own.indices(self.shapes[0][0])) if isinstance(own, slice) else np.arange(self.shapes[0][0])[own]
        )
        row = np.searchsorted(self.firsts, parts, side="right") - 1
        chosen = row[parts == self.firsts[row]]  # parts of a row are chosen together
        counts = np.diff(self.pointers)[chosen]
        firsts = np.concatenate([[0], np.cumsum(np.diff(self.firsts)[chosen])])
        if firsts[-1] != len(parts):
            raise ValueError("the parts of a row of codes can only be chosen together")
        codes = self.codes[numbers(self.pointers[chosen], counts)]
        return Codes(np.concatenate([[0], np.cumsum(counts)]), codes, self.dim, firsts, self.masks[parts])

    @property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        return self.pointers, self.codes, self.firsts, self.masks

    @cached_property
    def _effort(self) -> np.ndarray:
        """(rows + 1,) running sum of what rows cost."""
        return np.concatenate([[0], np.cumsum(np.diff(self.pointers) * np.diff(self.firsts) + 1)])
