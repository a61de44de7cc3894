"""One pass over some examples: scores, oracle, adjoint, for margin and for slack rescaling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from m3n.features.base import FeatureMap
from m3n.losses.base import Cost
from m3n.packed import Threads
from m3n.structures.base import Parts, Structure

if TYPE_CHECKING:
    from m3n.problem import Problem


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


class Batch:
    """One pass over some examples: scores, oracle, adjoint, in one buffer in the layout of theta.

    Gold needs no vector of its own. Its score under w is read off theta (its cost is zero), and its parts are taken out
    of the marginals before the adjoint, which then gives sum alpha psi at once. For the max-oracle what remains are the
    positions at which gold and the answer differ.
    """

    def __init__(
        self,
        structure: Structure,
        features: FeatureMap,
        cost: Cost,
        gold: np.ndarray,
        threads: Threads,
        weights: np.ndarray | None,
    ):
        self.structure = structure
        self.features = features
        self.cost = cost
        self.gold = gold
        self.threads = threads
        self.weights = weights
        self.weighing: dict[str, Any] = {} if weights is None else {"weights": weights}
        self.buffer = structure.empty()

    def hard(self, w: np.ndarray, loss_scale: float, problem: Problem) -> Answer:
        theta, gold = self._theta(w, loss_scale)
        values, labelling = self.structure.hard(theta, self.threads)
        parts = self.structure.encode(labelling, out=self.buffer, **self.weighing)
        value, vector, loss = self._answer(w, values, gold, parts, problem)
        return Answer(value, vector, loss, loss)

    def soft(self, w: np.ndarray, mu: float, loss_scale: float, problem: Problem) -> Answer:
        theta, gold = self._theta(w, loss_scale)
        values, marginals = self.structure.soft(theta, mu, self.threads, **self.weighing)
        value, vector, loss = self._answer(w, values, gold, marginals, problem)
        entropy = (value - loss_scale * loss + problem.inner(w, vector)) / mu if problem.temperature else 0.0
        return Answer(value, vector, loss, loss + problem.temperature * entropy)

    def outputs(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        margins, labelling = self._margins(w)
        return margins, *self.structure.local_parts(labelling)

    def margin(self, w: np.ndarray) -> float:
        """Sum over the examples of max_y { ell_i(y) - <w, psi_i(y)> }, without the outputs that attain it."""
        return float(self._margins(w)[0].sum())

    def _margins(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta, gold = self._theta(w, 1.0)
        values, labelling = self.structure.hard(theta, self.threads)
        _check_finite(values, w)
        return self._weighted(values - gold), labelling

    def _theta(self, w: np.ndarray, loss_scale: float) -> tuple[Parts, np.ndarray]:
        """The scores of all parts, and of the gold outputs (n,)."""
        theta = self.features.scores(w, self.buffer, self.threads)
        self.cost.add_to(theta, loss_scale, self.threads)
        return theta, self.structure.score(theta, self.gold, self.threads)

    def _answer(
        self, w: np.ndarray, values: np.ndarray, gold: np.ndarray, parts: Parts, problem: Problem
    ) -> tuple[float, np.ndarray, float]:
        _check_finite(values, w)
        loss = self.cost.expected(parts, self.threads)
        self.structure.subtract(self.gold, parts, self.threads, **self.weighing)
        vector = np.zeros(problem.dim)
        self.features.add_adjoint(parts, -1 / problem.n, vector, self.threads)
        return float(self._weighted(values - gold).sum()) / problem.n, vector, loss / problem.n

    def _weighted(self, margins: np.ndarray) -> np.ndarray:
        return margins if self.weights is None else self.weights * margins


class SlackBatch(Batch):
    """One pass of slack rescaling over some examples, in one buffer in the layout of theta.

    Every example counts as often as its answer's loss says, times its own weight; that of gold's features is the same.
    """

    def hard(self, w: np.ndarray, loss_scale: float, problem: Problem) -> Answer:
        values, labelling, losses = self._products(w)
        parts = self.structure.encode(labelling, out=self.buffer, weights=losses)
        self.structure.subtract(self.gold, parts, self.threads, weights=losses)
        vector = np.zeros(problem.dim)
        self.features.add_adjoint(parts, -1 / problem.n, vector, self.threads)
        loss = float(losses.sum()) / problem.n
        return Answer(float(values.sum()) / problem.n, vector, loss, loss)

    def outputs(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        values, labelling, _ = self._products(w)
        return values, *self.structure.local_parts(labelling)

    def margin(self, w: np.ndarray) -> float:
        """Sum over the examples of max_y ell_i(y) (1 - <w, psi_i(y)>), without the outputs that attain it."""
        return float(self._products(w)[0].sum())

    def _products(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values, outputs and losses of the max-oracle; values and losses times the weights."""
        theta = self.features.scores(w, self.buffer, self.threads)
        values, labelling, losses = self.structure.slack(theta, self.gold, self.cost, self.threads)
        _check_finite(values, w)
        return self._weighted(values), labelling, self._weighted(losses)


def _check_finite(values: np.ndarray, w: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise FloatingPointError(_explain(values, w))


def _explain(values: np.ndarray, w: np.ndarray) -> str:
    if not np.isfinite(w).all():
        return "the weights contain NaN or infinite numbers"
    example = int(np.flatnonzero(~np.isfinite(values))[0])
    if values[example] == -np.inf:
        return f"example {example} has no allowed output at all: check what the structure forbids"
    return f"the best score of example {example} is {values[example]}: check its features for NaN or infinite numbers"
