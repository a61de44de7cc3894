"""What another person needs to make the same run: parameters, data, solver and versions."""

from __future__ import annotations

import inspect
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from m3n.estimators.model_summary import count_weights
from m3n.reports.markup import Markup, count, grouped, joined, number, tag
from m3n.reports.outcome import Outcome
from m3n.reports.tables import facts
from m3n.reports.training import Training
from m3n.run.loop import Result

PACKAGES = ("m3n", "numpy", "scipy", "numba")
LONGEST = 4000  # characters of one parameter


def settings(result: Result | None, model: Any, training: Training, outcome: Outcome) -> Markup:
    """Tables of the run, of all parameters and of the versions.

    Parameters
    ----------
    result : Result or None
        Where the number of weights is known from, if it is there.
    model : estimator
        A fitted one.
    training : Training
        How it came about.
    outcome : Outcome
        Says how many data were given.
    """
    return joined(
        facts("The run", [*_run(training), *_sizes(result, model, outcome)]),
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


def _run(training: Training) -> list[tuple[str, Any]]:
    rows: list[tuple[Any, Any]] = []
    if training.solver is not None:
        rows.append(("solver", tag("code", repr(training.solver))))
    if training.reason:
        rows.append(("why this solver", training.reason))
    if training.status is not None:
        rows.append(("why training stopped", str(training.status)))
    if training.trace:
        last = training.trace[-1]
        rows += [("passes over the data", number(last.passes, 4)), ("seconds", number(last.seconds, 4))]
    if training.certificate is not None:
        rows.append(("certificate", str(training.certificate)))
    return rows


def _sizes(result: Result | None, model: Any, outcome: Outcome) -> list[tuple[str, Any]]:
    rows: list[tuple[Any, Any]] = []
    lam, classes = getattr(model, "lam_", None), getattr(model, "classes_", None)
    if lam is not None:
        rows.append(("regularisation (lam)", repr(float(lam))))
    if classes is not None:
        rows.append(("labels of the model", grouped(len(classes))))
    weights = result.w.size if result is not None else count_weights(model)
    if weights:
        rows.append(("weights", grouped(weights)))
    given = f"{count(len(outcome.gold), outcome.example)}, {count(outcome.positions, outcome.position)}"
    return [*rows, ("data given to this report", given)]


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
