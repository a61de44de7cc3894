"""The one loop of the library, and Ctrl-C as a wish that it reads between two steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

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


class Interrupt:
    """Turns the first Ctrl-C into a wish that the loop reads between two steps.

    An exception in the middle of a pass could be lost where Python ignores exceptions (callbacks of the garbage
    collector), so it is left to the second Ctrl-C. Signals belong to the main thread; elsewhere nothing is changed.
    """

    def __init__(self) -> None:
        self.wished = False
        self.previous: Any = None

    def __enter__(self) -> None:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.previous = signal.signal(signal.SIGINT, self._handle)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.wished:
            raise KeyboardInterrupt
        self.wished = True
