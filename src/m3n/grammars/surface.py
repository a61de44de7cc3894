"""What the surface of a sentence says about its parse: attributes of words, ends of spans, splits and spans.

A word is seen in several ways: as it is, or by its signature or its longest frequent ending where it is rare, and as
its *usual tag*, the one that it has most often in the treebank. Attributes are

    tag         the word, its signature, endings, its neighbours
    begin, end  the first (last) word of a span, the one before (after) it, pairs of usual tags there
    split       the words on both sides of a split, pairs of usual tags
    span        bins of its length, usual tags of the first and last word, and of the words around it, and its *shape*:
                capitals, small letters, digits and punctuation in a row, without repetitions, as one of ``SHAPES``
                codes

Attributes of positions meet classes of rules, those of spans meet labels. A rule has two classes: its parent, and the
rule itself if it is frequent, or else the rare rules of its parent. No attribute is spelled out, and no span is looked
at by itself: all comes from integer codes of words.

Reference: Hall, Durrett, Klein, "Less grammar, more features", 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from m3n.features.templates import Templates
from m3n.grammars.treebank import TreebankGrammar
from m3n.io.sentences import Sentences

TAG = (
    "%x[0,0]", "s=%x[0,1]", "e=%x[0,2]", "2=%x[0,3:suffix2]", "3=%x[0,3:suffix3]", "1=%x[0,3:suffix1]",
    "h=%x[0,3:brief]", "l=%x[0,3:lower]", "-1=%x[-1,2]", "+1=%x[1,2]", "-g=%x[-1,4]/%x[0,4]", "+g=%x[0,4]/%x[1,4]",
    "g=%x[-1,4]/%x[1,4]",
)  # fmt: skip
BEGIN = (
    "%x[0,2]", "-1=%x[-1,2]", "g=%x[0,4]", "-g=%x[-1,4]/%x[0,4]", "+g=%x[0,4]/%x[1,4]", "w=%x[0,0]",
    "--=%x[-2,4]/%x[-1,4]", "s=%x[0,1]",
)  # fmt: skip
END = (
    "%x[0,2]", "+1=%x[1,2]", "g=%x[0,4]", "+g=%x[0,4]/%x[1,4]", "-g=%x[-1,4]/%x[0,4]", "w=%x[0,0]",
    "++=%x[1,4]/%x[2,4]", "s=%x[0,1]",
)  # fmt: skip
SPLIT = ("%x[0,2]", "-1=%x[-1,2]", "g=%x[-1,4]/%x[0,4]", "+g=%x[-1,4]/%x[0,4]/%x[1,4]", "--=%x[-2,4]/%x[-1,4]/%x[0,4]")
LENGTHS = np.array([1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 30])  # where bins of lengths begin
SHAPES = 1 << 12
ODD = np.uint64(0x9E3779B97F4A7C15)
INVERSE = np.uint64(pow(int(ODD), -1, 1 << 64))


class Matrices(NamedTuple):
    """Attributes: a row for every token, or for every cell."""

    tag: scipy.sparse.csr_array
    begin: scipy.sparse.csr_array | None
    split: scipy.sparse.csr_array | None
    end: scipy.sparse.csr_array | None
    span: scipy.sparse.csr_array | None


class Surface:
    """Attributes of sentences.

    Parameters
    ----------
    grammar : TreebankGrammar
        What words look like.
    spans : bool
        Whether there are attributes of anything but words and their tags.
    least : int
        Attributes of words and positions that occur less often are left out.

    Attributes
    ----------
    kept : list of arrays of int
        For words, begins, splits and ends the attributes that are left.
    """

    def __init__(self, grammar: TreebankGrammar, spans: bool = True, least: int = 2):
        self.grammar, self.spans, self.least = grammar, spans, least
        names = (TAG, BEGIN, SPLIT, END) if spans else (TAG,)
        self.templates = [Templates(patterns) for patterns in names]
        self.kept: list[np.ndarray] = []

    def fit_transform(self, sentences: Sequence[Sequence[str]]) -> Matrices:
        """Learn the attributes of sentences.

        Parameters
        ----------
        sentences : sequence of sequences of str
            Words.
        """
        columns = self._columns(sentences)
        found = [templates.fit_transform(columns) for templates in self.templates]
        counts = (np.bincount(matrix.indices, minlength=matrix.shape[1]) for matrix in found)
        self.kept = [np.flatnonzero(count >= self.least) for count in counts]
        return self._matrices(found, sentences)

    def transform(self, sentences: Sequence[Sequence[str]]) -> Matrices:
        """The attributes of other sentences.

        Parameters
        ----------
        sentences : sequence of sequences of str
            Words.
        """
        columns = self._columns(sentences)
        return self._matrices([templates.transform(columns) for templates in self.templates], sentences)

    @property
    def width(self) -> int:
        """Attributes of a word."""
        return len(self.kept[0])

    @property
    def widths(self) -> tuple[int, ...]:
        """Attributes of begins, splits, ends and spans."""
        return (*map(len, self.kept[1:]), len(LENGTHS) + 2 * (len(self.grammar.tags) + 1) ** 2 + SHAPES)

    @property
    def names(self) -> list[str]:
        """The attributes of words as text."""
        names = self.templates[0].names
        return [names[k] for k in self.kept[0]]

    def _columns(self, sentences: Sequence[Sequence[str]]) -> Sentences:
        """Words as they are seen, their signatures, endings, themselves, and usual tags."""
        vocabulary, rows = self.grammar.vocabulary, []
        for words in sentences:
            seen = vocabulary.seen(words)
            signatures = [vocabulary.signature(word, k == 0) for k, word in enumerate(words)]
            endings = [vocabulary.ending(word) for word in words]
            rows.append(list(zip(seen, signatures, endings, words, self.grammar.usual_tags(words), strict=True)))
        return Sentences.of(rows)

    def _matrices(self, found: list[scipy.sparse.csr_array], sentences: Sequence[Sequence[str]]) -> Matrices:
        found = [matrix[:, kept] for matrix, kept in zip(found, self.kept, strict=True)]
        if not self.spans:
            return Matrices(found[0], None, None, None, None)
        tags = len(self.grammar.tags)
        number = {tag: k for k, tag in enumerate(self.grammar.tags)}
        usual = [np.array([number[tag] for tag in self.grammar.usual_tags(words)]) for words in sentences]
        pieces = [_spans(codes, words, tags) for codes, words in zip(usual, sentences, strict=True)]
        columns = np.concatenate(pieces)
        pointers, shape = np.arange(len(columns) + 1) * columns.shape[1], (len(columns), self.widths[-1])
        span = scipy.sparse.csr_array((np.ones(columns.size), columns.ravel(), pointers), shape=shape)
        tag, begin, split, end = found
        return Matrices(tag, begin, split, end, span)


def rule_classes(grammar: TreebankGrammar, frequent: int) -> np.ndarray:
    """Two classes of every rule, (rules, 2): of its parent, and of itself or of the rare rules of its parent.

    Parameters
    ----------
    grammar : TreebankGrammar
        The rules.
    frequent : int
        A rule that occurs so often has a class of its own.
    """
    numbers: dict[object, int] = {}
    rows = []
    for rule, count in zip(grammar.rules[: grammar.count], grammar.counts, strict=False):
        kind = (len(rule.children), rule.parent.label, rule.parent.beside is None)
        own = rule if count >= frequent else ("rare", *kind)
        rows.append([numbers.setdefault(key, len(numbers)) for key in (kind, own)])
    return np.array(rows)


def _spans(tags: np.ndarray, words: Sequence[str], count: int) -> np.ndarray:
    """The attributes of all cells of a sentence: (cells, 4), ascending."""
    length = len(tags)
    begin, last = np.triu_indices(length)
    around = np.concatenate([[count], tags, [count]])
    size = np.searchsorted(LENGTHS, last - begin + 1, side="right") - 1
    inside = len(LENGTHS) + tags[begin] * (count + 1) + tags[last]
    outside = len(LENGTHS) + (count + 1) ** 2 + around[begin] * (count + 1) + around[last + 2]
    shape = len(LENGTHS) + 2 * (count + 1) ** 2 + _shapes(words, begin, last)
    return np.stack([size, inside, outside, shape], axis=1)


def _shapes(words: Sequence[str], begin: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Codes of the shapes of spans: a polynomial in the kinds of words, at whose changes the power grows by one."""
    kinds = np.array([_kind(word) for word in words], dtype=np.uint64)
    changes = np.concatenate([[False], kinds[1:] != kinds[:-1]])
    count = np.cumsum(changes)
    powers, inverses = (
        np.concatenate([[np.uint64(1)], np.cumprod(np.full(len(words), base))]) for base in (ODD, INVERSE)
    )
    running = np.concatenate([[np.uint64(0)], np.cumsum(np.where(changes, kinds * powers[count], np.uint64(0)))])
    codes = kinds[begin] + inverses[count[begin]] * (running[last + 1] - running[begin + 1])
    return ((codes * ODD) >> np.uint64(64 - 12)).astype(np.int64)


def _kind(word: str) -> int:
    """Capital, small, digits, or the punctuation that it is."""
    first = word[0]
    if first.isdigit():
        return 3
    return (1 if first.isupper() else 2) if first.isalpha() else 4 + sum(map(ord, word)) % 1000
