"""Sentences of tokens in columns, kept as numbers.

A column is its distinct values and, for every token, the number of its value. Whatever depends on a value alone (lower
case, a suffix, a look-up) is then computed once per distinct value, and whatever compares tokens works on arrays. The
lists of lists that other code wants are made when they are asked for. Data frames of pandas have one row per token: a
column says to which sentence it belongs, one may be the label.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Any, TypeVar, overload

import numpy as np

from m3n.packed.ragged import numbers

Value = TypeVar("Value", bound=Hashable)
BLOCK = 512  # sentences that are read at a time, if they come one by one


@dataclass(frozen=True, eq=False)
class Column:
    """One column of all tokens.

    Attributes
    ----------
    values : list of str
        The distinct values.
    codes : array of int32 (tokens,)
        For every token the number of its value.
    """

    values: list[str]
    codes: np.ndarray

    @classmethod
    def of(cls, values: Iterable[str], count: int) -> Column:
        """A column from the values of its ``count`` tokens."""
        codes, distinct = numbered(values, count)
        return cls(distinct, codes)

    def strings(self) -> list[str]:
        """The values of all tokens."""
        return list(map(self.values.__getitem__, self.codes.tolist()))

    def used(self) -> tuple[list[str], np.ndarray]:
        """The values that occur, if that is quickly found, and the codes of tokens in them."""
        if len(self.codes) >= len(self.values):
            return self.values, self.codes
        which, codes = np.unique(self.codes, return_inverse=True)  # a few of many sentences
        return [self.values[k] for k in which.tolist()], codes

    def map(self, function: Callable[[str], str]) -> Column:
        """The column of ``function(value)``, which is called once per distinct value."""
        found = Column.of(map(function, self.values), len(self.values))
        return Column(found.values, found.codes[self.codes])


class Sentences(Sequence[list[tuple[str, ...]]]):
    """Tokens in columns, sentence after sentence; as a sequence, lists of tuples of strings.

    Parameters
    ----------
    columns : sequence of Column
        The columns without the label.
    offsets : array of int (sentences + 1,)
        Sentence i has the tokens offsets[i] to offsets[i + 1].
    label : Column, optional
        The labels, if they are known.
    delimiter : str
        What stands between columns in the file that they come from; ``write_columns`` puts it there.
    """

    def __init__(
        self, columns: Sequence[Column], offsets: np.ndarray, label: Column | None = None, delimiter: str = " "
    ):
        self.columns = tuple(columns)
        self.offsets = np.asarray(offsets, dtype=np.int64)
        self.label = label
        self.delimiter = delimiter

    @classmethod
    def of(cls, tokens: Iterable[Sequence[Sequence[str]]], begin: int = 0) -> Sentences:
        """Sentences from lists of tokens, each a tuple or list with one string per column.

        Parameters
        ----------
        tokens : iterable of sentences
            For every token of every sentence its columns. What has no length is read block by block, and not kept.
        begin : int
            The number of the first sentence, for errors.
        """
        if isinstance(tokens, Sentences):
            return tokens
        growing = _Growing(begin)
        for block in [list(tokens)] if hasattr(tokens, "__len__") else _blocks(tokens):
            growing.add(block)
        return growing.sentences()

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of every sentence."""
        return np.diff(self.offsets)

    @cached_property
    def tokens(self) -> list[list[tuple[str, ...]]]:
        """For every token of every sentence its columns without the label."""
        return self._cut(list(zip(*(column.strings() for column in self.columns), strict=True)))

    @cached_property
    def labels(self) -> list[list[str]]:
        """The labels of every sentence."""
        if self.label is None:
            raise ValueError("these sentences have no labels")
        return self._cut(self.label.strings())

    def rows(self) -> list[list[tuple[str, ...]]]:
        """For every token of every sentence its columns and, if it is known, its label behind them."""
        columns = [*self.columns, *([] if self.label is None else [self.label])]
        return self._cut(list(zip(*(column.strings() for column in columns), strict=True)))

    def with_column(self, function: Callable[[str], str], column: int = 0) -> Sentences:
        """The same sentences with one more column at the end: a function of another column's values.

        Parameters
        ----------
        function : callable
            From a string to a string; called once per distinct value.
        column : int
            The column that it reads.

        Examples
        --------
        >>> Sentences.of([[("The", "DT"), ("Dog", "NN")]]).with_column(str.lower)[0]
        [('The', 'DT', 'the'), ('Dog', 'NN', 'dog')]
        """
        return Sentences((*self.columns, self.columns[column].map(function)), self.offsets, self.label, self.delimiter)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, which: int) -> list[tuple[str, ...]]: ...
    @overload
    def __getitem__(self, which: slice | np.ndarray) -> Sentences: ...
    def __getitem__(self, which: int | slice | np.ndarray) -> list[tuple[str, ...]] | Sentences:
        """One sentence as a list of tuples, a range of sentences, or those of an array of numbers."""
        if not isinstance(which, (slice, np.ndarray)):
            return self.tokens[which]
        chosen = np.arange(len(self))[which]
        lengths = self.lengths[chosen]
        rows = numbers(self.offsets[chosen], lengths)

        def cut(column: Column) -> Column:
            return Column(column.values, column.codes[rows])

        label = None if self.label is None else cut(self.label)
        return Sentences([cut(column) for column in self.columns], np.cumsum([0, *lengths]), label, self.delimiter)

    def _cut(self, flat: list[Any]) -> list[list[Any]]:
        return [flat[low:high] for low, high in pairwise(self.offsets.tolist())]


class _Growing:
    """Sentences that come block by block, the first of which has this number."""

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.columns = list[GrowingColumn]()
        self.ends = [0]  # of sentences

    def add(self, sentences: list[Any]) -> None:
        """Some more sentences."""
        flat = list(chain.from_iterable(sentences))
        widths, begin = (
            set(map(len, flat)) if set(map(type, flat)) <= {tuple, list} else {-1},
            self.begin + len(self.ends) - 1,
        )
        if len(widths | ({len(self.columns)} if self.columns else set())) > 1 or -1 in widths:
            _complain(sentences, begin, len(self.columns))
        if flat and not self.columns:
            self.columns = [GrowingColumn() for _ in range(len(flat[0]))]
        for column, values in zip(self.columns, zip(*flat, strict=True), strict=bool(flat)):
            if set(map(type, values)) != {str}:
                _complain(sentences, begin, len(self.columns))
            column.add(values, len(flat))
        self.ends += np.cumsum([self.ends[-1], *map(len, sentences)])[1:].tolist()

    def sentences(self) -> Sentences:
        """All of them."""
        return Sentences([column.column(str) for column in self.columns], np.array(self.ends))


class GrowingColumn:
    """The numbers of values that come block by block, in order of appearance."""

    def __init__(self) -> None:
        self._numbers: defaultdict[Any, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._codes = list[np.ndarray]()

    def add(self, values: Iterable[Any], count: int) -> None:
        """Some more values.

        Parameters
        ----------
        values : iterable
            Texts, or bytes.
        count : int
            How many there are.
        """
        self._codes.append(np.fromiter(map(self._numbers.__getitem__, values), np.int32, count))

    def column(self, text: Callable[[Any], str]) -> Column:
        """All values as a column.

        Parameters
        ----------
        text : callable
            From a value to its text; called once per distinct value.
        """
        codes = self._codes[0] if len(self._codes) == 1 else np.concatenate(self._codes or [np.empty(0, np.int32)])
        self._numbers.default_factory = None  # it leads back to them, and nobody would let go of either
        return Column(list(map(text, self._numbers)), codes)


def _blocks(sentences: Iterable[Value]) -> Iterator[list[Value]]:
    """So many at a time that nothing large is held."""
    remaining = iter(sentences)
    while block := list(islice(remaining, BLOCK)):
        yield block
        del block[:]  # while the next one is read there is no other


def numbered(values: Iterable[Value], count: int) -> tuple[np.ndarray, list[Value]]:
    """Number values in order of appearance: the number of each (int32), and the distinct values.

    Parameters
    ----------
    values : iterable
        Anything that can be a key of a dict.
    count : int
        How many there are.
    """
    growing: defaultdict[Value, int] = defaultdict()
    growing.default_factory = growing.__len__
    codes = np.fromiter(map(growing.__getitem__, values), np.int32, count)
    growing.default_factory = None  # it leads back to the dict
    return codes, list(growing)


def _complain(sentences: list[Any], begin: int, width: int) -> None:
    """Name the first token that is no tuple of strings like those before."""
    for i, sentence in enumerate(sentences, start=begin):
        for t, token in enumerate(sentence):
            where = f"sequence {i}, position {t}"
            if not isinstance(token, (tuple, list)) or not all(isinstance(value, str) for value in token):
                raise TypeError(f"{where}: a token must be a tuple of strings, one per column, got {token!r:.100}")
            width = width or len(token)
            if len(token) != width:
                raise ValueError(f"{where}: expected {width} columns as in the tokens before, found {len(token)}")


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
