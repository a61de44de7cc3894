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
from m3n.cli.options import console
from m3n.cli.remarks import FLAT, is_flat
from m3n.cli.trees import tree_texts
from m3n.estimators.chains import check_temperature
from m3n.estimators.forms import ALIGNMENTS, GRAPHS, SETS, Form, form_of
from m3n.io import Data, Sentences
from m3n.io.columns import column_texts
from m3n.io.files import write_pieces
from m3n.io.svmlight import label_text

TOKENS = ("json_lines", "attributes")  # formats whose tokens are of JSON


@dataclass(frozen=True)
class Wanted:
    """What is to be written."""

    n_best: int = 1  # how many answers per example
    marginals: bool = False  # the probability of every label
    confidence: bool = False  # the probability of the predicted label
    temperature: float | None = None  # of all probabilities; None for that of the model
    json: bool = False  # JSON lines, whatever the format of the data
    format: str | None = None  # of links
    sets: bool = False  # sets of labels, and in JSON of whole outputs

    @property
    def probabilities(self) -> bool:
        """Whether there are any."""
        return self.marginals or self.confidence or self.n_best > 1


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
    if wanted.temperature is not None:
        _check_temperature(form, wanted)
    if wanted.sets:
        _check_sets(model, form, wanted)
    if wanted.n_best > 1 and not hasattr(model, "predict_k_best"):
        raise ValueError(f"a {type(model).__name__} has one answer per {form.example}; leave --n-best away")


def _check_temperature(form: Form, wanted: Wanted) -> None:
    if form.trees or form is ALIGNMENTS:
        raise ValueError(f"--temperature is for probabilities of labels, not for {form.kind}; leave it away")
    if not wanted.probabilities:
        raise ValueError("--temperature is for probabilities: add --confidence, --marginals or --n-best")
    check_temperature(wanted.temperature or 0.0)


def _check_sets(model: Any, form: Form, wanted: Wanted) -> None:
    if not hasattr(model, "predict_label_sets"):
        raise ValueError(f"--sets is for labels of sequences, not for {form.kind}; leave it away")
    if wanted.n_best > 1:
        raise ValueError("--n-best has as many answers as are asked for, --sets as many as are needed: choose one")
    if getattr(model, "coverage_", None) is None:
        raise ValueError("nobody has settled how large sets must be: m3n train --calibrate HELD_OUT --coverage 0.9")


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
    labels = not (form_of(model).trees or form_of(model) is ALIGNMENTS)
    if labels and wanted.probabilities and wanted.temperature is None and not wanted.json and is_flat(model):
        console(errors=True).print(FLAT)
    write_pieces(output, _pieces(model, parts, wanted), encoding)


def _pieces(model: Any, parts: Iterable[Data], wanted: Wanted) -> Iterator[str]:
    first = 0
    for data in parts:
        yield "".join(texts_of(model, data, wanted, first))
        first += len(data.X) if isinstance(data.X, Sequence) else data.X.shape[0]


def texts_of(model: Any, data: Data, wanted: Wanted, first: int) -> Iterable[str]:
    """What is written about some examples.

    Parameters
    ----------
    model : estimator
        The model.
    data : Data
        The examples.
    wanted : Wanted
        What to write.
    first : int
        The number of the first.
    """
    form = form_of(model)
    if form is ALIGNMENTS:
        written = Written(wanted.format, wanted.confidence, wanted.marginals, wanted.json)
        return predicted_links(model, data, written, first)
    if form.trees:
        return tree_texts(model, data, wanted.n_best, wanted.marginals, wanted.json)
    if wanted.n_best > 1:
        warmth = {} if wanted.temperature is None else {"temperature": wanted.temperature}
        answers = model.predict_k_best(data.X, wanted.n_best, probabilities=True, **warmth)
        return _best_json(_known(data, model), answers) if wanted.json else _best_lines(data, answers)
    objects = wanted.json or data.format == "json_lines"
    found = _answers(model, data.X, wanted) | (_answer_sets(model, data.X, objects) if wanted.sets else {})
    if objects:
        return _json(_known(data, model), found)
    if data.format == "svmlight":
        return _sets(found)
    if isinstance(data.X, Sentences):
        return column_texts(data.X, *_columns(found))
    return _lines(zip(*_columns(found), strict=True))


def _answers(model: Any, X: Any, wanted: Wanted) -> dict[str, list[Any]]:
    """What is asked for, with an entry per example, from scores that are computed once where a model can do so."""
    form, classes = form_of(model), model.classes_.tolist()
    labels, marginals = model._answers(X, wanted.marginals or wanted.confidence, wanted.temperature)
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


def _answer_sets(model: Any, X: Any, objects: bool) -> dict[str, list[Any]]:
    """Sets of labels, and where there is room for them sets of whole outputs."""
    found: dict[str, list[Any]] = {"sets": model.predict_label_sets(X)}
    if objects:
        outputs = model.predict_set(X)
        names = ("labels", "probability")
        found["outputs"] = [[dict(zip(names, output, strict=True)) for output in known] for known in outputs]
        found["complete"] = [known.complete for known in outputs]
    return found


def _columns(found: dict[str, list[Any]]) -> Iterator[list[list[str]]]:
    """The predicted labels, their probabilities, those of all labels, the sets of labels."""
    yield [[str(label) for label in sequence] for sequence in found["labels"]]
    if "confidence" in found:
        yield [[f"{p:.6f}" for p in sequence] for sequence in found["confidence"]]
    shares = found.get("marginals", [])
    for name in shares[0][0] if shares else ():
        yield [[f"{name}/{row[name]:.6f}" for row in sequence] for sequence in shares]
    if "sets" in found:
        yield [["{" + "|".join(map(str, labels)) + "}" for labels in sequence] for sequence in found["sets"]]


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
    rows, between = (data.X.rows(), data.X.delimiter) if isinstance(data.X, Sentences) else (None, " ")
    for i, best in enumerate(answers):
        for rank, (labels, _, probability) in enumerate(best):
            yield f"# {rank} {probability:.6f}\n"
            for t, label in enumerate(labels):
                yield between.join([*(rows[i][t] if rows else ()), str(label)]) + "\n"
            yield "\n"


def _best_json(known: dict[str, Any], answers: list[list[tuple[Any, ...]]]) -> Iterator[str]:
    names = ("labels", "score", "probability")
    return _json(known, {"n_best": [[dict(zip(names, answer, strict=True)) for answer in best] for best in answers]})


def _json(known: dict[str, Any], found: dict[str, list[Any]]) -> Iterator[str]:
    """An object per example: what the data say about it, and what was found."""
    everything = known | found
    for values in zip(*everything.values(), strict=True):
        yield json.dumps(dict(zip(everything, values, strict=True)), ensure_ascii=False) + "\n"


def _known(data: Data, model: Any) -> dict[str, Any]:
    """The tokens of sequences that have some, and the right labels if the data have them."""
    columns = isinstance(data.X, Sentences)
    named = columns or (data.format in TOKENS and form_of(model) is not GRAPHS)
    tokens = {"tokens": data.X.tokens if columns else data.X} if named else {}
    return tokens if data.y is None else tokens | {"gold": data.y}
