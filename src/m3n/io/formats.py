"""Which of the known formats a data file has, judged by its beginning, and reading it whatever it is."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from m3n.io import letters
from m3n.io.attributes import read_attributes
from m3n.io.columns import DOCUMENT, read_columns
from m3n.io.files import STANDARD, DataFileError, Held, Source, hold, lines_of, name_of
from m3n.io.json_lines import read_json_lines
from m3n.io.letters import read_letters
from m3n.io.svmlight import read_svm_hmm

CONLL_U_COLUMNS = 10
SVM_HMM = re.compile(r"\S+\s+qid:\d+(\s|$)")
ATTRIBUTE = re.compile(r".+=.*|.+[^\\]:[-+.\deE]+")
FORMATS = ("columns", "letters", "attributes", "svm_hmm", "json_lines")


@dataclass(frozen=True)
class Data:
    """Sequences of a file.

    Attributes
    ----------
    X : Sentences or list
        The inputs: Sentences of a column file, lists of dicts of CRFsuite's attributes, sparse matrices of SVM-hmm,
        arrays of pixels of ``letter.data``, and of JSON lines the tokens as they are.
    y : list of lists or None
        The labels, if there are any.
    format : str
        Which format it was.
    """

    X: Any
    y: list[list[Any]] | None
    format: str


def read_sequences(
    path: Source,
    format: str | None = None,
    *,
    labelled: bool = True,
    delimiter: str | None = None,
    label: int = -1,
    document: str | None = DOCUMENT,
    width: int | None = None,
) -> Data:
    """Read a data file in any format.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    format : {"columns", "letters", "attributes", "svm_hmm", "json_lines"}, optional
        The format; the default is to look at the beginning of the file.
    labelled : bool
        Whether a column file has labels. The other formats say it themselves.
    delimiter, label, document
        Settings of column files: see ``read_columns``.
    width : int, optional
        How many features an SVM-hmm file has, for one that may lack the last ones: see ``read_svm_hmm``.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; choose one of {', '.join(FORMATS)}")
    if delimiter is not None:
        format = format or "columns"  # no other format has one
    source = hold(path) if format is None else path
    kind = format or detect(source, labelled)
    if kind == "columns":
        sentences = read_columns(source, labelled, delimiter=delimiter, label=label, document=document)
        return Data(sentences, sentences.labels if labelled else None, kind)
    if kind == "svm_hmm":
        return Data(*read_svm_hmm(source, width=width), kind)
    return Data(*READERS[kind](source), kind)


def detect(path: Source, labelled: bool = True) -> str:
    """Name the format of a file: "letters", "columns", "attributes", "svm_hmm" or "json_lines".

    Parameters
    ----------
    path : path
        The file; not standard input, which can be read only once.
    labelled : bool
        Whether a column file must have labels, that is at least two columns.
    """
    if not isinstance(path, Held) and os.fspath(path) == STANDARD:
        raise ValueError("standard input can be read only once; name its format")
    first = None
    for number, text in lines_of(path):
        if not text.strip():
            continue
        first = first or (number, text)
        if SVM_HMM.match(text):
            return "svm_hmm"
        if not text.startswith("#"):  # SVM-hmm has comments, a column file may have this word
            break
    if first is None:
        raise DataFileError(f"{name_of(path)} is empty")
    number, text = first
    if len(text.rstrip("\t").split("\t")) == letters.COLUMNS:
        return "letters"
    if _is_json(text):
        return "json_lines"
    if _is_conll_u(text):
        what = "this looks like CoNLL-U, whose last column is no label; write a file with the word and the label"
        raise DataFileError.at(path, number, what)
    if _are_attributes(text):
        return "attributes"
    if len(text.split()) < 1 + labelled:
        what = "neither letter.data (134 columns between tabs) nor a column file (word, ..., label between spaces)"
        raise DataFileError.at(path, number, f"{what}, nor CRFsuite's attributes, SVM-hmm or JSON lines")
    return "columns"


def _letters(path: Source) -> tuple[list[np.ndarray], list[list[str]]]:
    """The pixels of every word, and its letters."""
    read = read_letters(path)
    return np.split(read.pixels, read.offsets[1:-1]), [[letters.ALPHABET[k] for k in word] for word in read.words]


READERS: dict[str, Callable[[Source], tuple[Any, Any]]] = {
    "letters": _letters,
    "attributes": read_attributes,
    "json_lines": read_json_lines,
}


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return text.startswith(('{"', "{'")) and text.endswith("}")  # its reader says what is wrong


def _are_attributes(text: str) -> bool:
    """A label and, between tabs, nothing but names with ``=`` or weights."""
    _, *fields = text.split("\t")
    return bool(fields) and all(ATTRIBUTE.fullmatch(field) for field in filter(None, fields))


def _is_conll_u(text: str) -> bool:
    """A comment such as ``# sent_id = 1``, or the first word of a sentence in ten columns."""
    fields = text.split("\t")
    return (text.startswith("# ") and " = " in text) or (len(fields) == CONLL_U_COLUMNS and fields[0] == "1")
