"""Temperature scaling: probabilities that are as often right as they say, from scores that only rank.

A max-margin model is trained to tell outputs apart, not to have log-probabilities as scores. exp(score / T) has the
right order at every T, and the T that minimises

    - mean over positions of log p_T(right label | input)

on data that training has not seen makes probabilities of them. One number is learnt, by Brent's method on log T, and no
prediction changes. (Guo, Pleiss, Sun, Weinberger, "On Calibration of Modern Neural Networks", 2017.)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from m3n.estimators.chains import Scored, check_temperature
from m3n.estimators.inputs import Inputs, flat_labels

LEAST, MOST = 1e-2, 1e2  # temperatures that are tried
PRECISION = 1e-3  # of log T: a thousandth of T
TINY = np.finfo(float).tiny  # for the logarithm of what is impossible
UNKNOWN = -1


class Calibrated(ABC):
    """A tagger whose probabilities have a temperature of their own."""

    classes_: np.ndarray
    reader_: Any
    temperature_: float

    def calibrate_temperature(self, X: Any, y: Any) -> Self:
        """Choose the temperature of all probabilities: the one with the least log loss on held-out data.

        It becomes ``temperature_``, and ``save`` keeps it; no predicted label changes. Labels that the model does not
        know do not count.

        Parameters
        ----------
        X : sequences
            As in ``fit``, but not the training data: on these a model is surer than on others.
        y : sequences of labels
            The right labels.

        Returns
        -------
        Self
            The estimator itself.
        """
        self.temperature_ = best_temperature(*self._held_out(X, y))
        return self

    def log_loss(self, X: Any, y: Any, temperature: float | None = None) -> float:
        """Mean negative log-probability of the right labels: what ``calibrate_temperature`` minimises.

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        y : sequences of labels
            The right labels; those that the model does not know do not count.
        temperature : float, optional
            Of the probabilities; the default is ``temperature_``.
        """
        return log_loss(*self._held_out(X, y), self._warmth(temperature))

    def _warmth(self, temperature: float | None) -> float:
        """The temperature that was asked for, or the model's own; an imported model has none."""
        chosen = vars(self).get("temperature_", 1.0) if temperature is None else temperature
        check_temperature(chosen)
        return chosen

    def _held_out(self, X: Any, y: Any) -> tuple[list[Scored], np.ndarray]:
        """Sequences with their scores, and the numbers of the right labels."""
        self._check_fitted()
        inputs = self.reader_.read(X)
        if not inputs.lengths.any():
            raise ValueError("X is empty: there is nothing to calibrate on")
        right = numbers_of(flat_labels(y, inputs.lengths), self.classes_.tolist())
        return list(self._scored(inputs, None)), right

    @abstractmethod
    def _check_fitted(self) -> None:
        """Refuse to go on before ``fit``."""

    @abstractmethod
    def _scored(self, inputs: Inputs, given: np.ndarray | None) -> Iterator[Scored]:
        """Sequences with their scores, as many at a time as memory should hold."""


def numbers_of(labels: Sequence[object], classes: Sequence[object]) -> np.ndarray:
    """The numbers of labels, or UNKNOWN for those that no model could predict.

    Parameters
    ----------
    labels : sequence of labels
        The right labels, one sequence after another.
    classes : sequence of labels
        Those of the model.
    """
    known = {label: k for k, label in enumerate(classes)}
    numbers = np.array([known.get(label, UNKNOWN) for label in labels], dtype=np.int64)
    if (numbers == UNKNOWN).all():
        raise ValueError(f"the model knows none of the labels of y; it knows {list(classes)!r:.300}")
    return numbers


def log_loss(pieces: Sequence[Scored], right: np.ndarray, temperature: float) -> float:
    """Mean negative log-probability of the right labels.

    Parameters
    ----------
    pieces : sequence of Scored
        Sequences with their scores.
    right : array of int (positions,)
        The numbers of the right labels; positions with UNKNOWN do not count.
    temperature : float
        Of the probabilities.
    """
    fresh = (replace(piece, theta=tuple(array.copy() for array in piece.theta)) for piece in pieces)
    shares = np.concatenate([piece.marginals(temperature) for piece in fresh])  # which write over their scores
    rows = np.flatnonzero(right != UNKNOWN)
    return float(-np.log(np.maximum(shares[rows, right[rows]], TINY)).mean())


def best_temperature(pieces: Sequence[Scored], right: np.ndarray) -> float:
    """The temperature with the least ``log_loss``.

    Parameters
    ----------
    pieces, right
        As in ``log_loss``.
    """
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda log: log_loss(pieces, right, math.exp(log)),
        bounds=(math.log(LEAST), math.log(MOST)),
        method="bounded",
        options={"xatol": PRECISION},
    )
    return math.exp(found.x)
