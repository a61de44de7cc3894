"""Sequences in shards as a source of examples: what a shard becomes is made where it is opened, and nowhere else.

What the weights are is settled by what is known of all shards (their manifest): labels, attributes, pairs that occur.
Every process that opens shards makes it once, from the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from m3n import losses
from m3n.estimators.chains import GROUPS, broken_rule, chain_of, chain_stack, named_constraints
from m3n.estimators.matrices import linear_map
from m3n.estimators.training import resolve_strengths
from m3n.features import FeatureMap, NoFeatures, Observed, ObservedTable, Scaled, Sparse, Stack, Table
from m3n.problem.sources import Data, Source
from m3n.shards import Shard, Shards
from m3n.shards.labels import Transitions as Places
from m3n.structures import Transitions

HELD = 1.2  # bytes in memory for every byte of a shard, with rows arranged


@dataclass(frozen=True)
class Wishes:
    """What an estimator of sequences says about them, all of which is plain.

    Attributes
    ----------
    temperature : float
        Of the objective.
    rescale : str
        As in ``Problem``.
    loss : Loss
        With label numbers for names.
    constraints : Transitions or None
        In the order of the classes.
    observed_only, boundaries : bool
        As in ``SequenceTagger``.
    strengths : mapping or None
        As in ``SequenceTagger``.
    """

    temperature: float
    rescale: str
    loss: losses.Loss
    constraints: Transitions | None
    observed_only: bool
    boundaries: bool
    strengths: Mapping[str, float] | None


class SequenceShards(Source):
    """The training problem of a tagger on shards.

    Parameters
    ----------
    shards : Shards
        The data.
    wishes : Wishes
        What is made of them.
    """

    name = "Chain"
    oracles = frozenset({"hard", "soft", "support"})

    def __init__(self, shards: Shards, wishes: Wishes):
        self.shards, self.wishes = shards, wishes
        self.sizes, self.held = shards.sequences, HELD * shards.bytes
        self.work = (shards.entries + shards.positions * len(shards.classes)).astype(np.float64)
        self.weight_sum, self.dim = shards.total_weight, self.features.dim
        self.temperature, self.rescale = wishes.temperature, wishes.rescale

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("features", "_maps")}

    @cached_property
    def features(self) -> Stack:
        """The feature map of no sequences: what its weights are called."""
        edges = self._edge_map(_no_rows(False, self.shards.pair_width or 0), 0) if self._edges else None
        return self._stack(self._node_map(_no_rows(self.shards.kind == "dense", self.shards.width)), edges)

    @property
    def node(self) -> FeatureMap | None:
        """The map of attributes, without rows; None where only pairs that occur have weights."""
        return None if self.wishes.observed_only else _plain(self.features.maps[0])

    def open(self, shard: int) -> Data:
        """The sequences of a shard."""
        own = self.shards.open(shard)
        structure = chain_of(own.lengths, self._labels, self.wishes.constraints, edges=self._edges)
        pairs = len(own.labels) - len(own.lengths)
        edge = self._edge_map(own.pairs, pairs) if self._edges else None
        gold = own.labels.astype(np.int64)
        cost = self.wishes.loss.cost(structure, gold).checked(structure, gold)
        return Data(structure, self._stack(self._node_map(own.matrix), edge), cost, gold, self._weights(own))

    def parts(self) -> Mapping[str, str]:
        """What tells these data from others."""
        return {"shards": self.shards.digest}

    @property
    def _labels(self) -> int:
        return len(self.shards.classes)

    @property
    def _edges(self) -> bool:
        return self.shards.pair_width is not None or self.wishes.loss.needs_edges

    def _weights(self, own: Shard) -> np.ndarray | None:
        return None if own.weights is None else own.weights * (self.n / self.weight_sum)

    def _stack(self, node: FeatureMap, edge: FeatureMap | None) -> Stack:
        table = (
            ObservedTable(self.shards.transitions) if self.wishes.observed_only else Table(self._labels, self._labels)
        )
        nothing = NoFeatures(0, self._labels, self._labels)
        factors = resolve_strengths(self.wishes.strengths, GROUPS)
        maps = node, table, nothing if edge is None else edge
        return chain_stack(maps, factors, boundaries=self.wishes.boundaries, edges=self._edges)

    def _node_map(self, matrix: Any) -> FeatureMap:
        if not self.wishes.observed_only:
            return linear_map(matrix, self._labels)
        return self._maps[0].with_rows(matrix)

    def _edge_map(self, pairs: Any, count: int) -> FeatureMap:
        shape = self._labels, self._labels
        if pairs is None or self.shards.pair_width is None:
            return NoFeatures(count, *shape)
        return self._maps[1].with_rows(pairs) if self.wishes.observed_only else Sparse(pairs, shape)

    @cached_property
    def _maps(self) -> tuple[Observed, ...]:
        """The maps of pairs that occur, without rows: of attributes, and of attributes of pairs."""
        observed, edges, shape = self.shards.observed, self.shards.observed_edges, (self._labels, self._labels)
        assert observed is not None  # dense inputs are refused beforehand
        node = Observed(_no_rows(False, self.shards.width), observed)
        return (node,) if edges is None else (node, Observed(_no_rows(False, edges.shape[0]), edges, shape))


def _plain(part: FeatureMap) -> FeatureMap:
    """A map without the strength of its regularisation."""
    return part.map if isinstance(part, Scaled) else part


def _no_rows(dense: bool, width: int) -> Any:
    return np.empty((0, width)) if dense else scipy.sparse.csr_array((0, width))


def constraints_of(constraints: str | Transitions | None, shards: Shards) -> Transitions | None:
    """Constraints for the labels of shards, after checking that all sequences obey them.

    Parameters
    ----------
    constraints : str, Transitions or None
        As in ``SequenceTagger``.
    shards : Shards
        The data.
    """
    names, found = shards.classes.tolist(), shards.first_places
    if constraints is None:
        return None
    if isinstance(constraints, str) and constraints == "observed":
        return Transitions(tuple(names), ~shards.transitions, ~shards.starts, ~shards.ends)

    def place_of(k: int) -> tuple[int, int]:
        places = np.concatenate([found.pairs[:, k], found.starts[k : k + 1]])
        sequence, position = min(map(tuple, places[places[:, 0] >= 0].tolist()))
        return sequence, position

    rules = named_constraints(constraints, names, place_of)
    broken = min(_broken(rules, found), default=None)
    if broken is not None:
        place, before, label, first = broken
        raise broken_rule(constraints, names, place, (None if before < 0 else before, label, first))
    return rules


def _broken(rules: Transitions, found: Places) -> Iterator[tuple[tuple[int, int], int, int, bool]]:
    """Where labels stand that the rules forbid, which one is before them (-1: it does not matter), whether first."""
    for before, label in np.argwhere(rules.forbidden & (found.pairs[..., 0] >= 0)).tolist():
        yield tuple(found.pairs[before, label].tolist()), before, label, False
    for table, mask, first in ((found.starts, rules.forbidden_start, True), (found.ends, rules.forbidden_end, False)):
        for label in np.flatnonzero(mask & (table[:, 0] >= 0)).tolist():
            yield tuple(table[label].tolist()), -1, label, first
