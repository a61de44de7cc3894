"""The words of a language, by frequency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

UNKNOWN = -1


@dataclass
class Lexicon:
    """Words with their numbers: 0 is the most frequent one.

    Parameters
    ----------
    words : list of str
        In the order of their numbers.
    frequencies : array of int (words,)
        How often each occurs.
    """

    words: list[str]
    frequencies: np.ndarray
    numbers: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.numbers = {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        """Number of words."""
        return len(self.words)

    @classmethod
    def read(cls, sentences: Iterable[Sequence[str]]) -> Lexicon:
        """Count the words of sentences; of equally frequent ones the first to occur comes first.

        Parameters
        ----------
        sentences : iterable of sequences of str
            Words.
        """
        ranked = Counter(word for words in sentences for word in words).most_common()
        return cls([word for word, _ in ranked], np.array([count for _, count in ranked], dtype=np.int64))

    def codes(self, sentences: Iterable[Sequence[str]]) -> np.ndarray:
        """The numbers of all words of sentences, one after another; ``UNKNOWN`` for others.

        Parameters
        ----------
        sentences : iterable of sequences of str
            Words.
        """
        numbers = self.numbers
        return np.array([numbers.get(word, UNKNOWN) for words in sentences for word in words], dtype=np.int32)
