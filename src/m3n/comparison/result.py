"""The outcome of a comparison: one entry per solver, and the bounds that all of them know together."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from m3n.comparison.entry import Entry
from m3n.io.files import write_atomically
from m3n.run.certificate import Certificate, Record
from m3n.run.loop import ROUNDING, Status

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Comparison:
    """The outcome of a comparison; ``comparison[name]`` is the entry of a solver.

    Attributes
    ----------
    entries : tuple of Entry
        One per solver, in the order of their starts.
    problem : mapping
        What the problem was: n, dim, lam, temperature, structure, threads.
    goal : mapping
        tol, max_passes and max_seconds; None where there was no limit.
    """

    entries: tuple[Entry, ...]
    problem: Mapping[str, Any]
    goal: Mapping[str, float | None] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(f"no solver {name!r} in this comparison; there are {[entry.name for entry in self.entries]}")

    @property
    def best(self) -> Certificate:
        """The least primal and the greatest dual value that any solver found: they enclose the optimum."""
        last = [entry.trace[-1] for entry in self.entries if entry.trace]
        primal = min((record.primal for record in last), default=math.inf)
        return Certificate(primal, max((record.dual for record in last), default=-math.inf))

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return any(entry.status is Status.INTERRUPTED for entry in self.entries)

    @property
    def contradiction(self) -> str:
        """Which solvers contradict each other, a dual value above a primal one; empty if all is well."""
        best = self.best
        if not best.dual - best.primal > ROUNDING * (1.0 + abs(best.primal) + abs(best.dual)):
            return ""
        started = [entry for entry in self.entries if entry.trace]
        upper = min(started, key=lambda entry: entry.trace[-1].primal)
        lower = max(started, key=lambda entry: entry.trace[-1].dual)
        return (
            f"CONTRADICTION: the dual value {best.dual:.8g} of {lower.name} exceeds the primal value "
            f"{best.primal:.8g} of {upper.name}; one of them is wrong, and no gap here can be trusted"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the table must know besides its numbers."""
        return tuple(note for note in (*map(_note, self.entries), self.contradiction) if note)

    def primal_gap_at(self, record: Record) -> float:
        """J(w) at a record minus the best dual value of all solvers: an upper bound of J(w) - min J."""
        return record.primal - self.best.dual

    def dual_gap_at(self, record: Record) -> float:
        """The best primal value of all solvers minus D(alpha) at a record: an upper bound of max D - D(alpha)."""
        return self.best.primal - record.dual

    def table(self, *parts: str) -> Table:
        """The entries as a rich table.

        Parameters
        ----------
        *parts : {"cost", "value", "rate"}
            What to show: passes, calls, seconds and memory; primal, dual, gap and why it stopped; exponents. The
            default is everything.
        """
        from m3n.comparison.table import make_table

        return make_table(self, *parts)

    def __str__(self) -> str:
        from m3n.comparison.table import as_text

        return as_text(self)

    def to_json(self) -> str:
        """Everything as JSON text. Numbers that are unknown or infinite are null."""
        from m3n.comparison.document import as_json

        return as_json(self)

    def save_json(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON text to a file, in one step.

        Parameters
        ----------
        path : path
            Where to; an existing file is replaced.
        """
        write_atomically(path, self.to_json().encode())


def _note(entry: Entry) -> str:
    if entry.error:
        return f"{entry.name}: {entry.error}"
    if not entry.own_dual:
        return f"{entry.name} has no dual point of its own, hence no gap"
    if len(entry.trace) > 1 and entry.trace[-1].gap == entry.trace[0].gap:
        return f"{entry.name} has found nothing better than w = 0 and the dual value 0, from which every run starts"
    return ""
