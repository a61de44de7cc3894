"""The suite ``rivals``: contests against other libraries, the figures read off them, tables and a picture."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import contests
from benchmarks.contest import Options, hold
from benchmarks.figures import CLOCKS, ratio
from benchmarks.plot import plot
from benchmarks.report import markdown

KEYS = ("ours", "rival", "ratio")
OUT = Path(__file__).parent / "out"


def run(options: Options | None = None, names: tuple[str, ...] = (), out: Path = OUT) -> dict[str, Any]:
    """Hold the named contests, or all; leave ``rivals.md`` and ``rivals.png`` in a folder."""
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
    report = {"machine": _machine(), "contests": held, "figures": figures}
    (out / "rivals.md").write_text(markdown(report))
    plot(held, figures, out / "rivals.png")
    return report


def _machine() -> str:
    """The processor's name where the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.machine()
