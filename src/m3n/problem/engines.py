"""Who works for the lanes: threads of this process. ``m3n.cluster`` has workers of a Ray cluster.

An engine calls functions of modules, ``function(lane, *arguments)``, for every lane, and returns the answers in their
order, or their sum in the order of the tree (``sources.climbed``). Arguments are lent for the time of the call.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cached_property
from pathlib import Path
from typing import Any, Concatenate, Self, TypeVar

from m3n.io.folders import temporary_folder
from m3n.packed.memory import free_memory
from m3n.packed.threads import resolve
from m3n.problem.lanes import Lane
from m3n.problem.sources import Node, Source, Stretch, Sum, climbed, cut, total

T = TypeVar("T")
A = TypeVar("A", bound=Sum)
SHARE = 0.5  # of the free memory that open shards may hold


class EngineLost(ConnectionError):
    """Nobody is left to work for some lanes."""


class Engine(ABC):
    """Workers for the lanes of a source.

    Attributes
    ----------
    source : Source
        The examples.
    stretches : list of lists of Stretch
        The examples of every lane.
    scratch : path
        A folder for files of a run, which every worker should see.
    inside : path or None
        Where that is made; None takes the usual place for temporary files.
    """

    source: Source
    stretches: list[list[Stretch]]
    inside: str | Path | None = None

    @cached_property
    def scratch(self) -> Path:
        folder, self._removed = temporary_folder(self, self.inside)
        return folder

    @property
    def lanes(self) -> int:
        """How many lanes there are."""
        return len(self.stretches)

    @property
    def sizes(self) -> list[int]:
        """How many examples every lane has."""
        return [sum(stretch.high - stretch.low for stretch in own) for own in self.stretches]

    @abstractmethod
    def run(self, function: Callable[..., T], *arguments: Any, each: Sequence[Any] | None = None) -> list[T]:
        """Call a function of a module for every lane; with ``each`` its own argument comes last."""

    @abstractmethod
    def total(self, function: Callable[..., A], *arguments: Any, each: Sequence[Any] | None = None) -> A:
        """The sum of the answers in the order of the tree."""

    def close(self) -> None:
        """Let the workers go."""
        if "_removed" in vars(self):
            self._removed()
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class ThreadEngine(Engine):
    """Threads of this process.

    Parameters
    ----------
    source : Source
        The examples.
    n_jobs : int or None
        Threads; None takes every core.
    lanes : int or None
        Lanes; None takes one per thread.
    memory : float or None
        Bytes that open shards may hold; None takes half of the free memory.
    """

    def __init__(
        self, source: Source, n_jobs: int | None = None, lanes: int | None = None, memory: float | None = None
    ):
        self.source, threads = source, resolve(n_jobs)
        self.stretches = cut(source, lanes or threads)
        self.crew = Crew(source, dict(enumerate(self.stretches)), threads, memory)

    def run(self, function: Callable[..., T], *arguments: Any, each: Sequence[Any] | None = None) -> list[T]:
        return self.crew.run(function, arguments, each)

    def total(self, function: Callable[..., A], *arguments: Any, each: Sequence[Any] | None = None) -> A:
        return total(self.run(function, *arguments, each=each))

    def close(self) -> None:
        self.crew.close()
        super().close()


class Crew:
    """Threads of one process that work for some of the lanes.

    Parameters
    ----------
    source : Source
        All examples.
    stretches : mapping from int to list of Stretch
        The examples of every lane by its number.
    threads : int
        How many lanes are worked for at a time.
    memory : float or None
        Bytes that open shards of all of them may hold; None takes half of the free memory.
    """

    def __init__(self, source: Source, stretches: Mapping[int, list[Any]], threads: int, memory: float | None):
        own = (free_memory() * SHARE if memory is None else memory) / len(stretches)
        self.lanes = [Lane(source, given, number, own) for number, given in stretches.items()]
        self.threads = min(threads, len(self.lanes))

    def run(
        self, function: Callable[Concatenate[Lane, ...], T], arguments: Sequence[Any], each: Sequence[Any] | None
    ) -> list[T]:
        """The answers for these lanes, in order; ``each`` has one argument per lane of them."""
        own = [()] * len(self.lanes) if each is None else [(argument,) for argument in each]
        if self.threads == 1:
            return [function(lane, *arguments, *last) for lane, last in zip(self.lanes, own, strict=True)]
        pairs = zip(self.lanes, own, strict=True)
        calls = [self._pool.submit(function, lane, *arguments, *last) for lane, last in pairs]
        try:
            return [call.result() for call in calls]
        finally:
            wait(calls)

    def sums(
        self, function: Callable[..., A], arguments: Sequence[Any], each: Sequence[Any] | None, lanes: int
    ) -> dict[Node, A]:
        """The answers added up as far as these lanes lead in the tree of all."""
        answers = zip(self.lanes, self.run(function, arguments, each), strict=True)
        return climbed({(0, lane.number): answer for lane, answer in answers}, lanes)

    def close(self) -> None:
        """End the threads."""
        if "_pool" in vars(self):
            self._pool.shutdown()

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, thread_name_prefix=f"m3n_lane_{os.getpid()}")
