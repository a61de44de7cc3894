"""From tokens described by words to sparse rows.

A token is a dict or a collection of strings:

    {"word": "Paris", "capital": True, "length": 5.0}    or    ["word=Paris", "capital"]

A string value makes one attribute per (name, value) with weight 1, a number keeps its value as the weight, True counts
as 1, False and None as nothing. Attribute numbers are given in order of appearance by one dictionary look-up per
attribute.

With a separator, an attribute is a text, whatever it was made of: {"word": "Paris"} and ["word:Paris"] mean the same,
and a value may be a dict, list or set itself, {"word": {"lower": "paris"}} being "word:lower:paris". False is then the
number 0: it scores nothing, but the attribute occurs, which counts where only what occurs gets a weight. That is how
CRFsuite reads attributes, with a colon. Texts are joined once per distinct pair.

Tokens that are all plain lists, or all plain dicts, are read in a few sweeps over all of their attributes that run in
C, and types are checked there too: by the set of types that occur. Anything else (other collections, a mixture, a
mistake) is read token by token, which is slower and can say where a mistake is. Attributes of new tokens are looked up
in a table that is made once (``lookup``).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, compress, repeat
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from m3n.features.lookup import FLAG, MISTAKE, NUMBER, TEXT, UNSEEN, Attribute, Found, Lookup, role_of
from m3n.io.matrices import csr
from m3n.packed.ragged import running_sum

Numbering = Callable[[Iterable[Attribute]], Iterator[int]]


class AttributeVectorizer:
    """Numbers attributes at ``fit``, ignores unseen ones at ``transform``.

    Parameters
    ----------
    separator : str or None
        None keeps names and values apart. A text such as ":" joins them, and everything in a nested value; False is
        then a 0 instead of nothing.

    Attributes
    ----------
    vocabulary : dict
        From an attribute (a string, or a pair of name and value) to its column.
    """

    def __init__(self, separator: str | None = None) -> None:
        self.separator = separator
        self.vocabulary: dict[Attribute, int] = {}
        self._lookup: Lookup | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_lookup": None}

    @property
    def names(self) -> list[str]:
        """The attributes as text, column by column; a pair reads ``name=value``."""
        return [a if isinstance(a, str) else "=".join(a) for a in self.vocabulary]

    def fit_transform(
        self, sequences: Sequence[Sequence[Any]], min_freq: int = 1, known: AttributeVectorizer | None = None
    ) -> scipy.sparse.csr_array:
        """Learn the vocabulary and return one row per token of all sequences.

        Parameters
        ----------
        sequences : sequences of tokens
            The tokens.
        min_freq : int
            Attributes that fewer tokens have are left out.
        known : AttributeVectorizer, optional
            Another one whose attributes get the first columns, in its order, whether tokens have them or not.
        """
        rows = GrowingRows(self.separator, known)
        rows.add(sequences)
        return self.take(rows, min_freq)

    def take(self, rows: GrowingRows, min_freq: int = 1) -> scipy.sparse.csr_array:
        """Take over the vocabulary of rows that have been read; the matrix of them.

        Parameters
        ----------
        rows : GrowingRows
            All of the tokens, read with the same separator.
        min_freq : int
            As in ``fit_transform``.
        """
        matrix = rows.matrix()
        self.vocabulary = dict(rows.vocabulary)
        return matrix if min_freq <= 1 else self._frequent(matrix, min_freq, rows.known)

    def _frequent(self, matrix: scipy.sparse.csr_array, least: int, known: int) -> scipy.sparse.csr_array:
        """Forget attributes that fewer tokens have, but for the first ones, which are known."""
        counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
        counts[:known] = least
        kept = np.flatnonzero(counts >= least)
        names = list(self.vocabulary)
        self.vocabulary = {names[k]: number for number, k in enumerate(kept.tolist())}
        return matrix[:, kept]

    def places_of(self, known: AttributeVectorizer) -> np.ndarray:
        """The columns of the attributes of another one that ``fit_transform`` was given.

        Parameters
        ----------
        known : AttributeVectorizer
            The other one.
        """
        return np.fromiter(map(self.vocabulary.__getitem__, known.vocabulary), np.int64, len(known.vocabulary))

    def transform(self, sequences: Sequence[Sequence[Any]]) -> scipy.sparse.csr_array:
        """One row per token of all sequences; attributes that ``fit_transform`` did not see are left out."""
        get, width = self.vocabulary.get, len(self.vocabulary)
        if (found := self.find(list(chain.from_iterable(sequences)))) is not None:
            return _matrix(*found, width)
        if self.separator is None:
            return _rows(sequences, lambda attributes: map(get, attributes, repeat(UNSEEN)), width, None)
        joined = _Joined(self.separator, lambda text: get(text, UNSEEN))
        return _rows(sequences, partial(map, joined.number), width, self.separator)

    def find(self, tokens: list[Any]) -> Found | None:
        """The columns of the attributes of plain tokens, negative for unseen ones; their weights; where tokens end.

        Weights that are all 1 are None, and so is everything if tokens are not all plain dicts or lists of strings.
        """
        return self._table().find(tokens)

    def _table(self) -> Lookup:
        """The table of the vocabulary, made when it is first needed."""
        known = vars(self).get("_lookup")  # pickles of earlier versions have none
        if known is None or known.vocabulary is not self.vocabulary or known.size != len(self.vocabulary):
            known = self._lookup = Lookup(self.vocabulary, self.separator)
        return known


class GrowingRows:
    """The rows of tokens that come block by block, and the vocabulary that grows with them.

    Parameters
    ----------
    separator : str or None
        As in ``AttributeVectorizer``.
    start : AttributeVectorizer, optional
        One whose attributes get the first columns.

    Attributes
    ----------
    vocabulary : dict
        From an attribute to its column.
    known : int
        How many of them were there from the start.
    entries : int
        Attributes of all tokens so far.
    """

    def __init__(self, separator: str | None = None, start: AttributeVectorizer | None = None):
        self.separator, self.entries = separator, 0
        self.vocabulary: defaultdict[Attribute, int] = defaultdict(None, {} if start is None else start.vocabulary)
        self.known = len(self.vocabulary)
        self.vocabulary.default_factory = self.vocabulary.__len__
        number = self.vocabulary.__getitem__
        self._number = number if separator is None else _Joined(separator, number).number
        self._columns, self._weights, self._counts = list[np.ndarray](), list[np.ndarray | None](), list[np.ndarray]()

    def add(self, sequences: Sequence[Sequence[Any]], begin: int = 0) -> None:
        """Some more tokens.

        Parameters
        ----------
        sequences : sequences of tokens
            The tokens.
        begin : int
            The number of the first of these sequences, for errors.
        """
        flat = _flat_of(sequences, self.separator, begin)
        self._columns.append(np.fromiter(map(self._number, flat.attributes), np.int32, int(flat.ends[-1])))
        self._weights.append(flat.weights)
        self._counts.append(np.diff(flat.ends))
        self.entries += int(flat.ends[-1])

    def matrix(self) -> scipy.sparse.csr_array:
        """One row per token; what it was made of is let go of."""
        sizes = list(map(len, self._columns))
        columns, self._columns = _concatenated(self._columns), []
        plain = all(weights is None for weights in self._weights)
        known = [np.ones(n) if own is None else own for own, n in zip(self._weights, sizes, strict=True) if not plain]
        ends = np.concatenate([[0], np.cumsum(_concatenated(self._counts))])
        self._weights, self._counts = [], []
        self.vocabulary.default_factory = None  # it leads back to the vocabulary, which nobody would let go of
        return _matrix(columns, None if plain else _concatenated(known), ends, len(self.vocabulary))


def _concatenated(arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


class _Joined(dict[Attribute, int]):
    """The numbers of attributes by their texts; a pair is joined when it comes first, later it is looked up."""

    def __init__(self, separator: str, number: Callable[[str], int]):
        self.separator, self.by_text = separator, number
        self.number = self.__getitem__

    def __missing__(self, attribute: Attribute) -> int:
        text = attribute if isinstance(attribute, str) else self.separator.join(attribute)
        found = self[attribute] = self.by_text(text)
        return found


class Flat(NamedTuple):
    """All attributes of all tokens, one after another.

    Attributes
    ----------
    attributes : iterable
        They themselves; may be read once only.
    weights : array or None
        The weight of each; None: they are all 1.
    ends : array of int (tokens + 1,)
        Token t has the attributes ends[t] to ends[t + 1].
    """

    attributes: Iterable[Attribute]
    weights: np.ndarray | None
    ends: np.ndarray


def _rows(
    sequences: Sequence[Sequence[Any]], number: Numbering, width: int | None, separator: str | None
) -> scipy.sparse.csr_array:
    flat = _flat_of(sequences, separator, 0)
    columns = np.fromiter(number(flat.attributes), np.int64, int(flat.ends[-1]))
    return _matrix(columns, flat.weights, flat.ends, width)


def _flat_of(sequences: Sequence[Sequence[Any]], separator: str | None, begin: int) -> Flat:
    tokens = list(chain.from_iterable(sequences))
    return _flat(tokens, zeros=separator is not None) or _one_by_one(sequences, separator, begin)


def _matrix(
    columns: np.ndarray, weights: np.ndarray | None, ends: np.ndarray, width: int | None
) -> scipy.sparse.csr_array:
    matrix = csr(np.ones(len(columns)) if weights is None else weights, columns, ends, width)
    matrix.sum_duplicates()  # an attribute named twice in a token counts twice
    return matrix


def _flat(tokens: list[Any], zeros: bool) -> Flat | None:
    """Plain lists or plain dicts without a mistake, else None; with zeros, False is one."""
    kinds = set(map(type, tokens))
    if not (kinds <= {list, tuple} or kinds <= {dict}) or not set(map(type, chain.from_iterable(tokens))) <= {str}:
        return None
    ends = running_sum(tokens)
    if kinds != {dict}:
        return Flat(chain.from_iterable(tokens), None, ends)
    if set(map(type, chain.from_iterable(map(dict.values, tokens)))) <= {str}:
        return Flat(chain.from_iterable(map(dict.items, tokens)), None, ends)
    return _flat_mixed(tokens, ends, zeros)


def _flat_mixed(tokens: list[dict[str, Any]], ends: np.ndarray, zeros: bool) -> Flat | None:
    """Dicts some of whose values are no strings."""
    values = list(chain.from_iterable(map(dict.values, tokens)))
    roles = {kind: role_of(kind) for kind in set(map(type, values))}
    role = np.fromiter(map(roles.__getitem__, map(type, values)), np.int8, len(values))
    weights = np.ones(len(values))
    weights[role == NUMBER] = list(compress(values, role == NUMBER))
    if MISTAKE in roles.values() or not np.isfinite(weights).all():
        return None
    true = np.fromiter(map(bool, values), bool, len(values))
    kept = (role != FLAG) | true
    if zeros:
        weights[~kept] = 0.0
        kept = np.array([value is not None for value in values]) if type(None) in roles else np.ones(len(values), bool)
    pairs = compress(chain.from_iterable(map(dict.items, tokens)), kept)
    texts = (role[kept] == TEXT).tolist()
    attributes = [pair if text else pair[0] for pair, text in zip(pairs, texts, strict=True)]
    return Flat(attributes, weights[kept], np.concatenate([[0], np.cumsum(kept)])[ends])


def _one_by_one(sequences: Sequence[Sequence[Any]], separator: str | None, begin: int) -> Flat:
    """Any tokens; a mistake is named with its place. The first sequence is number ``begin``."""
    attributes, weights, ends = list[Attribute](), list[float](), [0]
    for i, sequence in enumerate(sequences, start=begin):
        for t, token in enumerate(sequence):
            try:
                for attribute, weight in _weighted(token, separator):
                    attributes.append(attribute)
                    weights.append(weight)
            except (TypeError, ValueError) as error:
                raise type(error)(f"sequence {i}, position {t}: {error}") from None
            ends.append(len(attributes))
    return Flat(attributes, np.array(weights), np.array(ends))


def _weighted(token: Any, separator: str | None) -> Iterator[tuple[Attribute, float]]:
    if isinstance(token, str) or not isinstance(token, Collection) or not all(isinstance(name, str) for name in token):
        raise TypeError(f"a token must be a dict with string keys or a list of strings, got {token!r:.100}")
    pairs: Iterable[tuple[str, Any]] = token.items() if isinstance(token, Mapping) else zip(token, repeat(True))
    for name, value in pairs:
        if separator is not None and isinstance(value, (dict, list, set)):
            for inner, weight in _weighted(value, separator):
                yield separator.join((name, *((inner,) if isinstance(inner, str) else inner))), weight
            continue
        role = role_of(type(value))
        if role == MISTAKE:
            raise TypeError(f"attribute {name!r} must be a string, a number or a bool, got {value!r:.100}")
        if role == NUMBER and not math.isfinite(value):
            raise ValueError(f"attribute {name!r} has the value {value}")
        if role == TEXT:
            yield (name, value), 1.0
        elif role == NUMBER or value or (separator is not None and value is not None):
            yield name, float(value)
