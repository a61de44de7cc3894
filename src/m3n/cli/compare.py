"""``m3n compare``: several solvers on one problem: print the table, write JSON and a picture."""

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

__all__ = ["Wanted", "check_picture", "load_data", "run"]


@dataclass(frozen=True)
class Wanted:
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


def run(problem: Problem, task: Task, wanted: Wanted) -> int:
    """Run the solvers and report; returns the exit code.

    Parameters
    ----------
    problem : Problem
        What to minimise.
    task : Task
        Where it came from.
    wanted : Wanted
        What was asked for.
    """
    console = Console()
    labelled = label_solvers(wanted.solvers or fitting(problem))
    console.print(_headline(problem, task), highlight=False, markup=False, soft_wrap=True)
    result = compare(
        problem,
        {name: seeded(solver, wanted.seed) for name, solver in labelled.items()},
        tol=wanted.tol,
        max_passes=wanted.max_passes,
        max_seconds=wanted.max_seconds,
        progress=not wanted.quiet,
    )
    result = replace(result, problem={"data": task.name, **result.problem})
    print_table(result, console)
    _write(result, wanted)
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


def _write(result: Comparison, wanted: Wanted) -> None:
    if wanted.json is not None:
        result.save_json(wanted.json)
    if wanted.plot is not None:
        write_atomically(wanted.plot, _picture(result, wanted.plot.suffix.lstrip(".").lower()))


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
