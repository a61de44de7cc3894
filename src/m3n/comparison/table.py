"""A comparison as a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from m3n.comparison.entry import Entry

if TYPE_CHECKING:
    from m3n.comparison.result import Comparison

UNKNOWN = "-"
UNITS = ("B", "kB", "MB", "GB", "TB")
WIDE = 1000  # columns: more than any table needs


def make_table(comparison: Comparison, *parts: str) -> Table:
    """The entries as a rich table with all of the parts "cost", "value" and "rate", or some of them."""
    unknown = set(parts) - set(COLUMNS)
    if unknown:
        raise ValueError(f"unknown part {sorted(unknown)} of the table; choose from {sorted(COLUMNS)}")
    columns = [column for part in parts or COLUMNS for column in COLUMNS[part]]
    table = Table(box=SIMPLE, pad_edge=False)
    table.add_column("solver", overflow="fold")
    for title, _ in columns:
        table.add_column(title, justify="left" if title in TEXTS else "right", no_wrap=title not in TEXTS)
    for entry in comparison.entries:
        table.add_row(*map(Text, (entry.name, *(show(entry) or UNKNOWN for _, show in columns))))
    return table


def as_text(comparison: Comparison) -> str:
    """The whole table with its notes as plain text, as wide as it needs to be."""
    return "\n".join([_plain(comparison), *comparison.notes])


def print_table(comparison: Comparison, console: Console) -> None:
    """Print table and notes: in one piece where that fits or in a file, else its parts one below the other.

    Parameters
    ----------
    comparison : Comparison
        What to print.
    console : rich.console.Console
        Where to.
    """
    text = _plain(comparison)
    if not console.is_terminal or max(map(len, text.splitlines())) <= console.width:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    else:
        for part in COLUMNS:
            console.print(make_table(comparison, part))
    for note in comparison.notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)


def _plain(comparison: Comparison) -> str:
    console = Console(width=WIDE, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(make_table(comparison))
    return "\n".join(line.rstrip() for line in capture.get().strip("\n").splitlines())


def _run(show: Callable[[Entry], str]) -> Callable[[Entry], str | None]:
    """A figure that only a solver has that ran."""
    return lambda entry: show(entry) if entry.trace else None


def _number(value: float | None, form: str) -> str | None:
    return None if value is None else format(value, form)


def _passes(entry: Entry) -> str:
    return f"{entry.passes:.1f}" if entry.passes < 10 else f"{entry.passes:.0f}"


def _seconds(entry: Entry) -> str:
    return f"{entry.seconds:.3g}" if entry.seconds < 100 else f"{entry.seconds:.0f}"


def human_bytes(size: float) -> str:
    """A size with a unit that keeps it short.

    Parameters
    ----------
    size : float
        Bytes.
    """
    power = 0 if size < 1 else min(int(math.log10(size)) // 3, len(UNITS) - 1)
    return f"{size / 1000**power:.3g} {UNITS[power]}"


Column = tuple[str, Callable[[Entry], Any]]
COLUMNS: dict[str, list[Column]] = {
    "cost": [
        ("passes", _run(_passes)),
        ("max-oracle", _run(lambda entry: f"{entry.hard_calls:,}")),
        ("exp-oracle", _run(lambda entry: f"{entry.soft_calls:,}")),
        ("seconds", _run(_seconds)),
        ("memory", _run(lambda entry: human_bytes(entry.memory))),
    ],
    "value": [
        ("primal", lambda entry: _number(entry.primal, ".6g")),
        ("dual", lambda entry: _number(entry.dual, ".6g")),
        ("gap", lambda entry: _number(entry.gap, ".1e")),
        ("stopped by", lambda entry: entry.outcome),
    ],
    "rate": [
        ("exponent", lambda entry: _number(entry.exponent, ".2f")),
        ("in theory", lambda entry: _number(entry.expected_exponent, ".3g")),
        ("passes to eps in theory", lambda entry: entry.rate),
    ],
}
TEXTS = ("stopped by", "passes to eps in theory")
