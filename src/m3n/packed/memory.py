"""How much memory is free for this process, what it holds of the system's and does not use, and what is used again."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np


def give_back() -> None:
    """Return memory that has been freed to the system, where the C library can.

    Freed arrays of up to 32 MB leave holes that larger ones do not fit into. It takes milliseconds, after all that
    reading and packing have thrown away: a tenth of what training on text takes.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim  # of glibc
    except (AttributeError, OSError, TypeError):
        return None


def free_memory(unknown: float = 4e9) -> float:
    """Bytes of memory that are free, as far as the system tells; else so many.

    The least of what the machine has, what limits of the process leave (``ulimit -v`` and ``-d``), and what that of a
    container does.
    """
    return min((*_of_machine(), *_of_process(), *_of_container()), default=unknown)


def _of_machine() -> Iterator[float]:
    yield from _lines("/proc/meminfo", "MemAvailable")


def _of_process() -> Iterator[float]:
    """What is left below limits of its address space and of its data."""
    if sys.platform == "win32":
        return
    import resource

    for limit, used in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        most = resource.getrlimit(limit)[0]
        if most != resource.RLIM_INFINITY:
            yield from (max(most - size, 0.0) for size in _lines("/proc/self/status", used))


def _of_container() -> Iterator[float]:
    """What is left below the limit of its control group, of either version."""
    for folder, most, used in (
        ("/sys/fs/cgroup", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            limit, now = (Path(folder, name).read_text().strip() for name in (most, used))
        except OSError:
            continue
        if limit.isdigit():
            yield max(float(limit) - float(now), 0.0)


def _lines(path: str, name: str) -> Iterator[float]:
    """The bytes that a line of a file of the system tells, if there is one."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return
    yield from (1024.0 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


class Scratch:
    """Memory that arrays take in turn: fresh memory costs a tenth of a pass that goes through it once.

    Arrays that were made before the newest ones are overwritten.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0)

    def arrays(self, shapes: Sequence[tuple[int, ...]]) -> tuple[np.ndarray, ...]:
        """Uninitialised numbers in arrays of these shapes.

        Parameters
        ----------
        shapes : sequence of tuple of int
            Their shapes.
        """
        edges = [0, *accumulate(map(math.prod, shapes))]
        if len(self._memory) < edges[-1]:
            self._memory = np.empty(edges[-1])
        return tuple(
            self._memory[low:high].reshape(shape) for (low, high), shape in zip(pairwise(edges), shapes, strict=True)
        )
