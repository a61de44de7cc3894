"""Which labels an arc may have: those that training has seen between words with these tags, in this direction.

Labels that one arc in a thousand of its kind has are left out, too, and an arc between tags that have never met may
have any label. So few labels of every arc are looked at, five instead of fifty, and hardly any right one is lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from m3n.features.words import ATTRIBUTES, WordTable
from m3n.packed.ragged import numbers
from m3n.structures import Arcs

TAG = ATTRIBUTES.index("upos")
RARE = 1e-3  # of the arcs of a kind
MIX = np.uint64(0x9E3779B97F4A7C15)  # an odd number of 64 bits


@dataclass(frozen=True)
class ArcLabels:
    """Labels by tags and direction.

    Attributes
    ----------
    keys : array of int (kinds,)
        Hashes of tags of head and dependent, and direction, ascending.
    first : array of int (kinds + 1,)
        Where the labels of every kind begin.
    labels : array of int (...)
        The labels of every kind, ascending.
    count : int
        How many labels there are.
    """

    keys: np.ndarray
    first: np.ndarray
    labels: np.ndarray
    count: int

    @classmethod
    def none(cls) -> ArcLabels:
        """For trees without labels."""
        return cls(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.int32), 1)

    @classmethod
    def learn(
        cls, words: WordTable, arcs: Arcs, labels: np.ndarray, count: int, counts: np.ndarray | None = None
    ) -> ArcLabels:
        """From right arcs with their labels, one per word.

        Parameters
        ----------
        words : WordTable
            The sentences.
        arcs : Arcs
            The right arcs.
        labels : array of int (arcs,)
            Their labels.
        count : int
            How many labels there are.
        counts : array (sentences,), optional
            How often every sentence counts.
        """
        own = np.ones(len(labels)) if counts is None else counts[arcs.sentence]
        keys, kind = np.unique(_keys(words, arcs), return_inverse=True)
        pairs, pair = np.unique(kind.astype(np.int64) * count + labels, return_inverse=True)
        sizes, often = np.bincount(kind, own), np.bincount(pair, own)
        pairs = pairs[often >= RARE * sizes[pairs // count]]
        first = np.searchsorted(pairs, np.arange(len(keys) + 1) * count)
        return cls(keys, first, (pairs % count).astype(np.int32), count)

    def allow(self, words: WordTable, arcs: Arcs, right: tuple[np.ndarray, np.ndarray] | None = None) -> Arcs:
        """The same arcs with the labels that they may have.

        Parameters
        ----------
        words : WordTable
            The sentences.
        arcs : Arcs
            The arcs.
        right : tuple of arrays of int, optional
            Some arcs, and a label of each that it may have in any case.
        """
        keys = _keys(words, arcs)
        kind = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        listed = np.diff(self.first)[kind]
        known = (self.keys[kind] == keys) & (listed > 0)  # of very many labels, all of a kind may be rare
        first = np.where(known, self.first[kind], len(self.labels))
        counts = np.where(known, listed, self.count)
        joined = np.concatenate([self.labels, np.arange(self.count, dtype=np.int32)])
        arc, label = np.repeat(np.arange(len(keys)), counts), joined[numbers(first, counts)]
        if right is not None:
            pairs = np.unique(np.concatenate([arc * self.count + label, right[0] * self.count + right[1]]))
            arc, label = pairs // self.count, (pairs % self.count).astype(np.int32)
        begins = np.searchsorted(arc, np.arange(len(keys) + 1))
        return Arcs(arcs.lengths, arcs.first, arcs.head, arcs.dependent, self.count, begins, label)


def _keys(words: WordTable, arcs: Arcs) -> np.ndarray:
    root, tags = words.root[arcs.sentence], words.tokens.values[:, TAG]
    right = (arcs.head < arcs.dependent).astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = ((tags[root + arcs.head] * MIX ^ tags[root + arcs.dependent]) * MIX ^ right) * MIX
    return (mixed >> np.uint64(1)).astype(np.int64)  # not negative
