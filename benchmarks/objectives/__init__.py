"""What is minimised, said once for every entry, and the judge of the weights that come out."""

from typing import Any

from benchmarks.objectives.crf import CRF
from benchmarks.objectives.margin import Margin

Objective = CRF | Margin
BY_NAME: dict[str, type[CRF] | type[Margin]] = {"crf": CRF, "margin": Margin}


def objective(request: dict[str, Any]) -> Objective:
    """The objective that ``Objective.request`` wrote down."""
    settings = dict(request)
    return BY_NAME[settings.pop("name")](**settings)


__all__ = ["BY_NAME", "CRF", "Margin", "Objective", "objective"]
