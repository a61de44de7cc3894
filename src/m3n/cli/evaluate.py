"""``m3n evaluate``: how good labels are, those of a model or those that stand in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from m3n.cli.options import console, print_json
from m3n.cli.sequences import Reading, all_scores, load_tagger
from m3n.estimators.forms import form_of
from m3n.io import Sentences, read_columns
from m3n.io.files import name_of
from m3n.scores import Scores


def labels_of(path: Path, model: Path | None, reading: Reading) -> tuple[list[list[Any]], list[list[Any]]]:
    """The right labels and the predicted ones: by a model, or the last two columns of the file.

    Parameters
    ----------
    path : Path
        The data.
    model : Path or None
        A model file.
    reading : Reading
        How to read the data.
    """
    if model is not None:
        tagger = load_tagger(model)
        data = reading.for_model(path, tagger)
        if data.y is None:
            raise ValueError(f"{name_of(path)} has no labels to compare with")
        form = form_of(tagger)
        found = form.predicted(tagger, data.X)
        return form.right(data.y, data.X, found, tagger), found
    if reading.format not in (None, "columns"):
        raise ValueError("without a model, the last two columns of a column file are compared")
    read = read_columns(path, delimiter=reading.delimiter)
    if len(read.columns) < 2:
        raise ValueError(f"{name_of(path)} has two columns; give a model, or a file with word, right label, predicted")
    return Sentences(read.columns[:-1], read.offsets, read.columns[-1]).labels, read.labels


def run(gold: list[list[Any]], found: list[list[Any]], scheme: str, as_json: bool) -> None:
    """Print the scores.

    Parameters
    ----------
    gold, found : lists of labels
        The right ones and the predicted ones.
    scheme : str
        How chunks are written.
    as_json : bool
        Whether to print JSON.
    """
    scores = all_scores(gold, found, scheme)
    if as_json:
        print_json({name: score.as_dict() for name, score in scores.items()})
        return
    out, tokens = console(), scores["tokens"]
    sequences, labels = len(gold), sum(map(len, gold))
    out.print(f"{sequences:,} sequences, {labels:,} labels")
    out.print(f"labels right {tokens.accuracy:.2%}, whole sequences right {tokens.sequence_accuracy:.2%}")
    for name in ("chunks", "tokens"):
        if name in scores:
            _print(out, name, scores[name])


def _print(out: Any, name: str, scores: Scores) -> None:
    out.print(f"\n{name}: precision {scores.precision:.2%}, recall {scores.recall:.2%}, F1 {scores.f1:.2%}")
    out.print(str(scores))
