"""Settings on their way through the folds of a search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from m3n.run.paths import PathPoint
from m3n.tuning.result import Row


@dataclass
class Candidate:
    """A setting on its way through the folds."""

    params: dict[str, Any]
    lam: float
    scores: list[float] = field(default_factory=list)
    gap: float = 0.0
    passes: float = 0.0
    seconds: float = 0.0
    abandoned: bool = False
    added: bool = False

    def row(self) -> Row:
        """What became of it."""
        return Row(**(vars(self) | {"scores": tuple(self.scores)}))

    def note(self, score: float, point: PathPoint) -> None:
        """One more fold.

        Parameters
        ----------
        score : float
            Of its model.
        point : PathPoint
            How that came about.
        """
        self.scores.append(score)
        self.gap = max(self.gap, point.certificate.gap)
        self.passes += point.passes
        self.seconds += point.seconds


def mean(scores: Sequence[float]) -> float:
    """The mean of some scores."""
    return math.fsum(scores) / len(scores)
