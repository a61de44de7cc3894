"""The suite ``rivals``: contests against other libraries, a table for each, ratios, JSON and a plot."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import contests
from benchmarks.contest import Options, hold
from benchmarks.figures import CLOCKS, ratio, rows
from benchmarks.plot import plot

KEYS = ("ours", "rival", "ratio")
WIDTH = 140  # columns, where there is no terminal to ask
OUT = Path(__file__).parent / "out"


def run(options: Options | None = None, names: tuple[str, ...] = (), out: Path = OUT) -> dict[str, Any]:
    """Hold the named contests, or all, and read the figures off them."""
    options, console = options or Options(), Console()
    held = {
        contest.name: hold(contest, options, out / "rivals", console.print)
        for contest in contests.CONTESTS
        if not names or contest.name in names
    }
    figures = [
        {"what": figure.text, "clock": clock, "goal": figure.goal, **dict(zip(KEYS, found, strict=True))}
        for figure in contests.FIGURES
        if figure.contest in held
        for clock in CLOCKS
        for found in [ratio(figure, held[figure.contest], clock)]
    ]
    plot(held, figures, out / "rivals.png")
    return {"machine": platform.processor() or platform.machine(), "contests": held, "figures": figures}


def show(report: dict[str, Any], clock: str = "seconds") -> None:
    """Print the tables."""
    console = Console()
    console = console if console.is_terminal else Console(width=WIDTH)
    for name, held in report["contests"].items():
        console.print(_runs(name, held, clock))
    console.print(_ratios([figure for figure in report["figures"] if figure["clock"] == clock], clock))


def _runs(name: str, held: dict[str, Any], clock: str) -> Table:
    lines = rows(held, clock)
    there = [line for line in lines if "missing" not in line]
    columns = list(there[0]) if there else ["run"]
    title = f"{name}: {held['data']}; {clock}; target within {held['stop']:g} of the best J; score: {held['measure']}"
    absent = "\n".join(f"{line['run']}: {line['missing']}" for line in lines if "missing" in line)
    table = Table(*columns, title=title, caption=absent or None, caption_justify="left")
    for line in there:
        table.add_row(*(_text(line[column]) for column in columns))
    return table


def _ratios(figures: list[dict[str, Any]], clock: str) -> Table:
    table = Table("what", "ours", "rival", "rival / ours", "goal", title=f"Ratios ({clock}; MB for memory)")
    for figure in figures:
        values = (figure[key] for key in ("ours", "rival", "ratio", "goal"))
        table.add_row(figure["what"], *map(_text, values))
    return table


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
