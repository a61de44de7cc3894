"""Reading a data file whatever its format is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from m3n.io import letters
from m3n.io.attributes import read_attributes
from m3n.io.columns import DOCUMENT, read_columns
from m3n.io.detection import Found, recognise
from m3n.io.files import DataFileError, Source, hold, name_of
from m3n.io.json_lines import read_json_lines
from m3n.io.letters import read_letters
from m3n.io.svmlight import read_svm_hmm

FORMATS = ("columns", "letters", "attributes", "svm_hmm", "json_lines")
# what holds no labels of tokens: how it is called, who learns from it, and what else can be done with it
OTHERS = {
    "conllu": "CoNLL-U, dependency trees: m3n.io.read_conllu reads it for a DependencyParser (m3n train --task "
    "dependencies); to tag words, take out comments and name columns and label (--format columns --label 3)",
    "brackets": "trees in brackets: m3n.io.read_brackets reads them for a ConstituencyParser (m3n train "
    "--task phrases)",
    "parallel": "sentence pairs: m3n.io.read_parallel reads them for a WordAligner, if they have links (m3n train "
    "--task alignments), or for an HMMAligner (m3n align)",
}


@dataclass(frozen=True)
class Data:
    """Examples of a file.

    Attributes
    ----------
    X : Sentences or list
        The inputs: Sentences of a column file, lists of dicts of CRFsuite's attributes, sparse matrices of SVM-hmm,
        arrays of pixels of ``letter.data``, and of JSON lines the tokens as they are.
    y : list or None
        The labels, lists of them, or other outputs, if there are any.
    format : str
        Which format it was.
    weights : list of float or None
        How often every sequence counts, if the file says it: ``@weight:2`` of CRFsuite's attributes.
    why : str
        What the format was recognised by, in words; empty if it was named.
    """

    X: Any
    y: list[Any] | None
    format: str
    weights: list[float] | None = None
    why: str = ""


def read_sequences(
    path: Source,
    format: str | None = None,
    *,
    labelled: bool = True,
    delimiter: str | None = None,
    label: int = -1,
    document: str | None = DOCUMENT,
    width: int | None = None,
    expected: str | None = None,
) -> Data:
    """Read a data file in any format.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    format : {"columns", "letters", "attributes", "svm_hmm", "json_lines"}, optional
        The format; the default is to look at the beginning of the file. A file that can be read in two ways is an
        error.
    labelled : bool
        Whether a column file has labels. The other formats say it themselves.
    delimiter, label, document
        Settings of column files: see ``read_columns``.
    width : int, optional
        How many features an SVM-hmm file has, for one that may lack the last ones: see ``read_svm_hmm``.
    expected : {"columns", "attributes"}, optional
        What a file is taken for that may be either.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; choose one of {', '.join(FORMATS)}")
    if delimiter is not None:
        format = format or "columns"  # no other format has one
    source, found = path, Found(format or "", "")
    if format is None:
        source = hold(path)
        found = recognise(source, labelled, expected if label == -1 else "columns")
    if found.format in OTHERS:
        raise DataFileError(f"{name_of(source)} holds no labels of sequences: it is {OTHERS[found.format]}")
    return replace(_read(source, found.format, labelled, delimiter, label, document, width), why=found.why)


def _read(
    source: Source,
    kind: str,
    labelled: bool,
    delimiter: str | None,
    label: int,
    document: str | None,
    width: int | None,
) -> Data:
    """A file of a format that is known."""
    if kind == "columns":
        sentences = read_columns(source, labelled, delimiter=delimiter, label=label, document=document)
        return Data(sentences, sentences.labels if labelled else None, kind)
    if kind == "svm_hmm":
        return Data(*read_svm_hmm(source, width=width), kind)
    if kind == "attributes":
        X, y, weights = read_attributes(source, weights=True)
        return Data(X, y, kind, weights)
    return Data(*READERS[kind](source), kind)


def detect(path: Source, labelled: bool = True) -> str:
    """Name the format of a file: one of ``read_sequences``, or "conllu", "brackets" or "parallel".

    Parameters
    ----------
    path : path
        The file; not standard input, which can be read only once.
    labelled : bool
        Whether a column file must have labels, that is at least two columns.
    """
    return recognise(path, labelled).format


def _letters(path: Source) -> tuple[list[np.ndarray], list[list[str]]]:
    """The pixels of every word, and its letters."""
    read = read_letters(path)
    return np.split(read.pixels, read.offsets[1:-1]), [[letters.ALPHABET[k] for k in word] for word in read.words]


READERS: dict[str, Callable[[Source], tuple[Any, Any]]] = {
    "letters": _letters,
    "json_lines": read_json_lines,
}
