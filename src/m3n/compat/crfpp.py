"""Models that CRF++ has trained, from the text that ``crf_learn -t`` writes beside the binary one.

    version: 100           header
    cost-factor: 1         every score is multiplied by it
    maxid: 12              number of weights
    xsize: 2               number of columns
                           (an empty line between all parts)
    N                      labels
    U00:%x[-1,0]           templates, those of single labels first
    B
    0 B                    where the weights of an attribute begin: with L labels,
    4 U00:the              weights[id + y] for the label y, weights[id + L y' + y] for y' before y if it begins with B
    0.1234567890123456     the weights

An attribute is a text there. It is taken apart into the values of its template's macros; where that can be done in
several ways ("U05:1/2/3" of "U05:%x[-1,0]/%x[0,0]"), each of them gets the weights.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import scipy.sparse

from m3n.compat.imported import ImportedModelError, tagger_of
from m3n.estimators import SequenceTagger
from m3n.estimators.inputs import SequenceReader
from m3n.estimators.matrices import Matrix
from m3n.features import Templates
from m3n.io.files import text_of
from m3n.io.template_syntax import Key, Row, asks_for_transitions

__all__ = ["load_text_model"]

HEADER = ("version", "cost-factor", "maxid", "xsize")
PARTS = ("header", "labels", "templates", "attributes", "weights")
SPARSE = 0.3  # share of weights that are not 0 below which a model is kept sparse


def load_text_model(path: str | os.PathLike[str]) -> SequenceTagger:
    """A tagger from a text model of CRF++.

    It reads tokens in columns, as ``m3n.io.read_columns`` returns them. ``classes_`` has the order of the model, and
    there is no certificate.

    Parameters
    ----------
    path : path
        The file ``MODEL.txt`` that ``crf_learn -t TEMPLATE DATA MODEL`` writes.

    Returns
    -------
    SequenceTagger
        Predicts what CRF++ predicts.
    """
    model = _read(os.fspath(path))
    patterns = Counter(pattern for pattern in model.templates if not _plain(pattern))
    try:
        templates, rows = _attributes(list(patterns), model.ids)
    except ValueError as error:
        raise ImportedModelError.at(os.fspath(path), model.line, str(error)) from None
    size = len(model.labels)
    token, pair = (
        _weights_of(model, templates, rows, list(patterns.values()), pair=pair, width=width)
        for pair, width in ((False, size), (True, size * size))
    )
    edges = pair if scipy.sparse.issparse(pair) else pair.reshape(-1, size, size)
    reader = SequenceReader("columns", token.shape[0], templates, model.columns)
    return tagger_of(model.labels, reader, token, _transitions(model), edges if templates.has_pairs else None)


def _plain(pattern: str) -> bool:
    """Whether a template asks for transitions alone."""
    return asks_for_transitions(pattern, "crf++")


@dataclass(frozen=True)
class _TextModel:
    labels: list[str]
    templates: list[str]
    ids: dict[str, int]
    weights: np.ndarray  # times the cost factor
    line: int  # where the templates begin
    columns: int


def _attributes(patterns: Sequence[str], ids: dict[str, int]) -> tuple[Templates, list[np.ndarray]]:
    """Templates that know the attributes of a model and, per template, the ids of their weights in column order."""
    templates = Templates(patterns, syntax="crf++")
    found = [
        [(id_, values) for text, id_ in ids.items() for values in _values(text, template.texts)]
        for template in templates.parsed
    ]
    templates.restore(_columns(templates, found), [()] * len(found))
    rows = []
    for template, own, entries in zip(templates.parsed, templates.attributes, found, strict=True):
        codes = _codes(templates, template.macros, [values for _, values in entries])
        numbers = own.learn(codes)
        row = np.empty(len(own), np.int64)
        row[numbers] = [id_ for id_, _ in entries]
        rows.append(row)
    return templates, rows


def _weights_of(
    model: _TextModel, templates: Templates, rows: list[np.ndarray], counts: list[int], *, pair: bool, width: int
) -> Matrix:
    """The weights of all attributes of tokens, or of pairs; a template that comes twice counts twice."""
    chosen = [j for j, template in enumerate(templates.parsed) if template.pair == pair]
    begins = np.concatenate([rows[j] for j in chosen] or [np.zeros(0, np.int64)])
    times = np.repeat([counts[j] for j in chosen], [len(rows[j]) for j in chosen])
    weights = model.weights[begins[:, None] + np.arange(width)] * times[:, None]
    return scipy.sparse.csr_array(weights) if np.count_nonzero(weights) < SPARSE * weights.size else weights


def _values(text: str, texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Every way to write a text with values between the texts of a template."""
    first, rest = texts[0], text[len(texts[0]) :]
    if not text.startswith(first):
        return
    if len(texts) == 1:
        yield from [()] if not rest else []
    elif len(texts) == 2:
        if rest.endswith(texts[1]) and len(rest) > len(texts[1]):
            yield (rest[: len(rest) - len(texts[1])],)
    else:
        place = rest.find(texts[1], 1)
        while place >= 0:
            yield from ((rest[:place], *more) for more in _values(rest[place:], texts[1:]))
            place = rest.find(texts[1], place + 1)


def _columns(templates: Templates, found: Iterable[list[tuple[int, tuple[str, ...]]]]) -> dict[Key, list[str]]:
    """The values of every column, in order of appearance."""
    columns: dict[Key, dict[str, None]] = {}
    for template, entries in zip(templates.parsed, found, strict=True):
        for place, (_, column) in enumerate(template.macros):
            columns.setdefault(column, {}).update((values[place], None) for _, values in entries)
    return {column: list(values) for column, values in sorted(columns.items())}


def _codes(
    templates: Templates, macros: tuple[tuple[Row, Key], ...], values: list[tuple[str, ...]]
) -> list[np.ndarray]:
    """The codes of values, one array per macro; a macro that looks aside may have met the end of a sentence."""
    codes = []
    for place, (row, column) in enumerate(macros):
        words = templates.words(column) if row else templates.values[column]
        numbers = {word: code for code, word in enumerate(words)}
        codes.append(np.fromiter((numbers[own[place]] for own in values), np.int64, len(values)))
    return codes or [np.zeros(len(values), np.int64)]


def _transitions(model: _TextModel) -> np.ndarray:
    """Scores of neighbouring labels: the weights of templates of pairs that have neither text nor macros."""
    size = len(model.labels)
    total = np.zeros((size, size))
    for pattern in model.templates:
        if _plain(pattern) and pattern in model.ids:
            begin = model.ids[pattern]
            total += model.weights[begin : begin + size * size].reshape(size, size)
    return total


def _read(name: str) -> _TextModel:
    """The parts of a file, with errors that name the line."""
    lines = text_of(name).decode().replace("\r\n", "\n").split("\n")
    bounds = _bounds(name, lines)
    header = _header(name, lines[: bounds[0][1]])
    labels, templates, entries, numbers = (lines[low:high] for low, high in bounds[1:])
    if len(set(labels)) < len(labels):
        raise ImportedModelError.at(name, bounds[1][0] + 1, "a label comes twice; copy the file again")
    weights = _weights(name, numbers, bounds[4][0] + 1)
    if len(weights) != header["maxid"]:
        what = f"there are {len(weights)} weights, not {header['maxid']:.0f} as maxid says; copy the file again"
        raise ImportedModelError.at(name, bounds[4][1], what)
    ids = dict(_ids(name, entries, bounds[3][0] + 1))
    for number, (text, begin) in enumerate(ids.items(), start=bounds[3][0] + 1):
        size = len(labels) ** (2 if text.startswith("B") else 1)
        if begin + size > len(weights):
            raise ImportedModelError.at(name, number, f"{text!r:.60} has no weights: they would begin at {begin}")
    return _TextModel(labels, templates, ids, weights * header["cost-factor"], bounds[2][0] + 1, int(header["xsize"]))


def _bounds(name: str, lines: list[str]) -> list[tuple[int, int]]:
    """Where the parts begin and end: they are separated by single empty lines."""
    empty = [k for k, line in enumerate(lines[:-1]) if not line]
    ends = empty[: len(PARTS) - 1]
    if len(ends) < len(PARTS) - 1 or lines[-1]:
        what = f"the file ends in the part with the {PARTS[len(ends)]}; write it again by crf_learn -t"
        raise ImportedModelError.at(name, len(lines), what)
    return list(zip([0, *(end + 1 for end in ends)], [*ends, len(lines) - 1], strict=True))


def _header(name: str, lines: list[str]) -> dict[str, float]:
    header = {}
    for key, (number, line) in zip(HEADER, enumerate([*lines, *repeat("", len(HEADER))], start=1), strict=False):
        found, _, value = line.partition(": ")
        try:
            header[key] = float(value) if found == key else float("nan")
        except ValueError:
            header[key] = float("nan")
        if not math.isfinite(header[key]):
            raise ImportedModelError.at(name, number, f"expected '{key}: number', found {line!r:.60}")
    return header


def _ids(name: str, lines: list[str], first: int) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(lines, start=first):
        begin, space, text = line.partition(" ")
        if not (space and begin.isdigit()):
            raise ImportedModelError.at(name, number, f"expected 'number attribute', found {line!r:.60}")
        yield text, int(begin)


def _weights(name: str, lines: list[str], first: int) -> np.ndarray:
    try:
        weights = np.array(lines, dtype=np.float64)
    except ValueError:
        weights = np.array([np.nan])
    if np.isfinite(weights).all():
        return weights
    number, line = next((first + k, line) for k, line in enumerate(lines) if not _is_weight(line))
    raise ImportedModelError.at(name, number, f"expected a weight, found {line!r:.60}")


def _is_weight(line: str) -> bool:
    try:
        return math.isfinite(float(line))
    except ValueError:
        return False
