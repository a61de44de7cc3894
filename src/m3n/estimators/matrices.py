"""Matrices that are dense or sparse: what they store, what they score, and how they are written to files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

from m3n.features import Dense, FeatureMap, Observed, Sparse
from m3n.packed import Threads

Matrix = Any  # np.ndarray or scipy.sparse.csr_array, which has no type stubs
SPARSE = ("data", "indices", "indptr")


def stored(matrix: Matrix) -> tuple[np.ndarray, ...]:
    """All arrays that a matrix consists of, its numbers first."""
    return tuple(getattr(matrix, part) for part in SPARSE) if scipy.sparse.issparse(matrix) else (matrix,)


def bad_row(matrix: Matrix) -> int | None:
    """The first row with a number that is infinite or none; None if all are fine."""
    numbers, *sparse = stored(matrix)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if not bad.size:
        return None
    return int(np.searchsorted(sparse[1], bad[0], side="right")) - 1 if sparse else int(bad[0]) // matrix.shape[1]


def packed(name: str, matrix: Matrix | None) -> dict[str, np.ndarray]:
    """A matrix as arrays for a file, a sparse one as three; none for None."""
    if matrix is None:
        return {}
    if not scipy.sparse.issparse(matrix):
        return {name: matrix}
    return {f"{name}{part}": array for part, array in zip(SPARSE, stored(scipy.sparse.csr_array(matrix)), strict=True)}


def unpacked(name: str, tensors: Mapping[str, np.ndarray], shape: tuple[int, ...]) -> Matrix | None:
    """The matrix again; a sparse one, of which the shape says what its arrays cannot, is checked."""
    if f"{name}data" not in tensors:
        return tensors.get(name)
    matrix = scipy.sparse.csr_array(tuple(tensors[f"{name}{part}"] for part in SPARSE), shape=shape)
    matrix.check_format()  # no attributes or labels that do not exist
    return matrix


def linear_map(matrix: Matrix, labels: int | tuple[int, ...]) -> FeatureMap:
    """The linear map of a matrix, dense or sparse."""
    return Sparse(matrix, labels) if scipy.sparse.issparse(matrix) else Dense(matrix, labels)


def linear_scores(matrix: Matrix, weights: np.ndarray, threads: Threads) -> np.ndarray:
    """The scores of all rows under weights (attributes, \\*labels)."""
    return map_scores(linear_map(matrix, weights.shape[1:]), weights.ravel(), threads)


def map_scores(features: FeatureMap, w: np.ndarray, threads: Threads) -> np.ndarray:
    """What a map with a single part array makes of weights."""
    return features.scores(np.ascontiguousarray(w), (np.empty(features.shapes[0]),), threads)[0]


def observed_scores(
    matrix: Matrix, weights: scipy.sparse.csr_array, threads: Threads, labels: tuple[int, ...] | None = None
) -> np.ndarray:
    """The scores of all rows under weights that are kept for some pairs of attribute and label only."""
    observed = Observed(matrix, weights, labels)
    return map_scores(observed, observed.pack(observed.pairs.data), threads)


def pair_scores(matrix: Matrix, weights: Any, labels: int, threads: Threads) -> np.ndarray:
    """The scores (rows, labels, labels) of pairs of neighbours."""
    if scipy.sparse.issparse(weights):
        return observed_scores(matrix, weights, threads, (labels, labels))
    return linear_scores(matrix, weights, threads)
