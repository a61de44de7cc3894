"""Packing sequences of any number into shards: ``m3n.pack``.

Sequences are read as ``SequenceTagger.fit`` reads them, part by part (``parts``). What they become are blocks, as large
as a share of the memory allows (``block_rows``), in which attributes have numbers of their own; the rest is done on
disk (``m3n.shards.packer``).
"""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from m3n.estimators.block_rows import BLOCK, BlockRows, ColumnRows, Settings, rows_for
from m3n.estimators.inputs import check_label_count
from m3n.estimators.parts import Part, check_numbered, lengths_of, parts_of
from m3n.features import Templates
from m3n.io.sentences import Column, Sentences
from m3n.packed.memory import give_back
from m3n.packed.ragged import numbers
from m3n.shards import Shards
from m3n.shards.packer import Given, Packer
from m3n.shards.sizes import bytes_of

SHARE, MOST = 16, 1 << 24  # of what is held as Python's objects: a share of the memory, and bytes at most


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
        self.part = min(settings.memory // SHARE, MOST)
        self.sequences = 0
        self._rows: BlockRows | None = None
        self._labels, self._waiting = list[Any](), list[tuple[np.ndarray, np.ndarray | None, np.ndarray]]()

    def add(self, part: Part) -> None:
        """Some more sequences.

        Parameters
        ----------
        part : Part
            The sequences.
        """
        lengths = lengths_of(part.X, part.begin)
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
        if self._rows is None:
            raise ValueError("X is empty: there is nothing to pack, no sequence that is not empty has a weight")
        check_label_count(len(self.packer.labels), self.packer.positions)
        self.packer.finish(self._rows.packing())

    def _add_others(self, part: Part, lengths: np.ndarray, kept: np.ndarray) -> None:
        sequences = [x if keep else [] for x, keep in zip(part.X, kept.tolist(), strict=True)]
        if self._rows is None:
            self._rows = rows_for(sequences[int(np.flatnonzero(kept)[0])], self.settings)
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
            self._rows = ColumnRows("columns", self.settings, self.templates, X)
        rows = self._rows
        assert isinstance(rows, ColumnRows)
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


def _chosen(X: Sentences, which: np.ndarray) -> Sentences:
    """Some of the sentences, without values that do not occur in them."""
    plain = len(which) == len(X)
    rows = slice(None) if plain else numbers(X.offsets[which], X.lengths[which])
    columns = []
    for column in X.columns:
        values, codes = Column(column.values, column.codes[rows]).used()
        columns.append(Column(values, codes))
    return Sentences(columns, np.concatenate([[0], np.cumsum(X.lengths[which])]), None, X.delimiter)
