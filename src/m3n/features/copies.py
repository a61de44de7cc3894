"""Nodes with several copies: each copy has its share of the node's scores, and multipliers that make copies agree.

A graph with cycles can be covered by forests if some nodes have a copy in more than one of them, see
``m3n.structures.LoopyGraph``. With T copies of node v,

    theta[copy c of v] = 1/T F(w)[v] + factor * ( delta[v, c] for c > 0,  -sum_c' delta[v, c'] for c = 0 ),

so that copies which agree score together what the node does, whatever the *multipliers* delta are. They are weights
like the others, regularised with lam / factor^2: minimising over them makes copies agree on average.
"""

from __future__ import annotations

import copy
from functools import cached_property

import numpy as np
import scipy.sparse

from m3n.features.base import FeatureMap, SparseRows, Wrapped, adding_up
from m3n.packed import SERIAL, Threads
from m3n.packed.ragged import numbers
from m3n.structures.base import Parts, Selection


class Copies(Wrapped):
    """Scores of copies from those of their nodes, and multipliers.

    Parameters
    ----------
    map : FeatureMap
        The map of the nodes: one part array (nodes, labels).
    owner : array of int (copies,)
        The node of every copy; all nodes have one. Copies of one example stand together, as its nodes do.
    factor : float
        Multipliers are regularised with lam / factor^2.
    """

    def __init__(self, map: FeatureMap, owner: np.ndarray, factor: float = 10.0):
        if len(map.shapes) != 1 or len(map.shapes[0]) != 2:
            raise ValueError(f"the map of the nodes must fill one array (nodes, labels), not {map.shapes}")
        if not 0.0 < factor < np.inf:
            raise ValueError(f"factor must be a positive finite number, got {factor}")
        nodes, self.labels = map.shapes[0]
        self.map = map
        self.owner = np.asarray(owner, dtype=np.int64)
        counts = np.bincount(self.owner, minlength=nodes)
        if len(counts) != nodes or (counts == 0).any():
            raise ValueError(f"owner must name every one of the {nodes} nodes, and no other")
        self.portion = 1.0 / counts[self.owner]
        self.multipliers = float(factor) * agreement_matrix(self.owner)
        self.dim = map.dim + self.multipliers.shape[1] * self.labels
        self.shapes = ((len(self.owner), self.labels),)

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        own, delta = w[: self.map.dim], w[self.map.dim :].reshape(-1, self.labels)
        (nodes,) = self.map.scores(own, (np.empty(self.map.shapes[0]),), threads)
        np.multiply(nodes[self.owner], self.portion[:, None], out=out[0])
        out[0][...] += self.multipliers @ delta
        return out

    def add_adjoint(self, parts: Parts, scale: float, out: np.ndarray, threads: Threads = SERIAL) -> None:
        cut = self.map.dim
        self.map.add_adjoint((self._portions @ parts[0],), scale, out[:cut], threads)
        out[cut:] += scale * (self.multipliers.T @ parts[0]).ravel()

    def norms(self) -> Parts:
        own, squares = self.map.norms()[0][self.owner] * self.portion, self.multipliers.power(2).sum(axis=1)
        return (np.sqrt(own**2 + np.asarray(squares).ravel()),)

    def rows(self) -> SparseRows:
        inner = self.map.rows()
        if inner.gram is not None or inner.lists is not None or len(inner.widths) != self.map.shapes[0][0]:
            raise TypeError(f"visits of single examples cannot make copies of {type(self.map).__name__}")
        counts, extra = np.diff(inner.pointers)[self.owner], np.diff(self.multipliers.indptr)
        pointers = np.concatenate([[0], np.cumsum(counts + extra)])
        first, second = numbers(pointers[:-1], counts), numbers(pointers[:-1] + counts, extra)
        source = numbers(inner.pointers[self.owner], counts)
        runs, data = np.empty(pointers[-1], np.int64), np.empty(pointers[-1])
        runs[first], data[first] = inner.runs[source], inner.data[source] * np.repeat(self.portion, counts)
        runs[second] = self.map.dim + self.multipliers.indices.astype(np.int64) * self.labels
        data[second] = self.multipliers.data
        return SparseRows(pointers, runs, data, inner.widths[self.owner], (len(self.owner),))

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        chosen = copy.copy(self)
        owner = self.owner[rows[0]]
        nodes, chosen.owner = np.unique(owner, return_inverse=True)
        chosen.map = self.map.select((nodes,))
        chosen.portion, chosen.multipliers = self.portion[rows[0]], self.multipliers[rows[0]]
        chosen.shapes = ((len(owner), self.labels),)
        chosen.__dict__.pop("_portions", None)
        return chosen

    @cached_property
    def _portions(self) -> scipy.sparse.csr_array:
        """The matrix (nodes, copies) that puts a node together from its copies."""
        return adding_up(self.owner, self.portion, self.map.shapes[0][0])

    def split(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weights of the nodes' map, and the multipliers (rows, labels) as they enter the scores.

        Parameters
        ----------
        w : array (dim,)
            Weights.
        """
        factor = float(np.abs(self.multipliers.data).max(initial=1.0))
        return w[: self.map.dim], factor * w[self.map.dim :].reshape(-1, self.labels)


def agreement_matrix(owner: np.ndarray) -> scipy.sparse.csr_array:
    """(copies, multipliers): every copy of a node but its first has a multiplier, which the first has with minus."""
    order = np.argsort(owner, kind="stable")
    sorted_owner = owner[order]
    is_first = np.ones(len(owner), bool)
    is_first[1:] = sorted_owner[1:] != sorted_owner[:-1]
    firsts = np.zeros(int(owner.max(initial=-1)) + 1, np.int64)
    firsts[sorted_owner[is_first]] = order[is_first]
    later = np.sort(order[~is_first])
    number = np.arange(len(later))
    rows = np.concatenate([later, firsts[owner[later]]])
    values = np.concatenate([np.ones(len(later)), -np.ones(len(later))])
    matrix = scipy.sparse.csr_array((values, (rows, np.tile(number, 2))), shape=(len(owner), len(later)))
    matrix.sort_indices()
    return matrix
