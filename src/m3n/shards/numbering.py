"""The final number of every attribute of every block, and the file with their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from m3n.features import Templates
from m3n.io.matrices import renumbered
from m3n.shards.arrays import GrowingArrays
from m3n.shards.blocks import Block, Matrix, Rows, names_of
from m3n.shards.dictionary import (
    EACH,
    TEXTS,
    Collision,
    Counts,
    Numbering,
    TooMany,
    by_frequency,
    gathered,
    write_texts,
)
from m3n.shards.sizes import in_words
from m3n.shards.values import GrowingValues, Placed, learn, packed_templates, with_values

PREFIXES = ("", "pair_")  # of the arrays of positions, and of pairs of them
SEEDS = range(8)
REMEDY = "allow more memory, raise min_freq, or number attributes by their hash (hash_bits, --hash)"


class Plan(NamedTuple):
    """How the columns of blocks are numbered in the end.

    Attributes
    ----------
    width : int
        How many columns there are.
    known : Numbering or None
        The numbers of attributes; None: columns stay as they are.
    seed : int
        That of the keys of attributes.
    """

    width: int
    known: Numbering | None = None
    seed: int = 0

    def apply(self, rows: Rows) -> Matrix:
        """The rows with their final columns."""
        if self.known is None or rows.names is None:
            return rows.matrix
        return renumbered(rows.matrix, self.known.find(rows.names.keys(self.seed)[:, 0]), self.width)


class Dictionary:
    """The attributes of all blocks.

    Parameters
    ----------
    folder : Path
        Where to work.
    blocks : sequence of Path
        The files of all blocks.
    paired : bool
        Whether there are attributes of pairs.
    memory : int
        Bytes that may be taken.
    """

    def __init__(self, folder: Path, blocks: Sequence[Path], paired: bool, memory: int):
        self.folder, self.blocks, self.memory = folder, blocks, memory
        self.prefixes = PREFIXES[: 1 + paired]

    def plans(self, min_freq: int) -> list[Plan]:
        """Number the attributes that occur so often.

        Parameters
        ----------
        min_freq : int
            How often.
        """
        for seed in SEEDS:
            try:
                known = self._numberings(min_freq, seed)
            except Collision:
                continue
            if not len(known[0].keys):
                raise ValueError(f"no attribute occurs {min_freq} times or more; lower min_freq")
            return [Plan(len(one.keys), one, seed) for one in known]
        raise RuntimeError("different attributes have the same keys, whatever the seed: the hash is not one")

    def _numberings(self, min_freq: int, seed: int) -> list[Numbering]:
        """The numbers of attributes of positions and of pairs, by falling frequency."""
        part = self.memory // 8
        counts = [Counts(self.folder / f"{prefix}counts-{seed}", part) for prefix in self.prefixes]
        for path in self.blocks:
            block = Block.load(path)
            for own, rows in zip(counts, (block.rows, block.pairs), strict=False):
                assert rows is not None and rows.names is not None
                times = np.bincount(rows.matrix.indices, minlength=len(rows.names))
                own.add(rows.names.keys(seed), times)
        self.begins = [own.begins for own in counts]
        most = self.memory // 2 // EACH
        try:
            return [by_frequency(own.kept(min_freq), most, self.folder) for own in counts]
        except TooMany:
            raise ValueError(
                f"there are more than {most:,} attributes that occur {min_freq} times or more, and numbering them "
                f"takes more than its share of the memory, {in_words(self.memory)}: {REMEDY}"
            ) from None

    def write_texts(self, plan: Plan, arrays: GrowingArrays) -> None:
        """Write the attributes as texts, in the order of their numbers.

        Parameters
        ----------
        plan : Plan
            Of positions.
        arrays : GrowingArrays
            Where to.
        """
        pieces = (
            (numbers[low : low + TEXTS], names.take(own[low : low + TEXTS]))
            for numbers, names, own in self._named(0, plan)
            for low in range(0, len(own), TEXTS)
        )
        write_texts(pieces, plan.width, arrays)

    def learn(self, templates: Templates, plans: list[Plan], arrays: GrowingArrays) -> list[Plan]:
        """The plans in which attributes have the numbers that templates give them; what these learn is written.

        Parameters
        ----------
        templates : Templates
            The templates.
        plans : list of Plan
            By falling frequency.
        arrays : GrowingArrays
            Where to.
        """
        values, found = GrowingValues(templates), list[Plan]()
        placed = [Placed.of(self._named(k, plan), plan.width, values) for k, plan in enumerate(plans)]
        self._check_values(values)
        fitted = with_values(templates, values.values())
        for k, plan in enumerate(plans):
            assert plan.known is not None
            numbers = learn(fitted, placed[k], pair=k == 1)
            known = plan.known._replace(numbers=numbers[plan.known.numbers])
            found.append(plan._replace(known=known))
        for name, array in packed_templates(fitted).items():
            arrays.add(name, array)
        return found

    def _check_values(self, values: GrowingValues) -> None:
        if values.size > self.memory // 2:
            raise ValueError(
                f"the values of columns take {in_words(values.size)}, more than half of the memory, "
                f"{in_words(self.memory)}: {REMEDY}"
            )

    def _named(self, k: int, plan: Plan) -> Iterator[tuple[np.ndarray, Any, np.ndarray]]:
        """Block by block the attributes that stood there first: their numbers, all names, and which these are."""
        assert plan.known is not None
        for numbers, path, own in gathered(self.blocks, self.begins[k], plan.known.firsts):
            yield numbers, names_of(path, self.prefixes[k]), own
