"""From a user's words and examples to the numbers of a training problem: objective, loss, strengths, data.

objective           temperature   loss           what is minimised besides the regulariser, per example
"margin"            0             added          max_y { ell(y) - <w, psi(y)> }
"slack"             0             multiplied     max_y ell(y) (1 - <w, psi(y)>)
"crf"               1             none           log sum_y exp{ -<w, psi(y)> }
"softmax_margin"    1             added          log sum_y exp{ ell(y) - <w, psi(y)> }
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from m3n import losses
from m3n.estimators.going_on import Old
from m3n.estimators.matrices import stored
from m3n.features import FeatureMap, Scaled, Stack
from m3n.problem import Problem


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


def weighted_loss(loss: str | losses.Loss, class_weight: Any) -> losses.Loss:
    """The loss, with the weights of classes that an estimator was given beside it."""
    found = resolve_loss(loss)
    if class_weight is None:
        return found
    if isinstance(class_weight, str) and class_weight != "balanced":
        raise ValueError(f"class_weight must be a mapping, 'balanced' or None, got {class_weight!r}")
    if not isinstance(found, (losses.Hamming, losses.NormalizedHamming)) or found.class_weight is not None:
        raise ValueError(
            f"class_weight is for the losses 'hamming' and 'normalized_hamming' without weights of their own, not for "
            f"loss={loss!r:.80}; say in the loss itself what errors cost"
        )
    return replace(found, class_weight=class_weight)


def check_no_loss(objective: str, loss: str | losses.Loss, usual: str | losses.Loss, class_weight: Any) -> None:
    """Refuse what an objective without a loss would ignore: any loss but the usual one, and weights of classes."""
    users = ", ".join(f"{name!r}" for name, known in OBJECTIVES.items() if known.has_loss)
    if loss is not usual and loss != usual:
        raise ValueError(
            f"objective={objective!r} has no loss, loss={loss!r:.80} would be ignored; leave it out, or take an "
            f"objective that uses it: {users}"
        )
    if class_weight is not None:
        raise ValueError(
            f"objective={objective!r} has no loss that class_weight could weigh; take an objective with one ({users}; "
            "'softmax_margin' is a CRF with a loss), or weigh whole examples by sample_weight"
        )


def resolve_lam(lam: float | None, C: float | None, count: float) -> float | None:
    """lam, or 1 / (C count); None leaves the default to ``Problem``."""
    if C is None:
        return lam
    if lam is not None:
        raise ValueError(f"give either lam={lam!r} or C={C!r}, which is 1 / (lam n), not both")
    if not 0.0 < C < np.inf:
        raise ValueError(f"C must be a positive finite number, got {C}")
    return 1.0 / (C * count)


def resolve_strengths(strengths: Mapping[str, float] | None, groups: tuple[str, ...]) -> dict[str, float]:
    """The factor of every group's weights: a strength of s is a factor of 1/sqrt(s), see ``m3n.features.Scaled``."""
    given = dict(strengths or {})
    for name, strength in given.items():
        if name not in groups:
            raise ValueError(f"strengths names the group {name!r}; there are {groups}")
        if not 0.0 < strength < np.inf:
            raise ValueError(f"strengths[{name!r}] must be a positive finite number, got {strength}")
    return {name: 1.0 / float(np.sqrt(given.get(name, 1.0))) for name in groups}


def stacked(groups: Iterable[tuple[FeatureMap, str]], factors: Mapping[str, float]) -> Stack:
    """The maps of all groups, each with the strength of its regularisation."""
    return Stack(
        *(part if factors[name] == 1.0 or not part.dim else Scaled(part, factors[name]) for part, name in groups)
    )


def split_weights(features: Stack, w: np.ndarray) -> list[np.ndarray]:
    """The weights of every map, as they are without the strengths."""
    return [
        part.weights(piece) if isinstance(part, Scaled) else piece
        for part, piece in zip(features.maps, features.split(w), strict=True)
    ]


@dataclass(frozen=True)
class Examples:
    """Inputs with their outputs, as numbers.

    Attributes
    ----------
    inputs : object
        What the reader of an estimator makes of X, examples one after another: ``matrix`` with the attributes of all
        positions, ``only`` for some of the examples, and ``arrays`` for all that tells them from others.
    classes : array (labels,)
        The labels.
    outputs : list or array
        One output per example, as the structure takes them, with numbers for labels.
    weights : array (examples,) or None
        How often every example counts.
    learnt : mapping
        Further attributes of a model that reading has settled.
    given : sequence or None
        X as it was given, where an estimator needs that again.
    usable : array of bool (examples,) or None
        Which of them say something; None: all.
    old : Old or None
        An earlier model to go on from.
    allowed : list of arrays of bool (positions, labels), or None
        Which labels are possible, where some are not known; None: the outputs are right.
    """

    inputs: Any
    classes: np.ndarray
    outputs: Any
    weights: np.ndarray | None = None
    learnt: Mapping[str, Any] = field(default_factory=dict)
    given: Sequence[Any] | None = None
    usable: np.ndarray | None = None
    old: Old | None = None
    allowed: list[np.ndarray] | None = None

    @property
    def count(self) -> float:
        """The number of examples, or the sum of their weights."""
        return len(self.outputs) if self.weights is None else float(self.weights.sum())

    def weighted(self, sample_weight: Any, example: str) -> Examples:
        """The examples with their weights, without those of weight 0 and those that say nothing."""
        weights = read_weights(sample_weight, len(self.outputs), example)
        used = np.ones(len(self.outputs), bool) if self.usable is None else self.usable
        used = used if weights is None else used & (weights > 0.0)
        if not used.any():
            raise ValueError(f"there is nothing to train on: no {example} that is not empty has a weight")
        examples = replace(self, weights=weights, usable=None)
        return examples if used.all() else examples.only(np.flatnonzero(used))

    def only(self, chosen: np.ndarray) -> Examples:
        """Some of the examples, in the given order."""
        outputs = self.outputs
        outputs = outputs[chosen] if isinstance(outputs, np.ndarray) else [outputs[i] for i in chosen]
        weights = None if self.weights is None else self.weights[chosen]
        given = None if self.given is None else [self.given[i] for i in chosen]
        allowed = None if self.allowed is None else [self.allowed[i] for i in chosen]
        own = replace(self, inputs=self.inputs.only(chosen), outputs=outputs, weights=weights)
        return replace(own, given=given, allowed=allowed)

    def fingerprint(self) -> str:
        """The same for the same data."""
        digest = hashlib.blake2b(digest_size=16)
        outputs = [np.asarray(output).ravel() for output in self.outputs]
        weights = np.ones(1) if self.weights is None else self.weights
        inputs = [array for matrix in self.inputs.arrays() for array in stored(matrix)]
        for array in (*inputs, np.concatenate(outputs), weights):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Setup:
    """What makes a training problem of examples, and what a model keeps of it besides weights."""

    structure: Any  # the output space
    features: Stack  # the maps of all groups of weights, attributes first
    learnt: dict[str, Any] = field(default_factory=dict)  # attributes of the model
    weights: np.ndarray | None = None  # weights of the structure's examples, if these are not those that were given
    scale: float = 1.0  # the objective is so many times that of the problem: where a structure takes examples apart
    outputs: Any = None  # those of the structure's examples, if these are not the ones that were read
    loss: losses.Loss | None = None  # what wrong outputs cost, if the examples settle that


@dataclass(frozen=True)
class Prepared:
    """What ``fit`` has made of examples before it minimises, and needs afterwards to make a model of weights."""

    problem: Problem
    setup: Setup
    kernel: Any  # its settings; None for linear models
    node: Any  # the map of attributes; None where ``setup`` has made one of the pairs that occur
    transformer: Any  # of an approximation, fitted
    learnt: dict[str, Any]  # attributes of the model that do not depend on weights


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
        raise ValueError("sample_weight is zero everywhere: there is nothing to train on")
    return weights
