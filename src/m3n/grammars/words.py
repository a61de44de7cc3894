"""Words as a grammar sees them: frequent words as they are, all others by a signature.

A *signature* is what a rare word looks like: the longest of its endings that is frequent among rare words, and whether
it has capital letters, digits or a hyphen, and whether it is the first word of its sentence. What is learnt about the
rare words of a treebank by their signatures holds for words that it never had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

LONGEST = 5  # letters of an ending


@dataclass
class Vocabulary:
    """Frequent words, and frequent endings of the others.

    Parameters
    ----------
    frequent : int
        A word is kept if it occurs so often.
    endings : int
        An ending is kept if so many different rare words have it.

    Attributes
    ----------
    words : set of str
        Frequent words.
    suffixes : set of str
        Frequent endings of rare ones, in small letters.
    """

    frequent: int = 3
    endings: int = 10
    words: set[str] = field(default_factory=set)
    suffixes: set[str] = field(default_factory=set)

    def fit(self, sentences: Iterable[Sequence[str]]) -> Vocabulary:
        """Learn from sentences.

        Parameters
        ----------
        sentences : iterable of sequences of str
            Words.
        """
        counts = Counter(word for words in sentences for word in words)
        self.words = {word for word, count in counts.items() if count >= self.frequent}
        rare = {word.lower() for word, count in counts.items() if count < self.frequent}
        found = Counter(ending for word in rare for ending in endings(word))
        self.suffixes = {ending for ending, count in found.items() if count >= self.endings}
        return self

    def signature(self, word: str, first: bool) -> str:
        """What a rare word looks like.

        Parameters
        ----------
        word : str
            The word.
        first : bool
            Whether it is the first one of its sentence.
        """
        lower = word.lower()
        suffix = next((ending for ending in endings(lower) if ending in self.suffixes), "")
        capital = "" if word == lower else "C" if word.isupper() else "c" if first else "X"
        marks = [(any(map(str.isdigit, word)), "d"), ("-" in word, "h"), (any(map(str.islower, word)), "l")]
        return f"<{capital}{''.join(mark for has, mark in marks if has)}{'f' if first else ''}>{suffix}"

    def seen(self, words: Sequence[str]) -> list[str]:
        """Every word, or its signature if it is rare.

        Parameters
        ----------
        words : sequence of str
            A sentence.
        """
        return [word if word in self.words else self.signature(word, k == 0) for k, word in enumerate(words)]

    def ending(self, word: str) -> str:
        """The word if it is frequent, else its longest frequent ending.

        Parameters
        ----------
        word : str
            The word.
        """
        if word in self.words:
            return word
        return "-" + next((ending for ending in endings(word.lower()) if ending in self.suffixes), "")


def endings(word: str) -> Iterator[str]:
    """The endings of a word, the longest first.

    Parameters
    ----------
    word : str
        In small letters.
    """
    return (word[-size:] for size in range(min(LONGEST, len(word) - 1), 0, -1))
