"""Compile at once: while a run begins, other processes compile what it will need later.

``tasks.json`` lists the entry points and types of arguments that runs asked for when it was recorded (``python -m
benchmarks start --record``), and the seconds that each took. It only saves time: what it does not know is compiled when
it is needed, and what has changed since is left out. Processes that compile the same function find out by its lock (see
``store``) and go on with another.

``M3N_COMPILE_PROCESSES`` limits the processes, this one included; 1 means no others.
"""

import json
import logging
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from m3n.compiled import store
from m3n.compiled.progress import Wanted, progress
from m3n.compiled.signatures import types_of

TASKS = Path(__file__).parent / "tasks.json"
WORTH = 3.0  # seconds of compilation for which another process is started

log = logging.getLogger("m3n")


@dataclass(frozen=True)
class Need:
    """An entry point for arguments of some types."""

    name: str  # module:function
    types: str
    seconds: float = field(default=0.0, compare=False)  # to compile it

    @property
    def ready(self) -> bool:
        """Whether its machine code is on disk."""
        return store.find(self.name, self.types) is not None

    def compile(self) -> None:
        """Make its machine code, unless another process is at it or the code has changed since it was listed."""
        module, _, function = self.name.partition(":")
        try:
            getattr(import_module(module), function).compile(types_of(self.types), wait=False)
        except store.Busy:
            pass
        except Exception as error:
            log.debug("%s cannot be compiled beforehand: %r", self.name, error)


def waiting(left: Sequence[Wanted]) -> str:
    """What a person who waits should know."""
    seconds = sum(need.seconds for need in left) / processes()
    text = f"compiling {len(left)} function{'s' * (len(left) > 1)}" + (
        f", about {seconds:.0f} s" if seconds >= 1 else ""
    )
    return text + (", only once" if store.folder() else ", at every start: set M3N_KERNEL_CACHE to a folder")


progress.describe = waiting
_announced: set[str] = set()
_helpers: list[subprocess.Popen[str]] = []


def expect(run: str) -> None:
    """Announce a run; if much is to be compiled for it, other processes begin with the longest parts."""
    if run in _announced:
        return
    _announced.add(run)
    left = [need for need in needs(run) if not need.ready]
    progress.expected.update(left)
    if left:
        log.info(waiting(left))
    others = min(processes() - 1, len(left) - 1)
    if others > 0 and sum(need.seconds for need in left) > WORTH and store.folder() is not None:
        _helpers.extend(start(left, others))


def compile_another() -> bool:
    """While other processes compile what this one waits for: compile something else that was announced."""
    for need in sorted(progress.expected, key=lambda need: -need.seconds):
        if not need.ready:
            need.compile()
            if need.ready:
                return True
    return False


def needs(name: str) -> list[Need]:
    """The entry points of a run, of a task, or of "all", as far as they are known."""
    known = listed()
    numbers = known["functions"] if name == "all" else known["runs"].get(name) or known["tasks"].get(name, ())
    return [Need(*known["functions"][number]) for number in numbers]


@cache
def listed() -> dict[str, Any]:
    """The list of what is compiled for what."""
    with suppress(OSError, ValueError):
        return json.loads(TASKS.read_text())
    return {"functions": {}, "tasks": {}, "runs": {}}


def processes() -> int:
    """How many processes compile at the same time."""
    limit = os.environ.get("M3N_COMPILE_PROCESSES", "")
    if limit.isdigit():
        return max(int(limit), 1)
    interpreter = Path(sys.executable or "").name.lower()
    if getattr(sys, "frozen", False) or "python" not in interpreter:
        return 1  # another programme with Python inside: it must not be started again
    if multiprocessing.parent_process() is not None:
        return 1  # one of several workers, which have their own cores
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start(wanted: Iterable[Need], count: int) -> list[subprocess.Popen[str]]:
    """Processes that compile, the longest first, and end with this one."""
    ordered = sorted(wanted, key=lambda need: -need.seconds)
    text = json.dumps([(need.name, need.types) for need in ordered])
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command, nowhere = [sys.executable, "-m", "m3n.compiled.ahead"], subprocess.DEVNULL
    started = []
    with suppress(OSError):
        for _ in range(count):
            child = subprocess.Popen(
                command, env=environment, text=True, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere
            )
            assert child.stdin is not None
            child.stdin.write(text + "\n")
            child.stdin.flush()  # it stays open: its end tells the child that this process has ended
            started.append(child)
    return started


def compile_all(task: str, told: Callable[[list[Need]], None] | None = None) -> list[Need]:
    """Compile what a task needs in as many processes as there are cores; returns what could not be compiled.

    Parameters
    ----------
    task : str
        A task of ``tasks.json``, or "all".
    told : callable, optional
        Called several times a second with what is left.
    """
    wanted = [need for need in needs(task) if not need.ready]
    children = start(wanted, min(processes(), len(wanted)))
    while any(child.poll() is None for child in children):
        if told is not None:
            told([need for need in wanted if not need.ready])
        time.sleep(0.2)
    for child in children:
        child.communicate()
    return [need for need in wanted if not need.ready]


def work() -> None:
    """Compile what is asked for on standard input; end when that ends."""
    import threading

    wanted = [Need(*item) for item in json.loads(sys.stdin.readline())]

    def end_with_parent() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()
    for need in wanted:
        if not need.ready:
            need.compile()


if __name__ == "__main__":
    work()
