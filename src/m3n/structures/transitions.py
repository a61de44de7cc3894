"""Which label may follow which: constraints on label sequences, by the labels' names.

A sequence is allowed when its first label may stand first, its last label may stand last, and no pair of neighbours is
forbidden. Chunks (phrases, names, words) are written with a prefix per position, B-NP I-NP, in one of these schemes:

    IOB2    B begins a chunk, I continues it, O is outside
    IOB1    I is inside of a chunk; B only begins one that directly follows a chunk of the same type
    IOE2    E ends a chunk, I comes before it
    IOE1    I is inside of a chunk; E only ends one that a chunk of the same type directly follows
    BIOES   chunks of one position are S; longer ones begin with B, end with E, and have I between

BIOES has other letters in other places: BILOU writes L for E and U for S, BMES writes M for I, BMEWO W for S as well. A
scheme is a rule about two neighbours, given prefix and type of both; what comes before the first label and after the
last one counts as O.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

Label = Any  # a string or a number
BIOES = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S", "W": "S"}
BILOU = {"B": "B", "I": "I", "L": "E", "U": "S"}
BMES = {"B": "B", "M": "I", "E": "E", "S": "S"}
BMEWO = {"B": "B", "M": "I", "E": "E", "W": "S"}


@dataclass(frozen=True, eq=False, repr=False)
class Transitions:
    """Allowed starts, transitions and ends of label sequences.

    Parameters
    ----------
    labels : sequence of labels
        Strings or numbers, all different.
    forbidden : array of bool (labels, labels)
        ``forbidden[i, j]``: label j never follows label i.
    forbidden_start, forbidden_end : array of bool (labels,)
        Labels that never stand first, or last.

    Examples
    --------
    >>> from m3n.structures import Transitions
    >>> iob = Transitions.iob(["B-NP", "I-NP", "O"])
    >>> iob
    Transitions(3 labels; forbidden: 1 of 9 transitions, 1 start, 0 ends)
    >>> iob.allows(["O", "B-NP", "I-NP"]), iob.allows(["O", "I-NP"])
    (True, False)
    """

    labels: tuple[Label, ...]
    forbidden: np.ndarray
    forbidden_start: np.ndarray
    forbidden_end: np.ndarray

    def __post_init__(self) -> None:
        labels = tuple(np.asarray(self.labels).tolist() if isinstance(self.labels, np.ndarray) else self.labels)
        if not labels or len(set(labels)) < len(labels):
            raise ValueError(f"labels must be at least one and all different, got {labels!r:.200}")
        object.__setattr__(self, "labels", labels)
        for name, dimensions in (("forbidden", 2), ("forbidden_start", 1), ("forbidden_end", 1)):
            mask = np.array(getattr(self, name), dtype=bool)
            if mask.shape != (len(labels),) * dimensions:
                raise ValueError(f"{name} must have shape {(len(labels),) * dimensions}, got {mask.shape}")
            mask.flags.writeable = False
            object.__setattr__(self, name, mask)
        self._check_possible()

    @classmethod
    def iob(cls, labels: Iterable[str]) -> Transitions:
        """IOB2: I-X comes after B-X or I-X only.

        Parameters
        ----------
        labels : sequence of str
            "O", "B-X" and "I-X" for any X, or "B" and "I" where there is one type of chunks.
        """

        return cls._within_chunks(labels, "I", "IOB2")

    @classmethod
    def iob1(cls, labels: Iterable[str]) -> Transitions:
        """IOB1: B-X comes directly after B-X or I-X only, where it parts two chunks of one type.

        Parameters
        ----------
        labels : sequence of str
            As in ``iob``.
        """

        return cls._within_chunks(labels, "B", "IOB1")

    @classmethod
    def _within_chunks(cls, labels: Iterable[str], prefix: str, scheme: str) -> Transitions:
        """Labels with this prefix come directly after a label of the same type only."""

        def allowed(left: Tag, right: Tag) -> bool:
            return right[0] != prefix or (left[0] in ("B", "I") and left[1] == right[1])

        return cls._scheme(labels, {"B": "B", "I": "I"}, allowed, scheme)

    @classmethod
    def ioe2(cls, labels: Iterable[str]) -> Transitions:
        """IOE2: I-X comes before I-X or E-X only.

        Parameters
        ----------
        labels : sequence of str
            "O", "I-X" and "E-X" for any X, or "I" and "E" where there is one type of chunks.
        """

        return cls._before_chunks(labels, "I", "IOE2")

    @classmethod
    def ioe1(cls, labels: Iterable[str]) -> Transitions:
        """IOE1: E-X comes directly before I-X or E-X only, where it parts two chunks of one type.

        Parameters
        ----------
        labels : sequence of str
            As in ``ioe2``.
        """

        return cls._before_chunks(labels, "E", "IOE1")

    @classmethod
    def _before_chunks(cls, labels: Iterable[str], prefix: str, scheme: str) -> Transitions:
        """Labels with this prefix come directly before a label of the same type only."""

        def allowed(left: Tag, right: Tag) -> bool:
            return left[0] != prefix or (right[0] in ("I", "E") and left[1] == right[1])

        return cls._scheme(labels, {"I": "I", "E": "E"}, allowed, scheme)

    @classmethod
    def bioes(cls, labels: Iterable[str]) -> Transitions:
        """BIOES and its relatives BILOU, BMES and BMEWO: every chunk shows its beginning and its end.

        Parameters
        ----------
        labels : sequence of str
            "O", and for any X "B-X", "I-X" (or M), "E-X" (or L), "S-X" (or U, W); without "-X" where there is one type.
        """

        return cls._with_ends(labels, BIOES, "BIOES")

    @classmethod
    def bilou(cls, labels: Iterable[str]) -> Transitions:
        """BILOU: as BIOES, with L for E and U for S, and no other letters.

        Parameters
        ----------
        labels : sequence of str
            "O", and for any X "B-X", "I-X", "L-X", "U-X"; without "-X" where there is one type.
        """

        return cls._with_ends(labels, BILOU, "BILOU")

    @classmethod
    def bmes(cls, labels: Iterable[str]) -> Transitions:
        """BMES: as BIOES, with M for I, and no other letters.

        Parameters
        ----------
        labels : sequence of str
            "O", and for any X "B-X", "M-X", "E-X", "S-X"; without "-X" where there is one type.
        """

        return cls._with_ends(labels, BMES, "BMES")

    @classmethod
    def bmewo(cls, labels: Iterable[str]) -> Transitions:
        """BMEWO: as BIOES, with M for I and W for S, and no other letters.

        Parameters
        ----------
        labels : sequence of str
            "O", and for any X "B-X", "M-X", "E-X", "W-X"; without "-X" where there is one type.
        """

        return cls._with_ends(labels, BMEWO, "BMEWO")

    @classmethod
    def _with_ends(cls, labels: Iterable[str], letters: dict[str, str], scheme: str) -> Transitions:
        """Every chunk shows its beginning and its end."""

        def allowed(left: Tag, right: Tag) -> bool:
            if left[0] in ("B", "I") or right[0] in ("I", "E"):  # in the middle of a chunk
                return left[0] in ("B", "I") and right[0] in ("I", "E") and left[1] == right[1]
            return True

        return cls._scheme(labels, letters, allowed, scheme)

    @classmethod
    def observed(cls, sequences: Iterable[Sequence[Label]]) -> Transitions:
        """What occurs in some sequences is allowed, and nothing else.

        Parameters
        ----------
        sequences : sequences of labels
            Training data, for example; empty ones say nothing.
        """
        sequences = [found for sequence in sequences if (found := list(sequence))]
        labels = sorted({label for sequence in sequences for label in sequence})
        pairs = {pair for sequence in sequences for pair in pairwise(sequence)}
        return cls.allow(labels, pairs, {y[0] for y in sequences}, {y[-1] for y in sequences})

    @classmethod
    def forbid(
        cls,
        labels: Iterable[Label],
        pairs: Iterable[tuple[Label, Label]],
        start: Iterable[Label] = (),
        end: Iterable[Label] = (),
    ) -> Transitions:
        """Everything is allowed except for what is listed.

        Parameters
        ----------
        labels : sequence of labels
            All labels.
        pairs : sequence of pairs of labels
            (a, b): b never follows a.
        start, end : sequences of labels
            Labels that never stand first, or last.
        """
        labels = tuple(labels)
        return cls(labels, _table(labels, pairs), _row(labels, start, "start"), _row(labels, end, "end"))

    @classmethod
    def allow(
        cls,
        labels: Iterable[Label],
        pairs: Iterable[tuple[Label, Label]],
        start: Iterable[Label] | None = None,
        end: Iterable[Label] | None = None,
    ) -> Transitions:
        """Nothing is allowed except for what is listed.

        Parameters
        ----------
        labels, pairs : sequence of labels, sequence of pairs of labels
            All labels, and (a, b) where b may follow a.
        start, end : sequences of labels, optional
            Labels that may stand first, or last; None: all of them.
        """
        labels = tuple(labels)
        first = _row(labels, labels if start is None else start, "start")
        last = _row(labels, labels if end is None else end, "end")
        return cls(labels, ~_table(labels, pairs), ~first, ~last)

    def align(self, labels: Iterable[Label]) -> Transitions:
        """The same constraints for some of the labels, in another order.

        Parameters
        ----------
        labels : sequence of labels
            Such as an estimator's ``classes_``; all of them must be known here.
        """
        labels = tuple(labels.tolist() if isinstance(labels, np.ndarray) else labels)
        unknown = [label for label in labels if label not in self.labels]
        if unknown:
            raise ValueError(f"the constraints do not know these labels: {unknown}; they are about {list(self.labels)}")
        order = [self.labels.index(label) for label in labels]
        pairs = self.forbidden[np.ix_(order, order)]
        return Transitions(labels, pairs, self.forbidden_start[order], self.forbidden_end[order])

    def allows(self, sequence: Sequence[Label]) -> bool:
        """Whether a sequence of labels is allowed.

        Parameters
        ----------
        sequence : sequence of labels
            At least one.
        """
        numbers = np.array([self.labels.index(label) for label in sequence])
        return not self.violations(numbers, np.array([0, len(numbers)])).size

    def violations(self, labelling: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Positions of a packed labelling at which something forbidden stands; of a pair, the second position.

        Parameters
        ----------
        labelling : array of int (positions,)
            Numbers of labels, one sequence after another.
        offsets : array of int (sequences + 1,)
            Where the sequences begin and end.
        """
        begin, end = offsets[:-1], offsets[1:]
        first, last = begin[begin < end], end[begin < end] - 1
        wrong = np.zeros(len(labelling), dtype=bool)
        wrong[1:] = self.forbidden[labelling[:-1], labelling[1:]]
        wrong[first] = self.forbidden_start[labelling[first]]
        wrong[last] |= self.forbidden_end[labelling[last]]
        return np.flatnonzero(wrong)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transitions):
            return NotImplemented
        masks = ("forbidden", "forbidden_start", "forbidden_end")
        same = (np.array_equal(getattr(self, name), getattr(other, name)) for name in masks)
        return self.labels == other.labels and all(same)

    def __hash__(self) -> int:
        return hash((self.labels, self.forbidden.tobytes()))

    def __repr__(self) -> str:
        pairs, starts, ends = (int(mask.sum()) for mask in (self.forbidden, self.forbidden_start, self.forbidden_end))
        counts = f"{pairs} of {self.forbidden.size} transitions, {starts} start{'s' * (starts != 1)}"
        return f"Transitions({len(self.labels)} labels; forbidden: {counts}, {ends} end{'s' * (ends != 1)})"

    @classmethod
    def _scheme(cls, labels: Iterable[str], letters: dict[str, str], allowed: Any, name: str) -> Transitions:
        """The constraints of a rule about neighbours, the ends of a sequence being neighbours that are outside."""
        labels = tuple(labels)
        tags = [_parsed(label, letters, name) for label in labels]
        outside = ("O", "")
        pairs = [[not allowed(left, right) for right in tags] for left in tags]
        start = [not allowed(outside, tag) for tag in tags]
        return cls(labels, np.array(pairs), np.array(start), np.array([not allowed(tag, outside) for tag in tags]))

    def _check_possible(self) -> None:
        """Refuse constraints that no sequence of any length obeys."""
        reached = ~self.forbidden_start
        for _ in self.labels:
            reached = reached | (~self.forbidden[reached]).any(axis=0)
        if not (reached & ~self.forbidden_end).any():
            raise ValueError(f"no sequence of the labels {list(self.labels)!r:.200} is allowed by the constraints")


Tag = tuple[str, str]  # prefix and type of a label


def _parsed(label: Label, letters: dict[str, str], scheme: str) -> Tag:
    if label == "O":
        return "O", ""
    prefix, dash, kind = label.partition("-") if isinstance(label, str) else ("", "", "")
    if prefix not in letters or bool(dash) != bool(kind):
        known = ", ".join([f"'{letter}-X'" for letter in letters])
        remedy = "leave it out, or list the pairs with Transitions.forbid"
        raise ValueError(f"label {label!r} is not of the scheme {scheme}, which has 'O', {known}; {remedy}")
    return letters[prefix], kind


def _table(labels: tuple[Label, ...], pairs: Iterable[tuple[Label, Label]]) -> np.ndarray:
    """True at the given pairs."""
    pairs = list(pairs)
    left, right = (_numbers(labels, [pair[k] for pair in pairs], "pairs") for k in (0, 1))
    table = np.zeros((len(labels), len(labels)), dtype=bool)
    table[left, right] = True
    return table


def _row(labels: tuple[Label, ...], chosen: Iterable[Label], name: str) -> np.ndarray:
    """True at the given labels."""
    row = np.zeros(len(labels), dtype=bool)
    row[_numbers(labels, list(chosen), name)] = True
    return row


def _numbers(labels: tuple[Label, ...], chosen: list[Label], name: str) -> np.ndarray:
    unknown = [label for label in chosen if label not in labels]
    if unknown:
        raise ValueError(f"{name}: {unknown[0]!r} is not among the labels {list(labels)}")
    return np.array([labels.index(label) for label in chosen], dtype=np.int64)
