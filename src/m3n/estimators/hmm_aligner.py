"""Word alignment without labelled data: which words of two sentences translate each other.

Both directions of IBM Model 1 and of the HMM are trained by EM on sentence pairs alone (``m3n.alignment.em``), in
agreement if asked for. A link is predicted where the geometric mean of its probabilities in both directions reaches a
threshold.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

import m3n
from m3n.alignment import packing
from m3n.alignment.em import Settings, Trainer
from m3n.alignment.model import TranslationModel, learn
from m3n.alignment.pairs import read_pairs
from m3n.alignment.statistics import frequencies, ranks
from m3n.estimators import model_parts
from m3n.estimators.declaration import Declared, learnt
from m3n.estimators.forms import ALIGNMENTS, Form
from m3n.estimators.predictions import Predictions
from m3n.io import model_file
from m3n.io.alignments import Link
from m3n.packed import Threads

MODELS = ("model1", "hmm")
Both = tuple[np.ndarray, np.ndarray]


class HMMAligner(Declared):
    """Word aligner that learns from sentence pairs without links.

    Parameters
    ----------
    model : {"hmm", "model1"}
        The HMM, which begins with Model 1, or Model 1 alone: translations without regard to positions.
    joint : bool
        Whether both directions of translation learn in agreement, from the product of their posteriors. Otherwise each
        maximises its own likelihood.
    iterations : int
        Of EM, for each model.
    prior : float
        How many links every word has beforehand, to all words of the other language by their frequencies. Keeps words
        that were seen once from being sure of what they stand beside.
    leave_one_out : bool
        Whether, in training, every sentence pair is explained by what the other ones have taught. Without it, words
        that occur once confirm the first guess about them.
    null : float
        Probability that a word comes from no word of the other sentence.
    smoothing : float
        Weight of jumps to all words alike, beside those that were learnt.
    reach : int
        The longest jump that is told apart from longer ones.
    threshold : float
        A link is predicted if the geometric mean of its probabilities in both directions is not smaller.
    lowercase : bool
        Whether words are compared in small letters.
    letters : int or None
        Words that begin with the same letters, so many of them, are taken for one; None compares whole words. Where
        endings change and sentence pairs are few, 4 or 5 find more.
    n_jobs : int or None
        Number of threads; None takes all cores.
    verbose : bool
        Whether to show progress on the terminal.

    Attributes
    ----------
    model_ : TranslationModel
        Words, translation tables and jumps.
    likelihoods_ : list of (float, float)
        Log-likelihoods of target sentences given source sentences and the other way round, before every iteration of
        Model 1 and then of the HMM. Without ``joint``, ``prior`` and ``leave_one_out`` this is ordinary EM, and
        they never fall within a model.

    Examples
    --------
    >>> import m3n
    >>> pairs = [("the house".split(), "das Haus".split()), ("the book".split(), "das Buch".split())]
    >>> pairs += [("a book".split(), "ein Buch".split())]
    >>> m3n.HMMAligner(n_jobs=1).fit(pairs).predict([("a house".split(), "ein Haus".split())])
    [[(0, 0), (1, 1)]]
    """

    model: str = "hmm"
    joint: bool = True
    iterations: int = 5
    prior: float = 10.0
    leave_one_out: bool = True
    null: float = 0.1
    smoothing: float = 0.05
    reach: int = 10
    threshold: float = 0.5
    lowercase: bool = True
    letters: int | None = None
    n_jobs: int | None = None
    verbose: bool = False

    model_: TranslationModel = learnt()
    likelihoods_: list[tuple[float, float]] = learnt()

    _form: ClassVar[Form] = ALIGNMENTS

    def fit(self, X: Any, y: Any = None) -> HMMAligner:
        """Learn from sentence pairs.

        Parameters
        ----------
        X : sequence of (source words, target words)
            Sentence pairs; words are strings.
        y : None
            Not used.

        Returns
        -------
        HMMAligner
            The fitted estimator itself.
        """
        settings = self._settings()
        pairs = self._pairs(X)
        if not pairs:
            raise ValueError("X is empty: there is nothing to learn from")
        with _shown(self.verbose, settings) as watch:
            self.model_, self.likelihoods_ = learn(pairs, settings, Threads(self.n_jobs), watch)
        return self

    def predict(self, X: Any) -> list[list[Link]]:
        """The links of sentence pairs, sorted.

        Parameters
        ----------
        X : sequence of (source words, target words)
            Sentence pairs.
        """
        return Predictions(
            [(i, j) for i, j in np.argwhere(probabilities >= self.threshold).tolist()]
            for probabilities in self.predict_marginals(X)
        )

    def predict_marginals(self, X: Any) -> list[np.ndarray]:
        """How much both directions believe in every link: the geometric mean of its two probabilities.

        Parameters
        ----------
        X : sequence of (source words, target words)
            Sentence pairs.

        Returns
        -------
        list of arrays (source words, target words)
            One per pair.
        """
        return [np.sqrt(forward * backward) for forward, backward in self.directions(X)]

    def directions(self, X: Any) -> list[Both]:
        """Probabilities of links in both directions.

        Parameters
        ----------
        X : sequence of (source words, target words)
            Sentence pairs.

        Returns
        -------
        list of pairs of arrays (source words, target words)
            Probabilities that a target word comes from a source word (columns sum to 1 at most, the rest is null), and
            that a source word comes from a target word (the same of rows).
        """
        return self._fitted_model().posteriors(self._pairs(X), Threads(self.n_jobs))

    def translation(self, X: Any) -> list[Both]:
        """Translation probabilities of all words of sentence pairs, without regard to positions.

        Parameters
        ----------
        X : sequence of (source words, target words)
            Sentence pairs.

        Returns
        -------
        list of pairs of arrays (source words, target words)
            t(target word | source word) and t(source word | target word); 0 for words that never met.
        """
        forward, backward = self._fitted_model().directions
        return self._looked_up(X, forward.table, backward.table)

    def dice(self, X: Any) -> list[np.ndarray]:
        """Dice coefficients of all words of sentence pairs; 0 for words that never met.

        Parameters
        ----------
        X : sequence of (source words, target words)
            Sentence pairs.

        Returns
        -------
        list of arrays (source words, target words)
            One per pair.
        """
        return [dice for (dice,) in self._looked_up(X, self._fitted_model().dice)]

    def ranks(self, X: Any) -> list[Both]:
        """Places of words by frequency, 0 for the most frequent one; unknown words come after all others.

        Parameters
        ----------
        X : sequence of (source words, target words)
            Sentence pairs.

        Returns
        -------
        list of pairs of arrays (source words,), (target words,)
            Whole numbers.
        """
        return self._by_side(ranks, X)

    def frequencies(self, X: Any) -> list[Both]:
        """How often words were seen by ``fit``.

        Parameters
        ----------
        X : sequence of (source words, target words)
            Sentence pairs.

        Returns
        -------
        list of pairs of arrays (source words,), (target words,)
            Whole numbers.
        """
        return self._by_side(frequencies, X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that ``m3n.load`` reads.

        Parameters
        ----------
        path : path
            Where to; an existing file is replaced in one step.
        """
        meta, tensors = self._packed()
        model_file.write(path, "HMMAligner", meta | {"origin": {"m3n": m3n.__version__}}, tensors)

    def _packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The model as plain values and arrays."""
        plain, tensors = packing.packed(self._fitted_model())
        return {"params": model_parts.described_params(self), "model": plain, "likelihoods": self.likelihoods_}, tensors

    @classmethod
    def _restored(cls, meta: dict[str, Any], tensors: dict[str, np.ndarray]) -> HMMAligner:
        """The model that ``_packed`` took apart."""
        aligner = cls(**model_parts.restored_params(meta))
        aligner.likelihoods_ = [(float(forward), float(backward)) for forward, backward in meta["likelihoods"]]
        aligner.model_ = packing.unpacked(meta["model"], tensors)
        return aligner

    def _settings(self) -> Settings:
        """The parameters, checked."""
        if self.model not in MODELS:
            raise ValueError(f"model={self.model!r} is not available; choose one of {MODELS}")
        if self.iterations < 1 or self.reach < 1:
            raise ValueError(f"iterations and reach must be at least 1, got {self.iterations} and {self.reach}")
        if self.letters is not None and self.letters < 1:
            raise ValueError(f"letters must be at least 1, or None for whole words, got {self.letters}")
        if not 0.0 < self.threshold <= 1.0:
            raise ValueError(f"threshold must be above 0 and at most 1, got {self.threshold}")
        if not 0.0 <= self.prior < math.inf:
            raise ValueError(f"prior must not be negative, got {self.prior}")
        for name in ("null", "smoothing"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ValueError(f"{name} must be between 0 and 1, got {getattr(self, name)}")
        return Settings(
            hmm=self.model == "hmm",
            joint=bool(self.joint),
            iterations=self.iterations,
            prior=self.prior,
            leave_out=bool(self.leave_one_out),
            skip=self.null,
            even=self.smoothing,
            reach=self.reach,
        )

    def _pairs(self, X: Any) -> list[tuple[list[str], list[str]]]:
        """Sentence pairs as words are compared."""
        pairs = read_pairs(X, self.lowercase)
        if self.letters is None:
            return pairs
        return [([word[: self.letters] for word in a], [word[: self.letters] for word in b]) for a, b in pairs]

    def _fitted_model(self) -> TranslationModel:
        self._check_fitted()
        return self.model_

    def _looked_up(self, X: Any, *tables: np.ndarray) -> list[Any]:
        return self._fitted_model().tables(self._pairs(X), Threads(self.n_jobs), *tables)

    def _by_side(self, statistic: Any, X: Any) -> list[Both]:
        lexica, pairs = self._fitted_model().lexica, self._pairs(X)
        source, target = ([pair[side] for pair in pairs] for side in (0, 1))
        return list(zip(statistic(lexica.source, source), statistic(lexica.target, target), strict=True))


@contextmanager
def _shown(verbose: bool, settings: Settings) -> Iterator[Callable[[Trainer], None] | None]:
    """A line on standard error that tells the iteration, if asked for."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("counting words", total=settings.iterations * (1 + settings.hmm))

        def watch(trainer: Trainer) -> None:
            forward, backward = trainer.likelihoods[-1]
            progress.update(task, advance=1, description=f"log-likelihoods {forward:.4g} and {backward:.4g}")

        yield watch
