"""What the process holds of the system's memory and does not use."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


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
