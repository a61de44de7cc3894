"""The numbers of attributes of templates: those that ``Templates`` gives them, when all values of columns are known.

The words of attributes that are kept (values of columns, their lower case, their suffixes) are few in comparison with
these, and whoever reads new tokens has them in memory, too: they are numbered in memory, in the order in which blocks
have them. What stands beyond a sentence, ``_B-1`` for example, has numbers below zero until all values are known. Then
the attributes of a template are sorted as ``JointCodes`` sorts them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from m3n.features import Templates
from m3n.features.template_tuples import BEYOND, NO_WORD, keys_of
from m3n.io.template_syntax import Key
from m3n.shards.arrays import Arrays
from m3n.shards.names import Texts, Tuples

EACH = 180  # bytes of a value in memory, besides its letters


class GrowingValues:
    """The values of columns, as they come.

    Parameters
    ----------
    templates : Templates
        The templates.
    """

    def __init__(self, templates: Templates):
        self.templates, self.keys = templates, keys_of(templates)
        self._numbers = [defaultdict[str, int]() for _ in self.keys]
        for known in self._numbers:
            known.default_factory = known.__len__
        self._letters = 0

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return self._letters + EACH * sum(map(len, self._numbers))

    def codes(self, tuples: Tuples, own: np.ndarray) -> np.ndarray:
        """The numbers (attributes, macros) of the words of some attributes of a block.

        Parameters
        ----------
        tuples : Tuples
            All of them.
        own : array of int
            Which.
        """
        codes = tuples.codes[own]
        used = np.unique(codes[codes != NO_WORD])
        numbers = np.zeros(len(tuples.words) + 1, np.int32)  # the last is that of NO_WORD
        places = np.searchsorted(tuples.begins, used, side="right") - 1
        after = (used - tuples.begins[places + 1]).tolist()  # the last word of a column has -1
        for word, place, text, rest in zip(
            used.tolist(), places.tolist(), tuples.words.take(used).pieces(), after, strict=True
        ):
            if text[:1] == BEYOND:
                numbers[word] = rest  # below zero, from far behind a sentence to near before it
            else:
                numbers[word] = self._numbers[place][text[1:].decode("utf-8", "surrogatepass")]
                self._letters += len(text)
        return numbers[codes]

    def values(self) -> dict[Key, list[str]]:
        """The values by their numbers, with what forms make of what stands beyond sentences."""
        return {
            key: self.templates.with_symbols(key, list(known))
            for key, known in zip(self.keys, self._numbers, strict=True)
        }


class Placed(NamedTuple):
    """Attributes of templates, all of them.

    Attributes
    ----------
    owners : array of int (attributes,)
        The template of each, among those of positions or of pairs.
    codes : array of int32 (attributes, macros)
        The numbers of values.
    """

    owners: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, found: Iterable[tuple[np.ndarray, Tuples, np.ndarray]], count: int, values: GrowingValues) -> Placed:
        """From pieces: numbers of attributes, attributes of a block, and which of them they are."""
        owners, codes = np.empty(count, np.int16), np.empty((count, 0), np.int32)
        for numbers, tuples, own in found:
            if not codes.shape[1]:
                codes = np.empty((count, tuples.codes.shape[1]), np.int32)
            owners[numbers], codes[numbers] = tuples.owners[own], values.codes(tuples, own)
        return cls(owners, codes)


def learn(templates: Templates, placed: Placed, pair: bool) -> np.ndarray:
    """Let templates, which know all values, learn attributes; the numbers that these have there.

    Parameters
    ----------
    templates : Templates
        With ``values``, and attributes of which nothing is known.
    placed : Placed
        The attributes.
    pair : bool
        Whether they are attributes of pairs.
    """
    numbers, width = np.empty(len(placed.owners), np.int32), 0
    own = [(t, made) for t, made in zip(templates.parsed, templates.attributes, strict=True) if t.pair == pair]
    for j, (template, made) in enumerate(own):
        which = np.flatnonzero(placed.owners == j)
        parts = [_beyond(placed.codes[which, m], templates, key) for m, (_, key) in enumerate(template.macros)]
        numbers[which] = width + made.learn(parts or [np.zeros(len(which), np.int64)])
        width += len(made)
    return numbers


def _beyond(codes: np.ndarray, templates: Templates, key: Key) -> np.ndarray:
    """Codes in which what stands beyond sentences follows after the values."""
    return np.where(codes < 0, len(templates.words(key)) + codes, codes)


def with_values(templates: Templates, values: dict[Key, list[str]]) -> Templates:
    """The templates with these values, and nothing learnt of attributes.

    Parameters
    ----------
    templates : Templates
        The templates.
    values : dict
        From a column, or form of one, to its values.
    """
    found = templates.unfitted()
    found.restore(values, [()] * len(found.parsed))
    return found


def packed_templates(templates: Templates) -> Arrays:
    """What templates have learnt, as arrays of a file.

    Parameters
    ----------
    templates : Templates
        Fitted ones.
    """
    pairs = [(str(key), value) for key, values in templates.values.items() for value in values]
    texts = Texts.of(pairs)
    tables = [(j, table) for j, made in enumerate(templates.attributes) for table in made.tables]
    return {
        "letters": texts.letters,
        "ends": texts.ends,
        "keys": np.concatenate([table for _, table in tables]),
        "key_tables": np.array([(j, len(table)) for j, table in tables], np.int64),
    }


def unpacked_templates(templates: Templates, arrays: Arrays) -> Templates:
    """The templates again; a mistake in the arrays is a ValueError, an IndexError or the like.

    Parameters
    ----------
    templates : Templates
        The templates, without what they have learnt.
    arrays : dict of arrays
        What ``packed_templates`` has made.
    """
    values: dict[Key, list[str]] = {}
    for pair in Texts(arrays["letters"], arrays["ends"]).decoded():
        if isinstance(pair, str):
            raise ValueError(f"the value {pair!r:.60} belongs to no column")
        key, value = pair
        place: Key = int(key) if key.isdecimal() else key
        values.setdefault(place, []).append(value)
    owners, lengths = arrays["key_tables"].T
    if lengths.sum() != len(arrays["keys"]) or (lengths < 0).any():
        raise ValueError("tables do not end where keys end")
    tables = list(zip(owners.tolist(), np.split(arrays["keys"], np.cumsum(lengths)[:-1]), strict=True))
    found = templates.unfitted()
    for own in {key for template in found.parsed for _, key in template.macros}:
        values.setdefault(own, [])
    found.restore(values, [[table for j, table in tables if j == k] for k in range(len(found.parsed))])
    for made in found.attributes:
        for table, bound in filter(None, made.steps()):
            if len(table) and not (table[0] >= 0 and table[-1] < bound and (table[1:] > table[:-1]).all()):
                raise ValueError("the attributes of a template are not in order")
    return found
