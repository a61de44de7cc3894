"""Translation models in files: words as JSON, all else as arrays, checked before anything is computed with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from m3n.alignment.direction import Direction
from m3n.alignment.lexicon import Lexicon
from m3n.alignment.model import TranslationModel
from m3n.alignment.pairs import SIDES, Lexica, Types

Tensors = Mapping[str, np.ndarray]
DIRECTIONS = ("forward", "backward")
NUMBERS = ("skip", "even")
ARRAYS = ("table", "rest", "usual", "null", "jumps")


def packed(model: TranslationModel) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A model as plain values and arrays.

    Parameters
    ----------
    model : TranslationModel
        The model.
    """
    tensors = {"rows": model.types.rows, "columns": model.types.columns, "dice": model.dice}
    for side, lexicon in zip(SIDES, model.lexica, strict=True):
        tensors |= {f"{side}_words": _bytes(lexicon.words), f"{side}_frequencies": lexicon.frequencies}
    plain = {}
    for name, direction in zip(DIRECTIONS, model.directions, strict=True):
        fields = asdict(direction)
        plain[name] = {number: fields[number] for number in NUMBERS}
        tensors |= {f"{name}_{array}": fields[array] for array in ARRAYS}
    return plain, tensors


def unpacked(plain: Mapping[str, Any], tensors: Tensors) -> TranslationModel:
    """The model again; what does not fit is refused.

    Parameters
    ----------
    plain : mapping
        Plain values.
    tensors : mapping of arrays
        Arrays.
    """
    source, target = (_lexicon(side, tensors) for side in SIDES)
    types = _types(tensors, len(source), len(target))
    directions = (
        _direction("forward", plain, tensors, (len(types), len(source), len(target))),
        _direction("backward", plain, tensors, (len(types), len(target), len(source))),
    )
    dice = _probabilities("dice", tensors["dice"], len(types))
    return TranslationModel(Lexica(source, target), types, dice, directions)


def _bytes(words: list[str]) -> np.ndarray:
    return np.frombuffer(json.dumps(words, ensure_ascii=False).encode("utf-8", "surrogatepass"), dtype=np.uint8)


def _lexicon(side: str, tensors: Tensors) -> Lexicon:
    words = json.loads(tensors[f"{side}_words"].tobytes().decode("utf-8", "surrogatepass"))
    if not (isinstance(words, list) and words and all(isinstance(word, str) for word in words)):
        raise ValueError(f"{side}_words is not a list of words")
    if len(set(words)) < len(words):
        raise ValueError(f"{side}_words has a word twice")
    frequencies = _whole(f"{side}_frequencies", tensors[f"{side}_frequencies"], (len(words),), np.int64)
    if frequencies.min() < 1:
        raise ValueError(f"{side}_frequencies has a word that never occurs")
    return Lexicon(words, frequencies)


def _types(tensors: Tensors, sources: int, targets: int) -> Types:
    rows = _whole("rows", tensors["rows"], (sources + 1,), np.int64)
    columns = _whole("columns", tensors["columns"], tensors["columns"].shape[:1], np.int32)
    if rows[0] != 0 or rows[-1] != len(columns) or (np.diff(rows) < 0).any():
        raise ValueError(f"rows do not divide {len(columns)} pairs of words")
    if len(columns) and not 0 <= columns.min() <= columns.max() < targets:
        raise ValueError(f"columns has entries outside of 0..{targets - 1}")
    types = Types(rows, columns)
    owners = types.owners()
    if (np.diff(columns)[owners[1:] == owners[:-1]] <= 0).any():
        raise ValueError("columns are not in order")
    return types


def _direction(name: str, plain: Mapping[str, Any], tensors: Tensors, sizes: tuple[int, int, int]) -> Direction:
    types, generating, generated = sizes
    lengths = (types, generating + 1, generated + 1, generated + 1)
    arrays: Any = {
        array: _probabilities(f"{name}_{array}", tensors[f"{name}_{array}"], length)
        for array, length in zip(ARRAYS[:-1], lengths, strict=True)
    }
    jumps = tensors[f"{name}_jumps"]
    jumps = _probabilities(f"{name}_jumps", jumps, len(jumps))
    if len(jumps) and (len(jumps) % 2 == 0 or not jumps.all()):
        raise ValueError(f"{name}_jumps must be an odd number of positive numbers")
    numbers: Any = {number: float(plain[name][number]) for number in NUMBERS}
    if not all(0.0 < number < 1.0 for number in numbers.values()):
        raise ValueError(f"{name}: numbers must be between 0 and 1, got {numbers}")
    return Direction(**arrays, jumps=jumps, **numbers)


def _whole(name: str, array: np.ndarray, shape: tuple[int, ...], kind: Any) -> np.ndarray:
    """Whole numbers of one kind and shape."""
    if array.shape != shape or array.dtype != kind:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, expected {np.dtype(kind)} of shape {shape}")
    return array


def _probabilities(name: str, array: np.ndarray, length: int) -> np.ndarray:
    """Numbers from 0 to 1, but for rounding."""
    _whole(name, array, (length,), np.float64)
    if not ((array >= 0.0) & (array <= 1.0 + 1e-9)).all():
        raise ValueError(f"{name} has entries outside of 0..1")
    return array
