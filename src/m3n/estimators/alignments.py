"""Reading sentence pairs and their alignments, with errors that name the place and the remedy; what links cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from m3n.alignment.grid import Grid
from m3n.alignment.pairs import read_pairs
from m3n.estimators.inputs import PlainReader
from m3n.io.alignments import Alignment
from m3n.losses import Cost, Loss
from m3n.structures import Structure

Pair = tuple[list[str], list[str]]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Sentence pairs, and the features of their links and words.

    Attributes
    ----------
    X : list of (source words, target words)
        The pairs.
    grid : Grid
        Their links.
    matrix : array (links, attributes)
        Features of all links.
    words : tuple of array (source words, attributes) and array (target words, attributes)
        Features of words without a link.
    likely : array (links,)
        How likely links are without labels.
    """

    X: list[Pair]
    grid: Grid
    matrix: np.ndarray
    words: tuple[np.ndarray, np.ndarray]
    likely: np.ndarray

    def only(self, chosen: np.ndarray) -> Pairs:
        """Some of the pairs, in the given order."""
        grid, links = self.grid.only(chosen)
        words = tuple(self.words[side][self._words_of(chosen, side)] for side in (0, 1))
        return Pairs([self.X[k] for k in chosen], grid, self.matrix[links], words, self.likely[links])

    def arrays(self) -> Iterator[Any]:
        """What tells these inputs from others."""
        yield from (self.matrix, *self.words, self.grid.sizes)

    def _words_of(self, chosen: np.ndarray, side: int) -> np.ndarray:
        counts = self.grid.sizes[:, side]
        first = np.cumsum(counts) - counts
        return np.concatenate([np.arange(first[k], first[k] + counts[k]) for k in chosen])


@dataclass(eq=False)
class PairReader(PlainReader):
    """Checks sentence pairs, and knows the names of the features that a model was trained with.

    Attributes
    ----------
    names, word_names : list of str
        Of the features of links, and of words without a link.
    """

    names: list[str] = field(default_factory=list)
    word_names: list[str] = field(default_factory=list)

    @property
    def vectorizer(self) -> Self:
        """Who knows the names."""
        return self

    def read(self, X: Any) -> list[Pair]:
        """Sentence pairs as lists of words."""
        return read_pairs(X)

    @classmethod
    def unpacked(cls, plain: Mapping[str, Any], tensors: Mapping[str, np.ndarray], templates: Any) -> Self:
        """The reader that ``packed`` has written."""
        reader = super().unpacked(plain, tensors, templates)
        if len(reader.names) != reader.width:
            raise ValueError(f"{len(reader.names)} names of {reader.width} features")
        return reader


def read_links(y: Any, sizes: np.ndarray) -> list[Alignment]:
    """Alignments whose links exist.

    Parameters
    ----------
    y : sequence of Alignment or iterables of (int, int)
        The links of every pair.
    sizes : array of int (n, 2)
        Source words and target words of every pair.
    """
    if len(y) != len(sizes):
        raise ValueError(f"X has {len(sizes)} sentence pairs but y has {len(y)} alignments")
    found = []
    for k, (links, (rows, columns)) in enumerate(zip(y, sizes.tolist(), strict=True)):
        alignment = Alignment.of(links)
        for i, j in (*alignment.sure, *alignment.possible):
            if not (0 <= i < rows and 0 <= j < columns):
                raise ValueError(
                    f"pair {k}: the link {i}-{j} is outside of 0..{rows - 1} and 0..{columns - 1}; "
                    "words are counted from 0, those of the source first"
                )
        found.append(alignment)
    return found


@dataclass(frozen=True, eq=False)
class LinkPrices(Loss):
    """Links that an output lacks or should not have, each at its own price.

    Parameters
    ----------
    prices : array (links, 1)
        Negative for links that should be there, positive for those that should not, 0 where it does not matter.
    """

    prices: np.ndarray

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        return Cost.of_parts(structure, gold, {0: self.prices}, constant="gold")


def link_prices(
    grid: Grid, alignments: Sequence[Alignment], missed: float, spurious: float, possible: float
) -> np.ndarray:
    """What every link costs, (links,): negative where it is right.

    Parameters
    ----------
    grid : Grid
        The links.
    alignments : sequence of Alignment
        The right ones.
    missed, spurious, possible : float
        Prices of a sure link that is missing, of a link that is neither sure nor possible, and of a possible link that
        is missing.
    """
    prices = np.full(int(grid.first[-1]), spurious)
    prices[grid.numbers([alignment.possible for alignment in alignments])] = -possible
    prices[grid.numbers([alignment.sure for alignment in alignments])] = -missed
    return prices
