"""Losses of labels: the weighted number of wrong ones, their share, a cost for each kind of error; and no loss at all.

With class weights c and position weights v, a wrong label at position t of a sequence whose right label is g costs

    Hamming                v_t c_g
    NormalizedHamming      v_t c_g / sum_s v_s

The sum of the position weights takes the place of the length: positions of weight 0 count neither as errors nor as
length, and without class weights the loss stays between 0 and 1. Class weights are not divided out. They would cancel
in sequences of a single label, where they are meant to say how much that label matters.

A mapping by label, or by pairs of labels, becomes an array by label number.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from m3n.losses.base import Cost, Loss
from m3n.structures.base import Structure


@dataclass(frozen=True, eq=False)
class _WrongLabels(Loss):
    """Weighted errors; the two losses differ in what they divide by."""

    class_weight: Mapping[Any, float] | Sequence[float] | np.ndarray | str | None = None
    position_weight: Sequence[Any] | None = None

    def bind(self, labels: Sequence[Any]) -> Loss:
        if not isinstance(self.class_weight, Mapping):
            return self
        return replace(self, class_weight=by_label(self.class_weight, labels, "class_weight"))

    def counted(self, counts: np.ndarray) -> Loss:
        if self.position_weight is not None:
            raise ValueError("position_weight is for examples that are in memory together; leave it away for shards")
        if not isinstance(self.class_weight, str):
            return self
        return replace(self, class_weight=_class_weights(self.class_weight, len(counts), lambda: counts))

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        gold, labels = structure.labels_of(gold), structure.shapes[0][1]
        counted, positions = partial(np.bincount, gold, minlength=labels), self._weights(structure)
        classes = _class_weights(self.class_weight, labels, counted)
        weight = classes[gold] if positions is None else positions * classes[gold]
        return Cost(gold, weight, 1.0 - np.eye(labels))

    @abstractmethod
    def _weights(self, structure: Structure) -> np.ndarray | None:
        """Weights of the positions of all examples, one after another; None: ones."""


@dataclass(frozen=True, eq=False)
class Hamming(_WrongLabels):
    """Number of positions with a wrong label, weighted if need be.

    Parameters
    ----------
    class_weight : mapping, array (labels,), "balanced" or None
        What an error costs, by the right label; a mapping may leave labels out, which then have weight 1. "balanced"
        is positions / (labels that occur * positions with this label), as in scikit-learn.
    position_weight : sequence of sequences of float, or None
        What an error costs, by position: for every example one number per position, not negative. Of a picture also an
        array in its shape.
    """

    def _weights(self, structure: Structure) -> np.ndarray | None:
        return None if self.position_weight is None else _position_weights(self.position_weight, structure.positions())


@dataclass(frozen=True, eq=False)
class NormalizedHamming(_WrongLabels):
    """Share of positions with a wrong label, between 0 and 1 for every example if classes have no weights.

    Parameters
    ----------
    class_weight : mapping, array (labels,), "balanced" or None
        As in ``Hamming``. The share is multiplied by it, so it may be larger than 1.
    position_weight : sequence of sequences of float, or None
        As in ``Hamming``. Their sum takes the place of the length.
    """

    def _weights(self, structure: Structure) -> np.ndarray | None:
        lengths = structure.positions()
        weights = _position_weights(self.position_weight, lengths)
        totals = np.add.reduceat(weights, np.cumsum(lengths) - lengths)
        return weights / np.repeat(np.where(totals > 0.0, totals, 1.0), lengths)


@dataclass(frozen=True, eq=False)
class NoLoss(Loss):
    """Zero everywhere: the conditional random field's loss."""

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        if not structure.has_labels:
            return Cost.of_parts(structure, gold, {})
        gold, labels = structure.labels_of(gold), structure.shapes[0][1]
        return Cost(gold, np.zeros(len(gold)), np.zeros((labels, labels)))


@dataclass(frozen=True, eq=False)
class CostMatrix(Loss):
    """Sum over positions of a cost that depends on the right and the predicted label.

    Parameters
    ----------
    costs : array (labels, labels), or mapping from (right, predicted) to float
        ``costs[g, y]`` is the cost of label y where g is right: finite, not negative, zero for g = y. Estimators sort
        labels, so rows and columns of an array are in the order of ``classes_``.
    default : float
        Cost of the wrong pairs that a mapping does not name.
    """

    costs: np.ndarray | Sequence[Sequence[float]] | Mapping[tuple[Any, Any], float]
    default: float = 1.0

    def bind(self, labels: Sequence[Any]) -> Loss:
        if not isinstance(self.costs, Mapping):
            return self
        return replace(self, costs=by_pair(self.costs, self.default, labels, "CostMatrix"))

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        gold, labels = structure.labels_of(gold), structure.shapes[0][1]
        table = self.costs
        if isinstance(table, Mapping):
            table = by_pair(table, self.default, range(labels), "CostMatrix")
        table = np.asarray(table, dtype=np.float64)
        if table.shape != (labels, labels):
            raise ValueError(f"CostMatrix needs a cost for each pair of {labels} labels, got shape {table.shape}")
        return Cost(gold, np.ones(len(gold)), table)


def _position_weights(given: Sequence[Any] | None, lengths: np.ndarray) -> np.ndarray:
    """Weights of the positions of all examples, one after another; ones if nothing is given."""
    if given is None:
        return np.ones(lengths.sum())
    if len(given) != len(lengths):
        raise ValueError(f"position_weight must have one list per example: {len(lengths)} examples, got {len(given)}")
    weights = [np.asarray(w, dtype=np.float64) for w in given]
    for i, (w, length) in enumerate(zip(weights, lengths, strict=True)):
        if w.size != length:
            raise ValueError(f"position_weight[{i}] must have one number per position, {length}, got shape {w.shape}")
        _check_weights(f"position_weight[{i}]", w.ravel())
    return np.concatenate([w.ravel() for w in weights])


def _class_weights(given: Any, labels: int, counted: Callable[[], np.ndarray]) -> np.ndarray:
    """Weights by label number; ``counted`` says how often every label is right."""
    if given is None:
        return np.ones(labels)
    if isinstance(given, str):
        if given != "balanced":
            raise ValueError(f'class_weight must be a mapping, an array, "balanced" or None, got {given!r}')
        counts = counted()
        return counts.sum() / (np.count_nonzero(counts) * np.where(counts > 0.0, counts, 1.0))
    weights = by_label(given, range(labels), "class_weight") if isinstance(given, Mapping) else np.asarray(given, float)
    if weights.shape != (labels,):
        raise ValueError(f"class_weight must have one number per label, shape ({labels},), got {weights.shape}")
    _check_weights("class_weight", weights)
    return weights


def _check_weights(name: str, weights: np.ndarray) -> None:
    bad = np.flatnonzero(~((weights >= 0.0) & np.isfinite(weights)))
    if bad.size:
        raise ValueError(f"{name}[{bad[0]}] is {weights[bad[0]]}, but must be finite and not negative")


def number_of(name: Any, labels: Sequence[Any], where: str) -> int:
    """The number of a label, or an error that lists those that exist."""
    found = [k for k, label in enumerate(labels) if label == name]
    if not found:
        shown = ", ".join(map(repr, np.asarray(labels).tolist()))
        raise ValueError(f"{where} names the label {name!r}, which does not exist; the labels are {shown}")
    return found[0]


def by_label(weights: Mapping[Any, float], labels: Sequence[Any], where: str) -> np.ndarray:
    """Numbers by label (labels,); 1 where the mapping says nothing."""
    array = np.ones(len(labels))
    for name, value in weights.items():
        array[number_of(name, labels, where)] = value
    return array


def by_pair(costs: Mapping[tuple[Any, Any], float], default: float, labels: Sequence[Any], where: str) -> np.ndarray:
    """Costs by right and predicted label (labels, labels); ``default`` where the mapping says nothing."""
    table = np.full((len(labels), len(labels)), float(default))
    np.fill_diagonal(table, 0.0)
    for pair, value in costs.items():
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise ValueError(f"{where} must map pairs (right, predicted) to costs, got the key {pair!r}")
        right, predicted = (number_of(name, labels, where) for name in pair)
        table[right, predicted] = value
    return table
