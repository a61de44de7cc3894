"""From the arguments of ``sklearn_crfsuite.CRF`` to what is trained."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from m3n.compat.crf_training import KeptFeatures, Plan, Strength

CALIBRATION = tuple(f"calibration_{word}" for word in ("eta", "rate", "samples", "candidates", "max_trials"))
TAKES = {  # the arguments that not every algorithm knows
    "lbfgs": ("c1", "c2", "num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch"),
    "l2sgd": ("c2", "period", "delta", *CALIBRATION),
    "ap": ("epsilon",),
    "pa": ("epsilon", "pa_type", "c", "error_sensitive", "averaging"),
    "arow": ("epsilon", "variance", "gamma"),
}
DELTA = {"lbfgs": 1e-5, "l2sgd": 1e-6}
PASSES = {"l2sgd": 1000, "ap": 100, "pa": 100, "arow": 100}
MARGIN_RTOL = 1e-2  # nobody asked for the optimum of an objective that only stands in
LEAST_SQUARE = 1e-4  # c2 where neither c1 nor c2 is positive: without it there may be no optimum


def plan_of(params: Mapping[str, Any]) -> Plan:
    """What the arguments ask for, with warnings about what is done instead.

    Parameters
    ----------
    params : mapping
        The arguments by name; None stands for a default.
    """
    algorithm = params["algorithm"] or "lbfgs"
    _check(algorithm, params)
    given = {name: value for name, value in params.items() if value is not None}
    selection = KeptFeatures(
        bool(given.get("all_possible_states")), bool(given.get("all_possible_transitions")), given.get("min_freq", 0.0)
    )
    exact = algorithm in DELTA
    rtol = given.get("delta", DELTA[algorithm]) if exact else MARGIN_RTOL
    strength = _penalties(given) if exact else _margin(algorithm, given)
    passes = given.get("max_iterations", PASSES.get(algorithm))
    return Plan(selection, strength, rtol, given.get("period", 10), passes, bool(params["verbose"]))


def _check(algorithm: str, params: Mapping[str, Any]) -> None:
    """Refuse what CRFsuite refuses."""
    if algorithm not in TAKES:
        raise ValueError(f"unknown algorithm {algorithm!r}; choose one of {tuple(TAKES)}")
    others = {name for names in TAKES.values() for name in names} - set(TAKES[algorithm])
    wrong = [name for name in params if name in others and params[name] is not None]
    if wrong:
        raise ValueError(f"algorithm {algorithm!r} has no {wrong[0]}; it has {TAKES[algorithm]}")
    if params["trainer_cls"] is not None:
        _warn("trainer_cls is not used: m3n trains by its own solvers")


def _penalties(given: Mapping[str, Any]) -> Strength:
    """c2 |w|^2 + c1 |w|_1."""
    absolute, square = float(given.get("c1", 0.0)), float(given.get("c2", 1.0))
    if absolute < 0.0 or square < 0.0:
        raise ValueError(f"c1 and c2 must not be negative, got c1={absolute} and c2={square}")
    if not absolute and not square:
        _warn(f"without a penalty there may be no best weights: c2={LEAST_SQUARE} is used instead of c1=c2=0")
        square = LEAST_SQUARE
    return Strength("crf", square, absolute)


def _margin(algorithm: str, given: Mapping[str, Any]) -> Strength:
    """1/(2C) |w|^2 beside the sum of hinge losses."""
    C = given.get("c", 1.0) * given.get("variance", 1.0) / given.get("gamma", 1.0)
    what = f'a max-margin network (objective="margin", C={C:g}) stands in for algorithm {algorithm!r}'
    _warn(f"{what}, which minimises no objective; algorithm='lbfgs' is the CRF")
    return Strength("margin", 0.5 / C)


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=5)  # at the call of fit
