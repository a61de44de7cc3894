"""What a run minimises, and how, in named parts that can be compared: other data are told from the same data.

A part is what is shown of it (a number, a name, a size) and a digest of all that it is made of: the plain attributes of
objects, down to the memory of arrays. Addresses, private attributes of this package and cached properties do not count,
nor do threads: the same data give the same digest in every process. Digests are made when they are first needed, to
save a run or to resume it with other objects than its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np
import scipy.sparse

import m3n
from m3n.packed import Threads
from m3n.problem import Objective, Sharded
from m3n.solvers import Solver

NUMBERS = ("n", "temperature", "rescale", "lam", "l1")  # of a problem, shown as they are
OBJECTS = {  # of a problem, and what is said where only digests differ
    "structure": "for another structure",
    "features": "for other features",
    "gold": "for other labels",
    "cost": "for another loss",
    "weights": "for other sample weights",
    "prior": "for another prior",
}
PHRASES = {
    "n": "for {} examples, not {}",
    "structure": "for a {}, not a {}",
    "features": "for features of {} weights, not {}",
    "shards": "for other shards",
    "lanes": "with sums of {} lanes, not {}",
    "solver": "for solver {}, not {}",
    "version": "by m3n {}, not {}",
}
FOLLOWS = {"n": set(OBJECTS), "structure": {"cost"}, "gold": {"cost"}}  # differences that need no word of their own
CHUNK = 1 << 18  # entries that are converted at a time


class Fingerprint:
    """The parts of a run; ``difference`` names those in which two differ.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    solver : Solver
        The solver with its settings.
    """

    def __init__(self, problem: Objective, solver: Solver[Any]):
        data = problem.data if isinstance(problem, Sharded) else problem
        self._objects = {name: getattr(data, name, None) for name in OBJECTS}
        self._shown = {name: _describe(getattr(problem, name, None)) for name in NUMBERS}
        self._shown |= {"structure": problem.name, "features": str(problem.dim)}
        self._shown |= problem.identity if isinstance(problem, Sharded) else {}
        self._shown |= {"solver": _describe(solver), "version": m3n.__version__}

    @cached_property
    def parts(self) -> dict[str, tuple[str, str]]:
        """What is shown of every part, and its digest."""
        digests = {name: digest(thing) for name, thing in self._objects.items()}
        return {name: (self._shown.get(name, ""), digests.get(name, "")) for name in self._shown | OBJECTS}

    def __getstate__(self) -> dict[str, Any]:
        return {"parts": self.parts}  # the data themselves stay where they are

    def __setstate__(self, state: dict[str, Any]) -> None:
        parts = {str(name): (str(shown), str(found)) for name, (shown, found) in state["parts"].items()}
        self.__dict__.update(parts=parts, _objects={}, _shown={name: shown for name, (shown, _) in parts.items()})

    def difference(self, other: Fingerprint, *, but: str = "") -> str:
        """For what else this run was: "for lam=0.1, not 0.01"; empty if it is the same, but for the part ``but``."""
        same = self._objects and all(self._objects[name] is other._objects.get(name) for name in OBJECTS)
        mine, others = (self._shown, other._shown) if same else (self.parts, other.parts)
        names = [name for name in mine if name != but and mine[name] != others.get(name)]
        implied = {follower for name in names for follower in FOLLOWS.get(name, ())}
        return "; ".join(self._phrase(other, name) for name in names if name not in implied)

    def _phrase(self, other: Fingerprint, name: str) -> str:
        mine, others = self._shown.get(name, ""), other._shown.get(name, "")
        return OBJECTS[name] if mine == others else PHRASES.get(name, f"for {name}={{}}, not {{}}").format(mine, others)


def _describe(thing: Any) -> str:
    """Numbers, and solvers with their settings, in the same words in every process."""
    if is_dataclass(thing):
        settings = ", ".join(f"{each.name}={_describe(getattr(thing, each.name))}" for each in fields(thing))
        return f"{type(thing).__name__}({settings})"
    plain = thing is None or isinstance(thing, (bool, int, float, str))
    return f"{thing!r}" if plain else f"{type(thing).__name__}#{digest(thing)[:8]}"


def digest(thing: Any) -> str:
    """A digest of all that an object is made of.

    Parameters
    ----------
    thing : object
        Numbers, strings, arrays, SciPy matrices, collections, and objects with attributes of these kinds.
    """
    found = hashlib.sha256()  # which processors have instructions for
    for piece in _pieces(thing, ()):
        found.update(piece)
    return found.hexdigest()


def _pieces(thing: Any, above: tuple[int, ...]) -> Iterator[Any]:
    """The memory of everything in an object, each with a mark of what it is."""
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        yield f"array{thing.shape};".encode()
        yield from _memory(thing)
    elif thing is None or isinstance(thing, (bool, int, float, complex, str, bytes, np.generic, Enum)):
        yield f"{thing.item() if isinstance(thing, np.generic) else thing!r};".encode()
    elif isinstance(thing, Threads) or id(thing) in above:
        yield b"skipped;"
    else:
        yield f"{type(thing).__module__}.{type(thing).__qualname__}(".encode()
        for inner in _inside(thing):
            yield from _pieces(inner, (*above, id(thing)))
        yield b")"


def _memory(array: np.ndarray) -> Iterator[Any]:
    """The numbers in the smallest of two widths that holds them: maps may share equal arrays of other types."""
    kind, flat = array.dtype, array.reshape(-1)
    if kind.kind in "biu":
        short = flat.max(initial=0) < 1 << 31 and flat.min(initial=0) >= -1 << 31
        kind = np.dtype(np.int32 if short else np.int64)
    elif kind.kind == "f":
        kind = np.dtype(np.float64)
    for start in range(0, flat.size, CHUNK):
        yield np.ascontiguousarray(flat[start : start + CHUNK], dtype=kind).view(np.uint8).data


def _inside(thing: Any) -> Iterator[Any]:
    """What an object is made of."""
    if scipy.sparse.issparse(thing):
        kept = (value for _, value in sorted(vars(thing).items()) if isinstance(value, (np.ndarray, tuple)))
        yield from (thing.format, thing.shape, *kept)
    elif isinstance(thing, Mapping):
        yield from thing.items()
    elif isinstance(thing, (set, frozenset)):
        yield from sorted(thing, key=repr)
    elif isinstance(thing, (list, tuple, np.ndarray)):
        yield from thing
    elif isinstance(thing, (type, FunctionType, BuiltinFunctionType, MethodType)):
        yield thing.__qualname__
        yield getattr(getattr(thing, "__code__", None), "co_code", b"")
    else:
        ours = type(thing).__module__.startswith("m3n.")
        for name, value in sorted(attributes(thing).items()):
            cached = isinstance(getattr(type(thing), name, None), cached_property)
            if not cached and not (ours and name.startswith("_")):
                yield name, value


def attributes(thing: Any) -> dict[str, Any]:
    """The attributes of an object by name, those in slots too.

    Parameters
    ----------
    thing : object
        Any object.
    """
    found = dict(getattr(thing, "__dict__", {}))
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names = [slots] if isinstance(slots, str) else slots
        found |= {name: getattr(thing, name) for name in names if hasattr(thing, name) and name != "__dict__"}
    return found
