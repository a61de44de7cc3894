"""Messages between two processes of a machine that ask and answer in turn.

What is pickled goes through a socket, the memory of arrays through a file that both have mapped: with vectors of
weights a socket would be the slowest part of a pass. A message is read before the next one is written, so one stretch
of the file serves for all of a direction.

An end that is interrupted in the middle of a message hangs up: what comes next could not be told from the rest of it.
"""

from __future__ import annotations

import mmap
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from m3n.problem.spool import PAGE, pickled

MEMORY = Path("/dev/shm")  # where files are memory, if there is such a place
ENDS = ("asking", "answering")  # names of the files


class Shared:
    """A file that is mapped, and grows.

    Parameters
    ----------
    path : path
        Where it is.
    """

    def __init__(self, path: Path):
        self.path, self.mapped = path, np.empty(0, np.uint8)

    def of_size(self, size: int) -> np.ndarray:
        """Its bytes, at least so many."""
        if len(self.mapped) < size:
            with open(self.path, "a+b") as file:
                if os.fstat(file.fileno()).st_size < size:
                    file.truncate(size)
                self.mapped = np.frombuffer(mmap.mmap(file.fileno(), 0), np.uint8)
        return self.mapped


class Channel:
    """One end of the conversation.

    Parameters
    ----------
    connection : Connection
        The socket.
    folder : path
        Where the files are.
    asks : bool
        Whether this end begins.
    """

    def __init__(self, connection: Connection, folder: Path, *, asks: bool):
        self.connection, self.asks = connection, asks
        self._mine, self._theirs = (Shared(folder / name) for name in (ENDS if asks else ENDS[::-1]))

    def send(self, thing: Any) -> None:
        """Send what can be pickled."""
        kept: list[pickle.PickleBuffer] = []
        head, buffers = pickled(thing, kept), [buffer.raw() for buffer in kept]
        starts = _starts([buffer.nbytes for buffer in buffers])
        memory = self._mine.of_size(starts[-1])
        with self._whole():
            for start, buffer in zip(starts, buffers, strict=False):
                memory[start : start + buffer.nbytes] = np.frombuffer(buffer, np.uint8)
            self.connection.send([buffer.nbytes for buffer in buffers])
            self.connection.send_bytes(head)

    def say(self, said: Said) -> None:
        """Send words that are no answer."""
        with self._whole():
            self.connection.send(said)

    def receive(self) -> Message | Said:
        """What was sent, to be opened, or what was said."""
        with self._whole():
            sizes = self.connection.recv()
            if isinstance(sizes, Said):
                return sizes
            starts, head = _starts(sizes), self.connection.recv_bytes()
            memory = self._theirs.of_size(starts[-1])
            views = [memory[start : start + size] for start, size in zip(starts, sizes, strict=False)]
            buffers = [view.copy() for view in views] if self.asks else views  # questions are over before the next one
        return Message(head, buffers)

    def waits(self, seconds: float) -> bool:
        """Whether there is a message within so many seconds."""
        return self.connection.poll(seconds)

    def close(self) -> None:
        """Hang up."""
        self.connection.close()

    @contextmanager
    def _whole(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise


class Message(NamedTuple):
    """A message that has arrived; what goes wrong with its content is no fault of the line.

    Attributes
    ----------
    head : bytes
        The pickle.
    buffers : list of arrays
        The memory of its arrays.
    """

    head: bytes
    buffers: list[np.ndarray]

    def open(self) -> Any:
        """Its content; arrays can be written to."""
        return pickle.loads(self.head, buffers=self.buffers)


class Said(NamedTuple):
    """What is to be logged at the other end, before the answer.

    Attributes
    ----------
    level : int
        As in ``logging``.
    text : str
        The message.
    """

    level: int
    text: str


class Failed:
    """What went wrong, as an answer.

    Parameters
    ----------
    error : Exception
        It.
    """

    def __init__(self, error: Exception):
        self.error = error


def sendable(error: Exception) -> Exception:
    """The error, or its words if it does not survive being pickled.

    Parameters
    ----------
    error : Exception
        Any.
    """
    try:
        return pickle.loads(pickle.dumps(error))
    except Exception:  # of any kind: whoever wrote the class decides
        return RuntimeError(f"{type(error).__name__}: {error}")


def _starts(sizes: list[int]) -> list[int]:
    """Where buffers of these sizes begin, and where the last one ends."""
    return [0, *accumulate(size + -size % PAGE for size in sizes)]
