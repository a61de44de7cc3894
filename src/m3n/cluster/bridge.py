"""The process between a run and a Ray cluster.

Ray ends every process that is connected to a cluster which is no more. So a process of its own is connected, and the
run asks it through a socket: when it ends, the run notices, keeps what it knows, writes its checkpoint and says how to
go on. When the run ends, however it does, the socket closes and so does this process.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Client, Listener
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from m3n.cluster.channel import MEMORY, Channel, Failed, Message, Said, sendable
from m3n.cluster.workers import Workers
from m3n.io.folders import temporary_folder
from m3n.packed.threads import resolve
from m3n.problem.engines import Engine, EngineLost
from m3n.problem.sources import Source, Sum, cut

if TYPE_CHECKING:
    from m3n.cluster.backends import Ray

T = TypeVar("T")
A = TypeVar("A", bound=Sum)
log = logging.getLogger("m3n")
START = 120.0  # seconds until the process has begun
LONGER = 2.0  # than the deadline of answers: the process itself hangs


class RayEngine(Engine):
    """Workers of a Ray cluster for the lanes of a source, asked through the process between.

    Parameters
    ----------
    make : callable
        Makes the source for a number of lanes.
    settings : Ray
        What the user says.
    n_jobs : int or None
        How many workers a cluster of this machine has, if the settings do not say.
    """

    def __init__(self, make: Callable[[int], Source], settings: Ray, n_jobs: int | None = None):
        self.settings, self._turn, self._owed = settings, Lock(), False
        self.inside = settings.folder
        folder, self._hung_up = temporary_folder(self, MEMORY if MEMORY.is_dir() else None)
        self._process, self._channel = _begun(folder, settings.deadline)
        try:
            count = self._ask("connect", settings, _connected(), resolve(n_jobs))
            lanes = settings.lanes or count * settings.threads
            self.source = make(lanes)
            self.stretches = cut(self.source, lanes)
            self._ask("start", self.source, self.stretches)
        except BaseException:
            self.close()
            raise

    def run(self, function: Callable[..., T], *arguments: Any, each: Sequence[Any] | None = None) -> list[T]:
        return self._ask("run", function, arguments, each)

    def total(self, function: Callable[..., A], *arguments: Any, each: Sequence[Any] | None = None) -> A:
        return self._ask("total", function, arguments, each)

    def close(self) -> None:
        """Let the workers go."""
        self._channel.close()
        try:
            self._process.wait(START)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._hung_up()
        if hasattr(self, "source"):
            super().close()

    def _ask(self, method: str, *arguments: Any) -> Any:
        with self._turn:
            try:
                while self._owed:  # to whoever was interrupted while it waited
                    self._message()
                self._channel.send((method, arguments))
                self._owed = True
                message = self._message()
            except EngineLost:
                raise
            except (EOFError, OSError) as error:
                raise EngineLost("the cluster is gone, and with it the process that was connected to it") from error
        answer = message.open()
        if isinstance(answer, Failed):
            raise answer.error
        return answer

    def _message(self) -> Message:
        """The answer; what is said before it is logged."""
        if not self._channel.waits(LONGER * self.settings.deadline):
            raise EngineLost(f"the process that is connected to the cluster (pid {self._process.pid}) hangs")
        message = self._channel.receive()
        if isinstance(message, Said):
            log.log(message.level, message.text)
            return self._message()
        self._owed = False
        return message


def serve(address: str) -> None:
    """Answer questions until nobody is there to ask them.

    Parameters
    ----------
    address : str
        Where the run listens.
    """
    workers: Workers | None = None
    with Client(address) as connection:
        channel = Channel(connection, Path(address).parent, asks=False)
        log.addHandler(Forwarding(channel))
        log.setLevel(logging.INFO)
        try:
            while True:
                question = channel.receive()
                assert isinstance(question, Message)  # a run says nothing
                try:
                    method, arguments = question.open()
                    if workers is None:
                        workers = Workers(*arguments)
                        answer: Any = workers.count
                    else:
                        answer = getattr(workers, method)(*arguments)
                except Exception as error:  # the run is who must know
                    answer = Failed(sendable(error))
                channel.send(answer)
        except (EOFError, OSError):  # the run has ended
            pass
        finally:
            shutil.rmtree(Path(address).parent, ignore_errors=True)  # memory, which a run that was killed leaves behind
            if workers is not None:
                workers.close()


class Forwarding(logging.Handler):
    """Hands messages on to the run.

    Parameters
    ----------
    channel : Channel
        Where to.
    """

    def __init__(self, channel: Channel):
        super().__init__()
        self.channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        """Send a message."""
        self.channel.say(Said(record.levelno, record.getMessage()))


def _begun(folder: Path, deadline: float) -> tuple[subprocess.Popen[bytes], Channel]:
    """The process, and the connection with it."""
    address = str(folder / "bridge")
    with Listener(address) as listener:
        process = subprocess.Popen(
            [sys.executable, "-m", "m3n.cluster.bridge", address],
            stdin=subprocess.DEVNULL, start_new_session=True, env={**os.environ, "PYTHONPATH": _path()},
        )  # fmt: skip
        listener._listener._socket.settimeout(min(START, deadline))  # type: ignore[attr-defined]
        try:
            return process, Channel(listener.accept(), folder, asks=True)
        except OSError as error:
            process.kill()
            raise EngineLost("the process that connects to the cluster did not start") from error


def _path() -> str:
    """Where this process finds modules, so that others find the same."""
    return os.pathsep.join(path for path in sys.path if path)


def _connected() -> str | None:
    """The address of the cluster that this process is connected to."""
    ray = sys.modules.get("ray")
    return ray.get_runtime_context().gcs_address if ray is not None and ray.is_initialized() else None


if __name__ == "__main__":
    serve(sys.argv[1])
