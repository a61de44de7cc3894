"""The one loop of the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Reason = TypeVar("Reason")


def repeat(step: Callable[[], object], reason_to_stop: Callable[[], Reason | None]) -> Reason:
    """Step after step, until there is a reason to stop; it is asked for before every step.

    Parameters
    ----------
    step : callable
        Makes one step; what it changes and records is its own business.
    reason_to_stop : callable
        None as long as the steps are to go on.
    """
    while (reason := reason_to_stop()) is None:
        step()
    return reason
