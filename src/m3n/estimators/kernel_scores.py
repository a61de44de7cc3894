"""Estimators with kernels: the map for training, exact or approximate, and what prediction keeps of it.

An exact kernel model scores a position by theta(x, y) = sum_u C[u, y] k(x_u, x) over its *support*, the training inputs
whose coefficients are not zero. Leaving inputs out changes the weights by at most the sum of |C[u]| sqrt(k(x_u, x_u)),
and a score of x by that times sqrt(k(x, x)): the smallest terms are dropped as long as their sum stays within a
tolerance, relative to the norm of the weights.

The Nystroem approximation projects the features on those of a few chosen inputs: its models are expansions over
these, and keep them as support. Random features are ordinary features, z(x), with weights of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from m3n.features import Dense, FeatureMap, Kernel, KernelFunction
from m3n.features.gram import BLOCK
from m3n.features.kernel_functions import Inputs
from m3n.packed import Threads

APPROXIMATIONS = ("nystroem", "random")
PRECOMPUTED = "precomputed"


@dataclass(frozen=True)
class KernelSettings:
    """What an estimator's parameters say about its kernel.

    Parameters
    ----------
    kernel : str, callable or None
        The kernel, or "precomputed"; None if there is a transformer.
    degree, gamma, coef0, params
        Of the kernel, see ``KernelFunction``.
    approximation : {"nystroem", "random"}, transformer or None
        None for the exact kernel.
    components : int
        How many features an approximation by name has.
    seed : int
        Of an approximation by name.
    """

    kernel: str | Callable[..., Any] | None
    degree: float
    gamma: float | str
    coef0: float
    params: Mapping[str, Any] | None
    approximation: Any
    components: int
    seed: int

    def __post_init__(self) -> None:
        named = isinstance(self.approximation, str)
        if named and self.approximation not in APPROXIMATIONS:
            raise ValueError(
                f"unknown approximation {self.approximation!r}; choose one of {APPROXIMATIONS}, None or a transformer"
            )
        if not named and self.approximation is not None and not hasattr(self.approximation, "fit_transform"):
            raise TypeError(f"approximation must be a name or have fit and transform, got {self.approximation!r:.60}")
        if named and not (isinstance(self.components, (int, np.integer)) and self.components > 0):
            raise ValueError(f"components must be a positive whole number, got {self.components!r}")
        if self.kernel == PRECOMPUTED and self.approximation is not None:
            raise ValueError("a precomputed kernel has no inputs to approximate; use approximation=None")
        if self.kernel not in (None, PRECOMPUTED):
            _ = self.function  # wrong parameters are refused before the data are read
        if self.approximation == "random" and self.kernel not in ("rbf", "poly"):
            raise ValueError(f"random features exist for 'rbf' and 'poly', not for {self.kernel!r}; use 'nystroem'")
        if self.approximation == "nystroem" and callable(self.kernel):
            raise ValueError("approximation='nystroem' needs a kernel's name; give a fitted transformer for a function")

    @cached_property
    def function(self) -> KernelFunction:
        """The kernel with its parameters."""
        assert self.kernel is not None
        return KernelFunction(self.kernel, self.degree, self.gamma, self.coef0, dict(self.params or {}))

    def exact(self, matrix: Inputs, labels: int) -> Kernel:
        """The exact map of some inputs."""
        if self.kernel != PRECOMPUTED:
            return Kernel(matrix, labels, self.function)
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"kernel='precomputed': every position must have its kernel values with all {matrix.shape[0]} training "
                f"positions, in their order; there are {matrix.shape[1]}. Leave sequences of weight 0 out of X"
            )
        return Kernel(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix, labels, PRECOMPUTED)

    def transformer(self, matrix: Inputs) -> Any:
        """The fitted approximation, a transformer of scikit-learn's kind."""
        if not isinstance(self.approximation, str):
            from sklearn.base import clone

            return clone(self.approximation, safe=False).fit(matrix)
        from sklearn import kernel_approximation

        function, count = self.function.fitted(matrix), int(self.components)
        if self.approximation == "random" and function.kernel == "rbf":
            made = kernel_approximation.RBFSampler(gamma=function.gamma, n_components=count, random_state=self.seed)
        elif self.approximation == "random":
            settings = {"degree": int(function.degree), "gamma": function.gamma, "coef0": function.coef0}
            made = kernel_approximation.PolynomialCountSketch(**settings, n_components=count, random_state=self.seed)
        else:
            made = _nystroem(function, min(count, matrix.shape[0]), self.seed)
        return made.fit(matrix)


@dataclass(frozen=True)
class Support:
    """A kernel model: scores are sums over the inputs that it keeps.

    Attributes
    ----------
    function : KernelFunction or None
        The kernel, with all parameters as numbers; None if kernel values are given.
    inputs : matrix (size, attributes)
        The inputs that count; for given kernel values their columns (size,).
    coefficients : array (size, labels)
        What they count.
    trained_on : int
        How many inputs there were in training: different ones, or positions of an approximation.
    error : float
        Leaving inputs out has changed a score of x by at most this times sqrt(k(x, x)).
    """

    function: KernelFunction | None
    inputs: Any
    coefficients: np.ndarray
    trained_on: int
    error: float = 0.0

    @property
    def size(self) -> int:
        """How many inputs count."""
        return len(self.coefficients)

    @property
    def cost(self) -> int:
        """Multiplications that scoring a position takes: those of kernel values, and those with coefficients."""
        labels = self.coefficients.shape[1]
        if self.function is None:
            return self.size * labels
        sparse = scipy.sparse.issparse(self.inputs)
        values = int(self.inputs.nnz) if sparse else self.inputs.shape[0] * self.inputs.shape[1]
        return values + self.size * labels

    def __str__(self) -> str:
        """In a sentence."""
        share = self.size / max(self.trained_on, 1)
        return (
            f"{self.size} support inputs of {self.trained_on} ({share:.0%}), {self.cost} multiplications per position, "
            f"scores exact to {self.error:.1e} sqrt(k(x, x))"
        )

    def scores(self, X: Inputs, threads: Threads) -> np.ndarray:
        """Scores of all labels (rows, labels)."""
        out = np.empty((X.shape[0], self.coefficients.shape[1]))
        step = max(1, BLOCK // max(self.size, 1))

        def lane(low: int, high: int) -> None:
            for first in range(low, high, step):
                piece = slice(first, min(first + step, high))
                values = X[piece][:, self.inputs] if self.function is None else self.function(X[piece], self.inputs)
                np.matmul(values, self.coefficients, out=out[piece])

        threads.run(lane, threads.rows(X.shape[0]))
        return out


@dataclass(frozen=True)
class Transformed:
    """A model on the features that a transformer makes.

    Attributes
    ----------
    transformer : object
        Fitted.
    coefficients : array (features, labels)
        Their weights.
    """

    transformer: Any
    coefficients: np.ndarray

    def scores(self, X: Inputs, threads: Threads) -> np.ndarray:
        """Scores of all labels (rows, labels)."""
        del threads  # the transformer decides for itself
        features = transformed(self.transformer, X)
        return features @ self.coefficients if len(features) else np.empty((0, self.coefficients.shape[1]))


def transformed(transformer: Any, X: Inputs) -> np.ndarray:
    """Features of some inputs, as a dense array."""
    if not X.shape[0]:
        return np.empty((0, 0))
    features = transformer.transform(X)
    dense = features.toarray() if scipy.sparse.issparse(features) else np.asarray(features)
    return np.ascontiguousarray(dense, dtype=np.float64)


def training_map(settings: KernelSettings, matrix: Inputs, labels: int) -> tuple[FeatureMap, Any]:
    """The map of the training data, and the fitted transformer of an approximation."""
    if settings.approximation is None:
        return settings.exact(matrix, labels), None
    transformer = settings.transformer(matrix)
    return Dense(transformed(transformer, matrix), labels), transformer


def prediction_model(
    settings: KernelSettings, node: FeatureMap, transformer: Any, coefficients: np.ndarray, tolerance: float
) -> Support | Transformed:
    """What prediction needs of trained weights: those of a kernel map, or (features, labels) of a transformer's."""
    if isinstance(node, Kernel):
        return _pruned(node, coefficients, tolerance)
    if settings.approximation != "nystroem":
        return Transformed(transformer, coefficients)
    function = replace(settings.function, gamma=transformer.gamma or 1.0)  # a number now, if the kernel has one
    landmarks = transformer.components_
    return Support(function, landmarks, transformer.normalization_.T @ coefficients, node.shapes[0][0])


def _pruned(node: Kernel, w: np.ndarray, tolerance: float) -> Support:
    """The expansion without the inputs that hardly count."""
    coefficients = node.coefficients(w).T
    terms = np.sqrt((coefficients**2).sum(axis=1) * node.gram.diagonal())
    order = np.argsort(terms, kind="stable")
    sums = np.cumsum(terms[order])
    dropped = int(np.searchsorted(sums, tolerance * np.sqrt(node.inner(w, w)), side="right"))
    kept = np.sort(order[dropped:])
    error = float(sums[dropped - 1]) if dropped else 0.0
    inputs: Any = node.inputs
    inputs = kept if inputs is None else inputs[kept]
    return Support(node.function, inputs, np.ascontiguousarray(coefficients[kept]), node.gram.size, error)


def _nystroem(function: KernelFunction, count: int, seed: int) -> Any:
    from sklearn.kernel_approximation import Nystroem

    own = {"gamma": function.gamma} if function.kernel in ("poly", "rbf") else {}
    own |= {"degree": function.degree, "coef0": function.coef0} if function.kernel == "poly" else {}
    params = dict(function.params) or None
    return Nystroem(function.kernel, **own, n_components=count, random_state=seed, kernel_params=params)
