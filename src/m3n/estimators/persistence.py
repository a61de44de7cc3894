"""Saving and loading estimators: which numbers and texts make a model."""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from m3n import losses, solvers
from m3n.certificate import Certificate, Record
from m3n.estimators import kernel_files
from m3n.estimators.inputs import SequenceReader
from m3n.features import AttributeVectorizer, Templates
from m3n.io import model_file
from m3n.loop import Status
from m3n.structures import Transitions

if TYPE_CHECKING:
    from m3n.estimators.sequence_tagger import SequenceTagger

SPARSE = ("data", "indices", "indptr")  # of a sparse coef_
TABLES = ("transitions_", "start_", "end_")
MASKS = ("forbidden", "forbidden_start", "forbidden_end")  # of constraints_; a model without them has none
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


def load(path: str | os.PathLike[str]) -> SequenceTagger:
    """Load a model that ``save`` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : path
        The model file.
    """
    kind, meta, tensors = model_file.read(path)
    if kind != "SequenceTagger":
        raise model_file.ModelFileError(f"{os.fspath(path)!r} holds a {kind}, which this version cannot load")
    try:
        return _restore_tagger(meta, tensors)
    except (KeyError, TypeError, ValueError) as error:
        message = f"{os.fspath(path)!r} is damaged: {type(error).__name__}: {error}"
        raise model_file.ModelFileError(message) from None


def save_tagger(tagger: SequenceTagger, path: str | os.PathLike[str]) -> None:
    """Write a fitted tagger.

    Parameters
    ----------
    tagger : SequenceTagger
        The fitted model.
    path : path
        Where to.
    """
    reader = tagger.reader_
    weights, described = _packed_weights(tagger)  # first: it refuses what a file cannot hold
    meta = {
        "params": {name: _plain(name, value) for name, value in tagger.get_params(deep=False).items()},
        "classes": tagger.classes_.tolist(),
        "lam": tagger.lam_,
        "certificate": dataclasses.asdict(tagger.certificate_),
        "status": str(tagger.status_),
        "trace": [dataclasses.asdict(record) for record in tagger.trace_],
        "reader": {"kind": reader.kind, "width": reader.width},
        **described,
    }
    tensors = {name: getattr(tagger, name) for name in TABLES} | weights
    tensors |= _vocabulary(reader.vectorizer)
    if tagger.constraints_ is not None:
        tensors |= {f"constraints_{name}": getattr(tagger.constraints_, name).astype(np.uint8) for name in MASKS}
    model_file.write(path, "SequenceTagger", meta, tensors)


def _restore_tagger(meta: dict[str, Any], tensors: dict[str, np.ndarray]) -> SequenceTagger:
    from m3n.estimators.sequence_tagger import SequenceTagger

    tagger = SequenceTagger(**{name: _restored(value) for name, value in meta["params"].items()})
    tagger.classes_ = np.array(meta["classes"])
    tagger.lam_ = meta["lam"]
    tagger.certificate_ = Certificate(**meta["certificate"])
    tagger.status_ = Status(meta["status"])
    tagger.trace_ = [Record(**record) for record in meta["trace"]]
    for name in TABLES:
        setattr(tagger, name, tensors[name])
    if "kernel_model" in meta:
        tagger.kernel_model_ = kernel_files.unpack(meta["kernel_model"], tensors)
    else:
        tagger.coef_ = _coefficients(tensors, (meta["reader"]["width"], len(tagger.classes_)))
    tagger.constraints_ = None
    if "constraints_forbidden" in tensors:
        masks = (tensors[f"constraints_{name}"] for name in MASKS)
        tagger.constraints_ = Transitions(tuple(meta["classes"]), *masks)
    tagger.n_features_in_ = meta["reader"]["width"]
    tagger.reader_ = SequenceReader(**meta["reader"], vectorizer=_vectorizer(tensors, tagger.templates))
    _check_shapes(tagger)
    return tagger


def _packed_weights(tagger: SequenceTagger) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What scores the attributes, as arrays and plain values."""
    if hasattr(tagger, "kernel_model_"):
        described, tensors = kernel_files.pack(tagger.kernel_model_)
        return tensors, {"kernel_model": described}
    if not scipy.sparse.issparse(tagger.coef_):
        return {"coef_": tagger.coef_}, {}
    matrix = scipy.sparse.csr_array(tagger.coef_)
    return {f"coef_{name}": getattr(matrix, name) for name in SPARSE}, {}


def _coefficients(tensors: dict[str, np.ndarray], shape: tuple[int, int]) -> Any:
    if "coef_data" not in tensors:
        return tensors["coef_"]
    matrix: Any = scipy.sparse.csr_array(tuple(tensors[f"coef_{name}"] for name in SPARSE), shape=shape)
    matrix.check_format()  # no attributes or labels that do not exist
    return matrix


def _check_shapes(tagger: SequenceTagger) -> None:
    labels = len(tagger.classes_)
    expected = {"transitions_": (labels, labels), "start_": (labels,), "end_": (labels,)}
    found = {name: getattr(tagger, name) for name in TABLES}
    if hasattr(tagger, "kernel_model_"):
        found["coefficients"] = tagger.kernel_model_.coefficients
        expected["coefficients"] = (len(found["coefficients"]), labels)
    else:
        found["coef_"], expected["coef_"] = tagger.coef_, (tagger.reader_.width, labels)
    for name, shape in expected.items():
        if found[name].shape != shape:
            raise ValueError(f"{name} has shape {found[name].shape}, expected {shape}")


def _vocabulary(vectorizer: AttributeVectorizer | Templates | None) -> dict[str, np.ndarray]:
    """What a vectoriser has learnt. That may be millions of strings: bytes in a tensor, not in the header."""
    if vectorizer is None:
        return {}
    if isinstance(vectorizer, AttributeVectorizer):
        return {"vocabulary": _packed(list(vectorizer.vocabulary))}
    tables = [(j, table) for j, own in enumerate(vectorizer.attributes) for table in own.tables]
    return {
        "vocabulary": _packed([[column, values] for column, values in vectorizer.values.items()]),
        "keys": np.concatenate([table for _, table in tables]),
        "key_tables": np.array([(j, len(table)) for j, table in tables]),  # which template's, how long
    }


def _vectorizer(tensors: dict[str, np.ndarray], templates: Templates | None) -> AttributeVectorizer | Templates | None:
    if "vocabulary" not in tensors:
        return None
    entries = json.loads(tensors["vocabulary"].tobytes().decode("utf-8", "surrogatepass"))
    if templates is None:
        vectorizer = AttributeVectorizer()
        attributes = [entry if isinstance(entry, str) else (entry[0], entry[1]) for entry in entries]
        vectorizer.vocabulary = {attribute: k for k, attribute in enumerate(attributes)}
        return vectorizer
    owners, lengths = tensors["key_tables"].T
    tables = list(zip(owners, np.split(tensors["keys"], np.cumsum(lengths)[:-1]), strict=True))
    restored = templates.unfitted()
    restored.restore(dict(entries), [[t for j, t in tables if j == k] for k in range(len(restored.parsed))])
    return restored


def _packed(entries: list[Any]) -> np.ndarray:
    return np.frombuffer(json.dumps(entries, ensure_ascii=False).encode("utf-8", "surrogatepass"), dtype=np.uint8)


def _plain(name: str, value: Any) -> Any:
    """A constructor argument as JSON; what is not ours is replaced by the default, with a warning."""
    try:
        return _written(value)
    except TypeError:
        warnings.warn(f"{name}={value!r} is not part of m3n: the saved model holds its default instead", stacklevel=4)
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
