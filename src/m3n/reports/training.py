"""What a report says about training: the certificate in plain words, and what another person needs for the same run."""

from __future__ import annotations

import inspect
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from m3n.estimators.model_summary import count_weights
from m3n.reports.markup import Markup, facts, grouped, joined, number, percent, tag
from m3n.run.certificate import Certificate, Record
from m3n.run.loop import Result, Status

UNKNOWN = "This model has no certificate: how close to the optimum it is, is not known."
RELAXED = (
    "The certificate speaks of a relaxed problem, over more outputs than there are, because exact inference was out of "
    "reach. The exact objective at these weights is at most the primal value; how low it could get is not known."
)
PACKAGES = ("m3n", "numpy", "scipy", "numba")
LONGEST = 4000  # characters of one parameter


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
        Status.HELD_OUT: "because weights got no better on held-out data",
        Status.FINAL: "because enough predictions on held-out data are proven to be those of the exact optimum",
        Status.LOST: "because workers were lost",
    }[status]
    return f"Training stopped early, {why}, with a certified gap of"


def settings(result: Result | None, model: Any, training: Training, amount: str) -> Markup:
    """Tables of the run, of all parameters and of the versions.

    Parameters
    ----------
    result : Result or None
        Where the number of weights is known from, if it is there.
    model : estimator
        A fitted one.
    training : Training
        How it came about.
    amount : str
        How many data were given.
    """
    return joined(
        facts("The run", _run(result, model, training, amount)),
        tag(
            "p", f"All parameters of the {type(model).__name__}; those in bold, which come first, are not the default."
        ),
        facts("Parameters", _parameters(model)),
        facts("Versions", versions()),
    )


def versions() -> list[tuple[str, str]]:
    """Names and versions of what the numbers depend on."""
    packages = [(name, _version(name)) for name in PACKAGES]
    machine = f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} cores"
    return [*packages, ("Python", platform.python_version()), ("platform", machine)]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _run(result: Result | None, model: Any, training: Training, amount: str) -> list[tuple[str, Any]]:
    """What is known about the run and about the sizes of model and data."""
    solver, status, certificate = training.solver, training.status, training.certificate
    last = training.trace[-1] if training.trace else None
    lam, classes = getattr(model, "lam_", None), getattr(model, "classes_", None)
    weights = result.w.size if result is not None else count_weights(model)
    rows = {
        "solver": None if solver is None else tag("code", repr(solver)),
        "why this solver": training.reason,
        "why training stopped": None if status is None else str(status),
        "passes over the data": None if last is None else number(last.passes, 4),
        "seconds": None if last is None else number(last.seconds, 4),
        "certificate": None if certificate is None else str(certificate),
        "regularisation (lam)": None if lam is None else repr(float(lam)),
        "labels of the model": None if classes is None else grouped(len(classes)),
        "weights": grouped(weights) if weights else None,
        "data given to this report": amount,
    }
    return [(name, value) for name, value in rows.items() if value]


def _parameters(model: Any) -> list[tuple[Any, Any]]:
    params = getattr(model, "get_params", None)
    if params is None:
        return []
    defaults = {name: repr(parameter.default) for name, parameter in inspect.signature(type(model)).parameters.items()}
    texts = {name: repr(value) for name, value in params(deep=False).items()}
    changed = {name: text for name, text in texts.items() if text != defaults.get(name)}
    rows = [(tag("strong", name), tag("strong", _code(text))) for name, text in changed.items()]
    return rows + [(name, _code(text)) for name, text in texts.items() if name not in changed]


def _code(text: str) -> Markup:
    return tag("code", text if len(text) <= LONGEST else text[:LONGEST] + " …")
