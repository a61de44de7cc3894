"""What this process compiles or waits for, and who wants to know about it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

log = logging.getLogger("m3n")


class Wanted(Protocol):
    """An entry point for arguments of some types."""

    @property
    def name(self) -> str:
        """Its module and name."""

    def compile(self) -> None:
        """Make its machine code, unless another process is at it."""

    @property
    def seconds(self) -> float:
        """How long it takes to compile."""

    @property
    def ready(self) -> bool:
        """Whether its machine code is on disk."""


class Progress:
    """What is to be compiled.

    Attributes
    ----------
    expected : set
        Entry points that are needed, as far as is known, and were not ready when they were announced.
    listeners : list of callable
        The last one is told in a line of text what is compiled, and an empty text at the end.
    asked : list or None
        If it is a list, all entry points that Python calls are added.
    describe : callable
        Makes the text of what is left.
    seconds : float
        How long this process has compiled so far, or waited for others that do.
    """

    def __init__(self) -> None:
        self.expected: set[Wanted] = set()
        self.listeners: list[Callable[[str], None]] = []
        self.asked: list[Wanted] | None = None
        self.describe: Callable[[Sequence[Wanted]], str] = str
        self.seconds = 0.0
        self._depth = 0  # one compilation may begin others

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Around whatever is compilation."""
        begin, self._depth = time.perf_counter(), self._depth + 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self.seconds += time.perf_counter() - begin

    @contextmanager
    def compiling(self, need: Wanted) -> Iterator[None]:
        """Around the compilation of one entry point."""
        self.expected.add(need)
        self._tell()
        begin = time.perf_counter()
        try:
            with self.measured():
                yield
        finally:
            self.expected.discard(need)
            log.debug("machine code of %s: %.2f s", need.name, time.perf_counter() - begin)
            self._tell()

    def _tell(self) -> None:
        if self.listeners:
            left = [need for need in self.expected if not need.ready]
            self.listeners[-1](self.describe(left) if left else "")


progress = Progress()


def clock() -> float:
    """Seconds as ``time.perf_counter`` counts them, without those in which this process has compiled."""
    return time.perf_counter() - progress.seconds
