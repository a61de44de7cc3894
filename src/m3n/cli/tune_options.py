"""The options of ``m3n tune``, beside those that it shares with ``m3n train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from m3n.cli.options import OBJECTIVE

SEARCH = "The search"

ModelOutput = Annotated[Path | None, typer.Option("--model", "-m", help="Where to write the model that is chosen.")]
Report = Annotated[Path | None, typer.Option(help="Write an HTML page about the model and the search.")]
Templates = Annotated[
    list[Path] | None,
    typer.Option(
        "--template", "-t", rich_help_panel=SEARCH,
        help="A template file of CRF++ or Wapiti; given several times, each of them is tried.",
    ),
]  # fmt: skip
Objectives = Annotated[
    list[str] | None,
    typer.Option(
        "--objective", rich_help_panel=OBJECTIVE,
        help="margin (default), crf, softmax_margin or slack; given several times, each of them is tried.",
    ),
]  # fmt: skip
Lams = Annotated[
    str,
    typer.Option(rich_help_panel=SEARCH, help="How many values of lam, from 30/n to 0.3/n, or the values: 10/n,1/n."),
]
Folds = Annotated[int, typer.Option(rich_help_panel=SEARCH, help="Folds of the cross-validation.", min=2)]
Validation = Annotated[
    Path | None, typer.Option(rich_help_panel=SEARCH, help="Labelled data to score on, instead of folds.")
]
ScoringName = Annotated[
    str, typer.Option(rich_help_panel=SEARCH, help="accuracy, or f1: of chunks. Bounds are for accuracy.")
]
GuaranteePoints = Annotated[
    float | None,
    typer.Option(
        "--guarantee", rich_help_panel=SEARCH, min=0.0,
        help="Go on until no lam in the range is better by more than so many points, or --budget ends.",
    ),
]  # fmt: skip
Budget = Annotated[
    float | None,
    typer.Option(rich_help_panel=SEARCH, min=0.0, help="Seconds for --guarantee. Default: as long as the search."),
]
SearchRtol = Annotated[
    float | None,
    typer.Option("--search-rtol", rich_help_panel=SEARCH, min=0.0, help="The gap within the search. Default: 0.05."),
]
