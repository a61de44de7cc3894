"""The rows of a block of sequences that is to be packed: attributes with numbers of the block, or rows of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from m3n.estimators.inputs import joined_rows, kind_of
from m3n.estimators.parts import OBJECT
from m3n.estimators.sequences import length_of
from m3n.features import HashedAttributes, HashedTemplates, Templates
from m3n.features.hashed import check_bits
from m3n.features.vectorizer import GrowingRows
from m3n.io.sentences import Sentences
from m3n.shards.blocks import Matrix, Rows
from m3n.shards.names import Texts, Tuples
from m3n.shards.packer import Packing
from m3n.shards.sizes import in_words

LEAST = 16_000_000  # bytes with which packing can work
BLOCK = 2  # a block with all that is made of it: a share of the memory
MOST_POSITIONS = 1 << 17  # of a block of columns; larger ones are not faster


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
        if self.hash_bits is not None and check_bits(self.hash_bits) and self.min_freq > 1:
            raise ValueError("with hash_bits attributes are not counted: leave min_freq at 1")


class BlockRows(ABC):
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


class AttributeRows(BlockRows):
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
        rows, self._rows, self.size = self._rows, GrowingRows(), 0
        if self.settings.hash_bits is not None:
            return Rows(HashedAttributes(self.settings.hash_bits).hashed(rows)), None
        matrix = rows.matrix()
        return Rows(matrix, Texts.of(rows.vocabulary)), None


class ColumnRows(BlockRows):
    """Tokens in columns, of which templates make attributes; a block at once."""

    def __init__(self, kind: str, settings: Settings, templates: Templates, first: Sentences):
        super().__init__(kind, settings)
        self.templates = templates
        self.columns, self.delimiter = len(first.columns), first.delimiter
        each = 60 * len(templates.parsed) + OBJECT * self.columns
        self.most = max(min(settings.memory // BLOCK // each, MOST_POSITIONS), 1)

    def add(self, sequences: Sentences, begin: int) -> None:
        if len(sequences.columns) != self.columns:
            what = f"expected {self.columns} columns as in the tokens before, found {len(sequences.columns)}"
            raise ValueError(f"sequence {begin}, position 0: {what}")
        if self.settings.hash_bits is not None:
            matrix, pairs = HashedTemplates(self.templates, self.settings.hash_bits).both(sequences)
            self._made = Rows(matrix), None if pairs is None else Rows(pairs)
            return
        local = self.templates.unfitted()
        matrix = local.fit_transform(sequences)
        pairs = local.transform_pairs(sequences) if local.has_pairs else None
        self._made = (
            Rows(matrix, Tuples.of(local, pair=False)),
            None if pairs is None else Rows(pairs, Tuples.of(local, pair=True)),
        )

    def take(self) -> tuple[Rows, Rows | None]:
        return self._made

    def packing(self) -> Packing:
        settings, made = self.settings, self.templates.unfitted()
        return Packing(
            self.kind, settings.min_freq, settings.hash_bits, settings.memory, settings.shard_size, made,
            self.columns, self.delimiter,
        )  # fmt: skip


class MatrixRows(BlockRows):
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


def rows_for(sequence: Any, settings: Settings) -> BlockRows:
    """What takes sequences such as this one.

    Parameters
    ----------
    sequence : sequence
        One that is not empty, and no tokens in columns.
    settings : Settings
        How to pack.
    """
    kind = kind_of(sequence)
    return AttributeRows(kind, settings) if kind == "attributes" else MatrixRows(kind, settings)
