"""``m3n compare``: let solvers race, print the table, write JSON and a picture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

from rich.console import Console

from m3n.cli.data import Task, load_data
from m3n.cli.options import INTERRUPTED
from m3n.cli.settings import fitting, seeded
from m3n.comparison import Comparison, compare, label_solvers
from m3n.comparison.table import print_table
from m3n.io.files import write_atomically
from m3n.problem import Problem
from m3n.solvers import Solver

__all__ = ["Race", "check_picture", "load_data", "run"]


@dataclass(frozen=True)
class Race:
    """What was asked for.

    Attributes
    ----------
    solvers : list of Solver
        Who takes part; empty for everyone who can.
    tol, max_passes, max_seconds : float
        Goal and budget of each.
    seed : int
        Seed of solvers that draw random numbers.
    json, plot : Path or None
        Files to write.
    quiet : bool
        No progress bar.
    """

    solvers: list[Solver[Any]]
    tol: float
    max_passes: float
    max_seconds: float
    seed: int = 0
    json: Path | None = None
    plot: Path | None = None
    quiet: bool = False


def run(problem: Problem, task: Task, race: Race) -> int:
    """Run the race and report; returns the exit code.

    Parameters
    ----------
    problem : Problem
        What to minimise.
    task : Task
        Where it came from.
    race : Race
        What was asked for.
    """
    console = Console()
    labelled = label_solvers(race.solvers or fitting(problem))
    console.print(_headline(problem, task), highlight=False, markup=False, soft_wrap=True)
    result = compare(
        problem,
        {name: seeded(solver, race.seed) for name, solver in labelled.items()},
        tol=race.tol,
        max_passes=race.max_passes,
        max_seconds=race.max_seconds,
        progress=not race.quiet,
    )
    result = replace(result, problem={"data": task.name, **result.problem})
    print_table(result, console)
    _write(result, race)
    if result.interrupted:
        return INTERRUPTED
    return 1 if result.contradiction or not any(entry.status for entry in result.entries) else 0


def check_picture(path: Path) -> None:
    """Refuse a path to which no picture can be written.

    Parameters
    ----------
    path : Path
        Where to write it.
    """
    if find_spec("matplotlib") is None:
        raise ValueError('a picture needs matplotlib; `pip install "m3n[plot]"` brings it')
    from matplotlib.backend_bases import FigureCanvasBase

    if path.suffix.lstrip(".").lower() not in FigureCanvasBase.get_supported_filetypes():
        raise ValueError(f"unknown kind of picture {path.suffix!r}; let the name end in .png, .pdf or .svg")


def _headline(problem: Problem, task: Task) -> str:
    threads = problem.threads.count
    return (
        f"{task.name}: {problem.n} sequences, {task.classes} labels, {problem.dim:,} weights, lam = {problem.lam:g}, "
        f"{_kind(problem.temperature, problem.rescale)}, {threads} thread{'s' * (threads > 1)}"
    )


def _kind(temperature: float, rescale: str) -> str:
    """The kind of objective; a CRF may have a loss in its exponent."""
    return "CRF" if temperature else "M3N" if rescale == "margin" else "slack-rescaled M3N"


def _write(result: Comparison, race: Race) -> None:
    if race.json is not None:
        result.save_json(race.json)
    if race.plot is not None:
        write_atomically(race.plot, _picture(result, race.plot.suffix.lstrip(".").lower()))


def _picture(result: Comparison, kind: str) -> bytes:
    from matplotlib.figure import Figure

    from m3n.reports import comparison_size, plot_comparison

    figure = Figure(figsize=comparison_size(result), layout="constrained")
    plot_comparison(result, figure)
    about = result.problem
    objective = _kind(about["temperature"], about["rescale"])
    figure.suptitle(f"{about['data']}, {objective}, lam = {about['lam']:.3g}", fontsize=10)
    content = BytesIO()
    figure.savefig(content, format=kind, dpi=150)
    return content.getvalue()
