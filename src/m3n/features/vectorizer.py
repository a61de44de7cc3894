"""From tokens described by words to sparse rows.

A token is a dict or a collection of strings:

    {"word": "Paris", "capital": True, "length": 5.0}    or    ["word=Paris", "capital"]

A string value makes one attribute per (name, value) with weight 1, a number keeps its value as the weight, True counts
as 1, False and None as nothing. Attribute numbers are given in order of appearance by one dictionary look-up per
attribute, driven from C where the token is a list of strings or has only string values.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse

Attribute = str | tuple[str, str]
UNSEEN = -1


class AttributeVectorizer:
    """Numbers attributes at ``fit``, ignores unseen ones at ``transform``.

    Attributes
    ----------
    vocabulary : dict
        From an attribute (a string, or a pair of name and value) to its column.
    """

    def __init__(self) -> None:
        self.vocabulary: dict[Attribute, int] = {}

    @property
    def names(self) -> list[str]:
        """The attributes as text, column by column; a pair reads ``name=value``."""
        return [a if isinstance(a, str) else "=".join(a) for a in self.vocabulary]

    def fit_transform(self, sequences: Sequence[Sequence[Any]]) -> scipy.sparse.csr_array:
        """Learn the vocabulary and return one row per token of all sequences."""
        growing: defaultdict[Attribute, int] = defaultdict()
        growing.default_factory = growing.__len__
        matrix = _rows(sequences, partial(map, growing.__getitem__), None)
        self.vocabulary = dict(growing)
        return matrix

    def transform(self, sequences: Sequence[Sequence[Any]]) -> scipy.sparse.csr_array:
        """One row per token of all sequences; attributes that ``fit_transform`` did not see are left out."""
        get = self.vocabulary.get
        return _rows(sequences, lambda attributes: map(get, attributes, repeat(UNSEEN)), len(self.vocabulary))


Numbering = Callable[[Iterable[Attribute]], Iterable[int]]


def _rows(sequences: Sequence[Sequence[Any]], number: Numbering, width: int | None) -> scipy.sparse.csr_array:
    columns: list[int] = []
    weights: dict[int, float] = {}  # position in ``columns`` -> weight, where it is not 1
    ends: list[int] = [0]
    for i, sequence in enumerate(sequences):
        for t, token in enumerate(sequence):
            try:
                _append(token, number, columns, weights)
            except (TypeError, ValueError) as error:
                raise type(error)(f"sequence {i}, position {t}: {error}") from None
            ends.append(len(columns))
    return _matrix(np.array(columns, dtype=np.int64), weights, np.array(ends), width)


def _append(token: Any, number: Numbering, columns: list[int], weights: dict[int, float]) -> None:
    if isinstance(token, Mapping):
        if _all_strings(token):
            if _all_strings(token.values()):
                columns.extend(number(token.items()))
            else:
                _append_mixed(token, number, columns, weights)
            return
    elif not isinstance(token, str) and isinstance(token, Collection) and _all_strings(token):
        columns.extend(number(token))
        return
    raise TypeError(f"a token must be a dict with string keys or a list of strings, got {token!r:.100}")


def _append_mixed(token: Mapping[str, Any], number: Numbering, columns: list[int], weights: dict[int, float]) -> None:
    for name, value in token.items():
        if isinstance(value, str):
            columns.extend(number([(name, value)]))
        elif value is None or isinstance(value, (bool, np.bool_)):
            columns.extend(number([name] if value else []))
        elif isinstance(value, (int, float, np.integer, np.floating)):
            if not math.isfinite(value):
                raise ValueError(f"attribute {name!r} has the value {value}")
            weights[len(columns)] = float(value)
            columns.extend(number([name]))
        else:
            raise TypeError(f"attribute {name!r} must be a string, a number or a bool, got {value!r:.100}")


def _all_strings(values: Iterable[Any]) -> bool:
    return all(issubclass(kind, str) for kind in set(map(type, values)))


def _matrix(
    columns: np.ndarray, weights: dict[int, float], ends: np.ndarray, width: int | None
) -> scipy.sparse.csr_array:
    data = np.ones(len(columns))
    if weights:
        data[np.fromiter(weights, np.int64)] = np.fromiter(weights.values(), float)
    if width is not None and len(columns):
        known = columns != UNSEEN
        ends = np.concatenate([[0], np.cumsum(known)])[ends]
        columns, data = columns[known], data[known]
    shape = (len(ends) - 1, int(columns.max(initial=-1)) + 1 if width is None else width)
    matrix = scipy.sparse.csr_array((data, columns, ends), shape=shape)
    matrix.sum_duplicates()  # an attribute named twice in a token counts twice
    return matrix
