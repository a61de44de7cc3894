"""The command ``m3n`` and its subcommands."""

from __future__ import annotations

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


def main() -> None:
    """Entry point of the command."""
    app()
