"""Graphs with cycles, relaxed to paths: every edge belongs to one path, and a node has a copy in each of its paths.

Exact inference on a graph of large treewidth is out of reach. Cut its edges into paths and give every node a copy in
each path that goes through it. If copies may disagree, an output is a labelling of the copies, and both oracles are
those of paths: exact and quick. Gold has copies that agree, and a loss or a score of a node is shared out among its
copies. What is lost is the constraint that copies agree. *Multipliers* bring it back on average: they add delta to the
score of one copy of a node and take it from another, which changes no labelling with copies that agree.

For every w and delta, with s the scores and the maximum (or log sum exp) over labellings y of nodes and z of copies,

    max_y { ell(y) + s(y) } - s(gold)  <=  max_z { ell(z) + s(z; delta) } - s(gold),

as the labellings of nodes are among those of copies: the relaxed objective is an upper bound of the exact one. Its
least value over delta is the linear programming relaxation over the local polytope, by duality of the constraint that
the marginals of copies agree. Training minimises over w and delta together; delta is regularised weakly, so it is one
convex problem of the usual kind, and every solver certifies it. So *the certificate speaks of the relaxed problem*: no
w and delta can make the relaxed objective smaller by more than the gap, and primal is a true upper bound of the exact
objective at w.

The maximum over z is a sum over paths. So the paths are the examples of the problem, and block methods visit them one
by one, with far fewer passes than visits of whole graphs take. With G graphs and n paths,

    n/G J_paths(w; lam G/n)  =  lam/2 |w|^2 + 1/G sum over graphs of the relaxed loss.

Paths follow the order of the nodes: at every node the edge from its nearest earlier neighbour goes on to its nearest
later one, the second nearest to the second nearest, and so on. On a grid these are its rows and columns, some of them
joined at the border.

References: Komodakis, Paragios, Tziritas, "MRF optimization via dual decomposition", 2007; Meshi, Sontag, Jaakkola,
Globerson, "Learning efficiently with approximate inference via dual losses", 2010; Finley, Joachims, "Training
structural SVMs when exact inference is intractable", 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from m3n.packed import SERIAL, Threads
from m3n.packed.ragged import ranges
from m3n.structures.base import Examples, Parts, Selection, Structure
from m3n.structures.factors import Factors
from m3n.structures.graph import Graph
from m3n.structures.labels import Words, cut_labels, join_labels
from m3n.structures.tree import Tree


class LoopyGraph(Tree):
    """Labellings of graphs of any shape with pairwise scores, relaxed to paths that share nodes.

    theta is that of a ``Tree`` whose examples are paths: node (copies, labels), transition (labels, labels) and with
    ``tables`` edge (edges, labels, labels), edges in the order ``edge_order``. ``m3n.features.graph_features`` makes
    the map from features of nodes and edges, with multipliers. Outputs are labels of nodes, graph by graph.

    Parameters
    ----------
    nodes, labels : sequence of int, int
        Number of nodes of every graph, at least 1, and of labels.
    edges : sequence of arrays of int (count, 2)
        Edges of every graph, by the numbers of their nodes within it.
    tables : bool
        Whether every edge has a table of scores of its own.
    both_ways : bool
        Whether it has another one for the labels in the other order, as in ``Tree``.

    Attributes
    ----------
    owner : array of int (copies,)
        The node of every copy, numbered through all graphs.
    portion : array (copies,)
        1 / number of copies of that node.
    graph_of : array of int (n,)
        The graph of every path.
    edge_order : array of int (edges,)
        The edges, numbered through all graphs as they are given, in the order of the paths.
    node_offsets : array of int (graphs + 1,)
        The first node of every graph.
    """

    relaxed: ClassVar[bool] = True

    def __init__(
        self,
        nodes: Sequence[int] | np.ndarray,
        labels: int,
        edges: Sequence[Any],
        *,
        tables: bool = False,
        both_ways: bool = False,
    ):
        self.node_offsets = np.concatenate([[0], np.cumsum(nodes)])
        pairs = [np.asarray(e, dtype=np.int64).reshape(-1, 2) for e in edges]
        if len(pairs) != len(nodes):
            raise ValueError(f"{len(nodes)} graphs but {len(pairs)} lists of edges")
        joined = np.concatenate([e + first for e, first in zip(pairs, self.node_offsets, strict=False)])
        paths = cut_into_paths(int(self.node_offsets[-1]), joined)
        self.owner, self.edge_order = paths.owner, paths.edge_order
        self.portion = 1.0 / np.bincount(self.owner)[self.owner]
        firsts = self.owner[np.cumsum(paths.lengths) - paths.lengths]
        self.graph_of = np.searchsorted(self.node_offsets, firsts, side="right") - 1
        super().__init__(paths.lengths, labels, paths.edges, tables=tables, both_ways=both_ways)
        shared = Factors(pairs, shared=True)
        factors = [shared, *(shared.tables(both_ways) if tables else ())]
        self._original = Original(np.diff(self.node_offsets), labels, factors)

    @property
    def original(self) -> Original:
        """The graphs without copies, on which losses say what errors cost."""
        return self._original

    @property
    def graphs(self) -> int:
        """Number of graphs."""
        return len(self.node_offsets) - 1

    def pack(self, outputs: Sequence[Any] | np.ndarray) -> np.ndarray:
        """Labels of nodes, given to all of their copies."""
        words = Words("graph", "nodes", "outputs")
        return join_labels(outputs, self.positions(), self.labels, words)[self.owner]

    def unpack(self, labelling: np.ndarray) -> list[Any]:
        """Labels of nodes, graph by graph: what most of their copies say, the lowest of them if there is a tie."""
        votes = np.bincount(self.owner * self.labels + labelling, minlength=int(self.node_offsets[-1]) * self.labels)
        return cut_labels(votes.reshape(-1, self.labels).argmax(axis=1), self.node_offsets)

    def positions(self) -> np.ndarray:
        return np.diff(self.node_offsets)

    def without_copies(self, packed: np.ndarray) -> np.ndarray:
        labelling = np.zeros(int(self.node_offsets[-1]), np.int64)
        labelling[self.owner] = packed
        return labelling

    def copied(self, number: int, rows: np.ndarray) -> np.ndarray:
        if number == 0:
            return rows[self.owner] * self.portion.reshape(-1, *(1,) * (rows.ndim - 1))
        return rows[self.edge_order] if self.spans()[number] is not None else rows

    def agreement(self, labelling: np.ndarray) -> float:
        """Share of the nodes whose copies have one label.

        Parameters
        ----------
        labelling : array of int (copies,)
            Labels of copies.
        """
        low, high = np.full(self.node_offsets[-1], self.labels), np.full(self.node_offsets[-1], -1)
        np.minimum.at(low, self.owner, labelling)
        np.maximum.at(high, self.owner, labelling)
        return float(np.mean(low == high))

    def select(self, examples: Examples) -> tuple[Structure, tuple[Selection, ...]]:
        part, rows = super().select(examples)
        assert isinstance(part, LoopyGraph)
        part.owner, part.portion = self.owner[rows[0]], self.portion[rows[0]]
        part.graph_of = self.graph_of[examples]
        edges = self.factors[0].first
        chosen = np.arange(self.n)[examples]
        part.edge_order = self.edge_order[ranges(edges[chosen], np.diff(edges)[chosen])]
        return part, rows


class Original(Graph):
    """Graphs as they are before they are cut into paths: what outputs and parts they have, without oracles.

    Parameters
    ----------
    nodes : array of int (graphs,)
        Number of nodes of every graph.
    labels : int
        Number of labels.
    factors : sequence of Factors
        Its edges.
    """

    oracles: ClassVar[frozenset[str]] = frozenset()
    words: ClassVar[Words] = Words("graph", "nodes", "outputs")

    def __init__(self, nodes: np.ndarray, labels: int, factors: Sequence[Factors]):
        self.labels = labels
        self._set(nodes, tuple(factors))

    def hard(self, theta: Parts, threads: Threads = SERIAL) -> NoReturn:
        raise TypeError("these graphs have no exact oracles, which is why they are relaxed; ask the LoopyGraph")

    def soft(self, theta: Parts, mu: float, threads: Threads = SERIAL, weights: np.ndarray | None = None) -> NoReturn:
        self.hard(theta)


@dataclass(frozen=True)
class Paths:
    """Paths through a graph, one after another."""

    owner: np.ndarray  # (copies,) node of every copy
    lengths: np.ndarray  # (paths,) copies of every path
    edges: list[np.ndarray]  # per path, (count, 2) numbers of copies within it, directed as given
    edge_order: np.ndarray  # (edges,) which of the given edges they are


def cut_into_paths(nodes: int, edges: np.ndarray) -> Paths:
    """Paths that use every edge once and touch every node.

    Parameters
    ----------
    nodes : int
        Number of nodes.
    edges : array of int (count, 2)
        Edges between different nodes.
    """
    if (edges[:, 0] == edges[:, 1]).any():
        e = int(np.flatnonzero(edges[:, 0] == edges[:, 1])[0])
        raise ValueError(f"edge {e} joins node {edges[e, 0]} with itself; put that into the scores of the node")
    low, high = edges.min(axis=1, initial=nodes), edges.max(axis=1, initial=-1)
    path = _paths(low, high)  # the first edge of the path of every edge
    heads = np.flatnonzero(path == np.arange(len(edges)))
    alone = np.setdiff1d(np.arange(nodes), edges.ravel())
    # copies: the first node of every path, the later end of every edge, and nodes without edges
    owner = np.concatenate([low[heads], high, alone])
    key = np.concatenate([heads, path, len(edges) + alone])
    start = np.concatenate([low[heads], low[path], alone])  # paths in the order of their first nodes
    order = np.lexsort((owner, key, start))
    new = np.concatenate([[True], np.diff(key[order]) != 0])
    lengths = np.diff(np.concatenate([np.flatnonzero(new), [len(order)]]))
    edge_order = np.lexsort((low, path, low[path]))
    counts = lengths - 1
    place = np.arange(len(edges)) - np.repeat(np.cumsum(counts) - counts, counts)  # of an edge in its path
    forward = edges[edge_order, 0] == low[edge_order]
    local = np.stack([place + ~forward, place + forward], axis=1)
    return Paths(owner[order], lengths, np.split(local, np.cumsum(counts)[:-1]), edge_order)


def _paths(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The first edge of every edge's path."""
    count, span = len(low), high - low
    arriving, leaving = _ranks(high, span), _ranks(low, span)
    widest = max(arriving.max(initial=0), leaving.max(initial=0)) + 1
    begins, ends = low * widest + leaving, high * widest + arriving
    order = np.argsort(ends)
    at = np.searchsorted(ends[order], begins).clip(max=max(count - 1, 0))
    before = order[at] if count else order
    first = np.where(ends[before] == begins, before, np.arange(count))
    while (first != first[first]).any():
        first = first[first]
    return first


def _ranks(node: np.ndarray, span: np.ndarray) -> np.ndarray:
    """Among the edges of a node, the how many-th every one is, short ones first."""
    order = np.lexsort((np.arange(len(node)), span, node))
    sorted_node = node[order]
    new = np.concatenate([[True], np.diff(sorted_node) != 0])[: len(node)]
    starts = np.flatnonzero(new)
    ranks = np.empty(len(node), np.int64)
    ranks[order] = np.arange(len(node)) - np.repeat(starts, np.diff(np.concatenate([starts, [len(node)]])))
    return ranks
