"""Which arcs dependency trees may have, and which labels an arc may have.

Words of a sentence are numbered 1..length; 0 is the root, left of all words. An arc (h, d) makes h the head of d. Arcs
are listed sentence after sentence, by their dependent, then by their head, so those into a word are neighbours. A
*labelled part* is an arc with one of its labels; these are listed arc after arc, by their label.

Pairs of arcs that are scored together:

- *siblings*, (h, d) and (h, s) with s strictly between h and d: s is the next child of h on the way from d to h;
- *grandchildren*, (h, d) and (g, h): the head of the head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from m3n.packed.ragged import numbers, ranges


@dataclass(frozen=True, eq=False)
class Arcs:
    """Candidate arcs of sentences, and candidate labels of arcs.

    ``Arcs.all`` makes every arc with every label, ``Arcs.of`` sorts lists of pairs.

    Parameters
    ----------
    lengths : array of int (n,)
        Words of every sentence, at least 1.
    first : array of int (n + 1,)
        First arc of every sentence.
    head, dependent : array of int (arcs,)
        Words that an arc joins, numbered from 1 within the sentence; head 0 is the root. The arcs of a sentence are
        sorted by their dependent, then by their head, and every word has one at least.
    labels : int
        Number of labels; 1: arcs have no labels.
    label_first : array of int (arcs + 1,) or None
        First labelled part of every arc; None: every arc may have all labels.
    label : array of int (parts,) or None
        Label of every labelled part, ascending within an arc; None: every arc may have all labels.

    Examples
    --------
    >>> from m3n.structures import Arcs
    >>> arcs = Arcs.of([2], [[(0, 1), (2, 1), (0, 2), (1, 2)]])
    >>> arcs.head.tolist(), arcs.dependent.tolist()
    ([0, 2, 0, 1], [1, 1, 2, 2])
    >>> [inner.tolist() for inner in arcs.siblings()]  # (0, 2) may follow (0, 1), which is arc 0
    [[0, 1, 2, 2, 3], [-1, -1, -1, 0, -1]]
    """

    lengths: np.ndarray
    first: np.ndarray
    head: np.ndarray
    dependent: np.ndarray
    labels: int = 1
    label_first: np.ndarray | None = None
    label: np.ndarray | None = None

    def __post_init__(self) -> None:
        kinds = {"lengths": np.int64, "first": np.int64, "head": np.int32, "dependent": np.int32}
        if self.label is not None or self.label_first is not None:
            kinds |= {"label_first": np.int64, "label": np.int32}
        for name, kind in kinds.items():
            object.__setattr__(self, name, _integers(name, getattr(self, name), kind))
        object.__setattr__(self, "labels", int(self.labels))
        self._check_sizes()
        self._check_arcs()
        self._check_labels()

    @classmethod
    def all(cls, lengths: Sequence[int] | np.ndarray, labels: int = 1) -> Arcs:
        """Every arc with every label.

        Parameters
        ----------
        lengths : sequence of int (n,)
            Words of every sentence, at least 1.
        labels : int
            Number of labels.
        """
        lengths = _integers("lengths", lengths, np.int64)
        _check_lengths(lengths)
        words = np.repeat(lengths, lengths)  # length of the sentence of every word: as many arcs lead to it
        dependent = np.repeat(_counted(lengths) + 1, words)
        head = _counted(words)
        head += head >= dependent  # a word is not its own head
        return cls(lengths, _running(lengths**2), head, dependent, labels)

    @classmethod
    def of(
        cls,
        lengths: Sequence[int] | np.ndarray,
        arcs: Sequence[Any],
        labels: int = 1,
        allowed: Sequence[Any] | None = None,
    ) -> Arcs:
        """From pairs (head, dependent) in any order.

        Parameters
        ----------
        lengths : sequence of int (n,)
            Words of every sentence, at least 1.
        arcs : sequence of array of int (count, 2)
            The arcs of every sentence, a head and a dependent each.
        labels : int
            Number of labels.
        allowed : sequence of sequence of sequence of int, optional
            For every sentence and every arc in the order of ``arcs`` the labels it may have, in any order; all labels
            if nothing is given.
        """
        if len(arcs) != len(lengths) or (allowed is not None and len(allowed) != len(lengths)):
            raise ValueError(f"{len(lengths)} sentences need as many lists of arcs, and of their labels, if any")
        _check_lengths(np.asarray(lengths))
        pairs = [_integers(f"sentence {i}: arcs", np.reshape(own, (-1, 2)), np.int32) for i, own in enumerate(arcs)]
        orders = [np.lexsort(own.T) for own in pairs]
        head, dependent = np.concatenate([own[order] for own, order in zip(pairs, orders, strict=True)]).T
        first = np.cumsum([0, *map(len, pairs)])
        if allowed is None:
            return cls(np.asarray(lengths), first, head, dependent, labels)
        lists = [sorted(given[k]) for given, order in zip(allowed, orders, strict=True) for k in order]
        label = np.array([label for own in lists for label in own], dtype=np.int32)
        return cls(np.asarray(lengths), first, head, dependent, labels, np.cumsum([0, *map(len, lists)]), label)

    @property
    def n(self) -> int:
        """Number of sentences."""
        return len(self.lengths)

    @property
    def parts(self) -> int:
        """Number of labelled parts."""
        return len(self.head) * self.labels if self.label is None else len(self.label)

    @cached_property
    def sentence(self) -> np.ndarray:
        """The sentence of every arc, (arcs,)."""
        return np.repeat(np.arange(self.n), np.diff(self.first))

    @cached_property
    def part_first(self) -> np.ndarray:
        """The first labelled part of every arc, (arcs + 1,)."""
        if self.label_first is not None:
            return self.label_first
        return np.arange(len(self.head) + 1) * self.labels

    @property
    def part_arc(self) -> np.ndarray:
        """The arc of every labelled part, (parts,)."""
        return np.repeat(np.arange(len(self.head)), np.diff(self.part_first))

    @property
    def part_label(self) -> np.ndarray:
        """The label of every labelled part, (parts,)."""
        return np.arange(self.parts) % self.labels if self.label is None else self.label

    @cached_property
    def word_first(self) -> np.ndarray:
        """First arc into every word of every sentence, one sentence after another, (words + 1,)."""
        return _running(np.bincount(self._word, minlength=int(self.lengths.sum())))

    @cached_property
    def words(self) -> np.ndarray:
        """First word of every sentence, (n + 1,)."""
        return _running(self.lengths)

    def siblings(self) -> tuple[np.ndarray, np.ndarray]:
        """The arc of every sibling part, and the next sibling on the way to the head.

        Of each arc (h, d), in the order of arcs, first -1 (d is the first child of h on its side), then every arc
        (h, s) with s strictly between h and d, by its number, in ascending order of the distance from h.
        """
        counts = self.inner + 1
        arc = np.repeat(np.arange(len(counts)), counts)
        place = _counted(counts) - 1  # among the arcs on this side of the head; -1: none
        group = (self.rank - self.inner)[arc]
        return arc, np.where(place < 0, -1, self.by_head[group + np.maximum(place, 0)])

    def grandchildren(self) -> tuple[np.ndarray, np.ndarray]:
        """The arc of every grandchild part, and the arc into its head.

        Of each arc (h, d) with h != 0, in the order of arcs, every arc (g, h) with g != d, in ascending order of g.
        """
        arc, upper = self._uppers()
        kept = self.head[upper] != self.dependent[arc]
        return arc[kept], upper[kept]

    @cached_property
    def sibling_first(self) -> np.ndarray:
        """First sibling part of every arc, (arcs + 1,)."""
        return _running(self.inner + 1)

    @cached_property
    def grandchild_first(self) -> np.ndarray:
        """First grandchild part of every arc, (arcs + 1,)."""
        return _running(np.bincount(self.grandchildren()[0], minlength=len(self.head)))

    @cached_property
    def by_head(self) -> np.ndarray:
        """Arcs sorted by sentence, head, side (left first) and distance from the head, (arcs,)."""
        right = self.dependent > self.head
        return np.lexsort((np.abs(self.dependent - self.head), right, self.head, self.sentence))

    @cached_property
    def side_first(self) -> np.ndarray:
        """Where the arcs of a head and side begin in ``by_head``, for the root and all words of every sentence."""
        heads = self.lengths + 1
        side = 2 * (np.cumsum(heads) - heads)[self.sentence] + 2 * self.head + (self.dependent > self.head)
        return _running(np.bincount(side, minlength=2 * int(heads.sum())))

    @cached_property
    def rank(self) -> np.ndarray:
        """Where an arc stands in ``by_head``, (arcs,)."""
        rank = np.empty_like(self.by_head)
        rank[self.by_head] = np.arange(len(rank))
        return rank

    @cached_property
    def inner(self) -> np.ndarray:
        """Number of arcs from the same head that end strictly between it and the dependent, (arcs,)."""
        return _counted(np.diff(self.side_first))[self.rank]

    @cached_property
    def reverse(self) -> np.ndarray:
        """Of every arc (h, d) the place of (d, h) among the arcs into h; -1 where it is no candidate, (arcs,)."""
        arc, upper = self._uppers()
        found = np.flatnonzero(self.head[upper] == self.dependent[arc])
        places = np.full(len(self.head), -1)
        places[arc[found]] = upper[found] - self.word_first[self._head_word[arc[found]]]
        return places

    def only(self, kept: np.ndarray) -> Arcs:
        """Some of the arcs, with their labels.

        Parameters
        ----------
        kept : array of bool (arcs,)
            Which ones; every word must keep one.
        """
        kept = np.asarray(kept, bool)
        chosen = np.flatnonzero(kept)
        labelled: tuple[Any, Any] = (None, None)
        if self.label_first is not None and self.label is not None:
            counts = np.diff(self.label_first)[chosen]
            labelled = _running(counts), self.label[numbers(self.label_first[chosen], counts)]
        first = np.concatenate([[0], np.cumsum(kept)])[self.first]
        return Arcs(self.lengths, first, self.head[chosen], self.dependent[chosen], self.labels, *labelled)

    def select(self, sentences: slice | np.ndarray) -> Arcs:
        """The arcs of some sentences."""
        chosen = np.arange(self.n)[sentences]
        counts = np.diff(self.first)[chosen]
        own = ranges(self.first[chosen], counts)
        labelled: tuple[Any, Any] = (None, None)
        if self.label_first is not None and self.label is not None:
            begins, ends = self.label_first[self.first[chosen]], self.label_first[self.first[chosen + 1]]
            labelled = _running(np.diff(self.label_first)[own]), self.label[ranges(begins, ends - begins)]
        head, dependent = self.head[own], self.dependent[own]
        return Arcs(self.lengths[chosen], _running(counts), head, dependent, self.labels, *labelled)

    @cached_property
    def _word(self) -> np.ndarray:
        """The dependent of every arc, numbered over all sentences."""
        return self.words[self.sentence] + self.dependent - 1

    @property
    def _head_word(self) -> np.ndarray:
        """The head of every arc, numbered over all sentences; meaningless for the root."""
        return self.words[self.sentence] + self.head - 1

    def _uppers(self) -> tuple[np.ndarray, np.ndarray]:
        """Every arc (h, d), h != 0, with every arc into h."""
        arc = np.flatnonzero(self.head > 0)
        above = self._head_word[arc]
        counts = self.word_first[above + 1] - self.word_first[above]
        return np.repeat(arc, counts), numbers(self.word_first[above], counts)

    def _check_sizes(self) -> None:
        _check_lengths(self.lengths)
        first, count = self.first, len(self.head)
        if first.shape != (self.n + 1,) or first[0] != 0 or first[-1] != count or (np.diff(first) < 0).any():
            raise ValueError(f"first must be {self.n + 1} ascending numbers from 0 to the number of arcs, {count}")
        if self.dependent.shape != self.head.shape:
            raise ValueError(f"{count} heads, but {len(self.dependent)} dependents: give every arc one of each")

    def _check_arcs(self) -> None:
        lengths, head, dependent = self.lengths[self.sentence], self.head, self.dependent
        wrong = (head < 0) | (head > lengths) | (dependent < 1) | (dependent > lengths) | (head == dependent)
        self._refuse(wrong, "dependents are words 1 to {length}, heads these or 0, and no word is its own head")
        order = (self.sentence[1:] == self.sentence[:-1]) & (dependent[1:] == dependent[:-1]) & (head[1:] <= head[:-1])
        order |= (self.sentence[1:] == self.sentence[:-1]) & (dependent[1:] < dependent[:-1])
        after = np.concatenate([[False], order])
        self._refuse(after, "it is listed twice, or arcs are not sorted by dependent, then head; Arcs.of sorts them")
        missing = np.flatnonzero(np.diff(self.word_first) == 0)
        if missing.size:
            i = int(np.searchsorted(self.words, missing[0], side="right")) - 1
            word = int(missing[0] - self.words[i]) + 1
            raise ValueError(f"sentence {i}, word {word} has no candidate head; let at least one arc lead to it")

    def _check_labels(self) -> None:
        if self.labels < 1:
            raise ValueError(f"labels must be at least 1, got {self.labels}")
        if self.label_first is None or self.label is None:
            return
        begins, label = self.label_first, self.label
        if begins.shape != (len(self.head) + 1,) or begins[0] != 0 or begins[-1] != len(label):
            raise ValueError(f"label_first must be {len(self.head) + 1} numbers from 0 to that of labels, {len(label)}")
        self._refuse(np.diff(begins) < 1, "it has no label; leave the arc out, or give it one")
        arc = np.repeat(np.arange(len(self.head)), np.diff(begins))
        unsorted = np.concatenate([[False], (arc[1:] == arc[:-1]) & (label[1:] <= label[:-1])])
        wrong = np.zeros(len(self.head), bool)
        wrong[arc[(label < 0) | (label >= self.labels) | unsorted]] = True
        self._refuse(wrong, f"its labels must ascend within 0..{self.labels - 1}")

    def _refuse(self, wrong: np.ndarray, reason: str) -> None:
        """Name the first arc that is wrong."""
        if wrong.any():
            a = int(wrong.argmax())
            i = int(self.sentence[a])
            where = f"sentence {i}, word {self.dependent[a]}: arc from {self.head[a]}"
            raise ValueError(f"{where}: {reason.format(length=self.lengths[i])}")


def _integers(name: str, values: Any, kind: type) -> np.ndarray:
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers, got {array.dtype}")
    return np.ascontiguousarray(array, dtype=kind)


def _check_lengths(lengths: np.ndarray) -> None:
    if lengths.ndim != 1 or lengths.size == 0:
        raise ValueError("lengths must list the number of words of at least one sentence")
    if lengths.min() < 1:
        raise ValueError(f"sentence {int(lengths.argmin())} has no words; leave empty sentences out")


def _running(counts: np.ndarray) -> np.ndarray:
    """Where groups of these sizes begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _counted(counts: np.ndarray) -> np.ndarray:
    """0, 1, ... within groups of these sizes."""
    return numbers(np.zeros(len(counts), np.int64), counts)
