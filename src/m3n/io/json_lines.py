"""JSON lines, plain or gzipped: one sequence or one graph per line.

    {"tokens": ["The", "dog"], "labels": ["DT", "NN"]}
    {"node_features": [[0.5, 1], [0, 2]], "edges": [[0, 1]], "edge_features": [[1.5]], "labels": ["a", "b"]}

A token is a text, a list of texts (its columns or attributes), or an object from attributes to numbers, texts, true,
false or null; all tokens of a file are of one kind. Labels are texts or whole numbers; either all lines have them or
none. Graphs are what ``GraphLabeler`` takes, and need no edge features. Other members of a line are left alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from m3n.io.files import DataFileError, Source, check_counts, reading, write_text

KINDS: dict[type, str] = {str: "text", list: "list", dict: "object"}
VALUES = (str, int, float, bool, type(None))
GRAPH = ("node_features", "edges", "edge_features")
Graph = tuple[list[Any], ...]


def read_json_lines(path: Source) -> tuple[list[list[Any]], list[list[Any]] | None]:
    """Read JSON lines: the tokens of every sequence, and the labels, or None if there are none.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    """
    kind = None

    def sequence(text: str, i: int) -> tuple[list[Any], Any]:
        nonlocal kind
        tokens, labels, kind = _sequence(text, kind)
        return tokens, labels

    return _read(path, sequence, "sequence")


def read_graphs(
    path: Source, check: Callable[[Graph, int], Any] | None = None
) -> tuple[list[Graph], list[list[Any]] | None]:
    """Read graphs: tuples (node features, edges) or (node features, edges, edge features), and the labels of the nodes.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    check : callable, optional
        Called with every graph and its number; a ValueError that it raises gets the file and the line.
    """

    def graph(text: str, i: int) -> tuple[Graph, Any]:
        found = _parse(text)
        if not all(isinstance(found.get(name), list) for name in GRAPH[:2]):
            example = '{"node_features": [[0.5], [1]], "edges": [[0, 1]], "labels": ["a", "b"]}'
            raise ValueError(f"expected an object with lists of node features and of edges, such as {example}")
        read = tuple(found[name] for name in GRAPH if found.get(name) is not None)
        _check_labels(found.get("labels"), len(read[0]), "nodes")
        if check is not None:
            check(read, i)
        return read, found.get("labels")

    return _read(path, graph, "graph")


def write_json_lines(
    path: str | os.PathLike[str], X: Sequence[Sequence[Any]], y: Sequence[Sequence[Any]] | None = None
) -> None:
    """Write JSON lines.

    Parameters
    ----------
    path : path
        Where to, as in ``write_attributes``: packed if the name ends in ``.gz``; ``-`` is standard output.
    X : sequences of tokens
        Tokens are texts, lists of texts, or dicts.
    y : sequences of labels, optional
        The labels.
    """
    check_counts(X, y)
    write_text(path, _lines(X, y))


def _read(path: Source, parse: Callable[[str, int], tuple[Any, Any]], thing: str) -> tuple[list[Any], Any]:
    """What ``parse`` makes of every line and of its number: inputs, and labels, if all lines have them."""
    X, y = list[Any](), list[list[Any]]()
    with reading(path) as lines:
        for i, text in enumerate(filter(str.strip, lines)):
            inputs, labels = parse(text, i)
            if X and bool(y) != (labels is not None):
                raise ValueError(f"labels are {'missing here' if y else 'only here'}; give all lines labels, or none")
            X.append(inputs)
            if labels is not None:
                y.append(labels)
    if not X:
        raise DataFileError.empty(path, thing)
    return X, y or None


def _sequence(text: str, kind: type | None) -> tuple[list[Any], Any, type | None]:
    """The tokens of a line, its labels or None, and the kind of the tokens, which must be that of those before."""
    found = _parse(text)
    tokens, labels = found.get("tokens"), found.get("labels")
    if not isinstance(tokens, list):
        raise ValueError('expected an object with a list of tokens, such as {"tokens": ["The"], "labels": ["DT"]}')
    kind = _check_tokens(tokens, kind)
    _check_labels(labels, len(tokens), "tokens")
    return tokens, labels, kind


def _parse(text: str) -> dict[str, Any]:
    """The object of a line."""
    try:
        found = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not JSON: {error.msg} at column {error.colno}; write one object per line") from None
    return found if isinstance(found, dict) else {}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON; leave the attribute out")


def _check_tokens(tokens: list[Any], kind: type | None) -> type | None:
    """The one kind of all tokens."""
    for t, token in enumerate(tokens):
        if type(token) not in KINDS:
            raise ValueError(f"token {t} must be a text, a list of texts or an object, got {token!r:.60}")
        if kind is not None and type(token) is not kind:
            raise ValueError(f"token {t} is of kind {KINDS[type(token)]}, those before of kind {KINDS[kind]}")
        kind = type(token)
        if kind is list and not all(isinstance(value, str) for value in token):
            raise ValueError(f"token {t} must be a list of texts, got {token!r:.60}")
        if kind is dict and not all(isinstance(value, VALUES) for value in token.values()):
            raise ValueError(f"token {t}: the values of attributes must be numbers, texts or true, got {token!r:.60}")
    return kind


def _check_labels(labels: Any, length: int, positions: str) -> None:
    if labels is None:
        return
    if not isinstance(labels, list) or not all(type(label) in (str, int) for label in labels):
        raise ValueError(f"labels must be a list of texts or whole numbers, got {labels!r:.60}")
    if len(labels) != length:
        raise ValueError(f"there are {length} {positions} but {len(labels)} labels")


def _lines(X: Sequence[Sequence[Any]], y: Sequence[Sequence[Any]] | None) -> Iterator[str]:
    kind = None
    for i, tokens in enumerate(X):
        line: dict[str, Any] = {"tokens": [dict(x) if isinstance(x, Mapping) else x for x in tokens]}
        if y is not None:
            line["labels"] = list(y[i])
        try:
            text = json.dumps(line, ensure_ascii=False, allow_nan=False, default=_plain)
            _, _, kind = _sequence(text, kind)  # what is written can be read again
        except (TypeError, ValueError) as error:
            raise ValueError(f"sequence {i} cannot be written: {error}") from None
        yield text + "\n"


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r:.60} is neither text nor number")
