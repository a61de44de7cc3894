"""Weights only for what occurs: pairs of an attribute and a label, and transitions, seen in the training data.

Of all pairs of an attribute with a label few occur: 6 % in text chunking. The others can only say what a label is *not*
like; leaving them out makes models that much smaller and costs little accuracy. A pair or transition without a weight
scores 0, it is not forbidden.

Layout of the weights. An attribute that occurs with at least a fifth of the labels gets a *run* of one weight per
label, in which the pairs that do not occur are padding: zero in every vector that ``adjoint`` returns, ignored by
``scores``. All others get a *list* of just their own weights. Vector instructions make a run of that many labels as
quick as its list, and block methods find the weight of a pair in it without a search.

Scores walk the rows; so does the adjoint, with a vector of its own for every thread, summed in a fixed order: no
transposed copy of the data. Cost of either: O(stored entries x labels of their attributes).
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import scipy.sparse

from m3n.compiled.maps.observed import add_adjoint, arrange, scores
from m3n.compiled.maps.sparse import sum_squares
from m3n.features.base import FeatureMap, InPlace, SparseRows, shortest
from m3n.features.maps import Table
from m3n.packed import SERIAL, Threads
from m3n.packed.ragged import numbers
from m3n.structures.base import Parts, Selection

WIDE = 5  # how much quicker a run takes a label than a list does, measured
ROWS = 1 << 14  # at a time: no copies as large as the data
SMALL = 1 << 28  # bytes for a table of all pairs; beyond that they are sorted, which is slower


class Observed(InPlace):
    """theta[r, j] = sum_a X[r, a] W[a, j] over the pairs (a, j) that have a weight.

    Parameters
    ----------
    X : sparse matrix (rows, attributes)
        Inputs, one row per part position.
    pairs : sparse matrix (attributes, labels)
        Which pairs have a weight: its stored entries, whatever their values. ``observed_pairs`` finds those of
        labelled data.
    labels : tuple of int, optional
        What a row scores, if that is no list of labels: ``(s, s)`` for pairs of labels, of which ``pairs`` then has
        s * s columns.

    Attributes
    ----------
    alive : array of bool (dim,)
        Which of the weights are not padding.
    """

    light = True

    def __init__(self, X: scipy.sparse.csr_array, pairs: scipy.sparse.csr_array, labels: tuple[int, ...] | None = None):
        X, self.pairs = scipy.sparse.csr_array(X), scipy.sparse.csr_array(pairs)
        if X.shape[1] != self.pairs.shape[0]:
            raise ValueError(f"X has {X.shape[1]} attributes, but pairs speaks of {self.pairs.shape[0]}")
        self.pairs.sort_indices()
        self.labels = labels or (self.pairs.shape[1],)
        counts = np.diff(self.pairs.indptr)
        wide = counts * WIDE >= self.pairs.shape[1]
        self._runs_of = self._place(counts, wide), counts, wide
        self._take(X)

    def with_rows(self, X: scipy.sparse.csr_array) -> Observed:
        """The same weights for other rows.

        Parameters
        ----------
        X : sparse matrix (rows, attributes)
            Inputs.
        """
        other = copy.copy(self)
        other._take(X)
        return other

    def _take(self, X: scipy.sparse.csr_array) -> None:
        """Arrange the entries of rows by what they meet."""
        data = shortest(X.data)
        plain = len(data) == 1
        entries = np.empty(X.nnz, np.int32), np.empty(1 if plain else X.nnz)
        self.pointers, self.lists = np.zeros(X.shape[0] + 1, np.int64), np.zeros(X.shape[0], np.int64)
        size = arrange(X.indptr, X.indices, data, *self._runs_of, self.pointers, self.lists, *entries)
        self.runs, self.data = entries[0][:size], entries[1][: 1 if plain else size]
        self.shapes = ((X.shape[0], *self.labels),)

    def _place(self, counts: np.ndarray, wide: np.ndarray) -> np.ndarray:
        """Number the weights, runs first: where those of every attribute begin; the label of every weight."""
        attributes, labels = self.pairs.shape
        space = np.where(wide, labels, counts)
        order = np.argsort(~wide, kind="stable")
        begins = np.empty(attributes, np.int64)
        begins[order] = np.cumsum(space[order]) - space[order]
        self.dim = int(space.sum())
        if self.dim >= 1 << 31:
            raise ValueError(f"{self.dim} weights are more than Observed can number: use fewer attributes")
        owner = np.repeat(np.arange(attributes), counts)
        within = np.where(wide[owner], self.pairs.indices, np.arange(self.pairs.nnz) - self.pairs.indptr[owner])
        self._weight = (begins[owner] + within).astype(np.int32)  # of every stored entry of ``pairs``
        self.columns = np.full(self.dim, -1, np.int32)
        self.columns[self._weight] = self.pairs.indices
        self.alive = self.columns >= 0
        self._padding = np.flatnonzero(~self.alive)
        self.fixed_work = 3 * len(self._padding)
        last = (begins + counts - 1)[~wide & (counts > 0)]
        self.columns[last] = ~self.columns[last]  # lists end there
        return begins

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        if w[self._padding].any():  # vectors that ``adjoint`` has made have none
            w = np.where(self.alive, w, 0.0)
        flat = self._flat(out[0])
        threads.run(scores, threads.lanes(self.pointers), *self._entries, w, flat)
        return out

    def add_adjoint(self, parts: Parts, scale: float, out: np.ndarray, threads: Threads = SERIAL) -> None:
        flat, lanes = self._flat(parts[0]), threads.lanes(self.pointers)
        if len(lanes) == 1:
            padding = out[self._padding]
            add_adjoint(*lanes[0], *self._entries, flat, scale, out)
            out[self._padding] = padding
            return

        def lane(low: int, high: int) -> np.ndarray:
            vector = np.zeros(self.dim)
            add_adjoint(low, high, *self._entries, flat, scale, vector)
            return vector

        def join(low: int, high: int) -> None:
            total = vectors[0][low:high]
            for vector in vectors[1:]:
                total += vector[low:high]
            np.add(out[low:high], total, out=out[low:high], where=self.alive[low:high])

        vectors = threads.run(lane, lanes)
        threads.run(join, threads.rows(self.dim) if vectors else [])

    def norms(self) -> Parts:
        squares = np.empty(len(self.lists))
        sum_squares(self.pointers, self.data, squares)
        return (np.sqrt(squares),)

    def rows(self) -> SparseRows:
        count = len(self.lists)
        widths = np.full(count, self.pairs.shape[1])
        return SparseRows(self.pointers, self.runs, self.data, widths, (count,), self.lists, self.columns)

    def share(self, rows: SparseRows) -> None:
        assert rows.lists is not None and rows.columns is not None  # what ``rows`` gives
        size = len(self.runs)
        self.runs, self.data = rows.runs[:size], rows.data[:size]  # or the one that all have
        self.pointers, self.lists = rows.pointers[: len(self.pointers)], rows.lists[: len(self.lists)]
        self.columns = rows.columns[: self.dim]

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        part, own = copy.copy(self), rows[0]
        if isinstance(own, slice) and own.indices(len(self.lists))[2] == 1:
            low, high, _ = own.indices(len(self.lists))
            begin, end = int(self.pointers[low]), int(self.pointers[max(low, high)])
            part.pointers, part.lists = self.pointers[low : high + 1] - begin, self.lists[low:high] - begin
            part.runs, part.data = self.runs[begin:end], self.data if len(self.data) == 1 else self.data[begin:end]
            part.shapes = ((len(part.lists), *self.labels),)
            return part
        chosen = np.arange(len(self.lists))[own]
        counts = np.diff(self.pointers)[chosen]
        part.pointers = np.concatenate([[0], np.cumsum(counts)])
        part.lists = part.pointers[:-1] + (self.lists - self.pointers[:-1])[chosen]
        entries = numbers(self.pointers[chosen], counts)
        part.runs = self.runs[entries]
        part.data = self.data if len(self.data) == 1 else self.data[entries]
        part.shapes = ((len(chosen), *self.labels),)
        return part

    @property
    def _entries(self) -> tuple[np.ndarray, ...]:
        """The arrays that compiled code reads."""
        return self.pointers, self.lists, self.runs, self.data, self.columns

    def _flat(self, array: np.ndarray) -> np.ndarray:
        """The array of a part with one row of labels, as compiled code wants it; no copy."""
        return array if array.ndim == 2 else array.reshape(len(array), self.pairs.shape[1])

    def coefficients(self, w: np.ndarray) -> scipy.sparse.csr_array:
        """The weights as a matrix, as sparse as ``pairs``.

        Parameters
        ----------
        w : array (dim,)
            A weight vector.
        """
        return scipy.sparse.csr_array((w[self._weight], self.pairs.indices, self.pairs.indptr), self.pairs.shape)

    def pack(self, values: np.ndarray) -> np.ndarray:
        """The weight vector of a matrix: the inverse of ``coefficients``.

        Parameters
        ----------
        values : array
            Weights of the stored entries of ``pairs``, row by row in the order of the labels.
        """
        w = np.zeros(self.dim)
        w[self._weight] = values
        return w


class ObservedTable(Table):
    """A table of scores that all examples share, 0 where there is no weight.

    Parameters
    ----------
    mask : array of bool
        Where there is a weight; the others are padding.
    """

    def __init__(self, mask: np.ndarray):
        self.mask = np.asarray(mask, dtype=bool)
        super().__init__(*self.mask.shape)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        out[0][...] = np.where(self.mask, w.reshape(self.mask.shape), 0.0)
        return out

    def adjoint(self, parts: Parts, threads: Threads = SERIAL) -> np.ndarray:
        return np.where(self.mask, parts[0], 0.0).ravel()

    def norms(self) -> Parts:
        return (self.mask.astype(np.float64),)

    def rows(self) -> SparseRows:
        columns = np.where(self.mask.ravel(), np.arange(self.dim), -1)
        return replace(super().rows(), lists=np.ones(1, np.int64), columns=columns)


def observed_pairs(X: scipy.sparse.csr_array, gold: np.ndarray, labels: int) -> scipy.sparse.csr_array:
    """Which attribute occurs with which label, for ``Observed``.

    Parameters
    ----------
    X : sparse matrix (rows, attributes)
        Inputs, one row per part position.
    gold : array of int (rows,)
        The label of every row.
    labels : int
        Number of labels.

    Returns
    -------
    csr_array of bool (attributes, labels)
        True is stored for every pair that occurs.
    """
    X, gold = scipy.sparse.csr_array(X), np.asarray(gold, dtype=np.int64)
    pieces = (_keys(X, gold, labels, low, low + ROWS) for low in range(0, X.shape[0], ROWS))
    if X.shape[1] * labels <= SMALL:
        seen = np.zeros(X.shape[1] * labels, bool)
        for keys in pieces:
            seen[keys] = True
        found = np.flatnonzero(seen)
    else:
        found = np.unique(np.concatenate([np.unique(keys) for keys in pieces]))
    pointers = np.searchsorted(found, np.arange(X.shape[1] + 1) * np.int64(labels))
    return scipy.sparse.csr_array((np.ones(len(found), bool), found % labels, pointers), (X.shape[1], labels))


def _keys(X: scipy.sparse.csr_array, gold: np.ndarray, labels: int, low: int, high: int) -> np.ndarray:
    """Attribute x labels + label, for the entries of some rows."""
    pointers = X.indptr[low : high + 1]
    labelled = np.repeat(gold[low:high], np.diff(pointers))
    return X.indices[pointers[0] : pointers[-1]] * np.int64(labels) + labelled


def observed_transitions(gold: np.ndarray, lengths: np.ndarray, labels: int) -> np.ndarray:
    """Which label follows which, for ``ObservedTable``.

    Parameters
    ----------
    gold : array of int (tokens,)
        The labels of all sequences, one after another.
    lengths : array of int
        The lengths of the sequences.
    labels : int
        Number of labels.
    """
    inside = np.ones(len(gold), bool)
    inside[np.cumsum(lengths) - 1] = False  # the last token of a sequence has no successor
    mask = np.zeros((labels, labels), bool)
    mask[gold[:-1][inside[:-1]], gold[1:][inside[:-1]]] = True
    return mask
