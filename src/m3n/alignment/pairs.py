"""Sentence pairs as compiled code has them, and the word pairs that meet in them.

See ``compiled.sweeps.cooccurrence`` for types, slots and cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from m3n.alignment.lexicon import Lexicon
from m3n.compiled.sweeps.cooccurrence import Occurrences, PackedPairs, count_types, find_slots, number_types
from m3n.packed import Threads

Words = list[str]
SIDES = ("source", "target")


def read_pairs(X: Any, lowercase: bool = False) -> list[tuple[Words, Words]]:
    """Sentence pairs as two lists of words each; what is none is refused with its number.

    Parameters
    ----------
    X : sequence of (source words, target words)
        The sentence pairs.
    lowercase : bool
        Whether to write all words in small letters.
    """
    if isinstance(X, str) or not hasattr(X, "__len__"):
        raise TypeError(f"X must be a sequence of pairs of sentences, got {type(X).__name__}")
    return [_pair(pair, k, lowercase) for k, pair in enumerate(X)]


def _pair(pair: Any, k: int, lowercase: bool) -> tuple[Words, Words]:
    if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
        raise ValueError(f"sentence pair {k} is {pair!r:.60}, not a pair of lists of words")
    source, target = (_words(words, k, side, lowercase) for words, side in zip(pair, SIDES, strict=True))
    return source, target


def _words(words: Any, k: int, side: str, lowercase: bool) -> Words:
    if isinstance(words, str):
        raise TypeError(f"sentence pair {k}: the {side} is text, {words!r:.40}; split it into words with .split()")
    found = list(words)
    if not found:
        raise ValueError(f"sentence pair {k}: the {side} has no words; leave such pairs out")
    for i, word in enumerate(found):
        if not isinstance(word, str):
            raise TypeError(f"sentence pair {k}: word {i} of the {side} is {word!r:.40}, not a string")
    return [word.lower() for word in found] if lowercase else found


class Lexica(NamedTuple):
    """The words of both languages."""

    source: Lexicon
    target: Lexicon

    @classmethod
    def read(cls, pairs: Sequence[tuple[Words, Words]]) -> Lexica:
        """Count the words of sentence pairs.

        Parameters
        ----------
        pairs : sequence of (list of str, list of str)
            From ``read_pairs``.
        """
        return cls(Lexicon.read(source for source, _ in pairs), Lexicon.read(target for _, target in pairs))

    def spelled_alike(self) -> np.ndarray:
        """For every source word the target word of the same spelling, or ``UNKNOWN``."""
        return self.target.codes([self.source.words])

    def pack(self, pairs: Sequence[tuple[Words, Words]]) -> PackedPairs:
        """Sentence pairs as numbers.

        Parameters
        ----------
        pairs : sequence of (list of str, list of str)
            From ``read_pairs``.
        """
        sizes = np.array([(len(source), len(target)) for source, target in pairs], dtype=np.int64).reshape(-1, 2)
        source = self.source.codes(source for source, _ in pairs)
        target = self.target.codes(target for _, target in pairs)
        rows, columns = sizes.T
        return PackedPairs(source, target, _starts(rows), _starts(columns), _starts(rows * columns))


def _starts(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)])


@dataclass(frozen=True)
class Types:
    """Pairs of words that meet, as a sparse matrix with a row per source word.

    Attributes
    ----------
    rows : array of int (source words + 1,)
        Where rows begin.
    columns : array of int (types,)
        Target words, ascending in every row.
    """

    rows: np.ndarray
    columns: np.ndarray

    def __len__(self) -> int:
        """Number of types."""
        return len(self.columns)

    def owners(self) -> np.ndarray:
        """The source word of every type."""
        return np.repeat(np.arange(len(self.rows) - 1, dtype=np.int32), np.diff(self.rows))

    def slots(self, packed: PackedPairs, threads: Threads) -> np.ndarray:
        """The slots of all cells; ``len(self)`` where words never met or are unknown.

        Parameters
        ----------
        packed : PackedPairs
            Sentence pairs.
        threads : Threads
            Who looks.
        """
        slots = np.empty(packed.cells[-1], dtype=np.int64)
        threads.run(find_slots, threads.lanes(packed.cells), packed, self.rows, self.columns, len(self), slots)
        return slots

    def select(self, kept: np.ndarray) -> Types:
        """Some of the types.

        Parameters
        ----------
        kept : array of bool (types,)
            Which.
        """
        before = np.concatenate([[0], np.cumsum(kept)])
        return Types(before[self.rows], self.columns[kept])


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs to learn from.

    Attributes
    ----------
    packed : PackedPairs
        The words.
    where : Occurrences
        The source tokens by word.
    types : Types
        Words that meet.
    slots : array of int (cells,)
        The type of every cell.
    meetings : array of int (types,)
        In how many sentence pairs the words of a type meet.
    """

    packed: PackedPairs
    where: Occurrences
    types: Types
    slots: np.ndarray
    meetings: np.ndarray

    @classmethod
    def index(cls, packed: PackedPairs, lexica: Lexica) -> Corpus:
        """Find the words that meet.

        Parameters
        ----------
        packed : PackedPairs
            Sentence pairs, all words known.
        lexica : Lexica
            Their words.
        """
        where = _occurrences(packed, len(lexica.source))
        sizes = np.zeros(len(lexica.source), dtype=np.int64)
        count_types(packed, where, np.full(len(lexica.target), -1, dtype=np.int32), sizes)
        rows = _starts(sizes)
        columns, meetings = (np.zeros(rows[-1], dtype=np.int32) for _ in range(2))
        slots = np.empty(packed.cells[-1], dtype=np.int64 if rows[-1] > np.iinfo(np.int32).max else np.int32)
        seen, place = np.full(len(lexica.target), -1, dtype=np.int32), np.empty(len(lexica.target), dtype=np.int64)
        number_types(packed, where, rows, seen, place, columns, slots, meetings)
        return cls(packed, where, Types(rows, columns), slots, meetings)


def _occurrences(packed: PackedPairs, words: int) -> Occurrences:
    pairs = np.repeat(np.arange(len(packed.cells) - 1, dtype=np.int32), np.diff(packed.source_starts))
    tokens = np.argsort(packed.source, kind="stable")
    return Occurrences(tokens, _starts(np.bincount(packed.source, minlength=words)), pairs)
