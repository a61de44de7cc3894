"""Column files as in the CoNLL shared tasks, plain or gzipped.

One token per line, columns between spaces or tabs, the last one the label; an empty line ends a sentence. Lines that
begin with ``-DOCSTART-`` mark documents and are left out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from m3n.io.files import DataFileError, lines_of

DOCUMENT = "-DOCSTART-"


@dataclass(frozen=True)
class Sentences:
    """Labelled sentences.

    Attributes
    ----------
    tokens : list of lists of tuples of str
        For every token of every sentence its columns without the label.
    labels : list of lists of str
        The labels.
    """

    tokens: list[list[tuple[str, ...]]]
    labels: list[list[str]]


def read_columns(path: str | os.PathLike[str]) -> Sentences:
    """Read a column file.

    Parameters
    ----------
    path : path
        The file.
    """
    tokens: list[list[tuple[str, ...]]] = [[]]
    labels: list[list[str]] = [[]]
    width = 0
    for number, text in lines_of(path):
        fields = text.split()
        if fields and fields[0] != DOCUMENT:
            width = width or len(fields)
            _check(fields, width, path, number)
            tokens[-1].append(tuple(fields[:-1]))
            labels[-1].append(fields[-1])
        elif not fields and tokens[-1]:
            tokens.append([])
            labels.append([])
    if not tokens[-1]:
        del tokens[-1], labels[-1]
    if not tokens:
        raise DataFileError(f"{os.fspath(path)} is empty: there is no token in it")
    return Sentences(tokens, labels)


def attributes(sentence: list[tuple[str, ...]]) -> list[list[str]]:
    """Plain attributes of every token: its columns, its word in lower case, the same of both neighbours, a constant.

    Column 0 is taken for the word. ``0=The``, ``lower=the``, ``1=DT`` describe the token itself, ``-1:0=...`` the one
    before, ``+1:0=...`` the one after it.

    Parameters
    ----------
    sentence : list of tuples of str
        The columns of every token, without the label.
    """
    described = [
        [*(f"{column}={value}" for column, value in enumerate(token)), f"lower={token[0].lower()}"]
        for token in sentence
    ]
    before = [[], *([f"-1:{text}" for text in token] for token in described[:-1])]
    after = [*([f"+1:{text}" for text in token] for token in described[1:]), []]
    return [["bias", *here, *left, *right] for here, left, right in zip(described, before, after, strict=True)]


def _check(fields: list[str], width: int, path: str | os.PathLike[str], number: int) -> None:
    if width < 2:
        raise DataFileError.at(path, number, "a token needs at least two columns: the word first and the label last")
    if len(fields) != width:
        what = f"expected {width} columns as in the lines before, found {len(fields)}"
        raise DataFileError.at(path, number, what)
