"""What users say about where passes run, and what becomes of a problem there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from m3n.problem import Objective, Problem
from m3n.problem.engines import Engine, ThreadEngine
from m3n.problem.sharded import Sharded
from m3n.problem.sources import Source
from m3n.problem.spool import Spooled
from m3n.solvers.base import at_least

DEADLINE = 1800.0  # seconds; a pass that takes longer is cut into more workers, or it hangs


class Backend(ABC):
    """Where passes run.

    Attributes
    ----------
    inside : bool
        Whether a problem in this process stays as it is.
    """

    inside: bool = False

    @abstractmethod
    def engine(self, make: Callable[[int], Source], n_jobs: int | None) -> Engine:
        """Workers for a source, which is made when it is known how many lanes there will be."""


@dataclass(frozen=True)
class Local(Backend):
    """Threads of this process.

    Parameters
    ----------
    lanes : int or None
        In how many parts shards are added up; the sums, and so the results, are the same bit for bit for the same
        number, on any number of threads or workers. None takes one per thread.
    memory : float or None
        Bytes that open shards may hold; None takes half of the free memory.
    """

    lanes: int | None = None
    memory: float | None = None

    inside = True

    def __post_init__(self) -> None:
        at_least(1, lanes=self.lanes)
        at_least(0, memory=self.memory)

    def engine(self, make: Callable[[int], Source], n_jobs: int | None) -> Engine:
        from m3n.packed.threads import resolve

        lanes = self.lanes or resolve(n_jobs)
        return ThreadEngine(make(lanes), n_jobs, lanes, self.memory)


@dataclass(frozen=True)
class Ray(Backend):
    """Workers of a Ray cluster, which read shards for themselves.

    Parameters
    ----------
    address : str or None
        Address of a running cluster, "auto" for the one that this machine belongs to; "local" starts one on this
        machine for the run. None takes the cluster that this process is connected to, or that the environment names,
        else a local one.
    workers : int or None
        How many; None takes what the cluster has, but for one processor that is left for this process.
    threads : int
        Threads of every worker.
    lanes : int or None
        As for ``Local``; None takes one per thread of all workers.
    memory : float or None
        Bytes that open shards of a worker may hold; None takes half of the memory that is free there.
    folder : path or None
        A folder that all workers see, for files of the run: what workers hold for a dual method, and the data of
        problems that are in this process. None takes a temporary one, which serves on one machine.
    deadline : float
        Seconds that workers may take for an answer.
    start : float
        Seconds within which all workers must have started: others may be using the processors.
    restarts : int
        How often a worker that died is started again.
    runtime_env : mapping or None
        Ray's environment for workers, where m3n is not installed on all machines.
    """

    address: str | None = None
    workers: int | None = None
    threads: int = 1
    lanes: int | None = None
    memory: float | None = None
    folder: str | Path | None = None
    deadline: float = DEADLINE
    start: float = 120.0
    restarts: int = 20
    runtime_env: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        at_least(1, workers=self.workers, threads=self.threads, lanes=self.lanes)
        at_least(0, memory=self.memory, deadline=self.deadline, start=self.start, restarts=self.restarts)

    def engine(self, make: Callable[[int], Source], n_jobs: int | None) -> Engine:
        from m3n.cluster.bridge import RayEngine

        return RayEngine(make, self, n_jobs)


BY_NAME: dict[str, Backend] = {"threads": Local(), "ray": Ray()}


def resolve_backend(backend: str | Backend | None) -> Backend:
    """A backend by its name, or as it is.

    Parameters
    ----------
    backend : str, Backend or None
        None means threads.
    """
    if backend is None:
        return BY_NAME["threads"]
    if isinstance(backend, Backend):
        return backend
    if backend not in BY_NAME:
        known = ", ".join(map(repr, BY_NAME))
        raise ValueError(f"unknown backend {backend!r}; choose from {known}, m3n.Local(...) or m3n.Ray(...)")
    return BY_NAME[backend]


@contextmanager
def placed(problem: Objective, backend: str | Backend | None) -> Iterator[Objective]:
    """The problem where its passes are to run, as long as it is needed.

    Parameters
    ----------
    problem : Problem
        What is to be minimised.
    backend : str, Backend or None
        Where; None leaves the problem where it is.
    """
    where = resolve_backend(problem.backend if isinstance(problem, Problem) and backend is None else backend)
    if where.inside:
        yield problem
        return
    if not isinstance(problem, Problem):
        raise TypeError("the passes of this problem run somewhere else already; leave backend= away")
    if problem.prior is not None:
        raise ValueError("a prior is for threads of this process, not for workers elsewhere: leave backend= away")
    folder, threads = where.folder if isinstance(where, Ray) else None, problem.threads.count
    with where.engine(lambda lanes: Spooled(problem, lanes, folder), threads) as engine:
        yield Sharded(engine, problem.lam, l1=problem.l1, n_jobs=threads, data=problem)
