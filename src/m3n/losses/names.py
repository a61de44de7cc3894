"""From what a user writes by label, in a mapping or an array, to arrays by label number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


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
