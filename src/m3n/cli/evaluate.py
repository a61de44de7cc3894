"""``m3n evaluate``: how good labels are, those of a model or those that stand in a file."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

from m3n.cli.alignments import compare_files, tell_scores
from m3n.cli.inputs import Reading, all_scores
from m3n.cli.options import console, print_json
from m3n.cli.predicted import read_predicted
from m3n.cli.trees import rows_of, scores_of, table_of
from m3n.estimators.forms import ALIGNMENTS, SETS, form_of
from m3n.estimators.inputs import check_label_count
from m3n.io.files import Source


def labels_of(path: Source, model: Any, reading: Reading) -> tuple[list[list[Any]], list[list[Any]]]:
    """The right labels and the predicted ones: by a model, or the last two columns of the file.

    Parameters
    ----------
    path : Path or Held
        The data.
    model : estimator or None
        A fitted model.
    reading : Reading
        How to read the data.
    """
    if model is not None:
        data = reading.for_model(path, model, scored=True)
        return data.y or [], model._answers(data.X, marginals=False)[0]
    if reading.format not in (None, "columns", "json_lines"):
        raise ValueError("without a model, the last two columns of a column file are compared")
    read = read_predicted(path, reading.delimiter)
    if read.remark:
        console(errors=True).print(read.remark)
    return read.gold, read.found


def run(gold: list[list[Any]], found: list[list[Any]], scheme: str, as_json: bool, model: Any = None) -> None:
    """Print the scores.

    Parameters
    ----------
    gold, found : lists of labels
        The right ones and the predicted ones.
    scheme : str
        How chunks are written.
    as_json : bool
        Whether to print JSON.
    model : estimator, optional
        The model that has predicted.
    """
    form = form_of(model)
    if form is not SETS:
        check_label_count(len(set(chain(*gold, *found))), sum(map(len, gold)))
    scores = all_scores(gold, found, scheme, model)
    single = scores[f"{form.position}s"]
    loss = {"hamming_loss": 1.0 - single.accuracy} if form is SETS else {}
    if as_json:
        print_json({name: score.as_dict() | loss for name, score in scores.items()})
        return
    out = console()
    out.print(f"{len(gold):,} {form.example}s, {sum(map(len, gold)):,} labels")
    right = f"labels right {single.accuracy:.2%}, whole {form.example}s right {single.sequence_accuracy:.2%}"
    out.print(right + "".join(f", Hamming loss {value:.4f}" for value in loss.values()))
    for name, score in reversed(scores.items()):
        out.print(f"\n{name}: precision {score.precision:.2%}, recall {score.recall:.2%}, F1 {score.f1:.2%}")
        out.print(score.text(form.position, form.example))


def run_trees(path: Source, model: Any, reading: Reading, as_json: bool) -> None:
    """Print the scores of a parser.

    Parameters
    ----------
    path : Path or Held
        Sentences with their trees.
    model : estimator
        The parser.
    reading : Reading
        How to read the data.
    as_json : bool
        Whether to print JSON.
    """
    reading = replace(reading, single_root=getattr(model, "single_root", True))
    data, form = reading.for_model(path, model, scored=True), form_of(model)
    found = model.predict(data.X)
    scores = scores_of(form, data.y, found, data.X)
    if as_json:
        rows = [asdict(row) for row in rows_of(form, data.y, found)]
        print_json({name: score.as_dict() for name, score in scores.items()} | {"labels": rows})
        return
    out = console()
    for name, score in scores.items():
        out.print(f"{name}: {score}")
    out.print(f"\n{table_of(form, data.y, found)}")


def are_links(model: Any, links: Path | None) -> bool:
    """Whether links are compared: those of an aligner, or without a model those of two files.

    Parameters
    ----------
    model : estimator or None
        A fitted model.
    links : Path or None
        The file of right links, if there is one.
    """
    return links is not None if model is None else form_of(model) is ALIGNMENTS


def run_links(path: Source, model: Any, reading: Reading, as_json: bool) -> None:
    """Print the scores of an aligner, or of links in a file.

    Parameters
    ----------
    path : Path or Held
        Sentence pairs; without a model, links.
    model : estimator or None
        The aligner.
    reading : Reading
        How to read the data, and where the right links are.
    as_json : bool
        Whether to print JSON.
    """
    if model is None and reading.links is not None:
        tell_scores(*compare_files(path, reading.links), as_json)
        return
    data = reading.for_model(path, model, scored=True)
    tell_scores(data.y or [], model.predict(data.X), as_json)
