"""What commands share: options that read data, blame for wrong ones, and where text and JSON go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from m3n.compiled.progress import progress

if TYPE_CHECKING:
    from rich.console import Console

INTERRUPTED = 130  # the exit code that shells give to Ctrl-C
READING = "Reading files"
LINKS = "Alignments"
OBJECTIVE = "What is minimised"
MACHINE = "Solver and machine"


def tab_or(text: str | None) -> str | None:
    """A delimiter as it is, or a tab for a backslash and a t, which is what shells make of '\\t'.

    Parameters
    ----------
    text : str or None
        What was typed.
    """
    return "\t" if text == r"\t" else text


DataFile = Annotated[Path, typer.Argument(help="The data, plain or gzipped; - is standard input.", allow_dash=True)]
Model = Annotated[Path, typer.Option("--model", "-m", help="The model file.", dir_okay=False)]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", rich_help_panel=READING,
        help="columns, attributes (CRFsuite), svm_hmm, json_lines or letters; svmlight for label sets, conllu or "
        "brackets for trees, parallel for sentence pairs. Default: what the file looks like.",
    ),
]  # fmt: skip
Delimiter = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=READING, callback=tab_or,
        help=r"What separates columns, such as , or '\t'. Default: tabs if every line has them, else blanks and tabs.",
    ),
]  # fmt: skip
Encoding = Annotated[
    str | None,
    typer.Option(rich_help_panel=READING, help="How the files are encoded, such as latin-1 or euc-jp. Default: utf-8."),
]
Label = Annotated[int, typer.Option(rich_help_panel=READING, help="The column with the label, from 0; -1 is the last.")]
FirstFeature = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=READING, min=0, max=1,
        help="svmlight: the number of the first feature. Default: 0 if it occurs, else 1.",
    ),
]  # fmt: skip
GoldLinks = Annotated[
    Path | None,
    typer.Option(
        "--links", rich_help_panel=LINKS,
        help="A file of links, lines such as 0-0 1?2 (from 0, ? is possible) or 0001 1 3 P (from 1); not if DATA has "
        "them: source ||| target ||| 0-0 1?2.",
    ),
]  # fmt: skip
Output = Annotated[Path, typer.Option("--output", "-o", help="Where to write; - is standard output.", allow_dash=True)]
OutputFormat = Annotated[
    str | None,
    typer.Option(rich_help_panel=LINKS, help="pharaoh (0-0 1-2, the default) or naacl (0001 1 1 S, a line per link)."),
]
JsonLines = Annotated[bool, typer.Option("--json", help="One JSON object per example.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no remarks.")]
Objective = Annotated[
    str,
    typer.Option(rich_help_panel=OBJECTIVE, help="margin (max-margin Markov network), crf, softmax_margin or slack."),
]
Backend = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=MACHINE, help="Where training runs: threads (default), or ray, for workers of a Ray cluster."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=MACHINE,
        help="Of the Ray cluster: HOST:PORT, auto, or local for one of this machine. Default: what RAY_ADDRESS names, "
        "else local.",
    ),
]
Workers = Annotated[
    int | None, typer.Option(rich_help_panel=MACHINE, help="How many workers. Default: what the cluster has room for.")
]
Lanes = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=MACHINE, min=1,
        help="Shards: sums are made in so many parts; the same number gives the same bits anywhere. Default: one per "
        "thread.",
    ),
]  # fmt: skip
Jobs = Annotated[int | None, typer.Option(rich_help_panel=MACHINE, help="Threads. Default: all cores.")]


@contextmanager
def blaming(option: str) -> Iterator[None]:
    """Tell the user which option is to blame; a traceback would not.

    Parameters
    ----------
    option : str
        The option, or the argument.
    """
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def check_outputs(**paths: Path | None) -> None:
    """Find out before the work whether its results can be written.

    Parameters
    ----------
    **paths : Path or None
        Files to be written, by the name of their option.
    """
    from m3n.io.files import check_writable

    for option, path in paths.items():
        if path is not None and str(path) != "-":
            with blaming(f"--{option}"):
                check_writable(path)


def console(*, errors: bool = False) -> Console:
    """Where remarks go.

    Parameters
    ----------
    errors : bool
        Standard error instead of standard output.
    """
    from rich.console import Console

    return Console(stderr=errors, highlight=False, soft_wrap=True, markup=False, emoji=False)


def print_json(content: Any) -> None:
    """One JSON object on standard output.

    Parameters
    ----------
    content : object
        What to write; infinite and undefined numbers become null.
    """
    typer.echo(json.dumps(_finite(content), ensure_ascii=False))


def _finite(content: Any) -> Any:
    """JSON knows no infinity."""
    if isinstance(content, dict):
        return {str(key): _finite(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_finite(value) for value in content]
    if isinstance(content, float) and content - content != 0.0:
        return None
    return content.item() if hasattr(content, "item") else content


@contextmanager
def compilation_shown(wanted: bool = True) -> Iterator[None]:
    """Say on standard error what is being compiled: on a terminal in a line that goes away, else in one that stays."""
    lines: list[Any] = []

    def tell(text: str) -> None:
        if text and wanted and not lines:
            out = console(errors=True)
            lines.append(out.status(text))
            if not out.is_terminal:
                out.print(text)
        if lines and lines[0].console.is_terminal:
            lines[0].update(text)
            (lines[0].start if text else lines[0].stop)()

    progress.listeners.append(tell)
    try:
        yield
    finally:
        progress.listeners.remove(tell)
        tell("")
