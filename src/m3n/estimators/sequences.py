"""What people pass as sequences: lists of tokens, words, data frames.

    words        with templates, a text stands for a token with one column
    data frames  one per sequence and a row per token: its columns are attributes, numbers stay numbers; with templates
                 they are columns of texts. One frame with a column ``sentence`` holds all sequences.

Empty sequences may stand among them; tokens in columns come without, and the lengths, 0, tell where they were.

What has no length, an iterator for example, is read once and block by block; sequences are let go of as soon as they
are numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

from m3n.features import Templates
from m3n.io.sentences import Sentences

MOST_POSITIONS, MOST_SEQUENCES = 1 << 12, 1 << 9  # of a block; larger ones are not faster
SENTENCE = "sentence"  # the column of a data frame that says where sequences begin


def as_sequences(X: Any, templates: Templates | None) -> tuple[Any, np.ndarray]:
    """What a vectoriser reads (with templates, tokens in columns, without empty sequences), and the lengths of all."""
    if templates is not None and not isinstance(templates, Templates):
        raise TypeError(f"templates must be None or m3n.features.Templates(...), got {templates!r:.60}")
    if isinstance(X, Sentences):
        return _in_columns(X, templates)
    if templates is not None and comes_once(X):
        return _in_columns(Sentences.of(sequence for sequence, _ in one_by_one(X, templates)), templates)
    sequences = [_opened(sequence, i, templates) for i, sequence in enumerate(listed(X))]
    lengths = _lengths(sequences)  # which checks them, too
    return _in_columns(Sentences.of(sequences), templates) if templates else (sequences, lengths)


def comes_once(things: Any) -> bool:
    """Whether these can only be read from beginning to end, as they have no length: an iterator, for example."""
    return isinstance(things, Iterable) and not (hasattr(things, "__len__") or hasattr(things, "shape"))


class Blocks:
    """The sequences of an iterator, some at a time, with the number of the first of them.

    Parameters
    ----------
    X : iterable of sequences
        It is read once.
    """

    def __init__(self, X: Iterable[Any]):
        self._X = X
        self._lengths = array("q")

    @property
    def lengths(self) -> np.ndarray:
        """Positions of every sequence that has been read."""
        return np.array(self._lengths, dtype=np.int64)

    def __iter__(self) -> Iterator[tuple[int, list[Any]]]:
        block, positions = list[Any](), 0
        for sequence, length in one_by_one(self._X, None):
            block.append(sequence)
            self._lengths.append(length)
            positions += length
            if positions >= MOST_POSITIONS or len(block) == MOST_SEQUENCES:
                yield len(self._lengths) - len(block), block
                block, positions = [], 0
        if block:
            yield len(self._lengths) - len(block), block


def one_by_one(X: Iterable[Any], templates: Templates | None) -> Iterator[tuple[Any, int]]:
    """Every sequence as it is read, and its length."""
    for i, sequence in enumerate(X):
        opened = _opened(sequence, i, templates)
        yield opened, length_of(opened, i)


def is_frame(thing: Any) -> bool:
    """Whether this is a data frame of pandas, which need not be there."""
    return hasattr(thing, "iloc") and hasattr(thing, "columns")


def as_list(things: Any) -> list[Any]:
    """A list of something per sequence."""
    if isinstance(things, (str, bytes, Mapping)) or scipy.sparse.issparse(things) or not isinstance(things, Iterable):
        raise TypeError(f"expected a list of sequences, got {type(things).__name__}")
    return list(things)


def _in_columns(X: Sentences, templates: Templates | None) -> tuple[Sentences, np.ndarray]:
    if templates is None:
        remedy = "say which attributes to make of them: templates=m3n.features.CHUNKING, for example"
        raise TypeError(f"X holds tokens in columns; {remedy}")
    lengths = X.lengths
    kept = np.concatenate([[True], lengths > 0])
    return (X if kept.all() else Sentences(X.columns, X.offsets[kept], X.label)), lengths


def listed(X: Any) -> list[Any]:
    """A list of sequences; one data frame is cut where its sentences begin."""
    if not is_frame(X):
        return as_list(X)
    if SENTENCE not in X.columns or "label" in X.columns:
        raise ValueError(
            f"X is one data frame: it needs a column {SENTENCE!r} that says to which sequence a row belongs, and the "
            f"labels belong into y, not into a column 'label'; its columns are {list(X.columns)!r:.200}. A list of "
            "frames, one per sequence, will do, too"
        )
    rest, names = X.drop(columns=SENTENCE), X[SENTENCE].to_numpy()
    begins = np.flatnonzero(names[1:] != names[:-1]) + 1
    return [rest.iloc[low:high] for low, high in pairwise([0, *begins.tolist(), len(X)]) if low < high]


def _opened(sequence: Any, i: int, templates: Templates | None) -> Any:
    """One sequence as a list of tokens, or the matrix that it is."""
    if is_frame(sequence):
        return _rows(sequence, i, as_texts=templates is not None)
    if templates is None or isinstance(sequence, (str, tuple, Mapping)) or not isinstance(sequence, Iterable):
        return sequence  # a tuple of texts is likely a token: the list around its sentence has been forgotten
    tokens = sequence.tolist() if isinstance(sequence, np.ndarray) else list(sequence)
    return [(token,) if isinstance(token, str) else token for token in tokens] if str in map(type, tokens) else tokens


def _rows(frame: Any, i: int, as_texts: bool) -> list[Any]:
    """The rows of a data frame as dicts, or as tuples of texts."""
    missing = np.argwhere(frame.isna().to_numpy())
    if len(missing):
        t, column = missing[0].tolist()
        remedy = "fill it or drop the row; read_csv(..., keep_default_na=False) keeps words such as NA and null"
        raise ValueError(f"sequence {i}, position {t}: column {frame.columns[column]!r} has no value; {remedy}")
    if as_texts:
        return list(zip(*(map(str, frame[name].tolist()) for name in frame.columns), strict=True))
    return frame.rename(columns=str).to_dict("records")


def _lengths(sequences: list[Any]) -> np.ndarray:
    if set(map(type, sequences)) <= {list, tuple}:
        return np.fromiter(map(len, sequences), np.int64, len(sequences))
    return np.array([length_of(sequence, i) for i, sequence in enumerate(sequences)], dtype=np.int64)


def length_of(sequence: Any, i: int) -> int:
    """How many positions a sequence has."""
    if isinstance(sequence, (str, Mapping)) or not (hasattr(sequence, "__len__") or hasattr(sequence, "shape")):
        raise TypeError(f"sequence {i}: expected a list of positions, got {sequence!r:.60}")
    return sequence.shape[0] if hasattr(sequence, "shape") and sequence.shape else len(sequence)
