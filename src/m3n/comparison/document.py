"""A comparison as JSON.

Passes, calls and seconds are the solver's own wherever the name does not say "evaluation". The three gaps of the
paper's Figure 1 stand in every record: ``gap`` is the duality gap; ``primal_gap`` and ``dual_gap`` are upper bounds
from the best dual and primal value of all solvers; ``native`` is what the algorithm's own authors watch.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import m3n
from m3n.comparison.entry import Entry
from m3n.run.certificate import Record

if TYPE_CHECKING:
    from m3n.comparison.result import Comparison

VERSION = 1
FIGURES = (
    "outcome", "error", "own_dual", "passes", "evaluation_passes", "hard_calls", "soft_calls", "evaluation_calls",
    "seconds", "evaluation_seconds", "memory", "primal", "dual", "gap", "exponent", "expected_exponent", "rate",
)  # fmt: skip


def as_json(comparison: Comparison) -> str:
    """The text; NaN and infinite numbers become null, settings that JSON does not know become their ``repr``."""
    best = comparison.best
    document = {
        "format": "m3n comparison",
        "version": VERSION,
        "m3n": m3n.__version__,
        "problem": comparison.problem,
        "goal": comparison.goal,
        "best": {"primal": best.primal, "dual": best.dual, "gap": best.gap},
        "contradiction": comparison.contradiction,
        "solvers": [_entry(comparison, entry) for entry in comparison.entries],
    }
    return json.dumps(_plain(document), indent=1, allow_nan=False) + "\n"


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
