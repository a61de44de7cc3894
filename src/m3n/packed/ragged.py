"""Rows of examples of different lengths, one after another."""

from __future__ import annotations

from collections.abc import Collection, Sized

import numpy as np


def running_sum(examples: Collection[Sized]) -> np.ndarray:
    """Where the rows of every example begin, and where the last one ends."""
    offsets = np.zeros(len(examples) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, examples), np.int64, len(examples)), out=offsets[1:])
    return offsets


def numbers(first: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Row numbers first[k] .. first[k] + lengths[k] - 1 of all k, one after another."""
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    return np.repeat(first - starts, lengths) + np.arange(lengths.sum())


def ranges(first: np.ndarray, lengths: np.ndarray) -> slice | np.ndarray:
    """The same; a slice when they follow one another."""
    if np.array_equal(first[1:], (first + lengths)[:-1]):
        return slice(int(first[0]), int(first[-1] + lengths[-1]))
    return numbers(first, lengths)


def sums(values: np.ndarray, first: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The sums of values[first[k]] .. values[first[k] + lengths[k] - 1] of all k."""
    running = np.concatenate([[0.0], np.cumsum(values)])
    return running[first + lengths] - running[first]


def batches(sizes: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Neighbouring examples, low..high-1, that are of size ``most`` together at most, or one that is larger."""
    found, low, running = [], 0, 0
    for i, size in enumerate(sizes.tolist()):
        if running and running + size > most:
            found.append((low, i))
            low, running = i, 0
        running += size
    return [*found, (low, len(sizes))] if len(sizes) else []


def mask(given: np.ndarray | None, shape: tuple[int, ...], name: str) -> np.ndarray:
    """An array of truth values of this shape; nothing is marked if none is given."""
    array = np.zeros(shape, dtype=bool) if given is None else np.asarray(given, dtype=bool)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return array
