"""Which of the known formats a data file has, judged by its first lines, and why.

Most formats show in one line. Column files and CRFsuite's attributes do not: both have a token per line, one with the
label last, the other with the label first, and any text may be a word or the name of an attribute. So many lines are
looked at. Attributes look like ``name=value`` or ``name:0.5``, come in different numbers, or have CRFsuite's marks
``__BOS__`` and ``__EOS__``; columns come in one number. Where both can be meant, the reader must be named.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from m3n.io import letters
from m3n.io.columns import DOCUMENT
from m3n.io.files import STANDARD, DataFileError, Held, Source, lines_of, name_of

LINES = 1000  # that are looked at
CONLL_U = re.compile(r"\d+([-.]\d+)?(\t[^\t]*){9}")  # a word, a multiword token or an empty node
COMMENT = re.compile(r"# *\S.* = ")  # such as ``# sent_id = 1``
TREE = re.compile(r"\s*(\(\s*\([^\s()]|\([^\s()]+\s*(\(|[^\s()]+\s*\)|$))")  # how a tree begins; a word ( has a label
PARALLEL = re.compile(r"\s*\S.*\s\|\|\|\s+\S")  # words of a sentence, and of its translation
SVM_HMM = re.compile(r"\S+\s+qid:\d+(\s|$)")
NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
ATTRIBUTE = re.compile(rf".+=.*|(\\.|[^:\\])+:{NUMBER}", re.DOTALL)
WEIGHT = re.compile(rf"@weight:{NUMBER}(\t.*)?")
MARKS = frozenset(["__BOS__", "__EOS__"])
CHUNK = re.compile(r"[BIOESLUMW]|[BIESLUMW]-.+")  # a label of a scheme of chunks
Lines = Sequence[tuple[int, str]]


@dataclass(frozen=True)
class Found:
    """What a file is taken for.

    Attributes
    ----------
    format : str
        The name of the format.
    why : str
        What it was recognised by, in words.
    """

    format: str
    why: str


def recognise(path: Source, labelled: bool = True, kind: str | None = None) -> Found:
    """The format of a file, and why it is that.

    Parameters
    ----------
    path : path
        The file; not standard input, which can be read only once.
    labelled : bool
        Whether a column file must have labels, that is at least two columns.
    kind : {"columns", "attributes"}, optional
        What to take it for if it may be either; the default is to ask.
    """
    if not isinstance(path, Held) and os.fspath(path) == STANDARD:
        raise ValueError("standard input can be read only once; name its format")
    lines = _beginning(path)
    if not lines:
        raise DataFileError(f"{name_of(path)} is empty")
    single = _by_one_line(lines, labelled)
    if single is not None:
        return single
    number, text = lines[0]
    tabbed = [line.split("\t") for _, line in lines if not line.startswith(DOCUMENT)]
    if any(len(fields) > 1 for fields in tabbed):
        return _columns_or_attributes(path, [(n, t) for n, t in lines if not t.startswith(DOCUMENT)], kind)
    if len(text.split()) < 1 + labelled:
        what = "neither letter.data (134 columns between tabs) nor a column file (word, ..., label between spaces)"
        raise DataFileError.at(path, number, f"{what}, nor CRFsuite's attributes, SVM-hmm, JSON lines, trees or pairs")
    return Found("columns", "words between blanks")


def _beginning(path: Source) -> list[tuple[int, str]]:
    """The first lines that are not empty, with their numbers."""
    found = list[tuple[int, str]]()
    for number, text in lines_of(path):
        if text.strip():
            found.append((number, text))
        if len(found) == LINES:
            break
    return found


def _by_one_line(lines: Lines, labelled: bool) -> Found | None:
    """What the first line says, or the first that is no comment."""
    text = lines[0][1]
    # a label of SVM-hmm and a word may begin like a comment, too
    body = next((line for _, line in lines if SVM_HMM.match(line) or not line.startswith("#")), "")
    if SVM_HMM.match(body):
        return Found("svm_hmm", "a label and qid:NUMBER in a line")
    if len(text.rstrip("\t").split("\t")) == letters.COLUMNS:
        return Found("letters", f"{letters.COLUMNS} columns between tabs")
    if _is_json(text):
        return Found("json_lines", "an object of JSON in a line")
    if COMMENT.match(text) or CONLL_U.fullmatch(body):
        return Found("conllu", "ten columns between tabs, or a comment such as # sent_id = 1")
    if PARALLEL.match(text):
        return Found("parallel", "||| between the words of two sentences")
    if TREE.match(text) or (labelled and text.strip() == "("):
        return Found("brackets", "a tree in brackets")
    return None


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return text.startswith(('{"', "{'")) and text.endswith("}")  # its reader says what is wrong


def _columns_or_attributes(path: Source, lines: Lines, kind: str | None) -> Found:
    """One of the two formats with tabs; an error where either can be meant and ``kind`` does not say which."""
    rows = [text.rstrip("\t").split("\t") for _, text in lines if not WEIGHT.fullmatch(text)]
    if len(rows) < len(lines):
        return Found("attributes", "weights of sequences such as @weight:2")
    certain = _certain(rows)
    if certain is not None:
        return certain
    if kind is not None:
        return Found(kind, "that is what the model reads")
    last, first = rows[0][-1], rows[0][0]
    ways = f"columns with the label last ({last!r:.30} in the first line)"
    ways += f", or CRFsuite's attributes with the label first ({first!r:.30})"
    raise DataFileError(
        f"{name_of(path)} can be read in two ways: {ways}; say which by --format columns or --format attributes "
        "(format= in Python)"
    )


def _certain(rows: list[list[str]]) -> Found | None:
    """The format if the rows leave no doubt."""
    widths = sorted({len(row) for row in rows})
    named = [sum(map(bool, map(ATTRIBUTE.fullmatch, row[1:]))) for row in rows]
    with_names = sum(map(bool, named))
    if any(MARKS & set(row[1:]) for row in rows):
        return Found("attributes", "the marks __BOS__ or __EOS__ between tabs")
    if all(count == len(row) - 1 for count, row in zip(named, rows, strict=True)) and with_names:
        return Found("attributes", "a label and nothing but name=value or name:number between tabs")
    if 2 * with_names >= len(rows) and len(widths) > 1:
        return Found(
            "attributes", f"attributes such as name=value, {widths[0] - 1} to {widths[-1] - 1} of them in a line"
        )
    first, last = (all(CHUNK.fullmatch(row[k]) for row in rows) for k in (0, -1))
    if 2 * with_names >= len(rows) and first != last:
        return Found(
            "attributes" if first else "columns", f"labels of chunks in the {'first' if first else 'last'} place"
        )
    if 2 * with_names < len(rows) and (last or not first or widths[0] < 2):
        return Found(
            "columns", f"{_number(widths)} between tabs" if len(widths) == 1 else "words between tabs or blanks"
        )
    return None


def _number(widths: list[int]) -> str:
    return f"{widths[0]} column{'s' * (widths[0] != 1)}"
