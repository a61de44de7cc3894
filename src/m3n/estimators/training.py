"""From an estimator's words to the numbers of a training problem: objective, loss, strengths.

objective           temperature   loss           what is minimised besides the regulariser, per example
"margin"            0             added          max_y { ell(y) - <w, psi(y)> }
"slack"             0             multiplied     max_y ell(y) (1 - <w, psi(y)>)
"crf"               1             none           log sum_y exp{ -<w, psi(y)> }
"softmax_margin"    1             added          log sum_y exp{ ell(y) - <w, psi(y)> }
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from m3n import losses
from m3n.features import FeatureMap, Scaled, Stack


@dataclass(frozen=True)
class Objective:
    """What a word for an objective means to ``Problem``."""

    temperature: float
    has_loss: bool
    rescale: str = "margin"


OBJECTIVES = {
    "margin": Objective(0.0, has_loss=True),
    "slack": Objective(0.0, has_loss=True, rescale="slack"),
    "crf": Objective(1.0, has_loss=False),
    "softmax_margin": Objective(1.0, has_loss=True),
}


def resolve_objective(name: str) -> Objective:
    """The objective of that name."""
    if name not in OBJECTIVES:
        raise ValueError(f"objective={name!r} is not available; choose one of {tuple(OBJECTIVES)}")
    return OBJECTIVES[name]


def resolve_loss(loss: str | losses.Loss) -> losses.Loss:
    """Turn a loss's name into an object."""
    if isinstance(loss, losses.Loss):
        return loss
    if loss not in losses.BY_NAME:
        raise ValueError(f"unknown loss {loss!r}; choose a Loss object or one of {sorted(losses.BY_NAME)}")
    return losses.BY_NAME[loss]()


def resolve_lam(lam: float | None, C: float | None, count: float) -> float | None:
    """lam, or 1 / (C count); None leaves the default to ``Problem``."""
    if C is None:
        return lam
    if lam is not None:
        raise ValueError(f"give either lam={lam!r} or C={C!r}, which is 1 / (lam n), not both")
    if not 0.0 < C < np.inf:
        raise ValueError(f"C must be a positive finite number, got {C}")
    return 1.0 / (C * count)


def resolve_strengths(strengths: Mapping[str, float] | None, groups: tuple[str, ...]) -> dict[str, float]:
    """The factor of every group's weights: a strength of s is a factor of 1/sqrt(s), see ``m3n.features.Scaled``."""
    given = dict(strengths or {})
    for name, strength in given.items():
        if name not in groups:
            raise ValueError(f"strengths names the group {name!r}; there are {groups}")
        if not 0.0 < strength < np.inf:
            raise ValueError(f"strengths[{name!r}] must be a positive finite number, got {strength}")
    return {name: 1.0 / float(np.sqrt(given.get(name, 1.0))) for name in groups}


def stacked(groups: Iterable[tuple[FeatureMap, str]], factors: Mapping[str, float]) -> Stack:
    """The maps of all groups, each with the strength of its regularisation."""
    return Stack(
        *(part if factors[name] == 1.0 or not part.dim else Scaled(part, factors[name]) for part, name in groups)
    )


def split_weights(features: Stack, w: np.ndarray) -> list[np.ndarray]:
    """The weights of every map, as they are without the strengths."""
    return [
        part.weights(piece) if isinstance(part, Scaled) else piece
        for part, piece in zip(features.maps, features.split(w), strict=True)
    ]
