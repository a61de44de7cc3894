"""What lanes hold for a method between its calls, and how that outlives whoever works for them.

A dual method on several workers has a state in two parts: a few vectors, which its steps pass on from one to the next,
and the dual points of the examples, which stay in the lanes and change in place. Every call that may change them names
the *place* where it expects them: the run, and how many calls have led there. A lane that is elsewhere, because its
worker was lost or a step was interrupted, does nothing and says so (``Forgotten``).

Then all lanes go back to the last *safe* state, and the steps since are repeated. Steps depend on the state and on the
seed alone, so the result is the same to the last bit. A state becomes safe every few steps: each lane writes its arrays
to a file of its own. The state a run begins with is safe as it is, if lanes can make it again from the shards.

A checkpoint needs files that outlive the process: ``secure`` writes them where it is told, and what is pickled of
``Holdings`` is the name of the run and of that folder.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

from m3n.problem.engines import EngineLost
from m3n.problem.places import Place, Told, begin, call, file_of, load, save
from m3n.problem.sharded import Sharded

log = logging.getLogger("m3n")

T = TypeVar("T")
S = TypeVar("S", bound="HeldState")

OFTEN = 8  # steps from one safe state to the next: writing one takes about half a step
TRIALS = 20  # of the same step, before a cluster is given up that forgets all the time
WITHOUT = "the state was saved without what workers held; m3n.checkpoint.Checkpoint saves both"


class Forgotten(Exception):
    """Some lane is not where it should be."""


class Unreadable(ValueError):
    """Files of a run that was saved are missing, foreign or damaged."""


class HeldState(Protocol):
    """A state of a method that holds things in lanes."""

    @property
    def held(self) -> Holdings:
        """Shared by all states of a run."""

    @property
    def calls(self) -> int:
        """How many calls have led to what the lanes held then."""


class Safe(NamedTuple):
    """A state to which lanes can return."""

    state: Any
    folder: Path


class Holdings:
    """What the lanes hold for a run.

    Parameters
    ----------
    problem : Sharded
        The examples.

    Attributes
    ----------
    run : str
        Its name, which no other run has.
    calls : int
        How many calls have led to what lanes hold now.
    """

    restored: ClassVar[Callable[..., Any]]  # as in ``load``

    def __init__(self, problem: Sharded):
        self.problem = problem
        self._begin(token_hex(8), None)

    def _begin(self, run: str, folder: Path | None) -> None:
        self.run, self.calls = run, 0
        self.make: Callable[[Any, Any], Any] | None = None  # the method's step
        self.again: Callable[[], Any] | None = None  # makes the first state
        self.first: Safe | None = None  # if that cannot be made again
        self.newest: Safe | None = None
        self.since = 0  # steps since the newest
        self.folder, self.secured = folder, -1  # of the newest files that outlive the process, and their calls

    def __getstate__(self) -> dict[str, Any]:
        return {"run": self.run, "folder": None if self.folder is None else str(self.folder)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        run, folder = str(state["run"]), state["folder"]
        if not re.fullmatch("[0-9a-f]{16}", run):  # names of files begin with it
            raise ValueError(f"no run is called {run:.40}")
        self._begin(run, None if folder is None else Path(str(folder)))

    def within(self, problem: Sharded) -> bool:
        """Whether the lanes of a problem can have what is held here, or files."""
        return self.folder is not None or vars(self).get("problem", problem).engine is problem.engine

    def begun(self, first: Callable[[Self], S]) -> S:
        """The first state, which ``first`` makes with ``hold``, again if need be."""
        self.again = partial(first, self)
        return self.again()

    def hold(self, make: Callable[..., tuple[Any, T]], *arguments: Any) -> T:
        """Let lanes hold something new, as ``begin`` says; the sum of their answers."""
        self.calls = 0
        return self._answer(self.problem.engine.total(begin, Place(self.run, 0), make, *arguments))

    def total(self, change: Callable[..., T], *arguments: Any) -> T:
        """Change what lanes hold, as ``call`` says; the sum of their answers."""
        before = Place(self.run, self.calls)
        self.calls += 1
        return self._answer(self.problem.engine.total(call, (before, before.next), change, *arguments))

    def taken_over(self, old: HeldState, first: Callable[[Self, Any], S], change: Callable[..., Any], *given: Any) -> S:
        """The first state of a run whose lanes hold what they did in another one's, changed: that run ends thereby.

        ``first`` makes it of the sum of the answers of ``change``.
        """

        def take() -> S:
            self.calls, places = 0, (Place(old.held.run, old.calls), Place(self.run, 0))
            state = first(self, self._answer(self.problem.engine.total(call, places, change, *given)))
            self._save(state, self.problem.engine.scratch)
            self.first = self.newest
            return state

        old.held.problem = vars(old.held).get("problem", self.problem)
        return old.held._insisting(old, take)

    def step(self, problem: Sharded, state: S, make: Callable[[Sharded, S], S]) -> S:
        """``make(problem, state)``, the next state, however often lanes forget; now and then it is made safe."""
        self.problem = problem
        new = self._insisting(state, lambda: self._made(state, make))
        self.since += 1
        if self.since >= OFTEN:
            self._try_to_save(new)
        return new

    def require_readable(self, problem: Any, state: HeldState) -> None:
        """Refuse a state that comes from a file if lanes cannot read theirs; without lanes the first step does."""
        if isinstance(problem, Sharded):
            self.problem = problem
            complaint = self._loaded(Safe(state, self.folder)) if self.folder else WITHOUT
            if complaint:
                raise Unreadable(complaint)

    def secure(self, state: HeldState, folder: Path) -> None:
        """Write what lanes hold at a state to files that outlive the process, if that has not been done."""
        if (folder, state.calls) != (self.folder, self.secured):
            self._insisting(state, lambda: self._save(state, folder))
            self.folder, self.secured = folder, state.calls

    def settle(self) -> None:
        """Remove all files in the folder of ``secure`` but those it has written last."""
        if self.folder is not None:
            name = file_of(self.folder, Place(self.run, self.secured), 0).name
            for path in self.folder.glob("lane-*/*.npz"):
                if path.name != name:
                    path.unlink(missing_ok=True)

    def _made(self, state: S, make: Callable[[Sharded, S], S]) -> S:
        self.calls = state.calls
        new, self.make = make(self.problem, state), make
        return new

    def _insisting(self, state: HeldState, act: Callable[[], T]) -> T:
        """Do what takes lanes at a state; if they are elsewhere they return. What is repeated does not count."""
        problem = self.problem
        counts = problem.hard_calls, problem.soft_calls
        if self.again is None and self.newest is None and self.folder is not None:
            self.newest = Safe(state, self.folder)  # comes from a file
        for _ in range(TRIALS):
            try:
                return act()
            except Forgotten:
                log.warning("lanes have lost what they held: they go back to the last state that is safe")
                with suppress(Forgotten):
                    self._return_to(state)
                problem.hard_calls, problem.soft_calls = counts
        raise EngineLost(f"workers have lost what they held {TRIALS} times in the same step")

    def _return_to(self, state: HeldState) -> None:
        now = self._safest(state)
        while now.calls < state.calls and self.make is not None:
            now = self._made(now, self.make)

    def _safest(self, wanted: HeldState) -> Any:
        """The newest safe state that is not beyond another one, with the lanes there."""
        complaints = []
        for safe in (self.newest, self.first):
            if safe is not None and safe.state.calls <= wanted.calls:
                complaint = self._loaded(safe)
                if not complaint:
                    return safe.state
                complaints.append(complaint)
        if self.again is not None:
            return self.again()
        text = f"what workers held is lost: {'; '.join(complaints) or WITHOUT}"
        raise Unreadable(text) if self.make is None else EngineLost(text)

    def _loaded(self, safe: Safe) -> str:
        place = Place(self.run, safe.state.calls)
        complaints = self.problem.engine.run(load, place, safe.folder, type(self).restored)
        return next(filter(None, complaints), "")

    def _save(self, state: HeldState, folder: Path) -> None:
        needed = () if self.first is None else (self.first.state.calls,)
        place, scratch = Place(self.run, state.calls), self.problem.engine.scratch
        self._answer(self.problem.engine.total(save, place, folder, scratch, needed))
        self.newest, self.since = Safe(state, folder), 0

    def _try_to_save(self, state: HeldState) -> None:
        """What is lost if that fails are repeated steps, should a worker be lost."""
        try:
            self._save(state, self.problem.engine.scratch)
        except (Forgotten, OSError) as error:
            log.warning("what workers hold could not be written: %s", error)

    def _answer(self, told: Told[T]) -> T:
        if not told.fine:
            raise Forgotten
        return told.answer  # type: ignore[return-value]
