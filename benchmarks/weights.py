"""Weights of a chain by name, so that every entry's model can be judged by the same code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Pairs = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Weights:
    """States by (attribute, label) and transitions by (label, label); what is not named is zero."""

    states: Pairs
    transitions: Pairs

    def save(self, path: Path) -> None:
        """Write an archive; names are kept as one text each, which is smaller than an array of strings."""
        np.savez(path, **{f"state_{k}": v for k, v in _arrays(self.states).items()},
                 **{f"transition_{k}": v for k, v in _arrays(self.transitions).items()})  # fmt: skip

    @classmethod
    def load(cls, path: Path) -> Weights:
        """Read what ``save`` wrote."""
        with np.load(path) as data:
            return cls(*(_pairs(data, part) for part in ("state", "transition")))


def _arrays(pairs: Pairs) -> dict[str, np.ndarray]:
    first, second = ("\n".join(pair[side] for pair in pairs).encode() for side in (0, 1))
    values = np.fromiter(pairs.values(), float, len(pairs))
    return {"first": np.frombuffer(first, np.uint8), "second": np.frombuffer(second, np.uint8), "value": values}


def _pairs(data: Mapping[str, np.ndarray], part: str) -> dict[tuple[str, str], float]:
    values = data[f"{part}_value"].tolist()
    if not values:
        return {}
    first, second = (data[f"{part}_{side}"].tobytes().decode().split("\n") for side in ("first", "second"))
    return dict(zip(zip(first, second, strict=True), values, strict=True))
