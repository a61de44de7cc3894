"""Types of arguments as text, for names of files and for the list of what is compiled for a task.

A number is its name, an array ``float64 2 C``, a tuple a list, a named tuple ``{"module:Class": [fields]}``.
"""

import json
from importlib import import_module
from typing import Any

from numba import types

NUMBERS = {
    name: getattr(types, name)
    for name in ("boolean", "int16", "int32", "int64", "uint8", "uint32", "uint64", "float32", "float64")
}


def text_of(kinds: tuple[Any, ...]) -> str:
    """Types as one line of text. A type that ``types_of`` does not know is written as Numba writes it."""
    return json.dumps([_written(kind) for kind in kinds])


def types_of(text: str) -> tuple[Any, ...]:
    """The types of such a line."""
    return tuple(_read(item) for item in json.loads(text))


def _written(kind: Any) -> Any:
    if isinstance(kind, types.BaseNamedTuple):
        made = kind.instance_class
        return {f"{made.__module__}:{made.__qualname__}": [_written(field) for field in kind.types]}
    if isinstance(kind, types.BaseTuple):
        return [_written(item) for item in kind.types]
    if type(kind) is types.Array and kind.aligned:
        return f"{kind.dtype} {kind.ndim} {kind.layout}" + ("" if kind.mutable else " read-only")
    names = [name for name, number in NUMBERS.items() if number is kind]
    return names[0] if names else repr(kind)


def _read(item: Any) -> Any:
    if isinstance(item, dict):
        ((name, fields),) = item.items()
        module, _, made = name.partition(":")
        return types.BaseTuple.from_types([_read(field) for field in fields], getattr(import_module(module), made))
    if isinstance(item, list):
        return types.BaseTuple.from_types([_read(part) for part in item])
    number, *rest = item.split()
    if not rest:
        return NUMBERS[number]
    dimensions, layout, *read_only = rest
    return types.Array(
        NUMBERS["boolean" if number == "bool" else number], int(dimensions), layout, readonly=bool(read_only)
    )
