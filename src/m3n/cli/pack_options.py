"""The options of ``m3n pack``, in the groups in which its help shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ATTRIBUTES = "Attributes"
SIZES = "Sizes"

DataFiles = Annotated[
    list[Path],
    typer.Argument(
        help="Labelled data, plain or gzipped, one file after another; - is standard input.", allow_dash=True
    ),
]
Folder = Annotated[Path, typer.Option("--output", "-o", help="The folder to write; it is made, or it must be empty.")]
Force = Annotated[bool, typer.Option("--force", help="Replace packed data that are in the folder.")]
Template = Annotated[
    Path | None,
    typer.Option(
        "--template", "-t", rich_help_panel=ATTRIBUTES,
        help="A template file of CRF++ or Wapiti. Default: words, their forms and neighbours, as m3n train has it.",
    ),
]  # fmt: skip
MinFreq = Annotated[
    int,
    typer.Option("--min-freq", "-f", min=1, rich_help_panel=ATTRIBUTES, help="Leave out attributes that are rarer."),
]
Hash = Annotated[
    int | None,
    typer.Option(
        "--hash", min=1, max=30, rich_help_panel=ATTRIBUTES,
        help="Number attributes by so many bits of a hash, such as 22: no dictionary, no names.",
    ),
]  # fmt: skip
Memory = Annotated[
    str,
    typer.Option(
        rich_help_panel=SIZES,
        help="Packing takes no more than this, besides the 145 MB of the programme itself: 500MB, 4GB, ...",
    ),
]
ShardSize = Annotated[
    str | None,
    typer.Option(rich_help_panel=SIZES, help="Of a shard, about. Default: 64MB, or a quarter of the memory if less."),
]
