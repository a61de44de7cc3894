"""Dense inputs: every row of an array X (rows, attributes) scores labels by X W, through BLAS."""

from __future__ import annotations

import numpy as np

from m3n.features.base import FeatureMap, SparseRows, label_shape
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

    def __init__(self, X: np.ndarray, labels: int | tuple[int, ...]):
        self.X = np.ascontiguousarray(X, dtype=np.float64)
        if self.X.ndim != 2:
            raise ValueError(f"X must be a 2-D array (rows, attributes), got shape {self.X.shape}")
        self.labels = label_shape(labels)
        self.width = int(np.prod(self.labels))
        self.dim = self.X.shape[1] * self.width
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

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        return Dense(self.X[rows[0]], self.labels)
