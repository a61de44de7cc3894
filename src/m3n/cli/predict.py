"""``m3n predict``: labels for new examples: sequences in the format that they came in, sets and graphs line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from m3n.cli.alignments import Written, predicted_links
from m3n.cli.trees import tree_texts
from m3n.estimators.forms import ALIGNMENTS, GRAPHS, SETS, form_of
from m3n.io import Data, Sentences
from m3n.io.columns import column_texts
from m3n.io.files import write_pieces
from m3n.io.svmlight import label_text


@dataclass(frozen=True)
class Wanted:
    """What is to be written."""

    n_best: int = 1  # how many answers per example
    marginals: bool = False  # the probability of every label
    confidence: bool = False  # the probability of the predicted label
    json: bool = False  # JSON lines, whatever the format of the data
    format: str | None = None  # of links


def check(model: Any, wanted: Wanted) -> None:
    """Refuse what a model cannot do before the data are read.

    Parameters
    ----------
    model : estimator
        The model.
    wanted : Wanted
        What to write.
    """
    form = form_of(model)
    if form is ALIGNMENTS:
        Written(wanted.format, wanted.confidence, wanted.marginals, wanted.json)
    elif wanted.format is not None:
        raise ValueError("--output-format is for links of sentence pairs; leave it away")
    if form.trees and wanted.confidence:
        raise ValueError("--confidence is for labels; --marginals --json shows probabilities of arcs and spans")
    if form.trees and wanted.marginals and not wanted.json:
        raise ValueError("probabilities of arcs and spans have no place in the file; add --json")
    if wanted.n_best > 1 and not hasattr(model, "predict_k_best"):
        raise ValueError(f"a {type(model).__name__} has one answer per {form.example}; leave --n-best away")


def run(model: Any, parts: Iterable[Data], output: Path, wanted: Wanted, encoding: str | None = None) -> None:
    """Predict and write, part by part.

    Parameters
    ----------
    model : estimator
        The model.
    parts : iterable of Data
        The examples.
    output : Path
        Where to; ``-`` is standard output.
    wanted : Wanted
        What to write.
    encoding : str or None
        The encoding of what is written; None for UTF-8.
    """
    write_pieces(output, _pieces(model, parts, wanted), encoding)


def _pieces(model: Any, parts: Iterable[Data], wanted: Wanted) -> Iterator[str]:
    first = 0
    for data in parts:
        yield "".join(_texts(model, data, wanted, first))
        first += len(data.X) if isinstance(data.X, Sequence) else data.X.shape[0]


def _texts(model: Any, data: Data, wanted: Wanted, first: int) -> Iterable[str]:
    """What is written about some examples, of which the first has this number."""
    form = form_of(model)
    if form is ALIGNMENTS:
        written = Written(wanted.format, wanted.confidence, wanted.marginals, wanted.json)
        return predicted_links(model, data, written, first)
    if form.trees:
        return tree_texts(model, data, wanted.n_best, wanted.marginals, wanted.json)
    if wanted.n_best > 1:
        answers = model.predict_k_best(data.X, wanted.n_best, probabilities=True)
        return _best_json(_tokens(data, model), answers) if wanted.json else _best_lines(data, answers)
    found = _answers(model, data.X, wanted)
    if wanted.json or data.format == "json_lines":
        return _json(_tokens(data, model), found)
    if data.format == "svmlight":
        return _sets(found)
    if isinstance(data.X, Sentences):
        return column_texts(data.X, *_columns(found))
    return _lines(zip(*_columns(found), strict=True))


def _answers(model: Any, X: Any, wanted: Wanted) -> dict[str, list[Any]]:
    """What is asked for, with an entry per example, from scores that are computed once where a model can do so."""
    form, classes = form_of(model), model.classes_.tolist()
    labels, marginals = model._answers(X, wanted.marginals or wanted.confidence)
    found, names = dict[str, list[Any]](labels=labels), [str(label) for label in classes]
    shares = [np.round(rows, 6).tolist() for rows in marginals]
    if wanted.confidence:
        number = {label: k for k, label in enumerate(classes)}
        column = cache(lambda label: number[form.class_of(label, model)])
        rows = map(repeat, shares) if form is SETS else shares  # all labels of a set are in one row
        pairs = zip(labels, rows, strict=True)
        found["confidence"] = [[p[column(y)] for y, p in zip(*pair, strict=form is not SETS)] for pair in pairs]
    if wanted.marginals and form is SETS:
        found["marginals"] = [dict(zip(names, row, strict=True)) for row in shares]
    elif wanted.marginals:
        found["marginals"] = [[dict(zip(names, row, strict=True)) for row in rows] for rows in shares]
    return found


def _columns(found: dict[str, list[Any]]) -> Iterator[list[list[str]]]:
    """The predicted labels, their probabilities, those of all labels."""
    yield [[str(label) for label in sequence] for sequence in found["labels"]]
    if "confidence" in found:
        yield [[f"{p:.6f}" for p in sequence] for sequence in found["confidence"]]
    shares = found.get("marginals", [])
    for name in shares[0][0] if shares else ():
        yield [[f"{name}/{row[name]:.6f}" for row in sequence] for sequence in shares]


def _sets(found: dict[str, list[Any]]) -> Iterator[str]:
    """One line per example: its labels between commas, their probabilities likewise, those of all labels."""
    for i, labels in enumerate(found["labels"]):
        fields = [",".join(map(label_text, labels))]
        if "confidence" in found:
            fields.append(",".join(f"{p:.6f}" for p in found["confidence"][i]))
        if "marginals" in found:
            fields += [f"{name}/{p:.6f}" for name, p in found["marginals"][i].items()]
        yield "\t".join(fields) + "\n"


def _lines(sequences: Iterable[tuple[list[str], ...]]) -> Iterator[str]:
    """One line per position, an empty one between sequences."""
    for columns in sequences:
        yield "\n".join("\t".join(fields) for fields in zip(*columns, strict=True)) + "\n\n"


def _best_lines(data: Data, answers: list[list[tuple[Any, ...]]]) -> Iterator[str]:
    """Every answer as a block of lines, after a line with its rank and its probability, as CRF++ writes it."""
    rows = data.X.rows() if isinstance(data.X, Sentences) else None
    for i, best in enumerate(answers):
        for rank, (labels, _, probability) in enumerate(best):
            yield f"# {rank} {probability:.6f}\n"
            for t, label in enumerate(labels):
                yield " ".join([*(rows[i][t] if rows else ()), str(label)]) + "\n"
            yield "\n"


def _best_json(tokens: Any, answers: list[list[tuple[Any, ...]]]) -> Iterator[str]:
    for i, best in enumerate(answers):
        listed = [{"labels": labels, "score": score, "probability": p} for labels, score, p in best]
        entry: dict[str, Any] = {} if tokens is None else {"tokens": tokens[i]}
        yield json.dumps(entry | {"n_best": listed}, ensure_ascii=False) + "\n"


def _json(tokens: Any, found: dict[str, list[Any]]) -> Iterator[str]:
    for i in range(len(found["labels"])):
        entry = {} if tokens is None else {"tokens": tokens[i]}
        yield json.dumps(entry | {name: answers[i] for name, answers in found.items()}, ensure_ascii=False) + "\n"


def _tokens(data: Data, model: Any) -> Any:
    """The tokens of sequences that have some."""
    if isinstance(data.X, Sentences):
        return data.X.tokens
    return data.X if data.format == "json_lines" and form_of(model) is not GRAPHS else None
