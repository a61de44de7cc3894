"""A report as text: tables for the terminal, and the same for ``RESULTS.md``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import CLOCKS, gaps, rows

WIDTH = 140  # columns, where there is no terminal to ask
NAMES = {"seconds": "wall-clock seconds", "cpu": "CPU seconds"}
DIGITS = {"J": 8}  # runs differ in the fifth
Lines = list[list[str]]  # of a table, its heads first


def show(report: dict[str, Any], clock: str) -> None:
    """Print the tables."""
    console = Console()
    console = console if console.is_terminal else Console(width=WIDTH)
    for title, lines, notes in _tables(report, clock):
        table = Table(*lines[0], title=title, caption="\n".join(notes) or None, caption_justify="left")
        for line in lines[1:]:
            table.add_row(*line)
        console.print(table)


def markdown(report: dict[str, Any]) -> str:
    """All tables, by either clock."""
    blocks = [f"Measured on {report['machine']}."]
    for clock in CLOCKS:
        for title, lines, notes in _tables(report, clock):
            bars = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
            blocks += [f"### {title}", "\n".join(f"| {' | '.join(line)} |" for line in bars), *notes]
    return "\n\n".join(blocks) + "\n"


def _tables(report: dict[str, Any], clock: str) -> Iterator[tuple[str, Lines, list[str]]]:
    """Title, lines and notes of every table."""
    for name, held in report["contests"].items():
        yield _runs(name, held, clock)
        reached = gaps(held, clock)
        if reached:
            yield _gaps(name, reached, clock)
    chosen = [figure for figure in report["figures"] if figure["clock"] == clock]
    heads = ["what", "ours", "rival", "rival / ours", "goal"]
    body = [[figure["what"], *(text(figure[key]) for key in ("ours", "rival", "ratio", "goal"))] for figure in chosen]
    yield f"Ratios ({NAMES[clock]}; MB for memory)", [heads, *body], []


def _runs(name: str, held: dict[str, Any], clock: str) -> tuple[str, Lines, list[str]]:
    lines = rows(held, clock)
    there = [line for line in lines if "missing" not in line]
    heads = list(there[0]) if there else ["run"]
    title = f"{name}: {held['data']} ({NAMES[clock]}; target: J within {held['stop']:g} of the best; {held['measure']})"
    notes = [f"{line['run']}: {line['missing']}" for line in lines if "missing" in line]
    return title, [heads, *([text(line[head], DIGITS.get(head, 4)) for head in heads] for line in there)], notes


def _gaps(name: str, reached: list[dict[str, Any]], clock: str) -> tuple[str, Lines, list[str]]:
    title = f"{name}: passes ({NAMES[clock]}) to a certified gap, certificates included"
    body = [[line.pop("run"), *(_pair(pair) for pair in line.values())] for line in map(dict, reached)]
    return title, [list(reached[0]), *body], []


def _pair(reached: tuple[float, float] | None) -> str:
    return f"{reached[0]:.4g} ({reached[1]:.3g})" if reached else "-"


def text(value: Any, digits: int = 4) -> str:
    """A number with so many digits; a dash for what is not known."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
