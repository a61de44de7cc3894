"""Sizes of memory, as people write them and as they read them."""

from __future__ import annotations

import re

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
SIZE = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)


def bytes_of(size: int | str, what: str = "memory") -> int:
    """A number of bytes, from a number or a text such as "1GB", "500 MB" or "2GiB".

    Parameters
    ----------
    size : int or str
        How much.
    what : str
        What it is for, in messages.
    """
    found = SIZE.fullmatch(str(size))
    if isinstance(size, bool) or found is None or (found[3] and not found[2]):
        raise ValueError(f"{what} must be a number of bytes or a text such as '500MB' or '2GB', got {size!r}")
    count = float(found[1]) * (BINARY if found[3] else UNITS)[found[2].lower()]
    if not 0 < count < 2**62:
        raise ValueError(f"{what} must be positive, got {size!r}")
    return int(count)


def in_words(size: float) -> str:
    """A number of bytes for people: ``1.5 GB``.

    Parameters
    ----------
    size : number
        How many.
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
