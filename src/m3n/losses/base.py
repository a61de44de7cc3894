"""What a label loss must offer: against fixed gold outputs it is a constant and costs of parts, kept compactly.

    ell_i(y) = constant_i + sum over rows r of  weight[r] * table[gold[r], y_r]  +  sum over arrays k of  <parts_k, y_k>

The first sum is all that losses of labels need, and no array of the size of theta is written for it. The second is for
all others. A part of gold may have a negative cost that the constant makes up for: then y pays where it *lacks* that
part. So 2 per missed link and 1 per spurious one are costs of -2 for the links of gold and 1 for all others, and a
constant of twice the number of gold's links.

Gold must cost nothing and no output less: ell_i(y_i) = 0 <= ell_i(y) for all y, which the bounds of the whole library
rest on. Where all costs are 0 or more that is plain to see; else one call of the max-oracle finds the least loss.

A ``Loss`` makes that function, a ``Cost``, which adds itself to scores in place and evaluates itself on marginals.
Losses may be added and multiplied by a number: ``Hamming() + 0.5 * EdgeHamming()``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce, wraps
from itertools import zip_longest
from operator import add
from typing import Any

import numpy as np

from m3n.compiled.maps.costs import add_to_rows, expected_of_rows
from m3n.packed import SERIAL, Threads
from m3n.structures.base import Examples, Parts, Selection, Structure

ROUNDING = 1e-9  # relative to the largest cost: sums of costs are exact to 1e-12 or so


class Loss(ABC):
    """A recipe for the cost of labellings against gold.

    A loss always speaks of original outputs. Of a relaxation such as ``LoopyGraph``, in which a node has several
    copies, ``cost`` is given the graphs without copies, and what it says is then shared out among the copies. That is
    so for the ``cost`` of every subclass: no loss has to know about them.
    """

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        if "cost" in vars(cls):
            setattr(cls, "cost", _of_originals(cls.cost))  # noqa: B010 (mypy: assigning to a method)

    @abstractmethod
    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        """The cost function of a packed batch with gold labelling ``gold``."""

    @property
    def needs_edges(self) -> bool:
        """Whether pairs of neighbouring labels have costs: a chain then needs ``edges=True``."""
        return False

    def bind(self, labels: Sequence[Any]) -> Loss:
        """The same loss with label numbers in place of names.

        Parameters
        ----------
        labels : sequence
            The name of every label, in the order of their numbers.
        """
        del labels  # a loss without names has nothing to replace
        return self

    def counted(self, counts: np.ndarray) -> Loss:
        """The same loss with what depends on all examples settled, for examples that come a part at a time.

        Parameters
        ----------
        counts : array of int (labels,)
            How often every label is right.
        """
        del counts
        return self

    def __add__(self, other: Loss) -> Loss:
        return Sum((self, other), (1.0, 1.0)) if isinstance(other, Loss) else NotImplemented

    def __mul__(self, factor: float) -> Loss:
        return Sum((self,), (factor,))

    __rmul__ = __mul__


def _of_originals(cost: Callable[[Any, Structure, np.ndarray], Cost]) -> Callable[[Any, Structure, np.ndarray], Cost]:
    """A ``cost`` that is asked about outputs without copies, whatever structure it is given."""

    @wraps(cost)
    def shared_out(self: Any, structure: Structure, gold: np.ndarray) -> Cost:
        original = structure.original
        if original is structure:
            return cost(self, structure, gold)
        return cost(self, original, structure.without_copies(gold)).copied(structure, gold)

    return shared_out


@dataclass(frozen=True, eq=False)
class Sum(Loss):
    """Losses added up: ``2.0 * Hamming() + EdgeHamming()`` makes one.

    Parameters
    ----------
    terms : tuple of Loss
        The losses.
    factors : tuple of float
        What they are multiplied by: finite, not negative.
    """

    terms: tuple[Loss, ...]
    factors: tuple[float, ...]

    def __post_init__(self) -> None:
        for factor in self.factors:
            if not 0.0 <= factor < np.inf:
                raise ValueError(f"a loss can be multiplied by a finite number that is not negative, got {factor}")

    @property
    def needs_edges(self) -> bool:
        return any(term.needs_edges for term in self.terms)

    def bind(self, labels: Sequence[Any]) -> Loss:
        return Sum(tuple(term.bind(labels) for term in self.terms), self.factors)

    def counted(self, counts: np.ndarray) -> Loss:
        return Sum(tuple(term.counted(counts) for term in self.terms), self.factors)

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        pairs = zip(self.terms, self.factors, strict=True)
        return reduce(add, (term.cost(structure, gold).scaled(factor) for term, factor in pairs))


class Cost:
    """Costs of labels, ``weight[r] * table[gold[r], label]`` at row r of the first array of theta, and of single parts.

    Losses of labels give the first three; ``of_parts`` is for those that have costs of parts only.

    Parameters
    ----------
    gold : array of int (rows,)
        Gold label of every row.
    weight : array (rows,)
        Weight of every row.
    table : array (labels, labels)
        ``table[g, y]``, the cost of label y where g is right; zero on the diagonal, never negative.
    parts : tuple of (array or None)
        Costs of single parts on top, in the layout of theta; None, or the end of the tuple, where there are none. They
        may be negative if there is a constant.
    constant : array (n,) or None
        What every example pays besides, so that gold pays nothing; None: nothing.
    """

    def __init__(
        self,
        gold: np.ndarray,
        weight: np.ndarray,
        table: np.ndarray,
        parts: tuple[np.ndarray | None, ...] = (),
        constant: np.ndarray | None = None,
    ):
        self.gold = np.asarray(gold, dtype=np.int64)
        self.weight = _checked("weight", weight)
        self.table = _checked("table", table)
        if np.diagonal(self.table).any():
            g = int(np.flatnonzero(np.diagonal(self.table))[0])
            raise ValueError(
                "a label loss must be 0 for the right label: the table's diagonal is not zero, "
                f"table[{g}, {g}] is {self.table[g, g]}; set it to 0"
            )
        least = 0.0 if constant is None else -np.inf
        written = tuple(None if part is None else _checked(f"parts[{k}]", part, least) for k, part in enumerate(parts))
        self.parts = written if any(part is not None for part in written) else ()
        self.constant = None if constant is None else _checked("constant", constant, -np.inf)

    @classmethod
    def of_parts(
        cls,
        structure: Structure,
        gold: np.ndarray,
        costs: Mapping[int, np.ndarray],
        constant: np.ndarray | str | None = None,
    ) -> Cost:
        """Costs of single parts only.

        Parameters
        ----------
        structure : Structure
            The output spaces.
        gold : array of int
            The gold outputs, packed.
        costs : mapping from int to array
            Number of an array of theta, and the costs of its parts in its shape; -1 is the last array.
        constant : array (n,), "gold" or None
            What every example pays besides; "gold" is what makes gold cost nothing, None is nothing.
        """
        parts: list[np.ndarray | None] = [None] * len(structure.shapes)
        for k, array in costs.items():
            parts[k] = array
        if isinstance(constant, str):
            if constant != "gold":
                raise ValueError(f'constant must be an array, "gold" or None, got {constant!r}')
            pairs = zip(parts, structure.shapes, strict=True)
            constant = -structure.score(tuple(np.zeros(s) if part is None else part for part, s in pairs), gold)
        return cls(np.empty(0), np.empty(0), np.empty((0, 0)), tuple(parts), constant)

    def checked(self, structure: Structure, gold: np.ndarray) -> Cost:
        """Itself, if it has the shapes of the structure, gold costs nothing and nothing costs less; else an error."""
        self._check_shapes(structure, gold)
        if self.parts or self.constant is not None:
            self._check_least(structure, *self._check_gold(structure, gold))
        return self

    def _check_shapes(self, structure: Structure, gold: np.ndarray) -> None:
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
        if self.constant is not None:
            _same_shape("constant", self.constant, (structure.n,))
        if len(self.parts) > len(structure.shapes):
            raise ValueError(f"costs of {len(self.parts)} arrays, but theta has {len(structure.shapes)}")
        for k, (span, part) in enumerate(zip(structure.spans(), self.parts, strict=False)):
            if part is not None:
                _same_shape(f"parts[{k}]", part, structure.shapes[k])
                if span is None:
                    raise ValueError(
                        f"array {k} of theta is shared by all examples, so its parts cannot have costs of their own; "
                        "use an array with rows for every example, such as the edges of Chain(edges=True)"
                    )

    def add_to(self, theta: Parts, scale: float = 1.0, threads: Threads = SERIAL) -> None:
        """theta += scale * costs of parts, in place."""
        if scale == 0.0:
            return
        if self.table.any():
            labels = self.gold, self.weight, self.table
            threads.run(add_to_rows, threads.rows(len(self.gold)), theta[0], *labels, scale)
        for array, part in self._pairs(theta):
            _add(array, part, scale, threads)

    def expected(self, marginals: Parts, threads: Threads = SERIAL, weights: np.ndarray | None = None) -> float:
        """The expected loss, summed over examples; those of weight 2, say, have marginals twice as large."""
        total = 0.0
        if self.table.any():
            labels = self.gold, self.weight, self.table
            total = float(sum(threads.run(expected_of_rows, threads.rows(len(self.gold)), marginals[0], *labels)))
        total += sum(_product(array, part, threads) for array, part in self._pairs(marginals))
        if self.constant is None:
            return total
        return total + float(self.constant.sum() if weights is None else self.constant @ weights)

    def select(self, rows: tuple[Selection, ...], examples: Examples) -> Cost:
        """The costs of some examples only, given which rows of every array of theta are theirs."""
        if len(self.parts) > len(rows):
            raise ValueError(f"costs of {len(self.parts)} arrays of theta need the rows of each, got {len(rows)}")
        parts = (None if part is None else part[r] for part, r in zip(self.parts, rows, strict=False))
        own = rows[0] if len(self.gold) else slice(0)
        constant = None if self.constant is None else self.constant[examples]
        return Cost(self.gold[own], self.weight[own], self.table, tuple(parts), constant)

    def worst(self) -> np.ndarray:
        """The most that every row of the first array can cost (rows,), if labels have costs; else a bound on all."""
        most = self.weight * self.table.max(axis=1, initial=0.0)[self.gold]
        rest = 0.0 if self.constant is None else float(self.constant.sum())
        for k, part in enumerate(self.parts):
            if part is not None and part.size:
                largest = np.maximum(part.reshape(len(part), -1).max(axis=1), 0.0)
                if k == 0 and len(most):
                    most = most + largest
                else:
                    rest += largest.sum()
        return most + rest / len(most) if len(most) else np.array([rest])

    def copied(self, structure: Structure, gold: np.ndarray) -> Cost:
        """Costs of ``structure.original``, shared out among its copies; what gold lacks is made up for copy by copy."""
        original, right = structure.original, structure.without_copies(gold)
        self._check_shapes(original, right)
        if self.parts or self.constant is not None:
            self._check_gold(original, right)
        parts = {k: structure.copied(k, part) for k, part in enumerate(self.parts) if part is not None}
        rest = Cost.of_parts(structure, gold, parts, None if self.constant is None else "gold")
        if not len(self.gold):
            return rest
        labels = structure.labels_of(gold), structure.copied(0, self.weight), self.table
        return Cost(*labels, rest.parts, rest.constant)

    def scaled(self, factor: float) -> Cost:
        """The costs times a number."""
        parts = (None if part is None else factor * part for part in self.parts)
        constant = None if self.constant is None else factor * self.constant
        return Cost(self.gold, factor * self.weight, self.table, tuple(parts), constant)

    def __add__(self, other: Cost) -> Cost:
        if len(self.gold) and len(other.gold) and not np.array_equal(self.gold, other.gold):
            raise ValueError("costs of different gold outputs cannot be added; make both with the same gold labelling")
        rest = _sum_of_parts(self.parts, other.parts), _sum(self.constant, other.constant)
        if not (self.table.any() and other.table.any()):
            one = other if other.table.any() else self
            return Cost(one.gold, one.weight, one.table, *rest)
        if np.array_equal(self.weight, other.weight):
            return Cost(self.gold, self.weight, self.table + other.table, *rest)
        if np.array_equal(self.table, other.table):
            return Cost(self.gold, self.weight + other.weight, self.table, *rest)
        written = other.weight[:, None] * other.table[other.gold]
        return Cost(self.gold, self.weight, self.table, _sum_of_parts(rest[0], (written,)), rest[1])

    def _pairs(self, arrays: Parts) -> list[tuple[np.ndarray, np.ndarray]]:
        """Arrays in the layout of theta next to the costs of single parts."""
        return [(array, part) for array, part in zip(arrays, self.parts, strict=False) if part is not None]

    def _check_gold(self, structure: Structure, gold: np.ndarray) -> tuple[Parts, np.ndarray]:
        """Refuse right outputs that cost something; all costs written out, and the constants."""
        theta = tuple(np.zeros(shape) for shape in structure.shapes)
        self.add_to(theta)
        constant = np.zeros(structure.n) if self.constant is None else self.constant
        rounding = _rounding(constant)
        ell = structure.score(theta, gold) + constant
        if (np.abs(ell) > rounding).any():
            i = int(np.flatnonzero(np.abs(ell) > rounding)[0])
            raise ValueError(
                f"example {i}: the loss of the right output is {ell[i]}, but must be 0; "
                "let the parts of the right output cost nothing, or make up for their costs by the constant"
            )
        return theta, constant

    def _check_least(self, structure: Structure, theta: Parts, constant: np.ndarray) -> None:
        """Refuse outputs that cost less than the right ones."""
        if any((array < 0.0).any() for array in theta):
            least = constant - structure.hard(tuple(-array for array in theta))[0]
            if (least < -_rounding(constant)).any():
                i = int(np.flatnonzero(least < -_rounding(constant))[0])
                raise ValueError(
                    f"example {i}: there is an output with a loss of {least[i]:.6g}, below that of the right one, 0; "
                    "let only parts of the right output have negative costs, made up for by the constant"
                )


def _rounding(constant: np.ndarray) -> np.ndarray:
    return ROUNDING * (1.0 + np.abs(constant))


def _checked(name: str, values: np.ndarray, least: float = 0.0) -> np.ndarray:
    """The numbers as compiled code wants them, if all are finite and none is less."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    for good, rule in ((np.isfinite(values), "be finite"), (values >= least, "not be negative")):
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
    return tuple(_sum(a, b) for a, b in zip_longest(one, two))


def _sum(one: np.ndarray | None, two: np.ndarray | None) -> np.ndarray | None:
    return one if two is None else two if one is None else one + two
