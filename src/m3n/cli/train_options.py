"""The options of ``m3n train``, in the groups in which its help shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from m3n.cli.options import LINKS, MACHINE, OBJECTIVE

MODEL = "The model"
END = "When training ends"
TREES = "Dependency trees"

ModelOutput = Annotated[Path, typer.Option("--model", "-m", help="Where to write the model.")]
Task = Annotated[
    str | None,
    typer.Option(
        help="sequences, labels (sets, svmlight), graphs (JSON lines), dependencies (CoNLL-U), phrases (brackets) or "
        "alignments (pairs with |||). Default: what the file looks like, else sequences."
    ),
]
Test = Annotated[Path | None, typer.Option(help="Labelled data to score the model on.")]
Report = Annotated[Path | None, typer.Option(help="Write an HTML page about the model.")]
Calibrate = Annotated[
    Path | None,
    typer.Option(
        "--calibrate", help="Labelled data, not those of training, to make probabilities true: fits a temperature."
    ),
]
CoverageWanted = Annotated[
    float | None,
    typer.Option(
        "--coverage",
        help="How often sets of m3n predict --sets hold the right answer, such as 0.9: by --calibrate.",
    ),
]
LabelCoverage = Annotated[
    float | None,
    typer.Option(
        "--label-coverage", help="The share of right labels that their sets hold, likewise. Default: as --coverage."
    ),
]

Prior = Annotated[
    Path | None,
    typer.Option(rich_help_panel=MODEL, help="Go on from this model: its attributes and labels stay, new ones come."),
]
Template = Annotated[
    Path | None,
    typer.Option(
        "--template", "-t", rich_help_panel=MODEL,
        help="A template file of CRF++ or Wapiti. Default: words, their forms and neighbours.",
    ),
]  # fmt: skip
MinFreq = Annotated[
    int | None,
    typer.Option(
        "--min-freq", "-f", min=1, rich_help_panel=MODEL, help="Leave out attributes that occur less often. Default: 1."
    ),
]
Constraints = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=MODEL,
        help="Only valid labels: iob, iob1, ioe1, ioe2, bioes, bilou, bmes, bmewo, or observed: what occurs in DATA.",
    ),
]
Repair = Annotated[
    bool,
    typer.Option(
        "--repair", rich_help_panel=MODEL,
        help="Labels of DATA that break --constraints are mended first: read as conlleval does, written anew.",
    ),
]  # fmt: skip
ObservedOnly = Annotated[
    bool,
    typer.Option("--observed-only", rich_help_panel=MODEL, help="Weights only for what occurs: a small model."),
]
Boundaries = Annotated[
    bool,
    typer.Option(
        "--boundaries/--no-boundaries", rich_help_panel=MODEL, help="Scores of a sequence's first and last label."
    ),
]

Loss = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=OBJECTIVE,
        help="hamming (default) or normalized_hamming; a CRF has none, and links have their own.",
    ),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(
        "--class-weight", rich_help_panel=OBJECTIVE,
        help="What an error costs by the right label: balanced, or O=0.5,B-PER=2. Not for a CRF.",
    ),
]  # fmt: skip
Lam = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=OBJECTIVE,
        help="Weight of the regulariser: 5/n (divided by the number of examples), or a number. Default: 5/n; others "
        "for trees, links.",
    ),
]
L1 = Annotated[
    float, typer.Option(rich_help_panel=OBJECTIVE, help="Weight of an L1 penalty (crf, softmax_margin).", min=0.0)
]

Rtol = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=END, min=0.0, help="The gap is this part of the objective. Default: 0.01; not trees, links."
    ),
]
Tol = Annotated[float | None, typer.Option(rich_help_panel=END, help="The gap is this small.", min=0.0)]
MaxPasses = Annotated[float | None, typer.Option(rich_help_panel=END, help="After so many passes.", min=0.0)]
MaxSeconds = Annotated[float | None, typer.Option(rich_help_panel=END, help="After this much time.", min=0.0)]
Validation = Annotated[
    Path | None,
    typer.Option(rich_help_panel=END, help="Labels of this file, not of DATA, are no longer better predicted."),
]
Patience = Annotated[
    int | None,
    typer.Option(rich_help_panel=END, min=1, help="With --validation: after so many scores without a better one."),
]
Stop = Annotated[
    str,
    typer.Option(
        rich_help_panel=END,
        help="gap, or predictions: with --validation, go on until 99 % of its labels are proven to be those of the "
        "exact optimum; or another share, such as 0.9.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(rich_help_panel=END, help="Save the run here every minute; go on there if the file exists."),
]

Solver = Annotated[str, typer.Option(rich_help_panel=MACHINE, help="NAME or NAME:SETTING=VALUE,...")]
Seed = Annotated[int, typer.Option(rich_help_panel=MACHINE, help="Seed of solvers that draw random numbers.", min=0)]

Order = Annotated[
    int | None, typer.Option(rich_help_panel=TREES, help="2 scores pairs of arcs, too. Default: 1.", min=1, max=2)
]
Crossing = Annotated[bool, typer.Option("--crossing", rich_help_panel=TREES, help="Arcs may cross.")]
SingleRoot = Annotated[
    bool,
    typer.Option("--single-root/--no-single-root", rich_help_panel=TREES, help="One word depends on the root."),
]

TestLinks = Annotated[Path | None, typer.Option(rich_help_panel=LINKS, help="The same for --test.")]
Unlabelled = Annotated[
    Path | None,
    typer.Option(rich_help_panel=LINKS, help="More sentence pairs, without links, to learn translations from."),
]
Translations = Annotated[
    Path | None, typer.Option(rich_help_panel=LINKS, help="A model of m3n align that has learnt translations.")
]
LinkStructure = Annotated[
    str | None,
    typer.Option(rich_help_panel=LINKS, help="matching (default), or every word chooses: chain (with jumps) or words."),
]
Fertility = Annotated[
    int | None,
    typer.Option(rich_help_panel=LINKS, help="Links of a word at most, of a matching. Default: 1.", min=1),
]
