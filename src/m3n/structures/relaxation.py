"""The best labels of pairwise graphs with cycles, with an upper bound that says how good they can be at most.

A graph with nodes s and edges e = (s, t) scores a labelling x by

    sum_s node_s(x_s) + sum_e pair_e(x_s, x_t).

Finding the best labelling is hard in general. Sequential tree-reweighted message passing (Kolmogorov, "Convergent
tree-reweighted message passing for energy minimization", 2006) descends on the dual of the linear programme over local
marginals: it gives labels and a bound, and where both meet the labels are proven best. On trees they always meet. With
two labels the bound tends to the value of the linear programme; with more it may stop a little above it.

Cost of a round: O(edges labels^2). Memory besides the arguments: O(edges labels) of the largest graph per thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from m3n.compiled.oracles import reweighted
from m3n.packed import SERIAL, Threads


@dataclass(frozen=True)
class RelaxedMap:
    """Labels of n graphs and what is known about them: values <= best scores <= bounds.

    Attributes
    ----------
    labels : array of int (nodes,)
        The best labels that were found, graph after graph.
    values : array (n,)
        Their scores.
    bounds : array (n,)
        Upper bounds on the scores of all labellings; -inf where every labelling scores -inf.
    rounds : array of int (n,)
        Rounds of message passing, there and back.
    exact : array of bool (n,)
        Whether bound and value agree within the tolerance, so that the labels are proven best.
    """

    labels: np.ndarray
    values: np.ndarray
    bounds: np.ndarray
    rounds: np.ndarray
    exact: np.ndarray


def relaxed_map(
    node: np.ndarray,
    edges: np.ndarray,
    pair: np.ndarray,
    *,
    offsets: np.ndarray,
    edge_offsets: np.ndarray,
    tol: float = 1e-6,
    max_rounds: int = 500,
    threads: Threads = SERIAL,
) -> RelaxedMap:
    """Good labels of every graph, and an upper bound on the best score.

    A graph is done when its labels are proven best, when its bound has stopped improving, or after ``max_rounds``.

    Parameters
    ----------
    node : array (nodes, labels)
        Scores of the labels of all nodes, graph after graph; -inf forbids a label.
    edges : array of int (edges, 2)
        Two nodes of every edge, numbered from 0 within their graph. Several edges may join the same nodes.
    pair : array (edges, labels, labels) or (labels, labels)
        Scores of the labels of edges[e, 0] and of edges[e, 1]; -inf forbids a pair. One table may serve all edges.
    offsets : array of int (n + 1,)
        Graph k has the nodes offsets[k] to offsets[k + 1] - 1.
    edge_offsets : array of int (n + 1,)
        Graph k has the edges edge_offsets[k] to edge_offsets[k + 1] - 1.
    tol : float
        How far apart value and bound may be, relative to 1 + |value|, for labels to count as proven best.
    max_rounds : int
        The largest number of rounds.
    threads : Threads
        Graphs are shared out among them; the answer is the same for any number.
    """
    node, pair = np.ascontiguousarray(node, dtype=np.float64), np.ascontiguousarray(pair, dtype=np.float64)
    edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    offsets, edge_offsets = (np.ascontiguousarray(a, dtype=np.int64) for a in (offsets, edge_offsets))
    _check_scores(node, edges, pair, offsets, edge_offsets)
    _check_edges(edges, offsets, edge_offsets)
    if max_rounds < 1:
        raise ValueError(f"max_rounds must be at least 1, got {max_rounds}")
    n, labels = len(offsets) - 1, node.shape[1]
    scores = node.reshape(-1), pair.reshape(-1), labels * labels if pair.ndim == 3 else 0
    graph = _incidence(edges + np.repeat(offsets[:-1], np.diff(edge_offsets))[:, None], len(node))
    answers = np.zeros(len(node), np.int64), np.empty(n), np.empty(n), np.empty(n, np.int64)

    def lane(low: int, high: int) -> None:
        reweighted.solve(scores, graph, offsets, edge_offsets, low, high, tol, max_rounds, *answers)

    threads.run(lane, threads.lanes(offsets + edge_offsets))
    _, values, bounds, _ = answers
    exact = [reweighted.closed(value, bound, tol) for value, bound in zip(values, bounds, strict=True)]
    return RelaxedMap(*answers, np.array(exact))


def _incidence(edges: np.ndarray, nodes: int) -> tuple[np.ndarray, ...]:
    """The edges of every node, those to earlier nodes first, in the layout of ``oracles.reweighted``."""
    count = len(edges)
    ends = np.sort(edges, axis=1)
    turned = (edges[:, 0] > edges[:, 1]).astype(np.int64)
    later_end = np.repeat([True, False], count)
    owner = np.concatenate([ends[:, 1], ends[:, 0]])
    order = np.lexsort((~later_end, owner))
    incident = np.concatenate([np.arange(count), np.arange(count)])[order]
    first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=nodes))])
    middle = first[:-1] + np.bincount(ends[:, 1], minlength=nodes)
    return first, middle, incident, ends, turned


def _check_scores(
    node: np.ndarray, edges: np.ndarray, pair: np.ndarray, offsets: np.ndarray, edge_offsets: np.ndarray
) -> None:
    if node.ndim != 2 or node.shape[1] < 1:
        raise ValueError(f"node must have shape (nodes, labels), got {node.shape}")
    labels = node.shape[1]
    if pair.shape not in ((labels, labels), (len(edges), labels, labels)):
        raise ValueError(
            f"pair must have shape {(len(edges), labels, labels)}, or {(labels, labels)} for one table that serves all "
            f"edges, got {pair.shape}"
        )
    for name, array in (("node", node), ("pair", pair)):
        if not (array < np.inf).all():
            raise ValueError(f"{name} has scores that are infinite or not numbers; only -inf is allowed, to forbid")
    for name, array, size in (("offsets", offsets, len(node)), ("edge_offsets", edge_offsets, len(edges))):
        if array.ndim != 1 or len(array) < 2 or array[0] != 0 or array[-1] != size or (np.diff(array) < 0).any():
            raise ValueError(f"{name} must be n + 1 ascending numbers from 0 to {size}, got {array}")
    if len(offsets) != len(edge_offsets):
        raise ValueError(f"offsets speak of {len(offsets) - 1} graphs, edge_offsets of {len(edge_offsets) - 1}")


def _check_edges(edges: np.ndarray, offsets: np.ndarray, edge_offsets: np.ndarray) -> None:
    graph = np.repeat(np.arange(len(offsets) - 1), np.diff(edge_offsets))
    outside = (edges < 0) | (edges >= np.diff(offsets)[graph][:, None])
    wrong = np.flatnonzero(outside.any(axis=1) | (edges[:, 0] == edges[:, 1]))
    if wrong.size:
        e, k = wrong[0], graph[wrong[0]]
        raise ValueError(
            f"graph {k}, edge {e - edge_offsets[k]}: {edges[e].tolist()} must be two different nodes "
            f"of 0..{offsets[k + 1] - offsets[k] - 1}"
        )
