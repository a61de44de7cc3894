"""What a state must be like, so that compiled code can trust one that was read from a file.

A state declares the types of its fields, and with ``Annotated`` how arrays and tuples of arrays are checked, arrays
mostly by their ``Form``. All fields are checked by these declarations, down to the last array; a class whose fields
must also fit each other says so in a method ``check(problem)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from m3n.problem import Problem

PLAIN: dict[Any, Any] = {float: Real, int: Integral, bool: (bool, np.bool_), str: str, NoneType: NoneType}


class BadState(ValueError):
    """Something in a state is not what its solver can have written."""


@dataclass(frozen=True)
class Form:
    """Numbers of an array.

    Attributes
    ----------
    dtype : type
        float or int, of 64 bits.
    shape : tuple of str
        Names of the problem's numbers, "n" or "dim"; "*" is any length.
    below : str
        Name of a number of the problem that all entries, numbers from 0 on, are less than.
    """

    dtype: type
    shape: tuple[str, ...] = ("*",)
    below: str = ""

    def __call__(self, problem: Any, array: np.ndarray, where: str) -> None:
        """Refuse what is no such array."""
        require(array.flags.c_contiguous, f"{where} is no plain array")
        require(array.dtype == np.dtype(self.dtype), f"{where} holds {array.dtype}, not {np.dtype(self.dtype)}")
        wanted = tuple("*" if name == "*" else getattr(problem, name) for name in self.shape)
        fits = array.ndim == len(wanted) and all(a in ("*", b) for a, b in zip(wanted, array.shape, strict=True))
        require(fits, f"{where} has the shape {array.shape}, not ({', '.join(map(str, wanted))})")
        if self.below:
            require_within(array, 0, getattr(problem, self.below), where)


Weights = Annotated[np.ndarray, Form(float, ("dim",))]
Spreads = Annotated[np.ndarray, Form(float, ("n",))]
Visits = Annotated[np.ndarray, Form(int, below="n")]  # numbers of examples
Support = Annotated[np.ndarray, Form(int, below="dim")]  # numbers of weights
Numbers = Annotated[np.ndarray, Form(int)]
Vector = Annotated[np.ndarray, Form(float)]
Square = Annotated[np.ndarray, Form(float, ("*", "*"))]


def check_state(problem: Any, solver: Any, state: Any) -> None:
    """Refuse a state that the solver cannot have written for a problem of this size; ``BadState`` says what is wrong.

    Parameters
    ----------
    problem : Problem
        The problem.
    solver : Solver
        Who wrote the state.
    state : object
        The state.
    """
    for base in getattr(type(solver), "__orig_bases__", ()):
        for kind in get_args(base):
            _check(problem, state, kind, "the state")


def _check(problem: Problem, value: Any, kind: Any, where: str) -> None:
    """Whether a value is of a declared type, down to the last array."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Annotated:
        _check(problem, value, inside[0], where)
        inside[1](problem, value, where)
    elif origin in (Union, UnionType):
        fitting = [option for option in inside if _is(value, option)]
        require(len(fitting) == 1, f"{where} is a {type(value).__name__}")
        _check(problem, value, fitting[0], where)
    elif origin is tuple:
        require(_is(value, tuple), f"{where} is a {type(value).__name__}, not a tuple")
        kinds = inside[:1] * len(value) if inside[-1] is Ellipsis else inside
        require(len(kinds) == len(value), f"{where} has {len(value)} entries, not {len(kinds)}")
        for k, (entry, entry_kind) in enumerate(zip(value, kinds, strict=True)):
            _check(problem, entry, entry_kind, f"{where}[{k}]")
    else:
        require(_is(value, kind), f"{where} is a {type(value).__name__}, not a {getattr(kind, '__name__', kind)}")
        if kind not in PLAIN:
            for name, declared in fields_of(kind).items():
                require(hasattr(value, name), f"{where} lacks {name}")
                _check(problem, getattr(value, name), declared, f"{where}.{name}")
            if hasattr(kind, "check"):
                value.check(problem)


def fields_of(kind: Any) -> Mapping[str, Any]:
    """The declared fields of a class and their types; none of an array."""
    hints = {} if kind is np.ndarray else get_type_hints(kind, include_extras=True)
    return {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}


def _is(value: Any, kind: Any) -> bool:
    origin = get_origin(kind)
    return _is(value, get_args(kind)[0]) if origin is Annotated else isinstance(value, PLAIN.get(kind, origin or kind))


def require(fine: Any, what: str) -> None:
    """Refuse a state, with the reason."""
    if not fine:
        raise BadState(what)


def require_within(numbers: np.ndarray, low: Any, high: Any, where: str) -> None:
    """Numbers that serve as indices must be ``low`` <= number < ``high``."""
    require(((numbers >= low) & (numbers < high)).all(), f"{where} has numbers out of range")


def require_like(found: Any, pattern: Any, where: str) -> None:
    """The arrays of a named tuple must have the types and numbers of dimensions of a pattern."""
    for name, array, like in zip(pattern._fields, found, pattern, strict=True):
        fits = isinstance(array, np.ndarray) and array.dtype == like.dtype and array.ndim == like.ndim
        require(fits and array.flags.c_contiguous, f"{where}.{name} is no array of {like.dtype}")


def require_starts(starts: np.ndarray, n: int, size: int, where: str) -> None:
    """Where the entries of n examples begin in an array of some size."""
    fits = starts.shape == (n + 1,) and starts[0] == 0 and starts[-1] == size and (np.diff(starts) >= 0).all()
    require(fits, f"{where} does not cut {size} entries into those of {n} examples")
