"""Linear chains: the feature map of sequences, their output space, and the weights as an estimator shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from m3n.estimators.inputs import Inputs
from m3n.estimators.matrices import Matrix, linear_map
from m3n.estimators.training import split_weights, stacked
from m3n.features import FeatureMap, NoFeatures, Observed, ObservedTable, Scaled, Stack, Table
from m3n.features.observed import observed_pairs, observed_transitions
from m3n.structures import Chain, Transitions

GROUPS = ("attributes", "transitions", "boundaries", "pairs")
MASKS = ("forbidden", "forbidden_start", "forbidden_end")  # of constraints


def chain_maps(
    inputs: Inputs, outputs: list[list[int]], labels: int, node: FeatureMap | None
) -> tuple[FeatureMap, FeatureMap, FeatureMap]:
    """The maps of attributes, transitions and pairs of neighbours.

    Without a map for the attributes, only pairs of attribute and label and transitions that occur get a weight.
    """
    lengths, pairs = inputs.lengths, inputs.pairs
    nothing = NoFeatures(int(lengths.sum()) - len(lengths), labels, labels)
    if node is not None:
        edge = nothing if pairs is None else linear_map(pairs, (labels, labels))
        return node, Table(labels, labels), edge
    gold = np.concatenate(outputs)
    node = Observed(inputs.matrix, observed_pairs(inputs.matrix, gold, labels))
    table = ObservedTable(observed_transitions(gold, lengths, labels))
    return node, table, nothing if pairs is None else _observed_edges(pairs, gold, lengths, labels)


def chain_stack(
    maps: tuple[FeatureMap, FeatureMap, FeatureMap], factors: Mapping[str, float], *, boundaries: bool, edges: bool
) -> Stack:
    """The feature map of chains: attributes, transitions, starts, ends, and if asked for pairs of neighbours."""
    node, table, edge = maps
    labels = node.shapes[0][1]
    ends = [Table(labels) if boundaries else ObservedTable(np.zeros(labels, bool)) for _ in range(2)]
    names = ("attributes", "transitions", "boundaries", "boundaries", "pairs")
    return stacked(zip((node, table, *ends, edge)[: 4 + edges], names, strict=False), factors)


def _observed_edges(pairs: Matrix, gold: np.ndarray, lengths: np.ndarray, labels: int) -> Observed:
    """Weights for attributes of pairs with the pairs of labels that occur."""
    inner = np.ones(len(gold), bool)
    inner[np.cumsum(lengths) - lengths] = False
    joint = gold[:-1][inner[1:]] * labels + gold[1:][inner[1:]]
    return Observed(pairs, observed_pairs(pairs, joint, labels * labels), (labels, labels))


def chain_weights(features: Stack, w: np.ndarray) -> dict[str, Any]:
    """The weights of a tagger by the names of its attributes; those of a kernel's map as they are."""
    pieces = split_weights(features, w)
    labels, pairs = len(pieces[2]), None
    if len(pieces) > 4 and pieces[4].size:
        pairs = _shown(features.maps[4], pieces[4], (labels, labels))
    return {
        "coef_": _shown(features.maps[0], pieces[0], (labels,)),
        "transitions_": pieces[1].reshape(labels, labels),
        "start_": pieces[2],
        "end_": pieces[3],
        "edge_coef_": pairs,
    }


def _shown(part: FeatureMap, w: np.ndarray, labels: tuple[int, ...]) -> Any:
    plain = part.map if isinstance(part, Scaled) else part
    if isinstance(plain, Observed):
        return plain.coefficients(w)
    return w.reshape(-1, *labels) if plain.euclidean else w


def chain_of(lengths: np.ndarray, labels: int, constraints: Transitions | None, *, edges: bool = False) -> Chain:
    """Sequences of labels that obey the constraints, if there are any."""
    masks = {name: getattr(constraints, name) for name in MASKS} if constraints else {}
    return Chain(lengths, labels, edges=edges, **masks)
