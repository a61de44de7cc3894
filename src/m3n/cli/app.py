"""The command ``m3n`` and its subcommands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

import m3n

app = typer.Typer(no_args_is_help=True, help="Structured prediction with a proof of quality.")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"m3n {m3n.__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Where to write the picture.", dir_okay=False)] = Path("demo.png"),
    tol: Annotated[float, typer.Option(help="Duality gap at which training stops.", min=1e-9)] = 1e-3,
    seed: Annotated[int, typer.Option(help="Seed of the noisy digit strings.")] = 0,
) -> None:
    """Read noisy strings of handwritten digits: an independent classifier against a max-margin Markov network."""
    from m3n.cli.demo import run

    if not output.parent.is_dir():
        raise typer.BadParameter(f"the folder {str(output.parent)!r} does not exist", param_hint="--output")
    run(output, tol=tol, seed=seed)


@app.command()
def compare(
    data: Annotated[
        Path | None,
        typer.Argument(
            help="A file letter.data or a column file, plain or gzipped; noisy digit strings without.",
            show_default=False,
        ),
    ] = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME or NAME:SETTING=VALUE,...; may be repeated. Default: all that fit.", show_default=False
        ),
    ] = None,
    lam: Annotated[str, typer.Option(help="Weight of the regulariser, a number or 1/n.")] = "0.01",
    loss: Annotated[
        str | None,
        typer.Option(
            help="hamming or normalized_hamming. Default: normalized_hamming; no loss for a CRF.", show_default=False
        ),
    ] = None,
    objective: Annotated[
        str, typer.Option(help="margin (max-margin Markov network), slack, crf or softmax_margin.")
    ] = "margin",
    tol: Annotated[float, typer.Option(help="Duality gap at which a solver stops.", min=0.0)] = 1e-3,
    max_passes: Annotated[float, typer.Option(help="Passes that each solver has.", min=0.0)] = 300.0,
    max_seconds: Annotated[
        float | None,
        typer.Option(help="Seconds that each solver has. Default: 5, with a file 30.", min=0.0, show_default=False),
    ] = None,
    folds: Annotated[
        str | None, typer.Option(help="Folds of letter.data to take. Default: 1-9.", show_default=False)
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Take only so many sequences, from the front.", min=1, show_default=False)
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Threads. Default: all cores.", show_default=False)] = None,
    seed: Annotated[int, typer.Option(help="Seed of the digit strings and of random solvers.", min=0)] = 0,
    json: Annotated[Path | None, typer.Option(help="Write everything to this file.", show_default=False)] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw gap against passes and seconds: .png, .pdf or .svg.", show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Let solvers race on one problem: cost, certified gap and measured rate of each."""
    from m3n.cli import compare as command
    from m3n.cli.settings import parse_folds, parse_lam, parse_solver

    with _blaming("--solver"):
        solvers = [parse_solver(text) for text in solver or []]
    with _blaming("--lam"):
        strength = parse_lam(lam)
    with _blaming("--folds"):
        chosen = None if folds is None else parse_folds(folds)
    _check_outputs(json, plot)
    with _blaming("DATA"):
        found = command.load_data(data, seed, chosen).first(limit)
    with _blaming("--loss, --objective, --jobs"):
        problem = found.problem(strength, loss, objective, jobs)
    seconds = max_seconds if max_seconds is not None else 5.0 if data is None else 30.0
    race = command.Race(solvers, tol, max_passes, seconds, seed, json, plot, quiet)
    raise typer.Exit(command.run(problem, found, race))


@contextmanager
def _blaming(option: str) -> Iterator[None]:
    """Tell the user which option is to blame; a traceback would not."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _check_outputs(json: Path | None, plot: Path | None) -> None:
    """Find out before the work whether its results can be written."""
    from m3n.cli.compare import check_picture
    from m3n.io.files import check_writable

    for option, path in (("--json", json), ("--plot", plot)):
        with _blaming(option):
            if path is not None:
                check_writable(path)
    with _blaming("--plot"):
        if plot is not None:
            check_picture(plot)


def main() -> None:
    """Entry point of the command."""
    app()
