"""From tokens in columns to the attributes of known templates, prepared once per model.

``Templates.transform`` makes a few passes of NumPy per template, which is right for many tokens and much too much for
a sentence. Here the codes of a word and of all of its forms stand in one table, word by word as they come, and compiled
code (``m3n.compiled.maps.templates``) makes the attributes of all templates from them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from m3n.compiled.maps.templates import number
from m3n.features.joint_codes import ABSENT, JointCodes
from m3n.features.lookup import ONES, Piece
from m3n.io.sentences import Sentences
from m3n.io.template_syntax import Key, Row, Template
from m3n.packed.ragged import running_sum

MOST_WORDS = 100_000  # that are remembered per column, about 20 MB
PIECE = 2048  # tokens at a time
BUCKETS, ALWAYS = 4, 64  # per key of a table, about, and of every table


class Plan(NamedTuple):
    """What compiled code reads besides the tokens; see there."""

    beyond: np.ndarray  # (forms, 2 * reach)
    templates: np.ndarray  # (templates, 5)
    macros: np.ndarray  # (macros, 5)
    tables: np.ndarray  # (tables, 3)
    keys: np.ndarray
    begins: np.ndarray


class Learnt(NamedTuple):
    """What templates have learnt.

    Attributes
    ----------
    own : list of pairs
        The templates of tokens, each with its tuples of codes.
    forms : dict
        For every form of a column that they read: the column, the function from a word to the form, the codes of the
        form's values, and those of what stands beyond a sentence.
    marks : dict
        From the texts of templates without macros that stand at one token alone to where: ``FIRST`` or ``LAST``.
    """

    own: list[tuple[Template, JointCodes]]
    forms: Mapping[Key, tuple[int, Callable[[str], str], Mapping[str, int], np.ndarray]]
    marks: dict[str, int]


class WordCodes(dict[str, bytes]):
    """From a word to the codes of its forms, int32 one after another; a ``TypeError`` says that it is no text."""

    def __init__(self, forms: Sequence[tuple[Callable[[str], str], Mapping[str, int]]]):
        self.forms = forms

    def __missing__(self, word: Any) -> bytes:
        if not isinstance(word, str):
            raise TypeError(f"a word must be a text, got {word!r:.60}")
        codes = array("i", [numbers.get(form(word), ABSENT) for form, numbers in self.forms]).tobytes()
        if len(self) >= MOST_WORDS:
            self.clear()
        self[word] = codes
        return codes

    def table(self, words: Iterable[str]) -> np.ndarray:
        """The codes (words, forms)."""
        return np.frombuffer(b"".join(map(self.__getitem__, words)), np.int32).reshape(-1, len(self.forms))


class TemplateSequences(NamedTuple):
    """Sequences of tokens in columns, whose attributes are made piece by piece.

    Attributes
    ----------
    offsets : array of int (sequences + 1,)
        Sequence i has the tokens offsets[i] to offsets[i + 1].
    codes : array of int32 (tokens, forms)
        The codes of their words.
    plan : Plan
        How attributes are made of these.
    """

    offsets: np.ndarray
    codes: np.ndarray
    plan: Plan

    def pieces(self, low: int, high: int) -> Iterator[Piece]:
        """Sequences low..high-1, so many at a time that their attributes stay in a cache."""
        while low < high:
            first = self.offsets[low]
            last = int(self.offsets.searchsorted(first + PIECE, side="right")) - 1
            last = min(max(last, low + 1), high)
            offsets = self.offsets[low : last + 1] - first
            columns = np.empty((offsets[-1], len(self.plan.templates)), np.int64)
            number(low, last, self.offsets, self.codes, *self.plan, columns)
            pointers = np.arange(0, columns.size + 1, columns.shape[1])
            yield Piece(low, last, int(first), offsets, pointers, columns.ravel(), ONES)
            low = last


class TemplateLookup:
    """Attributes of templates.

    Parameters
    ----------
    learnt : Learnt
        What they have learnt.
    """

    def __init__(self, learnt: Learnt):
        of_column: dict[int, list[Key]] = {}
        for key, (column, *_) in learnt.forms.items():
            of_column.setdefault(column, []).append(key)
        self.order = [key for keys in of_column.values() for key in keys]
        self.words = {column: WordCodes([learnt.forms[key][1:3] for key in keys]) for column, keys in of_column.items()}
        self.width = max(of_column, default=-1) + 1  # columns that tokens must have
        self.plan = _plan(learnt, self.order)

    def read(self, X: Any, most: int) -> TemplateSequences | None:
        """The tokens of plain lists, or of ``Sentences``; None for anything else, and for empty sequences.

        Parameters
        ----------
        X : sequences
            As for a tagger with templates.
        most : int
            How many columns tokens may have; 0 if any number will do.
        """
        if isinstance(X, Sentences):
            return self._of_sentences(X, most)
        if type(X) not in (list, tuple) or not X or not set(map(type, X)) <= {list, tuple} or not all(X):
            return None
        try:
            columns = self._columns(X)
            if columns is None or not self._fits(len(columns), most):
                return None
            tables = [own.table(columns[column]) for column, own in self.words.items()]
        except TypeError:  # a word that is no text
            return None
        offsets = running_sum(X)
        return TemplateSequences(offsets, _beside(tables, int(offsets[-1])), self.plan)

    def _of_sentences(self, X: Sentences, most: int) -> TemplateSequences | None:
        if not len(X) or not X.lengths.all() or not self._fits(len(X.columns), most):
            return None
        tables = []
        for column, own in self.words.items():
            values, codes = X.columns[column].used()
            tables.append(own.table(values)[codes])
        return TemplateSequences(X.offsets, _beside(tables, int(X.offsets[-1])), self.plan)

    def _columns(self, X: Sequence[Sequence[Any]]) -> list[Any] | None:
        """The columns of all tokens, in which words stand for tokens of one column; None if they are not all alike."""
        flat = list(chain.from_iterable(X))
        kinds = set(map(type, flat))
        if kinds == {str}:
            return [flat] if set(map(type, X)) == {list} else None
        if not kinds <= {tuple, list} or len(set(map(len, flat))) != 1:
            return None
        columns = list(zip(*flat, strict=True))
        unread = (values for c, values in enumerate(columns) if c not in self.words)
        return columns if all(set(map(type, values)) == {str} for values in unread) else None

    def _fits(self, width: int, most: int) -> bool:
        return width >= self.width and not width > most > 0


def _beside(tables: list[np.ndarray], tokens: int) -> np.ndarray:
    """The codes of all columns (tokens, forms), in an array of its own: one that is read-only has another type."""
    return np.concatenate(tables, axis=1) if tables else np.empty((tokens, 0), np.int32)


def _plan(learnt: Learnt, order: list[Key]) -> Plan:
    place = {key: k for k, key in enumerate(order)}
    tables, width = _Tables(), 0
    templates, macros = list[tuple[int, ...]](), list[tuple[int, ...]]()
    for template, codes in learnt.own:
        steps = codes.steps()
        before = [-1 if level is None else tables.add(*level) for level in steps[:-1]]
        first = len(macros)
        for (row, key), size, table in zip(template.macros, codes.sizes, before, strict=False):
            macros.append((*_row(row), place[key], size, table))
        assert steps[-1] is not None
        last = tables.add(*steps[-1])
        mark = 0 if template.macros else learnt.marks.get(template.texts[0], 0)
        templates.append((first, len(macros), last, width, mark))
        width += len(codes)
    beyond = [learnt.forms[key][3] for key in order]
    return Plan(
        np.array(beyond, np.int64) if beyond else np.empty((0, 0), np.int64),
        np.array(templates, np.int64).reshape(-1, 5),
        np.array(macros, np.int64).reshape(-1, 5),
        *tables.arrays(),
    )


def _row(row: Row) -> tuple[int, int]:
    """Whether a row is a distance, and which; places count from 0, or from the end of the sentence if negative."""
    if isinstance(row, int):
        return 1, row
    place = int(row.removeprefix("@"))
    return 0, place if place < 0 else place - 1


class _Tables:
    """Sorted keys with buckets, collected."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int]] = []
        self.keys: list[np.ndarray] = [np.empty(0, np.int64)]
        self.begins: list[np.ndarray] = [np.empty(0, np.int32)]
        self.ends = [0, 0]  # of keys and buckets so far

    def add(self, keys: np.ndarray, domain: int) -> int:
        """A table of keys below a bound; its number."""
        shift = 0
        while (domain - 1) >> shift >= BUCKETS * len(keys) + ALWAYS:
            shift += 1
        counts = np.bincount(keys >> shift, minlength=((domain - 1) >> shift) + 1)
        begins = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        self.rows.append((self.ends[0], self.ends[1], shift))
        self.begins.append(begins)
        self.ends[1] += len(begins)
        if shift:
            self.keys.append(keys)
            self.ends[0] += len(keys)
        return len(self.rows) - 1

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows of a plan, all keys and all buckets."""
        rows = np.array(self.rows, np.int64).reshape(-1, 3)
        return rows, np.concatenate(self.keys), np.concatenate(self.begins)
