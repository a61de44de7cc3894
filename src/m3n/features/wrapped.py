"""Maps around other maps: a strength of regularisation of their own, binary variables, copies of nodes.

*Scaled.* The regulariser lam/2 |v|^2 treats all weights alike. A map whose scores are those of w = factor * v charges

    lam/2 |v|^2 = (lam / factor^2)/2 |w|^2

for the weights w that its group really uses: a factor of 2 regularises the group a quarter as strongly as the others,
and strength s takes the factor sqrt(lam / s). An l1 term becomes l1 |v|_1 = (l1 / factor) |w|_1. Nothing else changes:
the problem is of the same kind, so every solver and every certificate is as good as before.

*Binary labels.* Multilabel problems are graphs with the same binary variables in every example. Example i has L
variables, one per label, with the values 0 and 1:

    node[i L + l, v] = v <x_i, W[:, l]>        one weight vector per label; the value 0 scores 0

Pairs of labels have a ``Table`` each, which all examples share. X is used as it is, one row per example. Cost of the
scores and of the adjoint: that of X W, and O(n L).

*Copies.* A graph with cycles can be covered by forests if some nodes have a copy in more than one of them, see
``m3n.structures.LoopyGraph``. Each copy has its share of the node's scores, and multipliers make copies agree. With T
copies of node v,

    theta[copy c of v] = 1/T F(w)[v] + factor * ( delta[v, c] for c > 0,  -sum_c' delta[v, c'] for c = 0 ),

so that copies which agree score together what the node does, whatever the *multipliers* delta are. They are weights
like the others, regularised with lam / factor^2: minimising over them makes copies agree on average.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
import scipy.sparse

from m3n.features.base import FeatureMap, InPlace, SparseRows, adding_up
from m3n.features.codes import CodedRows
from m3n.features.maps import Stack, Table
from m3n.packed import SERIAL, Threads
from m3n.packed.ragged import numbers
from m3n.structures import Graph, LoopyGraph
from m3n.structures.base import Parts, Selection


class Wrapped(InPlace):
    """A map around another one: its weights are those of the inner map, perhaps followed by ordinary ones.

    Attributes
    ----------
    map : FeatureMap
        The inner map.
    """

    map: FeatureMap

    @property
    def array(self) -> np.ndarray | None:
        """As the inner map."""
        return self.map.array

    @property
    def euclidean(self) -> bool:
        """As the inner map."""
        return self.map.euclidean

    def inner(self, u: np.ndarray, v: np.ndarray) -> float:
        cut = self.map.dim
        own = u[:cut]  # the same object twice for a square, which a map may treat in its own way
        return self.map.inner(own, own if v is u else v[:cut]) + float(u[cut:] @ v[cut:])

    def refresh(self, w: np.ndarray) -> np.ndarray:
        cut = self.map.dim
        own = self.map.refresh(w[:cut])
        return own if cut == self.dim else np.concatenate([own, w[cut:]])


class Scaled(Wrapped):
    """theta = F (factor * v): the group's own weights are w = factor * v, regularised with lam / factor^2.

    Parameters
    ----------
    map : FeatureMap
        The map of the group, for example the ``Table`` of transitions within a ``Stack``.
    factor : float
        Positive; above 1 the group is regularised less than the others, below 1 more.
    """

    def __init__(self, map: FeatureMap, factor: float):
        if not 0.0 < factor < np.inf:
            raise ValueError(f"factor must be a positive finite number, got {factor}")
        self.map = map
        self.factor = float(factor)
        self.dim = map.dim
        self.shapes = map.shapes

    def weights(self, v: np.ndarray) -> np.ndarray:
        """The weights w = factor * v of the group itself.

        Parameters
        ----------
        v : array (dim,)
            The group's piece of a solver's weights, as ``Stack.split`` cuts it.
        """
        return self.factor * v

    @property
    def fixed_work(self) -> int:  # type: ignore[override]
        """That of the map."""
        return self.map.fixed_work

    @property
    def light(self) -> bool:  # type: ignore[override]
        """Whether the map is."""
        return self.map.light

    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        return self.map.scores(self.factor * w, out, threads)

    def add_adjoint(self, parts: Parts, scale: float, out: np.ndarray, threads: Threads = SERIAL) -> None:
        self.map.add_adjoint(parts, self.factor * scale, out, threads)

    def norms(self) -> Parts:
        return tuple(self.factor * norm for norm in self.map.norms())

    def rows(self) -> SparseRows:
        rows = self.map.rows()
        return replace(rows, data=self.factor * rows.data)

    def coded(self) -> CodedRows | None:
        rows = self.map.coded()
        return None if rows is None else replace(rows, values=self.factor * rows.values)

    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        return Scaled(self.map.select(rows), self.factor)


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
        runs[first], data[first] = inner.runs[source], inner.values[source] * np.repeat(self.portion, counts)
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


def graph_features(
    structure: Graph,
    node: FeatureMap,
    edge: FeatureMap | None = None,
    *,
    agreement: float = 0.01,
    common: FeatureMap | None = None,
) -> Stack:
    """Node features, a table of pairs of labels that all edges share, optional edge features.

    Parameters
    ----------
    structure : Tree, Graph or LoopyGraph
        The output spaces; their factors must be edges.
    node : FeatureMap
        Map with one row per node, for example ``Dense(X, labels)``.
    edge : FeatureMap, optional
        Map with one row per edge, for example ``Dense(Z, (labels, labels))``, for structures with ``tables=True``; or
        ``TwoWays`` for those with ``both_ways=True``.
    agreement : float
        For a ``LoopyGraph``: how strongly multipliers are regularised, relative to the other weights. Small numbers
        bring the relaxed problem closer to the linear programming relaxation, and take more passes.
    common : FeatureMap, optional
        Map of the table that all edges share: by default a ``Table`` with a weight for every pair of labels;
        ``SymmetricTable`` has one for two labels in either order, ``NoTable`` has none.
    """
    if not 0.0 < agreement < np.inf:
        raise ValueError(f"agreement must be a positive finite number, got {agreement}")
    if isinstance(structure, LoopyGraph):
        node = Copies(node, structure.owner, float(1.0 / np.sqrt(agreement)))
        edge = None if edge is None else edge.select((structure.edge_order,) * len(edge.shapes))
    common = Table(structure.labels, structure.labels) if common is None else common
    return Stack(node, common, *(() if edge is None else (edge,)))
