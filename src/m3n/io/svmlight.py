"""The formats of SVM-light's family, plain or gzipped: numbered features, in ascending order, and perhaps a comment.

SVM-hmm has one token per line: its label, the number of its sequence, its features. Features are numbered from 1, and
the lines of a sequence follow one another:

    2 qid:1 1:0.5 7:1 # The

Files with sets of labels, as LIBSVM and scikit-learn (``load_svmlight_file(multilabel=True)``) have them, have one
example per line: its labels between commas, or none, and its features, numbered from 0 or from 1:

    3,5 1:0.5 7:1
"""

from __future__ import annotations

import math
import os
import re
from array import array
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from m3n.io.files import DataFileError, Source, check_lengths, hold, reading, text_of, write_text
from m3n.io.matrices import csr

SEQUENCE = "qid:"
LARGEST = 2**31 - 1  # the numbers of columns are 32-bit integers
ZERO = re.compile(rb"^[^#\n]*(?<!\S)0:", re.MULTILINE)  # a feature with this number, outside of comments


def read_svm_hmm(path: Source, *, width: int | None = None) -> tuple[list[scipy.sparse.csr_array], list[list[str]]]:
    """Read a file of SVM-hmm: for every sequence a matrix with a row per token, and its labels.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    width : int, optional
        How many features the matrices have, for instance as many as in training; larger numbers in the file are left
        out. The default is the largest number in the file.
    """
    labels, starts, finished, last = list[str](), list[int](), set[str](), ""
    rows = _Rows()
    with reading(path) as lines:
        for label, sequence, *features in filter(None, map(_fields, lines)):
            if sequence != last:
                if sequence in finished:
                    goes_on = f"the sequence {sequence} goes on here after others have come between"
                    raise ValueError(f"{goes_on}; put its lines together")
                starts.append(len(labels))
                finished.add(sequence)
            last = sequence
            labels.append(label)
            rows.append(features)
    if not labels:
        raise DataFileError.empty(path, "token")
    matrix = rows.matrix(width)
    ends = [*starts[1:], len(labels)]
    pairs = list(zip(starts, ends, strict=True))
    return [matrix[low:high] for low, high in pairs], [labels[low:high] for low, high in pairs]


def read_label_sets(
    path: Source, *, width: int | None = None, labels: Collection[Any] | None = None, first: int | None = None
) -> tuple[scipy.sparse.csr_array, list[list[Any]] | None]:
    """Read sets of labels: a matrix with a row per example, and its labels, or None if no example has any.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    width : int, optional
        How many features the matrix has, for instance as many as in training; larger numbers are an error. The default
        is the largest number in the file.
    labels : collection, optional
        The labels that may occur; others are an error. The default is all, as whole numbers if all of them are, else as
        texts.
    first : {0, 1}, optional
        The number of the first feature. The default is 0 if a feature has this number, else 1, as scikit-learn has it.
    """
    source, y = hold(path), list[list[str]]()
    if first is None:
        first = 0 if ZERO.search(text_of(source)) else 1
    known = None if labels is None else {label_text(label): label for label in labels}
    rows = _Rows(first, LARGEST if width is None else width + first - 1)
    with reading(source) as lines:
        for fields in filter(None, (text.partition("#")[0].split() for text in lines)):
            named = [] if ":" in fields[0] else fields.pop(0).split(",")
            unknown = [label for label in named if known is not None and label not in known]
            if unknown:
                raise ValueError(f"the label {unknown[0]!r} is not known; there are {', '.join(known or ()):.300}")
            y.append(named)
            rows.append(fields)
    if not y:
        raise DataFileError.empty(path, "example")
    if known is None:
        known = {label: label for named in y for label in named}
        known = {label: int(label) for label in known} if all(map(str.isdecimal, known)) else known
    return rows.matrix(width), [[known[label] for label in named] for named in y] if any(y) else None


def label_text(label: Any) -> str:
    """A label as files have it: whole numbers without a point, whatever their type.

    Parameters
    ----------
    label : str or number
        The label.
    """
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def write_svm_hmm(path: str | os.PathLike[str], X: Sequence[Any], y: Sequence[Sequence[Any]]) -> None:
    """Write sequences in the format of SVM-hmm, which itself wants labels that are numbers from 1.

    Parameters
    ----------
    path : path
        Where to; packed by gzip if the name ends in ``.gz``. ``-`` is standard output.
    X : sequence of arrays or sparse matrices
        One per sequence, with a row per token; all have the same width. Zeros are not written.
    y : sequences of labels
        The labels.
    """
    check_lengths(X, y)
    matrices = [scipy.sparse.csr_array(x, dtype=np.float64, copy=True) for x in X]
    if len({matrix.shape[1] for matrix in matrices}) > 1:
        raise ValueError("all sequences of X must have the same number of features")
    write_text(path, _lines(matrices, y))


class _Rows:
    """Features of all lines, growing; their numbers begin and end with these."""

    def __init__(self, first: int = 1, last: int = LARGEST) -> None:
        self.first, self.last = first, last
        self.columns, self.values, self.ends = array("i"), array("d"), array("q", [0])

    def append(self, features: list[str]) -> None:
        """One more row."""
        first, last = self.first, self.last
        before = first - 1
        for feature in features:
            name, _, text = feature.partition(":")
            try:
                column, value = int(name), float(text)
            except ValueError:
                column, value = first, math.nan
            if not (first <= column <= last and math.isfinite(value)):
                if last < column <= LARGEST and math.isfinite(value):
                    remedy = "number features as in training, from 0 or from 1"
                    raise ValueError(f"feature {column} is not one of {first} to {last}; {remedy}")
                wanted = f"a feature must be NUMBER:VALUE with a number from {first} and a finite value"
                raise ValueError(f"{wanted}, got {feature!r}")
            if column <= before:
                raise ValueError(f"feature {column} comes after feature {before}; features must be in ascending order")
            before = column
            self.columns.append(column - first)
            self.values.append(value)
        self.ends.append(len(self.columns))

    def matrix(self, width: int | None) -> scipy.sparse.csr_array:
        """All rows, with so many columns."""
        return csr(np.array(self.values), np.array(self.columns), np.array(self.ends), width)


def _fields(text: str) -> list[str]:
    """Label, sequence and features of a line; nothing if it is empty but for a comment."""
    content = text.partition("#")[0].split()
    if not content:
        return content
    if len(content) < 2 or not content[1].startswith(SEQUENCE) or not content[1][len(SEQUENCE) :].isdecimal():
        raise ValueError(f"expected a label, the sequence as {SEQUENCE}NUMBER, then NUMBER:VALUE for every feature")
    return content


def _lines(matrices: list[scipy.sparse.csr_array], y: Sequence[Sequence[Any]]) -> Iterator[str]:
    for i, (matrix, labels) in enumerate(zip(matrices, y, strict=True)):
        matrix.sum_duplicates()  # also sorts the columns
        matrix.eliminate_zeros()
        if not np.isfinite(matrix.data).all():
            raise ValueError(f"sequence {i}: X has a value that is not finite")
        for t, label in enumerate(map(str, labels)):
            if len(label.split()) != 1 or label != label.strip() or "#" in label:
                raise ValueError(f"sequence {i}, position {t}: the format cannot hold the label {label!r}; rename it")
            own = slice(matrix.indptr[t], matrix.indptr[t + 1])
            pairs = zip((matrix.indices[own] + 1).tolist(), matrix.data[own].tolist(), strict=True)
            yield " ".join([label, f"{SEQUENCE}{i + 1}", *(f"{k}:{value!r}" for k, value in pairs)]) + "\n"
