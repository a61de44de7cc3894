"""The cost of every part against a fixed gold output: a linear function of the indicator of y, kept compactly.

    ell_i(y) = sum over rows r of  weight[r] * table[gold[r], y_r]   +   sum over arrays k of  <parts[k], encode(y)[k]>

The first sum is all that most losses need, and no array of the size of theta is written for it. The second is for costs
that are not of this form, of pairs of labels for example.

Gold must cost nothing and no part may have a negative cost: then ell_i(y_i) = 0 <= ell_i(y) for all y, which the bounds
of the whole library rest on.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from m3n.compiled.primitives import rows as kernels
from m3n.packed import SERIAL, Threads
from m3n.structures.base import Parts, Selection, Structure


class Cost:
    """Costs of labels, ``weight[r] * table[gold[r], label]`` at row r of the first array of theta, and of single parts.

    Parameters
    ----------
    gold : array of int (rows,)
        Gold label of every row.
    weight : array (rows,)
        Weight of every row.
    table : array (labels, labels)
        ``table[g, y]``, the cost of label y where g is right; zero on the diagonal, never negative.
    parts : tuple of (array or None)
        Costs of single parts on top, in the layout of theta; None, or the end of the tuple, where there are none. Zero
        at the parts of gold, never negative.
    """

    def __init__(
        self, gold: np.ndarray, weight: np.ndarray, table: np.ndarray, parts: tuple[np.ndarray | None, ...] = ()
    ):
        self.gold = np.asarray(gold, dtype=np.int64)
        self.weight = _proper("weight", weight)
        self.table = _proper("table", table)
        if np.diagonal(self.table).any():
            g = int(np.flatnonzero(np.diagonal(self.table))[0])
            raise ValueError(
                "a label loss must be 0 for the right label: the table's diagonal is not zero, "
                f"table[{g}, {g}] is {self.table[g, g]}; set it to 0"
            )
        written = tuple(None if part is None else _proper(f"parts[{k}]", part) for k, part in enumerate(parts))
        self.parts = written if any(part is not None for part in written) else ()

    @classmethod
    def of_parts(cls, structure: Structure, gold: np.ndarray, costs: Mapping[int, np.ndarray]) -> Cost:
        """Costs of single parts only.

        Parameters
        ----------
        structure : Structure
            The output spaces.
        gold : array of int
            The gold labelling.
        costs : mapping from int to array
            Number of an array of theta, and the costs of its parts in its shape; -1 is the last array.
        """
        parts: list[np.ndarray | None] = [None] * len(structure.shapes)
        for k, array in costs.items():
            parts[k] = array
        labels, gold = structure.shapes[0][-1], structure.labels_of(gold)
        return cls(gold, np.zeros(len(gold)), np.zeros((labels, labels)), tuple(parts))

    def checked(self, structure: Structure, gold: np.ndarray) -> Cost:
        """Itself, if it has the shapes of the structure and gold costs nothing; else an error says what is wrong."""
        if self.table.any():
            rows, labels = structure.shapes[0]
            _same_shape("gold", self.gold, (rows,))
            right = structure.labels_of(gold)
            if (self.gold != right).any():
                r = int(np.flatnonzero(self.gold != right)[0])
                raise ValueError(
                    f"a loss is 0 for the right label: at row {r} that is {right[r]}, but the Cost was made for "
                    f"{self.gold[r]}; make it with structure.labels_of of the gold labelling that Loss.cost is given"
                )
            _same_shape("weight", self.weight, (rows,))
            _same_shape("table", self.table, (labels, labels))
        if self.parts:
            self._check_parts(structure, gold)
        return self

    def add_to(self, theta: Parts, scale: float = 1.0, threads: Threads = SERIAL) -> None:
        """theta += scale * cost, in place."""

        def lane(low: int, high: int) -> None:
            kernels.add_cost(theta[0], self.gold, self.weight, self.table, scale, low, high)

        if scale == 0.0:
            return
        if self.table.any():
            threads.run(lane, threads.rows(len(self.gold)))
        for array, part in self._pairs(theta):
            _add(array, part, scale, threads)

    def expected(self, marginals: Parts, threads: Threads = SERIAL) -> float:
        """<cost, marginals>: the expected loss, summed over examples."""

        def lane(low: int, high: int) -> float:
            return kernels.expected_cost(marginals[0], self.gold, self.weight, self.table, low, high)

        total = float(sum(threads.run(lane, threads.rows(len(self.gold))))) if self.table.any() else 0.0
        return total + sum(_product(array, part, threads) for array, part in self._pairs(marginals))

    def select(self, rows: Selection, further: tuple[Selection, ...] = ()) -> Cost:
        """The costs of some rows only: of the first array of theta, and of the ``further`` ones."""
        chosen = (rows, *further)
        if len(self.parts) > len(chosen):
            raise ValueError(f"costs of {len(self.parts)} arrays of theta need the rows of each, got {len(chosen)}")
        parts = (None if part is None else part[r] for part, r in zip(self.parts, chosen, strict=False))
        return Cost(self.gold[rows], self.weight[rows], self.table, tuple(parts))

    def worst(self) -> np.ndarray:
        """The most that every row of the first array can cost (rows,); that of further arrays is spread evenly."""
        most = self.weight * self.table.max(axis=1)[self.gold]
        for k, part in enumerate(self.parts):
            if part is not None and part.size:
                largest = part.reshape(len(part), -1).max(axis=1)
                most = most + (largest if k == 0 else largest.sum() / len(most))
        return most

    def scaled(self, factor: float) -> Cost:
        """The costs times a number."""
        parts = (None if part is None else factor * part for part in self.parts)
        return Cost(self.gold, factor * self.weight, self.table, tuple(parts))

    def __add__(self, other: Cost) -> Cost:
        if not np.array_equal(self.gold, other.gold):
            raise ValueError("costs of different gold outputs cannot be added; make both with the same gold labelling")
        parts = _sum_of_parts(self.parts, other.parts)
        if not other.table.any():
            return Cost(self.gold, self.weight, self.table, parts)
        if not self.table.any():
            return Cost(self.gold, other.weight, other.table, parts)
        if np.array_equal(self.weight, other.weight):
            return Cost(self.gold, self.weight, self.table + other.table, parts)
        if np.array_equal(self.table, other.table):
            return Cost(self.gold, self.weight + other.weight, self.table, parts)
        written = other.weight[:, None] * other.table[other.gold]
        return Cost(self.gold, self.weight, self.table, _sum_of_parts(parts, (written,)))

    def _pairs(self, arrays: Parts) -> list[tuple[np.ndarray, np.ndarray]]:
        """Arrays in the layout of theta next to the costs of single parts."""
        return [(array, part) for array, part in zip(arrays, self.parts, strict=False) if part is not None]

    def _check_parts(self, structure: Structure, gold: np.ndarray) -> None:
        if len(self.parts) > len(structure.shapes):
            raise ValueError(f"costs of {len(self.parts)} arrays, but theta has {len(structure.shapes)}")
        theta = tuple(np.zeros(shape) for shape in structure.shapes)
        for k, (span, part) in enumerate(zip(structure.spans(), self.parts, strict=False)):
            if part is not None:
                _same_shape(f"parts[{k}]", part, structure.shapes[k])
                theta[k][...] = part
                if span is None:
                    raise ValueError(
                        f"array {k} of theta is shared by all examples, so its parts cannot have costs of their own; "
                        "use an array with rows for every example, such as the edges of Chain(edges=True)"
                    )
        ell = structure.score(theta, gold)
        if ell.any():
            i = int(np.flatnonzero(ell)[0])
            raise ValueError(
                f"example {i}: the loss of the right output is {ell[i]}, but must be 0; "
                "let the parts of the right output cost nothing"
            )


def _proper(name: str, values: np.ndarray) -> np.ndarray:
    """The numbers as kernels want them, if all are finite and none is negative."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    for good, rule in ((np.isfinite(values), "be finite"), (values >= 0.0, "not be negative")):
        if not good.all():
            at = tuple(int(k) for k in np.argwhere(~good)[0])
            place = f"{name}[{', '.join(map(str, at))}]"
            raise ValueError(f"a label loss must {rule}: {place} is {values[at]}; replace it by a cost of 0 or more")
    return values


def _same_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"the costs do not fit the structure: {name} must have shape {shape}, got {array.shape}")


def _add(array: np.ndarray, part: np.ndarray, scale: float, threads: Threads) -> None:
    def lane(low: int, high: int) -> None:
        array[low:high] += scale * part[low:high]

    threads.run(lane, threads.rows(len(part)))


def _product(array: np.ndarray, part: np.ndarray, threads: Threads) -> float:
    def lane(low: int, high: int) -> float:
        return float(np.sum(array[low:high] * part[low:high]))

    return float(sum(threads.run(lane, threads.rows(len(part)))))


def _sum_of_parts(one: tuple[np.ndarray | None, ...], two: tuple[np.ndarray | None, ...]) -> tuple:
    longer, shorter = (one, two) if len(one) >= len(two) else (two, one)
    pairs = zip(longer, shorter + (None,) * (len(longer) - len(shorter)), strict=True)
    return tuple(a if b is None else b if a is None else a + b for a, b in pairs)
