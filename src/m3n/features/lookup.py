"""From the attributes of new tokens to the columns of a known vocabulary, with one look-up each.

A dict's items are pairs, and pairs are the keys of one table: (name, text), (name, True) for the attribute that is a
name alone, (name, False) and (name, None) for nothing. So strings and flags are found by one sweep in C, without a
look at their types and without joining any text. True equals 1 and False 0, which makes numbers of 1 and 0 right, too.

Only what is not found is looked at: texts and names that training has not seen, other numbers, and mistakes, which are
left to the caller, who can say where they are.

With a separator, the vocabulary holds joined texts, and a text with several separators can be divided in several ways.
Pairs are therefore added name by name, when a name occurs for the first time: all texts that begin with it stand next
to each other in a sorted list. Values that are collections are opened first (``nested``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, compress, repeat
from typing import Any, NamedTuple

import numpy as np

from m3n.features.nested import JoinedNames, Opened
from m3n.packed.ragged import running_sum

Attribute = str | tuple[str, str]
Item = tuple[Any, Any]
UNSEEN, NOTHING = -1, -2
TEXT, FLAG, NUMBER, MISTAKE = range(4)  # what the value of an attribute can be; True, False and None are flags
COLLECTIONS = frozenset((list, tuple, set, frozenset))
ONES = np.empty(0)  # stands for weights of attributes that are all 1
FEW = 100  # tokens
MOST_STRANGERS = 10_000  # names without attributes that are remembered as such


class Found(NamedTuple):
    """The attributes of tokens that are known.

    Attributes
    ----------
    columns : array of int (attributes,)
        Where each stands, negative where that is nowhere.
    weights : array or None
        The weight of each; None: they are all 1.
    ends : array of int (tokens + 1,)
        Token t has the attributes ends[t] to ends[t + 1].
    """

    columns: np.ndarray
    weights: np.ndarray | None
    ends: np.ndarray


class Piece(NamedTuple):
    """Attributes of some sequences, ready for ``compiled.oracles.chain_labels``.

    Attributes
    ----------
    low, high : int
        They are sequences low to high-1.
    first : int
        The position, of all, from which ``offsets`` count.
    offsets, pointers, columns, amounts : arrays
        As compiled code has them.
    """

    low: int
    high: int
    first: int
    offsets: np.ndarray
    pointers: np.ndarray
    columns: np.ndarray
    amounts: np.ndarray


class FoundSequences(NamedTuple):
    """Sequences of tokens whose attributes are found.

    Attributes
    ----------
    offsets : array of int (sequences + 1,)
        Sequence i has the tokens offsets[i] to offsets[i + 1].
    found : Found
        The attributes of all tokens.
    """

    offsets: np.ndarray
    found: Found

    def pieces(self, low: int, high: int) -> Iterator[Piece]:
        """Sequences low..high-1, all at once."""
        columns, weights, ends = self.found
        yield Piece(low, high, 0, self.offsets[low : high + 1], ends, columns, ONES if weights is None else weights)


class Lookup:
    """Columns of attributes.

    Parameters
    ----------
    vocabulary : dict
        From an attribute, a text or a pair of name and value, to its column.
    separator : str or None
        What joins names and values in the vocabulary, if they are joined.
    """

    def __init__(self, vocabulary: Mapping[Attribute, int], separator: str | None):
        self.vocabulary, self.separator = vocabulary, separator
        self.size = len(vocabulary)
        self._pairs: dict[Item, int] = {}
        self._names: set[str] = set()  # whose pairs are in the table
        self._strangers: set[str] = set()  # names that have none
        self._texts: list[str] | None = None  # sorted, where they are joined
        if separator is None:
            self._divide()
        else:
            self._joined = JoinedNames("", separator)

    def find(self, tokens: list[Any]) -> Found | None:
        """The columns of plain collections of strings, or of plain dicts; None if they are anything else."""
        kinds = set(map(type, tokens))
        try:
            if kinds <= {dict}:
                return self._of_dicts(tokens)
            return self._of_collections(tokens) if kinds <= COLLECTIONS else None
        except TypeError:  # an unhashable value
            return None

    def _of_collections(self, tokens: list[Any]) -> Found | None:
        columns = _numbered(self.vocabulary.get, chain.from_iterable(tokens))
        unseen = compress(chain.from_iterable(tokens), (columns == UNSEEN).tolist())
        return Found(columns, None, running_sum(tokens)) if set(map(type, unseen)) <= {str} else None

    def _of_dicts(self, tokens: list[dict[Any, Any]]) -> Found | None:
        ends, items = running_sum(tokens), chain.from_iterable(map(dict.items, tokens))
        if self.separator is not None and not self._names:  # learn what most tokens have before all of them are missed
            first = chain.from_iterable(map(dict.items, tokens[:FEW]))
            self._learn({name for name, value in first if type(name) is type(value) is str})
        try:
            return self._of_items(items, chain.from_iterable(tokens), _values(tokens), ends)
        except TypeError:  # an unhashable value, which may be a collection
            return None if self.separator is None else self._of_nested(tokens)

    def _of_items(
        self, items: Iterable[Item], names: Iterable[Any], values: Iterable[Any], ends: np.ndarray
    ) -> Found | None:
        """The columns of names with values, which are read separately only if something is not found."""
        columns = _numbered(self._pairs.get, items, int(ends[-1]))
        missed = columns == UNSEEN
        if not missed.any():
            return Found(columns, None, ends)
        chosen = missed.tobytes()
        names, values = list(compress(names, chosen)), list(compress(values, chosen))  # pairs would wake the collector
        distinct = set(names)
        if not set(map(type, distinct)) <= {str}:
            return None
        if self.separator is not None and self._learn(distinct):
            columns[missed] = _numbered(self._pairs.get, zip(names, values, strict=True))
        weights = self._weights(columns, missed, names, values)
        return None if weights is None else Found(columns, weights if weights.size else None, ends)

    def _weights(
        self, columns: np.ndarray, missed: np.ndarray, names: list[str], values: list[Any]
    ) -> np.ndarray | None:
        """Weights of attributes, none if all are 1, where numbers are those of their names; None for a mistake.

        Texts that were missed are unseen.
        """
        roles = {kind: role_of(kind) for kind in set(map(type, values))}
        if MISTAKE in roles.values():
            return None
        kinds = {kind for kind, role in roles.items() if role == NUMBER}
        if not kinds:
            return np.empty(0)
        chosen = bytes(map(kinds.__contains__, map(type, values)))
        places = np.flatnonzero(missed)[np.frombuffer(chosen, bool)]
        weights = np.ones(len(columns))
        weights[places] = np.fromiter(compress(values, chosen), np.float64, len(places))
        columns[places] = _numbered(self.vocabulary.get, compress(names, chosen), len(places))
        return weights if np.isfinite(weights).all() else None

    def _of_nested(self, tokens: list[dict[Any, Any]]) -> Found | None:
        """Dicts some of whose values are collections; a ``TypeError`` says that there is something else."""
        opened, ends = Opened(), [0]
        for token in tokens:
            opened.add(token, self._joined)
            ends.append(len(opened.names))
        names, values = opened.names, opened.values
        if not opened.kinds <= {str}:
            return None
        return self._of_items(zip(names, values, strict=True), names, values, np.array(ends))

    def _divide(self) -> None:
        """The table of a vocabulary that keeps names and values apart."""
        for attribute, column in self.vocabulary.items():
            name, value = (attribute, True) if isinstance(attribute, str) else attribute
            self._pairs |= {(name, value): column, (name, False): NOTHING, (name, None): NOTHING}

    def _learn(self, names: set[str]) -> bool:
        """Add the pairs of names to the table of joined texts; whether there are any."""
        new = names - self._names - self._strangers
        for name in new:
            pairs = self._behind(name)
            if name in self.vocabulary:
                pairs[name, True] = self.vocabulary[name]
            if pairs:
                pairs[name, False] = pairs[name, None] = NOTHING
                self._pairs |= pairs
                self._names.add(name)  # not before its pairs are there: other threads may be looking
        if len(self._strangers) < MOST_STRANGERS:
            self._strangers |= new - self._names
        return not new.isdisjoint(self._names)

    def _behind(self, name: str) -> dict[Item, int]:
        """The name with every text that stands behind it, and the columns."""
        assert self.separator is not None
        if self._texts is None:
            self._texts = sorted(self.vocabulary)  # type: ignore[arg-type]
        begin = name + self.separator
        skipped, behind = len(begin), begin[:-1] + chr(ord(begin[-1]) + 1)  # no text between the two begins otherwise
        texts = self._texts[bisect_left(self._texts, begin) : bisect_left(self._texts, behind)]
        return {(name, text[skipped:]): self.vocabulary[text] for text in texts}


def role_of(kind: type) -> int:
    """What a value of a type is."""
    if issubclass(kind, str):
        return TEXT
    if issubclass(kind, (bool, np.bool_, type(None))):
        return FLAG
    return NUMBER if issubclass(kind, (int, float, np.integer, np.floating)) else MISTAKE


def _values(tokens: list[dict[Any, Any]]) -> Iterator[Any]:
    return chain.from_iterable(map(dict.values, tokens))


def _numbered(get: Callable[..., int], attributes: Iterable[Any], count: int = -1) -> np.ndarray:
    return np.fromiter(map(get, attributes, repeat(UNSEEN)), np.int64, count)
