"""Attributes of templates, whose values have one numbering for all blocks.

The values of columns (words, their lower case, their suffixes) are few in comparison with attributes, and whoever reads
new tokens later has them in memory, too: they are numbered in memory, in the order in which they appear. What stands
beyond a sentence, ``_B-1`` for example, has numbers below zero until all values are known. At the end the attributes
of a template are sorted as ``JointCodes`` sorts them, so that ``Templates`` finds the same numbers for new tokens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import scipy.sparse

from m3n.features import Templates
from m3n.io.template_syntax import Key
from m3n.shards.arrays import Arrays
from m3n.shards.blocks import Rows
from m3n.shards.names import Texts, Tuples

EACH = 200  # bytes of a value in memory, besides its letters


class GrowingValues:
    """The values of columns, as they come."""

    def __init__(self) -> None:
        self.numbers: dict[Key, defaultdict[str, int]] = {}
        self.size = 0  # bytes of memory, about

    def rows(self, local: Templates, matrix: scipy.sparse.csr_array, pair: bool) -> Rows:
        """What templates have made of a block, with the attributes in the numbers of values.

        Parameters
        ----------
        local : Templates
            What they have learnt from the block.
        matrix : csr_array
            The rows.
        pair : bool
            Whether these are attributes of pairs.
        """
        own = [(t, made) for t, made in zip(local.parsed, local.attributes, strict=True) if t.pair == pair]
        codes = np.zeros((sum(len(made) for _, made in own), max(len(t.macros) for t, _ in own) or 1), np.int32)
        maps, low = {key: self._numbers(local, key) for t, _ in own for _, key in t.macros}, 0
        for template, made in own:
            for j, ((_, key), part) in enumerate(zip(template.macros, made.split(), strict=False)):
                codes[low : low + len(made), j] = maps[key][part]
            low += len(made)
        return Rows(matrix, Tuples(np.array([len(made) for _, made in own], np.int64), codes))

    def _numbers(self, local: Templates, key: Key) -> np.ndarray:
        """The number of every value of a block, and of what stands beyond its sentences."""
        if key not in self.numbers:
            self.numbers[key] = defaultdict()
            self.numbers[key].default_factory = self.numbers[key].__len__
        known = self.numbers[key]
        before, values = len(known), local.values[key]
        found = np.fromiter(map(known.__getitem__, values), np.int32, len(values))
        new = len(known) - before
        self.size += new * EACH + (sum(map(len, values)) * new // max(len(values), 1))
        return np.concatenate([found, -1 - np.arange(len(local.words(key)) - len(values), dtype=np.int32)])

    def texts(self) -> dict[Key, list[str]]:
        """The values by their numbers."""
        return {key: list(known) for key, known in self.numbers.items()}


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
    def of(cls, found: Iterable[tuple[np.ndarray, Tuples, np.ndarray]], count: int) -> Placed:
        """From pieces: numbers of attributes, attributes of a block, and which of them they are."""
        owners, codes = np.empty(count, np.int16), np.empty((count, 0), np.int32)
        for numbers, tuples, chosen in found:
            if not codes.shape[1]:
                codes = np.empty((count, tuples.codes.shape[1]), np.int32)
            owners[numbers], codes[numbers] = tuples.owners[chosen], tuples.codes[chosen]
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
    return np.where(codes < 0, len(templates.values[key]) - 1 - codes, codes)


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
    tables = list(zip(owners.tolist(), np.split(arrays["keys"], np.cumsum(lengths)[:-1]), strict=True))
    found = templates.unfitted()
    for own in {key for template in found.parsed for _, key in template.macros}:
        values.setdefault(own, [])
    found.restore(values, [[table for j, table in tables if j == k] for k in range(len(found.parsed))])
    return found
