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

from m3n.packed import SERIAL, Threads
from m3n.structures.slack import search

Parts = tuple[np.ndarray, ...]
Selection = slice | np.ndarray | None  # which rows of an array belong to a selection; None: shared by all
Examples = slice | np.ndarray


class Structure(ABC):
    """A packed batch of output spaces.

    Attributes
    ----------
    oracles : frozenset of str
        The oracles it can answer exactly: ``"hard"`` (maximise), ``"soft"`` (marginalise), ``"support"`` (minimise over
        the outputs whose cliques all have mass; only as a compiled function of its ``space``).
    one_label_per_row : bool
        Whether every output has exactly one label in each row of the first array of theta, the one that ``labels_of``
        names, and ``hard`` takes scores of -inf; the search for slack rescaling then divides outputs by their labels.
    relaxed : bool
        Whether it has more outputs than there really are, as a relaxation has; certificates then say so.
    n : int
        Number of examples.
    shapes : tuple of tuple of int
        Shapes of the arrays of theta.
    """

    oracles: ClassVar[frozenset[str]] = frozenset({"hard", "soft"})
    one_label_per_row: ClassVar[bool] = False
    relaxed: ClassVar[bool] = False
    n: int
    shapes: tuple[tuple[int, ...], ...]

    @abstractmethod
    def hard(self, theta: Parts, threads: Threads = SERIAL) -> tuple[np.ndarray, np.ndarray]:
        """Max-oracle: best score of every example (n,) and the best labelling. ``theta`` is left alone."""

    @abstractmethod
    def soft(
        self, theta: Parts, mu: float, threads: Threads = SERIAL, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, Parts]:
        """Exp-oracle: mu log sum exp(score/mu) of every example (n,) and the marginals, written over ``theta``.

        With ``weights`` (n,) the marginals of example i count weights[i] times, the values do not.
        """

    def slack(
        self, theta: Parts, gold: np.ndarray, cost: Any, threads: Threads = SERIAL
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Max-oracle of slack rescaling: the largest loss times margin of every example, who attains it, its loss.

        That is max_y ell_i(y) (1 + s_i(y) - s_i(gold)), (n,), with ``theta`` the scores without the loss, ``gold`` the
        gold labelling, which is the answer where nothing is above 0, and ``cost`` an ``m3n.losses.Cost``. The default
        searches with ``hard``, see ``m3n.structures.slack``: exact, or given up.
        """
        return search(self, theta, gold, cost)

    def branches(self, one: np.ndarray, other: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Two sets that together have all outputs of the only example, the first one without ``one``, the second with.

        A set is told by the parts that it forbids: the number of an array of theta, and a mask of its parts. No set is
        empty: ``other`` is in the first. The default looks for a row with different labels; an empty list says that it
        cannot divide.
        """
        label, another = self.labels_of(one), self.labels_of(other)
        rows = np.flatnonzero(label != another)
        if rows.size == 0 or not self.one_label_per_row:
            return []
        without, only = np.zeros(self.shapes[0], bool), np.zeros(self.shapes[0], bool)
        without[rows[0], label[rows[0]]] = True
        only[rows[0]] = ~without[rows[0]]
        return [(0, without), (0, only)]

    def loss_units(self, cost: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """For a compiled ``slack``: a unit of every example's losses, and the largest in units; None: there is none."""
        return None

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
    def encode(self, labelling: np.ndarray, out: Parts | None = None, weights: np.ndarray | None = None) -> Parts:
        """The parts of a labelling as arrays of zeros and ones (counts where shared).

        With ``weights`` (n,) those of example i are weights[i] instead of one.
        """

    def score(self, theta: Parts, labelling: np.ndarray, threads: Threads = SERIAL) -> np.ndarray:
        """The score of a labelling, example by example, shape (n,).

        The default encodes every example by itself; a structure with many examples has a quicker way.
        """
        scores = np.empty(self.n)
        for i in range(self.n):
            alone, rows = self.select(np.array([i]))
            parts = alone.encode(labelling[self.rows_of_labelling(np.array([i]))])
            mine = (array if row is None else array[row] for array, row in zip(theta, rows, strict=True))
            scores[i] = sum(float(t[p != 0] @ p[p != 0]) for t, p in zip(mine, parts, strict=True))
        return scores

    def subtract(
        self, labelling: np.ndarray, parts: Parts, threads: Threads = SERIAL, weights: np.ndarray | None = None
    ) -> None:
        """parts -= the parts of a labelling, in place; weighted as in ``encode``."""
        encoded = self.encode(labelling) if weights is None else self.encode(labelling, weights=weights)
        for array, indicator in zip(parts, encoded, strict=True):
            array -= indicator

    @abstractmethod
    def select(self, examples: Examples) -> tuple[Structure, tuple[Selection, ...]]:
        """The structure of some examples only, and which rows of every array of theta are theirs."""

    @abstractmethod
    def enumerate(self, example: int) -> Iterator[np.ndarray]:
        """Every output of one example; for tests on tiny instances."""

    def rows_of_labelling(self, examples: Examples) -> Selection:
        """Which entries of a labelling belong to some examples (default: those of the first array of theta)."""
        return self.select(examples)[1][0]

    def labels_of(self, labelling: np.ndarray) -> np.ndarray:
        """The label of every row of the first array of theta, for label losses; the default is the labelling itself."""
        return labelling

    def positions(self) -> np.ndarray:
        """How many labels every example has to get right, (n,); the default counts rows of the first array of theta."""
        first = self.spans()[0]
        if first is None:
            raise ValueError(
                f"the first array of theta of {type(self).__name__} is shared by all examples, so they have no "
                "positions to weigh; take Hamming() without position_weight, or a loss of your own"
            )
        return np.diff(first)

    def row_weights(self, positions: np.ndarray | None = None) -> np.ndarray:
        """What a wrong label costs at every row of the first array of theta, from the weights of positions (ones)."""
        return np.ones(self.shapes[0][0]) if positions is None else positions

    def spans(self) -> tuple[np.ndarray | None, ...]:
        """For every array of theta the first row of each example, n + 1 numbers; None where it is shared by all.

        The default finds them through ``select``; a structure with many examples has a quicker way.
        """
        one = [self.select(np.array([i]))[1] for i in range(self.n)]
        return tuple(_span(rows, shape) for rows, shape in zip(zip(*one, strict=True), self.shapes, strict=True))

    def most_parts(self) -> np.ndarray:
        """A bound on the number of parts of an output of every example, shape (n,); the default is very careful."""
        own = [np.diff(span) if span is not None else np.ones(self.n, np.int64) for span in self.spans()]
        widths = [
            int(np.prod(shape[span is not None :])) for shape, span in zip(self.shapes, self.spans(), strict=True)
        ]
        return np.sum([number * width for number, width in zip(own, widths, strict=True)], axis=0)

    def local_parts(self, labelling: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The parts of every example's output and their numbers: arrays of int, (n, most) and (n,).

        A part is a position in the example's own theta, all of its arrays flattened one after another; parts come in
        ascending order, and one that counts twice comes twice.
        """
        listed = []
        for i in range(self.n):
            alone, _ = self.select(np.array([i]))
            encoded = alone.encode(labelling[self.rows_of_labelling(np.array([i]))])
            counts = np.concatenate([part.ravel() for part in encoded])
            used = np.flatnonzero(counts)
            listed.append(np.repeat(used, counts[used].astype(np.int64)))
        parts = np.zeros((self.n, int(self.most_parts().max())), np.int64)
        for row, numbers in zip(parts, listed, strict=True):
            row[: len(numbers)] = numbers
        return parts, np.array([len(numbers) for numbers in listed])

    def space(self) -> Any:
        """Plain arrays for the compiled kernels of block methods, see ``sweeps.visits``; None: there are none."""
        return None

    def empty(self) -> Parts:
        """Uninitialised arrays in the layout of theta."""
        return tuple(np.empty(shape) for shape in self.shapes)


class AddingStructure(Structure):
    """A structure that can add to the parts of a labelling in place; encoding and subtracting follow from that."""

    @abstractmethod
    def _add(self, labelling: np.ndarray, amounts: np.ndarray, parts: Parts, threads: Threads) -> None:
        """Add amounts (n,) to the parts of a labelling."""

    def encode(self, labelling: np.ndarray, out: Parts | None = None, weights: np.ndarray | None = None) -> Parts:
        out = out if out is not None else self.empty()
        for array in out:
            array[...] = 0.0
        self._add(labelling, self._weights(weights), out, SERIAL)
        return out

    def subtract(
        self, labelling: np.ndarray, parts: Parts, threads: Threads = SERIAL, weights: np.ndarray | None = None
    ) -> None:
        self._add(labelling, -self._weights(weights), parts, threads)

    def _weights(self, weights: np.ndarray | None) -> np.ndarray:
        return np.ones(self.n) if weights is None else weights


def _span(rows: Sequence[Selection], shape: tuple[int, ...]) -> np.ndarray | None:
    """The first rows of examples whose rows follow one another."""
    if rows[0] is None:
        return None
    numbers = [np.arange(shape[0])[r] for r in rows]
    if not np.array_equal(np.concatenate(numbers), np.arange(shape[0])):
        raise ValueError("the rows of an array of theta must follow one another, example by example")
    return np.cumsum([0, *map(len, numbers)])


def check_labels(values: np.ndarray, labels: int, where: str) -> np.ndarray:
    """Return label numbers as int64, or say which one is out of range."""
    values = np.asarray(values)
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise ValueError(f"{where}: labels must be a flat list of integers 0..{labels - 1}, got {values!r}")
    bad = np.flatnonzero((values < 0) | (values >= labels))
    if bad.size:
        raise ValueError(f"{where}, position {bad[0]}: label {values[bad[0]]} is not in 0..{labels - 1}")
    return values.astype(np.int64)
