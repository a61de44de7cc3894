"""What a lane holds for a method, at which place, and in which file.

A *place* is a run and how many calls have changed what its lanes hold. A call names the place where it expects them; a
lane that is elsewhere does nothing and says so. Files name their run, place and lane and have check sums; what is in
them is checked by the method before compiled code sees it.

``holdings`` has the driver's side.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from m3n.io.files import writing_atomically
from m3n.problem.lanes import Lane

T = TypeVar("T")

KEPT = "held"
READING = Lock()  # NumPy parses headers as Python, which Python 3.11 cannot do on two threads at once


class Place(NamedTuple):
    """Where what lanes hold has come to."""

    run: str
    calls: int

    @property
    def next(self) -> Place:
        """After one more call."""
        return Place(self.run, self.calls + 1)


class Holding(Protocol):
    """What a lane holds: something that can be written as arrays."""

    def arrays(self) -> Mapping[str, np.ndarray]:
        """All of it."""


class Held(NamedTuple):
    """What a lane holds, and where that is."""

    place: Place | None  # None while a call is changing it
    what: Any


class Told(Generic[T]):
    """The answer of a lane, or of several; None if one of them is elsewhere."""

    def __init__(self, answer: T | None, fine: bool = True):
        self.answer, self.fine = answer, fine

    def __add__(self, other: Told[T]) -> Told[T]:
        if not (self.fine and other.fine):
            return Told(None, fine=False)
        return Told(self.answer + other.answer)  # type: ignore[operator]


def begin(lane: Lane, place: Place, make: Callable[..., tuple[Holding, T]], *arguments: Any) -> Told[T]:
    """Hold something new.

    Parameters
    ----------
    lane : Lane
        Who.
    place : Place
        What to call it.
    make : callable
        A function of a module that makes it of the lane and the arguments, and an answer.
    """
    what, answer = make(lane, *arguments)
    lane.kept[KEPT] = Held(place, what)
    return Told(answer)


def call(lane: Lane, places: tuple[Place, Place], change: Callable[..., T], *arguments: Any) -> Told[T]:
    """Change what the lane holds.

    Parameters
    ----------
    lane : Lane
        Who.
    places : tuple of Place
        Where it must be, and where it is afterwards.
    change : callable
        A function of a module, of the lane, what it holds and the arguments.
    """
    held, (before, after) = lane.kept.get(KEPT), places
    if held is None or held.place != before:
        return Told(None, fine=False)
    lane.kept[KEPT] = Held(None, held.what)
    answer = change(lane, held.what, *arguments)
    lane.kept[KEPT] = Held(after, held.what)
    return Told(answer)


def save(lane: Lane, place: Place, folder: Path, scratch: Path, needed: tuple[int, ...]) -> Told[int]:
    """Write what the lane holds, if it is at a place, and remove what the run needs no longer; files written.

    Parameters
    ----------
    lane : Lane
        Who.
    place : Place
        Where it must be.
    folder : path
        Where the files of all lanes are.
    scratch : path
        Where files are that nobody needs after the run.
    needed : tuple of int
        Calls of the places to which the run may still return.
    """
    held = lane.kept.get(KEPT)
    if held is None or held.place != place:
        return Told(None, fine=False)
    path = file_of(folder, place, lane.number)
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing_atomically(path) as file:
        np.savez(file, **_names(place, lane.number), **held.what.arrays())
    stays = {file_of(scratch, Place(place.run, calls), lane.number) for calls in (*needed, place.calls)}
    for other in file_of(scratch, place, lane.number).parent.glob(f"{place.run}-*.npz"):
        if other not in stays:
            other.unlink(missing_ok=True)
    return Told(1)


def load(lane: Lane, place: Place, folder: Path, restored: Callable[[Lane, Any], Holding]) -> str:
    """Read what the lane held at a place; why that cannot be, or nothing.

    Parameters
    ----------
    lane : Lane
        Who.
    place : Place
        Where it was.
    folder : path
        Where the files of all lanes are.
    restored : callable
        A function of a module that makes it of the lane and the arrays, and refuses arrays that do not fit.
    """
    path = file_of(folder, place, lane.number)
    try:
        with READING, open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}  # with their check sums
        if any(arrays.pop(name, None) != value for name, value in _names(place, lane.number).items()):
            return f"{str(path)!r} belongs to another run, step or lane"
        lane.kept[KEPT] = Held(place, restored(lane, arrays))
    except FileNotFoundError:
        return f"{str(path)!r} is missing"
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        return f"{str(path)!r} is damaged ({error})"
    return ""


def file_of(folder: Path, place: Place, lane: int) -> Path:
    """Where a lane writes.

    Parameters
    ----------
    folder : path
        Where the files of all lanes are.
    place : Place
        The place.
    lane : int
        Number of the lane.
    """
    return folder / f"lane-{lane:05d}" / f"{place.run}-{place.calls:08d}.npz"


def _names(place: Place, lane: int) -> dict[str, Any]:
    return {"run": place.run, "calls": place.calls, "lane": lane}
