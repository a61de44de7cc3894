"""What is in a shard, looked at once per process: every number that leads somewhere must lead to something."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from m3n.shards.arrays import DAMAGED, Arrays, ShardError, checksum

PIECE = 1 << 18  # entries that are looked at at a time


def check_checksum(path: Path, entry: dict[str, Any]) -> None:
    """Refuse a file with another content than when it was packed.

    Parameters
    ----------
    path : Path
        The file.
    entry : dict
        What the manifest says about it.
    """
    if checksum(path) != entry["checksum"]:
        raise ShardError(f"{path}: checksum differs from the manifest: {DAMAGED}")


def check_size(path: Path, entry: dict[str, Any]) -> None:
    """Refuse a file that is not there, or has another size.

    Parameters
    ----------
    path : Path
        The file.
    entry : dict
        What the manifest says about it.
    """
    if not path.is_file():
        raise ShardError(f"{path} is missing, which the manifest names; {DAMAGED}")
    size = path.stat().st_size
    if size != entry["bytes"]:
        raise ShardError(f"{path} has {size} bytes, the manifest says {entry['bytes']}; {DAMAGED}")


class Contents:
    """The arrays of a shard, compared with what the manifest says.

    Parameters
    ----------
    path : Path
        The file, for messages.
    arrays : dict of arrays
        What is in it.
    entry : dict
        What the manifest says about it.
    """

    def __init__(self, path: Path, arrays: Arrays, entry: dict[str, Any]):
        self.path, self.arrays, self.entry = path, arrays, entry
        self._expected = set[str]()

    def check_shapes(self, dense: bool, width: int, pairs: bool, weighted: bool) -> None:
        """Refuse arrays that are not there, or of other types or shapes; their content is not looked at.

        Parameters
        ----------
        dense, pairs, weighted : bool
            Whether rows are dense, there are attributes of pairs, and sequences have weights.
        width : int
            Attributes of a position.
        """
        entry, positions = self.entry, self.entry["positions"]
        self._expect("lengths", np.int64, (entry["sequences"],))
        self._expect("labels", np.int32, (positions,))
        if weighted:
            self._expect("weights", np.float64, (entry["sequences"],))
        if dense:
            self._expect("matrix", np.float64, (positions, width))
        else:
            self._expect_rows("", positions, entry["entries"])
        if pairs:
            self._expect_rows("pair_", positions - entry["sequences"], entry["pair_entries"])
        surplus = sorted(set(self.arrays) - self._expected)
        self._require(not surplus, f"there are arrays that nobody needs: {', '.join(surplus)}")

    def check_values(self, width: int, pair_width: int | None, labels: int) -> None:
        """Refuse numbers that lead nowhere.

        Parameters
        ----------
        width : int
            Attributes of a position.
        pair_width : int or None
            Attributes of a pair of positions.
        labels : int
            How many labels there are.
        """
        arrays = self.arrays
        lengths = arrays["lengths"]
        self._require((lengths > 0).all() and lengths.sum() == len(arrays["labels"]), "lengths do not add up")
        self._require(_within(arrays["labels"], labels), f"a label is not one of 0 to {labels - 1}")
        if "weights" in arrays:
            weights = arrays["weights"]
            self._require((np.isfinite(weights) & (weights > 0.0)).all(), "a weight is not a positive number")
        if "matrix" in arrays:
            self._require(all(np.isfinite(part).all() for part in _pieces(arrays["matrix"])), "NaN or infinite input")
        for prefix, columns in (("", width), ("pair_", pair_width)):
            if f"{prefix}indptr" in arrays:
                self._check_rows(prefix, columns or 0)

    def _expect(self, name: str, dtype: Any, *shapes: tuple[int, ...]) -> None:
        self._expected.add(name)
        found = self.arrays.get(name)
        if found is None or found.dtype != dtype or found.shape not in shapes:
            what = "is missing" if found is None else f"has the type {found.dtype} and the shape {found.shape}"
            wanted = " or ".join(map(str, shapes))
            raise ShardError(
                f"{self.path}: the array {name!r} {what}, but the manifest asks for {np.dtype(dtype)} and {wanted}; "
                f"{DAMAGED}"
            )

    def _expect_rows(self, prefix: str, rows: int, entries: int) -> None:
        self._expect(f"{prefix}indptr", np.int32, (rows + 1,))
        self._expect(f"{prefix}indices", np.int32, (entries,))
        self._expect(f"{prefix}data", np.float64, (entries,), *([(1,)] if entries else []))

    def _check_rows(self, prefix: str, width: int) -> None:
        indptr, indices, data = (self.arrays[f"{prefix}{name}"] for name in ("indptr", "indices", "data"))
        self._require(indptr[0] == 0 and indptr[-1] == len(indices), "rows do not end where entries end")
        self._require(all((np.diff(part) >= 0).all() for part in _overlapping(indptr)), "a row ends before it begins")
        self._require(all(_within(part, width) for part in _pieces(indices)), f"an attribute is not below {width}")
        self._require(all(np.isfinite(part).all() for part in _pieces(data)), "NaN or infinite input")
        for low in range(0, len(indices), PIECE):
            part = indices[low : low + PIECE + 1]
            falls = low + 1 + np.flatnonzero(part[1:] <= part[:-1])
            places = np.searchsorted(indptr, falls)
            self._require((indptr[places] == falls).all(), "the attributes of a row are not in ascending order")

    def _require(self, condition: Any, what: str) -> None:
        if not condition:
            raise ShardError(f"{self.path}: {what}; {DAMAGED}")


def _within(numbers: np.ndarray, stop: int) -> bool:
    return not numbers.size or bool(numbers.min() >= 0 and numbers.max() < stop)


def _pieces(array: np.ndarray) -> Iterator[np.ndarray]:
    flat = array.reshape(-1)
    return (flat[low : low + PIECE] for low in range(0, len(flat), PIECE))


def _overlapping(array: np.ndarray) -> Iterator[np.ndarray]:
    return (array[low : low + PIECE + 1] for low in range(0, len(array), PIECE))
