"""Which of the known formats a data file has, judged by its first line."""

from __future__ import annotations

import os

from m3n.io import letters
from m3n.io.files import DataFileError, lines_of

CONLL_U_COLUMNS = 10


def detect(path: str | os.PathLike[str]) -> str:
    """Name the format of a file: "letters" or "columns".

    Parameters
    ----------
    path : path
        The file.
    """
    for number, text in lines_of(path):
        if not text.strip():
            continue
        if len(text.rstrip("\t").split("\t")) == letters.COLUMNS:
            return "letters"
        if _is_conll_u(text):
            what = "this looks like CoNLL-U, whose last column is no label; write a file with the word and the label"
            raise DataFileError.at(path, number, what)
        if len(text.split()) < 2:
            what = "neither letter.data (134 columns between tabs) nor a column file (word, ..., label between spaces)"
            raise DataFileError.at(path, number, what)
        return "columns"
    raise DataFileError(f"{os.fspath(path)} is empty")


def _is_conll_u(text: str) -> bool:
    """A comment such as ``# sent_id = 1``, or the first word of a sentence in ten columns."""
    fields = text.split("\t")
    return (text.startswith("# ") and " = " in text) or (len(fields) == CONLL_U_COLUMNS and fields[0] == "1")
