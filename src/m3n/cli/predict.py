"""``m3n predict``: labels for new sequences, in the format that they came in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from m3n.estimators import SequenceTagger
from m3n.io import Data, Sentences, write_columns
from m3n.io.files import write_text


@dataclass(frozen=True)
class Wanted:
    """What is to be written.

    Attributes
    ----------
    n_best : int
        How many answers per sequence.
    marginals : bool
        The probability of every label.
    confidence : bool
        The probability of the predicted label.
    json : bool
        JSON lines, whatever the format of the data.
    """

    n_best: int = 1
    marginals: bool = False
    confidence: bool = False
    json: bool = False


def run(model: SequenceTagger, data: Data, output: Path, wanted: Wanted) -> None:
    """Predict and write.

    Parameters
    ----------
    model : SequenceTagger
        The model.
    data : Data
        The sequences.
    output : Path
        Where to; ``-`` is standard output.
    wanted : Wanted
        What to write.
    """
    if wanted.n_best > 1:
        answers = model.predict_k_best(data.X, wanted.n_best, probabilities=True)
        write_text(output, _best_json(answers) if wanted.json else _best_lines(data, answers))
        return
    labels = model.predict(data.X)
    needs = wanted.marginals or wanted.confidence
    marginals = model.predict_marginals(data.X) if needs else None
    columns = _extra_columns(model, labels, marginals, wanted)
    if wanted.json or data.format == "json_lines":
        write_text(output, _json(model, data, labels, marginals, wanted))
    elif isinstance(data.X, Sentences):
        write_columns(output, data.X, *columns)
    else:
        write_text(output, _lines(zip(*columns, strict=True)))


def _extra_columns(
    model: SequenceTagger, labels: list[list[Any]], marginals: list[np.ndarray] | None, wanted: Wanted
) -> list[list[list[str]]]:
    """The predicted labels, their probabilities, those of all labels."""
    columns = [[[str(label) for label in sequence] for sequence in labels]]
    if wanted.confidence and marginals is not None:
        columns.append([[f"{p:.6f}" for p in found] for found in _confidences(model, labels, marginals)])
    if wanted.marginals and marginals is not None:
        names = model.classes_.tolist()
        columns += [[[f"{name}/{p:.6f}" for p in m[:, k]] for m in marginals] for k, name in enumerate(names)]
    return columns


def _confidences(model: SequenceTagger, labels: list[list[Any]], marginals: list[np.ndarray]) -> list[list[float]]:
    number = {label: k for k, label in enumerate(model.classes_.tolist())}
    return [
        [float(m[t, number[label]]) for t, label in enumerate(sequence)]
        for sequence, m in zip(labels, marginals, strict=True)
    ]


def _lines(sequences: Iterable[tuple[list[str], ...]]) -> Iterator[str]:
    """One line per position, an empty one between sequences."""
    for columns in sequences:
        yield "\n".join("\t".join(fields) for fields in zip(*columns, strict=True)) + "\n\n"


def _best_lines(data: Data, answers: list[list[tuple[Any, ...]]]) -> Iterator[str]:
    """Every answer as a block of lines, after a line with its rank and its probability, as CRF++ writes it."""
    tokens = data.X.tokens if isinstance(data.X, Sentences) else None
    for i, best in enumerate(answers):
        for rank, (labels, _, probability) in enumerate(best):
            yield f"# {rank} {probability:.6f}\n"
            for t, label in enumerate(labels):
                yield " ".join([*(tokens[i][t] if tokens else ()), str(label)]) + "\n"
            yield "\n"


def _best_json(answers: list[list[tuple[Any, ...]]]) -> Iterator[str]:
    for best in answers:
        listed = [{"labels": labels, "score": score, "probability": p} for labels, score, p in best]
        yield json.dumps({"n_best": listed}, ensure_ascii=False) + "\n"


def _json(
    model: SequenceTagger, data: Data, labels: list[list[Any]], marginals: list[np.ndarray] | None, wanted: Wanted
) -> Iterator[str]:
    names = [str(label) for label in model.classes_.tolist()]
    confidences = _confidences(model, labels, marginals) if wanted.confidence and marginals else None
    tokens = data.X.tokens if isinstance(data.X, Sentences) else data.X if data.format == "json_lines" else None
    for i, sequence in enumerate(labels):
        entry: dict[str, Any] = {} if tokens is None else {"tokens": tokens[i]}
        entry["labels"] = sequence
        if confidences is not None:
            entry["confidence"] = [round(p, 6) for p in confidences[i]]
        if wanted.marginals and marginals is not None:
            entry["marginals"] = [dict(zip(names, np.round(row, 6).tolist(), strict=True)) for row in marginals[i]]
        yield json.dumps(entry, ensure_ascii=False) + "\n"
