"""Factor graphs of low treewidth: any variables, any factors, exact by bucket elimination.

theta = (node (variables, labels), one array for every ``Factors``): a table (labels, ..., labels) per factor, or one
that all of them share. An output gives every variable one of ``labels`` labels; |Y_i| = labels^nodes. Both oracles cost
labels^|bucket| summed over the buckets of an elimination order (``m3n.structures.elimination``), known beforehand as
``cost``; a forest costs nodes labels^2. Every example may have a graph of its own; each shape is analysed once.

Scores of -inf forbid what they score.
"""

from __future__ import annotations

import copy
import itertools
import math
import threading
from collections.abc import Iterator, Sequence
from typing import ClassVar, NoReturn
from weakref import WeakKeyDictionary

import numpy as np

from m3n.compiled.oracles.elimination import Scratch, hard_many, scratch_for, soft_many
from m3n.compiled.oracles.elimination_pairs import Pairs, pairs_for
from m3n.compiled.oracles.graph_block import GraphSpace
from m3n.packed import SERIAL, Threads
from m3n.packed.ragged import sums
from m3n.structures.base import Examples, Parts, Selection, Structure
from m3n.structures.elimination import Bucket, Layout, Shape, TooWide, eliminate, forests, programme, table_entries
from m3n.structures.factors import Factors
from m3n.structures.labels import LabelStructure, Located, Words

CHUNK = 1 << 17  # numbers of theta that are brought side by side at a time: 1 MB
_MEMORY = threading.local()


class TooExpensive(ValueError):
    """Exact inference on a graph would take more than its budget."""


class Graph(LabelStructure):
    """Variables with the same labels, joined by factors.

    Parameters
    ----------
    nodes : sequence of int
        Number of variables of every example, at least 1.
    labels : int
        Number of labels.
    factors : sequence of Factors
        The arrays of theta after the first one.
    budget : float
        Most table entries that one example may need; eight bytes each, per thread.
    last : sequence of int, optional
        For every example the variable to be eliminated last, -1 for any. It may change the cost, never the answer.

    Attributes
    ----------
    width : int
        Number of variables of the largest bucket, 2 for forests: the treewidth of the order that was found, plus 1.
    cost : array of int (n,)
        Table entries of every example, to which the time of both oracles is proportional.
    """

    oracles: ClassVar[frozenset[str]] = frozenset({"hard", "soft", "support"})
    words: ClassVar[Words] = Words("example", "variables", "outputs")

    def __init__(
        self,
        nodes: Sequence[int] | np.ndarray,
        labels: int,
        factors: Sequence[Factors] = (),
        *,
        budget: float = 2e8,
        last: Sequence[int] | np.ndarray | None = None,
    ):
        nodes = np.asarray(nodes, dtype=np.int64)
        if nodes.ndim != 1 or nodes.size == 0 or labels < 1:
            raise ValueError(f"{type(self).__name__} needs at least one example and one label")
        if nodes.min() < 1:
            raise ValueError(f"example {int(nodes.argmin())} has no variables; leave empty examples out")
        for number, given in enumerate(factors):
            given.check(nodes, number)
        self.labels, self.budget = labels, budget
        self._set(nodes, tuple(factors))
        self._analyse(_check_last(last, nodes))
        self._measure()

    def hard(self, theta: Parts, threads: Threads = SERIAL) -> tuple[np.ndarray, np.ndarray]:
        values, labelling = np.empty(self.n), np.empty(self.shapes[0][0], np.int64)

        def lane(low: int, high: int) -> None:
            scratch, pairs = self._scratch()
            for a, b in self._chunks(low, high):
                flat, begins = self._gather(theta, a, b)
                hard_many(*self._plan, begins, a, b, flat, values, labelling, scratch, pairs)

        threads.run(lane, threads.lanes(self._work))
        return values, labelling

    def soft(
        self, theta: Parts, mu: float, threads: Threads = SERIAL, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, Parts]:
        weights = self._amounts(weights)
        values = np.empty(self.n)

        def lane(low: int, high: int) -> np.ndarray:
            scratch, pairs = self._scratch()
            counts = np.zeros(int(self._programme.sizes @ self._programme.shared))
            for a, b in self._chunks(low, high):
                flat, begins = self._gather(theta, a, b)
                soft_many(*self._plan, begins, a, b, flat, mu, weights, values, counts, scratch, pairs)
                self._scatter(flat, begins, a, b, theta)
            return counts

        counts = np.sum(threads.run(lane, threads.lanes(self._work)), axis=0)
        for array, span, at in zip(theta, self.spans(), self._programme.tallies, strict=True):
            if span is None:
                array[...] = counts[at : at + array.size].reshape(array.shape)
        return values, theta

    def log_size(self) -> np.ndarray:
        return self.nodes * np.log(self.labels)

    def radius(self, norms: Parts) -> float:
        # |sum_f x_f (e_gold - e_y)| <= sqrt(2) sum_f |x_f|; counts in a shared table differ by at most sqrt(2) times
        # the number of its factors. Equality when all inputs look alike, gold is constant and y another constant.
        if self.labels == 1:
            return 0.0
        squares = sums(norms[0], self.offsets[:-1], self.nodes) ** 2
        for norm, given in zip(norms[1:], self.factors, strict=True):
            number = np.diff(given.first)
            squares += (number * norm.max() if given.shared else sums(norm, given.first[:-1], number)) ** 2
        return float(np.sqrt(2.0 * squares.max()))

    def select(self, examples: Examples) -> tuple[Structure, tuple[Selection, ...]]:
        chosen, part = np.arange(self.n)[examples], copy.copy(self)
        for name in ("layout", "_most", "_room", "_row_parts", "_first", "_effort"):  # of the whole
            vars(part).pop(name, None)
        part._set(self.nodes[chosen], tuple(given.select(chosen) for given in self.factors))
        part._shape = self._shape[chosen]
        part._measure()
        return part, self.rows_of(examples)

    def enumerate(self, example: int) -> Iterator[np.ndarray]:
        for labels in itertools.product(range(self.labels), repeat=int(self.nodes[example])):
            yield np.array(labels)

    def spans(self) -> tuple[np.ndarray | None, ...]:
        return self.offsets, *(None if given.shared else given.first for given in self.factors)

    def pair_arrays(self) -> list[int]:
        found: dict[bytes, int] = {}  # the same variables in another order are the same pairs
        for k in super().pair_arrays():
            given = self.factors[k - 1]
            found.setdefault(given.first.tobytes() + np.sort(given.scopes, axis=1).tobytes(), k)
        return list(found.values())

    def most_parts(self) -> np.ndarray:
        return self.nodes + sum(np.diff(given.first) for given in self.factors)

    def located(self, packed: np.ndarray) -> list[Located]:
        owners = [np.repeat(np.arange(self.n), self.nodes)]
        places = [np.arange(len(packed)) * self.labels + packed]
        for given in self.factors:
            owners.append(np.repeat(np.arange(self.n), np.diff(given.first)))
            labels = packed[self.offsets[owners[-1]][:, None] + given.scopes]  # (count, k)
            code = labels @ self.labels ** np.arange(given.k - 1, -1, -1)
            places.append(code if given.shared else code + np.arange(len(code)) * self.labels**given.k)
        return list(zip(places, owners, strict=True))

    def space(self) -> GraphSpace:
        return GraphSpace(*self._plan, self._most_entries, self.width, int(self.nodes.max()))

    def _set(self, nodes: np.ndarray, factors: tuple[Factors, ...]) -> None:
        self.n, self.nodes, self.factors = len(nodes), nodes, factors
        self.offsets = np.concatenate([[0], np.cumsum(nodes)])
        self.shapes = ((int(self.offsets[-1]), self.labels),)
        for given in factors:
            own = () if given.shared else (len(given.scopes),)
            self.shapes += ((*own, *(self.labels,) * given.k),)

    def _analyse(self, last: np.ndarray) -> None:
        """An elimination order for every shape, and the programme of all."""
        shapes: dict[tuple, int] = {}
        found: list[Shape] = []
        orders: list[list[Bucket]] = []
        self._shape = np.empty(self.n, np.int64)
        for i in range(self.n):
            scopes = tuple(given.scopes[given.first[i] : given.first[i + 1]] for given in self.factors)
            key = self.nodes[i], last[i], *(scope.tobytes() for scope in scopes)
            if key not in shapes:
                shapes[key] = len(found)
                found.append(Shape(int(self.nodes[i]), scopes, int(last[i])))
                orders.append(self._order(i, found[-1]))
            self._shape[i] = shapes[key]
        orders_of_arrays = (1, *(given.k for given in self.factors))
        layout = Layout(self.labels, orders_of_arrays, (False, *(given.shared for given in self.factors)))
        self._programme = programme(found, orders, layout)
        self._forests = forests(self._programme)
        self._widths = np.array([max(len(others) for _, others in order) + 1 for order in orders])
        self._entries = np.array([table_entries(order, self.labels) for order in orders])
        self._padded = np.array([table_entries(order, self.labels, padding=True) for order in orders])

    def _order(self, i: int, shape: Shape) -> list[Bucket]:
        """The buckets of an example, within the budget."""
        widest = shape.nodes
        if self.labels > 1 and self.budget < np.inf:
            widest = int(math.log(self.budget) / math.log(self.labels))
        try:
            order = eliminate(shape, widest)
        except TooWide as wide:
            self._refuse(i, wide.size, float(self.labels) ** wide.size)
        entries = table_entries(order, self.labels)
        if entries > self.budget:
            self._refuse(i, max(len(others) for _, others in order) + 1, entries)
        return order

    def _refuse(self, i: int, width: int, entries: float) -> NoReturn:
        raise TooExpensive(
            f"example {i} joins {width} variables of {self.labels} labels in one table: exact inference needs at least "
            f"{entries:.1e} table entries ({8e-9 * entries:.1f} GB per thread), more than the budget of "
            f"{self.budget:.1e}; take fewer factors or factors of fewer variables, LoopyGraph, which relaxes the "
            "problem, or a larger budget"
        )

    def _measure(self) -> None:
        """What follows from the shapes of the examples."""
        self.width = int(self._widths[self._shape].max())
        self.cost = self._entries[self._shape]
        self._work = np.concatenate([[0], np.cumsum(self.cost)])
        own = np.stack([np.zeros(self.n + 1, np.int64) if span is None else span for span in self.spans()])
        self._plan = self._programme, self._forests, self._shape, own
        self._numbers = self._programme.sizes @ own  # (n + 1,) entries of theta before every example

    def _chunks(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Examples low..high-1 in groups whose own scores fit into a chunk, or that are one example."""
        while low < high:
            reach = np.searchsorted(self._numbers, self._numbers[low] + CHUNK, side="right") - 1
            middle = min(max(int(reach), low + 1), high)
            yield low, middle
            low = middle

    def _gather(self, theta: Parts, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """The scores that examples low..high-1 use, array after array, and where every array begins."""
        pieces = [
            (array if span is None else array[span[low] : span[high]]).reshape(-1)
            for array, span in zip(theta, self.spans(), strict=True)
        ]
        return np.concatenate(pieces), np.cumsum([0, *map(len, pieces)])[:-1]

    def _scatter(self, flat: np.ndarray, begins: np.ndarray, low: int, high: int, theta: Parts) -> None:
        """Back to where ``_gather`` found them, but for shared arrays."""
        for array, span, begin in zip(theta, self.spans(), begins, strict=True):
            if span is not None:
                rows = array[span[low] : span[high]]
                rows[...] = flat[begin : begin + rows.size].reshape(rows.shape)

    def _scratch(self) -> tuple[Scratch, Pairs]:
        """Memory of this thread for the largest example, kept while the structure lives: new pages cost a pass."""
        held = _held()
        if self not in held:
            pairs = pairs_for(self._forests, self.labels, int(self.nodes.max()))
            held[self] = scratch_for(self._programme, self._most_entries, self.width), pairs
        return held[self]

    @property
    def _most_entries(self) -> int:
        return int(self._padded[self._shape].max())


def _held() -> WeakKeyDictionary[Graph, tuple[Scratch, Pairs]]:
    if not hasattr(_MEMORY, "held"):
        _MEMORY.held = WeakKeyDictionary()
    return _MEMORY.held


def _check_last(last: Sequence[int] | np.ndarray | None, nodes: np.ndarray) -> np.ndarray:
    if last is None:
        return np.full(len(nodes), -1)
    numbers = np.asarray(last)
    if numbers.shape != nodes.shape or numbers.dtype.kind not in "iu" or not (numbers < nodes).all():
        raise ValueError(f"the last variable (root) must be given for all {len(nodes)} examples, -1 where any will do")
    return np.maximum(numbers.astype(np.int64), -1)
