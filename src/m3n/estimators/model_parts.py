"""What all model files hold as JSON: parameters, labels, and how training went."""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from m3n import losses, solvers
from m3n.features import Templates
from m3n.run.certificate import Certificate, Record
from m3n.run.loop import Status
from m3n.structures import Transitions

if TYPE_CHECKING:
    from m3n.estimators.trained import Trained


def _by_name(kinds: Iterable[Any]) -> dict[str, Any]:
    """Classes by their names, written as ``cost_matrix`` is."""
    return {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower(): kind for kind in kinds}


def _exported(module: Any) -> list[Any]:
    """The classes that a module exports."""
    return [found for found in (getattr(module, name) for name in module.__all__) if isinstance(found, type)]


def _is_option(kind: Any) -> bool:
    """Orders, moves and caches: the small objects among a solver's settings."""
    return dataclasses.is_dataclass(kind) and not issubclass(kind, solvers.Solver)  # type: ignore[arg-type]


FAMILIES: dict[str, dict[str, Any]] = {
    "solver": dict(solvers.BY_NAME),
    "option": _by_name(filter(_is_option, _exported(solvers))),
    "loss": _by_name(kind for kind in _exported(losses) if issubclass(kind, losses.Loss)),
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


def restored(meta: dict[str, Any]) -> dict[str, Any]:
    """Labels and how training went, by the names of attributes."""
    certificate, status = meta["certificate"], meta["status"]
    return {
        "classes_": np.array(meta["classes"]),
        "lam_": meta["lam"],
        "certificate_": None if certificate is None else Certificate(**certificate),
        "status_": None if status is None else Status(status),
        "trace_": [Record(**record) for record in meta["trace"]],
        "origin_": meta.get("origin", {}),
    }


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
