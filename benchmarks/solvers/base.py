"""What an entry is given, what it hands back, and the clock between them.

An entry runs in a child process, in the interpreter that has its library. Whatever is timed is timed there, phase by
phase; the child's start and the judging of its answer are outside.
"""

from __future__ import annotations

import gc
import resource
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.datasets import Dataset, Sequences
from benchmarks.memory import memory_in_use, peak_memory
from benchmarks.objectives import Objective
from benchmarks.weights import Weights

OWN = "before data"  # of an interpreter with libraries and machine code
WARM, CALLS = 20, 1000  # sentences that are asked for one by one, before the clock runs and while it does


class Unsuitable(Exception):
    """The entry cannot do what the contest asks for; the message says why."""


class Stopwatch:
    """Seconds and CPU seconds since it was started, without those of pauses."""

    def start(self) -> None:
        """Start, or start again."""
        self.wall, self.cpu = time.perf_counter(), cpu_seconds()

    def read(self) -> tuple[float, float]:
        """What it shows now."""
        return time.perf_counter() - self.wall, cpu_seconds() - self.cpu

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A block that does not count."""
        wall, cpu = self.read()
        yield
        self.wall, self.cpu = time.perf_counter() - wall, cpu_seconds() - cpu


class Clock:
    """Seconds, CPU seconds and peaks of memory of the phases of a run and before it, milliseconds of single calls."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self.peak: dict[str, float] = {}
        self.calls: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[Stopwatch]:
        """Time a block; of a phase that happens several times the shortest one counts."""
        watch = Stopwatch()
        watch.start()
        yield watch
        for known, value in zip((self.seconds, self.cpu), watch.read(), strict=True):
            known[phase] = min(value, known.get(phase, value))
        self.peak[phase] = peak_memory()

    def ready(self) -> None:
        """Everything is loaded, and no data have been read yet."""
        gc.collect()
        self.peak[OWN] = memory_in_use()

    def best(self, phase: str, action: Callable[[], Any], times: int = 3) -> Any:
        """Time something short several times."""
        for _ in range(times):
            with self(phase):
                answer = action()
        return answer

    def each(self, tag: Callable[[Any], Any], sentences: list[Any], rounds: int = 3) -> None:
        """Time calls for one sentence after another, as a service makes them; by either clock a wait is a wait."""
        times = []
        for sentence in sentences[:WARM] + rounds * sentences[:CALLS]:
            begin = time.perf_counter()
            tag(sentence)
            times.append(1000.0 * (time.perf_counter() - begin))
        times = sorted(times[len(sentences[:WARM]) :])
        self.calls = {f"p{share}": times[len(times) * share // 100] for share in (50, 99)}


def cpu_seconds() -> float:
    """Of this process and of the programs that it has run."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@dataclass(frozen=True)
class Task:
    """What an entry is asked to do.

    Attributes
    ----------
    dataset, objective
        The data and what to minimise on them.
    settings : dict
        The entry's own, such as threads.
    stop : float
        Relative distance to the optimum at which an entry that knows its distance may stop.
    folder : Path
        For the entry's files; it is empty.
    """

    dataset: Dataset
    objective: Objective
    settings: dict[str, Any]
    stop: float
    folder: Path
    clock: Clock = field(default_factory=Clock)

    @property
    def lam(self) -> float:
        """Our weight of the regulariser."""
        return self.objective.lam(len(self.labels))

    @property
    def labels(self) -> Sequences:
        """The training labels."""
        return [labels for _, labels in self.dataset.sentences(self.dataset.train)]

    @property
    def asked(self) -> list[list[list[str]]]:
        """Attributes of test sentences that are to be tagged one by one."""
        return [attributes for attributes, _ in islice(self.dataset.sentences(self.dataset.test), CALLS)]


@dataclass(frozen=True)
class Point:
    """The state of a run at one time; what is not known is None."""

    seconds: float
    cpu: float
    objective: float | None = None
    gap: float | None = None
    score: float | None = None
    passes: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What came out.

    Attributes
    ----------
    found : list of lists of str, or None
        Labels of the test sequences.
    objective : float or None
        J by the entry's own account.
    weights : Weights or None
        What the judge computes J from.
    trace : list of Point
        Progress, in seconds of training.
    passes : float or None
        Iterations over the data, or passes.
    pass_seconds : pair of float, or None
        Seconds and CPU seconds of one of them.
    notes : dict
        Versions, sizes.
    """

    found: Sequences | None = None
    objective: float | None = None
    weights: Weights | None = None
    trace: list[Point] = field(default_factory=list)
    passes: float | None = None
    pass_seconds: tuple[float, float] | None = None
    notes: dict[str, Any] = field(default_factory=dict)


class Entry(ABC):
    """A competitor.

    Attributes
    ----------
    name : str
        In requests and tables.
    modules : tuple of str
        What its interpreter must be able to import.
    ours : bool
        Whether it runs in this interpreter; rivals have their own.
    objectives : tuple of str
        What it can minimise.
    """

    name: ClassVar[str]
    modules: ClassVar[tuple[str, ...]]
    ours: ClassVar[bool] = False
    objectives: ClassVar[tuple[str, ...]]

    @abstractmethod
    def run(self, task: Task) -> Outcome:
        """Ingest, train and tag, each under ``task.clock``."""

    def missing(self) -> str:
        """Why the entry cannot run in this interpreter; empty if it can."""
        from importlib.util import find_spec

        absent = [module for module in self.modules if find_spec(module) is None]
        return f"not installed: {', '.join(absent)}" if absent else ""
