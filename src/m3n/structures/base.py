"""What an output space must offer.

A structure describes n finite output sets Y_1..Y_n at once (a *packed batch*). It works in score space: ``theta`` is a
tuple of arrays, one per kind of part, and the score of an output is the sum of the scores of its parts. Marginals and
indicators of outputs come in the same tuple of arrays, so ``<theta, encode(y)>`` is the total score of y. An array may
hold one row per part of every example (node scores) or be shared by all examples (a transition table); the marginals of
a shared array are summed over everything that uses it.

An output of the whole batch is kept compactly as a *labelling*, one integer array; ``pack`` makes it from what the user
wrote, ``unpack`` turns it back, ``encode`` gives its parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from m3n.backends import SERIAL, Threads

Parts = tuple[np.ndarray, ...]
Rows = slice | np.ndarray | None  # which rows of an array belong to a selection; None: shared by all
Examples = slice | np.ndarray


class Structure(ABC):
    """A packed batch of output spaces.

    Attributes
    ----------
    oracles : frozenset of str
        The oracles it can answer exactly: ``"hard"`` (maximise), ``"soft"`` (marginalise).
    n : int
        Number of examples.
    shapes : tuple of tuple of int
        Shapes of the arrays of theta.
    """

    oracles: ClassVar[frozenset[str]] = frozenset({"hard", "soft"})
    n: int
    shapes: tuple[tuple[int, ...], ...]

    @abstractmethod
    def hard(self, theta: Parts, threads: Threads = SERIAL) -> tuple[np.ndarray, np.ndarray]:
        """Max-oracle: best score of every example (n,) and the best labelling. ``theta`` is left alone."""

    @abstractmethod
    def soft(self, theta: Parts, mu: float, threads: Threads = SERIAL) -> tuple[np.ndarray, Parts]:
        """Exp-oracle: mu log sum exp(score/mu) of every example (n,) and the marginals, written over ``theta``."""

    @abstractmethod
    def log_size(self) -> np.ndarray:
        """log |Y_i| of every example, shape (n,)."""

    @abstractmethod
    def radius(self, norms: Parts) -> float:
        """Bound max |phi(x_i, y_i) - phi(x_i, y)| from the feature norms of the parts."""

    @abstractmethod
    def pack(self, outputs: Sequence[Any] | np.ndarray) -> np.ndarray:
        """Check outputs given as label numbers and join them to one labelling."""

    @abstractmethod
    def unpack(self, labelling: np.ndarray) -> list[Any]:
        """Cut a labelling into one output per example."""

    @abstractmethod
    def encode(self, labelling: np.ndarray, out: Parts | None = None) -> Parts:
        """The parts of a labelling as arrays of zeros and ones (counts where shared)."""

    @abstractmethod
    def select(self, examples: Examples) -> tuple[Structure, tuple[Rows, ...]]:
        """The structure of some examples only, and which rows of every array of theta are theirs."""

    @abstractmethod
    def enumerate(self, example: int) -> Iterator[np.ndarray]:
        """Every output of one example; for tests on tiny instances."""

    def rows_of_labelling(self, examples: Examples) -> Rows:
        """Which entries of a labelling belong to some examples (default: those of the first array of theta)."""
        return self.select(examples)[1][0]

    def empty(self) -> Parts:
        """Uninitialised arrays in the layout of theta."""
        return tuple(np.empty(shape) for shape in self.shapes)


def check_labels(values: np.ndarray, labels: int, where: str) -> np.ndarray:
    """Return label numbers as int64, or say which one is out of range."""
    values = np.asarray(values)
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise ValueError(f"{where}: labels must be a flat list of integers 0..{labels - 1}, got {values!r}")
    bad = np.flatnonzero((values < 0) | (values >= labels))
    if bad.size:
        raise ValueError(f"{where}, position {bad[0]}: label {values[bad[0]]} is not in 0..{labels - 1}")
    return values.astype(np.int64)
