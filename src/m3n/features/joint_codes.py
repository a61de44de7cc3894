"""Numbers for tuples of small integers, without a Python object per tuple.

A tuple (c_1, c_2, ...) with 0 <= c_j < size_j is one integer, its key: (c_1 * size_2 + c_2) * size_3 + ... The sorted
distinct keys are a table, and a tuple's number is the rank of its key. Where the next product could exceed 62 bits,
keys are first replaced by their ranks in a table of their own. A negative code means "absent" and makes the tuple so.

Cost: a few passes over arrays for small domains, a sort or a binary search for large ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ABSENT = -1
KEY_LIMIT = 2**62
TABLE_PER_KEY = 16  # a direct table may be so many times longer than the keys before sorting is quicker


class JointCodes:
    """Tuples of codes, numbered in the order of their keys.

    Parameters
    ----------
    sizes : sequence of int
        How many codes each place of the tuple has.
    tables : sequence of arrays
        What an earlier object learnt.
    """

    def __init__(self, sizes: Sequence[int], tables: Sequence[np.ndarray] = ()):
        self.sizes = tuple(sizes)
        self.tables = list(tables)

    def __len__(self) -> int:
        return len(self.tables[-1])

    def learn(self, parts: Sequence[np.ndarray], least: int = 1, known: Sequence[np.ndarray] = ()) -> np.ndarray:
        """Number the tuples that occur so often; ``parts[j]`` has the j-th code of every tuple.

        Those of ``known``, written in the same way, get numbers however often they occur.
        """
        self.tables, count = [], len(parts[0])
        if known:
            parts = [np.concatenate([part, np.tile(own, least)]) for part, own in zip(parts, known, strict=True)]
        numbers = self._number(parts, learn=True)
        return (numbers if least <= 1 else self._frequent(numbers, least))[:count]

    def _frequent(self, numbers: np.ndarray, least: int) -> np.ndarray:
        """Forget tuples that occur less often; the numbers of the others."""
        kept = np.bincount(numbers[numbers >= 0], minlength=len(self)) >= least
        self.tables[-1] = self.tables[-1][kept]
        rank = np.append(np.where(kept, np.cumsum(kept) - 1, ABSENT), ABSENT)  # the last entry is that of ABSENT
        return rank[numbers]

    def find(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """The numbers of tuples; ABSENT for those that ``learn`` did not see."""
        return self._number(parts, learn=False)

    def split(self) -> list[np.ndarray]:
        """The codes of all tuples that were learnt: one array per place."""
        keys, parts = self.tables[-1], []
        for size, through in reversed(list(zip(self.sizes[1:], self.steps()[1:-1], strict=True))):
            keys, code = np.divmod(keys, size)
            keys = keys if through is None else through[0][keys]
            parts.append(code)
        return [keys, *reversed(parts)]

    def steps(self) -> list[tuple[np.ndarray, int] | None]:
        """For every place the table, and the bound of its keys, that keys go through before it, and the last ones."""
        domain, level, found = self.sizes[0], 0, list[tuple[np.ndarray, int] | None]([None])
        for size in self.sizes[1:]:
            through = None
            if domain * size > KEY_LIMIT:
                through = self.tables[level], domain
                domain, level = len(self.tables[level]), level + 1
            found.append(through)
            domain *= size
        return [*found, (self.tables[-1], domain)]

    def _number(self, parts: Sequence[np.ndarray], learn: bool) -> np.ndarray:
        keys, domain, level = parts[0].astype(np.int64), self.sizes[0], 0
        for part, size in zip(parts[1:], self.sizes[1:], strict=True):
            if domain * size > KEY_LIMIT:
                keys, domain = self._rank(keys, domain, level, learn)
                level += 1
            keys = np.where((keys < 0) | (part < 0), ABSENT, keys * size + part)
            domain *= size
        return self._rank(keys, domain, level, learn)[0]

    def _rank(self, keys: np.ndarray, domain: int, level: int, learn: bool) -> tuple[np.ndarray, int]:
        if learn:
            self.tables.append(_distinct(keys, domain))
        table = self.tables[level]
        return _ranks(keys, table, domain), len(table)


def _distinct(keys: np.ndarray, domain: int) -> np.ndarray:
    """The sorted distinct keys that are not ABSENT."""
    present = keys[keys >= 0]
    if domain > TABLE_PER_KEY * len(keys):
        present.sort()  # np.unique hashes, which takes eight times as long here
        return present[np.diff(present, prepend=ABSENT) > 0]
    seen = np.zeros(domain, dtype=bool)
    seen[present] = True
    return np.flatnonzero(seen)


def _ranks(keys: np.ndarray, table: np.ndarray, domain: int) -> np.ndarray:
    """The places of keys in a sorted table, ABSENT for those that are not in it."""
    if not len(table):
        return np.full(len(keys), ABSENT)
    if domain > TABLE_PER_KEY * len(keys):
        places = np.minimum(np.searchsorted(table, keys), len(table) - 1)
        return np.where(table[places] == keys, places, ABSENT)
    direct = np.full(domain + 1, ABSENT)  # the last entry is that of the key -1
    direct[table] = np.arange(len(table))
    return direct[keys]
