"""What a model is and what it has learnt, as plain values: its facts, and the largest weights of every label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse

from m3n.estimators.declaration import Declared
from m3n.estimators.matrices import stored

# where models that declare nothing may keep their weights
USUAL = ("coef_", "transitions_", "start_", "end_", "segment_coef_", "edge_coef_", "tables_", "intercept_")


def summary(model: Any) -> dict[str, Any]:
    """The facts about a fitted model, ready for JSON.

    Parameters
    ----------
    model : estimator
        Any of m3n's, fitted or loaded.

    Returns
    -------
    dict
        ``kind`` of estimator, ``labels``, ``attributes`` (their number), ``weights`` and ``nonzero_weights`` (their
        numbers; with a kernel, of coefficients), ``bytes`` that they take in memory, ``support`` (how many inputs a
        kernel model keeps, else None), ``objective``, ``solver``, ``lam``, ``temperature`` (of its
        probabilities), ``coverage`` (the thresholds of sets of answers), ``certificate`` (``primal``, ``dual``, ``gap``
        and ``relaxed``), ``status``, ``passes``, ``seconds``, ``parameters`` that differ from their defaults, and the
        ``version`` of m3n that trained it. What a model does not know is None.
    """
    model._check_fitted()
    held = model._holder
    arrays = list(weight_arrays(held))
    certificate, trace = getattr(held, "certificate_", None), getattr(held, "trace_", None)
    status, origin = getattr(held, "status_", None), getattr(held, "origin_", {})
    return {
        "kind": type(model).__name__,
        "labels": held.classes_.tolist(),
        "attributes": int(held.n_features_in_),
        "weights": count_weights(held),
        "nonzero_weights": sum(int(np.count_nonzero(stored(array)[0])) for array in arrays),
        "bytes": sum(part.nbytes for array in arrays for part in stored(array)),
        "support": getattr(getattr(held, "kernel_model_", None), "size", None),
        "objective": held.objective,
        "solver": origin.get("solver"),
        "lam": _plain(getattr(held, "lam_", None)),
        "temperature": _plain(getattr(held, "temperature_", None)),
        "coverage": None if getattr(held, "coverage_", None) is None else asdict(held.coverage_),
        "certificate": None if certificate is None else _bounds(certificate),
        "status": None if status is None else str(status),
        "passes": float(trace[-1].passes) if trace else None,
        "seconds": float(trace[-1].seconds) if trace else None,
        "parameters": {name: _plain(value) for name, value in model._changed().items()},
        "version": origin.get("m3n"),
    }


def top_weights(model: Any, k: int = 10) -> dict[Any, list[tuple[str, float]]]:
    """The most positive and the most negative weights of every label.

    Parameters
    ----------
    model : estimator
        Any of m3n's that is linear in its attributes, fitted or loaded.
    k : int
        How many of each sign.

    Returns
    -------
    dict
        From a label to pairs of an attribute's name and its weight, from the largest weight to the smallest: at most k
        above 0, then at most k below 0. An attribute of an array is called ``x0``, ``x1`` and so on.
    """
    model._check_fitted()
    model = model._holder
    if not (isinstance(k, (int, np.integer)) and k > 0):
        raise ValueError(f"k must be a positive whole number, got {k!r}")
    if not model._linear:
        raise ValueError("a kernel model has no weights of attributes; look at its kernel_model_ or at explain(x)")
    if not model._has_names:
        raise ValueError(f"the weights of a {type(model).__name__} have no names; look at explain(x)")
    return extreme_weights(model.coef_, model.classes_.tolist(), attribute_names(model), k)


def extreme_weights(
    coef: Any, labels: Sequence[Any], names: Sequence[str], k: int
) -> dict[Any, list[tuple[str, float]]]:
    """As ``top_weights``, of any matrix.

    Parameters
    ----------
    coef : array or sparse matrix (attributes, labels)
        The weights.
    labels : sequence
        The labels.
    names : sequence of str
        The names of the attributes.
    k : int
        How many of each sign.
    """
    found = [_extremes(*column, k) for column in _columns(coef)]
    return {
        label: [(names[j], weight) for j, weight in zip(columns.tolist(), weights.tolist(), strict=True)]
        for label, (columns, weights) in zip(labels, found, strict=True)
    }


def attribute_names(model: Any) -> Sequence[str]:
    """The names of a model's attributes, column by column.

    Parameters
    ----------
    model : estimator
        Fitted.
    """
    names = given_names(model)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else names


def given_names(model: Any) -> Sequence[str] | None:
    """The names of attributes, if a model was trained on attributes with names.

    Parameters
    ----------
    model : estimator
        Fitted.
    """
    vectorizer = getattr(getattr(model, "reader_", None), "vectorizer", None)
    return None if vectorizer is None else vectorizer.names


def weight_arrays(model: Any) -> Iterator[Any]:
    """All arrays of weights, dense or sparse.

    Parameters
    ----------
    model : estimator
        Fitted.
    """
    declared = isinstance(model, Declared)
    names = [entry.name for entry in model._arrays() if entry.weights] if declared else USUAL
    yield from (array for array in (getattr(model, name, None) for name in names) if array is not None)
    kernel = getattr(model, "kernel_model_", None)
    if kernel is not None:
        yield kernel.coefficients


def count_weights(model: Any) -> int:
    """How many weights a model keeps; a sparse matrix holds only those that it has.

    Parameters
    ----------
    model : estimator
        Fitted.
    """
    return sum(np.size(stored(array)[0]) for array in weight_arrays(model))


def _columns(coef: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For every label the numbers of attributes and their weights."""
    if scipy.sparse.issparse(coef):
        by_label = coef.tocsc()
        for low, high in zip(by_label.indptr[:-1], by_label.indptr[1:], strict=True):
            yield by_label.indices[low:high], by_label.data[low:high]
        return
    every = np.arange(coef.shape[0])
    for k in range(coef.shape[1]):
        yield every, np.ascontiguousarray(coef[:, k])


def _extremes(columns: np.ndarray, weights: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest positive and the k smallest negative weights, in descending order."""
    kept = np.arange(len(weights))
    if len(weights) > 2 * k:
        order = np.argpartition(weights, (k - 1, len(weights) - k))
        kept = np.concatenate([order[:k], order[-k:]])
    kept = kept[np.lexsort((columns[kept], -weights[kept]))]
    positive, negative = kept[weights[kept] > 0.0][:k], kept[weights[kept] < 0.0][-k:]
    kept = np.concatenate([positive, negative])
    return columns[kept], weights[kept]


def _bounds(certificate: Any) -> dict[str, Any]:
    names = ("primal", "dual", "gap")
    return {name: float(getattr(certificate, name)) for name in names} | {"relaxed": bool(certificate.relaxed)}


def _plain(value: Any) -> Any:
    """A value as JSON has it; what it has not, as text."""
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        return value.item()
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
