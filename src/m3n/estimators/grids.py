"""Pictures as graphs: pixels are nodes, row by row, and neighbours are joined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np


class GridGraph(tuple[Any, ...]):
    """The graph of a picture: a tuple (node features, edges) or (node features, edges, edge features) with a shape.

    Parameters
    ----------
    parts : tuple
        The arrays.
    shape : tuple of int
        Height and width of the picture.
    directed : bool
        Whether edge features tell directions apart, so that it matters which end of an edge comes first.

    Attributes
    ----------
    shape : tuple of int
        Height and width: what ``GraphLabeler`` predicts has this shape.
    directed : bool
        As it was given.
    """

    shape: tuple[int, int]
    directed: bool

    def __new__(cls, parts: tuple[Any, ...], shape: tuple[int, int], directed: bool = True) -> Self:
        graph = super().__new__(cls, parts)
        graph.shape, graph.directed = shape, directed
        return graph

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self), self.shape, self.directed


def grid_graph(
    features: np.ndarray,
    *,
    diagonals: bool = False,
    edge_features: Callable[..., np.ndarray] | None = None,
    directions: bool = True,
) -> GridGraph:
    """A picture as a graph: pixels are nodes, row by row, and neighbours are joined.

    Parameters
    ----------
    features : array (height, width, attributes)
        Features of every pixel; an array (height, width) is one attribute.
    diagonals : bool
        Whether pixels are also joined with their diagonal neighbours.
    edge_features : callable, optional
        Further features of edges: a function of the features (edges, attributes) of both ends that returns an array
        (edges, more).
    directions : bool
        Whether every direction (across, down, the diagonals) has scores of its own. If not, all edges are alike, and
        those without ``edge_features`` have no features.

    Returns
    -------
    GridGraph
        A tuple of node features (pixels, attributes), edges (count, 2) and edge features: which direction an edge has,
        times one and times what ``edge_features`` returns. Without directions only what ``edge_features`` returns.
    """
    picture = np.asarray(features, dtype=np.float64)
    picture = picture[..., None] if picture.ndim == 2 else picture
    if picture.ndim != 3:
        raise ValueError(f"features must be an array (height, width, attributes), got shape {picture.shape}")
    height, width, attributes = picture.shape
    ends = _neighbours(np.arange(height * width).reshape(height, width), diagonals)
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ends])
    direction = np.repeat(np.eye(len(ends)), [a.size for a, _ in ends], axis=0)
    nodes = picture.reshape(-1, attributes)
    parts: tuple[np.ndarray, ...] = (nodes, edges, direction) if directions else (nodes, edges)
    if edge_features is not None:
        more = _more(edge_features, nodes, edges)
        every = np.einsum("ed,ea->eda", direction, more).reshape(len(edges), -1)
        parts = nodes, edges, np.hstack([direction, every]) if directions else more
    return GridGraph(parts, (height, width), directions)


def _neighbours(number: np.ndarray, diagonals: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Both ends of the edges of every direction."""
    ends = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:])]
    return [*ends, (number[:-1, :-1], number[1:, 1:]), (number[:-1, 1:], number[1:, :-1])] if diagonals else ends


def _more(edge_features: Callable[..., np.ndarray], nodes: np.ndarray, edges: np.ndarray) -> np.ndarray:
    more = np.asarray(edge_features(nodes[edges[:, 0]], nodes[edges[:, 1]]), dtype=np.float64)
    if more.ndim != 2 or len(more) != len(edges):
        raise ValueError(f"edge_features must return an array ({len(edges)}, attributes), got shape {more.shape}")
    return more
