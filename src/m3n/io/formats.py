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

CONLL_U = re.compile(r"\d+([-.]\d+)?(\t[^\t]*){9}")  # a word, a multiword token or an empty node
COMMENT = re.compile(r"# *\S.* = ")  # such as ``# sent_id = 1``
TREE = re.compile(r"\s*(\(\s*\([^\s()]|\([^\s()]+\s*(\(|[^\s()]+\s*\)|$))")  # how a tree begins; a word ( has a label
PARALLEL = re.compile(r"\s*\S.*\s\|\|\|\s+\S")  # words of a sentence, and of its translation
SVM_HMM = re.compile(r"\S+\s+qid:\d+(\s|$)")
ATTRIBUTE = re.compile(r".+=.*|.+[^\\]:[-+.\deE]+")
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
    """

    X: Any
    y: list[Any] | None
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
    if kind in OTHERS:
        raise DataFileError(f"{name_of(source)} holds no labels of sequences: it is {OTHERS[kind]}")
    if kind == "columns":
        sentences = read_columns(source, labelled, delimiter=delimiter, label=label, document=document)
        return Data(sentences, sentences.labels if labelled else None, kind)
    if kind == "svm_hmm":
        return Data(*read_svm_hmm(source, width=width), kind)
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
    if not isinstance(path, Held) and os.fspath(path) == STANDARD:
        raise ValueError("standard input can be read only once; name its format")
    first, body = _beginning(path)
    if first is None:
        raise DataFileError(f"{name_of(path)} is empty")
    if SVM_HMM.match(body):
        return "svm_hmm"
    number, text = first
    if len(text.rstrip("\t").split("\t")) == letters.COLUMNS:
        return "letters"
    if _is_json(text):
        return "json_lines"
    if COMMENT.match(text) or CONLL_U.fullmatch(body):
        return "conllu"
    if PARALLEL.match(text):
        return "parallel"
    if TREE.match(text) or (labelled and text.strip() == "("):
        return "brackets"
    if _are_attributes(text):
        return "attributes"
    if len(text.split()) < 1 + labelled:
        what = "neither letter.data (134 columns between tabs) nor a column file (word, ..., label between spaces)"
        raise DataFileError.at(path, number, f"{what}, nor CRFsuite's attributes, SVM-hmm, JSON lines, trees or pairs")
    return "columns"


def _beginning(path: Source) -> tuple[tuple[int, str] | None, str]:
    """The first line that is not empty, with its number, and the first of these that is no comment, if there is one."""
    first = None
    for number, text in lines_of(path):
        if not text.strip():
            continue
        first = first or (number, text)
        if SVM_HMM.match(text) or not text.startswith("#"):  # a label of SVM-hmm and a word may begin so, too
            return first, text
    return first, ""


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
