"""What columns are called, in arrays: the texts of attributes, or what templates saw.

An attribute is a text or a pair of a name and a value, and bytes of either (``features.hashes``). Attributes of
templates are not spelled out: which template, and the numbers of the values that its macros saw. Of either, keys are
made: two independent numbers of 64 bits. The first stands for the attribute, the second tells whether two attributes
have the first in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from m3n.features.hashes import decoded, encoded, text_hashes
from m3n.features.lookup import Attribute
from m3n.features.template_tuples import Words, tuple_keys, tuples_of
from m3n.features.templates import Templates


class Texts(NamedTuple):
    """Attributes as bytes, one after another.

    Attributes
    ----------
    letters : array of uint8
        All of them.
    ends : array of int (attributes + 1,)
        Attribute k is letters[ends[k]:ends[k + 1]].
    """

    letters: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, attributes: Iterable[Attribute]) -> Texts:
        """The bytes of attributes."""
        return cls.joined(list(map(encoded, attributes)))

    @classmethod
    def joined(cls, written: Sequence[bytes | memoryview]) -> Texts:
        """Bytes one after another."""
        ends = np.zeros(len(written) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, written), np.int64, len(written)), out=ends[1:])
        return cls(np.frombuffer(b"".join(written), np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def keys(self, seed: int) -> np.ndarray:
        """Two numbers (attributes, 2) for every attribute."""
        return text_hashes(self.pieces(), len(self), seed)

    def pieces(self) -> Iterable[bytes]:
        """The bytes of every attribute."""
        whole, ends = self.letters.tobytes(), self.ends.tolist()
        return (whole[low:high] for low, high in pairwise(ends))

    def take(self, chosen: np.ndarray) -> Texts:
        """Some of them, in the given order."""
        return self.joined(list(cut(self.letters, self.ends[chosen], self.ends[chosen + 1])))

    def check(self) -> None:
        """Refuse ends that are none."""
        ends = self.ends
        known = ends.dtype == np.int64 and self.letters.dtype == np.uint8 and ends.ndim == self.letters.ndim == 1
        if not known or not len(ends) or ends[0] or ends[-1] != len(self.letters) or (np.diff(ends) < 0).any():
            raise ValueError("texts do not end where they should")

    def decoded(self) -> list[Attribute]:
        """The attributes again."""
        self.check()
        return list(map(decoded, self.pieces()))


class Tuples(NamedTuple):
    """Attributes of templates, with the words that they are made of.

    Attributes
    ----------
    counts : array of int (templates,)
        How many attributes each template has; those of the first come first.
    codes : array of int32 (attributes, macros)
        The numbers of the words that the macros saw; negative behind the last macro.
    letters, ends, begins : arrays
        The words: their bytes, where each ends, and where those of each column begin.
    """

    counts: np.ndarray
    codes: np.ndarray
    letters: np.ndarray
    ends: np.ndarray
    begins: np.ndarray

    @classmethod
    def of(cls, local: Templates, pair: bool) -> Tuples:
        """What templates have learnt of a block."""
        words = Words.of(local)
        return cls(*tuples_of(local, words, pair), *Texts.joined(words.texts), words.begins)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def words(self) -> Texts:
        """The words."""
        return Texts(self.letters, self.ends)

    @property
    def owners(self) -> np.ndarray:
        """The template of every attribute."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def keys(self, seed: int) -> np.ndarray:
        """Two numbers (attributes, 2) for every attribute."""
        return tuple_keys(self.counts, self.codes, self.words.keys(seed), seed)


def cut(letters: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> Iterator[memoryview]:
    """Parts of bytes, without copying them.

    Parameters
    ----------
    letters : array of uint8
        The bytes.
    begins, ends : arrays of int
        Where the parts begin and end.
    """
    whole = letters.data
    return (whole[low:high] for low, high in zip(begins.tolist(), ends.tolist(), strict=True))


Names = Texts | Tuples
