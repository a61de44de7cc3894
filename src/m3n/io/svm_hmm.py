"""The format of SVM-hmm, plain or gzipped.

One token per line: its label, the number of its sequence, its features and perhaps a comment:

    2 qid:1 1:0.5 7:1 # The

Features are numbered from 1, in ascending order. The lines of a sequence follow one another.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from m3n.io.files import DataFileError, Source, reading, write_text
from m3n.io.lengths import check_lengths
from m3n.io.matrices import csr

SEQUENCE = "qid:"
LARGEST = 2**31 - 1  # the numbers of columns are 32-bit integers


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
    matrix = csr(np.array(rows.values), np.array(rows.columns), np.array(rows.ends), width)
    ends = [*starts[1:], len(labels)]
    pairs = list(zip(starts, ends, strict=True))
    return [matrix[low:high] for low, high in pairs], [labels[low:high] for low, high in pairs]


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
    """Features of all tokens, growing."""

    def __init__(self) -> None:
        self.columns, self.values, self.ends = array("i"), array("d"), array("q", [0])

    def append(self, features: list[str]) -> None:
        """One more row."""
        before = 0
        for feature in features:
            name, _, text = feature.partition(":")
            try:
                column, value = int(name), float(text)
            except ValueError:
                column, value = 0, math.nan
            if not (0 < column <= LARGEST and math.isfinite(value)):
                wanted = "a feature must be NUMBER:VALUE with a number from 1 and a finite value"
                raise ValueError(f"{wanted}, got {feature!r}")
            if column <= before:
                raise ValueError(f"feature {column} comes after feature {before}; features must be in ascending order")
            before = column
            self.columns.append(column - 1)
            self.values.append(value)
        self.ends.append(len(self.columns))


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
