"""Labels of nodes as users write and read them, and what is known about them before a prediction.

Labels come as lists, as arrays in the shape of a picture, or by node of a networkx graph. Answers have the form of
their graph: an array in its shape for a picture of ``grid_graph``, a dictionary by node for a networkx graph, and a
list in the order of the nodes for a tuple.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from m3n.estimators.graph_inputs import is_networkx
from m3n.estimators.grids import GridGraph


def node_labels(y: Any, X: Sequence[Any]) -> list[Any]:
    """Labels of every graph as flat lists in the order of its nodes; dictionaries and pictures are brought into it."""
    if len(y) != len(X):
        raise ValueError(f"X has {len(X)} graphs but y has {len(y)}")
    return [_flat(labels, example, i, "y") for i, (labels, example) in enumerate(zip(y, X, strict=True))]


def labels_like(example: Any, labels: np.ndarray) -> Any:
    """Labels of nodes in the form of their graph.

    Parameters
    ----------
    example : graph
        As ``fit`` takes it.
    labels : array (nodes,)
        Labels in the order of the nodes.
    """
    if is_networkx(example):
        return dict(zip(example.nodes, labels.tolist(), strict=True))
    return labels.reshape(example.shape) if isinstance(example, GridGraph) else labels.tolist()


def rows_like(example: Any, rows: np.ndarray) -> Any:
    """Rows of numbers of nodes in the form of their graph; an array (nodes, columns) for a tuple.

    Parameters
    ----------
    example : graph
        As ``fit`` takes it.
    rows : array (nodes, columns)
        One row per node.
    """
    if is_networkx(example):
        return dict(zip(example.nodes, rows, strict=True))
    return rows.reshape(*example.shape, -1) if isinstance(example, GridGraph) else rows


def node_mask(fixed: Any, allowed: Any, X: Sequence[Any], counts: np.ndarray, classes: np.ndarray) -> np.ndarray | None:
    """Which labels every node may have (nodes, labels), of all graphs; None if nothing is known.

    Parameters
    ----------
    fixed : sequence or None
        For every graph None, or a label or None per node.
    allowed : sequence or None
        For every graph None, or a collection of labels or None per node.
    X : sequence of graphs
        The graphs.
    counts : array of int (graphs,)
        Their numbers of nodes.
    classes : array (labels,)
        The labels.
    """
    if fixed is None and allowed is None:
        return None
    number = {label: k for k, label in enumerate(classes.tolist())}
    mask = np.ones((int(counts.sum()), len(number)), bool)
    for name, given in (("fixed", fixed), ("allowed", allowed)):
        for row, labels, where in _known(given, X, counts, name):
            own = [labels] if name == "fixed" else labels
            mask[row] &= np.isin(np.arange(len(number)), [_number(label, number, where) for label in own])
    return mask


def pair_mask(forbidden: Any, classes: np.ndarray, directed: bool) -> np.ndarray | None:
    """Which pairs of labels may stand along an edge (labels, labels); None if all of them may.

    Parameters
    ----------
    forbidden : collection of pairs or None
        Pairs of labels that may not; in either order where edges have no direction.
    classes : array (labels,)
        The labels.
    directed : bool
        Whether edges have a direction.
    """
    if forbidden is None:
        return None
    number = {label: k for k, label in enumerate(classes.tolist())}
    mask = np.ones((len(number), len(number)), bool)
    for pair in forbidden:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"forbidden must be pairs of labels along an edge, got {pair!r:.80}")
        first, second = (_number(label, number, "forbidden") for label in pair)
        mask[first, second] = False
        mask[second, first] &= directed
    return mask


def _known(given: Any, X: Sequence[Any], counts: np.ndarray, name: str) -> Iterable[tuple[int, Any, str]]:
    """The nodes of which something is known: row, what, and where that was said."""
    if given is None:
        return
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must have an entry per graph, None or one entry per node, got {given!r:.60}")
    entries = list(given)
    if len(entries) != len(X):
        raise ValueError(f"X has {len(X)} graphs but {name} has {len(entries)}")
    for i, first in enumerate(np.cumsum(counts) - counts):
        if entries[i] is None:
            continue
        flat = _flat(entries[i], X[i], i, name)
        if len(flat) != counts[i]:
            raise ValueError(f"graph {i} has {counts[i]} nodes in X but {len(flat)} in {name}")
        for v, labels in enumerate(flat):
            where = f"graph {i}, node {v}: {name}"
            if labels is None:
                continue
            if name == "allowed" and (isinstance(labels, str) or not isinstance(labels, Collection)):
                raise TypeError(f"{where} must be a collection of labels, or None for all, got {labels!r:.60}")
            yield int(first) + v, labels, where


def _flat(labels: Any, example: Any, i: int, name: str) -> list[Any]:
    """What is said about nodes in their order. Of labels in y none may be missing; elsewhere that means: nothing."""
    if isinstance(labels, Mapping):
        if not is_networkx(example):
            raise TypeError(f"graph {i}: labels by node need a networkx graph; give a list of labels")
        unknown = [node for node in labels if node not in example]
        missing = [node for node in example.nodes if node not in labels]
        if missing and name == "y":
            raise ValueError(f"graph {i}: node {missing[0]!r} has no label in y")
        if unknown and name != "y":
            raise ValueError(f"graph {i}: {name} names a node {unknown[0]!r}, which the graph does not have")
        return [labels.get(node) for node in example.nodes]
    return labels.ravel().tolist() if isinstance(labels, np.ndarray) else list(labels)


def _number(label: Any, number: Mapping[Any, int], where: str) -> int:
    if not isinstance(label, str | int | float | np.generic) or label not in number:
        raise ValueError(f"{where}: the model does not know the label {label!r:.60}; it knows {list(number)!r:.300}")
    return number[label]
