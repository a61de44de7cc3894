"""In which line of a data file a position of a sequence stands, for messages about what was read long before.

The lines that hold something are counted again: a token per line, or in JSON lines a sequence. Nothing is kept while
files are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized

from m3n.io.columns import DOCUMENT
from m3n.io.files import Source, lines_of, name_of


def place_of(path: Source, format: str, y: Sequence[Sized], sequence: int, position: int) -> str:
    """File, line, sequence and position, in words.

    Parameters
    ----------
    path : path
        The file; what can be read only once must be held.
    format : str
        The format that it was read as.
    y : sequences of labels
        What was read.
    sequence, position : int
        The place.
    """
    count = sequence if format == "json_lines" else sum(map(len, y[:sequence])) + position
    lines = (number for k, number in enumerate(_counted(path, format)) if k == count)
    return f"{name_of(path)}, line {next(lines)} (sequence {sequence}, position {position}, counted from 0)"


def _counted(path: Source, format: str) -> Iterator[int]:
    """The numbers of the lines with tokens."""
    for number, text in lines_of(path):
        mark = format == "columns" and text.split()[:1] == [DOCUMENT]
        declaration = text.startswith("@") and "\t" not in text and format == "attributes"
        comment = text.startswith("#") and format == "svm_hmm" and "qid:" not in text
        if text.strip() and not (mark or declaration or comment):
            yield number
