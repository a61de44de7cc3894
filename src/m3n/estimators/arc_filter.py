"""Which arcs of a sentence are worth a look: a small model of arcs looks at all of them, a large one at those it keeps.

A sentence of L words has L^2 arcs, and hardly five of them per word are ever likely. The filter is a conditional random
field over the same trees with a few templates. It keeps the arcs whose probability is at least ``share`` of that of the
likeliest head of the word, and those of its best tree, so that there always is a tree. Training keeps the right arcs,
too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from m3n.features import AnchoredTemplates
from m3n.features.arcs import arc_codes
from m3n.features.words import WordTable
from m3n.packed import Threads
from m3n.problem import Problem
from m3n.run.loop import minimize
from m3n.structures import Arcs, Structure

Space = Callable[[Arcs], Structure]
EFFORT = 0.05, 40  # relative gap and passes: what a filter says changes little after that
STRENGTH = 10.0  # lam in units of 1/n: an arc has some thirty features
ENOUGH = 3000  # sentences to train on: more of them hardly change what it keeps


@dataclass(frozen=True)
class ArcFilter:
    """A filter of arcs.

    Attributes
    ----------
    templates : AnchoredTemplates
        What it sees.
    space : callable
        From candidate arcs to the trees over them.
    share : float
        How likely an arc must be, compared with the likeliest one of the same word; 0 keeps all.
    """

    templates: AnchoredTemplates
    space: Space
    share: float

    def train(
        self, words: WordTable, heads: list[list[int]], counts: np.ndarray | None = None, n_jobs: int | None = None
    ) -> np.ndarray:
        """Its weights, from sentences with their trees, or from some of them, evenly spread, where there are many.

        Parameters
        ----------
        words : WordTable
            The sentences.
        heads : list of lists of int
            Their trees.
        counts : array (sentences,), optional
            How often every sentence counts.
        n_jobs : int, optional
            Number of threads.
        """
        chosen = np.linspace(0, len(heads) - 1, min(len(heads), ENOUGH)).astype(np.int64)
        words, heads = words.only(chosen), [heads[i] for i in chosen]
        counts = None if counts is None else counts[chosen]
        arcs, lam = Arcs.all(words.lengths), STRENGTH / (len(chosen) if counts is None else counts.sum())
        features, trees = arc_codes(self.templates, words, arcs, Threads(n_jobs)), self.space(arcs)
        problem = Problem(trees, features, heads, lam=lam, sample_weight=counts, temperature=1.0, n_jobs=n_jobs)
        rtol, most = EFFORT
        return minimize(problem, rtol=rtol, max_passes=most).w

    def kept(self, words: WordTable, w: np.ndarray, threads: Threads) -> np.ndarray:
        """Which of all arcs are kept, of every sentence: array of bool (arcs,)."""
        arcs = Arcs.all(words.lengths)
        if not self.share:
            return np.ones(len(arcs.head), bool)
        structure, features = self.space(arcs), arc_codes(self.templates, words, arcs, threads)
        theta = features.scores(w, (np.empty(len(arcs.head)),), threads)
        best = structure.encode(structure.hard(theta, threads)[1])[0] > 0.0
        _, (marginal,) = structure.soft(theta, 1.0, threads)
        word = arcs.word_first  # arcs are sorted by their dependents
        likeliest = np.repeat(np.maximum.reduceat(marginal, word[:-1]), np.diff(word))
        return best | (marginal >= self.share * likeliest)


def right_arcs(arcs: Arcs, heads: list[list[int]]) -> np.ndarray:
    """Which arcs are those of some trees: array of bool (arcs,)."""
    joined = np.concatenate([np.asarray(tree) for tree in heads])
    word = np.cumsum(arcs.lengths)[arcs.sentence] - arcs.lengths[arcs.sentence] + arcs.dependent - 1
    return arcs.head == joined[word]
