"""Column files as in the CoNLL shared tasks, plain or gzipped.

One token per line, columns between spaces or tabs, the last one the label; an empty line ends a sentence. Where every
line has the same number of tabs, these alone separate columns, so that a column may hold blanks: ``New York<tab>LOC``.
Lines that begin with ``-DOCSTART-`` mark documents; they end a sentence and are left out. The delimiter, the column of
the label and the mark of a document may be others.

Where lines and fields begin is found on the bytes of the file as one array; fields are cut by ``split``, a quarter of a
megabyte at a time, and column k is every width-th of them. No Python code runs per token, and only the distinct values
and their numbers are kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from m3n.io.files import DataFileError, Source, text_of, write_text
from m3n.io.sentences import Column, GrowingColumn, Sentences

DOCUMENT = "-DOCSTART-"
SIZE = 1 << 18  # bytes that are cut at a time
NEWLINE, TAB = ord("\n"), ord("\t")
BLANKS = " \t\n\r\f\v"  # what bytes.split() splits at; a no-break space belongs to its word
BLANK = np.zeros(256, dtype=bool)
BLANK[list(BLANKS.encode())] = True
BLANK_LINE = re.compile(rb"^[ \t\r\f\v]+$", re.MULTILINE)


class Table(NamedTuple):
    """All fields of a file.

    Attributes
    ----------
    lines : array of int
        Numbers of the lines that are not empty, counted from 1.
    widths : array of int
        How many fields each of them has.
    fields : iterable of lists of bytes
        The fields, line after line, as many lines at a time as are cut together.
    delimiter : str
        What stands between them.
    """

    lines: np.ndarray
    widths: np.ndarray
    fields: Iterable[list[bytes]]
    delimiter: str


def read_columns(
    path: Source,
    labelled: bool = True,
    *,
    delimiter: str | None = None,
    label: int = -1,
    document: str | None = DOCUMENT,
) -> Sentences:
    """Read a column file.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    labelled : bool
        Whether there is a column of labels; False for a file of tokens that are yet to be labelled.
    delimiter : str, optional
        One character that stands between columns, such as a tab or a comma; columns may then hold blanks, but none may
        be empty, and quotes are letters like others. The default is any number of blanks and tabs; tabs alone where
        every line has the same number of them.
    label : int
        The column of the label, counted from 0, or backwards from -1, the last.
    document : str or None
        The first word of lines that mark documents: they end a sentence and are left out. None if there are no such
        lines.
    """
    content = _without_documents(text_of(path), document, delimiter)
    table = _table(content, path) if delimiter is None else _delimited(content, delimiter)
    if not table.lines.size:
        raise DataFileError.empty(path, "token")
    width = _width(table, path, labelled, delimiter)
    columns = _columns(table.fields, width)
    if delimiter is not None:
        _check_filled(columns, table.lines, path)
    if labelled and not -width <= label < width:
        there = f"the file has the columns 0 to {width - 1}, or -{width} to -1 from the end"
        raise DataFileError.at(path, int(table.lines[0]), f"there is no column {label} for the label; {there}")
    starts = np.flatnonzero(np.diff(table.lines, prepend=-1) > 1)  # after an empty line or at the file's beginning
    labels = columns.pop(label) if labelled else None
    return Sentences(columns, np.append(starts, len(table.lines)), labels, table.delimiter)


def write_columns(
    path: str | os.PathLike[str], sentences: Sentences, *extra: Sequence[Sequence[Any]], delimiter: str | None = None
) -> None:
    """Write a column file: the columns of sentences, their labels if they have any, then further columns.

    Parameters
    ----------
    path : path
        Where to; packed by gzip if the name ends in ``.gz``. ``-`` is standard output.
    sentences : Sentences
        The tokens.
    *extra : lists of lists of str
        Further columns, such as predicted labels: one list per sentence, one value per token.
    delimiter : str, optional
        One character to put between columns. The default is that of the file that the sentences come from, else a
        blank.
    """
    write_text(path, column_texts(sentences, *extra, delimiter=delimiter))


def column_texts(sentences: Sentences, *extra: Sequence[Sequence[Any]], delimiter: str | None = None) -> Iterator[str]:
    """What ``write_columns`` writes, sentence by sentence.

    Parameters
    ----------
    sentences, *extra, delimiter
        As in ``write_columns``.
    """
    delimiter = sentences.delimiter if delimiter is None else delimiter
    _checked(delimiter)
    own = [*sentences.columns, *([] if sentences.label is None else [sentences.label])]
    columns = own + [_extra_column(values, sentences.lengths) for values in extra]
    empty = np.flatnonzero(sentences.lengths == 0)
    if empty.size:
        raise ValueError(f"sentence {empty[0]} is empty, which a column file cannot say; leave it out")
    for k, column in enumerate(columns):
        _check_values(column, k, delimiter)
    return _lines(columns, sentences.offsets, delimiter)


def _without_documents(content: bytes, document: str | None, delimiter: str | None) -> bytes:
    if document is None or document.encode() not in content:  # looking for it at every line takes longer
        return content
    ends = rb"[ \t\r\f\v\n]" if delimiter is None else rb"[\r\n]|" + re.escape(delimiter.encode())
    before = rb"[ \t\r\f\v]*" if delimiter is None else b""
    mark = rb"^" + before + re.escape(document.encode()) + rb"(?=" + ends + rb"|\Z)[^\n]*"
    return re.sub(mark, b"", content, flags=re.MULTILINE)


def _table(content: bytes, path: Source) -> Table:
    """Fields between tabs if all lines have the same number of them, else between any number of blanks."""
    letters = np.frombuffer(b"\n" + content, dtype=np.uint8)
    blank, newlines = BLANK[letters], np.flatnonzero(letters == NEWLINE)
    starts = np.flatnonzero(blank[:-1] & ~blank[1:]) + 1
    counts = np.bincount(np.searchsorted(newlines, starts))
    lines = np.flatnonzero(counts)
    tabs = np.bincount(np.searchsorted(newlines, np.flatnonzero(letters == TAB)), minlength=len(counts))[lines]
    table = Table(lines, counts[lines], _Cut(content), "\t" if len(tabs) and tabs.all() else " ")
    if np.array_equal(table.widths, tabs + 1) or not tabs.any():
        return table
    return _between_tabs(table, tabs, content, path)


def _between_tabs(table: Table, tabs: np.ndarray, content: bytes, path: Source) -> Table:
    """Fields that may hold blanks; the table of blanks if these are what separates columns."""
    counts = np.bincount(tabs)
    usual = int(tabs[0] if counts[tabs[0]] == counts.max() else counts.argmax())
    other = np.flatnonzero(tabs != usual)
    if not other.size and usual:
        found = _delimited(BLANK_LINE.sub(b"", content), "\t")
        fields = [field.strip(BLANKS.encode()) for field in chain.from_iterable(found.fields)]
        return found._replace(fields=[fields]) if all(fields) else table
    if usual and len(np.unique(table.widths)) > 1:
        what = f"expected {usual + 1} columns between tabs as in other lines, found {tabs[other[0]] + 1}"
        remedy = "put a tab between columns in every line, or blanks alone everywhere"
        raise DataFileError.at(path, int(table.lines[other[0]]), f"{what}; {remedy}")
    return table


def _delimited(content: bytes, delimiter: str) -> Table:
    """Fields between single delimiters; a line of blanks alone is empty."""
    sign = _checked(delimiter)
    numbered_lines = enumerate(content.replace(b"\r\n", b"\n").split(b"\n"), start=1)
    kept = [(number, line) for number, line in numbered_lines if line.strip() or sign in line]
    widths = [line.count(sign) + 1 for _, line in kept]
    fields = sign.join(line for _, line in kept).split(sign)
    lines = np.array([number for number, _ in kept], dtype=np.int64)
    return Table(lines, np.array(widths, dtype=np.int64), [fields], delimiter)


def _width(table: Table, path: Source, labelled: bool, delimiter: str | None) -> int:
    """How many columns all lines have."""
    width = int(table.widths[0])
    if width < 1 + labelled:
        between = "" if delimiter is None else f" with {delimiter!r} between them"
        what = f"a token needs at least two columns{between}: the word first and the label last"
        raise DataFileError.at(path, int(table.lines[0]), what)
    bad = np.flatnonzero(table.widths != width)
    if bad.size:
        what = f"expected {width} columns as in the lines before, found {table.widths[bad[0]]}"
        if table.delimiter == " ":
            what += r"; a column may hold blanks if tabs separate them all (delimiter '\t')"
        raise DataFileError.at(path, int(table.lines[bad[0]]), what)
    return width


class _Cut:
    """The fields of a text between blanks, some lines at a time."""

    def __init__(self, content: bytes):
        self.content = content

    def __iter__(self) -> Iterator[list[bytes]]:
        begin = 0
        while begin < len(self.content):
            end = self.content.find(b"\n", begin + SIZE) + 1 or len(self.content)
            yield self.content[begin:end].split()
            begin = end


def _columns(pieces: Iterable[list[bytes]], width: int) -> list[Column]:
    growing = [GrowingColumn() for _ in range(width)]
    for fields in pieces:
        for k, column in enumerate(growing):
            column.add(fields[k::width], len(fields) // width)
    return [column.column(bytes.decode) for column in growing]


def _check_filled(columns: list[Column], lines: np.ndarray, path: Source) -> None:
    """Refuse empty fields, the first one first."""
    empty = []
    for k, column in enumerate(columns):
        blank = np.array([not value.strip(BLANKS) for value in column.values])
        empty += [(int(lines[t]), k) for t in np.flatnonzero(blank[column.codes])[:1]]
    if empty:
        line, k = min(empty)
        raise DataFileError.at(path, line, f"column {k + 1} is empty; write a sign such as _ where there is no value")


def _checked(delimiter: str) -> bytes:
    if len(delimiter) != 1 or delimiter in "\r\n":
        raise ValueError(f"the delimiter must be one character such as a tab or a comma, got {delimiter!r}")
    return delimiter.encode()


def _extra_column(values: Sequence[Sequence[Any]], lengths: np.ndarray) -> Column:
    """A further column, as long as the sentences are."""
    if len(values) != len(lengths):
        raise ValueError(f"there are {len(lengths)} sentences but {len(values)} lists of further values")
    found = np.fromiter(map(len, values), np.int64, len(values))
    wrong = np.flatnonzero(found != lengths)
    if wrong.size:
        i = wrong[0]
        raise ValueError(f"sentence {i} has {lengths[i]} tokens but {found[i]} further values")
    return Column.of((str(value) for sentence in values for value in sentence), int(lengths.sum()))


def _check_values(column: Column, k: int, delimiter: str) -> None:
    """Refuse values that would be read as something else."""
    forbidden = set(BLANKS) if delimiter == " " else {delimiter, "\r", "\n"}
    for value in column.values:
        if not value.strip(BLANKS) or forbidden & set(value):
            remedy = 'empty values are not allowed, and blanks only with delimiter="\\t"'
            raise ValueError(f"column {k} has the value {value!r}, which cannot be read again; {remedy}")


def _lines(columns: Iterable[Column], offsets: np.ndarray, delimiter: str) -> Iterator[str]:
    rows = list(map(delimiter.join, zip(*(column.strings() for column in columns), strict=True)))
    for low, high in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        yield "\n".join(rows[low:high]) + "\n\n"
