"""CRFsuite's attribute format, plain or gzipped.

One token per line: its label, then its attributes, all between tabs; an empty line ends a sequence. An attribute may
have a weight behind a colon, which is 1 otherwise:

    B-NP<tab>w[0]=The<tab>length:3<tab>url=http\\://example.org

A line ``@weight:2`` says how often its sequence counts in training, wherever it stands in it; 1 without.

In labels and names a backslash stands before a colon or a backslash that belongs to them. An attribute that comes more
than once in a line has the sum of its weights, as in CRFsuite.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Literal, overload

from m3n.io.files import DataFileError, Source, check_lengths, reading, write_text

FIELD = re.compile(r"((?:\\[:\\]|[^:])*)(.*)", flags=re.DOTALL)
ESCAPED = re.compile(r"\\([:\\])")
SPECIAL = re.compile(r"[:\\]")
NO_LABEL = "_"  # CRFsuite wants a label in every line, also where there is none
Tokens = list[dict[str, float]]


@overload
def read_attributes(
    path: Source, *, weights: Literal[False] = False
) -> tuple[list[Tokens], list[list[str]] | None]: ...
@overload
def read_attributes(
    path: Source, *, weights: Literal[True]
) -> tuple[list[Tokens], list[list[str]] | None, list[float] | None]: ...
def read_attributes(path: Source, *, weights: bool = False) -> Any:
    """Read a file in CRFsuite's format: for every sequence its attributes and its labels.

    A file whose labels are all ``_`` has none: y is None.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    weights : bool
        Whether to return the weights of the sequences, too, ``sample_weight`` for training: numbers, or None if no line
        says ``@weight:NUMBER``.
    """
    X, y, found = list[Tokens](), list[list[str]](), dict[int, float]()
    known, weight, inside = dict[str, tuple[str, float]](), None, False
    with reading(path) as lines:
        for text in lines:
            if not text.strip():
                inside, weight = False, None
                continue
            if text.startswith("@"):
                weight, text = _declared(text)
            if text:
                label, token = _token(text, known)
                if not inside:
                    X.append([])
                    y.append([])
                inside = True
                X[-1].append(token)
                y[-1].append(label)
            if inside and weight is not None:
                found[len(X) - 1] = weight
    if not X:
        raise DataFileError.empty(path, "token")
    labels = None if set(chain.from_iterable(y)) == {NO_LABEL} else y
    if not weights:
        return X, labels
    return X, labels, [found.get(i, 1.0) for i in range(len(X))] if found else None


def _declared(text: str) -> tuple[float, str]:
    """The weight that a line declares, and the rest of the line."""
    first, _, rest = text.partition("\t")
    name, _, number = first.partition(":")
    if name != "@weight":
        raise ValueError(f"{first!r} is a declaration, which m3n does not know; remove it. @weight:2 is one")
    try:
        weight = float(number)
    except ValueError:
        weight = math.nan
    if not 0.0 <= weight < math.inf:
        raise ValueError(f"{first!r}: the weight of a sequence is a number that is not negative, such as @weight:2")
    return weight, rest


def write_attributes(
    path: str | os.PathLike[str],
    X: Sequence[Sequence[Mapping[str, float | str | None] | Iterable[str]]],
    y: Sequence[Sequence[str]] | None = None,
    sample_weight: Sequence[float] | None = None,
) -> None:
    """Write sequences in CRFsuite's format.

    Parameters
    ----------
    path : path
        Where to; packed by gzip if the name ends in ``.gz``. ``-`` is standard output.
    X : sequences of tokens
        A token is a dict from attributes to weights, or a list of attributes. True counts as 1, False and None as
        nothing; a text as value makes the attribute ``name=value``.
    y : sequences of labels, optional
        The labels; ``_`` is written without them.
    sample_weight : sequence of float, optional
        How often every sequence counts; what is not 1 is written as ``@weight:2``.
    """
    check_lengths(X, y)
    if sample_weight is not None and len(sample_weight) != len(X):
        raise ValueError(f"X has {len(X)} sequences but sample_weight has {len(sample_weight)} numbers")
    write_text(path, _lines(X, y, sample_weight))


def _token(text: str, known: dict[str, tuple[str, float]]) -> tuple[str, dict[str, float]]:
    """The label and the attributes of a line; every attribute is taken apart only where it comes for the first time."""
    first, *fields = text.split("\t")
    if not first:
        raise ValueError(f"the line begins with a tab; write the label first, or {NO_LABEL} if there is none")
    label, rest = _split(first)
    if rest:
        raise ValueError(f"the label {first!r} has a colon; write \\: for it")
    fields = list(filter(None, fields))  # CRFsuite does not mind empty ones
    for field in fields:
        if field not in known:
            known[field] = _attribute(field)
    pairs = [known[field] for field in fields]
    token = dict(pairs)
    if len(token) < len(pairs):
        token = {name: sum(weight for other, weight in pairs if other == name) for name in token}
    return label, token


def _attribute(field: str) -> tuple[str, float]:
    """Name and weight."""
    name, rest = _split(field)
    if not name:
        raise ValueError(f"the attribute {field!r} has no name before its weight")
    try:
        weight = float(rest[1:] or 1.0)
    except ValueError:
        weight = math.nan
    if not math.isfinite(weight):
        remedy = "write \\: for a colon inside of a name"
        raise ValueError(f"the weight {rest[1:]!r} of attribute {name!r} is not a number; {remedy}")
    return name, weight


def _split(field: str) -> tuple[str, str]:
    """A name, and what follows it from the first colon on that does not belong to it."""
    ((name, rest), *_) = FIELD.findall(field)
    return ESCAPED.sub(r"\1", name), rest


def _lines(
    X: Sequence[Sequence[Any]], y: Sequence[Sequence[str]] | None, weights: Sequence[float] | None
) -> Iterator[str]:
    known = dict[tuple[str, Any], str]()
    for i, sequence in enumerate(X):
        if weights is not None and weights[i] != 1:
            yield f"@weight:{float(weights[i])!r}\n"
        for t, token in enumerate(sequence):
            where = f"sequence {i}, position {t}"
            label = NO_LABEL if y is None else _escaped(str(y[i][t]), where)
            if label.startswith("@"):
                raise ValueError(f"{where}: CRFsuite takes the label {label!r} for a declaration; rename it")
            pairs = token.items() if isinstance(token, Mapping) else zip(token, repeat(1.0))
            kept = [pair for pair in pairs if pair[1] is not None and pair[1] is not False]
            for pair in kept:
                if pair not in known:
                    known[pair] = _field(pair[0], pair[1], where)
            yield "\t".join([label, *map(known.__getitem__, kept)]) + "\n"
        yield "\n"


def _field(name: str, value: Any, where: str) -> str:
    """An attribute, with its weight unless that is 1."""
    if isinstance(value, str):
        return _escaped(f"{name}={value}", where)
    if not math.isfinite(value):
        raise ValueError(f"{where}: the weight of attribute {name!r} is {value}; it must be a finite number")
    return _escaped(name, where) + ("" if value == 1 else f":{float(value)!r}")


def _escaped(text: str, where: str) -> str:
    if not text.strip() or "\t" in text or "\n" in text or text.endswith("\r"):
        raise ValueError(f"{where}: the format cannot hold {text!r}; labels and attributes need a text without tabs")
    return SPECIAL.sub(r"\\\g<0>", text)
