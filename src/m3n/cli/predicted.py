"""What ``m3n predict`` has written, read back: right labels and predicted ones, without what else stands beside them.

columns         ... right predicted
--confidence    ... right predicted 0.912345
--marginals     ... right predicted B/0.912345 I/0.034512 O/0.053143
--sets          ... right predicted {B|I}
--n-best        the same as columns, in blocks after "# RANK PROBABILITY", of which the first of a sequence counts
--json          {"gold": [...], "labels": [...]}, or with "n_best" instead of "labels"
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from m3n.io import Column, Sentences, read_columns
from m3n.io.files import Held, Source, hold, lines_of, name_of, reading

PROBABILITY = re.compile(r"[01]\.\d{6}")
SHARE = re.compile(r".+/[01]\.\d{6}", re.DOTALL)
SET = re.compile(r"\{.+\}", re.DOTALL)
RANK = re.compile(r"# (\d+) [01]\.\d{6}")


class Predicted(NamedTuple):
    """Labels to compare.

    Attributes
    ----------
    gold, found : lists of lists of labels
        The right ones and the predicted ones.
    remark : str
        What was left out, or looks strange.
    """

    gold: list[list[Any]]
    found: list[list[Any]]
    remark: str = ""


def read_predicted(path: Source, delimiter: str | None = None) -> Predicted:
    """Right and predicted labels of a file.

    Parameters
    ----------
    path : path
        The file.
    delimiter : str or None
        What separates columns.
    """
    source = hold(path)
    first = next((text for _, text in lines_of(source) if text.strip()), "")
    if first.startswith("{"):
        return _objects(source)
    if RANK.fullmatch(first):
        return _columns(_best(source), delimiter, "answers but the best")
    return _columns(source, delimiter)


def are_probabilities(values: Sequence[Any]) -> bool:
    """Whether all values are written like the confidences of ``m3n predict``.

    Parameters
    ----------
    values : sequence
        Such as the labels that occur.
    """
    return bool(values) and all(isinstance(value, str) and PROBABILITY.fullmatch(value) for value in values)


def _columns(source: Source, delimiter: str | None, others: str = "") -> Predicted:
    """The last two columns that hold neither probabilities nor sets."""
    read = read_columns(source, delimiter=delimiter)
    columns = [*read.columns, *([] if read.label is None else [read.label])]
    width = len(columns)
    if all(map(SET.fullmatch, columns[-1].values)) and len(columns) > 1:
        columns.pop()
    sets = width - len(columns)
    while all(map(SHARE.fullmatch, columns[-1].values)) and len(columns) > 1:
        columns.pop()
    if are_probabilities(columns[-1].values):
        columns.pop()
    if len(columns) < 3:
        what = f"{len(columns)} column{'s' * (len(columns) != 1)}" if width > len(columns) else "two columns"
        raise ValueError(f"{name_of(source)} has {what}; give a model, or a file with word, right label, predicted")
    left = [others] * bool(others) + ["probabilities"] * (width - sets > len(columns)) + ["sets"] * sets
    said = f"{' and '.join(left)} are left out" if left else ""
    gold, found = (_labels(column, read) for column in columns[-2:])
    if set(columns[-2].values).isdisjoint(columns[-1].values):
        said = f"no label of column {len(columns) - 1} is in column {len(columns)}: were the right labels in the data?"
    return Predicted(gold, found, said and f"{name_of(source)}: {said}")


def _labels(column: Column, read: Sentences) -> list[list[str]]:
    return Sentences([], read.offsets, column).labels


def _best(source: Source) -> Held:
    """The blocks of the best answers; other lines are empty, so that the numbers of lines stay."""
    kept, rank = [], "0"
    for _, text in lines_of(source):
        found = RANK.fullmatch(text)
        rank = found[1] if found else rank
        kept.append(text if rank == "0" and not found else "")
    return Held(name_of(source), ("\n".join(kept) + "\n").encode())


def _objects(source: Source) -> Predicted:
    with reading(source) as lines:
        pairs = [_pair(text) for text in lines if text.strip()]
    return Predicted([gold for gold, _ in pairs], [found for _, found in pairs])


def _pair(text: str) -> tuple[list[Any], list[Any]]:
    """Right and predicted labels of an object of JSON."""
    entry = json.loads(text)
    best = entry.get("n_best") or [entry]
    gold, found = entry.get("gold"), best[0].get("labels")
    if not isinstance(gold, list) or not isinstance(found, list):
        raise ValueError('no right and predicted labels; m3n predict --json writes "gold" if the data have labels')
    if len(gold) != len(found):
        raise ValueError(f"{len(gold)} right labels but {len(found)} predicted ones; give the model and its data")
    return gold, found
