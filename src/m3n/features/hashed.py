"""Attributes without a dictionary: the number of an attribute is some bits of its hash.

Nothing is learnt and nothing has to be kept, whatever the number of attributes is, and every attribute of a new token
has a number. Two of them may have the same: with 2^b numbers and m attributes about a share m / 2^b of them. In a token
in which both occur the larger value counts: what is 1 or not there stays so. Names cannot be found again: number 7 is
called "#7".

The hash is that of ``hashes``: of the bytes of an attribute, or of its template and of the values that its macros saw,
which have hashes themselves. It is the same everywhere, so models and packed data fit together if their bits do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import scipy.sparse

from m3n.features.hashes import encoded, text_hashes
from m3n.features.template_lookup import TemplateLookup
from m3n.features.template_tuples import Words, tuple_keys, tuples_of
from m3n.features.templates import Templates
from m3n.features.vectorizer import AttributeVectorizer, GrowingRows
from m3n.io.matrices import renumbered
from m3n.io.sentences import Sentences

MOST_BITS = 30  # numbers of columns have 32 bits


class NumberNames(Sequence[str]):
    """Names of attributes of which the number alone is known: "#0", "#1", ...

    Parameters
    ----------
    count : int
        How many there are.
    """

    def __init__(self, count: int):
        self._range = range(count)

    def __len__(self) -> int:
        return len(self._range)

    @overload
    def __getitem__(self, which: int) -> str: ...
    @overload
    def __getitem__(self, which: slice) -> list[str]: ...
    def __getitem__(self, which: int | slice) -> str | list[str]:
        found = self._range[which]
        return f"#{found}" if isinstance(found, int) else [f"#{number}" for number in found]


def check_bits(bits: Any) -> int:
    """Refuse what is no number of bits.

    Parameters
    ----------
    bits : int
        How many.
    """
    if isinstance(bits, bool) or not isinstance(bits, (int, np.integer)) or not 1 <= bits <= MOST_BITS:
        raise ValueError(f"hash_bits must be a whole number from 1 to {MOST_BITS}, got {bits!r}")
    return int(bits)


class HashedAttributes(AttributeVectorizer):
    """Numbers attributes of tokens by their hash.

    Parameters
    ----------
    bits : int
        There are 2**bits numbers.
    """

    def __init__(self, bits: int):
        super().__init__()
        self.bits = check_bits(bits)

    @property
    def width(self) -> int:
        """How many numbers there are."""
        return 1 << self.bits

    @property
    def names(self) -> Any:
        """What numbers are called."""
        return NumberNames(self.width)

    def transform(self, sequences: Sequence[Sequence[Any]]) -> scipy.sparse.csr_array:
        """One row per token of all sequences.

        Parameters
        ----------
        sequences : sequences of tokens
            Tokens that are dicts or lists of strings.
        """
        rows = GrowingRows()
        rows.add(sequences)
        return self.hashed(rows)

    def hashed(self, rows: GrowingRows) -> scipy.sparse.csr_array:
        """The matrix of rows that have been read.

        Parameters
        ----------
        rows : GrowingRows
            The rows.
        """
        matrix = rows.matrix()
        keys = text_hashes(map(encoded, rows.vocabulary), len(rows.vocabulary))
        return renumbered(matrix, _low(keys, self.bits), self.width)

    def find(self, tokens: list[Any]) -> None:
        """There is no table in which to find anything."""


class HashedTemplates(Templates):
    """Numbers what templates make by its hash.

    Parameters
    ----------
    templates : Templates
        The templates.
    bits : int
        There are 2**bits numbers for attributes of tokens, and as many for those of pairs.
    """

    def __init__(self, templates: Templates, bits: int):
        super().__init__(templates.patterns, templates.padding, templates.syntax)
        self.bits = check_bits(bits)

    @property
    def width(self) -> int:
        return 1 << self.bits

    @property
    def pair_width(self) -> int:
        return 1 << self.bits if self.has_pairs else 0

    @property
    def names(self) -> Any:
        return NumberNames(self.width)

    @property
    def pair_names(self) -> Any:
        return NumberNames(self.pair_width)

    def unfitted(self) -> Templates:
        return HashedTemplates(Templates(self.patterns, self.padding, self.syntax), self.bits)

    def transform(self, sentences: Sentences) -> scipy.sparse.csr_array:
        return self.both(sentences)[0]

    def transform_pairs(self, sentences: Sentences) -> scipy.sparse.csr_array:
        return self.both(sentences)[1]

    def both(self, sentences: Sentences) -> tuple[scipy.sparse.csr_array, Any]:
        """The rows of tokens, and of pairs of neighbours if there are attributes of these.

        Parameters
        ----------
        sentences : Sentences
            Tokens in columns.
        """
        local = Templates(self.patterns, self.padding, self.syntax)
        matrices = [local.fit_transform(sentences)]
        if self.has_pairs:
            matrices.append(local.transform_pairs(sentences))
        words = Words.of(local)
        hashes = text_hashes(words.texts, len(words.texts))
        rows = [
            renumbered(matrix, _low(tuple_keys(*tuples_of(local, words, pair), hashes), self.bits), 1 << self.bits)
            for pair, matrix in zip((False, True), matrices, strict=False)
        ]
        return rows[0], rows[1] if self.has_pairs else None

    def lookup(self) -> TemplateLookup:
        """What finds nothing: there is no table."""
        return _NoLookup()


class _NoLookup(TemplateLookup):
    def __init__(self) -> None:
        pass

    def read(self, X: Any, most: int) -> None:
        return None


def _low(keys: np.ndarray, bits: int) -> np.ndarray:
    """The low bits of the first of two keys."""
    return (keys[:, 0] & np.uint64((1 << bits) - 1)).astype(np.int32)
