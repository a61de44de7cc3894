"""Sparse inputs: a CSR matrix of attributes, for millions of attributes of which a token has a few.

Cost of the scores and of the adjoint: O(stored entries x labels). Both walk the rows; entries that meet the same
attribute again soon find its weights in the cache, so it pays to number attributes by their frequency, or in the order
in which they are first seen: scattered at random over 59 MB of weights both took about 1.7 times as long.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse

from m3n.compiled.maps.sparse import cut_rows, gather, scatter
from m3n.features.base import FeatureMap, InPlace, SparseRows, label_shape
from m3n.packed import SERIAL, Threads
from m3n.structures.base import Parts, Selection


class Sparse(InPlace):
    """theta[r] = X[r] W with X sparse and W (attributes, \\*labels).

    Parameters
    ----------
    X : sparse matrix (rows, attributes)
        Inputs, one row per part position.
    labels : int or tuple of int
        What a row scores: ``s`` labels, or ``(s, s)`` pairs of labels for edge features.
    """

    def __init__(self, X: scipy.sparse.csr_array, labels: int | tuple[int, ...]):
        self.X = scipy.sparse.csr_array(X, dtype=np.float64)
        if not self.X.has_sorted_indices:  # threads share the columns out
            self.X = self.X.sorted_indices()
        self.labels = label_shape(labels)
        self.width = int(np.prod(self.labels))
        self.dim = self.X.shape[1] * self.width
        self.shapes = ((self.X.shape[0], *self.labels),)
        self._starts: dict[int, np.ndarray] = {}

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        X, weights, theta = self.X, w.reshape(-1, self.width), out[0].reshape(-1, self.width)
        threads.run(gather, threads.lanes(X.indptr), X.indptr, X.indices, X.data, weights, theta)
        return out

    def add_adjoint(self, parts: Parts, scale: float, out: np.ndarray, threads: Threads = SERIAL) -> None:
        X, marginals, vector = self.X, parts[0].reshape(-1, self.width), out.reshape(-1, self.width)
        starts = self._columns(threads)
        threads.run(scatter, list(pairwise(range(len(starts)))), starts, X.indices, X.data, marginals, scale, vector)

    def norms(self) -> Parts:
        return (np.sqrt(np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()),)

    def rows(self) -> SparseRows:
        count = self.X.shape[0]
        runs = self.X.indices.astype(np.int64) * self.width
        return SparseRows(self.X.indptr, runs, self.X.data, np.full(count, self.width), (count,))

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        return Sparse(self.X[rows[0]], self.labels)

    def _columns(self, threads: Threads) -> np.ndarray:
        """Where the entries of every row begin that belong to a thread's range of columns, and end; found once."""
        if threads.count not in self._starts:
            columns = self.X.shape[1]
            work = np.bincount(self.X.indices, minlength=columns) + 1  # an attribute costs something by itself
            lanes = threads.lanes(np.concatenate([[0], np.cumsum(work)]))
            edges = np.array([*(low for low, _ in lanes), columns])
            starts = np.empty((len(edges), self.X.shape[0]), self.X.indptr.dtype)
            cut_rows(self.X.indptr, self.X.indices, edges, starts)
            self._starts[threads.count] = starts
        return self._starts[threads.count]
