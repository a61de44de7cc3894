"""Answers that hold the truth as often as was asked for: sets of whole outputs, and sets of labels per position.

``calibrate`` looks at labelled sequences that training has not seen, and settles two thresholds (``conformal``):

    set of outputs of x   { y : -log p_T(y | x) <= q }  and the best output
    set of labels at t    { j : p_T(y_t = j | x) >= s }  and the likeliest label

The first holds the right labels of a whole sequence with probability 1 - alpha at least, and the share of positions
whose right label is missing in the second is alpha at most in expectation, whatever the model, its temperature T and
the data: all that is needed is that new sequences are drawn like the held-out ones. No set is empty. Of all rules for a
given coverage, a threshold on p has the smallest sets on average, if p is true. (Sadinle, Lei, Wasserman, "Least
Ambiguous Set-Valued Classifiers With Bounded Error Levels", 2019.)

The promise holds for thresholds from sequences that had no part in the choice of T. So T is fitted on a part of the
held-out sequences that is drawn at random, and the thresholds come from the others.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from m3n.estimators.answer_sets import (
    Coverage,
    OutputSet,
    Right,
    joined,
    judged,
    label_sets,
    least_share,
    likely_outputs,
    most_surprise,
    output_sets,
)
from m3n.estimators.calibration import UNKNOWN, Calibrated, best_temperature
from m3n.estimators.chains import Scored
from m3n.estimators.conformal import check_alpha, least_examples, share_threshold, surprise_threshold
from m3n.estimators.span_shares import Span, predicted_spans, read_classes
from m3n.solvers.base import seed_of

TEMPERATURE_SHARE = 0.2  # of the held-out sequences; a fifth is plenty for one number
WITHOUT = (
    "this model has not been calibrated, so its sets would promise nothing: call calibrate(X, y, alpha) on data that "
    "training has not seen"
)


@dataclass(frozen=True)
class CoverageReport:
    """What was promised, and what was found on other labelled data.

    Attributes
    ----------
    sequences : int
        How many there were; empty ones do not count.
    outputs_wanted, outputs_found : float
        Share of sets of outputs that hold the right one.
    outputs_size : float
        Mean size of these sets; where not all are complete, it is larger than this.
    complete : float
        Share of sets of outputs that are listed as a whole.
    labels_wanted, labels_found : float
        Mean share of the positions of a sequence whose set of labels holds the right one.
    labels_size : float
        Mean number of labels at a position.
    """

    sequences: int
    outputs_wanted: float
    outputs_found: float
    outputs_size: float
    complete: float
    labels_wanted: float
    labels_found: float
    labels_size: float

    def __str__(self) -> str:
        least = "" if self.complete == 1.0 else "at least "
        return (
            f"whole outputs: {self.outputs_found:.1%} of the sets hold the right one ({self.outputs_wanted:.4g} was "
            f"asked for), mean size {least}{self.outputs_size:.3g}; labels: {self.labels_found:.1%} are in their sets "
            f"({self.labels_wanted:.4g} was asked for), mean size {self.labels_size:.3g}"
        )


class Covered(Calibrated):
    """A tagger whose answers may be sets, with a guarantee of how often these hold the truth."""

    coverage_: Coverage | None
    random_state: Any

    def calibrate(
        self,
        X: Any,
        y: Any,
        alpha: float = 0.1,
        *,
        label_alpha: float | None = None,
        temperature_share: float = TEMPERATURE_SHARE,
    ) -> Self:
        """Settle how large sets of answers must be to hold the truth as often as wanted, on held-out data.

        The thresholds become ``coverage_``, and ``save`` keeps them; no predicted label changes. Sets of outputs then
        hold the right one with probability 1 - alpha at least, and sets of labels miss a share of ``label_alpha`` of
        the right labels of a sequence at most, in expectation over held-out and new sequences that are drawn alike.

        Parameters
        ----------
        X : sequences
            As in ``fit``, but not the training data; drawn like those to be predicted. Empty ones do not count.
        y : sequences of labels
            The right labels. Those that the model does not know count as missed.
        alpha : float
            How often a set of outputs may miss the right one.
        label_alpha : float, optional
            The share of labels of a sequence that may be missing in sets of labels; the default is ``alpha``.
        temperature_share : float
            The part of the sequences, drawn by ``random_state``, by which ``temperature_`` is chosen first, as by
            ``calibrate_temperature``; thresholds come from the others. With 0, ``temperature_`` stays what it is and
            all sequences make thresholds: it must come from other data than these then, or the promise does not hold.

        Returns
        -------
        Self
            The estimator itself.
        """
        alphas = alpha, alpha if label_alpha is None else label_alpha
        check_alpha(alphas[0])
        check_alpha(alphas[1], "label_alpha")
        if not 0.0 <= temperature_share < 1.0:
            raise ValueError(f"temperature_share must be at least 0 and below 1, got {temperature_share}")
        pieces, right = self._held_out(X, y)
        lengths = np.concatenate([piece.structure.lengths for piece in pieces])
        first = _drawn(len(lengths), temperature_share, min(alphas), seed_of(self.random_state))
        chosen = np.repeat(first, lengths) & (right != UNKNOWN)
        fitted = best_temperature(pieces, np.where(chosen, right, UNKNOWN)) if chosen.any() else self._warmth(None)
        found = joined(judged(piece, part, fitted) for piece, part in _side_by_side(pieces, right))
        self.coverage_ = thresholds(found, lengths, first, (*alphas, fitted))
        self.temperature_ = fitted
        return self

    def predict_set(self, X: Any, most: int = 1000) -> list[OutputSet]:
        """Sets of outputs, of which a share of 1 - alpha or more hold the right one; for calibrated models.

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        most : int
            How many outputs of a sequence are listed at most; ``complete`` says whether a set has more. No set has more
            than 1 + exp(``coverage_.surprise``).

        Returns
        -------
        list of OutputSet
            One per sequence: labels with their probabilities, best first.
        """
        if most < 1:
            raise ValueError(f"most must be at least 1, got {most}")
        ask = partial(output_sets, coverage=self._covered(), most=most)
        return self._each(X, None, ask, OutputSet([([], 1.0)], True))

    def predict_label_sets(self, X: Any) -> list[list[list[Any]]]:
        """Sets of labels per position, which miss a share of ``label_alpha`` or less of the right ones in expectation.

        For calibrated models. The likeliest label of a position is always in its set.

        Parameters
        ----------
        X : sequences
            As in ``fit``.

        Returns
        -------
        list of lists of lists
            For every position of every sequence its labels, likeliest first.
        """
        return self._each(X, None, partial(label_sets, coverage=self._covered()), [])

    def predict_spans(self, X: Any, temperature: float | None = None) -> list[list[Span]]:
        """The chunks of the prediction, such as names, each with the probability that exactly this chunk stands there.

        That counts every labelling with the chunk, whatever it says elsewhere: no product of the probabilities of
        labels, which neighbours share.

        Parameters
        ----------
        X : sequences
            As in ``fit``; labels must write chunks: O, or a prefix and a kind. They are read as conlleval does.
        temperature : float, optional
            Of the probabilities, as in ``predict_marginals``; the default is ``temperature_``.

        Returns
        -------
        list of lists of Span
            (begin, end, label, probability) of the chunks of every sequence.
        """
        warmth = self._warmth(temperature)
        self._check_fitted()
        ask = partial(predicted_spans, temperature=warmth, reading=read_classes(self.classes_.tolist()))
        return self._each(X, None, ask, [])

    def coverage_report(self, X: Any, y: Any, most: int = 1000) -> CoverageReport:
        """How often the sets hold the truth on further labelled data, and how large they are.

        Parameters
        ----------
        X : sequences
            As in ``fit``; neither the training data nor those of ``calibrate``.
        y : sequences of labels
            The right labels; those that the model does not know are missed.
        most : int
            As in ``predict_set``. Whether a set holds the right output is known without a list of it.
        """
        coverage = self._covered()
        pieces, right = self._held_out(X, y)
        likely = (found for piece in pieces for found in likely_outputs(piece, coverage, most))
        sizes, complete = zip(*((len(found.logs), found.complete) for found in likely), strict=True)
        found = joined(
            judged(piece, part, coverage.temperature, coverage) for piece, part in _side_by_side(pieces, right)
        )
        lengths = np.concatenate([piece.structure.lengths for piece in pieces])
        inside = (found.shares >= least_share(coverage)) / np.repeat(lengths, lengths)
        return CoverageReport(
            sequences=len(lengths),
            outputs_wanted=1.0 - coverage.alpha,
            outputs_found=float((found.surprises <= most_surprise(coverage)).mean()),
            outputs_size=float(np.mean(sizes)),
            complete=float(np.mean(complete)),
            labels_wanted=1.0 - coverage.label_alpha,
            labels_found=float(inside.sum() / len(lengths)),
            labels_size=float(found.sizes.mean()),
        )

    def _covered(self) -> Coverage:
        """The thresholds, if there are any."""
        self._check_fitted()
        coverage = vars(self).get("coverage_")
        if coverage is None:
            raise ValueError(WITHOUT)
        return coverage

    @abstractmethod
    def _each(self, X: Any, fixed: Any, ask: Callable[[Scored], Iterable[Any]], nothing: Any) -> list[Any]:
        """What sequences with their scores are asked, and a copy of ``nothing`` for empty ones."""


def check_enough(count: int, alpha: float, temperature_share: float = TEMPERATURE_SHARE) -> int:
    """Refuse held-out data that are too few; returns how many sequences choose the temperature.

    Parameters
    ----------
    count : int
        How many held-out sequences there are, without empty ones.
    alpha : float
        The smaller one of ``alpha`` and ``label_alpha``.
    temperature_share : float
        The part that chooses the temperature.
    """
    first, least = math.ceil(count * temperature_share), least_examples(alpha)
    if count - first < least:
        left = f", {first} of which choose the temperature (temperature_share={temperature_share:g})" if first else ""
        raise ValueError(
            f"{count} sequences with labels are too few{left}: thresholds for alpha={alpha:g} come from {least} others "
            "at least; give more, or take a larger alpha"
        )
    return first


def thresholds(found: Right, lengths: np.ndarray, first: np.ndarray, settings: tuple[float, float, float]) -> Coverage:
    """Both thresholds from the sequences that have not chosen the temperature.

    Parameters
    ----------
    found : Right
        About all sequences.
    lengths : array of int (sequences,)
        Their positions.
    first : array of bool (sequences,)
        Those that have chosen the temperature.
    settings : tuple
        alpha, label_alpha and the temperature.
    """
    alpha, label_alpha, temperature = settings
    surprise = surprise_threshold(found.surprises[~first], alpha)
    share = share_threshold(found.shares[np.repeat(~first, lengths)], lengths[~first], label_alpha)
    return Coverage(alpha, label_alpha, int((~first).sum()), temperature, surprise, share)


def _side_by_side(pieces: Sequence[Scored], right: np.ndarray) -> Iterator[tuple[Scored, np.ndarray]]:
    """Every piece of the data with its part of the right labels."""
    ends = np.cumsum([piece.structure.lengths.sum() for piece in pieces])[:-1]
    return zip(pieces, np.split(right, ends), strict=True)


def _drawn(count: int, share: float, alpha: float, seed: int) -> np.ndarray:
    """Which sequences choose the temperature."""
    chosen = np.zeros(count, bool)
    chosen[np.random.default_rng(seed).permutation(count)[: check_enough(count, alpha, share)]] = True
    return chosen
