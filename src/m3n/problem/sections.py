"""The examples of a lane one by one, for methods that visit them: plain arrays for every stretch, kept in the lane.

These methods hold their examples in memory. What is here can be made again from the shards at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from m3n.problem.blocks import Blocks
from m3n.problem.lanes import Lane
from m3n.problem.passes import ThreadedPass

KEPT, EXTENT = "sections", "extent"


class Section:
    """Examples of a stretch, as compiled visits see them.

    Attributes
    ----------
    n, dim : int
        Number of its examples, and of weights.
    temperature : float
        The problem's T.
    share : float
        Its part of all examples: sums over it are divided by its own number of examples in compiled code.
    blocks : Blocks
        Plain arrays.
    """

    def __init__(self, whole: ThreadedPass):
        self.n, self.dim, self.temperature = whole.n, whole.dim, whole.temperature
        self.share = whole.n / whole.total
        self.blocks = Blocks(whole.structure, whole.features, whole.cost, whole.gold, whole.weights)

    def visit(self, sweep: Any, *arguments: Any, asks: str = "hard", soft: int = 0) -> Any:
        """Run compiled code that visits examples one by one; whoever asked for it counts the calls of oracles."""
        del soft
        return self.blocks.run(sweep, *arguments, asks=asks)


def sections(lane: Lane) -> list[Section]:
    """Those of a lane, made when they are first needed.

    Parameters
    ----------
    lane : Lane
        The lane.
    """
    if KEPT not in lane.kept:
        lane.kept[KEPT] = [Section(whole) for whole in lane.passes()]
    return lane.kept[KEPT]


def shared_out(parts: list[Section], order: np.ndarray) -> Iterator[np.ndarray]:
    """For every section its own of some examples, numbered from its first one, in the order given.

    Parameters
    ----------
    parts : list of Section
        All sections of a lane.
    order : array of int
        Examples, numbered from the lane's first one.
    """
    first = 0
    for part in parts:
        yield order[(order >= first) & (order < first + part.n)] - first
        first += part.n


class Extent(NamedTuple):
    """What is to be known of a lane's examples before any method is chosen."""

    parts: float  # scores of all examples
    obstacle: str  # why examples cannot be visited one by one; empty if they can

    def __add__(self, other: Extent) -> Extent:  # type: ignore[override]
        """Of both."""
        return Extent(self.parts + other.parts, self.obstacle or other.obstacle)


def extent(lane: Lane) -> Extent:
    """How much a lane's examples are.

    Parameters
    ----------
    lane : Lane
        The lane.
    """
    if EXTENT not in lane.kept:
        lane.kept[EXTENT] = float(sum(whole.structure.layout.lengths.sum() for whole in lane.passes()))
    return Extent(lane.kept[EXTENT], "")


def obstacle(lane: Lane, asks: str) -> Extent:
    """Why its examples cannot be visited one by one by compiled code, found out by trying.

    Parameters
    ----------
    lane : Lane
        The lane.
    asks : str
        The oracle that visits call.
    """
    try:
        fine = all(part.blocks.compiles(asks) for part in sections(lane))
    except TypeError as error:  # the map cannot be written out example by example
        return Extent(0.0, f"no visits of single examples ({error})")
    return Extent(0.0, "" if fine else f"{lane.source.name} has no compiled visits of single examples")
