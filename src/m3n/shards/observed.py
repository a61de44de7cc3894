"""Which attribute occurs with which label: found on disk while shards are written, mapped when it is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse

from m3n.shards.arrays import GrowingArrays
from m3n.shards.blocks import Matrix
from m3n.shards.runs import Runs, starts_of

KEY = np.dtype([("key", "<i8")])


class Seen:
    """Pairs of an attribute and a label that occur.

    Parameters
    ----------
    path : Path
        What files are called, but for a number.
    labels : int
        How many labels there are.
    memory : int
        Bytes that merging may take.
    """

    def __init__(self, path: Path, labels: int, memory: int):
        self.runs, self.labels = Runs(path, KEY, lambda keys, starts: keys[starts], memory), labels

    def add(self, matrix: Matrix, labels: np.ndarray) -> None:
        """The pairs of some rows.

        Parameters
        ----------
        matrix : array or csr_array (rows, attributes)
            The rows; nothing is to be known of dense ones.
        labels : array of int (rows,)
            The label of each.
        """
        if scipy.sparse.issparse(matrix):
            keys = matrix.indices * np.int64(self.labels)
            keys += np.repeat(labels, np.diff(matrix.indptr))
            keys.sort()
            self.runs.add(keys[starts_of(keys)].view(KEY))

    def write(self, arrays: GrowingArrays, name: str) -> None:
        """Write the sorted keys: attribute * labels + label.

        Parameters
        ----------
        arrays : GrowingArrays
            Where to.
        name : str
            The name of the array.
        """
        arrays.add(name, np.empty(0, np.int64))
        for records in self.runs.merged():
            arrays.add(name, records["key"])


def pairs_of(keys: np.ndarray, attributes: int, labels: int) -> scipy.sparse.csr_array:
    """The pairs as a matrix of truth values (attributes, labels).

    Parameters
    ----------
    keys : array of int (pairs,)
        Sorted keys.
    attributes, labels : int
        How many there are.
    """
    ends = np.searchsorted(keys, np.arange(attributes + 1) * np.int64(labels))
    return scipy.sparse.csr_array((np.ones(len(keys), bool), keys % labels, ends), shape=(attributes, labels))
