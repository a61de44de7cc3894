"""What an output space must offer.

A structure describes n finite output sets Y_1..Y_n at once (a *packed batch*). It works in score space: ``theta`` is a
tuple of arrays, one per kind of part, and an output is a multiset of parts whose scores add up. Marginals and
indicators of outputs come in the same tuple of arrays, so ``<theta, encode(y)>`` is the score of y. An array may hold
rows of its own for every example (node scores) or be shared by all examples (a transition table); the marginals of a
shared array are summed over everything that uses it.

An example sees its *own theta*: its rows of every array, and shared arrays as they are. A part is a position in that,
all arrays flattened one after another. A structure has to say

- ``n``, ``shapes`` and ``spans()``: the arrays, and which rows belong to which example;
- ``parts_of`` and ``output_of``: the parts of an output as the user writes it, and back;
- ``best``: the max-oracle of one example.

If it can, also ``marginals`` (the exp-oracle of one example), or ``smoothed`` (a smoothed maximum with a prox of its
own) with ``diameter``. Everything else has defaults that follow from these: passes over a batch on threads, scores,
indicators, selections, slack rescaling. A structure that knows a quicker way overrides them: compiled oracles of single
examples through ``space``, or whole passes, ``hard`` and ``soft``.

Outputs of a batch are kept *packed*, in one integer array. The default layout lists the parts of every example, in
ascending order, with room for ``most_parts()``, -1 where that is not used up.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from m3n.compiled.jit import for_space
from m3n.compiled.oracles import driver
from m3n.compiled.oracles.hooks import ORACLES, STEPS, implemented
from m3n.packed import SERIAL, Threads
from m3n.packed.ragged import ranges
from m3n.structures.slack import Restriction, search

Parts = tuple[np.ndarray, ...]
Selection = slice | np.ndarray | None  # which rows of an array belong to some examples; None: shared by all
Examples = slice | np.ndarray


class Layout(NamedTuple):
    """Where the arrays of theta stand in the own theta of every example."""

    lengths: np.ndarray  # (arrays, n) parts
    before: np.ndarray  # (arrays, n) parts of earlier arrays
    first: np.ndarray  # (arrays, n) first part in the whole array, flattened


class Words(NamedTuple):
    """What the parts of an output are called in messages."""

    example: str = "sequence"
    positions: str = "positions"
    outputs: str = "label sequences"


class Structure(ABC):
    """A packed batch of output spaces.

    Attributes
    ----------
    oracles : frozenset of str
        The oracles it can answer exactly: ``"hard"`` (maximise), ``"soft"`` (marginalise), ``"smoothed"`` (maximise
        with a prox of its own), ``"support"`` (minimise over the outputs whose cliques all have mass; only as a
        compiled function of its ``space``). By default those whose methods it defines, or whose hooks are compiled.
    one_label_per_row : bool
        Whether every output has exactly one label in each row of the first array of theta, the one that ``labels_of``
        names, and ``hard`` takes scores of -inf; the search for slack rescaling then divides outputs by their labels.
    relaxed : bool
        Whether it has more outputs than there really are, as a relaxation has; certificates then say so.
    light : bool
        Whether neighbouring examples are selected at next to no cost, so that a pass may take a part after another.
    n : int
        Number of examples.
    shapes : tuple of tuple of int
        Shapes of the arrays of theta.
    """

    light: ClassVar[bool] = False
    one_label_per_row: ClassVar[bool] = False
    relaxed: ClassVar[bool] = False
    words: ClassVar[Words] = Words("example", "rows", "outputs")
    n: int
    shapes: tuple[tuple[int, ...], ...]

    @property
    def oracles(self) -> frozenset[str]:
        methods = {"hard": ("hard", "best"), "soft": ("soft", "marginals"), "smoothed": ("smoothed",)}
        found = {oracle for oracle, names in methods.items() if self._defines(*names)}
        compiled = {oracle for oracle, hooks in ORACLES.items() if implemented(hooks, type(self.space()))}
        return frozenset(found | compiled)

    def spans(self) -> tuple[np.ndarray | None, ...]:
        """For every array of theta the first row of each example, n + 1 numbers; None where it is shared by all."""
        raise TypeError(f"{type(self).__name__} does not say which rows of theta belong to which example: define spans")

    # one example

    def best(self, example: int, theta: Parts) -> np.ndarray | Sequence[int]:
        """Max-oracle of one example: the parts of its best output, in any order. ``theta``, its own, is left alone."""
        if self._defines("hard"):
            alone, _ = self.select(np.array([example]))
            parts, counts = alone.local_parts(alone.hard(theta)[1])
            return parts[0, : counts[0]]
        space = self._compiled("best")
        if space is None:
            raise TypeError(f"{type(self).__name__} defines neither best, for one example, nor hard, for all of them")
        found = np.empty(self._most[example], np.int64)
        return found[: for_space(driver.best_one, space)(space, example, _joined(theta), found)]

    def marginals(self, example: int, theta: Parts, mu: float) -> tuple[float, Parts]:
        """Exp-oracle of one example: mu log sum exp(score/mu), and the marginals of its own parts."""
        if self._defines("soft"):
            alone, _ = self.select(np.array([example]))
            values, parts = alone.soft(tuple(array.copy() for array in theta), mu)
            return float(values[0]), parts
        space = self._compiled("soft")
        if space is None:
            raise TypeError(f"{type(self).__name__} has no exp-oracle: it defines neither marginals nor soft")
        joined = _joined(theta)
        value = for_space(driver.soft_one, space)(space, example, joined, mu)
        return float(value), self.cut(joined, example)

    def smoothed(self, example: int, theta: Parts, mu: float) -> tuple[float, Parts]:
        """max over mean parts m of <theta, m> + mu h(m), and m, for a structure without a quick exp-oracle.

        h is strictly concave on the convex hull of the outputs, and 0 <= h <= ``diameter()`` there; for the exp-oracle
        it is the entropy. Whoever smooths the maximum in order to minimise it may take this h instead. m must be in the
        hull, and the value what m attains: then the dual points that solvers make of them are true, even if m is only
        close to the maximum.
        """
        space = self._compiled("smoothed")
        if space is None:
            raise TypeError(f"{type(self).__name__} has no smoothed oracle")
        joined = _joined(theta)
        value = for_space(driver.smoothed_one, space)(space, example, joined, mu)
        return float(value), self.cut(joined, example)

    def parts_of(self, output: Any, example: int) -> np.ndarray | Sequence[int]:
        """The parts of an output as the user writes it, in any order; an error says what is wrong with it."""
        raise TypeError(f"{type(self).__name__} does not say what the parts of an output are: define parts_of")

    def output_of(self, parts: np.ndarray, example: int) -> Any:
        """The output that has these parts, as the user writes it."""
        raise TypeError(f"{type(self).__name__} does not say which output some parts are: define output_of")

    def enumerate(self, example: int) -> Iterator[np.ndarray]:
        """Every output of one example, packed; for tests on tiny instances."""
        raise TypeError(f"{type(self).__name__} does not enumerate its outputs")

    # all examples

    def hard(self, theta: Parts, threads: Threads = SERIAL) -> tuple[np.ndarray, np.ndarray]:
        """Max-oracle: best score of every example (n,) and the best outputs, packed. ``theta`` is left alone."""
        values, packed, space = np.empty(self.n), np.empty(int(self._room[-1]), np.int64), self._compiled("best")
        steps, room = self._divided(theta) if _stepwise(space) else None, self._room

        def lane(low: int, high: int) -> None:
            if steps is not None:
                for_space(driver.hard_in_steps, space)(space, *steps, room, low, high, values, packed)
                return
            if space is not None:
                ask = for_space(driver.hard, space)
                ask(space, _flat(theta), *self.layout, room, int(self._most.max()), low, high, values, packed)
                return
            for i in range(low, high):
                own = self.own(theta, i)
                parts = self.checked_parts(self.best(i, own), i)
                mine = packed[self._room[i] : self._room[i + 1]]
                values[i], mine[len(parts) :] = _joined(own)[parts].sum(), -1
                mine[: len(parts)] = parts[: len(mine)]

        threads.run(lane, threads.lanes(self._effort))
        return values, self._from_lists(packed)

    def soft(
        self, theta: Parts, mu: float, threads: Threads = SERIAL, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, Parts]:
        """Exp-oracle: mu log sum exp(score/mu) of every example (n,) and the marginals, written over ``theta``.

        With ``weights`` (n,) the marginals of example i count weights[i] times, the values do not. A structure with a
        smoothed oracle of its own answers with that.
        """
        values, amounts, exact = np.empty(self.n), self._amounts(weights), "soft" in self.oracles
        space = self._compiled("soft" if exact else "smoothed")
        if _stepwise(space):
            return self._soft_in_steps(space, theta, mu, threads, amounts)
        shared = np.array([span is None for span in self.spans()])
        ask, ask_all = (self.marginals, driver.soft) if exact else (self.smoothed, driver.smoothed)

        def lane(low: int, high: int) -> list[np.ndarray]:
            pairs = zip(theta, shared, strict=True)
            counts = [np.zeros(array.size) if common else array.reshape(-1) for array, common in pairs]
            if space is not None:
                pass_of = for_space(ask_all, space)
                pass_of(space, _flat(theta), *self.layout, shared, low, high, mu, amounts, values, tuple(counts))
                return counts
            for i in range(low, high):
                values[i], found = ask(i, self.own(theta, i), mu)
                for k, part in enumerate(found):
                    at, size = self.layout.first[k, i], part.size
                    if shared[k]:
                        counts[k] += amounts[i] * part.reshape(-1)
                    else:
                        counts[k][at : at + size] = amounts[i] * part.reshape(-1)
            return counts

        found = threads.run(lane, threads.lanes(self._effort))
        for k in np.flatnonzero(shared):
            theta[k][...] = np.sum([counts[k] for counts in found], axis=0).reshape(theta[k].shape)
        return values, theta

    def slack(
        self, theta: Parts, gold: np.ndarray, cost: Any, threads: Threads = SERIAL
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Max-oracle of slack rescaling: the largest loss times margin of every example, who attains it, its loss.

        That is max_y ell_i(y) (1 + s_i(y) - s_i(gold)), (n,), with ``theta`` the scores without the loss, ``gold`` the
        gold outputs, which are the answer where nothing is above 0, and ``cost`` an ``m3n.losses.Cost``. The default
        searches with ``hard``, see ``m3n.structures.slack``: exact, or given up.
        """
        return search(self, theta, gold, cost)

    def branches(self, one: np.ndarray, other: np.ndarray) -> list[Restriction]:
        """Two sets that together have all outputs of the only example, and keep ``one`` and ``other`` apart.

        A set is told by parts that its outputs must not have, or must have. The default looks for a row with different
        labels if there is one label per row, and for a part that only one of the two outputs has if that is how the
        structure keeps them; an empty list says that it cannot divide.
        """
        if self.one_label_per_row:
            return self._label_branches(one, other)
        if type(self).local_parts is not Structure.local_parts:
            return []
        only_one, only_other = (np.setdiff1d(a[a >= 0], b) for a, b in ((one, other), (other, one)))
        if not (only_one.size or only_other.size):
            return []
        part = int(only_one[0] if only_one.size else only_other[0])
        number = int(np.searchsorted(self.layout.before[:, 0], part, side="right")) - 1
        mask = np.zeros(self.shapes[number], bool)
        mask.reshape(-1)[part - self.layout.before[number, 0]] = True
        return [Restriction(number, mask), Restriction(number, mask, required=True)]

    def loss_units(self, cost: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """For a compiled ``slack``: a unit of every example's losses, and the largest in units; None: there is none."""
        return None

    def log_size(self) -> np.ndarray:
        """log |Y_i| of every example, shape (n,): the largest entropy."""
        raise TypeError(f"{type(self).__name__} does not say how many outputs it has: define log_size")

    def diameter(self) -> np.ndarray:
        """The largest h that ``soft`` works with, (n,): the entropy's, log |Y_i|, or that of an own prox."""
        return self.log_size()

    def radius(self, norms: Parts) -> float:
        """Bound max |phi(x_i, y_i) - phi(x_i, y)| from the feature norms of the parts.

        The default takes twice the largest sum of the norms of an output's parts.
        """
        widths = (shape[norm.ndim :] for shape, norm in zip(self.shapes, norms, strict=True))
        spread = (norm.reshape(norm.shape + (1,) * len(width)) for norm, width in zip(norms, widths, strict=True))
        scores = (np.broadcast_to(norm, shape).copy() for norm, shape in zip(spread, self.shapes, strict=True))
        return 2.0 * float(self.hard(tuple(scores))[0].max())

    # packed outputs

    def pack(self, outputs: Sequence[Any] | np.ndarray) -> np.ndarray:
        """Check outputs as the user writes them and join them to one array."""
        if len(outputs) != self.n:
            raise ValueError(f"{self.n} {self.words.example}s but {len(outputs)} {self.words.outputs}")
        packed = np.full(int(self._room[-1]), -1)
        for i, output in enumerate(outputs):
            parts = self.checked_parts(self.parts_of(output, i), i)
            packed[self._room[i] : self._room[i] + len(parts)] = parts
        return packed

    def unpack(self, packed: np.ndarray) -> list[Any]:
        """Cut packed outputs into one per example, as the user writes them."""
        parts, counts = self.local_parts(packed)
        return [self.output_of(parts[i, : counts[i]], i) for i in range(self.n)]

    def entries_of(self, examples: Examples) -> Selection:
        """Which entries of packed outputs belong to some examples."""
        chosen = np.arange(self.n)[examples]
        return ranges(self._room[chosen], np.diff(self._room)[chosen])

    def local_parts(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The parts of every example's output and their numbers: arrays of int, (n, most) and (n,).

        Parts come in ascending order, and one that counts twice comes twice.
        """
        most = self.most_parts()
        owner, used = np.repeat(np.arange(self.n), most), packed >= 0
        place = np.arange(len(packed)) - self._room[owner]
        parts = np.zeros((self.n, int(most.max())), np.int64)
        parts[owner[used], place[used]] = packed[used]
        return parts, np.bincount(owner[used], minlength=self.n)

    def most_parts(self) -> np.ndarray:
        """A bound on the number of parts of an output of every example, shape (n,); the default is very careful."""
        return self.layout.lengths.sum(axis=0)

    def encode(self, packed: np.ndarray, out: Parts | None = None, weights: np.ndarray | None = None) -> Parts:
        """The parts of packed outputs as arrays of zeros and ones (counts where shared).

        With ``weights`` (n,) those of example i are weights[i] instead of one.
        """
        out = out if out is not None else self.empty()
        for array in out:
            array[...] = 0.0
        self._add(packed, self._amounts(weights), out, SERIAL)
        return out

    def subtract(
        self, packed: np.ndarray, parts: Parts, threads: Threads = SERIAL, weights: np.ndarray | None = None
    ) -> None:
        """parts -= the parts of packed outputs, in place; weighted as in ``encode``."""
        self._add(packed, -self._amounts(weights), parts, threads)

    def score(self, theta: Parts, packed: np.ndarray, threads: Threads = SERIAL) -> np.ndarray:
        """The scores of packed outputs, example by example, shape (n,)."""
        scores = np.zeros(self.n)
        for array, (places, owner) in zip(theta, self.located(packed), strict=True):
            scores += np.bincount(owner, array.reshape(-1)[places], self.n)
        return scores

    def select(self, examples: Examples) -> tuple[Structure, tuple[Selection, ...]]:
        """The structure of some examples only, and which rows of every array of theta are theirs."""
        return Selected(self, np.arange(self.n)[examples]), self.rows_of(examples)

    def rows_of(self, examples: Examples) -> tuple[Selection, ...]:
        """Which rows of every array of theta belong to some examples."""
        chosen = np.arange(self.n)[examples]
        rows = (None if span is None else ranges(span[chosen], np.diff(span)[chosen]) for span in self.spans())
        return tuple(rows)

    def space(self) -> Any:
        """Plain arrays for compiled oracles of single examples, see ``oracles.hooks``; None: there are none."""
        return None

    def empty(self) -> Parts:
        """Uninitialised arrays in the layout of theta."""
        return tuple(np.empty(shape) for shape in self.shapes)

    def checked_parts(self, given: np.ndarray | Sequence[int], example: int) -> np.ndarray:
        """Parts in ascending order, if they are an example's own and not too many."""
        parts, size = np.sort(np.asarray(given, dtype=np.int64)), int(self.layout.lengths[:, example].sum())
        if parts.size and not (parts[0] >= 0 and parts[-1] < size):
            wrong = parts[0] if parts[0] < 0 else parts[-1]
            raise ValueError(f"example {example} has a part {wrong}, but its own theta has the parts 0..{size - 1}")
        if len(parts) > self._most[example]:
            raise ValueError(f"example {example} has {len(parts)} parts, but most_parts() says {self._most[example]}")
        return parts

    def own(self, theta: Parts, example: int) -> Parts:
        """The own theta of an example: views of its rows of every array."""
        pairs = zip(theta, self.spans(), strict=True)
        return tuple(array if span is None else array[span[example] : span[example + 1]] for array, span in pairs)

    def cut(self, flat: np.ndarray, example: int) -> Parts:
        """The own theta of an example from one flat vector: views of it in the shapes of ``own``."""
        kinds = zip(np.split(flat, self.layout.before[1:, example]), self.shapes, self.spans(), strict=True)
        return tuple(part.reshape(shape if span is None else (-1, *shape[1:])) for part, shape, span in kinds)

    @cached_property
    def layout(self) -> Layout:
        """Where arrays stand in the own theta of every example."""
        lengths, first = np.empty((2, len(self.shapes), self.n), np.int64)
        for k, (span, shape) in enumerate(zip(self.spans(), self.shapes, strict=True)):
            width = int(np.prod(shape[span is not None :]))
            lengths[k] = width if span is None else np.diff(span) * width
            first[k] = 0 if span is None else span[:-1] * width
        return Layout(lengths, np.cumsum(lengths, axis=0) - lengths, first)

    # label losses

    def labels_of(self, packed: np.ndarray) -> np.ndarray:
        """The label of every row of the first array of theta, for label losses."""
        raise TypeError(
            f"outputs of {type(self).__name__} do not have one label per row of theta, which this loss counts; "
            "take m3n.losses.PartLoss, or a loss of your own with costs of parts"
        )

    @property
    def has_labels(self) -> bool:
        """Whether ``labels_of`` has an answer."""
        return self._defines("labels_of")

    def positions(self) -> np.ndarray:
        """How many labels every example has to get right, (n,); the default counts rows of the first array of theta."""
        first = self.spans()[0]
        if first is None:
            raise ValueError(
                f"the first array of theta of {type(self).__name__} is shared by all examples, so they have no "
                "positions to weigh; take Hamming() without position_weight, or a loss of your own"
            )
        return np.diff(first)

    def pair_arrays(self) -> list[int]:
        """The arrays of theta with a table of labels for every pair of neighbours, in which each pair comes once."""
        labels = self.shapes[0][1]
        tables = zip(self.shapes, self.spans(), strict=True)
        return [k for k, (shape, span) in enumerate(tables) if shape[1:] == (labels, labels) and span is not None]

    @property
    def original(self) -> Structure:
        """The output spaces that losses speak of: of a relaxation those without copies, of all others these."""
        return self

    def without_copies(self, packed: np.ndarray) -> np.ndarray:
        """Packed outputs of ``original`` from packed outputs with copies that agree."""
        return packed

    def copied(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Numbers by row of an array of theta of ``original``, shared out among the rows here that are copies."""
        return rows

    def _label_branches(self, one: np.ndarray, other: np.ndarray) -> list[Restriction]:
        """The first row with different labels: all outputs without the label of ``one`` there, and all with it."""
        label, another = self.labels_of(one), self.labels_of(other)
        rows = np.flatnonzero(label != another)
        if rows.size == 0:
            return []
        without, only = np.zeros(self.shapes[0], bool), np.zeros(self.shapes[0], bool)
        without[rows[0], label[rows[0]]] = True
        only[rows[0]] = ~without[rows[0]]
        return [Restriction(0, without), Restriction(0, only)]

    # what the defaults need

    def _defines(self, *names: str) -> bool:
        return any(getattr(type(self), name) is not getattr(Structure, name) for name in names)

    def _compiled(self, hook: str) -> Any:
        """The space, if it has a compiled form of a hook."""
        space = self.space()
        return space if space is not None and implemented(("workspace", hook), type(space)) else None

    def _divided(self, theta: Parts) -> tuple[Parts, np.ndarray, np.ndarray]:
        """Own arrays, flat, where the parts of examples begin in them (arrays, n + 1), all shared tables in one vector.

        For spaces whose oracles come in steps, see ``oracles.hooks``.
        """
        pairs = list(zip(theta, self.spans(), strict=True))
        own = tuple(array.reshape(-1) for array, span in pairs if span is not None)
        return own, self._first, _joined(tuple(array for array, span in pairs if span is None))

    @cached_property
    def _first(self) -> np.ndarray:
        """(own arrays, n + 1) where the parts of every example begin."""
        pairs = zip(self.shapes, self.spans(), strict=True)
        return np.array([span * int(np.prod(shape[1:])) for shape, span in pairs if span is not None])

    def _soft_in_steps(
        self, space: Any, theta: Parts, mu: float, threads: Threads, weights: np.ndarray
    ) -> tuple[np.ndarray, Parts]:
        """``soft`` where the shared tables are read once for all examples of a thread, and written once."""
        arrays, values = self._divided(theta), np.empty(self.n)

        def lane(low: int, high: int) -> np.ndarray:
            return self._soft_range(space, arrays, low, high, mu, weights, values)

        counts = np.sum(threads.run(lane, threads.lanes(self._effort)), axis=0)
        tables = [array for array, span in zip(theta, self.spans(), strict=True) if span is None]
        for table, piece in zip(tables, np.split(counts, np.cumsum([t.size for t in tables[:-1]])), strict=True):
            table[...] = piece.reshape(table.shape)
        return values, theta

    def _soft_range(
        self, space: Any, arrays: Any, low: int, high: int, mu: float, weights: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        """The exp-oracle of examples low..high-1 from ``_divided`` arrays; the marginals of shared tables."""
        (own, first, shared), counts = arrays, np.empty(len(arrays[2]))
        for_space(driver.soft_in_steps, space)(space, own, first, shared, low, high, mu, weights, values, counts)
        return counts

    def _from_lists(self, lists: np.ndarray) -> np.ndarray:
        """Packed outputs from the beginnings of lists of parts that ``_room`` has room for."""
        return lists

    @cached_property
    def _most(self) -> np.ndarray:
        return self.most_parts()

    @cached_property
    def _room(self) -> np.ndarray:
        """(n + 1,) where the list of parts of every example begins."""
        return np.concatenate([[0], np.cumsum(self._most)])

    @cached_property
    def _effort(self) -> np.ndarray:
        """(n + 1,) running sum of what examples cost."""
        return np.concatenate([[0], np.cumsum(self.layout.lengths.sum(axis=0))])

    def _amounts(self, weights: np.ndarray | None) -> np.ndarray:
        return np.ones(self.n) if weights is None else weights

    def located(self, packed: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """For every array of theta the flat positions of the parts of packed outputs, and their examples."""
        parts, counts = self.local_parts(packed)
        places, owners = np.empty((2, int(counts.sum())), np.int64)
        ends = driver.locate(parts, counts, *self.layout, places, owners)
        return list(zip(np.split(places, ends[:-1]), np.split(owners, ends[:-1]), strict=True))

    def _add(self, packed: np.ndarray, amounts: np.ndarray, parts: Parts, threads: Threads) -> None:
        """Add amounts (n,) to the parts of packed outputs."""
        for array, (places, owner) in zip(parts, self.located(packed), strict=True):
            np.add.at(array.reshape(-1), places, amounts[owner])


class Selected(Structure):
    """Some examples of a structure, in any order: questions are handed on.

    Parameters
    ----------
    whole : Structure
        The structure.
    chosen : array of int
        Its examples.
    """

    def __init__(self, whole: Structure, chosen: np.ndarray):
        self.whole, self.chosen, self.n = whole, chosen, len(chosen)
        counts = [None if span is None else np.diff(span)[chosen] for span in whole.spans()]
        self._spans = tuple(None if c is None else np.concatenate([[0], np.cumsum(c)]) for c in counts)
        shapes = zip(whole.shapes, self._spans, strict=True)
        self.shapes = tuple(shape if span is None else (int(span[-1]), *shape[1:]) for shape, span in shapes)

    @property
    def oracles(self) -> frozenset[str]:
        return self.whole.oracles

    def spans(self) -> tuple[np.ndarray | None, ...]:
        return self._spans

    def best(self, example: int, theta: Parts) -> np.ndarray | Sequence[int]:
        return self.whole.best(int(self.chosen[example]), theta)

    def marginals(self, example: int, theta: Parts, mu: float) -> tuple[float, Parts]:
        return self.whole.marginals(int(self.chosen[example]), theta, mu)

    def smoothed(self, example: int, theta: Parts, mu: float) -> tuple[float, Parts]:
        return self.whole.smoothed(int(self.chosen[example]), theta, mu)

    def parts_of(self, output: Any, example: int) -> np.ndarray | Sequence[int]:
        return self.whole.parts_of(output, int(self.chosen[example]))

    def output_of(self, parts: np.ndarray, example: int) -> Any:
        return self.whole.output_of(parts, int(self.chosen[example]))

    def enumerate(self, example: int) -> Iterator[np.ndarray]:
        return self.whole.enumerate(int(self.chosen[example]))

    def most_parts(self) -> np.ndarray:
        return self.whole.most_parts()[self.chosen]

    def log_size(self) -> np.ndarray:
        return self.whole.log_size()[self.chosen]

    def diameter(self) -> np.ndarray:
        return self.whole.diameter()[self.chosen]


def _stepwise(space: Any) -> bool:
    return space is not None and implemented(STEPS, type(space))


def _joined(arrays: Parts) -> np.ndarray:
    return np.concatenate([array.reshape(-1) for array in arrays])


def _flat(arrays: Parts) -> Parts:
    return tuple(array.reshape(-1) for array in arrays)
