"""A pass over training data: what it must offer wherever it is made, and how it is made on threads of this machine.

A pass answers questions about w for its examples. Everything in an answer is a sum over examples, divided by the number
of examples of the whole problem, so the answers of several passes over different examples simply add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from m3n.features.base import FeatureMap
from m3n.losses.base import Cost
from m3n.packed import Threads
from m3n.packed.memory import Scratch
from m3n.packed.ragged import batches
from m3n.structures.base import Examples, Parts, Structure

MOST_SCORES = 1 << 19  # of a part of the examples, 4 MB: with less, selecting them shows


@dataclass(frozen=True)
class Answer:
    """What an oracle says about a distribution over outputs (a point mass for the max-oracle).

    Attributes
    ----------
    value : float
        1/n sum_i of the maximum, or of mu log sum exp, of ``loss_scale * ell_i(y) - <w, psi_i(y)>``; with slack
        rescaling of the maximum of ``ell_i(y) (1 - <w, psi_i(y)>)``.
    vector : array (dim,)
        sum_iy alpha_i(y) psi_i(y); with slack rescaling sum_iy alpha_i(y) ell_i(y) psi_i(y).
    loss : float
        sum_iy alpha_i(y) ell_i(y).
    offset : float
        loss + T H(alpha), the part of D besides the square; equal to ``loss`` at temperature 0.
    """

    value: float
    vector: np.ndarray
    loss: float
    offset: float

    @classmethod
    def of_gibbs(cls, value: float, vector: np.ndarray, loss: float, *, heat: float, energy: float) -> Answer:
        """The answer of an exp-oracle: ``heat`` is T/mu, ``energy`` the expected ``loss_scale * ell - <w, psi>``."""
        return cls(value, vector, loss, loss + heat * (value - energy) if heat else loss)

    def __add__(self, other: Answer) -> Answer:
        """The answer for the examples of both."""
        return Answer(
            value=self.value + other.value,
            vector=self.vector + other.vector,
            loss=self.loss + other.loss,
            offset=self.offset + other.offset,
        )


class Pass(Protocol):
    """Oracles over some examples of a problem.

    Attributes
    ----------
    n : int
        Number of its examples.
    dim : int
        Number of weights.
    temperature : float
        The problem's T.
    """

    n: int
    dim: int
    temperature: float

    @property
    def oracles(self) -> frozenset[str]:
        """What it can answer: "hard", "soft" and so on, as ``Structure.oracles``."""

    def hard(self, w: np.ndarray, loss_scale: float = 1.0) -> Answer:
        """Max-oracle, summed up."""

    def soft(self, w: np.ndarray, mu: float, loss_scale: float = 1.0) -> Answer:
        """Exp-oracle, or the structure's own smoothed oracle, at temperature mu, summed up."""

    def value(self, w: np.ndarray) -> float:
        """1/n sum_i max_y { ell_i(y) - <w, psi_i(y)> } (or of the product), every example times its weight.

        At a positive temperature T log sum_y exp(./T) takes the place of the maximum.
        """

    def outputs(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What every example adds to the value, times n, and the best outputs as lists of parts.

        See ``Structure.local_parts``: (n,), (n, most) and (n,).
        """

    def over(self, examples: Examples) -> Pass:
        """The same over some of its examples, prepared for many calls."""

    def diameter(self) -> float:
        """Its share of the mean of log |Y_i|, or of the diameter of the structure's own prox."""

    def radius(self) -> float:
        """A bound on the largest |psi_i(y)|."""


@dataclass(eq=False)
class ThreadedPass:
    """One pass over some examples: scores, oracle, adjoint, in one buffer in the layout of theta.

    Gold needs no vector of its own. Its score under w is read off theta, and its parts are taken out of the marginals
    before the adjoint, which then gives sum alpha psi at once. For the max-oracle what remains are the parts in which
    gold and the answer differ. As gold's loss is 0, the constant of the loss cancels where its score is subtracted.
    """

    structure: Structure
    features: FeatureMap
    cost: Cost
    gold: np.ndarray  # packed
    weights: np.ndarray | None  # (n,) of the examples
    total: int  # examples of the whole problem
    temperature: float
    threads: Threads

    def __post_init__(self) -> None:
        self.n, self.dim = self.structure.n, self.features.dim
        self.weighing: dict[str, Any] = {} if self.weights is None else {"weights": self.weights}

    @cached_property
    def buffer(self) -> Parts:
        """Scores first, then marginals; made when a pass over all examples at once first needs it."""
        return self.structure.empty()

    @property
    def oracles(self) -> frozenset[str]:
        """Those of the structure."""
        return self.structure.oracles

    def over(self, examples: Examples, memory: Scratch | None = None) -> ThreadedPass:
        """The same over some examples, with a buffer of its own, or one that serves until the memory is used again."""
        structure, rows = self.structure.select(examples)
        part = replace(
            self, structure=structure, features=self.features.select(rows), cost=self.cost.select(rows, examples),
            gold=self.gold[self.structure.entries_of(examples)],
            weights=None if self.weights is None else self.weights[examples],
        )  # fmt: skip
        if memory is not None:
            part.buffer = memory.arrays(structure.shapes)
        return part

    def hard(self, w: np.ndarray, loss_scale: float = 1.0) -> Answer:
        """Max-oracle, summed up."""
        vector = np.zeros(self.dim)
        value, loss = self.add_hard(w, vector, loss_scale)
        return Answer(value, vector, loss, loss)

    def soft(self, w: np.ndarray, mu: float, loss_scale: float = 1.0) -> Answer:
        """Exp-oracle at temperature mu, summed up."""
        vector = np.zeros(self.dim)
        value, loss = self.add_soft(w, vector, mu, loss_scale)
        score = self.features.inner(w, vector) if self.temperature else 0.0
        return Answer.of_gibbs(value, vector, loss, heat=self.temperature / mu, energy=loss_scale * loss - score)

    def add_hard(self, w: np.ndarray, vector: np.ndarray, loss_scale: float = 1.0) -> tuple[float, float]:
        """Max-oracle: value and loss of its answer, whose vector is added to another one."""
        theta, gold = self._theta(w, loss_scale)
        values, outputs = self.structure.hard(theta, self.threads)
        parts = self.structure.encode(outputs, out=self.buffer, **self.weighing)
        return self._add(w, values, gold, parts, vector)

    def add_soft(self, w: np.ndarray, vector: np.ndarray, mu: float, loss_scale: float = 1.0) -> tuple[float, float]:
        """The same of the exp-oracle at temperature mu."""
        theta, gold = self._theta(w, loss_scale)
        values, marginals = self.structure.soft(theta, mu, self.threads, **self.weighing)
        return self._add(w, values, gold, marginals, vector)

    def outputs(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Margins and lists of parts of the max-oracle's outputs."""
        margins, outputs = self._best(w)
        return margins, *self.structure.local_parts(outputs)

    def value(self, w: np.ndarray) -> float:
        """What the max-oracle attains, or the exp-oracle at the temperature, summed up."""
        return float(self.margins(w).sum()) / self.total

    def margins(self, w: np.ndarray) -> np.ndarray:
        """The same example by example, times their weights.

        Without sums over the examples no buffer for all of them is needed: they come a part at a time.
        """
        cuts, memory = self._cuts(), Scratch()
        if not cuts:
            return self._values(w)
        return np.concatenate([self.over(np.arange(*cut), memory)._values(w) for cut in cuts])

    def _cuts(self) -> list[tuple[int, int]]:
        """Ranges of examples of which each has a small buffer; none if that saves nothing or costs copies."""
        light = self.structure.light and self.features.light
        if not light or "buffer" in vars(self) or sum(map(math.prod, self.structure.shapes)) <= MOST_SCORES:
            return []
        return batches(self.structure.layout.lengths.sum(axis=0), MOST_SCORES)

    def _values(self, w: np.ndarray) -> np.ndarray:
        if not self.temperature:
            return self._best(w)[0]
        theta, gold = self._theta(w, 1.0)
        values = self.structure.soft(theta, self.temperature, self.threads, **self.weighing)[0]
        _check_finite(values, w)
        return self._weighted(values - gold)

    def diameter(self) -> float:
        """The share of these examples in the mean diameter."""
        sizes = self.structure.diameter()
        return float((sizes if self.weights is None else self.weights * sizes).sum()) / self.total

    def radius(self) -> float:
        """A bound on the largest |psi_i(y)|."""
        return self.structure.radius(self.features.norms())

    def _best(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Margins and outputs of the max-oracle."""
        theta, gold = self._theta(w, 1.0)
        values, outputs = self.structure.hard(theta, self.threads)
        _check_finite(values, w)
        return self._weighted(values - gold), outputs

    def _theta(self, w: np.ndarray, loss_scale: float) -> tuple[Parts, np.ndarray]:
        """The scores of all parts, and of the gold outputs (n,)."""
        theta = self.features.scores(w, self.buffer, self.threads)
        self.cost.add_to(theta, loss_scale, self.threads)
        return theta, self.structure.score(theta, self.gold, self.threads)

    def _add(
        self, w: np.ndarray, values: np.ndarray, gold: np.ndarray, parts: Parts, vector: np.ndarray
    ) -> tuple[float, float]:
        _check_finite(values, w)
        loss, total = self.cost.expected(parts, self.threads, self.weights), self.total
        self.structure.subtract(self.gold, parts, self.threads, **self.weighing)
        self.features.add_adjoint(parts, -1 / total, vector, self.threads)
        return float(self._weighted(values - gold).sum()) / total, loss / total

    def _weighted(self, margins: np.ndarray) -> np.ndarray:
        return margins if self.weights is None else self.weights * margins


class SlackPass(ThreadedPass):
    """One pass of slack rescaling over some examples.

    Every example counts as often as its answer's loss says, times its own weight; that of gold's features is the same.
    """

    @property
    def oracles(self) -> frozenset[str]:
        """The max-oracle, if there is one."""
        return self.structure.oracles & {"hard"}

    def add_hard(self, w: np.ndarray, vector: np.ndarray, loss_scale: float = 1.0) -> tuple[float, float]:
        """Max-oracle: value and loss of its answer, whose vector is added to another one."""
        if loss_scale != 1.0:
            raise ValueError(f"slack rescaling has no other scale of the loss than 1, got {loss_scale=}")
        values, outputs, losses = self._products(w)
        parts = self.structure.encode(outputs, out=self.buffer, weights=losses)
        self.structure.subtract(self.gold, parts, self.threads, weights=losses)
        self.features.add_adjoint(parts, -1 / self.total, vector, self.threads)
        return float(values.sum()) / self.total, float(losses.sum()) / self.total

    def add_soft(self, w: np.ndarray, vector: np.ndarray, mu: float, loss_scale: float = 1.0) -> tuple[float, float]:
        """There is none."""
        raise TypeError(
            "slack rescaling has no exp-oracle: ell(y) multiplies the score of the whole output, so the Gibbs "
            "distribution does not factorise and has no marginals on cliques; use solvers of the max-oracle"
        )

    def _best(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._products(w)[:2]

    def _products(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values, outputs and losses of the max-oracle; values and losses times the weights."""
        theta = self.features.scores(w, self.buffer, self.threads)
        values, outputs, losses = self.structure.slack(theta, self.gold, self.cost, self.threads)
        _check_finite(values, w)
        return self._weighted(values), outputs, self._weighted(losses)


def _check_finite(values: np.ndarray, w: np.ndarray) -> None:
    if np.isfinite(values).all():
        return
    if not np.isfinite(w).all():
        raise FloatingPointError("the weights contain NaN or infinite numbers")
    i = int(np.flatnonzero(~np.isfinite(values))[0])
    forbidden = f"example {i} has no allowed output at all: check what the structure forbids"
    broken = f"the best score of example {i} is {values[i]}: check its features for NaN or infinite numbers"
    raise FloatingPointError(forbidden if values[i] == -np.inf else broken)
