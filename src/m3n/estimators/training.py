"""From an estimator's words to the numbers of a training problem: objective, loss, strengths and weights.

objective           temperature   loss           what is minimised besides the regulariser, per example
"margin"            0             added          max_y { ell(y) - <w, psi(y)> }
"slack"             0             multiplied     max_y ell(y) (1 - <w, psi(y)>)
"crf"               1             none           log sum_y exp{ -<w, psi(y)> }
"softmax_margin"    1             added          log sum_y exp{ ell(y) - <w, psi(y)> }
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from m3n import losses
from m3n.estimators.inputs import Matrix, chosen_rows, linear_map
from m3n.features import FeatureMap, NoFeatures, Observed, ObservedTable, Scaled, Stack, Table
from m3n.features.observed import observed_pairs, observed_transitions
from m3n.structures import Chain, Transitions

GROUPS = ("attributes", "transitions", "boundaries", "pairs")


@dataclass(frozen=True)
class Objective:
    """What a word for an objective means to ``Problem``."""

    temperature: float
    has_loss: bool
    rescale: str = "margin"


OBJECTIVES = {
    "margin": Objective(0.0, has_loss=True),
    "slack": Objective(0.0, has_loss=True, rescale="slack"),
    "crf": Objective(1.0, has_loss=False),
    "softmax_margin": Objective(1.0, has_loss=True),
}


def resolve_objective(name: str) -> Objective:
    """The objective of that name."""
    if name not in OBJECTIVES:
        raise ValueError(f"objective={name!r} is not available; choose one of {tuple(OBJECTIVES)}")
    return OBJECTIVES[name]


def resolve_loss(loss: str | losses.Loss) -> losses.Loss:
    """Turn a loss's name into an object."""
    if isinstance(loss, losses.Loss):
        return loss
    if loss not in losses.BY_NAME:
        raise ValueError(f"unknown loss {loss!r}; choose a Loss object or one of {sorted(losses.BY_NAME)}")
    return losses.BY_NAME[loss]()


def resolve_lam(lam: float | None, C: float | None, count: float) -> float | None:
    """lam, or 1 / (C count); None leaves the default to ``Problem``."""
    if C is None:
        return lam
    if lam is not None:
        raise ValueError(f"give either lam={lam!r} or C={C!r}, which is 1 / (lam n), not both")
    if not 0.0 < C < np.inf:
        raise ValueError(f"C must be a positive finite number, got {C}")
    return 1.0 / (C * count)


def resolve_strengths(strengths: Mapping[str, float] | None, groups: tuple[str, ...] = GROUPS) -> dict[str, float]:
    """The factor of every group's weights: a strength of s is a factor of 1/sqrt(s), see ``m3n.features.Scaled``."""
    given = dict(strengths or {})
    for name, strength in given.items():
        if name not in groups:
            raise ValueError(f"strengths names the group {name!r}; there are {groups}")
        if not 0.0 < strength < np.inf:
            raise ValueError(f"strengths[{name!r}] must be a positive finite number, got {strength}")
    return {name: 1.0 / float(np.sqrt(given.get(name, 1.0))) for name in groups}


def read_weights(sample_weight: Any, count: int, what: str = "sequence") -> np.ndarray | None:
    """One number per example, not negative; None if all examples count alike."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (count,):
        raise ValueError(f"sample_weight must have one number per {what}, shape ({count},), got {weights.shape}")
    bad = np.flatnonzero(~((weights >= 0.0) & np.isfinite(weights)))
    if bad.size:
        raise ValueError(f"sample_weight[{bad[0]}] is {weights[bad[0]]}: weights must be finite and not negative")
    if not weights.any():
        raise ValueError("sample_weight is 0 everywhere: there is nothing to train on")
    return weights


@dataclass(frozen=True)
class Data:
    """Labelled sequences as one matrix with a row per position, and perhaps one with a row per pair of neighbours."""

    matrix: Matrix
    lengths: np.ndarray
    labels: list[list[int]]
    weights: np.ndarray | None
    pairs: Matrix | None = None

    @property
    def count(self) -> float:
        """The number of sequences, or the sum of their weights."""
        return len(self.lengths) if self.weights is None else float(self.weights.sum())

    def without_zeros(self) -> Data:
        """Sequences of weight 0 left out."""
        if self.weights is None or self.weights.all():
            return self
        return self.only(np.flatnonzero(self.weights))

    def only(self, sequences: np.ndarray) -> Data:
        """Some of the sequences, in the given order."""
        rows = chosen_rows(self.lengths, sequences)
        weights = None if self.weights is None else self.weights[sequences]
        pairs = None if self.pairs is None else self.pairs[chosen_rows(self.lengths - 1, sequences)]
        labels = [self.labels[i] for i in sequences]
        return Data(self.matrix[rows], self.lengths[sequences], labels, weights, pairs)

    def fingerprint(self) -> str:
        """The same for the same data."""
        digest = hashlib.blake2b(digest_size=16)
        matrices = [matrix for matrix in (self.matrix, self.pairs) if matrix is not None]
        arrays = [array for matrix in matrices for array in _arrays(matrix)]
        weights = np.ones(1) if self.weights is None else self.weights
        for array in (*arrays, self.lengths, np.concatenate([np.asarray(y) for y in self.labels]), weights):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def _arrays(matrix: Matrix) -> tuple[np.ndarray, ...]:
    """All numbers of a matrix, dense or sparse."""
    return (matrix.data, matrix.indices, matrix.indptr) if scipy.sparse.issparse(matrix) else (matrix,)


def training_features(
    data: Data, labels: int, node: FeatureMap | None, factors: Mapping[str, float], *, boundaries: bool, edges: bool
) -> Stack:
    """The feature map of training data: attributes, transitions, starts, ends, and if asked for pairs of neighbours.

    Without a map for the attributes, only pairs of attribute and label and transitions that occur get a weight.
    """
    table: FeatureMap = Table(labels, labels)
    edge: FeatureMap = NoFeatures(int(data.lengths.sum()) - len(data.lengths), labels, labels)
    if data.pairs is not None:
        edge = linear_map(data.pairs, (labels, labels))
    if node is None:
        gold = np.concatenate(data.labels)
        node = Observed(data.matrix, observed_pairs(data.matrix, gold, labels))
        table = ObservedTable(observed_transitions(gold, data.lengths, labels))
        if data.pairs is not None:
            edge = _observed_edges(data.pairs, gold, data.lengths, labels)
    ends = [Table(labels) if boundaries else ObservedTable(np.zeros(labels, bool)) for _ in range(2)]
    maps = (node, table, *ends, edge)[: 4 + edges]
    groups = zip(maps, ("attributes", "transitions", "boundaries", "boundaries", "pairs"), strict=False)
    return Stack(
        *(part if factors[name] == 1.0 or not part.dim else Scaled(part, factors[name]) for part, name in groups)
    )


def _observed_edges(pairs: Matrix, gold: np.ndarray, lengths: np.ndarray, labels: int) -> Observed:
    """Weights for attributes of pairs with the pairs of labels that occur."""
    inner = np.ones(len(gold), bool)
    inner[np.cumsum(lengths) - lengths] = False
    joint = gold[:-1][inner[1:]] * labels + gold[1:][inner[1:]]
    return Observed(pairs, observed_pairs(pairs, joint, labels * labels), (labels, labels))


def plain(part: FeatureMap) -> FeatureMap:
    """The map of a group itself, without the strength of its regularisation."""
    return part.map if isinstance(part, Scaled) else part


class Weights(NamedTuple):
    """The weights of a tagger, as an estimator shows them; those of kernels as they are."""

    attributes: Any
    transitions: np.ndarray
    start: np.ndarray
    end: np.ndarray
    pairs: Any  # None without attributes of pairs


def split_weights(features: Stack, w: np.ndarray) -> Weights:
    """The weights of all groups."""
    pieces = [
        part.weights(piece) if isinstance(part, Scaled) else piece
        for part, piece in zip(features.maps, features.split(w), strict=True)
    ]
    labels, pairs = len(pieces[2]), None
    if len(pieces) > 4 and pieces[4].size:
        pairs = _shown(plain(features.maps[4]), pieces[4], (labels, labels))
    coef = _shown(plain(features.maps[0]), pieces[0], (labels,))
    return Weights(coef, pieces[1].reshape(labels, labels), pieces[2], pieces[3], pairs)


def _shown(part: FeatureMap, w: np.ndarray, labels: tuple[int, ...]) -> Any:
    if isinstance(part, Observed):
        return part.coefficients(w)
    return w.reshape(-1, *labels) if part.euclidean else w


def chain_of(lengths: np.ndarray, labels: int, constraints: Transitions | None, *, edges: bool = False) -> Chain:
    """Sequences of labels that obey the constraints, if there are any."""
    names = ("forbidden", "forbidden_start", "forbidden_end")
    masks = {name: getattr(constraints, name) for name in names} if constraints else {}
    return Chain(lengths, labels, edges=edges, **masks)
