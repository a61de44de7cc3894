"""What is learnt from sentence pairs: words, which of them meet, and both directions of translation.

Words that never met, or were never seen, are taken for translations of each other if they are spelled alike, as names
and numbers are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from m3n.alignment.direction import Direction
from m3n.alignment.em import ALIKE, Settings, Trainer
from m3n.alignment.pairs import Corpus, Lexica, Types, Words
from m3n.alignment.statistics import dice_coefficients
from m3n.compiled.sweeps.cooccurrence import PackedPairs
from m3n.packed import Threads

LEAST, LEAST_DICE = 1e-6, 0.02  # what is smaller is taken for 0; of 25,000 sentence pairs a third of the types stays
Pairs = Sequence[tuple[Words, Words]]


@dataclass(frozen=True)
class TranslationModel:
    """Words and translations in both directions.

    Attributes
    ----------
    lexica : Lexica
        The words.
    types : Types
        Pairs of words that meet.
    dice : array (types,)
        Dice coefficients.
    directions : tuple of two Direction
        Forward and backward.
    """

    lexica: Lexica
    types: Types
    dice: np.ndarray
    directions: tuple[Direction, ...]

    def posteriors(self, pairs: Pairs, threads: Threads) -> list[tuple[np.ndarray, np.ndarray]]:
        """Probabilities of links in both directions.

        Parameters
        ----------
        pairs : sequence of (list of str, list of str)
            Sentence pairs.
        threads : Threads
            Who works.

        Returns
        -------
        list of pairs of arrays (source words, target words)
            That a target word comes from a source word, and the other way round.
        """
        if not pairs:
            return []
        packed = self.lexica.pack(pairs)
        slots = self._slots(pairs, packed, threads)
        found = (
            replace(direction, table=np.append(direction.table, [0.0, ALIKE]))
            .posteriors(packed, slots, swapped, threads)
            .expected.links
            for direction, swapped in zip(self.directions, (False, True), strict=True)
        )
        forward, backward = (_matrices(links, packed) for links in found)
        return list(zip(forward, backward, strict=True))

    def tables(self, pairs: Pairs, threads: Threads, *tables: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        """What tables say about the words of sentence pairs; 0 where these never met.

        Parameters
        ----------
        pairs : sequence of (list of str, list of str)
            Sentence pairs.
        threads : Threads
            Who works.
        *tables : arrays (types,)
            The tables.

        Returns
        -------
        list of tuples of arrays (source words, target words)
            One array per table.
        """
        packed = self.lexica.pack(pairs)
        slots = self.types.slots(packed, threads)
        found = [_matrices(np.append(table, 0.0)[slots], packed) for table in tables]
        return list(zip(*found, strict=True))

    def pruned(self) -> TranslationModel:
        """The same without the types that neither direction believes in, and that do not often occur together."""
        kept = self.dice >= LEAST_DICE
        for direction in self.directions:
            kept |= direction.table >= LEAST
        directions = tuple(replace(direction, table=direction.table[kept]) for direction in self.directions)
        return TranslationModel(self.lexica, self.types.select(kept), self.dice[kept], directions)

    def _slots(self, pairs: Pairs, packed: PackedPairs, threads: Threads) -> np.ndarray:
        """Slots of all cells, ``len(types)`` for words that never met, and the next one if these are spelled alike."""
        slots, missing = self.types.slots(packed, threads), len(self.types)
        for (source, target), own in zip(pairs, _split(slots, packed), strict=True):
            if set(source).isdisjoint(target):
                continue
            alike = np.array(source)[:, None] == np.array(target)
            own[(own == missing) & alike.ravel()] = missing + 1
        return slots


def _matrices(values: np.ndarray, packed: PackedPairs) -> list[np.ndarray]:
    """Values of cells as one matrix per sentence pair."""
    sizes = np.diff(packed.source_starts)
    return [own.reshape(size, -1) for own, size in zip(_split(values, packed), sizes, strict=True)]


def _split(values: np.ndarray, packed: PackedPairs) -> list[np.ndarray]:
    """Views of the values of every sentence pair."""
    return np.split(values, packed.cells[1:])[:-1]


def learn(
    pairs: Pairs, settings: Settings, threads: Threads, watch: Callable[[Trainer], None] | None = None
) -> tuple[TranslationModel, list[tuple[float, float]]]:
    """Train on sentence pairs; the model and the log-likelihoods of both directions before every iteration.

    Parameters
    ----------
    pairs : sequence of (list of str, list of str)
        Sentence pairs.
    settings : Settings
        How to train.
    threads : Threads
        Who works.
    watch : callable or None
        Is given the trainer after every iteration.
    """
    lexica = Lexica.read(pairs)
    packed = lexica.pack(pairs)
    corpus = Corpus.index(packed, lexica)
    trainer = Trainer(corpus, lexica, settings, threads)
    trainer.run(watch)
    model = TranslationModel(lexica, corpus.types, dice_coefficients(corpus, lexica), tuple(trainer.directions))
    return model.pruned(), trainer.likelihoods
