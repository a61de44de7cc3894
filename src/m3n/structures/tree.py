"""Trees and forests: pairs of variables along edges without cycles, any orientation, every example with its own.

theta = (node (variables, labels), transition (labels, labels)) and, with ``tables=True``, edge (edges, labels, labels):
one table per edge on top of the shared one. With ``both_ways=True`` another array (edges, labels, labels) follows, in
which the label of an edge's second node comes first; what is said there and back by the same weights has no direction
(``m3n.features.TwoWays``). A path is a chain without start and end scores, a star a naive Bayes model
turned around. Both oracles cost O(nodes labels^2) per example and are those of ``m3n.structures.Graph``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from m3n.structures.factors import Factors
from m3n.structures.graph import Graph


class Tree(Graph):
    """Variables joined by the edges of a forest.

    Parameters
    ----------
    nodes, labels : sequence of int, int
        As in ``Graph``: number of variables of every example, and of labels.
    edges : sequence of array of int (count, 2)
        For every example its edges, variables being numbered from 0 within the example. The first column is the first
        axis of the tables of scores; an example without edges has an array of shape (0, 2).
    tables : bool
        Whether theta has a table of scores for every edge.
    both_ways : bool
        Whether it has two, the second one for the labels in the other order; with ``tables`` only.
    root : sequence of int, optional
        For every example the variable at which recursions end, -1 for any. It never changes the answer.
    """

    def __init__(
        self,
        nodes: Sequence[int] | np.ndarray,
        labels: int,
        edges: Sequence[Any],
        *,
        tables: bool = False,
        both_ways: bool = False,
        root: Sequence[int] | np.ndarray | None = None,
    ):
        pairs = Factors([_as_pairs(e, i) for i, e in enumerate(edges)], shared=True)
        if both_ways and not tables:
            raise ValueError("both_ways=True is about tables of edges; it needs tables=True")
        self.tables, self.both_ways = tables, both_ways
        factors = [pairs, *(pairs.tables(both_ways) if tables else ())]
        nodes = np.asarray(nodes, dtype=np.int64)
        pairs.check(nodes, 0)
        _refuse_cycles(nodes, pairs)
        super().__init__(nodes, labels, factors, budget=np.inf, last=root)


def _as_pairs(edges: Any, i: int) -> np.ndarray:
    pairs = np.asarray(edges)
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"example {i}: edges must be an array (count, 2) of variable numbers, got shape {pairs.shape}")
    return pairs


def _refuse_cycles(nodes: np.ndarray, pairs: Factors) -> None:
    """Say which edge closes a cycle; every shape is looked at once."""
    seen = set()
    for i in range(len(nodes)):
        edges = pairs.scopes[pairs.first[i] : pairs.first[i + 1]]
        key = edges.tobytes()
        if key not in seen:
            closing = _cycle_edge(int(nodes[i]), edges.tolist())
            if closing is not None:
                a, b = edges[closing]
                raise ValueError(
                    f"example {i}: edge {closing}, ({a}, {b}), closes a cycle; leave it out, or use Graph for cycles"
                )
            seen.add(key)


def _cycle_edge(nodes: int, edges: list[list[int]]) -> int | None:
    """The first edge between variables that earlier edges join already."""
    leader = list(range(nodes))

    def find(v: int) -> int:
        while leader[v] != v:
            leader[v] = leader[leader[v]]
            v = leader[v]
        return v

    for k, (a, b) in enumerate(edges):
        first, second = find(a), find(b)
        if first == second:
            return k
        leader[first] = second
    return None
