"""The usual feature map of a graph: inputs of nodes, a table for all edges, inputs of edges."""

from __future__ import annotations

import numpy as np

from m3n.features.base import FeatureMap
from m3n.features.copies import Copies
from m3n.features.stack import Stack, Table
from m3n.structures import Graph, LoopyGraph


def graph_features(
    structure: Graph, node: FeatureMap, edge: FeatureMap | None = None, *, agreement: float = 0.01
) -> Stack:
    """Node features, a table of pairs of labels that all edges share, optional edge features.

    Parameters
    ----------
    structure : Tree, Graph or LoopyGraph
        The output spaces; their factors must be edges.
    node : FeatureMap
        Map with one row per node, for example ``Dense(X, labels)``.
    edge : FeatureMap, optional
        Map with one row per edge, for example ``Dense(Z, (labels, labels))``, for structures with ``tables=True``.
    agreement : float
        For a ``LoopyGraph``: how strongly multipliers are regularised, relative to the other weights. Small numbers
        bring the relaxed problem closer to the linear programming relaxation, and take more passes.
    """
    if not 0.0 < agreement < np.inf:
        raise ValueError(f"agreement must be a positive finite number, got {agreement}")
    if isinstance(structure, LoopyGraph):
        node = Copies(node, structure.owner, float(1.0 / np.sqrt(agreement)))
        edge = None if edge is None else edge.select((structure.edge_order,))
    return Stack(node, Table(structure.labels, structure.labels), *(() if edge is None else (edge,)))
