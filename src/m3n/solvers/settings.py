"""Settings that a solver cannot work with are refused when it is made, with their names and what they may be."""

from __future__ import annotations

from typing import Any


def at_least(least: float, *, why: str = "", **settings: float | None) -> None:
    """Refuse smaller numbers, and NaN; None stands for a choice of the solver's own."""
    for name, value in settings.items():
        if value is not None and not value >= least:
            bound = f"be at least {least:g}" if least else "not be negative"
            raise ValueError(f"{name} must {bound}, got {value}" + (f": {why}" if why else ""))


def one_of(*choices: Any, **settings: Any) -> None:
    """Refuse everything but the choices."""
    for name, value in settings.items():
        if value not in choices:
            *others, last = map(repr, choices)
            raise ValueError(f"{name} must be {', '.join(others)} or {last}, got {value!r}")
