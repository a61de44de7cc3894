"""Predictions that are proven to be those of the exact optimum.

A trained model has weights w and a bound on how far the optimum w* can be from them, |w - w*| <= r (``run.radius``).
Scores of outputs change by at most r times the norm of a difference of features on the way from w to w*. A label is
*final* if every output with another label at its position stays behind the prediction all the same: whatever longer
training would change, it is not this label. ``compiled.oracles.chain_final`` has the bound and its proof.

The norm is that of the regulariser: with ``strengths``, features of a group count 1/sqrt(strength) times. Attributes
that training has not seen have no weight in the optimum either. A kernel model has left out some of its inputs, by
which a score of x has changed by at most error sqrt(k(x, x)): as if r were larger by sqrt(2) error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from m3n.compiled.oracles.chain_final import Changes, Scores, lead
from m3n.estimators.chains import Scored
from m3n.estimators.inputs import Inputs
from m3n.estimators.kernel_scores import Support, transformed
from m3n.estimators.matrices import Matrix

ROUNDING = 1e-9  # of scores: what leads by less may be a tie


@dataclass(frozen=True)
class FinalPredictions:
    """Predictions, and which of them the exact optimum shares; ``print`` says how many.

    Attributes
    ----------
    labels : list of lists
        The predicted labels of every sequence.
    positions : list of arrays of bool
        Which of them are final.
    radius : float
        How far the optimum can be from the model's weights.
    """

    labels: list[list[Any]]
    positions: list[np.ndarray]
    radius: float

    @property
    def sequences(self) -> np.ndarray:
        """Which sequences have final labels alone."""
        return np.array([bool(own.all()) for own in self.positions])

    @property
    def share(self) -> float:
        """The share of labels that are final; 1 if there are none."""
        return float(np.concatenate([np.ones(1, bool), *self.positions])[1:].mean()) if self._count else 1.0

    @property
    def _count(self) -> int:
        return sum(map(len, self.positions))

    def __str__(self) -> str:
        whole = int(self.sequences.sum())
        return (
            f"{self.share:.1%} of {self._count:,} labels, and all labels of {whole:,} of {len(self.labels):,} "
            f"sequences, are proven to be those of the exact optimum (which is at most {self.radius:.3g} away)"
        )


@dataclass(frozen=True)
class Ball:
    """Where the optimum is, for a linear chain.

    Attributes
    ----------
    radius : float
        Around the model's weights.
    labels : int
        How many there are.
    factors : mapping from str to float
        By which features of every group count.
    boundaries : bool
        Whether starts and ends have weights.
    pattern : csr_array or None
        Which attributes have a weight with which labels; None: all with all.
    kernel_model : Support, Transformed or None
        What scores attributes, if these have no weights.
    """

    radius: float
    labels: int
    factors: Mapping[str, float]
    boundaries: bool
    pattern: Any = None
    kernel_model: Any = None

    def final(self, scored: Scored, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the predicted labels (positions,), and which of them are final."""
        structure, theta = scored.structure, scored.theta
        values, labelling = structure.hard(theta, scored.threads)
        found = np.empty(len(labelling))
        changes = Changes(self._node(inputs.matrix, labelling), self._edge(inputs, structure.offsets), self._end())
        lead(structure.offsets, _scores(structure.masks, theta), changes, labelling, self._reach(), found)
        size = np.repeat(1.0 + np.abs(values), np.diff(structure.offsets))
        return labelling, found > ROUNDING * size

    def _reach(self) -> float:
        """The radius, and what leaving inputs out of a kernel model amounts to."""
        error = self.kernel_model.error if isinstance(self.kernel_model, Support) else 0.0
        return self.radius + float(np.sqrt(2.0)) * error / self.factors["attributes"]

    def _node(self, matrix: Matrix, labelling: np.ndarray) -> np.ndarray:
        """Squares for every position and label: attributes leave one label's weights for another's."""
        squares = self.factors["attributes"] ** 2 * self._squares(matrix)
        if squares.shape[1] == 1:
            return np.repeat(2.0 * squares, self.labels, axis=1)
        return squares + np.take_along_axis(squares, labelling[:, None], axis=1)

    def _squares(self, matrix: Matrix) -> np.ndarray:
        """|x|^2 as every label sees it (positions, labels), or (positions, 1) if all see the same."""
        if self.pattern is not None:
            return (matrix.multiply(matrix).tocsr() @ self.pattern).toarray()
        if isinstance(self.kernel_model, Support):
            assert self.kernel_model.function is not None  # refused before
            return self.kernel_model.function.diagonal(matrix)[:, None]
        rows = matrix if self.kernel_model is None else transformed(self.kernel_model.transformer, matrix)
        return _row_squares(rows)[:, None]

    def _edge(self, inputs: Inputs, offsets: np.ndarray) -> np.ndarray:
        """Squares for the pair of every position and the one before."""
        squares = np.full(int(offsets[-1]), 2.0 * self.factors["transitions"] ** 2)
        if inputs.pairs is not None:
            inside = np.ones(len(squares), bool)
            inside[offsets[:-1]] = False
            squares[inside] += 2.0 * self.factors["pairs"] ** 2 * _row_squares(inputs.pairs)
        return squares

    def _end(self) -> float:
        return 2.0 * self.factors["boundaries"] ** 2 if self.boundaries else 0.0


def gathered(pieces: Iterable[tuple[Scored, np.ndarray, np.ndarray]], lengths: np.ndarray, radius: float) -> Any:
    """What pieces of the data have said, sequence by sequence, empty ones too.

    Parameters
    ----------
    pieces : iterable of (Scored, labels, final)
        In order.
    lengths : array of int (sequences,)
        Of all sequences.
    radius : float
        Of the ball.
    """
    labels: list[list[Any]] = [[] for _ in lengths]
    positions = [np.ones(0, bool) for _ in lengths]
    for scored, labelling, final in pieces:
        named = scored._names(labelling)
        parts = np.split(final, scored.structure.offsets[1:-1])
        for number, own, part in zip(scored.numbers.tolist(), named, parts, strict=True):
            labels[number], positions[number] = own, part
    return FinalPredictions(labels, positions, radius)


def _scores(masks: Any, theta: Any) -> Scores:
    """Scores of parts, -inf where constraints forbid them."""
    node, *tables, edge = theta if len(theta) > 4 else (*theta, np.empty((0, *theta[1].shape)))
    transition, start, end = masks.applied(tuple(tables))
    return Scores(np.ascontiguousarray(node), transition, np.stack([start, end]), edge)


def _row_squares(matrix: Matrix) -> np.ndarray:
    if scipy.sparse.issparse(matrix):
        return np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", matrix, matrix)
