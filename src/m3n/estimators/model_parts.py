"""What the model files of all estimators hold: parameters, labels, the certificate, and the weights of attributes."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

from m3n import losses, solvers
from m3n.estimators import kernel_files
from m3n.estimators.trained import Trained
from m3n.features import Templates
from m3n.run.certificate import Certificate, Record
from m3n.run.loop import Status
from m3n.structures import Transitions

SPARSE = ("data", "indices", "indptr")  # of a sparse matrix
FAMILIES: dict[str, dict[str, Any]] = {
    "solver": dict(solvers.BY_NAME),
    "loss": {
        **losses.BY_NAME,
        "cost_matrix": losses.CostMatrix,
        "edge_hamming": losses.EdgeHamming,
        "no_loss": losses.NoLoss,
        "sum": losses.Sum,
    },
    "templates": {"templates": Templates},
    "constraints": {"transitions": Transitions},
}
DEFAULTS = {"solver": "auto", "loss": "hamming"}  # of parameters that a file cannot hold; None for the others


def described(estimator: Trained) -> dict[str, Any]:
    """Parameters, labels and how training went, as JSON; an imported model was trained elsewhere."""
    certificate, status = estimator.certificate_, estimator.status_
    params = estimator.get_params(deep=False)
    return {
        "params": {name: _plain(name, value) for name, value in params.items() if name != "checkpoint"},
        "classes": estimator.classes_.tolist(),
        "lam": estimator.lam_,
        "certificate": None if certificate is None else dataclasses.asdict(certificate),
        "status": None if status is None else str(status),
        "trace": [dataclasses.asdict(record) for record in estimator.trace_],
        "origin": getattr(estimator, "origin_", {}),
    }


def restored_params(meta: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the constructor."""
    return {name: _restored(value) for name, value in meta["params"].items()}


def restore(estimator: Any, meta: dict[str, Any]) -> None:
    """Labels and how training went."""
    estimator.classes_ = np.array(meta["classes"])
    certificate, status = meta["certificate"], meta["status"]
    estimator.lam_ = meta["lam"]
    estimator.certificate_ = None if certificate is None else Certificate(**certificate)
    estimator.status_ = None if status is None else Status(status)
    estimator.trace_ = [Record(**record) for record in meta["trace"]]
    estimator.origin_ = meta.get("origin", {})


def packed_weights(estimator: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What scores the attributes, as arrays and plain values; refuses what a file cannot hold."""
    if hasattr(estimator, "kernel_model_"):
        described, tensors = kernel_files.pack(estimator.kernel_model_)
        return tensors, {"kernel_model": described}
    return packed_matrix("coef_", estimator.coef_), {}


def packed_matrix(name: str, matrix: Any) -> dict[str, np.ndarray]:
    """A matrix, dense or sparse, as tensors."""
    if not scipy.sparse.issparse(matrix):
        return {name: matrix}
    sparse = scipy.sparse.csr_array(matrix)
    return {f"{name}{part}": getattr(sparse, part) for part in SPARSE}


def restored_matrix(name: str, tensors: dict[str, np.ndarray], shape: tuple[int, ...]) -> Any:
    """The inverse of ``packed_matrix``, after checking the shape; a sparse one has the axes after the first joined."""
    matrix: Any = tensors.get(name)
    if f"{name}data" in tensors:
        shape = shape[0], int(np.prod(shape[1:]))
        matrix = scipy.sparse.csr_array(tuple(tensors[f"{name}{part}"] for part in SPARSE), shape=shape)
        matrix.check_format()  # no attributes or labels that do not exist
    check_shape(name, matrix, shape)
    return matrix


def restore_weights(
    estimator: Any, meta: dict[str, Any], tensors: dict[str, np.ndarray], shape: tuple[int, int]
) -> None:
    """The weights of attributes, (attributes, labels), or the kernel model."""
    if "kernel_model" in meta:
        estimator.kernel_model_ = kernel_files.unpack(meta["kernel_model"], tensors)
        coefficients = estimator.kernel_model_.coefficients
        check_shape("coefficients", coefficients, (len(coefficients), shape[1]))
        return
    estimator.coef_ = restored_matrix("coef_", tensors, shape)


def check_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    """Refuse an array of another shape."""
    if array is None or array.shape != shape:
        raise ValueError(f"{name} has shape {getattr(array, 'shape', None)}, expected {shape}")


def _plain(name: str, value: Any) -> Any:
    """A constructor argument as JSON; what is not ours is replaced by the default, with a warning."""
    try:
        return _written(value)
    except TypeError:
        warnings.warn(f"{name}={value!r} is not part of m3n: the saved model holds its default instead", stacklevel=5)
        return {"family": "default", "name": name}


def _written(value: Any) -> Any:
    """Plain values as they are; our own solvers, losses, templates and constraints by name and settings."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        return value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_written(entry) for entry in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, Mapping):
        return {"family": "mapping", "entries": [[_written(key), _written(entry)] for key, entry in value.items()]}
    for family, known in FAMILIES.items():
        for key, kind in known.items():
            if type(value) is kind:
                fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
                settings = {field.name: _written(getattr(value, field.name)) for field in fields}
                return {"family": family, "name": key, "settings": settings}
    raise TypeError(f"{value!r} cannot be written to a file")


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if value["family"] == "default":
        return DEFAULTS.get(value["name"])
    if value["family"] == "mapping":
        return {tuple(key) if isinstance(key, list) else key: _restored(entry) for key, entry in value["entries"]}
    settings = {name: _restored(setting) for name, setting in value["settings"].items()}
    return FAMILIES[value["family"]][value["name"]](**settings)
