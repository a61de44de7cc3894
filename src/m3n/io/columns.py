"""Column files as in the CoNLL shared tasks, plain or gzipped.

One token per line, columns between spaces or tabs, the last one the label; an empty line ends a sentence. Lines that
begin with ``-DOCSTART-`` mark documents; they end a sentence and are left out.

The whole file is taken at once. Where lines and fields begin is found on its bytes as one array, all fields are cut by
a single ``split``, and column k is every width-th of them. No Python code runs per token.
"""

from __future__ import annotations

import os
import re

import numpy as np

from m3n.io.files import DataFileError, text_of
from m3n.io.sentences import Column, Sentences, numbered

DOCUMENT = re.compile(rb"^[ \t\r\f\v]*-DOCSTART-(?![^ \t\r\f\v\n])[^\n]*", flags=re.MULTILINE)
NEWLINE = ord("\n")
BLANK = np.zeros(256, dtype=bool)
BLANK[list(b" \t\n\r\f\v")] = True  # what bytes.split() splits at; a no-break space belongs to its word


def read_columns(path: str | os.PathLike[str], labelled: bool = True) -> Sentences:
    """Read a column file.

    Parameters
    ----------
    path : path
        The file.
    labelled : bool
        Whether the last column is the label; False for a file of tokens that are yet to be labelled.
    """
    content = text_of(path)
    if b"-DOCSTART-" in content:  # most files have none, and looking for it at every line takes longer
        content = DOCUMENT.sub(b"", content)
    lines, widths = _layout(content)
    if not lines.size:
        raise DataFileError(f"{os.fspath(path)} is empty: there is no token in it")
    width = int(widths[0])
    if width < 1 + labelled:
        what = "a token needs at least two columns: the word first and the label last"
        raise DataFileError.at(path, int(lines[0]), what)
    bad = np.flatnonzero(widths != width)
    if bad.size:
        what = f"expected {width} columns as in the lines before, found {widths[bad[0]]}"
        raise DataFileError.at(path, int(lines[bad[0]]), what)
    fields = content.split()
    columns = [_column(fields[k::width], len(lines)) for k in range(width)]
    starts = np.flatnonzero(np.diff(lines, prepend=-1) > 1)  # an empty line, or the file's beginning, comes before
    label = columns.pop() if labelled else None
    return Sentences(columns, np.append(starts, len(lines)), label)


def _layout(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the lines that are not empty, counted from 1, and how many fields each has."""
    letters = np.frombuffer(b"\n" + content, dtype=np.uint8)
    blank = BLANK[letters]
    starts = np.flatnonzero(blank[:-1] & ~blank[1:]) + 1
    line_of_start = np.searchsorted(np.flatnonzero(letters == NEWLINE), starts)
    counts = np.bincount(line_of_start)
    lines = np.flatnonzero(counts)
    return lines, counts[lines]


def _column(fields: list[bytes], count: int) -> Column:
    codes, values = numbered(fields, count)
    return Column([value.decode() for value in values], codes)
