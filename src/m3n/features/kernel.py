"""Kernel feature maps: weights as coefficients of inputs, with their scores carried along.

A weight vector of the kernel's feature space that training can reach is an expansion w = sum_u sum_j C[j, u] phi(u, j)
over *units* u, the different inputs of the training data, and labels j. With the Gram matrix K of the units and
G = <phi(., j), phi(., j')> of the labels (usually the identity: every label has features of its own),

    scores       Theta = G C K,            theta[r, j] = Theta[j, unit of row r]
    adjoint      C[j, u] = sum of the marginals m[r, j] of the rows r of unit u
    inner        <C, C'> = sum of C * (G C' K) = sum of C * Theta'.

Scores of a linear combination are the combination of the scores. So a weight vector here is the pair (C, Theta): linear
combinations keep both true, reading scores costs nothing, an inner product is a dot product, and the Gram matrix is
needed once per pass, where the adjoint makes a new vector out of marginals. That is the content of the appendix of
Zhang, Saha, Vishwanathan (2010), whose distribution beta_k is C.

Weights of this form are all that is needed: the optimum is w(alpha), a combination of features of training data.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from m3n.features.base import FeatureMap, GramRows, SparseRows, adding_up, label_shape
from m3n.features.gram import Gram, NotPositive, StoredGram, check_positive, check_symmetric, make_gram, number_type
from m3n.features.kernel_functions import Inputs, KernelFunction
from m3n.packed import SERIAL, Threads
from m3n.structures.base import Parts, Selection

NEGATIVE = 1e-6  # of the terms of a square: it cannot be as far below zero as this by rounding


class Expansion(FeatureMap):
    """Part scores from expansions over units: row r of width parts has the scores of unit ``units[r]``.

    Parameters
    ----------
    gram : Gram
        Kernel values among the units.
    units : array of int (rows,)
        The unit of every row.
    width : int
        Parts of a row.
    shape : tuple of int
        Shape of the part array: as many numbers as rows times width.
    mix : array (width, width) or None
        Inner products G of labels; None: every label has features of its own.
    """

    def __init__(self, gram: Gram, units: np.ndarray, width: int, shape: tuple[int, ...], mix: np.ndarray | None):
        self.gram = gram
        self.units = units
        self.width = width
        self.shapes = (shape,)
        self.mix = mix
        self.dim = 2 * width * gram.size

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        theta, known = out[0].reshape(len(self.units), self.width), self._halves(w)[1].T

        def lane(low: int, high: int) -> None:
            np.take(known, self.units[low:high], axis=0, out=theta[low:high], mode="clip")

        threads.run(lane, threads.rows(len(self.units)))
        return out

    def adjoint(self, parts: Parts, threads: Threads = SERIAL) -> np.ndarray:
        marginals = parts[0].reshape(len(self.units), self.width)
        return self.expand((self._owners @ marginals).T, threads)

    def expand(self, coefficients: np.ndarray, threads: Threads = SERIAL) -> np.ndarray:
        """The weight vector with these coefficients (width, units): one product with the Gram matrix.

        Parameters
        ----------
        coefficients : array (width, units)
            C.
        threads : Threads
            Who works.
        """
        w = np.empty(self.dim)
        C, theta = self._halves(w)
        C[...] = coefficients
        product = self.gram.product(C, threads)
        theta[...] = product if self.mix is None else self.mix @ product
        return w

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """C of a weight vector (width, units), a view.

        Parameters
        ----------
        w : array (dim,)
            Weights.
        """
        return self._halves(w)[0]

    def refresh(self, w: np.ndarray) -> np.ndarray:
        return self.expand(self.coefficients(w))

    def inner(self, u: np.ndarray, v: np.ndarray) -> float:
        half = self.dim // 2
        if u is not v:
            return float(u[:half] @ v[half:] + v[:half] @ u[half:]) / 2
        square = float(u[:half] @ u[half:])
        if square < 0.0 and -square > NEGATIVE * float(np.abs(u[:half]) @ np.abs(u[half:])):
            raise NotPositive(square / float(u[:half] @ u[:half]), float(self.gram.diagonal().max()))
        return max(square, 0.0)

    def norms(self) -> Parts:
        squares = self.gram.diagonal()[self.units]
        widest = 1.0 if self.mix is None else _widest(self.mix)
        return (np.sqrt(squares * widest).reshape(self.shapes[0][0], -1).max(axis=1),)

    def rows(self) -> SparseRows:
        matrix = self.gram.stored
        if matrix is None:
            raise TypeError("its Gram matrix is not in memory, where visits of single examples need its rows")
        count, half = len(self.units), self.dim // 2
        mix = np.empty((0, 0)) if self.mix is None else self.mix
        gram = GramRows(np.zeros(count, np.int64), np.array([[0, half]]), (np.ascontiguousarray(matrix),), (mix,))
        widths = np.full(count, self.width)
        return SparseRows(np.arange(count + 1), half + self.units, np.ones(count), widths, (count,), gram=gram)

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        chosen = copy.copy(self)
        chosen.__dict__.pop("_owners", None)
        own = self.units.reshape(self.shapes[0][0], -1)[rows[0]]
        chosen.units, chosen.shapes = own.ravel(), ((len(own), *self.shapes[0][1:]),)
        return chosen

    @cached_property
    def _owners(self) -> scipy.sparse.csr_array:
        """The matrix (units, rows) that adds up the rows of every unit."""
        return adding_up(self.units, np.ones(len(self.units)), self.gram.size)

    def _halves(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half = self.dim // 2
        shape = self.width, self.gram.size
        return w[:half].reshape(shape), w[half:].reshape(shape)


class Kernel(Expansion):
    """Nonlinear scores of inputs: theta[r, y] = sum_u C[y, u] k(x_u, x_r).

    Equal inputs are one unit. The Gram matrix of the different inputs is held in memory, or computed block by block in
    every pass if it would take more than half of what is free.

    Parameters
    ----------
    X : matrix (rows, attributes), dense or sparse
        Inputs, one row per part position; with ``kernel="precomputed"`` the Gram matrix (rows, rows) itself, which may
        be a ``numpy.memmap``.
    labels : int or tuple of int
        What a row scores: ``s`` labels, or ``(s, s)`` pairs of labels for inputs of pairs.
    kernel : str, callable or KernelFunction
        "linear", "poly", "rbf", one of scikit-learn's pairwise kernels, "precomputed", or a function of two matrices.
    degree, gamma, coef0 : float
        Of the kernel, see ``KernelFunction``; gamma may be "scale" or "auto".
    params : mapping or None
        Further arguments of a kernel of scikit-learn, or of the function.
    label_kernel : array (labels, labels) or None
        Similarities of labels, a positive semi-definite matrix that multiplies the kernel of the inputs; None: labels
        share nothing.
    gram : {"auto", "stored", "streamed"}
        Whether to hold the Gram matrix.
    dtype : {float64, float32}
        Of the stored Gram matrix; sums are made in float64 always.
    """

    def __init__(
        self,
        X: Inputs,
        labels: int | tuple[int, ...],
        kernel: str | Callable[..., Any] | KernelFunction = "rbf",
        *,
        degree: float = 3,
        gamma: float | str = "scale",
        coef0: float = 1.0,
        params: dict[str, Any] | None = None,
        label_kernel: np.ndarray | None = None,
        gram: str = "auto",
        dtype: Any = np.float64,
    ):
        self.labels = label_shape(labels)
        width = int(np.prod(self.labels))
        if isinstance(kernel, str) and kernel == "precomputed":
            self.function, self.inputs = None, None
            matrix, units = _given(X, dtype), np.arange(X.shape[0])
            check_positive(matrix)
        else:
            if not isinstance(kernel, KernelFunction):
                kernel = KernelFunction(kernel, degree, gamma, coef0, params or {})
            self.inputs, units = different_rows(_as_matrix(X))
            self.function = kernel.fitted(self.inputs)
            matrix = make_gram(self.function, self.inputs, gram, dtype)
            if not self.function.certain:
                check_positive(matrix)
        super().__init__(matrix, units, width, (X.shape[0], *self.labels), _checked_mix(label_kernel, width))


class CliqueKernel(Expansion):
    """A kernel on inputs and labels together: k((x, y), (x', y')) of every two parts, as general as it gets.

    The Gram matrix has a row for every part, rows times labels of them, and is held in memory.

    Parameters
    ----------
    X : matrix (rows, attributes)
        Inputs, one row per part position; they go to the kernel as they are.
    labels : int or tuple of int
        What a row scores: ``s`` labels or ``(s, s)`` pairs of labels.
    kernel : callable or array
        A function of ``(X, y, X', y')`` that returns the matrix of all kernel values; ``X[i]`` and ``y[i]`` make a
        part, and y is an array of label numbers, (parts,) or, for pairs, (parts, 2). Or the matrix of all parts
        itself, in row-major order.
    """

    def __init__(self, X: Inputs, labels: int | tuple[int, ...], kernel: Callable[..., Any] | np.ndarray):
        self.labels = label_shape(labels)
        rows, width = X.shape[0], int(np.prod(self.labels))
        if callable(kernel):
            owner, *places = np.indices((rows, *self.labels)).reshape(1 + len(self.labels), -1)
            y = np.stack(places, axis=1) if len(places) > 1 else places[0]
            kernel = kernel(X[owner], y, X[owner], y)
        matrix = _given(np.asarray(kernel), np.float64)
        if matrix.size != rows * width:
            raise ValueError(f"{rows} rows of {width} parts need a Gram matrix of {rows * width}, got {matrix.size}")
        check_positive(matrix)
        super().__init__(matrix, np.arange(rows * width), 1, (rows, *self.labels), None)

    def norms(self) -> Parts:
        return (super().norms()[0] * np.sqrt(2.0),)  # labels may share features, with either sign


def different_rows(X: Inputs) -> tuple[Inputs, np.ndarray]:
    """The different rows of a matrix, in order of appearance, and for every row which of them it is.

    Parameters
    ----------
    X : matrix
        Dense or CSR.
    """
    seen: dict[bytes, int] = {}
    if scipy.sparse.issparse(X):
        X.sort_indices()
        pieces = zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
        keys = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in pieces)
    else:
        keys = (row.tobytes() for row in X)
    units = np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)
    first = np.unique(units, return_index=True)[1]
    return (X if len(first) == len(units) else X[first]), units


def _as_matrix(X: Inputs) -> Inputs:
    if scipy.sparse.issparse(X):
        matrix: Any = scipy.sparse.csr_array(X, dtype=np.float64)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return matrix
    array = np.ascontiguousarray(X, dtype=np.float64) + 0.0  # no negative zeros
    if array.ndim != 2:
        raise ValueError(f"X must be a 2-D array (rows, attributes), got shape {array.shape}")
    return array


def _given(matrix: np.ndarray, dtype: Any) -> Gram:
    """A Gram matrix that somebody else has computed; one in a file stays there."""
    check_symmetric(matrix)
    kind = number_type(dtype)
    return StoredGram(matrix if isinstance(matrix, np.memmap) else np.ascontiguousarray(matrix, dtype=kind))


def _checked_mix(mix: np.ndarray | None, width: int) -> np.ndarray | None:
    if mix is None:
        return None
    array = np.ascontiguousarray(mix, dtype=np.float64)
    if array.shape != (width, width):
        raise ValueError(f"label_kernel must have shape ({width}, {width}), got {array.shape}")
    check_positive(_given(array, np.float64))
    return array


def _widest(mix: np.ndarray) -> float:
    """Half of the largest |phi(y) - phi(y')|^2, so that sqrt(2) times the norm bounds the difference."""
    own = mix.diagonal()
    return float((own[:, None] + own[None, :] - 2.0 * mix).max()) / 2.0
