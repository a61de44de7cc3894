"""The maps that most problems are made of: dense and sparse inputs, shared tables, and several maps side by side.

Dense inputs, an array X (rows, attributes), score labels by X W, through BLAS. Sparse ones, a CSR matrix, are for
millions of attributes of which a token has a few. Cost of their scores and of the adjoint: O(stored entries x labels).
Both walk the rows; entries that meet the same attribute again soon find its weights in the cache, so it pays to number
attributes by their frequency, or in the order in which they are first seen: scattered at random over 59 MB of weights
both took about 1.7 times as long.
"""

from __future__ import annotations

import copy
from itertools import pairwise

import numpy as np
import scipy.sparse

from m3n.compiled.maps.sparse import cut_rows, gather, scatter
from m3n.features.base import FeatureMap, GramRows, InPlace, SparseRows, label_shape, shortest
from m3n.features.codes import CodedRows
from m3n.packed import SERIAL, Threads
from m3n.structures.base import Parts, Selection


class Dense(FeatureMap):
    """theta[r] = X[r] W with W (attributes, \\*labels).

    Parameters
    ----------
    X : array (rows, attributes)
        Inputs, one row per part position.
    labels : int or tuple of int
        What a row scores: ``s`` labels, or ``(s, s)`` pairs of labels for edge features.
    """

    light = True

    def __init__(self, X: np.ndarray, labels: int | tuple[int, ...]):
        self.X = np.ascontiguousarray(X, dtype=np.float64)
        if self.X.ndim != 2:
            raise ValueError(f"X must be a 2-D array (rows, attributes), got shape {self.X.shape}")
        self.labels = label_shape(labels)
        self.width = int(np.prod(self.labels))
        self.dim = self.fixed_work = self.X.shape[1] * self.width
        self.shapes = ((len(self.X), *self.labels),)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        weights = w.reshape(-1, self.width)
        theta = out[0].reshape(len(self.X), self.width)

        def lane(low: int, high: int) -> None:
            np.matmul(self.X[low:high], weights, out=theta[low:high])

        threads.run(lane, threads.rows(len(self.X)))
        return out

    def adjoint(self, parts: Parts, threads: Threads = SERIAL) -> np.ndarray:
        marginals = parts[0].reshape(len(self.X), self.width)
        pieces = threads.run(lambda low, high: self.X[low:high].T @ marginals[low:high], threads.rows(len(self.X)))
        return np.sum(pieces, axis=0).ravel() if pieces else np.zeros(self.dim)

    def norms(self) -> Parts:
        return (np.sqrt(np.einsum("rf,rf->r", self.X, self.X)),)

    def rows(self) -> SparseRows:
        used = self.X != 0.0
        pointers = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        widths = np.full(len(self.X), self.width)
        return SparseRows(pointers, np.nonzero(used)[1] * self.width, self.X[used], widths, (len(self.X),))

    @property
    def array(self) -> np.ndarray | None:
        """X."""
        return self.X

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        return Dense(self.X[rows[0]], self.labels)


class Sparse(InPlace):
    """theta[r] = X[r] W with X sparse and W (attributes, \\*labels).

    Parameters
    ----------
    X : sparse matrix (rows, attributes)
        Inputs, one row per part position.
    labels : int or tuple of int
        What a row scores: ``s`` labels, or ``(s, s)`` pairs of labels for edge features.
    """

    light = True

    def __init__(self, X: scipy.sparse.csr_array, labels: int | tuple[int, ...]):
        self.X = _narrow(scipy.sparse.csr_array(X, dtype=np.float64))
        if not self.X.has_sorted_indices:  # threads share the columns out
            self.X = self.X.sorted_indices()
        self.labels = label_shape(labels)
        self.width = int(np.prod(self.labels))
        self.dim = self.X.shape[1] * self.width
        self._take(self.X, shortest(self.X.data))

    def _take(self, X: scipy.sparse.csr_array, data: np.ndarray) -> None:
        """Keep rows, and the values of their entries or one that is that of all."""
        self.X, self._data, self.shapes = X, data, ((X.shape[0], *self.labels),)
        self._starts: dict[int, np.ndarray] = {}

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        X, weights, theta = self.X, w.reshape(-1, self.width), out[0].reshape(-1, self.width)
        threads.run(gather, threads.lanes(X.indptr), X.indptr, X.indices, self._data, weights, theta)
        return out

    def add_adjoint(self, parts: Parts, scale: float, out: np.ndarray, threads: Threads = SERIAL) -> None:
        X, marginals, vector = self.X, parts[0].reshape(-1, self.width), out.reshape(-1, self.width)
        starts = self._columns(threads)
        threads.run(
            scatter, list(pairwise(range(len(starts)))), starts, X.indices, self._data, marginals, scale, vector
        )

    def norms(self) -> Parts:
        return (np.sqrt(np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()),)

    def rows(self) -> SparseRows:
        count = self.X.shape[0]
        runs = self.X.indices.astype(np.int64) * self.width
        return SparseRows(self.X.indptr, runs, self._data, np.full(count, self.width), (count,))

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        part, X = copy.copy(self), _chosen(self.X, rows[0])
        part._take(X, self._data if len(self._data) == 1 else X.data)
        return part

    def _columns(self, threads: Threads) -> np.ndarray:
        """Where the entries of every row begin that belong to a thread's range of columns, and end; found once."""
        if threads.count == 1:
            return np.stack([self.X.indptr[:-1], self.X.indptr[1:]])
        if threads.count not in self._starts:
            columns = self.X.shape[1]
            work = np.bincount(self.X.indices, minlength=columns) + 1  # an attribute costs something by itself
            lanes = threads.lanes(np.concatenate([[0], np.cumsum(work)]))
            edges = np.array([*(low for low, _ in lanes), columns])
            starts = np.empty((len(edges), self.X.shape[0]), self.X.indptr.dtype)
            cut_rows(self.X.indptr, self.X.indices, edges, starts)
            self._starts[threads.count] = starts
        return self._starts[threads.count]


def _narrow(X: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """The same matrix with short indices, if they suffice: half of the memory, and compiled code of one kind."""
    if X.indices.dtype == np.int32 or max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    return scipy.sparse.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def _chosen(X: scipy.sparse.csr_array, rows: Selection) -> scipy.sparse.csr_array:
    """Some rows; those of a range without a copy."""
    if not isinstance(rows, slice) or rows.indices(X.shape[0])[2] != 1:
        return X[rows]
    low, high, _ = rows.indices(X.shape[0])
    begin, end = int(X.indptr[low]), int(X.indptr[max(low, high)])
    own = X.data[begin:end], X.indices[begin:end], X.indptr[low : max(low, high) + 1] - begin
    return scipy.sparse.csr_array(own, shape=(max(high - low, 0), X.shape[1]))


class NoFeatures(FeatureMap):
    """theta[r] = 0 for an array of rows, without weights: for parts that only a loss or a structure speaks of.

    Parameters
    ----------
    rows : int
        Number of rows, for example of pairs of neighbours: tokens minus sequences.
    *labels : int
        What a row would score: ``s`` for labels, ``s, s`` for pairs of labels.
    """

    light = True

    def __init__(self, rows: int, *labels: int):
        self.dim = 0
        self.labels = labels
        self.shapes = ((rows, *labels),)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        out[0][...] = 0.0
        return out

    def adjoint(self, parts: Parts, threads: Threads = SERIAL) -> np.ndarray:
        return np.zeros(0)

    def norms(self) -> Parts:
        return (np.zeros(self.shapes[0][0]),)

    def rows(self) -> SparseRows:
        rows = self.shapes[0][0]
        widths = np.full(rows, int(np.prod(self.labels)))
        return SparseRows(np.zeros(rows + 1, np.int64), np.empty(0, np.int64), np.empty(0), widths, (rows,))

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        return NoFeatures(len(np.arange(self.shapes[0][0])[rows[0]]), *self.labels)


class Table(FeatureMap):
    """A table of scores that all examples share; its weights are the scores themselves.

    Parameters
    ----------
    *shape : int
        Shape of the table, for example ``(labels, labels)`` for transitions.
    """

    light = True

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
        self._first = np.cumsum([0, *(m.dim for m in maps[:-1])])  # weights
        self._pieces = [slice(*ends) for ends in pairwise([*self._first.tolist(), None])]

    def split(self, w: np.ndarray) -> list[np.ndarray]:
        """Cut a weight vector into the pieces of the maps (views)."""
        return [w[piece] for piece in self._pieces]  # np.split takes ten times as long

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
        entries = np.cumsum([0, *(len(p.runs) for p in pieces)])
        number = np.int32 if self.dim < 1 << 31 else np.int64  # there may be as many runs as words in a book
        moved = [p.runs + cut if cut else p.runs for p, cut in zip(pieces, self._first, strict=True)]
        joined = SparseRows(
            np.concatenate([[0], *(p.pointers[1:] + e for p, e in zip(pieces, entries, strict=False))]),
            np.concatenate(moved, dtype=number),
            _joined_values(pieces),
            np.concatenate([p.widths for p in pieces]),
            tuple(count for p in pieces for count in p.arrays),
            *_joined_lists(pieces, [m.dim for m in self.maps], entries),
            gram=_joined_grams(pieces, self._first),
        )
        self.maps[0].share(joined)  # its weights come first, so their numbers have not changed
        return joined

    def coded(self) -> CodedRows | None:
        pieces = [m.coded() for m in self.maps]
        return None if any(p is None for p in pieces) else CodedRows.joined(pieces, self._first)

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        return Stack(*(m.select(piece) for m, piece in zip(self.maps, self._split_parts(rows), strict=True)))

    @property
    def light(self) -> bool:  # type: ignore[override]
        """Whether all of the maps are."""
        return all(m.light for m in self.maps)

    @property
    def fixed_work(self) -> int:  # type: ignore[override]
        """That of all maps."""
        return sum(m.fixed_work for m in self.maps)

    @property
    def array(self) -> np.ndarray | None:
        """That of the first map."""
        return self.maps[0].array

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


def _joined_values(pieces: list[SparseRows]) -> np.ndarray:
    """The values of all entries, or one number if it is that of all of them."""
    short = [shortest(p.data) for p in pieces if len(p.runs)]
    if short and all(len(own) == 1 and own[0] == short[0][0] for own in short):
        return short[0]
    return np.concatenate([p.values for p in pieces])


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
