"""Kernel models in model files: inputs and coefficients, or the random numbers of a transformer. Never code."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from m3n.estimators.kernel_scores import Support, Transformed
from m3n.estimators.matrices import packed, unpacked
from m3n.features import KernelFunction

LEARNT = {  # what fit learns
    "RBFSampler": ("random_weights_", "random_offset_"),
    "PolynomialCountSketch": ("indexHash_", "bitHash_"),
}
PREFIX = "kernel_"
Packed = tuple[dict[str, Any], dict[str, np.ndarray]]


def pack(model: Support | Transformed) -> Packed:
    """A model as plain values and arrays."""
    meta, tensors = _pack_support(model) if isinstance(model, Support) else _pack_transformed(model)
    tensors["coefficients"] = model.coefficients
    return meta, {PREFIX + name: np.ascontiguousarray(array) for name, array in tensors.items()}


def unpack(meta: dict[str, Any], tensors: dict[str, np.ndarray]) -> Support | Transformed:
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
