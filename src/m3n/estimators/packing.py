"""Packing sequences of any number into shards: ``m3n.pack``.

Sequences are read as ``SequenceTagger.fit`` reads them, part by part. What they become are blocks, as large as a share
of the memory allows, in which attributes have numbers of their own; the rest is done on disk (``m3n.shards.packer``).
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from m3n.estimators.inputs import check_label_count, joined_rows, kind_of, label_sequences
from m3n.estimators.labels import check_labels, label_list
from m3n.estimators.sequences import as_list, comes_once, is_frame, length_of, listed, one_by_one
from m3n.features import Templates
from m3n.features.vectorizer import GrowingRows
from m3n.io.sentences import Column, Sentences
from m3n.packed.memory import give_back
from m3n.packed.ragged import numbers
from m3n.shards import Shards
from m3n.shards.blocks import Matrix, Rows
from m3n.shards.names import Texts
from m3n.shards.packer import Given, Packer, Packing
from m3n.shards.sizes import bytes_of, in_words
from m3n.shards.values import GrowingValues

LEAST = 16_000_000  # bytes with which packing can work
PART, MOST_PART = 16, 1 << 24  # sequences that are held as Python's objects: a share of the memory, and bytes at most
BLOCK = 4  # a block with all that is made of it: a share of the memory
MOST_POSITIONS = 1 << 17  # of a block of columns; larger ones are not faster
OBJECT = 100  # bytes of an attribute as an object, about
MISSING = object()


def pack(
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    templates: Templates | None = None,
    min_freq: int = 1,
    hash_bits: int | None = None,
    sample_weight: Any = None,
    memory: int | str = "1GB",
    shard_size: int | str | None = None,
    force: bool = False,
) -> Shards:
    """Write labelled sequences, of any number, as packed data that are read without loading them all.

    Everything is read once, and what was read is let go of, so that generators are as good as lists.

    Parameters
    ----------
    X : sequences
        As ``SequenceTagger.fit`` takes them; empty ones are left out.
    y : sequences of labels
        One label per position: strings or numbers. Iterators are read in step with X; ``m3n.io.unzip`` makes both of
        one iterator of pairs.
    path : path
        The folder to write; it must be empty or not there.
    templates : Templates or None
        Attributes to make of tokens in columns.
    min_freq : int
        Attributes that occur less often are left out.
    hash_bits : int or None
        Number attributes by so many bits of a hash, without a dictionary and without names; None: with a dictionary.
    sample_weight : numbers, optional
        How often every sequence counts; those of weight 0 are left out.
    memory : int or str
        How much memory packing may take, besides what Python and its libraries take: bytes, or a text such as "500MB".
    shard_size : int or str, optional
        About how large a shard is. The default is 64 MB, or a quarter of the memory if that is less.
    force : bool
        Whether packed data that are in the folder may be replaced.

    Returns
    -------
    Shards
        What was written.
    """
    settings = Settings(
        min_freq, hash_bits, bytes_of(memory), None if shard_size is None else bytes_of(shard_size, "shard_size")
    )
    with Packer(Path(path), force) as packer:
        intake = Intake(packer, templates, settings)
        for part in parts_of(X, y, sample_weight, templates, intake.part):
            intake.add(part)
            del part
        intake.finish()
    return Shards(path)


class Settings(NamedTuple):
    """How to pack, whatever the sequences are.

    Attributes
    ----------
    min_freq : int
        Attributes that occur less often are left out.
    hash_bits : int or None
        Attributes are numbered by so many bits of a hash.
    memory : int
        Bytes.
    shard_size : int or None
        Bytes.
    padded : bool
        Whether rows may be of different widths, as those of files are that name only what is not zero.
    """

    min_freq: int = 1
    hash_bits: int | None = None
    memory: int = 10**9
    shard_size: int | None = None
    padded: bool = False

    def check(self) -> None:
        """Refuse what makes no sense."""
        if self.memory < LEAST:
            raise ValueError(f"memory must be at least {in_words(LEAST)}, got {in_words(self.memory)}")
        if isinstance(self.min_freq, bool) or not isinstance(self.min_freq, int) or self.min_freq < 1:
            raise ValueError(f"min_freq must be a whole number from 1, got {self.min_freq!r}")
        if self.hash_bits is not None and self.min_freq > 1:
            raise ValueError("with hash_bits attributes are not counted: leave min_freq at 1")


class Part(NamedTuple):
    """Some sequences as they were given.

    Attributes
    ----------
    X : Sentences or list
        Tokens in columns, or sequences of any other kind.
    labels : list of lists
        The labels of every sequence.
    weights : array (sequences,) or None
        How often every sequence counts.
    begin : int
        The number of the first sequence.
    """

    X: Any
    labels: list[list[Any]]
    weights: np.ndarray | None
    begin: int


class Intake:
    """Makes blocks of parts.

    Parameters
    ----------
    packer : Packer
        Gets the blocks.
    templates : Templates or None
        What makes attributes of columns.
    settings : Settings
        How to pack.
    """

    def __init__(self, packer: Packer, templates: Templates | None, settings: Settings):
        settings.check()
        if templates is not None and not isinstance(templates, Templates):
            raise TypeError(f"templates must be None or m3n.features.Templates(...), got {templates!r:.60}")
        self.packer, self.templates, self.settings = packer, templates, settings
        self.part = min(settings.memory // PART, MOST_PART)
        self.sequences = 0
        self._rows: _GrowingBlock | None = None
        self._labels, self._waiting = list[Any](), list[tuple[np.ndarray, np.ndarray | None, np.ndarray]]()

    def add(self, part: Part) -> None:
        """Some more sequences.

        Parameters
        ----------
        part : Part
            The sequences.
        """
        lengths = _lengths(part.X, part.begin)
        check_numbered(part.labels, lengths, part.begin)
        self.sequences += len(lengths)
        weighty = np.ones(len(lengths), bool) if part.weights is None else part.weights > 0.0
        kept = (lengths > 0) & weighty
        self.packer.dropped["empty"] += int((lengths == 0).sum())
        self.packer.dropped["weightless"] += int((~weighty & (lengths > 0)).sum())
        if self.templates is not None:
            self._add_columns(part, lengths, kept)
        elif isinstance(part.X, Sentences):
            remedy = "say which attributes to make of them: templates=m3n.features.CHUNKING, for example"
            raise TypeError(f"X holds tokens in columns; {remedy}")
        elif kept.any():
            self._add_others(part, lengths, kept)

    def finish(self) -> None:
        """Write the shards."""
        self._flush()
        if not isinstance(self._rows, _GrowingBlock):
            raise ValueError("X is empty: there is nothing to pack, no sequence that is not empty has a weight")
        check_label_count(len(self.packer.labels), self.packer.positions)
        self.packer.finish(self._rows.packing(), getattr(self._rows, "values", None))

    def _add_others(self, part: Part, lengths: np.ndarray, kept: np.ndarray) -> None:
        sequences = [x if keep else [] for x, keep in zip(part.X, kept.tolist(), strict=True)]
        if self._rows is None:
            kind = kind_of(sequences[int(np.flatnonzero(kept)[0])])
            made = _Attributes if kind == "attributes" else _Matrices
            self._rows = made(kind, self.settings)
        self._rows.add(sequences, part.begin)
        self._remember(part, lengths, np.flatnonzero(kept))
        if self._rows.size > self.settings.memory // BLOCK:
            self._flush()

    def _add_columns(self, part: Part, lengths: np.ndarray, kept: np.ndarray) -> None:
        """Tokens in columns; as many at a time as templates have memory for."""
        assert self.templates is not None
        X = part.X if isinstance(part.X, Sentences) else Sentences.of(part.X, part.begin)
        if self._rows is None:
            if not X.columns:
                return
            self._rows = _Columns("columns", self.settings, self.templates, X)
        rows = self._rows
        assert isinstance(rows, _Columns)
        which = np.flatnonzero(kept)
        ends = np.concatenate([[0], np.cumsum(lengths[which])])
        low = 0
        while low < len(which):
            high = max(int(np.searchsorted(ends, ends[low] + rows.most, side="right")) - 1, low + 1)
            chosen = which[low:high]
            rows.add(_chosen(X, chosen), part.begin + int(chosen[0]))
            self._remember(part, lengths, chosen)
            self._flush()
            low = high

    def _remember(self, part: Part, lengths: np.ndarray, which: np.ndarray) -> None:
        """Labels, lengths, weights and numbers of sequences whose rows were read."""
        self._labels += chain.from_iterable(part.labels[i] for i in which.tolist())
        weights = None if part.weights is None else part.weights[which]
        self._waiting.append((lengths[which], weights, part.begin + which))

    def _flush(self) -> None:
        """End a block."""
        if not self._waiting or self._rows is None:
            return
        lengths, weights, which = zip(*self._waiting, strict=True)
        joined = None
        if any(own is not None for own in weights):
            joined = np.concatenate(
                [np.ones(len(n)) if w is None else w for n, w in zip(lengths, weights, strict=True)]
            )
        rows, pairs = self._rows.take()
        labels, self._labels, self._waiting = self._labels, [], []
        self.packer.add(Given(rows, pairs, np.concatenate(lengths), labels, joined, np.concatenate(which)))
        del rows, pairs
        give_back()


class _GrowingBlock(ABC):
    """The rows of a block, as they come."""

    def __init__(self, kind: str, settings: Settings):
        self.kind, self.settings = kind, settings
        self.size = 0  # bytes that it takes, with what will be made of it

    @abstractmethod
    def add(self, sequences: Any, begin: int) -> None:
        """Some more sequences, the first of which has this number."""

    @abstractmethod
    def take(self) -> tuple[Rows, Rows | None]:
        """The rows of positions and of pairs; those that come next are another block's."""

    def packing(self) -> Packing:
        """How these rows are packed."""
        settings = self.settings
        return Packing(self.kind, settings.min_freq, settings.hash_bits, settings.memory, settings.shard_size)


class _Attributes(_GrowingBlock):
    """Tokens that are dicts or lists of strings."""

    def __init__(self, kind: str, settings: Settings):
        super().__init__(kind, settings)
        self._rows = GrowingRows()

    def add(self, sequences: list[Any], begin: int) -> None:
        vocabulary = self._rows.vocabulary
        known, before = len(vocabulary), self._rows.entries
        self._rows.add(sequences, begin)
        new = len(vocabulary) - known
        letters = sum(map(len, map("".join, islice(reversed(vocabulary), new))))
        self.size += 500 * new + 5 * letters + 28 * (self._rows.entries - before)

    def take(self) -> tuple[Rows, Rows | None]:
        matrix, vocabulary = self._rows.matrix(), self._rows.vocabulary
        self._rows, self.size = GrowingRows(), 0
        return Rows(matrix, Texts.of(vocabulary)), None


class _Columns(_GrowingBlock):
    """Tokens in columns, of which templates make attributes; a block at once."""

    def __init__(self, kind: str, settings: Settings, templates: Templates, first: Sentences):
        super().__init__(kind, settings)
        self.templates, self.values = templates, GrowingValues()
        self.columns, self.delimiter = len(first.columns), first.delimiter
        each = 60 * len(templates.parsed) + OBJECT * self.columns
        self.most = max(min(settings.memory // BLOCK // each, MOST_POSITIONS), 1)

    def add(self, sequences: Sentences, begin: int) -> None:
        if len(sequences.columns) != self.columns:
            what = f"expected {self.columns} columns as in the tokens before, found {len(sequences.columns)}"
            raise ValueError(f"sequence {begin}, position 0: {what}")
        local = self.templates.unfitted()
        matrix = local.fit_transform(sequences)
        pairs = local.transform_pairs(sequences) if local.has_pairs else None
        self._made = (
            self.values.rows(local, matrix, pair=False),
            None if pairs is None else self.values.rows(local, pairs, pair=True),
        )
        if self.values.size > self.settings.memory // BLOCK:
            raise ValueError(
                f"the values of columns take more than a quarter of the memory, {in_words(self.settings.memory)}: "
                "allow more memory, or number attributes by their hash (hash_bits, --hash)"
            )

    def take(self) -> tuple[Rows, Rows | None]:
        return self._made

    def packing(self) -> Packing:
        settings, made = self.settings, self.templates.unfitted()
        return Packing(
            self.kind, settings.min_freq, settings.hash_bits, settings.memory, settings.shard_size, made,
            self.columns, self.delimiter,
        )  # fmt: skip


class _Matrices(_GrowingBlock):
    """Dense or sparse rows of numbers."""

    def __init__(self, kind: str, settings: Settings):
        super().__init__(kind, settings)
        if settings.min_freq > 1:
            raise ValueError("min_freq is for attributes with names; columns of matrices stay as they are")
        if settings.hash_bits is not None:
            raise ValueError("hash_bits is for attributes with names; columns of matrices are numbers already")
        self._parts = list[Matrix]()
        self._like: tuple[int, str] | None = None

    def add(self, sequences: list[Any], begin: int) -> None:
        rows = joined_rows(sequences, self.kind, self._like, begin)
        if not self.settings.padded and self._like is None:
            first = next(i for i, sequence in enumerate(sequences, begin) if length_of(sequence, i))
            self._like = rows.shape[1], f"sequence {first} has"
        if scipy.sparse.issparse(rows):
            rows.sum_duplicates()
        self._parts.append(rows)
        self.size += 2 * (rows.nbytes if isinstance(rows, np.ndarray) else 16 * rows.nnz + 8 * rows.shape[0])

    def take(self) -> tuple[Rows, Rows | None]:
        parts, self._parts, self.size = self._parts, [], 0
        if self.kind == "dense":
            return Rows(parts[0] if len(parts) == 1 else np.concatenate(parts)), None
        width = max(part.shape[1] for part in parts)
        wide = [part if part.shape[1] == width else _widened(part, width) for part in parts]
        matrix = scipy.sparse.vstack(wide, format="csr")
        matrix.has_canonical_format = True
        return Rows(matrix), None


def _widened(rows: scipy.sparse.csr_array, width: int) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], width))


def parts_of(X: Any, y: Any, sample_weight: Any, templates: Templates | None, most: int) -> Iterator[Part]:
    """Sequences as ``fit`` takes them, so many bytes at a time.

    Parameters
    ----------
    X : sequences
        The inputs.
    y : sequences of labels
        One label per position.
    sample_weight : numbers or None
        How often every sequence counts.
    templates : Templates or None
        What makes attributes of columns.
    most : int
        Bytes of a part, about.
    """
    if y is None:
        raise ValueError("y is missing: a list of label sequences, one per sequence of X, is needed")
    if isinstance(X, Sentences):
        yield from _parts_of_sentences(X, as_list(y), sample_weight, most)
        return
    if is_frame(X) or hasattr(y, "iloc"):
        X = listed(X)
        y = label_sequences(y, np.array([length_of(x, i) for i, x in enumerate(X)], np.int64))
    beside = _Beside(y if comes_once(y) else as_list(y), sample_weight)
    part, labels, weights, size, begin = list[Any](), list[Any](), list[float](), 0, 0
    for sequence, length in one_by_one(X if comes_once(X) else as_list(X), templates):
        given, weight = beside.read(begin + len(part))
        part.append(sequence)
        labels.append(given)
        weights.append(weight)
        size += _bytes(sequence, length)
        if size >= most:
            yield Part(part, labels, None if sample_weight is None else np.array(weights), begin)
            begin += len(part)
            part, labels, weights, size = [], [], [], 0
    beside.end(begin + len(part))
    if part:
        yield Part(part, labels, None if sample_weight is None else np.array(weights), begin)


def _parts_of_sentences(X: Sentences, y: list[Any], sample_weight: Any, most: int) -> Iterator[Part]:
    if len(y) != len(X):
        raise ValueError(f"X has {len(X)} sequences but y has {len(y)}")
    beside, step = _Beside(y, sample_weight), max(most // (OBJECT * 25), 1)
    for low in range(0, len(X), step):
        both = [beside.read(i) for i in range(low, min(low + step, len(X)))]
        weights = None if sample_weight is None else np.array([weight for _, weight in both])
        yield Part(X[low : low + step], [labels for labels, _ in both], weights, low)
    beside.end(len(X))


class _Beside:
    """The labels and the weight of one sequence after another."""

    def __init__(self, y: Iterable[Any], sample_weight: Any):
        self._labels = iter(y)
        self._weights = None if sample_weight is None else iter(sample_weight)

    def read(self, i: int) -> tuple[list[Any], float]:
        """Those of sequence i."""
        given = next(self._labels, MISSING)
        if given is MISSING:
            raise ValueError(f"X has more sequences than y, which ends after {i}")
        labels = label_list(given, i)
        if not set(map(type, labels)) <= {str, int}:
            check_labels([labels], i)
        return labels, 1.0 if self._weights is None else self._weight(i)

    def end(self, count: int) -> None:
        """Refuse more labels or weights than sequences."""
        if next(self._labels, MISSING) is not MISSING:
            raise ValueError(f"y has more sequences than X, which ends after {count}")
        if self._weights is not None and next(self._weights, MISSING) is not MISSING:
            raise ValueError(f"sample_weight has more numbers than X has sequences, {count}")

    def _weight(self, i: int) -> float:
        assert self._weights is not None
        given: Any = next(self._weights, MISSING)
        if given is MISSING:
            raise ValueError(f"sample_weight has only {i} numbers; one per sequence is needed")
        if not 0.0 <= given < math.inf:
            raise ValueError(f"sample_weight[{i}] is {given}: weights must be finite and not negative")
        return float(given)


def check_numbered(labels: Sequence[Sequence[Any]], lengths: np.ndarray, begin: int) -> None:
    """Refuse labels that are not as many as positions, by the number of the sequence.

    Parameters
    ----------
    labels : sequences of labels
        Those of every sequence.
    lengths : array of int (sequences,)
        Positions of every sequence.
    begin : int
        The number of the first.
    """
    found = np.fromiter(map(len, labels), np.int64, len(labels))
    wrong = np.flatnonzero(found != lengths)
    if wrong.size:
        i = wrong[0]
        raise ValueError(f"sequence {begin + i} has {lengths[i]} positions in X but {found[i]} labels in y")


def _lengths(X: Any, begin: int) -> np.ndarray:
    if isinstance(X, Sentences):
        return X.lengths
    return np.array([length_of(sequence, i) for i, sequence in enumerate(X, begin)], dtype=np.int64)


def _bytes(sequence: Any, length: int) -> int:
    """About how much memory a sequence takes."""
    if scipy.sparse.issparse(sequence):
        return 12 * int(sequence.nnz) + 8 * length
    if isinstance(sequence, np.ndarray):
        return int(sequence.nbytes)
    first: Any = next(iter(sequence), None)
    return length * OBJECT * (1 + (len(first) if hasattr(first, "__len__") and not isinstance(first, str) else 1))


def _chosen(X: Sentences, which: np.ndarray) -> Sentences:
    """Some of the sentences, without values that do not occur in them."""
    plain = len(which) == len(X)
    rows = slice(None) if plain else numbers(X.offsets[which], X.lengths[which])
    columns = []
    for column in X.columns:
        values, codes = Column(column.values, column.codes[rows]).used()
        columns.append(Column(values, codes))
    return Sentences(columns, np.concatenate([[0], np.cumsum(X.lengths[which])]), None, X.delimiter)
