"""What a trace does not say by itself: how fast the gap falls, and how much memory the solver's states hold."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from m3n.run.fingerprint import attributes

FEWEST = 5  # records in the window of the exponent; a line through fewer says little
SPAN = 2.0  # least ratio of passes at the two ends of the window
FLOOR = 1e-12  # of the first gap; what is below is rounding and no longer follows any rate
GRID = 50  # points at which the curve is read: any number well above the number of its bends will do

ATOMS = (str, bytes, bytearray, int, float, complex, type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
COLLECTIONS = (list, tuple, set, frozenset, deque)


def measured_exponent(passes: Iterable[float], gaps: Iterable[float]) -> float | None:
    """The slope of log gap against log passes, past a burn-in; None where there is too little to measure.

    Left out are the first half of the run on the logarithmic axis of passes, and whatever comes before the gap is half
    the first one: until then it may be the certificate of w = 0 that is seen, and not the solver's. The rest is read at
    points of equal distance on the logarithmic axis, so that it does not matter how often a solver was certified, and a
    line is fitted by least squares.

    Parameters
    ----------
    passes : iterable of float
        The solver's own passes at every record, ascending.
    gaps : iterable of float
        The certified gap at every record.
    """
    x, y = np.array([*passes], dtype=float), np.array([*gaps], dtype=float)
    begun = np.flatnonzero(x > 0)
    if not begun.size or not np.isfinite(y[0]):
        return None
    middle = np.sqrt(x[begun[0]] * x[-1])
    past = (x > 0) & (x >= middle) & (y <= y[0] / 2) & (y > FLOOR * y[0])
    x, y = _last_of_equals(x[past], y[past])
    if len(x) < FEWEST or x[-1] < SPAN * x[0]:
        return None
    grid = np.linspace(np.log(x[0]), np.log(x[-1]), GRID)
    return float(np.polyfit(grid, np.interp(grid, np.log(x), np.log(y)), 1)[0])


def _last_of_equals(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    last = np.append(x[1:] != x[:-1], True)[: len(x)]
    return x[last], y[last]


def buffers(*roots: Any) -> dict[int, int]:
    """Every distinct buffer of numbers that can be reached from some objects: its address and its size in bytes.

    Attributes, slots, collections and views are followed, functions and modules are not. A view stands for the whole
    array that it keeps alive.

    Parameters
    ----------
    *roots : object
        Where to start.
    """
    found: dict[int, int] = {}
    seen: dict[int, Any] = {}  # keeps what it has seen alive, so that no address is used twice
    waiting = list(roots)
    while waiting:
        thing = waiting.pop()
        if thing is None or isinstance(thing, ATOMS) or id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, np.ndarray):
            whole = _whole(thing)
            address = whole.__array_interface__["data"][0]
            found[address] = max(whole.nbytes, found.get(address, 0))
        waiting.extend(_parts(thing))
    return found


def memory_of(state: Any, shared: Mapping[int, int] | None = None) -> int:
    """Bytes of all arrays that a state keeps, each counted once.

    Parameters
    ----------
    state : object
        A solver's state.
    shared : mapping, optional
        ``buffers`` of the problem: what belongs to it is not the solver's.
    """
    return sum(size for address, size in buffers(state).items() if address not in (shared or {}))


def _whole(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _parts(thing: Any) -> Iterator[Any]:
    if isinstance(thing, Mapping):
        yield from thing.keys()
        yield from thing.values()
    elif isinstance(thing, COLLECTIONS) or (isinstance(thing, np.ndarray) and thing.dtype == object):
        yield from thing.flat if isinstance(thing, np.ndarray) else thing
    yield from attributes(thing).values()
