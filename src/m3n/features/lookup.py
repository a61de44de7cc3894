"""From the attributes of new tokens to the columns of a known vocabulary, with one look-up each.

A dict's items are pairs, and pairs are the keys of one table: (name, text), (name, True) for the attribute that is a
name alone, (name, False) and (name, None) for nothing. So strings and flags are found by one sweep in C, without a
look at their types and without joining any text. True equals 1 and False 0, which makes numbers of 1 and 0 right, too.

Only what is not found is looked at: texts and names that training has not seen, other numbers, and mistakes, which are
left to the caller, who can say where they are.

With a separator, the vocabulary holds joined texts, and a text with several separators can be divided in several ways.
Pairs are therefore added name by name, when a name occurs for the first time: all texts that begin with it stand next
to each other in a sorted list.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, compress, repeat
from typing import Any, NamedTuple

import numpy as np

Attribute = str | tuple[str, str]
Item = tuple[Any, Any]
UNSEEN, NOTHING = -1, -2
TEXT, FLAG, NUMBER, MISTAKE = range(4)  # what the value of an attribute can be; True, False and None are flags


class Found(NamedTuple):
    """The attributes of tokens that are known.

    Attributes
    ----------
    columns : array of int (attributes,)
        Where each stands, negative where that is nowhere.
    weights : array or None
        The weight of each; None: they are all 1.
    """

    columns: np.ndarray
    weights: np.ndarray | None


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
        self._texts: list[str] | None = None  # sorted, where they are joined
        if separator is None:
            self._divide()

    def find(self, tokens: list[Any]) -> Found | None:
        """The columns of plain lists of strings, or of plain dicts; None if they are anything else."""
        kinds = set(map(type, tokens))
        try:
            if kinds <= {dict}:
                return self._of_dicts(tokens)
            return self._of_lists(tokens) if kinds <= {list, tuple} else None
        except TypeError:  # an unhashable value
            return None

    def _of_lists(self, tokens: list[Any]) -> Found | None:
        columns = _numbered(self.vocabulary.get, chain.from_iterable(tokens))
        unseen = compress(chain.from_iterable(tokens), (columns == UNSEEN).tolist())
        return Found(columns, None) if set(map(type, unseen)) <= {str} else None

    def _of_dicts(self, tokens: list[dict[Any, Any]]) -> Found | None:
        columns = _numbered(self._pairs.get, _items(tokens), sum(map(len, tokens)))
        missed = (columns == UNSEEN).tolist()
        items = list(compress(_items(tokens), missed))
        if not items:
            return Found(columns, None)
        names, values = zip(*items, strict=True)
        if not set(map(type, names)) <= {str}:
            return None
        if self.separator is not None and sum(map(self._learn, set(names) - self._names)):
            columns[missed] = _numbered(self._pairs.get, items)
        return self._with_numbers(columns, missed, names, values)

    def _with_numbers(self, columns: np.ndarray, missed: list[bool], names: Any, values: Any) -> Found | None:
        """Texts that were missed are unseen; numbers are weights of their names."""
        roles = {kind: role_of(kind) for kind in set(map(type, values))}
        if set(roles.values()) <= {TEXT, FLAG}:
            return Found(columns, None)
        if MISTAKE in roles.values():
            return None
        chosen = [roles[type(value)] == NUMBER for value in values]
        places = np.flatnonzero(missed)[chosen]
        weights = np.ones(len(columns))
        weights[places] = list(compress(values, chosen))
        columns[places] = _numbered(self.vocabulary.get, compress(names, chosen))
        return Found(columns, weights) if np.isfinite(weights).all() else None

    def _divide(self) -> None:
        """The table of a vocabulary that keeps names and values apart."""
        for attribute, column in self.vocabulary.items():
            if isinstance(attribute, str):
                self._add(attribute, True, column)
            else:
                self._add(*attribute, column)

    def _learn(self, name: str) -> bool:
        """Add the pairs of a name to the table of joined texts; whether there are any."""
        assert self.separator is not None
        if self._texts is None:
            self._texts = sorted(self.vocabulary)  # type: ignore[arg-type]
        begin, column = name + self.separator, self.vocabulary.get(name)
        if column is not None:
            self._add(name, True, column)
        k = bisect_left(self._texts, begin)
        while k < len(self._texts) and self._texts[k].startswith(begin):
            text = self._texts[k]
            self._add(name, text[len(begin) :], self.vocabulary[text])
            k += 1
        return name in self._names

    def _add(self, name: str, value: Any, column: int) -> None:
        if name not in self._names:
            self._pairs[name, False] = self._pairs[name, None] = NOTHING
            self._names.add(name)
        self._pairs[name, value] = column


def role_of(kind: type) -> int:
    """What a value of a type is."""
    if issubclass(kind, str):
        return TEXT
    if issubclass(kind, (bool, np.bool_, type(None))):
        return FLAG
    return NUMBER if issubclass(kind, (int, float, np.integer, np.floating)) else MISTAKE


def _items(tokens: list[dict[Any, Any]]) -> Iterator[Item]:
    return chain.from_iterable(map(dict.items, tokens))


def _numbered(get: Callable[..., int], attributes: Iterable[Any], count: int = -1) -> np.ndarray:
    return np.fromiter(map(get, attributes, repeat(UNSEEN)), np.int64, count)
