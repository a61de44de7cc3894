"""Data frames of pandas with one row per token: a column says to which sentence it belongs, one may be the label."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from m3n.io.sentences import Column, Sentences


def from_frame(
    frame: Any, columns: Sequence[Hashable] | None = None, *, sentence: Hashable, label: Hashable | None = None
) -> Sentences:
    """Sentences from a data frame.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row per token, in the order of the text.
    columns : sequence of str, optional
        The columns of the tokens. The default is all but those of the sentence and the label.
    sentence : str
        The column that says to which sentence a token belongs: a new one begins wherever its value changes.
    label : str, optional
        The column of the labels, if there is one.
    """
    named = [sentence] if label is None else [sentence, label]
    chosen = [name for name in frame.columns if name not in named] if columns is None else list(columns)
    for name in [*named, *chosen]:
        if name not in frame.columns:
            raise ValueError(f"the frame has no column {name!r}; its columns are {list(frame.columns)}")
    if not chosen:
        raise ValueError("no column is left for the tokens; there must be at least one beside sentence and label")
    if not len(frame):
        raise ValueError("the frame is empty: there is no token in it")
    codes = _column(frame, sentence).codes
    offsets = np.flatnonzero(np.diff(codes, prepend=-1, append=-1))
    labels = None if label is None else _column(frame, label)
    return Sentences([_column(frame, name) for name in chosen], offsets, labels)


def to_frame(sentences: Sentences, columns: Sequence[str] | None = None) -> Any:
    """A data frame with one row per token: the number of its sentence, its columns, and its label if there is one.

    Parameters
    ----------
    sentences : Sentences
        The tokens.
    columns : sequence of str, optional
        Names for the columns. The default is ``column_0``, ``column_1``, ...
    """
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError("to_frame needs pandas; install it with: pip install pandas") from None
    names = [f"column_{k}" for k in range(len(sentences.columns))] if columns is None else list(columns)
    if len(names) != len(sentences.columns):
        raise ValueError(f"there are {len(sentences.columns)} columns but {len(names)} names")
    content: dict[str, Any] = {"sentence": np.repeat(np.arange(len(sentences)), sentences.lengths)}
    content |= {name: column.strings() for name, column in zip(names, sentences.columns, strict=True)}
    if sentences.label is not None:
        content["label"] = sentences.label.strings()
    if len(content) < 1 + len(names) + (sentences.label is not None):
        raise ValueError(f"the names {names} must differ from one another, from 'sentence' and from 'label'")
    return pandas.DataFrame(content)


def _column(frame: Any, name: Hashable) -> Column:
    """A column as texts; a missing value is an error."""
    values = frame[name]
    missing = np.flatnonzero(values.isna().to_numpy())
    if missing.size:
        remedy = "fill it or drop the row; read_csv(..., keep_default_na=False) keeps words such as NA and null"
        raise ValueError(f"row {missing[0]} (counted from 0) has no value in column {name!r}; {remedy}")
    return Column.of(map(str, values.tolist()), len(values))
