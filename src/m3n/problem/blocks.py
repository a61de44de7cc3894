"""A problem example by example, for block-coordinate methods.

The batch oracles of ``Problem`` answer for all examples at once. A block method visits one example at a time and uses
the newest weights at every visit, thousands of times per pass: it runs compiled sweeps on the plain arrays that are
put together here. For a structure without a compiled form of an oracle the same sweeps run in the interpreter.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from m3n.compiled.jit import for_space
from m3n.compiled.maps.codes import CodeRows
from m3n.compiled.maps.costs import Costs, SlackCosts
from m3n.compiled.maps.grams import KernelRows
from m3n.compiled.maps.sparse import sum_squares
from m3n.compiled.oracles.hooks import ORACLES, SLACK, implemented
from m3n.compiled.sweeps.visits import MapRows
from m3n.features.base import FeatureMap, GramRows, SparseRows, shortest
from m3n.features.codes import CodedRows
from m3n.losses import Cost
from m3n.packed.ragged import numbers
from m3n.structures.base import Structure
from m3n.structures.slack import InexactOracle

Rows = MapRows | KernelRows | CodeRows


class Blocks:
    """Plain arrays of a problem.

    Parameters
    ----------
    structure : Structure
        The output spaces.
    features : FeatureMap
        The map from weights to part scores.
    cost : Cost
        The label loss.
    gold : array of int
        The gold labelling.
    weights : array (n,) or None
        Weights c_i of the examples. Scores, losses and the temperature of example i come out c_i times as large, which
        is the same as counting it c_i times.
    slack : bool
        Whether the loss multiplies the margin. Weights then enter the losses alone, with the same effect.

    Attributes
    ----------
    space : named tuple or PythonSpace
        The structure, as compiled code sees it.
    rows, costs : named tuples
        The feature map and the loss, as compiled code sees them.
    gold : array of int (n, most)
        The parts of every gold output; ``gold_counts`` (n,) of them are in use.
    most : array of int (n,)
        A bound on the number of parts of an output.
    weights : array (n,)
        Weights of the examples, ones if there are none.
    """

    def __init__(
        self,
        structure: Structure,
        features: FeatureMap,
        cost: Cost,
        gold: np.ndarray,
        weights: np.ndarray | None = None,
        slack: bool = False,
    ):
        self.n, self.structure = structure.n, structure
        self.weights = np.ones(self.n) if weights is None else weights
        coded = None if any(span is None for span in structure.spans()) else features.coded()
        rows = _local(features.rows(), structure) if coded is None else _coded(coded, structure)
        self.rows = rows if slack or weights is None else _weigh(rows, weights)
        self.costs: Any = _costs(cost, structure, self.weights)
        self.most = structure.most_parts()
        self._packed = gold
        self.interpreted = PythonSpace(structure, cost, gold, self.weights)
        compiled = structure.space()
        self.space = self.interpreted if compiled is None else compiled
        self.measured = True
        self._vectors: list[np.ndarray] = []
        if slack:
            units = structure.loss_units(cost)
            self.measured = units is not None
            unit, levels = units or (np.ones(self.n), np.ones(self.n, np.int64))
            self.costs = SlackCosts(self.costs, unit * self.weights, levels, self.gold, self.gold_counts)

    @cached_property
    def _lists(self) -> tuple[np.ndarray, np.ndarray]:
        return self.structure.local_parts(self._packed)

    @property
    def gold(self) -> np.ndarray:
        """Lists of the parts of gold."""
        return self._lists[0]

    @property
    def gold_counts(self) -> np.ndarray:
        """How many of them are in use."""
        return self._lists[1]

    def forget_lists(self) -> None:
        """Let go of the lists of gold's parts, which are as wide as the longest of them; they come again when asked."""
        vars(self).pop("_lists", None)

    @property
    def largest(self) -> int:
        """Length of the longest local theta."""
        return int(self.rows.sizes.max())

    @property
    def reach(self) -> float:
        """Number of weights that adding the features of one part changes, on average over the rows in use."""
        rows = self.rows
        counts = np.diff(rows.pointers)
        if isinstance(rows, KernelRows):
            counts = np.where(rows.which < 0, counts, rows.bases[rows.which, 2])
        return float(counts[rows.used].mean()) if len(rows.used) else 0.0

    def vectors(self, dim: int, count: int) -> list[np.ndarray]:
        """Vectors of all weights for sweeps, the same every time; the second half is zero, and must be so afterwards.

        A large array is cheap to use again, and dear to ask the system for.
        """
        if len(self._vectors) != count:
            self._vectors = [np.zeros(dim) for _ in range(count)]
        return self._vectors

    def run(self, sweep: Any, *arguments: Any, asks: str = "hard") -> Any:
        """Call a sweep with space, rows and costs before its arguments: compiled if the structure allows it.

        ``asks`` names the oracle that the sweep calls: "hard", "soft" or "support".
        """
        if not self.compiles(asks):
            return sweep.py_func(self.interpreted, self.rows, self.costs, *arguments)
        return for_space(sweep, self.space)(self.space, self.rows, self.costs, *arguments)

    def compiles(self, asks: str) -> bool:
        """Whether the structure has compiled forms of what an oracle needs."""
        slack = isinstance(self.costs, SlackCosts)
        hooks = SLACK if slack and asks == "hard" else ORACLES[asks]
        return self.measured and implemented(hooks, type(self.space))


class PythonSpace:
    """A structure behind the interface of the hooks, for use in the interpreter.

    Parameters
    ----------
    structure : Structure
        The output spaces.
    cost : Cost
        The label loss.
    gold : array of int
        The gold labelling.
    weights : array (n,)
        Weights of the examples.
    """

    def __init__(self, structure: Structure, cost: Cost, gold: np.ndarray, weights: np.ndarray):
        self.structure, self.cost, self.gold, self.weights = structure, cost, gold, weights

    def workspace(self) -> None:
        """None is needed."""

    def best(self, i: int, theta: np.ndarray, parts: np.ndarray) -> tuple[float, int]:
        """Max-oracle of example i."""
        found = self.structure.checked_parts(self.structure.best(i, self.structure.cut(theta, i)), i)
        parts[: len(found)] = found
        return float(theta[found].sum()), len(found)

    def slack(self, i: int, theta: np.ndarray, parts: np.ndarray) -> tuple[float, int]:
        """Max-oracle of slack rescaling of example i."""
        one = np.array([i])
        alone, rows = self.structure.select(one)
        gold, cost = self.gold[self.structure.entries_of(one)], self.cost.select(rows, one)
        try:
            values, output, _ = alone.slack(self.structure.cut(theta, i), gold, cost)
        except InexactOracle as error:
            raise InexactOracle(i, error.best, error.bound, error.reason) from None
        listed, counts = alone.local_parts(output)
        parts[: counts[0]] = listed[0, : counts[0]]
        return float(self.weights[i] * values[0]), int(counts[0])

    def soft(self, i: int, theta: np.ndarray, mu: float) -> float:
        """Exp-oracle of example i."""
        value, marginals = self.structure.marginals(i, self.structure.cut(theta, i), mu)
        theta[:] = np.concatenate([m.ravel() for m in marginals])
        return value


def _local(sparse: SparseRows, structure: Structure) -> MapRows | KernelRows:
    """Which rows every example uses, array after array, and where their parts stand in its local theta."""
    first_rows = np.cumsum([0, *sparse.arrays])
    uses: list[np.ndarray] = []
    for span, count, first, shape in zip(structure.spans(), sparse.arrays, first_rows, structure.shapes, strict=False):
        if span is None:
            bounds = np.array([[first, first + count]]).repeat(structure.n, axis=0)
        else:
            # a map may write a row of labels as several rows, or all rows of an example as one
            bounds = first + np.stack([span[:-1], span[1:]], axis=1) * count // max(shape[0], 1)
        uses.append(bounds)
    rows = _uses(sparse, np.stack(uses))  # (arrays, n, 2)
    return rows if sparse.gram is None else _expanded(rows, sparse.gram)


def _coded(rows: CodedRows, structure: Structure) -> CodeRows:
    """The same for rows of codes; no row belongs to two examples."""
    firsts, spans = rows.firsts, [span for span in structure.spans() if span is not None]
    starts = np.cumsum([0, *(len(first) - 1 for first in firsts)])
    cuts = [start + np.searchsorted(first, span) for start, first, span in zip(starts, firsts, spans, strict=False)]
    lengths = np.array([np.diff(cut) for cut in cuts]).T  # (n, arrays)
    used = numbers(np.array([cut[:-1] for cut in cuts]).T.ravel(), lengths.ravel())
    widths = np.concatenate([np.diff(first) for first in firsts])
    parts = np.cumsum([0, *(int(first[-1]) for first in firsts)])
    masks = np.concatenate([first[:-1] + before for first, before in zip(firsts, parts, strict=False)])
    first, used, place, sizes = _placed(used, lengths, widths)
    squares = np.diff(rows.pointers) * rows.values**2
    own = rows.pointers, rows.codes, rows.bases, rows.values, masks, rows.masks
    return CodeRows(*own, widths, first, used, place, sizes, squares)


def _costs(cost: Cost, structure: Structure, weights: np.ndarray) -> Costs:
    """The loss as compiled code sees it, times the weights of the examples."""
    first, weight = np.zeros(structure.n + 1, np.int64), cost.weight
    if len(cost.gold):
        rows = structure.spans()[0]
        if rows is None:
            raise TypeError(
                f"the first array of theta of {type(structure).__name__} must not be shared by all examples"
            )
        first, weight = rows, cost.weight * np.repeat(weights, np.diff(rows))
    constants = np.zeros(structure.n) if cost.constant is None else cost.constant * weights
    return Costs(cost.gold, weight, cost.table, first, *_single_costs(cost, structure, weights), constants)


def _single_costs(cost: Cost, structure: Structure, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Costs of single parts, times the weight of their example, as ``Costs`` wants them.

    An example's list reaches from its first array with such costs to its last; what lies between costs nothing. Costs
    of shared arrays, those of a prior, are written out for every example.
    """
    named = {k: part for k, part in enumerate(cost.parts) if part is not None}
    if not named:
        return np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64)
    lengths, before, _ = structure.layout
    places, last = before[min(named)], max(named)
    starts = np.concatenate([[0], np.cumsum(before[last] + lengths[last] - places)])
    values = np.zeros(starts[-1])
    for k, part in named.items():
        listed = np.tile(part.ravel(), structure.n) if structure.spans()[k] is None else part.ravel()
        values[numbers(starts[:-1] + before[k] - places, lengths[k])] = listed * np.repeat(weights, lengths[k])
    return values, starts, places


def _weigh(rows: Rows, weights: np.ndarray) -> Rows:
    """Every use of a row becomes a row of its own, times the weight of the example that uses it."""
    scale = np.repeat(weights, np.diff(rows.first))
    if isinstance(rows, CodeRows):
        values, squares = rows.values.copy(), rows.squares.copy()
        values[rows.used] *= scale
        squares[rows.used] *= scale**2
        return rows._replace(values=values, squares=squares)
    counts = np.diff(rows.pointers)[rows.used]
    pointers = np.concatenate([[0], np.cumsum(counts)])
    entries = numbers(rows.pointers[rows.used], counts)
    weighed = rows._replace(
        pointers=pointers,
        runs=rows.runs[entries],
        data=np.broadcast_to(rows.data, rows.runs.shape)[entries] * np.repeat(scale, counts),
        widths=rows.widths[rows.used],
        used=np.arange(len(rows.used)),
        squares=rows.squares[rows.used] * scale**2,
        lists=pointers[:-1] + (rows.lists - rows.pointers[:-1])[rows.used],
    )
    if not (isinstance(rows, KernelRows) and isinstance(weighed, KernelRows)):
        return weighed
    which = rows.which[rows.used]
    own_first, own = _own_units(weighed, which)
    return weighed._replace(which=which, own_first=own_first, own=own)


def _expanded(rows: MapRows, gram: GramRows) -> KernelRows:
    """Rows of which some are kernel expansions."""
    which = np.ascontiguousarray(gram.which, dtype=np.int64)
    sizes = np.array([[len(matrix)] for matrix in gram.grams])
    bases = np.ascontiguousarray(np.hstack([gram.bases, sizes]), dtype=np.int64)
    squares = rows.squares.copy()
    for g, (matrix, mix) in enumerate(zip(gram.grams, gram.mixes, strict=True)):
        mine = np.flatnonzero(which == g)
        widest = mix.diagonal().max() if mix.size else 1.0
        squares[mine] *= widest * matrix.diagonal()[rows.runs[rows.pointers[mine]] - bases[g, 1]]
    matrices, mixes = _alike(gram.grams), _alike(gram.mixes)
    own = _own_units(rows, which)
    return KernelRows(*rows._replace(squares=squares), which, bases, matrices, mixes, *own)


def _own_units(rows: MapRows | KernelRows, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every example one row of each unit that it uses: where they begin, and the rows."""
    owner = np.repeat(np.arange(len(rows.sizes)), np.diff(rows.first))
    expanded = which[rows.used] >= 0
    owner, used = owner[expanded], rows.used[expanded]
    unit = rows.runs[rows.pointers[used]]
    order = np.lexsort((unit, owner))
    owner, used, unit = owner[order], used[order], unit[order]
    new = np.ones(len(used), np.bool_)
    new[1:] = (np.diff(owner) != 0) | (np.diff(unit) != 0)
    counts = np.bincount(owner[new], minlength=len(rows.sizes))
    return np.concatenate([[0], np.cumsum(counts)]), used[new]


def _alike(arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Views that cannot be written to, at least two of them.

    So compiled code sees one type, whether an array is mapped from a file, and whether edges have a kernel.
    """
    views = [np.ascontiguousarray(array).view() for array in arrays]
    views += [np.empty((0, 0), arrays[0].dtype)] * (2 - len(arrays))
    for view in views:
        view.flags.writeable = False
    return tuple(views)


def _placed(used: np.ndarray, lengths: np.ndarray, widths: np.ndarray) -> tuple[np.ndarray, ...]:
    """First use of every example, rows of uses, where their parts begin, length of every local theta.

    ``lengths`` (n, arrays) says how many rows of each array an example uses.
    """
    first = np.concatenate([[0], np.cumsum(lengths.sum(axis=1))])
    before = np.concatenate([[0], np.cumsum(widths[used])])
    sizes = before[first[1:]] - before[first[:-1]]
    return first, used, before[:-1] - np.repeat(before[first[:-1]], np.diff(first)), sizes


def _uses(sparse: SparseRows, bounds: np.ndarray) -> MapRows:
    lengths = (bounds[..., 1] - bounds[..., 0]).T  # (n, arrays)
    used = numbers(bounds[..., 0].T.ravel(), lengths.ravel())
    first, used, place, sizes = _placed(used, lengths, sparse.widths)
    lists = sparse.pointers[1:] if sparse.lists is None else sparse.lists
    integers = (sparse.pointers, sparse.widths, first, used, place, sizes, lists)
    pointers, widths, first, used, place, sizes, lists = (np.ascontiguousarray(a, dtype=np.int64) for a in integers)
    short = sparse.runs.max(initial=0) < 1 << 31
    runs = np.ascontiguousarray(sparse.runs, dtype=np.int32 if short else np.int64)
    columns = np.empty(0, np.int32) if sparse.columns is None else sparse.columns.astype(np.int32, copy=False)
    data = np.ascontiguousarray(shortest(sparse.data) if sparse.gram is None else sparse.values, dtype=np.float64)
    squares = np.empty(len(widths))
    sum_squares(pointers, data, squares)
    return MapRows(pointers, runs, data, widths, first, used, place, sizes, squares, lists, columns)
