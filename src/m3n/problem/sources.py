"""Where the examples of a problem are, if they are not all in this process: in shards that open one at a time.

A *source* knows what is to be known of all examples together and opens a shard wherever it is sent, so it must be small
when it is pickled: paths and settings, never the data.

Work is divided into *lanes*, ranges of neighbouring examples with about equal work. A lane adds up what its examples
say one after another, and the sums of all lanes are added up in a fixed tree: 0 + 1, 2 + 3, then these. So a sum
depends on the data and on the number of lanes, bit for bit, and on nothing else: not on who works for which lane, nor
when.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from m3n.features.base import FeatureMap
from m3n.losses.base import Cost
from m3n.packed import SERIAL
from m3n.problem.passes import SlackPass, ThreadedPass
from m3n.structures.base import Structure


class Data(NamedTuple):
    """Examples, opened.

    Attributes
    ----------
    structure, features, cost, gold : objects
        As in ``Problem``.
    weights : array (n,) or None
        Weights of the examples, whose mean over all shards is one.
    """

    structure: Structure
    features: FeatureMap
    cost: Cost
    gold: np.ndarray
    weights: np.ndarray | None


class Source(ABC):
    """The examples of a problem in shards.

    Attributes
    ----------
    sizes : array of int (shards,)
        Examples of every shard.
    work : array (shards,)
        What a pass over every shard costs, in any unit.
    held : array (shards,)
        Bytes that an open shard holds.
    dim : int
        Number of weights.
    weight_sum : float
        Number of all examples, or the sum of their weights: what lam = 1/n means.
    temperature : float
        The problem's T.
    rescale : str
        As in ``Problem``.
    name : str
        What messages call the structure.
    oracles : frozenset of str
        What the structure can answer.
    relaxed : bool
        Whether it has more outputs than there really are.
    edges : array of int (lanes + 1,) or None
        Where lanes must begin, and the last one ends; None: anywhere.
    """

    sizes: np.ndarray
    work: np.ndarray
    held: np.ndarray
    dim: int
    weight_sum: float
    temperature: float
    rescale: str = "margin"
    name: str
    oracles: frozenset[str]
    relaxed: bool = False
    edges: np.ndarray | None = None

    @abstractmethod
    def open(self, shard: int) -> Data:
        """The examples of a shard; what they hold may be mapped from a file."""

    @abstractmethod
    def parts(self) -> Mapping[str, str]:
        """What tells these examples from others, by name, for refusals."""

    def close(self) -> None:  # noqa: B027 (there may be nothing to do)
        """Nobody will open a shard any more."""

    @property
    def n(self) -> int:
        """Number of examples."""
        return int(self.sizes.sum())

    def opened(self, shard: int) -> ThreadedPass:
        """Passes over a shard, on one thread."""
        kind = SlackPass if self.rescale == "slack" else ThreadedPass
        return kind(*self.open(shard), self.n, self.temperature, SERIAL)


class Stretch(NamedTuple):
    """Examples ``low`` to ``high - 1`` of a shard."""

    shard: int
    low: int
    high: int


def cut(source: Source, lanes: int) -> list[list[Stretch]]:
    """The stretches of every lane, in the order of the examples; fewer lanes where there are fewer examples.

    Parameters
    ----------
    source : Source
        The examples.
    lanes : int
        How many lanes there should be.
    """
    before = np.concatenate([[0], np.cumsum(source.sizes)])
    edges = _edges(source, lanes, before) if source.edges is None else source.edges
    return [list(_stretches(before, low, high)) for low, high in pairwise(edges.tolist())]


def _edges(source: Source, lanes: int, before: np.ndarray) -> np.ndarray:
    """Where lanes of equal work begin, if that of a shard is shared alike by its examples."""
    ends = np.cumsum(source.work)
    targets = ends[-1] * np.arange(1, lanes) / lanes
    shards = np.searchsorted(ends, targets)
    shares = 1.0 - (ends[shards] - targets) / source.work[shards]
    cuts = before[shards] + np.rint(shares * source.sizes[shards]).astype(np.int64)
    return np.unique([0, *cuts.tolist(), source.n])


def _stretches(before: np.ndarray, low: int, high: int) -> Iterator[Stretch]:
    """Examples low..high-1 of all, shard by shard."""
    shard = int(np.searchsorted(before, low, side="right")) - 1
    while low < high:
        end = min(int(before[shard + 1]), high)
        if low < end:
            yield Stretch(shard, low - int(before[shard]), end - int(before[shard]))
        low, shard = end, shard + 1


class Sum(Protocol):
    """What can be added up."""

    def __add__(self, other: Any, /) -> Self:
        """The sum."""


T = TypeVar("T", bound=Sum)
Node = tuple[int, int]  # level, and number from the left: it stands for 2**level lanes


def climbed(known: Mapping[Node, T], lanes: int) -> dict[Node, T]:
    """The sums of a fixed tree over the lanes, from those that are known up as far as they lead.

    Parameters
    ----------
    known : mapping
        Sums by their place; lane k is (0, k).
    lanes : int
        How many lanes there are.
    """
    found, level, width = dict(known), 0, lanes
    while width > 1:
        for k in range(0, width, 2):
            left, right = (level, k), (level, k + 1)
            if left in found and (right in found or k + 1 == width):
                one = found.pop(left)
                found[level + 1, k // 2] = one + found.pop(right) if k + 1 < width else one
        level, width = level + 1, (width + 1) // 2
    return found


def total(answers: list[T]) -> T:
    """The sum of the answers of all lanes, in the order of the tree.

    Parameters
    ----------
    answers : list
        One per lane.
    """
    (root,) = climbed({(0, k): answer for k, answer in enumerate(answers)}, len(answers)).values()
    return root
