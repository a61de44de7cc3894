"""Features of multilabel problems: graphs with the same binary variables in every example.

Example i has L variables, one per label, with the values 0 and 1:

    node[i L + l, v] = v <x_i, W[:, l]>        one weight vector per label; the value 0 scores 0

Pairs of labels have a ``Table`` each, which all examples share. X is used as it is, one row per example.

Cost of the scores and of the adjoint: that of X W, and O(n L).
"""

from __future__ import annotations

import numpy as np

from m3n.features.base import FeatureMap, SparseRows, Wrapped
from m3n.packed import SERIAL, Threads
from m3n.structures.base import Parts, Selection


class BinaryLabels(Wrapped):
    """theta[i labels + l] = (0, s[i, l]): the scores s (n, labels) of another map are those of the value 1.

    Parameters
    ----------
    map : FeatureMap
        The map of s, for example ``Dense(X, labels)`` or ``Sparse(X, labels)``.
    """

    def __init__(self, map: FeatureMap):
        if len(map.shapes) != 1 or len(map.shapes[0]) != 2:
            raise ValueError(f"map must fill one array (n, labels), but fills arrays of the shapes {map.shapes}")
        self.map = map
        self.dim = map.dim
        self.examples, self.labels = map.shapes[0]
        self.shapes = ((self.examples * self.labels, 2),)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        (ones,) = self.map.scores(w, (np.empty(self.map.shapes[0]),), threads)
        out[0][:, 0] = 0.0
        out[0][:, 1] = ones.ravel()
        return out

    def add_adjoint(self, parts: Parts, scale: float, out: np.ndarray, threads: Threads = SERIAL) -> None:
        ones = np.ascontiguousarray(parts[0][:, 1]).reshape(self.map.shapes[0])
        self.map.add_adjoint((ones,), scale, out, threads)

    def norms(self) -> Parts:
        # the two values of a variable differ by |x|, where structures reckon with sqrt(2) times the norm
        return (np.repeat(self.map.norms()[0] / np.sqrt(2.0), self.labels),)

    def rows(self) -> SparseRows:
        """One row per example: an entry meets the list of an attribute's weights, which score every second part."""
        rows = self.map.rows()
        if rows.columns is not None or rows.gram is not None or len(rows.widths) != self.examples:
            raise TypeError(f"BinaryLabels of {type(self.map).__name__} cannot be written out for block methods")
        widths = np.full(self.examples, 2 * self.labels)
        parts = np.arange(1, 2 * self.labels, 2)
        parts[-1] = ~parts[-1]  # the end of a list
        columns = np.tile(parts, self.dim // self.labels)
        return SparseRows(rows.pointers, rows.runs, rows.data, widths, rows.arrays, rows.pointers[:-1], columns)

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        return BinaryLabels(self.map.select((_examples(rows[0], self.examples, self.labels),)))


def _examples(rows: Selection, examples: int, each: int) -> np.ndarray:
    """The examples that some rows of an array belong to, all ``each`` rows of every one of them."""
    numbers = np.arange(examples * each).reshape(examples, each)
    chosen = numbers.ravel()[rows].reshape(-1, each)[:, 0] // each
    if not np.array_equal(numbers[chosen].ravel(), numbers.ravel()[rows]):
        raise ValueError(f"rows must be those of whole examples, {each} each, in their order")
    return chosen
