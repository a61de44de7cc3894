"""Parts without features: they score 0 and have no weights. For parts that only a loss or a structure speaks of."""

from __future__ import annotations

import numpy as np

from m3n.features.base import FeatureMap, SparseRows
from m3n.packed import SERIAL, Threads
from m3n.structures.base import Parts, Selection


class NoFeatures(FeatureMap):
    """theta[r] = 0 for an array of rows.

    Parameters
    ----------
    rows : int
        Number of rows, for example of pairs of neighbours: tokens minus sequences.
    *labels : int
        What a row would score: ``s`` for labels, ``s, s`` for pairs of labels.
    """

    def __init__(self, rows: int, *labels: int):
        self.dim = 0
        self.labels = labels
        self.shapes = ((rows, *labels),)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        out[0][...] = 0.0
        return out

    def adjoint(self, parts: Parts, threads: Threads = SERIAL) -> np.ndarray:
        return np.zeros(0)

    def norms(self) -> Parts:
        return (np.zeros(self.shapes[0][0]),)

    def rows(self) -> SparseRows:
        rows = self.shapes[0][0]
        widths = np.full(rows, int(np.prod(self.labels)))
        return SparseRows(np.zeros(rows + 1, np.int64), np.empty(0, np.int64), np.empty(0), widths, (rows,))

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        return NoFeatures(len(np.arange(self.shapes[0][0])[rows[0]]), *self.labels)
