"""Matchings: links between two sides, as many per word as it has slots (1 as a rule).

Every source word has ``fertility[0]`` slots, every target word ``fertility[1]``. A slot holds a link or, if it is free,
the null part of its word, which therefore counts once for each free slot; a link counts once. The score of an output is

    sum over links of theta_ij + sum_i free_i s_i + sum_j free_j t_j

theta = (link (pairs, 1), source null (rows, 1), target null (columns, 1)). Cost of the max-oracle: one shortest path
per slot of a source word, O(pairs) each at most, see ``oracles.matching_paths``. To count outputs is #P-hard (the
permanent), so there is no exp-oracle, and no CRF. Methods that smooth the maximum take the entropy of the means of
links and of free slots as their prox, see ``oracles.matching_soft``; its diameter has a closed form if all links are
allowed, and that is a bound if not.

Since a null part counts several times with larger fertilities, let losses count links then: ``PartLoss(arrays=[0])``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from m3n.compiled.oracles.matching import FertileSpace, MatchingSpace
from m3n.structures.links import LinkStructure, running
from m3n.structures.slack import Restriction


class Matching(LinkStructure):
    """Links between source and target words, of which every word has a few at most.

    Parameters
    ----------
    sizes : sequence of (int, int)
        Source and target words of every sentence pair, at least 1 each.
    fertility : tuple of int
        Most links of a source word, and of a target word.
    allowed : sequence of array of bool (source words, target words), optional
        Which links every pair may have; all of them if nothing is given. A link score of -inf forbids, too, and a null
        score of -inf says that a word must use all of its slots.

    Examples
    --------
    >>> import numpy as np
    >>> from m3n.structures import Matching
    >>> matchings = Matching([(2, 3)])
    >>> scores = np.array([[3.0, 2.0, 0.0], [2.9, 0.0, -1.0]])
    >>> value, best = matchings.hard((scores.reshape(-1, 1), np.zeros((2, 1)), np.zeros((3, 1))))
    >>> float(value[0]), matchings.unpack(best)
    (4.9, [[(0, 1), (1, 0)]])
    """

    def __init__(
        self,
        sizes: Sequence[tuple[int, int]] | np.ndarray,
        fertility: tuple[int, int] = (1, 1),
        allowed: Sequence[Any] | None = None,
    ):
        self.fertility = _checked_fertility(fertility)
        super().__init__(sizes, allowed)

    def spans(self) -> tuple[np.ndarray | None, ...]:
        return *super().spans(), running(self.columns)

    def most_parts(self) -> np.ndarray:
        return self.sizes @ np.array(self.fertility)

    def diameter(self) -> np.ndarray:
        full = np.array([_largest_entropy(rows, columns, *self.fertility) for rows, columns in self.sizes])
        return full if self.allowed is None else np.minimum(full, self._row_bounds())

    def branches(self, one: np.ndarray, other: np.ndarray) -> list[Restriction]:
        """Outputs with and without a link: null parts, which may count several times, follow from links."""
        links = self.shapes[0][0]
        only_one, only_other = (np.setdiff1d(a[(a >= 0) & (a < links)], b) for a, b in ((one, other), (other, one)))
        if not (only_one.size or only_other.size):
            return []
        mask = np.zeros(self.shapes[0], bool)
        mask[int(only_one[0] if only_one.size else only_other[0])] = True
        divided = [Restriction(0, mask), Restriction(0, mask, required=True)]
        return divided if only_one.size else divided[::-1]

    def space(self) -> MatchingSpace | FertileSpace:
        kind = MatchingSpace if self.fertility == (1, 1) else FertileSpace
        return kind(self._table, *self.fertility)

    def _row_bounds(self) -> np.ndarray:
        """The largest entropy of every row by itself, and of the free slots of every column, (n,)."""
        slots, free = self.fertility[0], self.fertility[1] / np.e
        rows = (slots * np.log1p(self._mask(i).sum(axis=1) / slots).sum() for i in range(self.n))
        return np.fromiter(rows, float, self.n) + free * self.columns

    def _alike(self, sizes: np.ndarray, allowed: Sequence[np.ndarray] | None) -> Matching:
        return Matching(sizes, self.fertility, allowed)

    def _check_bounds(self, links: np.ndarray, example: int) -> None:
        for side, (word, most) in enumerate(zip(("row", "column"), self.fertility, strict=True)):
            reason = f"its {word} has {most} already; raise fertility, or leave links out"
            self._refuse(links, self._repeated(links, side, most), example, reason)

    def _parts(self, links: np.ndarray, example: int) -> np.ndarray:
        rows, columns = self.sizes[example].tolist()
        pairs, (row_slots, column_slots) = rows * columns, self.fertility
        free_rows = np.repeat(np.arange(rows), row_slots - np.bincount(links[:, 0], minlength=rows))
        free_columns = np.repeat(np.arange(columns), column_slots - np.bincount(links[:, 1], minlength=columns))
        return np.concatenate([links @ (columns, 1), pairs + free_rows, pairs + rows + free_columns])

    def _outputs(self, example: int) -> Iterator[list[tuple[int, int]]]:
        mask, (row_slots, column_slots) = self._mask(example), self.fertility

        def below(row: int, free: np.ndarray) -> Iterator[list[tuple[int, int]]]:
            if row == len(mask):
                yield []
                return
            possible = np.flatnonzero(mask[row] & (free > 0)).tolist()
            for count in range(min(row_slots, len(possible)) + 1):
                for chosen in combinations(possible, count):
                    taken = np.isin(np.arange(len(free)), chosen)
                    yield from ([*((row, j) for j in chosen), *rest] for rest in below(row + 1, free - taken))

        return below(0, np.full(mask.shape[1], column_slots))


def _checked_fertility(fertility: tuple[int, int]) -> tuple[int, int]:
    given = np.asarray(fertility)
    if given.shape != (2,) or given.dtype.kind not in "iu" or given.min() < 1:
        raise ValueError(f"fertility must be two whole numbers, at least 1 each, got {fertility!r}")
    source, target = given.tolist()
    return source, target


def _largest_entropy(rows: int, columns: int, row_slots: int, column_slots: int) -> float:
    """The largest h of a full table: by symmetry, and as h is concave, where all links have the same mean x.

    There x = e (s/c) (t/d), s = c - columns x, t = d - rows x: the smaller root of a quadratic, or 1, its bound.
    """
    p, q = columns / row_slots, rows / column_slots
    b = np.e * (p + q) + 1.0
    x = min(1.0, 2.0 * np.e / (b + np.sqrt(b * b - 4.0 * np.e**2 * p * q)))
    s, t = 1.0 - p * x, 1.0 - q * x
    means, shares = np.array([x, s, t]), np.array([rows * columns, rows * row_slots, columns * column_slots])
    used = means > 0.0
    return float(-(shares[used] * means[used] * np.log(means[used])).sum())
