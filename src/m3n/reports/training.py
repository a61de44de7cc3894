"""What a report says about training: the certificate in plain words, and the facts of the run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from m3n.reports.markup import number, percent
from m3n.run.certificate import Certificate, Record
from m3n.run.loop import Result, Status

UNKNOWN = "This model has no certificate: how close to the optimum it is, is not known."
RELAXED = (
    "The certificate speaks of a relaxed problem, over more outputs than there are, because exact inference was out of "
    "reach. The exact objective at these weights is at most the primal value; how low it could get is not known."
)


@dataclass(frozen=True)
class Training:
    """How a model came about, as far as that is known."""

    certificate: Certificate | None  # bounds of the objective
    trace: Sequence[Record]  # how they came about; may be empty
    status: Status | None  # why training stopped
    solver: Any  # the solver with its settings
    reason: str  # why it was chosen; empty if that is not known
    tol: float | None  # the gap at which training was to stop

    @classmethod
    def of(cls, result: Result | None, model: Any) -> Training:
        """What a result says, or without one what the model itself has kept."""
        tol = getattr(model, "tol", None)
        if result is not None:
            return cls(result.certificate, result.trace, result.status, result.solver, result.reason, tol)
        kept = [getattr(model, name, None) for name in ("certificate_", "trace_", "status_", "solver_", "reason_")]
        return cls(kept[0], kept[1] or [], kept[2], kept[3], kept[4] or "", tol)

    @property
    def bounded(self) -> bool:
        """Whether the certificate has a finite gap."""
        return self.certificate is not None and math.isfinite(self.certificate.gap)


def verdict(training: Training) -> str:
    """One sentence: how good the weights are, and whether training was let to finish.

    Parameters
    ----------
    training : Training
        How the model came about.
    """
    if not training.bounded or training.certificate is None:
        return UNKNOWN
    known = training.certificate
    begin = "Trained to a certified gap of" if training.status is Status.TOLERANCE else _stopped(training.status)
    what = "relaxed objective" if known.relaxed else "objective"
    part = f", which is {percent(known.gap / abs(known.primal))} of it" if known.primal else ""
    if known.gap == 0:
        return f"{begin} 0: no weights at all have a lower {what}."
    return f"{begin} {number(known.gap)}: no weights at all could lower the {what} by more than that{part}."


def explanation(training: Training) -> list[str]:
    """The two numbers behind the verdict, and what a relaxation means.

    Parameters
    ----------
    training : Training
        How the model came about.
    """
    known = training.certificate
    if not training.bounded or known is None:
        return []
    between = (
        f"The weights of this model have the objective {number(known.primal, 6)} (the primal value), and no weights "
        f"can get below {number(known.dual, 6)} (the dual value). Both are exact, so the optimum lies in between."
    )
    return [between, RELAXED] if known.relaxed else [between]


def _stopped(status: Status | None) -> str:
    """Training that did not reach its tolerance, or of which that is not known."""
    if status is None:
        return "Trained to a certified gap of"
    why = {
        Status.PASS_LIMIT: "at the limit of passes",
        Status.TIME_LIMIT: "at the time limit",
        Status.INTERRUPTED: "because it was interrupted",
        Status.STALLED: "because no further progress was possible",
        Status.CALLBACK: "because a callback asked for it",
    }[status]
    return f"Training stopped early, {why}, with a certified gap of"
