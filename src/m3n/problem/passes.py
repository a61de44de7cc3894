"""What a pass over training data must offer, wherever it is made: on threads of this machine, or by workers elsewhere.

A pass answers questions about w for its examples. Everything in an answer is a sum over examples, divided by the number
of examples of the whole problem, so the answers of several passes over different examples simply add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from m3n.structures.base import Examples


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

    def margins(self, w: np.ndarray) -> np.ndarray:
        """max_y { ell_i(y) - <w, psi_i(y)> } (or the product) of every example (n,), times its weight."""

    def outputs(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The margins, and the best outputs as lists of parts, see ``Structure.local_parts``: (n, most) and (n,)."""

    def over(self, examples: Examples) -> Pass:
        """The same over some of its examples, prepared for many calls."""

    def diameter(self) -> float:
        """Its share of the mean of log |Y_i|, or of the diameter of the structure's own prox."""

    def radius(self) -> float:
        """A bound on the largest |psi_i(y)|."""
