"""IBM Model 1 and the HMM of word alignment in both directions, by EM, each alone or both in agreement.

Maximise the likelihood of target sentences given source sentences (*forward*) and the other way round (*backward*),
over tables t of translations and, for the HMM, jumps c. The E-step (``compiled.sweeps.translation``) gives posteriors
P(i, j) of links, the M-step

    t(f | e) = (n(e, f) + k u(f)) / (sum_f n(e, f) + k),   n(e, f) = sum of P over the cells of the type (e, f)

with c as in ``jumps``. Without a prior k is 0. Otherwise every word begins with k links, to all words by their
frequencies u: a Dirichlet prior, whose posterior EM then maximises. Words that were seen once would otherwise be sure
of whatever they stand beside. A tenth of a word's prior goes to the word that is spelled alike, if the two ever meet:
names and numbers. Only n / (sum + k) is kept for every type, k / (sum + k) for every word.

*Leaving out*: a sentence pair is explained by what the others have taught. From the counts that the E-step uses, those
that the pair itself added in the last iteration are taken away, so a word that occurs nowhere else is as good as
unknown there, and does not confirm the first guess about it for ever.

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
from typing import NamedTuple

import numpy as np

from m3n.alignment.direction import NOTHING, Direction, Posteriors
from m3n.alignment.jumps import even_jumps, fitted_jumps
from m3n.alignment.lexicon import Lexicon
from m3n.alignment.pairs import Corpus, Lexica
from m3n.compiled.sweeps.cooccurrence import collect
from m3n.compiled.sweeps.translation import LeftOut
from m3n.packed import Threads

ALIKE = 0.1  # share of the prior that a word of the same spelling gets: names and numbers are translated by themselves


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
    leave_out : bool
        Whether every sentence pair is explained by what the others have taught.
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
    leave_out: bool
    skip: float
    even: float
    reach: int


class _Side(NamedTuple):
    """What an E-step and an M-step must know of a direction."""

    swapped: bool
    group: np.ndarray  # (types,) the generating words
    tokens: np.ndarray  # the generated words of all sentences


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
    directions : list of two Direction
        Forward and backward.
    likelihoods : list of (float, float)
        Log-likelihoods of both directions before every iteration.
    """

    def __init__(self, corpus: Corpus, lexica: Lexica, settings: Settings, threads: Threads):
        self.corpus, self.settings, self.threads = corpus, settings, threads
        owners, columns = corpus.types.owners(), corpus.types.columns
        self.sides = _Side(False, owners, corpus.packed.target), _Side(True, columns, corpus.packed.source)
        self.alike = lexica.spelled_alike()[owners] == columns
        self.directions = [self._even(lexica.source, lexica.target), self._even(lexica.target, lexica.source)]
        self.left = [NOTHING, NOTHING]
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
                self.directions = [replace(direction, jumps=jumps) for direction in self.directions]
            self.step()
            if watch is not None:
                watch(self)

    def step(self) -> None:
        """One iteration of both directions."""
        forward, backward = (
            direction.posteriors(self.corpus.packed, self.corpus.slots, side.swapped, self.threads, left)
            for direction, side, left in zip(self.directions, self.sides, self.left, strict=True)
        )
        self.likelihoods.append((forward.likelihood, backward.likelihood))
        if self.settings.joint:
            np.multiply(forward.expected.links, backward.expected.links, out=forward.expected.links)
            counts = self._counts(forward.expected.links)
            self._maximise(0, forward, forward.expected.links, counts)
            self._maximise(1, backward, forward.expected.links, counts)
        else:
            for k, found in enumerate((forward, backward)):
                self._maximise(k, found, found.expected.links, self._counts(found.expected.links))

    def _counts(self, links: np.ndarray) -> np.ndarray:
        """Expected links of every type."""
        corpus, counts = self.corpus, np.empty(len(self.corpus.types))
        lanes = self.threads.lanes(corpus.where.starts)
        rows = corpus.types.rows
        self.threads.run(collect, lanes, corpus.packed, corpus.where, rows, corpus.slots, links, counts)
        return counts

    def _maximise(self, k: int, found: Posteriors, links: np.ndarray, counts: np.ndarray) -> None:
        """The M-step of one direction."""
        before, (_, group, tokens), prior = self.directions[k], self.sides[k], self.settings.prior
        totals = np.bincount(group, counts, len(before.rest)) + prior
        shares = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0.0)  # none without links and prior
        spelled = np.bincount(group, self.alike, len(totals))  # 1 for words that meet one that is spelled alike
        null = np.bincount(tokens, found.expected.null, len(before.null))
        self.directions[k] = replace(
            before,
            table=(counts + prior * ALIKE * self.alike) * shares[group],
            rest=prior * (1.0 - ALIKE * spelled) * shares,
            null=(null + prior * before.usual) / (null.sum() + prior),
            jumps=fitted_jumps(found.jumps, found.departures, before.jumps),
        )
        if self.settings.leave_out:
            self.left[k] = LeftOut(links, totals)
