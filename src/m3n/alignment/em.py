"""IBM Model 1 and the HMM of word alignment in both directions, by EM, each alone or both in agreement.

Maximise the likelihood of target sentences given source sentences (*forward*) and the other way round (*backward*),
over tables t of translations and, for the HMM, jumps c. The E-step (``compiled.sweeps.translation``) gives posteriors
P(i, j) of links, the M-step

    t(f | e) = (n(e, f) + k u(f)) / (sum_f n(e, f) + k),   n(e, f) = sum of P over the cells of the type (e, f)

with c as in ``jumps``. Without a prior k is 0. Otherwise every word begins with k links, to all words by their
frequencies u: a Dirichlet prior, whose posterior EM then maximises. Words that were seen once would otherwise be sure
of whatever they stand beside. Only n / (sum + k) is kept for every type, k / (sum + k) for every word.

*Agreement*: both directions learn from the product P(i, j) P'(i, j) of their posteriors instead of each from its own,
without normalisation. A link counts where both directions believe in it. The result is no maximum of either
likelihood; it is far better at alignment.

Cost of an iteration: O(cells) for Model 1, O(cells * words of a sentence) for the HMM.

Brown et al., "The mathematics of statistical machine translation" (Computational Linguistics 1993); Liang, Taskar,
Klein, "Alignment by agreement" (NAACL 2006).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from m3n.alignment.jumps import even_jumps, fitted_jumps
from m3n.alignment.lexicon import Lexicon
from m3n.alignment.pairs import Corpus, Lexica
from m3n.compiled.sweeps.cooccurrence import PackedPairs, collect
from m3n.compiled.sweeps.translation import Expected, Model, expect
from m3n.packed import Threads


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

    def posteriors(self, packed: PackedPairs, slots: np.ndarray, swapped: bool, threads: Threads) -> Posteriors:
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
        """
        generated = packed.source if swapped else packed.target
        pairs = len(packed.cells) - 1
        expected = Expected(np.empty(packed.cells[-1]), np.empty(len(generated)), np.empty(pairs))
        longest = max(_longest(packed.source_starts), _longest(packed.target_starts))
        lanes = threads.lanes(packed.cells)
        found = threads.run(expect, lanes, packed, slots, self.plain(), swapped, longest, expected)
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


@dataclass(frozen=True)
class Settings:
    """How to train.

    Attributes
    ----------
    hmm : bool
        Whether the HMM follows Model 1.
    joint : bool
        Whether the directions learn in agreement.
    iterations : int
        Of each model.
    prior : float
        How many links every word has beforehand.
    skip : float
        Probability of a null.
    even : float
        Weight of jumps to all words alike.
    reach : int
        The longest jump that is told apart from longer ones.
    """

    hmm: bool
    joint: bool
    iterations: int
    prior: float
    skip: float
    even: float
    reach: int


class Trainer:
    """Both directions on their way.

    Parameters
    ----------
    corpus : Corpus
        Sentence pairs.
    lexica : Lexica
        Their words.
    settings : Settings
        How to train.
    threads : Threads
        Who works.

    Attributes
    ----------
    directions : tuple of two Direction
        Forward and backward.
    likelihoods : list of (float, float)
        Log-likelihoods of both directions before every iteration.
    """

    def __init__(self, corpus: Corpus, lexica: Lexica, settings: Settings, threads: Threads):
        self.corpus, self.settings, self.threads = corpus, settings, threads
        self.owners = corpus.types.owners()
        both = ((lexica.source, lexica.target), (lexica.target, lexica.source))
        self.directions = tuple(self._even(*lexicons) for lexicons in both)
        self.likelihoods: list[tuple[float, float]] = []

    def _even(self, generating: Lexicon, generated: Lexicon) -> Direction:
        """All translations alike."""
        words, settings = len(generated), self.settings
        table, null = np.full(len(self.corpus.types), 1.0 / words), np.full(words + 1, 1.0 / words)
        usual = np.append(generated.frequencies, 1.0)  # an unknown word as if seen once
        usual /= usual.sum()
        return Direction(table, np.zeros(len(generating) + 1), usual, null, np.empty(0), settings.skip, settings.even)

    def run(self, watch: Callable[[Trainer], None] | None = None) -> None:
        """All iterations.

        Parameters
        ----------
        watch : callable or None
            Is given the trainer after every iteration.
        """
        total = self.settings.iterations * (1 + self.settings.hmm)
        for done in range(total):
            if done == self.settings.iterations:
                jumps = even_jumps(self.settings.reach)
                self.directions = tuple(replace(direction, jumps=jumps) for direction in self.directions)
            self.step()
            if watch is not None:
                watch(self)

    def step(self) -> None:
        """One iteration of both directions."""
        corpus = self.corpus
        found = [
            direction.posteriors(corpus.packed, corpus.slots, swapped, self.threads)
            for direction, swapped in zip(self.directions, (False, True), strict=True)
        ]
        forward, backward = (float(posteriors.expected.values.sum()) for posteriors in found)
        self.likelihoods.append((forward, backward))
        if self.settings.joint:
            np.multiply(found[0].expected.links, found[1].expected.links, out=found[0].expected.links)
            shared = self._counts(found[0].expected.links)
            counts = [shared, shared]
        else:
            counts = [self._counts(posteriors.expected.links) for posteriors in found]
        groups = (self.owners, corpus.types.columns)
        tokens = (corpus.packed.target, corpus.packed.source)
        self.directions = tuple(
            _maximised(*each, prior=self.settings.prior)
            for each in zip(self.directions, found, counts, groups, tokens, strict=True)
        )

    def _counts(self, links: np.ndarray) -> np.ndarray:
        """Expected links of every type."""
        corpus, counts = self.corpus, np.empty(len(self.corpus.types))
        lanes = self.threads.lanes(corpus.where.starts)
        rows = corpus.types.rows
        self.threads.run(collect, lanes, corpus.packed, corpus.where, rows, corpus.slots, links, counts)
        return counts


def _maximised(
    direction: Direction, found: Posteriors, counts: np.ndarray, group: np.ndarray, tokens: np.ndarray, prior: float
) -> Direction:
    """The M-step of one direction; ``group`` is the generating word of every type."""
    totals = np.bincount(group, counts, len(direction.rest)) + prior  # 0 for unknown words without a prior
    shares = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0.0)
    null = np.bincount(tokens, found.expected.null, len(direction.null))
    return replace(
        direction,
        table=counts * shares[group],
        rest=prior * shares,
        null=(null + prior * direction.usual) / (null.sum() + prior),
        jumps=fitted_jumps(found.jumps, found.departures, direction.jumps),
    )
