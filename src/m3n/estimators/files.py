"""Model files of all estimators, by what these declare: parameters, reader, learnt arrays, and how training went.

The sizes of arrays are known by name: "labels" from the classes, "attributes" and "pairs" from the reader; others are
what the first array that has them says. What does not fit is refused before anything is computed with it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from m3n.estimators import model_parts
from m3n.estimators.declaration import Learnt
from m3n.estimators.matrices import packed, unpacked
from m3n.io import model_file

if TYPE_CHECKING:
    from m3n.estimators.trained import Trained

Tensors = dict[str, np.ndarray]


class Content(NamedTuple):
    """What a file holds: plain values, arrays, and the attributes that these have become so far."""

    meta: dict[str, Any]
    tensors: Tensors
    fitted: dict[str, Any]


def save(model: Trained, path: str | os.PathLike[str]) -> None:
    """Write a fitted model.

    Parameters
    ----------
    model : Trained
        The fitted model.
    path : path
        Where to.
    """
    meta, tensors = model._packed()
    reader, vocabulary = model.reader_.packed()
    for entry in model._arrays():
        tensors |= packed(entry.name, vars(model).get(entry.name))
    if not model._linear:
        meta["kernel_model"], coefficients = model_parts.packed_kernel(model.kernel_model_)
        tensors |= coefficients
    meta = model_parts.described(model) | meta | {"reader": reader}
    model_file.write(path, kind_of(model), meta, tensors | vocabulary)


def kind_of(model: Trained) -> str:
    """The name of the estimator that a model is, or is derived from."""
    return next(base.__name__ for base in type(model).__mro__ if "_parameters" in vars(base))


def restore(kind: type[Trained], meta: dict[str, Any], tensors: Tensors) -> Trained:
    """A model of that kind from the contents of a file."""
    model = kind(**model_parts.restored_params(meta))
    fitted = model_parts.restored_history(meta)
    plain = meta["reader"] if "reader" in meta else {"width": meta["width"]}  # as multilabel models once had it
    reader = kind._reader.unpacked(plain, tensors, getattr(model, "templates", None))
    fitted |= known_inputs(reader)
    sizes: dict[Any, Any] = {
        "labels": len(fitted["classes_"]),
        "attributes": reader.width,
        "pairs": reader.pair_width or None,
    }
    if "kernel_model" in meta:
        fitted["kernel_model_"] = model_parts.unpacked_kernel(meta["kernel_model"], tensors)
        coefficients = fitted["kernel_model_"].coefficients
        check_shape("coefficients", coefficients, (len(coefficients), sizes["labels"]))
    for entry in kind._arrays():
        if entry.name != "coef_" or "kernel_model" not in meta:
            fitted[entry.name] = restored_array(entry, tensors, sizes)
    vars(model).update(fitted | model._unpacked(Content(meta, tensors, fitted)))
    return model


def known_inputs(reader: Any) -> dict[str, Any]:
    """What a reader knows about inputs, by the names of attributes."""
    names = getattr(reader, "column_names", None)
    named = {} if names is None else {"feature_names_in_": np.array(names, dtype=object)}
    return {"reader_": reader, "n_features_in_": reader.width} | named


def restored_array(entry: Learnt, tensors: Tensors, sizes: dict[Any, Any]) -> Any:
    """A declared array after checking its shape and its range; a sparse one has the axes after the first joined."""
    array: Any = tensors.get(entry.name)
    sparse, first = f"{entry.name}data" in tensors, entry.shape[0]
    absent = first in sizes and sizes[first] is None
    if absent != (array is None and not sparse):
        raise ValueError(f"{entry.name}: " + (f"weights without {first}" if absent else f"{first} without weights"))
    if absent:
        return None
    found = entry.shape if sparse or array.ndim != len(entry.shape) else array.shape
    shape = tuple(
        name if isinstance(name, int) else sizes.setdefault(name, size)
        for name, size in zip(entry.shape, found, strict=True)
    )
    if sparse:
        shape = shape[0], int(np.prod(shape[1:]))
        array = unpacked(entry.name, tensors, shape)
    check_shape(entry.name, array, shape)
    _check_range(entry, array, sizes)
    return array


def check_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    """Refuse an array of another shape."""
    if array is None or array.shape != shape:
        raise ValueError(f"{name} has shape {getattr(array, 'shape', None)}, expected {shape}")


def _check_range(entry: Learnt, array: Any, sizes: dict[Any, Any]) -> None:
    """Refuse weights that are no numbers, and whole numbers that would lead outside of other arrays."""
    if entry.limits is None:
        if array.dtype.kind != "f":
            raise ValueError(f"{entry.name} holds {array.dtype}, not numbers with a point")
        return
    low, size = entry.limits
    high = np.iinfo(np.int64).max if size is None else sizes[size]
    if array.dtype.kind not in "iu" or (array.size and not low <= array.min() <= array.max() < high):
        raise ValueError(f"{entry.name} has entries outside of {low}..{high - 1}")
