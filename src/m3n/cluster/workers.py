"""Workers of a Ray cluster: an actor for some lanes each, which opens its shards itself. This runs in the bridge.

A question goes to every worker as the name of a function and its arguments; w is put into the object store once, and
every node fetches it once. A worker adds up what its own lanes make of the tree; with more than a few workers the rest
is added up by workers too, pair by pair, and only one vector comes back here.

Workers hold nothing that cannot be made again. One that dies is started again by Ray, opens its shards and answers the
question again; whoever waits notices nothing but the time. So an answer is always that of all examples. What does not
come back within ``restarts`` and ``deadline`` ends the run with ``EngineLost``. Functions are sent by their names.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from m3n.packed.threads import single_threaded_blas
from m3n.problem.engines import Crew, EngineLost
from m3n.problem.lanes import Lane
from m3n.problem.sources import Node, Source, Stretch, Sum, climbed

if TYPE_CHECKING:
    from m3n.cluster.backends import Ray

log = logging.getLogger("m3n")

T = TypeVar("T")
A = TypeVar("A", bound=Sum)
LOCAL = "local"
SMALL = 1 << 16  # bytes: larger arrays are put into the object store, once for all workers
TICK = 30.0  # seconds between two messages about who is waited for
REACH = 10.0  # seconds to find out whether anybody is at an address
FEW = 4  # workers whose sums are added up here
TRIES, PAUSE = 5, 3.0  # of a question to workers that cannot be reached for the moment, and seconds between them


class Worker:
    """Lanes of one process of the cluster.

    Parameters
    ----------
    source : Source
        All examples.
    stretches : dict
        The examples of its lanes.
    lanes : int
        How many lanes there are in all.
    threads : int
        Of this process.
    memory : float or None
        Bytes that open shards may hold.
    """

    def __init__(
        self, source: Source, stretches: dict[int, list[Stretch]], lanes: int, threads: int, memory: float | None
    ):
        self.crew, self.lanes = Crew(source, stretches, threads, memory), lanes
        single_threaded_blas().__enter__()  # as long as this process is there

    def node(self) -> str:
        """Where it is."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def warm(self) -> None:
        """Open the first shard and call what passes call, so that it is compiled."""
        _warm(self.crew.lanes[0])

    def run(self, function: Callable[..., T], each: Sequence[Any] | None, *arguments: Any) -> list[T]:
        """The answers for its lanes."""
        return self.crew.run(function, lent(arguments), each)

    def sums(self, function: Callable[..., A], each: Sequence[Any] | None, *arguments: Any) -> dict[Node, A]:
        """The answers for its lanes, added up as far as they lead."""
        return self.crew.sums(function, lent(arguments), each, self.lanes)

    def joined(self, *known: dict[Node, A]) -> dict[Node, A]:
        """Sums of several workers, added up as far as they lead."""
        return climbed({place: found for each in known for place, found in each.items()}, self.lanes)


class Lent:
    """The memory of an array of the object store, for arrays that could be written to.

    Nobody does: arguments are lent to all lanes at once. Compiled code would be compiled once more for arrays that
    cannot be written to, and a copy of all weights would cost a tenth of a pass.

    Parameters
    ----------
    array : array
        It; it stays there as long as any view of this memory.
    """

    def __init__(self, array: np.ndarray):
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def lent(arguments: Sequence[Any]) -> list[Any]:
    """Arguments for the time of a call.

    Parameters
    ----------
    arguments : sequence
        Anything; arrays may be read-only.
    """
    return [np.asarray(Lent(a)) if isinstance(a, np.ndarray) and not a.flags.writeable else a for a in arguments]


def _warm(lane: Lane) -> None:
    one, w = np.arange(1), np.zeros(lane.source.dim)
    lane.value(w, one)
    if "hard" in lane.source.oracles:
        lane.hard(w, 1.0, one)
    if lane.source.oracles & {"soft", "smoothed"} and lane.source.rescale == "margin":
        lane.soft(w, 1.0, 1.0, one)


class Workers:
    """Workers of a Ray cluster for the lanes of a source.

    Parameters
    ----------
    settings : Ray
        What the user says.
    cluster : str or None
        Address of the cluster that the run is connected to.
    most : int
        How many workers a cluster of this machine has, if the settings do not say.
    """

    def __init__(self, settings: Ray, cluster: str | None, most: int):
        self.ray, self.settings, self.actors = _imported(), settings, list[Any]()
        address = settings.address or cluster or os.environ.get("RAY_ADDRESS") or LOCAL
        self.started = _connect(self.ray, address, (settings.workers or most) * settings.threads)
        self.count = settings.workers or self._room()
        self.threads = settings.threads

    def start(self, source: Source, stretches: list[list[Stretch]]) -> None:
        """Start them, one of every node first: the others find there what it has compiled."""
        self.lanes = len(stretches)
        own = np.array_split(np.arange(self.lanes), min(self.count, self.lanes))
        self.edges = [0, *(int(numbers[-1]) + 1 for numbers in own)]
        self._check_room(len(own))
        kind = self.ray.remote(Worker).options(
            num_cpus=self.threads, max_restarts=self.settings.restarts, max_task_retries=-1,
            scheduling_strategy="SPREAD", runtime_env=dict(self.settings.runtime_env or {}),
        )  # fmt: skip
        for numbers in own:  # nothing of the object store: a worker must be able to begin again when that is lost
            given = source, {int(k): stretches[k] for k in numbers}, self.lanes
            self.actors.append(kind.remote(*given, self.threads, self.settings.memory))
        first = dict[str, int]()
        for k, node in enumerate(self._started_on()):
            first.setdefault(node, k)
        others = [worker for k, worker in enumerate(self.actors) if k not in first.values()]
        self._got(lambda: [self.actors[k].warm.remote() for k in first.values()])
        self._got(lambda: [worker.warm.remote() for worker in others])

    def run(self, function: Callable[..., T], arguments: Sequence[Any], each: Sequence[Any] | None) -> list[T]:
        """The answers for all lanes."""
        answers = self._got(lambda: self._asked("run", function, arguments, each))
        return [answer for own in answers for answer in own]

    def total(self, function: Callable[..., A], arguments: Sequence[Any], each: Sequence[Any] | None) -> A:
        """Their sum."""
        answers = self._got(lambda: self._gathered(self._asked("sums", function, arguments, each)))
        (root,) = climbed({place: found for own in answers for place, found in own.items()}, self.lanes).values()
        return root

    def _started_on(self) -> list[str]:
        """The nodes of all workers, as soon as they have started."""
        return self._got(lambda: [worker.node.remote() for worker in self.actors], starting=True)

    def close(self) -> None:
        """Let them go, and the cluster too if it was started for them."""
        for actor in self.actors:
            self.ray.kill(actor)
        self.actors = []
        if self.started:
            self.ray.shutdown()

    def _room(self) -> int:
        """How many workers the cluster has room for, but for one processor."""
        return max((self._free() - 1) // self.settings.threads, 1)

    def _free(self) -> int:
        """Processors that nobody uses."""
        return int(self.ray.available_resources().get("CPU", 0))

    def _check_room(self, workers: int) -> None:
        needed, there = workers * self.threads, int(self.ray.cluster_resources().get("CPU", 0))
        if needed > there:
            raise EngineLost(f"{self._needs(workers)}, but the cluster has {there}; ask for fewer workers")
        if needed > self._free():
            log.warning("%s, and %d are free: waiting for others to end", self._needs(workers), self._free())

    def _needs(self, workers: int) -> str:
        return f"{workers} workers with {self.threads} threads each need {workers * self.threads} processors"

    def _asked(
        self, method: str, function: Callable[..., Any], arguments: Sequence[Any], each: Sequence[Any] | None
    ) -> list[Any]:
        """Put a question to all workers; what stands for their answers."""
        shared = [self._put(argument) for argument in arguments]
        parts = [None if each is None else list(each[low:high]) for low, high in pairwise(self.edges)]
        return [
            getattr(worker, method).remote(function, part, *shared)
            for worker, part in zip(self.actors, parts, strict=True)
        ]

    def _gathered(self, answers: list[Any]) -> list[Any]:
        """The sums of many workers, added up pair by pair by workers."""
        while len(answers) > FEW:
            pairs = enumerate(answers[k : k + 2] for k in range(0, len(answers), 2))
            answers = [self.actors[2 * k % len(self.actors)].joined.remote(*pair) for k, pair in pairs]
        return answers

    def _put(self, argument: Any) -> Any:
        large = isinstance(argument, np.ndarray) and argument.nbytes > SMALL
        return self.ray.put(argument) if large else argument

    def _got(self, ask: Callable[[], list[Any]], starting: bool = False) -> list[Any]:
        """The answers to a question, which is put again where workers could not be reached for the moment."""
        errors = self.ray.exceptions
        for _ in range(TRIES):
            try:
                return self._waited(ask(), starting)
            except (errors.ActorUnavailableError, errors.ObjectLostError) as error:
                log.warning("a worker cannot be reached for the moment, asking again: %s", _words(error))
                time.sleep(PAUSE)
            except errors.RayTaskError as error:
                raise _own(error) from None
            except EngineLost:
                raise
            except (errors.RayError, ConnectionError) as error:
                raise EngineLost(f"{_words(error)} (restarts={self.settings.restarts})") from error
        raise EngineLost(f"workers could not be reached {TRIES} times in a row")

    def _waited(self, answers: list[Any], starting: bool) -> list[Any]:
        """The answers, with a message now and then about how many are missing; not for ever."""
        begin, missing = time.monotonic(), answers
        most = self.settings.start if starting else self.settings.deadline
        while missing:
            left = begin + most - time.monotonic()
            _, missing = self.ray.wait(missing, num_returns=len(missing), timeout=max(min(TICK, left), 0.0))
            if missing and left <= 0.0:
                raise EngineLost(self._silence(len(missing), starting))
            if missing:
                waited = time.monotonic() - begin
                log.info("%d of %d answers are missing for %.0f s now", len(missing), len(answers), waited)
        return self.ray.get(answers)

    def _silence(self, missing: int, starting: bool) -> str:
        if starting:
            return (
                f"{missing} of {len(self.actors)} workers have not started within {self.settings.start:g} s, and "
                f"{self._free()} processors of the cluster are free: ask for fewer workers, or for a longer start="
            )
        return (
            f"{missing} workers have not answered within {self.settings.deadline:g} s; if passes take that long, take "
            "more workers or a longer deadline="
        )


def _own(error: Any) -> BaseException:
    """What went wrong on a worker, as it would have been raised here; an end of its lanes' shards too."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, Exception) else EngineLost(_words(error))


def _words(error: BaseException) -> str:
    """What an error says in one line: of those of Ray with a traceback, the last one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1 if any("Traceback" in line for line in lines) else 0] if lines else type(error).__name__


def _imported() -> Any:
    try:
        import ray
    except ImportError:
        raise ImportError('backend="ray" needs Ray; install it with: pip install "m3n[ray]"') from None
    return ray


def _connect(ray: Any, address: str, processors: int) -> bool:
    """Connect to a cluster; whether one was started for this run alone."""
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL:
        own = {"worker_niceness": 0}  # this machine is there for them
        ray.init(address=LOCAL, num_cpus=processors + 1, include_dashboard=False, _system_config=own, **quiet)
        return True
    try:
        _check_reachable(address)
        ray.init(address=address, **quiet)
    except (OSError, RuntimeError) as error:
        raise EngineLost(f"there is no cluster at {address!r}: {_words(error)}") from None
    return False


def _check_reachable(address: str) -> None:
    """Raise an error at once if nobody is there; Ray tries for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), REACH).close()
