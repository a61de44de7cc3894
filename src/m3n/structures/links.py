"""What alignments have in common: sizes of sentence pairs, links that may be used, and links as the user writes them.

Example i pairs ``rows`` source words with ``columns`` target words (or points of one frame with those of the next). An
output is a sorted list of links (row, column), counted from 0. The first two arrays of theta score links and source
words without one; they have one column, so that maps of one label (``features.Dense(X, 1)``) serve them:

    link (pairs, 1), row by row of every example;   source null (rows, 1)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from m3n.compiled.oracles.links import LinkTable
from m3n.structures.base import Examples, Selection, Structure, Words

Links = Sequence[tuple[int, int]]


class LinkStructure(Structure):
    """Sets of links between the rows and the columns of tables.

    Parameters
    ----------
    sizes : sequence of (int, int)
        Rows and columns of every example, at least 1 each.
    allowed : sequence of array of bool (rows, columns), optional
        Which links every example may have; all of them if nothing is given.
    """

    words: ClassVar[Words] = Words("example", "rows", "lists of links")

    def __init__(self, sizes: Sequence[tuple[int, int]] | np.ndarray, allowed: Sequence[Any] | None = None):
        self.sizes = _checked_sizes(sizes)
        self.n, (self.rows, self.columns) = len(self.sizes), np.ascontiguousarray(self.sizes.T)
        self.allowed = None if allowed is None else _checked_masks(allowed, self.sizes)
        self.shapes = tuple((int(span[-1]), 1) for span in self.spans() if span is not None)

    def spans(self) -> tuple[np.ndarray | None, ...]:
        return running(self.rows * self.columns), running(self.rows)

    def parts_of(self, output: Links, example: int) -> np.ndarray:
        links = self._read(output, example)
        self._check_bounds(links, example)
        return self._parts(links, example)

    def output_of(self, parts: np.ndarray, example: int) -> list[tuple[int, int]]:
        columns = int(self.columns[example])
        if len(parts) == 0:
            raise ValueError(f"example {example} has no output: no set of links obeys all that is forbidden")
        links = parts[parts < int(self.rows[example]) * columns]
        return list(zip((links // columns).tolist(), (links % columns).tolist(), strict=True))

    def enumerate(self, example: int) -> Iterator[np.ndarray]:
        alone, _ = self.select(np.array([example]))
        return (alone.pack([links]) for links in self._outputs(example))

    def select(self, examples: Examples) -> tuple[Structure, tuple[Selection, ...]]:
        chosen = np.arange(self.n)[examples]
        masks = None if self.allowed is None else [self.allowed[i] for i in chosen]
        return self._alike(self.sizes[chosen], masks), self.rows_of(examples)

    @abstractmethod
    def _alike(self, sizes: np.ndarray, allowed: Sequence[np.ndarray] | None) -> Self:
        """The same structure of other examples."""

    @abstractmethod
    def _parts(self, links: np.ndarray, example: int) -> np.ndarray:
        """The parts of links (count, 2) that are an output."""

    def _row_parts(self, links: np.ndarray, example: int) -> np.ndarray:
        """Links, and the null parts of rows without one."""
        rows, columns = self.sizes[example]
        return np.concatenate([links @ (columns, 1), rows * columns + np.setdiff1d(np.arange(rows), links[:, 0])])

    def _check_bounds(self, links: np.ndarray, example: int) -> None:
        """Refuse a row with several links."""
        self._refuse(links, self._repeated(links, 0, 1), example, "its row has another link already; keep one of them")

    def _outputs(self, example: int) -> Iterator[list[tuple[int, int]]]:
        """Every output: one column or none for every row."""
        for columns in product(*([-1, *np.flatnonzero(own)] for own in self._mask(example))):
            yield [(i, int(j)) for i, j in enumerate(columns) if j >= 0]

    def _mask(self, example: int) -> np.ndarray:
        """The links that an example may have, (rows, columns)."""
        return np.ones(self.sizes[example], bool) if self.allowed is None else self.allowed[example]

    def _choices(self) -> np.ndarray:
        """log of the number of ways to give every row one of its columns, or none, (n,)."""
        if self.allowed is None:
            return self.rows * np.log(self.columns + 1.0)
        return np.array([np.log(own.sum(axis=1) + 1.0).sum() for own in self.allowed])

    @cached_property
    def _table(self) -> LinkTable:
        barred = np.empty(0, bool) if self.allowed is None else ~np.concatenate([own.ravel() for own in self.allowed])
        return LinkTable(self.rows, self.columns, running(self.rows * self.columns), barred)

    def _read(self, output: Links, example: int) -> np.ndarray:
        """Links as an array (count, 2) of different ones that exist, sorted."""
        links = np.asarray(output if len(output) else np.empty((0, 2), np.int64))
        if links.dtype.kind not in "iu" or links.ndim != 2 or links.shape[1] != 2:
            raise ValueError(
                f"example {example}: an output is a list of links (row, column), all of them whole numbers"
            )
        rows, columns = self.sizes[example].tolist()
        outside = np.any((links < 0) | (links >= (rows, columns)), axis=1)
        self._refuse(links, outside, example, f"rows are 0 to {rows - 1}, columns 0 to {columns - 1}")
        links = links[np.lexsort(links.T[::-1])].astype(np.int64)
        twice = np.concatenate([[False], (links[1:] == links[:-1]).all(axis=1)])[: len(links)]
        self._refuse(links, twice, example, "it is listed twice")
        barred = ~self._mask(example)[tuple(links.T)]
        self._refuse(links, barred, example, "it is not allowed; allow it, or leave it out")
        return links

    def _repeated(self, links: np.ndarray, side: int, most: int) -> np.ndarray:
        """Which links are one too many for their row (side 0) or column (1), (count,)."""
        same = links[:, None, side] == links[None, :, side]
        return np.tril(same).sum(axis=1) > most

    def _refuse(self, links: np.ndarray, wrong: np.ndarray, example: int, reason: str) -> None:
        """Name the first link that is wrong."""
        if wrong.any():
            row, column = links[int(wrong.argmax())].tolist()
            raise ValueError(f"example {example}, link ({row}, {column}): {reason}")


def _checked_sizes(sizes: Sequence[tuple[int, int]] | np.ndarray) -> np.ndarray:
    array = np.asarray(sizes)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError("sizes must list the rows and columns of at least one example, pairs of whole numbers")
    if array.min() < 1:
        wrong = int(array.min(axis=1).argmin())
        raise ValueError(f"example {wrong} has the size {tuple(array[wrong].tolist())}; leave empty examples out")
    return array.astype(np.int64)


def _checked_masks(allowed: Sequence[Any], sizes: np.ndarray) -> list[np.ndarray]:
    if len(allowed) != len(sizes):
        raise ValueError(f"{len(sizes)} examples, but {len(allowed)} arrays of allowed links")
    masks = [np.ascontiguousarray(own, dtype=bool) for own in allowed]
    for i, (own, size) in enumerate(zip(masks, sizes.tolist(), strict=True)):
        if own.shape != tuple(size):
            raise ValueError(f"example {i}: allowed must have the shape {tuple(size)}, got {own.shape}")
    return masks


def running(counts: np.ndarray) -> np.ndarray:
    """Where groups of these sizes begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
