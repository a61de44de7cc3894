"""Putting feature maps together: shared tables, and several maps side by side."""

from __future__ import annotations

import numpy as np

from m3n.features.base import FeatureMap, GramRows, InPlace, SparseRows
from m3n.packed import SERIAL, Threads
from m3n.structures.base import Parts, Selection


class Table(FeatureMap):
    """A table of scores that all examples share; its weights are the scores themselves.

    Parameters
    ----------
    *shape : int
        Shape of the table, for example ``(labels, labels)`` for transitions.
    """

    def __init__(self, *shape: int):
        self.dim = int(np.prod(shape))
        self.shapes = (shape,)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        out[0][...] = w.reshape(self.shapes[0])
        return out

    def adjoint(self, parts: Parts, threads: Threads = SERIAL) -> np.ndarray:
        return parts[0].ravel()

    def norms(self) -> Parts:
        return (np.ones(self.shapes[0]),)

    def rows(self) -> SparseRows:
        one = np.zeros(1, np.int64)
        return SparseRows(np.arange(2), one, np.ones(1), one + self.dim, (1,))

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        return self


class Stack(InPlace):
    """Maps side by side: weights are concatenated, and so are the part arrays.

    Parameters
    ----------
    *maps : FeatureMap
        The maps, in the order of the structure's part arrays.
    """

    def __init__(self, *maps: FeatureMap):
        self.maps = maps
        self.dim = sum(m.dim for m in maps)
        self.shapes = tuple(shape for m in maps for shape in m.shapes)
        self._weight_cuts = np.cumsum([m.dim for m in maps])[:-1]

    def split(self, w: np.ndarray) -> list[np.ndarray]:
        """Cut a weight vector into the pieces of the maps (views)."""
        return np.split(w, self._weight_cuts)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        for m, piece, part in zip(self.maps, self.split(w), self._split_parts(out), strict=True):
            m.scores(piece, part, threads)
        return out

    def add_adjoint(self, parts: Parts, scale: float, out: np.ndarray, threads: Threads = SERIAL) -> None:
        for m, piece, part in zip(self.maps, self.split(out), self._split_parts(parts), strict=True):
            m.add_adjoint(part, scale, piece, threads)

    def norms(self) -> Parts:
        return tuple(norm for m in self.maps for norm in m.norms())

    def rows(self) -> SparseRows:
        pieces = [m.rows() for m in self.maps]
        weights = np.concatenate([[0], self._weight_cuts])
        entries = np.cumsum([0, *(len(p.data) for p in pieces)])
        number = np.int32 if self.dim < 1 << 31 else np.int64  # there may be as many runs as words in a book
        moved = [p.runs + cut if cut else p.runs for p, cut in zip(pieces, weights, strict=True)]
        joined = SparseRows(
            np.concatenate([[0], *(p.pointers[1:] + e for p, e in zip(pieces, entries, strict=False))]),
            np.concatenate(moved, dtype=number),
            np.concatenate([p.data for p in pieces]),
            np.concatenate([p.widths for p in pieces]),
            tuple(count for p in pieces for count in p.arrays),
            *_joined_lists(pieces, [m.dim for m in self.maps], entries),
            gram=_joined_grams(pieces, weights),
        )
        self.maps[0].share(joined)  # its weights come first, so their numbers have not changed
        return joined

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        return Stack(*(m.select(piece) for m, piece in zip(self.maps, self._split_parts(rows), strict=True)))

    @property
    def euclidean(self) -> bool:
        """Whether all of the maps are."""
        return all(m.euclidean for m in self.maps)

    def inner(self, u: np.ndarray, v: np.ndarray) -> float:
        own = self.split(u)  # the same objects twice for a square, which a map may treat in its own way
        pieces = zip(self.maps, own, own if v is u else self.split(v), strict=True)
        return float(sum(m.inner(a, b) for m, a, b in pieces))

    def refresh(self, w: np.ndarray) -> np.ndarray:
        return np.concatenate([m.refresh(piece) for m, piece in zip(self.maps, self.split(w), strict=True)])

    def _split_parts(self, parts: tuple) -> list[tuple]:
        pieces, first = [], 0
        for m in self.maps:
            pieces.append(parts[first : first + len(m.shapes)])
            first += len(m.shapes)
        return pieces


def _joined_lists(
    pieces: list[SparseRows], dims: list[int], entries: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """``lists`` and ``columns`` of the whole, if any of the pieces has them."""
    if all(p.columns is None for p in pieces):
        return None, None
    lists = [p.pointers[1:] if p.lists is None else p.lists for p in pieces]
    columns = [np.zeros(dim, np.int32) if p.columns is None else p.columns for p, dim in zip(pieces, dims, strict=True)]
    return np.concatenate([part + e for part, e in zip(lists, entries, strict=False)]), np.concatenate(columns)


def _joined_grams(pieces: list[SparseRows], weights: np.ndarray) -> GramRows | None:
    """``gram`` of the whole, if any of the pieces has expansions; matrices of different dtypes become float64."""
    which, bases, count = [], [], 0
    for piece, cut in zip(pieces, weights, strict=True):
        if piece.gram is None:
            which.append(np.full(len(piece.widths), -1))
        else:
            which.append(np.where(piece.gram.which < 0, -1, piece.gram.which + count))
            bases.append(piece.gram.bases + cut)
            count += len(piece.gram.grams)
    if not count:
        return None
    own = [piece.gram for piece in pieces if piece.gram is not None]
    matrices = [matrix for gram in own for matrix in gram.grams]
    dtype = np.result_type(*matrices)
    grams = tuple(np.asarray(matrix, dtype=dtype) for matrix in matrices)
    return GramRows(
        np.concatenate(which), np.concatenate(bases), grams, tuple(mix for gram in own for mix in gram.mixes)
    )


def chain_features(node: FeatureMap, labels: int, edge: FeatureMap | None = None) -> Stack:
    """The usual map of a chain: node features, a transition table, start and end scores, optional edge features.

    Parameters
    ----------
    node : FeatureMap
        Map with one row per token, for example ``Dense(X, labels)``.
    labels : int
        Number of labels.
    edge : FeatureMap, optional
        Map with one row per pair of neighbours, for example ``Dense(Z, (labels, labels))``.
    """
    tables = (Table(labels, labels), Table(labels), Table(labels))
    return Stack(node, *tables, *(() if edge is None else (edge,)))
