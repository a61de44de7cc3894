"""The outcome of a comparison: one entry per solver, the bounds that all of them know together, and both as JSON.

In the JSON text passes, calls and seconds are the solver's own wherever the name does not say "evaluation". The three
gaps of the paper's Figure 1 stand in every record: ``gap`` is the duality gap; ``primal_gap`` and ``dual_gap`` are
upper bounds from the best dual and primal value of all solvers; ``native`` is what the algorithm's own authors watch.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import m3n
from m3n.comparison.entry import Entry
from m3n.io.files import write_atomically
from m3n.run.certificate import Certificate, Record
from m3n.run.loop import ROUNDING, Status

if TYPE_CHECKING:
    from rich.table import Table

VERSION = 1
FIGURES = (
    "outcome", "error", "own_dual", "passes", "evaluation_passes", "hard_calls", "soft_calls", "evaluation_calls",
    "seconds", "evaluation_seconds", "memory", "primal", "dual", "gap", "exponent", "expected_exponent", "rate",
)  # fmt: skip


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
        """Everything as JSON text. Unknown and infinite numbers are null; settings that JSON cannot say, their repr."""
        best = self.best
        document = {
            "format": "m3n comparison",
            "version": VERSION,
            "m3n": m3n.__version__,
            "problem": self.problem,
            "goal": self.goal,
            "best": {"primal": best.primal, "dual": best.dual, "gap": best.gap},
            "contradiction": self.contradiction,
            "solvers": [_entry(self, entry) for entry in self.entries],
        }
        return json.dumps(_plain(document), indent=1, allow_nan=False) + "\n"

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


def _entry(comparison: Comparison, entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "solver": type(entry.solver).__name__,
        "settings": entry.settings,
        **{name: getattr(entry, name) for name in FIGURES},
        "native": {"name": entry.solver.native, "value": entry.native},
        "trace": [_record(comparison, entry, record) for record in entry.trace],
    }


def _record(comparison: Comparison, entry: Entry, record: Record) -> dict[str, Any]:
    hard, soft = entry.calls_at(record)
    lower = {"dual": record.dual, "gap": record.gap, "dual_gap": comparison.dual_gap_at(record)}
    return {
        "passes": entry.passes_at(record),
        "hard_calls": hard,
        "soft_calls": soft,
        "evaluation_calls": record.evaluation_calls,
        "seconds": record.solver_seconds,
        "evaluation_seconds": record.evaluation_seconds,
        "primal": record.primal,
        "primal_gap": comparison.primal_gap_at(record),
        **(lower if entry.own_dual else dict.fromkeys(lower)),
        "native": entry.native_at(record),
        "metrics": record.metrics,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (int, str)) else repr(value)
