"""One direction of translation: how the words of one language come from those of the other, and its E-step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from m3n.compiled.sweeps.cooccurrence import PackedPairs
from m3n.compiled.sweeps.translation import Expected, LeftOut, Model, expect
from m3n.packed import Threads

NOTHING = LeftOut(np.empty(0), np.empty(0))


@dataclass(frozen=True)
class Direction:
    """How the words of one language come from those of the other.

    t(g | h) = table(g, h) + rest(h) usual(g); the last entries of arrays with one entry per word and one more are
    those of unknown words.

    Attributes
    ----------
    table : array (types,)
        What was learnt about words that meet.
    rest : array (generating words + 1,)
        How much is left to all words.
    usual : array (generated words + 1,)
        How frequent words are.
    null : array (generated words + 1,)
        t(generated | null).
    jumps : array (buckets,)
        c, empty for Model 1.
    skip : float
        Probability of a null.
    even : float
        Weight of jumps to all words alike.
    """

    table: np.ndarray
    rest: np.ndarray
    usual: np.ndarray
    null: np.ndarray
    jumps: np.ndarray
    skip: float
    even: float

    def plain(self) -> Model:
        """As compiled code has it."""
        return Model(self.table, self.rest, self.usual, self.null, self.jumps, np.array([self.skip, self.even]))

    def posteriors(
        self, packed: PackedPairs, slots: np.ndarray, swapped: bool, threads: Threads, left: LeftOut = NOTHING
    ) -> Posteriors:
        """The E-step.

        Parameters
        ----------
        packed : PackedPairs
            Sentence pairs.
        slots : array of int (cells,)
            Their types.
        swapped : bool
            Whether source words come from target words.
        threads : Threads
            Who works.
        left : LeftOut
            What every sentence pair has taught, and must not use itself.
        """
        generated = packed.source if swapped else packed.target
        pairs = len(packed.cells) - 1
        expected = Expected(np.empty(packed.cells[-1]), np.empty(len(generated)), np.empty(pairs))
        longest = max(_longest(packed.source_starts), _longest(packed.target_starts))
        lanes = threads.lanes(packed.cells)
        found = threads.run(expect, lanes, packed, slots, self.plain(), left, swapped, longest, expected)
        return Posteriors(expected, *(np.sum(arrays, axis=0) for arrays in zip(*found, strict=True)))


def _longest(starts: np.ndarray) -> int:
    return int(np.diff(starts).max(initial=1))


@dataclass(frozen=True)
class Posteriors:
    """What an E-step finds.

    Attributes
    ----------
    expected : Expected
        Probabilities of links and nulls, and log-likelihoods.
    jumps : array (buckets,)
        Expected jumps.
    departures : array (most words + 1, most words + 1)
        Expected jumps by length of the sentence and place of departure.
    """

    expected: Expected
    jumps: np.ndarray
    departures: np.ndarray

    @property
    def likelihood(self) -> float:
        """The log-likelihood of all sentences."""
        return float(self.expected.values.sum())
