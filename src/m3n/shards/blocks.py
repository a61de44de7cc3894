"""Blocks of sequences: what packing holds at a time, and what it keeps of it on disk until everything has been read.

A block numbers its attributes by itself. Its file has the rows with these numbers, the names of the attributes, and
labels in the order of their appearance; what they are called in the end is known when all blocks have been read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from m3n.shards.arrays import Arrays, loaded, mapped, save
from m3n.shards.names import Names, Texts, Tuples

Matrix = Any  # an array, or a csr_array


class Rows(NamedTuple):
    """Rows of attributes, of positions or of pairs of them.

    Attributes
    ----------
    matrix : array or csr_array
        The rows.
    names : Texts, Tuples or None
        The attributes of a block, in the order of its columns; None: columns are what they are.
    """

    matrix: Matrix
    names: Names | None = None


class Block(NamedTuple):
    """Some sequences, none of which is empty.

    Attributes
    ----------
    rows : Rows
        Attributes of all positions.
    pairs : Rows or None
        Attributes of neighbouring positions, if there are any.
    lengths : array of int (sequences,)
        Positions of every sequence.
    labels : array of int32 (positions,)
        Numbers of labels.
    weights : array (sequences,) or None
        How often every sequence counts; None: they all count once.
    """

    rows: Rows
    pairs: Rows | None
    lengths: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None = None

    def save(self, path: Path) -> None:
        """Write the block.

        Parameters
        ----------
        path : Path
            Where to.
        """
        arrays = {"lengths": self.lengths, "labels": self.labels} | _packed("", self.rows)
        arrays |= {} if self.pairs is None else _packed("pair_", self.pairs)
        save(path, arrays if self.weights is None else arrays | {"weights": self.weights})

    @classmethod
    def load(cls, path: Path) -> Block:
        """The block again.

        Parameters
        ----------
        path : Path
            Where from.
        """
        arrays = loaded(path)
        pairs = _unpacked("pair_", arrays) if "pair_shape" in arrays else None
        return cls(_unpacked("", arrays), pairs, arrays["lengths"], arrays["labels"], arrays.get("weights"))


def _packed(prefix: str, rows: Rows) -> Arrays:
    """Rows as arrays; a value that all entries have is kept once."""
    arrays: Arrays = {"shape": np.array(rows.matrix.shape, np.int64)}
    if scipy.sparse.issparse(rows.matrix):
        arrays |= {"indptr": rows.matrix.indptr.astype(np.int32), "indices": rows.matrix.indices.astype(np.int32)}
        arrays["data"] = one_or_all(rows.matrix.data)
    else:
        arrays["matrix"] = rows.matrix
    if rows.names is not None:
        arrays |= {f"{type(rows.names).__name__}_{name}": value for name, value in rows.names._asdict().items()}
    return {prefix + name: array for name, array in arrays.items()}


def _unpacked(prefix: str, arrays: Arrays) -> Rows:
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    if "matrix" in own:
        return Rows(own["matrix"])
    return Rows(csr_of(own, int(own["shape"][1])), _named(own))


def _named(own: Arrays) -> Names | None:
    for kind in (Texts, Tuples):
        fields = [f"{kind.__name__}_{field}" for field in kind._fields]
        if fields[0] in own:
            return kind(*(own[field] for field in fields))
    return None


def names_of(path: Path, prefix: str) -> Any:
    """The names of the attributes of a block, mapped from its file.

    Parameters
    ----------
    path : Path
        The file.
    prefix : str
        "pair_" for attributes of pairs, else nothing.
    """
    arrays = mapped(path)
    return _named({name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)})


def csr_of(arrays: Arrays, width: int) -> scipy.sparse.csr_array:
    """A matrix with sorted columns from its arrays, none of which is looked at; one number as data is that of all.

    Parameters
    ----------
    arrays : dict of arrays
        "indptr", "indices" and "data".
    width : int
        How many columns there are.
    """
    data = np.broadcast_to(arrays["data"], arrays["indices"].shape)
    found = scipy.sparse.csr_array((len(arrays["indptr"]) - 1, width))  # which given the arrays might copy them
    found.data, found.indices, found.indptr = data, arrays["indices"], arrays["indptr"]
    found.has_sorted_indices = found.has_canonical_format = True
    return found


def one_or_all(values: np.ndarray) -> np.ndarray:
    """Values as they are, or one if they are all the same.

    Parameters
    ----------
    values : array
        The values.
    """
    return values[:1] if values.size and (values == values[0]).all() else values
