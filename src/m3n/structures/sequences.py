"""What structures of label sequences share: lengths, what is forbidden, numbers of outputs, bounds of feature norms.

Their theta begins with (node (tokens, labels), transition (labels, labels), start (labels,), end (labels,)).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from m3n.packed.ragged import mask, sums
from m3n.structures.base import Examples, Parts, Selection, Structure
from m3n.structures.labels import LabelStructure, Words


class Forbidden(NamedTuple):
    """Masks of what never occurs."""

    pairs: np.ndarray  # (labels, labels): label j after label i
    start: np.ndarray  # (labels,)
    end: np.ndarray  # (labels,)

    @classmethod
    def checked(cls, labels: int, **masks: np.ndarray | None) -> Forbidden:
        """Masks that may be missing, by their names as arguments; they must have the right shapes."""
        shapes = (labels, labels), (labels,), (labels,)
        return cls(*(mask(given, shape, name) for (name, given), shape in zip(masks.items(), shapes, strict=True)))

    @property
    def arguments(self) -> dict[str, Any]:
        """The masks by their names as arguments."""
        return {"forbidden": self.pairs, "forbidden_start": self.start, "forbidden_end": self.end}

    @property
    def nothing(self) -> bool:
        return not any(mask.any() for mask in self)

    def applied(self, tables: Parts) -> Parts:
        """New transition, start and end scores, with -inf where they are forbidden."""
        return tuple(np.where(mask, -np.inf, table) for mask, table in zip(self, tables, strict=True))

    def penalties(self) -> Parts:
        """0, or -inf where it is forbidden."""
        return self.applied((np.zeros(()),) * 3)

    def allows(self, labels: np.ndarray) -> bool:
        return not (self.pairs[labels[:-1], labels[1:]].any() or self.start[labels[0]] or self.end[labels[-1]])


class Sequences(Structure):
    """Sequences of any lengths, packed one after another.

    Attributes
    ----------
    lengths : array of int (n,)
    offsets : array of int (n + 1,)
        The first position of every sequence, and the number of all.
    labels : int
    """

    lengths: np.ndarray
    offsets: np.ndarray
    labels: int

    def _measure(self, lengths: Sequence[int] | np.ndarray, labels: int, needs: str = " and one label") -> None:
        """Check and keep the lengths; ``needs`` ends the message that says what a structure must have."""
        lengths = np.asarray(lengths, dtype=np.int64)
        if lengths.ndim != 1 or lengths.size == 0 or labels < 1:
            raise ValueError(f"{type(self).__name__} needs at least one sequence{needs}")
        if lengths.min() < 1:
            raise ValueError(f"sequence {int(lengths.argmin())} is empty; leave empty sequences out")
        self.n, self.lengths, self.labels = lengths.size, lengths, labels
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])

    @abstractmethod
    def _alike(self, lengths: np.ndarray) -> Structure:
        """The same structure of other lengths."""

    def select(self, examples: Examples) -> tuple[Structure, tuple[Selection, ...]]:
        return self._alike(self.lengths[examples]), self.rows_of(examples)

    def log_size(self) -> np.ndarray:  # by the exp-oracle, once for every length
        lengths, where = np.unique(self.lengths, return_inverse=True)
        alone = self._alike(lengths)
        return alone.soft(tuple(np.zeros(shape) for shape in alone.shapes), 1.0)[0][where]

    def _squares(self, norms: Parts) -> np.ndarray:
        """Bounds of squared differences in the features of two outputs, halved, (n,); segments and edges left out.

        |sum_t x_t (e_gold - e_y)| <= sqrt(2) sum_t |x_t|; counts of starts, ends and transitions differ by at most
        sqrt(2) times their number. Equality when all tokens look alike, gold is constant and y another constant.
        """
        squares = sums(norms[0], self.offsets[:-1], self.lengths) ** 2
        for table, number in zip(norms[1:4], (self.lengths - 1, 1, 1), strict=True):
            squares += (number * table.max()) ** 2
        return squares


class LabelSequences(Sequences, LabelStructure):
    """Sequences whose outputs are one label per position."""

    words: ClassVar[Words] = Words()

    def pack(self, outputs: Sequence[Any] | np.ndarray) -> np.ndarray:
        packed = super().pack(outputs)
        self._check_allowed(packed)
        return packed

    @abstractmethod
    def _check_allowed(self, labelling: np.ndarray) -> None:
        """Say which sequence has labels that the structure forbids, if one has."""
