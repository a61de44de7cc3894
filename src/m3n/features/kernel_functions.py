"""Kernels: inner products of inputs in a space of features that nobody writes out.

    "linear"   <x, z>
    "poly"     (gamma <x, z> + coef0)^degree
    "rbf"      exp(-gamma |x - z|^2)

are computed here, for dense and sparse inputs, through one matrix product. Any other name is a pairwise kernel of
scikit-learn, and a function takes two matrices and returns the matrix of all kernel values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse

Inputs = Any  # np.ndarray or scipy.sparse.csr_array, one row per input
OWN = ("linear", "poly", "rbf")


@dataclass(frozen=True)
class KernelFunction:
    """A kernel and its parameters.

    Parameters
    ----------
    kernel : str or callable
        "linear", "poly", "rbf", the name of one of scikit-learn's pairwise kernels, or a function of two matrices that
        returns the matrix of all kernel values.
    degree : float
        Of "poly".
    gamma : float or {"scale", "auto"}
        Of "poly" and "rbf": a number, 1 / (attributes * variance of the inputs), or 1 / attributes.
    coef0 : float
        Of "poly".
    params : mapping
        Arguments of one of scikit-learn's kernels, or of the function.
    """

    kernel: str | Callable[..., Any] = "rbf"
    degree: float = 3
    gamma: float | str = "scale"
    coef0: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.kernel, str):
            _check_name(self.kernel)
        elif not callable(self.kernel):
            raise TypeError(f"kernel must be a name or a function of two matrices, got {self.kernel!r:.60}")
        if isinstance(self.gamma, str):
            if self.gamma not in ("scale", "auto"):
                raise ValueError(f"gamma must be a positive number, 'scale' or 'auto', got {self.gamma!r}")
        elif not 0.0 < self.gamma < np.inf:
            raise ValueError(f"gamma must be a positive finite number, 'scale' or 'auto', got {self.gamma}")
        if self.kernel == "poly" and not (self.degree > 0 and np.isfinite(self.coef0)):
            raise ValueError(f"poly needs a positive degree and a finite coef0, got {self.degree} and {self.coef0}")
        if self.params and self.kernel in OWN:
            raise ValueError(
                f"kernel={self.kernel!r} takes degree, gamma and coef0; params={dict(self.params)} are for others"
            )

    def fitted(self, X: Inputs) -> KernelFunction:
        """The same kernel with gamma as a number, from these inputs.

        Parameters
        ----------
        X : matrix
            The inputs.
        """
        if not isinstance(self.gamma, str):
            return self
        spread = _variance(X) if self.gamma == "scale" else 1.0
        return replace(self, gamma=1.0 / (X.shape[1] * spread) if spread > 0.0 and X.shape[1] else 1.0)

    @property
    def certain(self) -> bool:
        """Whether every Gram matrix is positive semi-definite by mathematics, so that it need not be checked."""
        if self.kernel == "poly":
            return float(self.degree).is_integer() and self.coef0 >= 0.0
        return self.kernel in ("linear", "rbf", "laplacian", "chi2", "cosine")

    def __call__(self, A: Inputs, B: Inputs) -> np.ndarray:
        """Kernel values (rows of A, rows of B).

        Parameters
        ----------
        A, B : matrix
            Inputs, one per row.
        """
        if not (isinstance(self.kernel, str) and self.kernel in OWN):
            return self._foreign(A, B)
        products = _products(A, B)
        if self.kernel == "linear":
            return products
        gamma = float(self.gamma)
        if self.kernel == "poly":
            return _power(products * gamma + self.coef0, self.degree)
        distances = _squares(A)[:, None] + _squares(B)[None, :]
        distances -= 2.0 * products
        np.maximum(distances, 0.0, out=distances)  # rounding
        distances *= -gamma
        return np.exp(distances, out=distances)

    def diagonal(self, A: Inputs) -> np.ndarray:
        """k(x, x) of every row (rows,).

        Parameters
        ----------
        A : matrix
            Inputs, one per row.
        """
        if self.kernel == "rbf":
            return np.ones(A.shape[0])
        if self.kernel in OWN:
            squares = _squares(A)
            return squares if self.kernel == "linear" else _power(squares * float(self.gamma) + self.coef0, self.degree)
        return np.array([self(A[[i]], A[[i]])[0, 0] for i in range(A.shape[0])])

    def _foreign(self, A: Inputs, B: Inputs) -> np.ndarray:
        if callable(self.kernel):
            values = self.kernel(A, B, **self.params)
        else:
            from sklearn.metrics.pairwise import pairwise_kernels

            values = pairwise_kernels(A, B, metric=self.kernel, **self.params)
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (A.shape[0], B.shape[0]):
            raise ValueError(f"the kernel returned shape {values.shape} for {A.shape[0]} and {B.shape[0]} inputs")
        return values


def _check_name(name: str) -> None:
    if name in OWN:
        return
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

    if name not in PAIRWISE_KERNEL_FUNCTIONS:
        known = sorted({*OWN, *PAIRWISE_KERNEL_FUNCTIONS})
        raise ValueError(f"unknown kernel {name!r}; choose 'precomputed', a function of two matrices or one of {known}")


def _products(A: Inputs, B: Inputs) -> np.ndarray:
    products = A @ B.T
    return products.toarray() if scipy.sparse.issparse(products) else np.asarray(products)


def _squares(A: Inputs) -> np.ndarray:
    """|x|^2 of every row."""
    if scipy.sparse.issparse(A):
        return np.asarray(A.multiply(A).sum(axis=1)).ravel()
    return np.einsum("rf,rf->r", A, A)


def _power(base: np.ndarray, degree: float) -> np.ndarray:
    """base^degree; small whole powers by multiplication, many times quicker than the general power."""
    if degree not in (1, 2, 3, 4):
        return base**degree
    result = base.copy()
    for _ in range(int(degree) - 1):
        result *= base
    return result


def _variance(X: Inputs) -> float:
    """Variance of all entries."""
    if not scipy.sparse.issparse(X):
        return float(X.var())
    count = X.shape[0] * X.shape[1]
    return float((X.data**2).sum() / count - (X.data.sum() / count) ** 2)
