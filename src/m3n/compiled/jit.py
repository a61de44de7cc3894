"""The one place that decides how the inner loops are compiled.

Every one is a module-level function on plain arrays, so Numba can cache its machine code on disk. Set
``M3N_KERNEL_CACHE=0`` to switch that cache off (for example where many processes start at the same moment on a
network file system).

Numba takes cached code for good as long as the function's own file is unchanged. Ours call those of other files, so all
are stamped with a fingerprint of this folder and its rooms: a change anywhere compiles everything anew, after an update
of the package too.

``contract`` lets the compiler fuse multiply and add. No other fast-math flag is set: the recursions rely on
infinities, and a reordered sum would break "same seed, same result".
"""

import hashlib
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit

CACHE = os.environ.get("M3N_KERNEL_CACHE", "1") != "0"
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}

# for long helpers that serve one function: compiled once, as part of it, and not a second time on their own
inlined = njit(inline="always", **OPTIONS)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called with arguments of new types."""
    dispatcher = njit(cache=CACHE, **OPTIONS)(function)
    if CACHE:
        with suppress(AttributeError):  # not public in Numba; a test notices if the stamp is lost
            file = dispatcher._cache._cache_file
            file._source_stamp = (file._source_stamp, fingerprint())
            file._load_index = _forgiving(file._load_index)
    return dispatcher


def _forgiving(load_index: Callable[[], Any]) -> Callable[[], Any]:
    """An index that names types which are no longer there is an old one: nothing in it is of use."""

    def load() -> Any:
        try:
            return load_index()
        except (AttributeError, ImportError, EOFError, pickle.UnpicklingError):
            return {}

    return load


@cache
def uncached(dispatcher: Any) -> Any:
    """The same function without a cache on disk, for code that the fingerprint does not know."""
    return njit(**OPTIONS)(dispatcher.py_func)


def for_space(dispatcher: Any, space: Any) -> Any:
    """The function to call with a structure's space: a change of foreign code must not meet old machine code."""
    return dispatcher if type(space).__module__.startswith("m3n.") else uncached(dispatcher)


@cache
def fingerprint() -> str:
    """A hash of the sources of all compiled code."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
