"""Sparse inputs: a CSR matrix of attributes, for millions of attributes of which a token has a few.

Scores walk the rows, the adjoint walks a transposed copy, made when it is first needed (training, not prediction).
Cost of either: O(stored entries x labels).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse

from m3n.backends import SERIAL, Threads
from m3n.features.base import FeatureMap, SparseRows
from m3n.kernels.sparse import multiply
from m3n.structures.base import Parts, Rows


class Sparse(FeatureMap):
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
        self.labels = (labels,) if isinstance(labels, int) else tuple(labels)
        self.width = int(np.prod(self.labels))
        self.dim = self.X.shape[1] * self.width
        self.shapes = ((self.X.shape[0], *self.labels),)

    @cached_property
    def _transposed(self) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(self.X.T)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        _product(self.X, w.reshape(-1, self.width), out[0].reshape(-1, self.width), threads)
        return out

    def adjoint(self, parts: Parts, threads: Threads = SERIAL) -> np.ndarray:
        vector = np.empty((self.X.shape[1], self.width))
        _product(self._transposed, parts[0].reshape(-1, self.width), vector, threads)
        return vector.ravel()

    def norms(self) -> Parts:
        return (np.sqrt(np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()),)

    def rows(self) -> SparseRows:
        count = self.X.shape[0]
        runs = self.X.indices.astype(np.int64) * self.width
        return SparseRows(self.X.indptr, runs, self.X.data, np.full(count, self.width), (count,))

    def select(self, rows: tuple[Rows, ...]) -> FeatureMap:
        return Sparse(self.X[rows[0]], self.labels)


def _product(matrix: scipy.sparse.csr_array, dense: np.ndarray, out: np.ndarray, threads: Threads) -> None:
    def lane(low: int, high: int) -> None:
        multiply(matrix.indptr, matrix.indices, matrix.data, dense, low, high, out)

    threads.run(lane, threads.lanes(matrix.indptr))
