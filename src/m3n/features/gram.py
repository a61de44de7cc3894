"""Gram matrices: all kernel values among the inputs, held in memory or made again block by block.

A pass needs one product with the matrix. Numbers may be held in 32 bits, sums are always made in 64. Rows of zeros in
the other factor, such as those of positions that are labelled correctly, are skipped.

A matrix that is not positive semi-definite belongs to no inner product: the objective would not be convex and the
certificate would mean nothing. It is refused with its smallest eigenvalue.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from m3n.features.kernel_functions import Inputs, KernelFunction
from m3n.packed import SERIAL, Threads
from m3n.packed.memory import free_memory

BLOCK = 1 << 22  # numbers of the matrix that are worked on at a time, per thread
SHARE = 0.5  # of the memory that is free, for the matrix
EXACT = 4000  # inputs up to which all eigenvalues are checked; beyond, the extreme ones by Lanczos iterations
LANCZOS = 40  # of these
ROUNDING = 1e-7  # of the largest eigenvalue: what the smallest one may be below zero


class NotPositive(ValueError):
    """A kernel that is no inner product; ``smallest`` is an eigenvalue of its Gram matrix."""

    def __init__(self, smallest: float, largest: float):
        super().__init__(
            f"the kernel is not positive semi-definite: its Gram matrix has the eigenvalue {smallest:.6g} (the largest "
            f"is {largest:.6g}). Use a kernel that is an inner product, or add at least {-smallest:.3g} to its diagonal"
        )
        self.smallest = smallest


class Gram(ABC):
    """A symmetric matrix K of kernel values.

    Attributes
    ----------
    size : int
        Number of inputs.
    stored : array (size, size) or None
        The whole matrix if it is in memory, for methods that visit single examples.
    """

    size: int
    stored: np.ndarray | None = None

    @abstractmethod
    def rows(self, index: np.ndarray | slice) -> np.ndarray:
        """Some rows of K, in 64 bits (rows, size)."""

    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """k(x, x) of every input (size,)."""

    def product(self, C: np.ndarray, threads: Threads = SERIAL) -> np.ndarray:
        """C K for C (k, size), by blocks of rows of K; inputs whose coefficients are all zero cost nothing."""
        nonzero = np.flatnonzero(C.any(axis=0))
        used = nonzero if 2 * len(nonzero) < self.size else None

        def lane(low: int, high: int) -> np.ndarray:
            total = np.zeros(C.shape)
            for block in _blocks(low, high, self.size):
                piece: Any = block if used is None else used[block]
                total += C[:, piece] @ self.rows(piece)
            return total

        pieces = threads.run(lane, threads.rows(self.size if used is None else len(used)))
        return np.sum(pieces, axis=0) if pieces else np.zeros(C.shape)


class StoredGram(Gram):
    """A Gram matrix in memory, or in a file that is mapped into it.

    Parameters
    ----------
    matrix : array (size, size)
        Kernel values, float32 or float64.
    """

    def __init__(self, matrix: np.ndarray):
        self.matrix = self.stored = matrix
        self.size = len(matrix)

    def rows(self, index: np.ndarray | slice) -> np.ndarray:
        return np.asarray(self.matrix[index], dtype=np.float64)

    def diagonal(self) -> np.ndarray:
        return np.asarray(self.matrix.diagonal(), dtype=np.float64)


class StreamedGram(Gram):
    """A Gram matrix that is computed block by block whenever it is needed, and never held.

    Parameters
    ----------
    function : KernelFunction
        The kernel.
    X : matrix (size, attributes)
        Inputs.
    """

    def __init__(self, function: KernelFunction, X: Inputs):
        self.function, self.X = function, X
        self.size = X.shape[0]

    def rows(self, index: np.ndarray | slice) -> np.ndarray:
        return self.function(self.X[index], self.X)

    def diagonal(self) -> np.ndarray:
        return self.function.diagonal(self.X)


def make_gram(function: KernelFunction, X: Inputs, how: str = "auto", dtype: Any = np.float64) -> Gram:
    """The Gram matrix of some inputs, stored if there is memory for it.

    Parameters
    ----------
    function : KernelFunction
        The kernel, fitted.
    X : matrix (size, attributes)
        Inputs.
    how : {"auto", "stored", "streamed"}
        Hold it, compute it in every pass, or hold it if half of the free memory is enough, in 32 bits if need be.
    dtype : {float64, float32}
        Of the stored numbers.
    """
    if how not in ("auto", "stored", "streamed"):
        raise ValueError(f"gram must be 'auto', 'stored' or 'streamed', got {how!r}")
    kind = number_type(dtype)
    size, streamed = X.shape[0], StreamedGram(function, X)
    free = SHARE * free_memory()
    if how == "auto" and kind.itemsize * size * size > free:
        kind = np.dtype(np.float32)
    needed = kind.itemsize * size * size
    if how == "streamed" or (how == "auto" and needed > free):
        return streamed
    if needed > free:
        raise MemoryError(
            f"the Gram matrix of {size} different inputs takes {needed / 1e9:.1f} GB in {kind}, more than half of the "
            f"free memory ({free / 1e9:.1f} GB): use gram='streamed', which computes it anew in every pass"
            f"{', dtype=float32' if kind == np.float64 else ''}, or approximate features (Nystroem)"
        )
    matrix = np.empty((size, size), kind)
    for piece in _blocks(0, size, size):
        matrix[piece] = streamed.rows(piece)
    return StoredGram(symmetric(matrix))


def _blocks(low: int, high: int, size: int) -> Iterator[slice]:
    """Rows low..high-1 of a matrix of this size, about ``BLOCK`` numbers at a time."""
    step = max(1, BLOCK // max(size, 1))
    return (slice(first, min(first + step, high)) for first in range(low, high, step))


def number_type(dtype: Any) -> np.dtype:
    """float32 or float64."""
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {kind}")
    return kind


def symmetric(matrix: np.ndarray) -> np.ndarray:
    """The matrix with its lower half copied from the upper one, in place: a product may round them differently."""
    for piece in _blocks(0, len(matrix), len(matrix)):
        matrix[piece.stop :, piece] = matrix[piece, piece.stop :].T
        block = np.triu(matrix[piece, piece])
        matrix[piece, piece] = block + np.triu(block, 1).T
    return matrix


def check_symmetric(matrix: np.ndarray) -> None:
    """Refuse what cannot be a Gram matrix at first sight."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"a Gram matrix must be square, got shape {matrix.shape}")
    for piece in _blocks(0, len(matrix), len(matrix)):
        first, rows, columns = piece.start, matrix[piece], matrix[:, piece].T
        bad = np.argwhere(~np.isfinite(rows))
        if bad.size:
            raise ValueError(f"the Gram matrix has {rows[tuple(bad[0])]} at {bad[0][0] + first}, {bad[0][1]}")
        if not np.allclose(rows, columns, rtol=1e-5, atol=1e-8 * float(np.abs(rows).max(initial=0.0))):
            i, j = np.unravel_index(np.argmax(np.abs(rows - columns)), rows.shape)
            raise ValueError(
                f"the Gram matrix is not symmetric: {rows[i, j]:.6g} at {i + first}, {j} and {columns[i, j]:.6g} at "
                f"{j}, {i + first}"
            )


def check_positive(gram: Gram) -> None:
    """Refuse a matrix with a negative eigenvalue; up to EXACT inputs that is decided, beyond it only likely found."""
    smallest, largest = _all_eigenvalues(gram) if gram.size <= EXACT else _extreme_eigenvalues(gram)
    if smallest < -ROUNDING * max(largest, 0.0):
        raise NotPositive(smallest, largest)


def _all_eigenvalues(gram: Gram) -> tuple[float, float]:
    """The smallest and the largest; if a Cholesky decomposition shows that none is negative, a lower bound of both."""
    from scipy.linalg import LinAlgError, cholesky, eigvalsh

    if gram.size == 0:
        return 0.0, 0.0
    matrix = gram.rows(slice(None))
    vector = matrix @ (matrix @ np.ones(gram.size))
    largest = float(vector @ (matrix @ vector)) / max(float(vector @ vector), np.finfo(float).tiny)
    try:
        lifted = matrix.copy()
        lifted.flat[:: gram.size + 1] += ROUNDING * largest + np.finfo(float).tiny
        cholesky(lifted, overwrite_a=True, check_finite=False)
    except LinAlgError:
        values = eigvalsh(matrix, check_finite=False)
        return float(values[0]), float(values[-1])
    return 0.0, largest


def _extreme_eigenvalues(gram: Gram) -> tuple[float, float]:
    """By Lanczos iterations: values x'Kx / x'x near the ends of the spectrum, so a negative one proves its point."""
    threads, random = Threads(None), np.random.default_rng(0)
    basis: list[np.ndarray] = []
    vector = random.normal(size=gram.size)
    for _ in range(min(LANCZOS, gram.size)):
        for _ in range(2):  # once is not enough to stay orthogonal
            for other in basis:
                vector -= (other @ vector) * other
        norm = float(np.linalg.norm(vector))
        if norm == 0.0:
            break
        basis.append(vector / norm)
        vector = gram.product(basis[-1][None], threads)[0]
    Q = np.array(basis)
    values = np.linalg.eigvalsh(Q @ gram.product(Q, threads).T)
    return float(values[0]), float(values[-1])
