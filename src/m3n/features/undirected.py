"""Scores of pairs of labels that do not ask which node of an edge comes first.

*A common table.* One weight for every unordered pair {a, b} of labels, s (s + 1)/2 of them, theta[a, b] = theta[b, a].

*Edge features.* A feature z_f of an edge has a table V_f of s x s weights. A symmetric one scores the labels (a, b) by
z_f (V_f[a, b] + V_f[b, a]) / 2, an antisymmetric one by z_f (V_f[a, b] - V_f[b, a]) / 2: half an edge there and half
an edge back. So theta has two arrays with a row for every edge (``Tree(..., both_ways=True)``), in the second of which
the labels are in the other order, and both have the same weights:

    theta_there[e] = sum_f c_f z_ef V_f,   theta_back[e] = sum_f d_f z_ef V_f

with (c, d) = (1, 0) for a feature with a direction, (1/2, 1/2) for a symmetric and (1/2, -1/2) for an antisymmetric
one. The weights of least norm are then symmetric or antisymmetric matrices themselves. The regulariser counts a pair of
different labels twice there, and once in the common table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from m3n.features.base import FeatureMap, InPlace, SparseRows
from m3n.features.maps import Dense, Sparse
from m3n.packed import SERIAL, Threads
from m3n.structures.base import Parts, Selection


class SymmetricTable(FeatureMap):
    """A table of scores of unordered pairs of labels that all examples share, with one weight for each.

    Parameters
    ----------
    labels : int
        Number of labels.
    """

    def __init__(self, labels: int):
        low, high = np.tril_indices(labels)
        self.dim, self.shapes = len(low), ((labels, labels),)
        self.number = np.empty((labels, labels), np.int64)  # the weight of every pair
        self.number[low, high] = self.number[high, low] = np.arange(self.dim)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        out[0][...] = w[self.number]
        return out

    def adjoint(self, parts: Parts, threads: Threads = SERIAL) -> np.ndarray:
        return np.bincount(self.number.ravel(), parts[0].ravel(), self.dim)

    def norms(self) -> Parts:
        return (np.ones(self.shapes[0]),)

    def rows(self) -> SparseRows:
        """A row for every part, as two of them meet the same weight."""
        count = self.number.size
        return SparseRows(np.arange(count + 1), self.number.ravel(), np.ones(count), np.ones(count, np.int64), (count,))

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        return self


class NoTable(FeatureMap):
    """A shared table of zeros, without weights: for a structure with a table that a model does not use.

    Parameters
    ----------
    *shape : int
        Shape of the table.
    """

    def __init__(self, *shape: int):
        self.dim, self.shapes = 0, (shape,)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        out[0][...] = 0.0
        return out

    def adjoint(self, parts: Parts, threads: Threads = SERIAL) -> np.ndarray:
        return np.zeros(0)

    def norms(self) -> Parts:
        return (np.zeros(self.shapes[0]),)

    def rows(self) -> SparseRows:
        width = np.array([int(np.prod(self.shapes[0]))])
        return SparseRows(np.zeros(2, np.int64), np.empty(0, np.int64), np.empty(0), width, (1,))

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        return self


class TwoWays(InPlace):
    """Edge features of which some are symmetric or antisymmetric, for a structure with ``both_ways=True``.

    Parameters
    ----------
    X : array or sparse matrix (edges, attributes)
        Features of edges.
    labels : int
        Number of labels.
    kinds : array of int (attributes,)
        Of every feature: 0 if it has a direction, 1 if it is symmetric, -1 if it is antisymmetric.
    """

    def __init__(self, X: Any, labels: int, kinds: np.ndarray):
        self.labels, self.kinds = labels, np.asarray(kinds, dtype=np.int64)
        if self.kinds.shape != (X.shape[1],) or not np.isin(self.kinds, (-1, 0, 1)).all():
            raise ValueError(f"kinds must be -1, 0 or 1 for each of the {X.shape[1]} features, got {kinds}")
        self.ways = _linear(X, 1.0 - abs(self.kinds) / 2.0, labels), _linear(X, self.kinds / 2.0, labels)
        self._measure()

    def _measure(self) -> None:
        self.dim = self.ways[0].dim
        self.shapes = tuple(way.shapes[0] for way in self.ways)

    def weights(self, w: np.ndarray) -> np.ndarray:
        """What the weights score, (attributes, labels, labels): exactly symmetric and antisymmetric where they must be.

        Parameters
        ----------
        w : array (dim,)
            Weights.
        """
        tables, kinds = w.reshape(-1, self.labels, self.labels), self.kinds[:, None, None]
        return (1.0 - abs(kinds) / 2.0) * tables + kinds / 2.0 * tables.transpose(0, 2, 1)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        for way, array in zip(self.ways, out, strict=True):
            way.scores(w, (array,), threads)
        return out

    def add_adjoint(self, parts: Parts, scale: float, out: np.ndarray, threads: Threads = SERIAL) -> None:
        for way, array in zip(self.ways, parts, strict=True):
            way.add_adjoint((array,), scale, out, threads)

    def norms(self) -> Parts:
        return tuple(way.norms()[0] for way in self.ways)

    def rows(self) -> SparseRows:
        there, back = (way.rows() for way in self.ways)
        return SparseRows(
            np.concatenate([there.pointers, back.pointers[1:] + len(there.runs)]),
            np.concatenate([there.runs, back.runs]),
            np.concatenate([there.values, back.values]),
            np.concatenate([there.widths, back.widths]),
            there.arrays + back.arrays,
        )

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        chosen = object.__new__(TwoWays)
        chosen.labels, chosen.kinds = self.labels, self.kinds
        chosen.ways = self.ways[0].select(rows[:1]), self.ways[1].select(rows[1:])
        chosen._measure()
        return chosen


def _linear(X: Any, factors: np.ndarray, labels: int) -> FeatureMap:
    """The map of a matrix with columns that many times as large."""
    if not scipy.sparse.issparse(X):
        return Dense(np.asarray(X) * factors, (labels, labels))
    scaled = scipy.sparse.csr_array(X) @ scipy.sparse.diags_array(factors)
    scaled.eliminate_zeros()
    return Sparse(scaled, (labels, labels))
