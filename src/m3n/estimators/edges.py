"""What scores the pairs of labels along edges: whether edges have a direction, and which weights follow from that.

Of their own have a direction: the edges of a networkx ``DiGraph``; those of ``grid_graph`` that tell directions apart;
and those of tuples with edge features, which speak of an edge as it is written. The edges of a ``Graph`` of networkx
and of tuples without edge features have none: written the other way round they mean the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from m3n.estimators.graph_inputs import is_networkx
from m3n.estimators.grids import GridGraph
from m3n.estimators.matrices import Matrix, linear_map
from m3n.features import FeatureMap, NoTable, Stack, SymmetricTable, Table, TwoWays

DIRECTED, SYMMETRIC, ANTISYMMETRIC = 0, 1, -1


def settled_direction(X: Sequence[Any], directed: bool | None) -> bool:
    """Whether edges have a direction: as it was said, or as the graphs themselves say, which must agree.

    Parameters
    ----------
    X : sequence of graphs
        Training data.
    directed : bool or None
        What was said.
    """
    if directed is not None:
        return bool(directed)
    found = [has_direction(example) for example in X]
    if len(set(found)) > 1:
        other = found.index(not found[0])
        kinds = {True: "directed", False: "undirected"}
        raise ValueError(
            f"the edges of graph 0 are {kinds[found[0]]}, those of graph {other} {kinds[found[other]]}; "
            "say directed=True or directed=False, or give graphs of one kind"
        )
    return bool(found and found[0])


def has_direction(example: Any) -> bool:
    """Whether the edges of a graph have a direction of their own."""
    if is_networkx(example):
        return bool(example.is_directed())
    return example.directed if isinstance(example, GridGraph) else len(example) > 2


def edge_kinds(
    width: int | None, directed: bool, symmetric: Sequence[int] | None, antisymmetric: Sequence[int] | None
) -> np.ndarray:
    """Of every edge feature whether it has a direction, is symmetric or antisymmetric.

    Parameters
    ----------
    width : int or None
        Number of edge features.
    directed : bool
        Whether features that are in neither list have a direction; else they are symmetric.
    symmetric, antisymmetric : sequences of int or None
        Numbers of features.
    """
    kinds = np.full(width or 0, DIRECTED if directed else SYMMETRIC)
    lists = [("symmetric", symmetric, SYMMETRIC), ("antisymmetric", antisymmetric, ANTISYMMETRIC)]
    for name, given, kind in lists:
        numbers = np.asarray([] if given is None else given)
        if numbers.size and (numbers.ndim != 1 or numbers.dtype.kind not in "iu"):
            raise ValueError(f"{name}_edge_features must be a list of numbers of edge features, got {given!r:.80}")
        bad = [int(k) for k in numbers if not 0 <= k < len(kinds)]
        if bad:
            raise ValueError(f"{name}_edge_features names feature {bad[0]}, but edges have {len(kinds)} features")
        kinds[numbers.astype(int)] = kind
    both = set(symmetric if symmetric is not None else ()) & set(antisymmetric if antisymmetric is not None else ())
    if both:
        raise ValueError(f"edge feature {min(both)} cannot be both symmetric and antisymmetric; leave it in one list")
    return kinds


def common_table(labels: int, directed: bool, used: bool) -> FeatureMap:
    """The map of the table that all edges share."""
    if not used:
        return NoTable(labels, labels)
    return Table(labels, labels) if directed else SymmetricTable(labels)


def edge_map(pairs: Matrix | None, labels: int, kinds: np.ndarray) -> FeatureMap | None:
    """The map of edge features; ``TwoWays`` where not all of them have a direction."""
    if pairs is None:
        return None
    return TwoWays(pairs, labels, kinds) if kinds.any() else linear_map(pairs, (labels, labels))


def edge_weights(features: Stack, w: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """What the weights score: the common table, and a table for every edge feature."""
    labels = features.shapes[0][1]
    _, common, *rest = features.split(w)
    table = features.maps[1].scores(common, (np.empty((labels, labels)),))[0]
    if not rest or not rest[0].size:
        return table, None  # edges have no features, and perhaps a loss only
    edge = features.maps[2]
    return table, edge.weights(rest[0]) if isinstance(edge, TwoWays) else rest[0].reshape(-1, labels, labels)
