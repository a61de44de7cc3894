"""What a feature map must offer.

phi is linear: the scores of all parts are ``theta = F w`` and the expected features of a distribution are ``F' m`` of
its marginals m. Solvers never look inside w: they form linear combinations and ask for ``inner``, so that a map may
choose its own coordinates (a kernel expansion, for example).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from m3n.backends import SERIAL, Threads
from m3n.structures.base import Parts, Rows


class FeatureMap(ABC):
    """A linear map and its adjoint: <scores(w), m> = <w, adjoint(m)> for all w and m.

    Attributes
    ----------
    dim : int
        Number of weights.
    shapes : tuple of tuple of int
        Shapes of the part arrays it fills; the structure's must agree.
    """

    dim: int
    shapes: tuple[tuple[int, ...], ...]

    @abstractmethod
    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        """Fill ``out`` with theta = F w and return it."""

    @abstractmethod
    def adjoint(self, parts: Parts, threads: Threads = SERIAL) -> np.ndarray:
        """The vector F' parts, shape (dim,)."""

    @abstractmethod
    def norms(self) -> Parts:
        """Feature norm of every part: shape (rows,) for arrays of rows, the table's shape for shared tables.

        Structures bound |psi| by them on the assumption that parts with different labels have features in coordinates
        of their own, |x (e_gold - e_y)| = sqrt(2) |x|. A map in which labels share weights must return sqrt(2) times
        more.
        """

    @abstractmethod
    def select(self, rows: tuple[Rows, ...]) -> FeatureMap:
        """The map restricted to some rows of its part arrays; None keeps a shared array."""

    def inner(self, u: np.ndarray, v: np.ndarray) -> float:
        """Inner product of two weight vectors."""
        return float(u @ v)
