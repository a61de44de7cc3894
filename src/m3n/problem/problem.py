"""The training problem: data, an output space, a feature map and a loss, and the objective that they make.

The formulas are in ``m3n.problem.objective``; this class puts together what its oracles need on this machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from m3n.features.base import FeatureMap
from m3n.losses import Hamming, Loss, NoLoss
from m3n.packed import Threads
from m3n.problem.blocks import Blocks
from m3n.problem.objective import Objective
from m3n.problem.threaded import SlackPass, ThreadedPass, Training
from m3n.structures.base import Structure


class Problem(Objective):
    """Training data, an output space, a feature map, a loss and the strength of regularisation.

    Parameters
    ----------
    structure : Structure
        The output spaces of the n examples.
    features : FeatureMap
        The map from weights to part scores; its part arrays must have the structure's shapes.
    y : sequence
        Gold outputs as label numbers, one per example.
    loss : Loss
        Label loss; the default counts wrong labels at temperature 0 and is no loss at all above.
    lam : float or None
        Weight of the regulariser lam/2 |w|^2; None means 1/n, or 1/(sum of the sample weights). It may be 0 if ``l1``
        is not.
    sample_weight : array or None
        How often every example counts, one positive number each; None: once.
    temperature : float
        0 for a max-margin network; 1 for a conditional random field, or for softmax-margin if a loss is given.
    rescale : {"margin", "slack"}
        Whether the loss is added to the margin that an output violates, or multiplies it (at temperature 0 only).
    n_jobs : int or None
        Threads of a pass; None takes every core.
    l1 : float
        Weight of the penalty l1 |w|_1, which makes weights exactly zero; ``OWLQN`` minimises it, for CRFs.

    Attributes
    ----------
    hard_calls, soft_calls : int
        Oracle calls so far, counted in examples.
    """

    def __init__(
        self,
        structure: Structure,
        features: FeatureMap,
        y: Sequence[Any] | np.ndarray,
        *,
        loss: Loss | None = None,
        lam: float | None = None,
        sample_weight: Sequence[float] | np.ndarray | None = None,
        temperature: float = 0.0,
        rescale: str = "margin",
        n_jobs: int | None = None,
        l1: float = 0.0,
    ):
        if features.shapes != structure.shapes:
            raise ValueError(
                f"the feature map fills part arrays of shapes {features.shapes}, "
                f"but {type(structure).__name__} has {structure.shapes}"
            )
        if not 0.0 <= temperature < np.inf:
            raise ValueError(f"temperature must be 0 or a positive finite number, got {temperature}")
        self.structure = structure
        self.features = features
        self._begin(structure.n, features.dim, float(temperature), Threads(n_jobs))
        count, self.weights = _weights(sample_weight, self.n)
        self._set_strength(1.0 / count if lam is None else lam, l1)
        self.rescale = _check_rescale(rescale, self.temperature)
        self.name, self.relaxed = type(structure).__name__, structure.relaxed
        self.gold = structure.pack(y)
        loss = loss or (NoLoss() if self.temperature else Hamming())
        self.cost = loss.cost(structure, self.gold).checked(structure, self.gold)

    def _set_strength(self, lam: float, l1: float) -> None:
        super()._set_strength(lam, l1)
        if self.l1 and not self.features.euclidean:
            raise TypeError(
                f"{type(self.features).__name__} has an inner product of its own: an l1 penalty on its coefficients "
                "would depend on how it writes them; use l1=0"
            )

    def inner(self, u: np.ndarray, v: np.ndarray) -> float:
        """Inner product of two weight vectors, the feature map's."""
        return self.features.inner(u, v)

    @property
    def whole(self) -> ThreadedPass:
        """The pass over all examples, on threads."""
        return self._threaded

    @cached_property
    def _threaded(self) -> ThreadedPass:
        data = Training(self.structure, self.features, self.cost, self.gold, self.weights, self.n, self.temperature)
        return (SlackPass if self.rescale == "slack" else ThreadedPass)(data, self.threads)

    @cached_property
    def blocks(self) -> Blocks:
        """The problem example by example, for compiled block methods."""
        return Blocks(self.structure, self.features, self.cost, self.gold, self.weights, slack=self.rescale == "slack")

    def visit(self, sweep: Any, *arguments: Any, asks: str = "hard", hard: int = 0, soft: int = 0) -> Any:
        """Run compiled code that visits examples one by one.

        ``asks`` names the oracle that it calls, if any; ``hard`` and ``soft`` say how often, if that is known before.
        """
        self.count(hard, soft)
        return self.blocks.run(sweep, *arguments, asks=asks)


def _check_rescale(rescale: str, temperature: float) -> str:
    if rescale not in ("margin", "slack"):
        raise ValueError(f"rescale must be 'margin' or 'slack', got {rescale!r}")
    if rescale == "slack" and temperature:
        raise ValueError(
            f"slack rescaling needs temperature 0, got {temperature:g}: ell(y) multiplies the score of the whole "
            "output, so sums over outputs do not factorise"
        )
    return rescale


def _weights(given: Sequence[float] | np.ndarray | None, n: int) -> tuple[float, np.ndarray | None]:
    """The sum of the sample weights, and the weights scaled to a mean of one; None if all are equal."""
    if given is None:
        return n, None
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have one number per example, shape ({n},), got {weights.shape}")
    bad = np.flatnonzero(~((weights > 0) & np.isfinite(weights)))
    if bad.size:
        raise ValueError(
            f"sample_weight[{bad[0]}] is {weights[bad[0]]}: weights must be positive and finite; "
            "leave out examples that are not to count"
        )
    total = float(weights.sum())
    return total, None if (weights == weights[0]).all() else weights * (n / total)
