"""Labelled examples on their way from a user's hands to a training problem."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from m3n.estimators.matrices import stored
from m3n.features import Stack


@dataclass(frozen=True)
class Examples:
    """Inputs with their outputs, as numbers.

    Attributes
    ----------
    inputs : object
        What the reader of an estimator makes of X, examples one after another: ``matrix`` with the attributes of all
        positions, ``only`` for some of the examples, and ``arrays`` for all that tells them from others.
    classes : array (labels,)
        The labels.
    outputs : list or array
        One output per example, as the structure takes them, with numbers for labels.
    weights : array (examples,) or None
        How often every example counts.
    learnt : mapping
        Further attributes of a model that reading has settled.
    given : sequence or None
        X as it was given, where an estimator needs that again.
    """

    inputs: Any
    classes: np.ndarray
    outputs: Any
    weights: np.ndarray | None = None
    learnt: Mapping[str, Any] = field(default_factory=dict)
    given: Sequence[Any] | None = None

    @property
    def count(self) -> float:
        """The number of examples, or the sum of their weights."""
        return len(self.outputs) if self.weights is None else float(self.weights.sum())

    def weighted(self, sample_weight: Any, example: str) -> Examples:
        """The examples with their weights, those of weight 0 left out."""
        weights = read_weights(sample_weight, len(self.outputs), example)
        examples = replace(self, weights=weights)
        return examples if weights is None or weights.all() else examples.only(np.flatnonzero(weights))

    def only(self, chosen: np.ndarray) -> Examples:
        """Some of the examples, in the given order."""
        outputs = self.outputs
        outputs = outputs[chosen] if isinstance(outputs, np.ndarray) else [outputs[i] for i in chosen]
        weights = None if self.weights is None else self.weights[chosen]
        given = None if self.given is None else [self.given[i] for i in chosen]
        return replace(self, inputs=self.inputs.only(chosen), outputs=outputs, weights=weights, given=given)

    def fingerprint(self) -> str:
        """The same for the same data."""
        digest = hashlib.blake2b(digest_size=16)
        outputs = [np.asarray(output).ravel() for output in self.outputs]
        weights = np.ones(1) if self.weights is None else self.weights
        inputs = [array for matrix in self.inputs.arrays() for array in stored(matrix)]
        for array in (*inputs, np.concatenate(outputs), weights):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Setup:
    """What makes a training problem of examples, and what a model keeps of it besides weights."""

    structure: Any  # the output space
    features: Stack  # the maps of all groups of weights, attributes first
    learnt: dict[str, Any] = field(default_factory=dict)  # attributes of the model
    weights: np.ndarray | None = None  # weights of the structure's examples, if these are not those that were given
    scale: float = 1.0  # the objective is so many times that of the problem: where a structure takes examples apart


def read_weights(sample_weight: Any, count: int, what: str = "sequence") -> np.ndarray | None:
    """One number per example, not negative; None if all examples count alike."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (count,):
        raise ValueError(f"sample_weight must have one number per {what}, shape ({count},), got {weights.shape}")
    bad = np.flatnonzero(~((weights >= 0.0) & np.isfinite(weights)))
    if bad.size:
        raise ValueError(f"sample_weight[{bad[0]}] is {weights[bad[0]]}: weights must be finite and not negative")
    if not weights.any():
        raise ValueError("sample_weight is 0 everywhere: there is nothing to train on")
    return weights
