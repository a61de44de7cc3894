"""Words with their attributes as a table of numbers, which templates around anchors read.

Every sentence has a row before its root, the root, its words, and a row after them, so that a template may look one
word to either side without asking where a sentence ends. An attribute is the hash of its text, computed once per
distinct text; the rows that are no words have texts of their own. Besides the attributes that are given there are parts
of a form, and single features of morphology.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from m3n.compiled.maps.anchored import Tokens
from m3n.features.anchored import hashed
from m3n.io.sentences import Column
from m3n.packed.ragged import numbers

GIVEN = ("form", "lemma", "upos", "xpos", "feats")
EDGE, ROOT = "<edge>", "<root>"


def _feature(name: str) -> Callable[[str], str]:
    """The value of one feature of morphology, of a text such as ``Case=Nom|Number=Sing``."""

    def value(text: str) -> str:
        found = (pair.partition("=") for pair in text.split("|"))
        return next((value for key, _, value in found if key == name), "_")

    return value


DERIVED: dict[str, tuple[str, Callable[[str], str]]] = {
    "lower": ("form", str.lower),
    "prefix": ("form", lambda text: text[:5].lower()),
    "suffix": ("form", lambda text: text[-3:].lower()),
    "case": ("feats", _feature("Case")),
    "number": ("feats", _feature("Number")),
    "gender": ("feats", _feature("Gender")),
    "verbform": ("feats", _feature("VerbForm")),
}
ATTRIBUTES = (*GIVEN, *DERIVED)


@dataclass(frozen=True)
class WordTable:
    """Words of several sentences.

    Attributes
    ----------
    columns : mapping from str to Column
        The attributes that were given, for all words.
    lengths : array of int (sentences,)
        Words of every sentence.
    """

    columns: Mapping[str, Column]
    lengths: np.ndarray

    @cached_property
    def root(self) -> np.ndarray:
        """The row of every sentence's root; word k of it is k rows further on."""
        return np.cumsum(self.lengths + 3) - self.lengths - 2

    @cached_property
    def tokens(self) -> Tokens:
        """The table, with tags (``upos``) for what stands between two words."""
        rows = int((self.lengths + 3).sum())
        words = numbers(self.root + 1, self.lengths)
        values = np.full((rows, len(ATTRIBUTES)), hashed([EDGE])[0], np.uint64)
        values[self.root] = hashed([ROOT])[0]
        for k, name in enumerate(ATTRIBUTES):
            column = self.column(name)
            values[words, k] = hashed(column.values)[column.codes]
        upos = self.columns["upos"]
        tags = np.zeros(rows, np.int32)
        tags[words] = upos.codes
        tag_values = hashed(upos.values or [EDGE])
        return Tokens(values, tags, tag_values)

    def column(self, name: str) -> Column:
        """An attribute of all words, given or derived."""
        if name in self.columns:
            return self.columns[name]
        source, function = DERIVED[name]
        return self.columns[source].map(function)

    def only(self, chosen: np.ndarray) -> WordTable:
        """Some of the sentences, in the given order."""
        rows = numbers((np.cumsum(self.lengths) - self.lengths)[chosen], self.lengths[chosen])
        columns = {name: Column(column.values, column.codes[rows]) for name, column in self.columns.items()}
        return WordTable(columns, self.lengths[chosen])

    def between(self, low: int, high: int) -> WordTable:
        """Sentences low..high-1; this table itself if that is all of them."""
        return self if (low, high) == (0, len(self.lengths)) else self.only(np.arange(low, high))

    def arrays(self) -> Iterator[np.ndarray]:
        """What tells these words from others."""
        yield from (self.tokens.values, self.lengths)

    @classmethod
    def of(cls, sentences: Sequence[Sequence[Mapping[str, str]]]) -> WordTable:
        """The table of sentences whose words are dicts; what a word lacks is ``_``.

        Parameters
        ----------
        sentences : sequence of sequences of mappings
            For every word its attributes, some of form, lemma, upos, xpos and feats.
        """
        words = [word for sentence in sentences for word in sentence]
        columns = {name: Column.of((word.get(name, "_") for word in words), len(words)) for name in GIVEN}
        return cls(columns, np.array([len(sentence) for sentence in sentences], np.int64))
