"""What model files hold: parameters, labels and how training went as JSON, vocabularies and kernel models as arrays.

Vocabularies are millions of strings at times, so they are bytes in an array. Kernel models are inputs and coefficients,
or the random numbers of a transformer. Nothing is ever code.
"""

from __future__ import annotations

import dataclasses
import json
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from m3n import losses, solvers
from m3n.estimators.kernel_scores import Support, Transformed
from m3n.estimators.matrices import packed, unpacked
from m3n.features import AttributeVectorizer, HashedAttributes, HashedTemplates, KernelFunction, Templates
from m3n.run.certificate import Certificate, Record
from m3n.run.loop import Status
from m3n.structures import Transitions

if TYPE_CHECKING:
    from m3n.estimators.declaration import Estimator
    from m3n.estimators.trained import Trained

LEARNT = {  # what fit learns
    "RBFSampler": ("random_weights_", "random_offset_"),
    "PolynomialCountSketch": ("indexHash_", "bitHash_"),
}
PREFIX = "kernel_"
Packed = tuple[dict[str, Any], dict[str, np.ndarray]]


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


# parameters that files do not hold; a model that was used is there
UNSAVED = ("backend", "checkpoint", "translations", "prior", "validation")
DEFAULTS = {
    "solver": "auto",
    "loss": "hamming",
    "random_state": 0,
}  # of parameters that a file cannot hold; None for the others


def described(estimator: Trained) -> dict[str, Any]:
    """Parameters, labels and how training went, as JSON; an imported model was trained elsewhere."""
    certificate, status = estimator.certificate_, estimator.status_
    radius = vars(estimator).get("radius_")
    return {
        "params": described_params(estimator),
        "classes": estimator.classes_.tolist(),
        "lam": estimator.lam_,
        "radius": radius if radius is not None and np.isfinite(radius) else None,
        "certificate": None if certificate is None else dataclasses.asdict(certificate),
        "status": None if status is None else str(status),
        "trace": [dataclasses.asdict(record) for record in estimator.trace_],
        "origin": getattr(estimator, "origin_", {}),
    }


def described_params(estimator: Estimator) -> dict[str, Any]:
    """The arguments of the constructor, as JSON."""
    params = estimator.get_params(deep=False)
    return {name: _plain(name, value) for name, value in params.items() if name not in UNSAVED}


def restored_params(meta: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the constructor."""
    return {name: _restored(value) for name, value in meta["params"].items()}


def restored_history(meta: dict[str, Any]) -> dict[str, Any]:
    """Labels and how training went, by the names of attributes."""
    certificate, status = meta["certificate"], meta["status"]
    return {
        "classes_": np.array(meta["classes"]),
        "lam_": meta["lam"],
        "certificate_": None if certificate is None else Certificate(**certificate),
        "status_": None if status is None else Status(status),
        "trace_": [Record(**record) for record in meta["trace"]],
        "origin_": meta.get("origin", {}),
        "radius_": meta.get("radius"),  # files once had none
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
    if value["family"] == "templates":
        settings.setdefault("syntax", "m3n")  # what lines meant before there were others
    return FAMILIES[value["family"]][value["name"]](**settings)


def packed_kernel(model: Support | Transformed) -> Packed:
    """A model as plain values and arrays."""
    meta, tensors = _pack_support(model) if isinstance(model, Support) else _pack_transformed(model)
    tensors["coefficients"] = model.coefficients
    return meta, {PREFIX + name: np.ascontiguousarray(array) for name, array in tensors.items()}


def unpacked_kernel(meta: dict[str, Any], tensors: dict[str, np.ndarray]) -> Support | Transformed:
    """The model again."""
    own = {name.removeprefix(PREFIX): array for name, array in tensors.items() if name.startswith(PREFIX)}
    if "transformer" in meta:
        return Transformed(_restored_transformer(meta, own), own["coefficients"])
    function = None if meta["function"] is None else KernelFunction(**meta["function"])
    inputs: Any = own["inputs"] if "inputs" in own else unpacked("", own, tuple(meta["shape"]))
    if inputs.shape[0] != len(own["coefficients"]):
        raise ValueError(f"{inputs.shape[0]} support inputs with {len(own['coefficients'])} rows of coefficients")
    return Support(function, inputs, own["coefficients"], meta["trained_on"], meta["error"])


def _pack_support(model: Support) -> Packed:
    function = model.function
    if function is not None and callable(function.kernel):
        raise TypeError(
            f"the kernel is the function {function.kernel!r:.60}, and model files never hold code: "
            "use pickle for this model, or a kernel's name"
        )
    meta: dict[str, Any] = {
        "function": None if function is None else {**vars(function), "params": dict(function.params)}
    }
    meta |= {"trained_on": model.trained_on, "error": model.error}
    if not scipy.sparse.issparse(model.inputs):
        return meta, {"inputs": model.inputs}
    return meta | {"shape": list(model.inputs.shape)}, packed("", model.inputs)


def _pack_transformed(model: Transformed) -> Packed:
    transformer = model.transformer
    name = type(transformer).__name__
    if name not in LEARNT or not type(transformer).__module__.startswith("sklearn."):
        raise TypeError(
            f"a model with the transformer {transformer!r:.60} cannot be written to a model file; "
            f"use pickle, or one of {sorted(LEARNT)}"
        )
    settings = {key: value for key, value in transformer.get_params().items() if key != "random_state"}
    return {"transformer": name, "settings": settings}, {key: getattr(transformer, key) for key in LEARNT[name]}


def _restored_transformer(meta: dict[str, Any], own: dict[str, np.ndarray]) -> Any:
    from sklearn import kernel_approximation

    name = meta["transformer"]
    transformer = getattr(kernel_approximation, name)(**meta["settings"])
    for key in LEARNT[name]:
        setattr(transformer, key, own[key])
    constant = name == "PolynomialCountSketch" and transformer.coef0 != 0
    transformer.n_features_in_ = own[LEARNT[name][0]].shape[0 if name == "RBFSampler" else 1] - constant
    return transformer


def packed_vocabulary(vectorizer: AttributeVectorizer | Templates | None) -> dict[str, np.ndarray]:
    """What a vectoriser has learnt."""
    if vectorizer is None:
        return {}
    if isinstance(vectorizer, (HashedAttributes, HashedTemplates)):
        return {"hash_bits": np.array([vectorizer.bits])}
    if isinstance(vectorizer, AttributeVectorizer):
        return {"vocabulary": _packed_text(list(vectorizer.vocabulary))}
    tables = [(j, table) for j, own in enumerate(vectorizer.attributes) for table in own.tables]
    return {
        "vocabulary": _packed_text([[column, values] for column, values in vectorizer.values.items()]),
        "keys": np.concatenate([table for _, table in tables]),
        "key_tables": np.array([(j, len(table)) for j, table in tables]),  # which template's, how long
    }


def restored_vectorizer(
    tensors: Mapping[str, np.ndarray], templates: Templates | None, separator: str | None = None
) -> AttributeVectorizer | Templates | None:
    """The vectoriser again."""
    if "hash_bits" in tensors:
        bits = int(tensors["hash_bits"][0])
        return HashedAttributes(bits) if templates is None else HashedTemplates(templates, bits)
    if "vocabulary" not in tensors:
        return None
    entries = json.loads(tensors["vocabulary"].tobytes().decode("utf-8", "surrogatepass"))
    if templates is None:
        vectorizer = AttributeVectorizer(separator)
        attributes = [entry if isinstance(entry, str) else (entry[0], entry[1]) for entry in entries]
        vectorizer.vocabulary = {attribute: k for k, attribute in enumerate(attributes)}
        return vectorizer
    owners, lengths = tensors["key_tables"].T
    tables = list(zip(owners, np.split(tensors["keys"], np.cumsum(lengths)[:-1]), strict=True))
    restored = templates.unfitted()
    restored.restore(dict(entries), [[t for j, t in tables if j == k] for k in range(len(restored.parsed))])
    return restored


def _packed_text(entries: list[Any]) -> np.ndarray:
    return np.frombuffer(json.dumps(entries, ensure_ascii=False).encode("utf-8", "surrogatepass"), dtype=np.uint8)
