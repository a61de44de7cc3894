"""Predictions that are proven to be those of the exact optimum.

A trained model has weights w and a bound on how far the optimum w* can be from them, |w - w*| <= r (``run.radius``).
Scores of outputs change by at most r times the norm of a difference of features on the way from w to w*. A label is
*final* if every output with another label at its position stays behind the prediction all the same: whatever longer
training would change, it is not this label. ``compiled.oracles.chain_final`` has the bound and its proof.

The norm is that of the regulariser: with ``strengths``, features of a group count 1/sqrt(strength) times. Attributes
that training has not seen have no weight in the optimum either. A kernel model has left out some of its inputs, by
which a score of x has changed by at most error sqrt(k(x, x)): as if r were larger by sqrt(2) error.

Where outputs are labels of positions that are no chain, everything that changes is charged to the positions whose
labels change: their own features, and those of the pairs that they are in. The best output with another label at a
position is then one call of the max-oracle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from m3n.compiled.oracles.chain_final import Changes, Scores, reach
from m3n.estimators.chains import Scored
from m3n.estimators.inputs import Inputs
from m3n.estimators.kernel_scores import Support, Transformed, transformed
from m3n.estimators.matrices import Matrix
from m3n.packed import Threads
from m3n.solvers.base import at_least
from m3n.structures import Parts

if TYPE_CHECKING:
    from m3n.estimators.trained import Trained

ROUNDING = 1e-9  # of scores: what leads by less may be a tie


@dataclass(frozen=True)
class FinalPredictions:
    """Predictions, and which of them the exact optimum shares; ``print`` says how many.

    Attributes
    ----------
    labels : list
        What is predicted for every example.
    positions : list of arrays of bool
        Which of its labels are final.
    radius : float
        How far the optimum can be from the model's weights.
    example : str
        What an example is called.
    """

    labels: list[Any]
    positions: list[np.ndarray]
    radius: float
    example: str = "sequence"

    @property
    def examples(self) -> np.ndarray:
        """Which examples have final labels alone."""
        return np.array([bool(own.all()) for own in self.positions])

    @property
    def share(self) -> float:
        """The share of labels that are final; 1 if there are none."""
        return float(np.concatenate([np.ones(1, bool), *self.positions])[1:].mean()) if self._count else 1.0

    @property
    def _count(self) -> int:
        return sum(map(len, self.positions))

    def __str__(self) -> str:
        whole = int(self.examples.sum())
        return (
            f"{self.share:.1%} of {self._count:,} labels, and all labels of {whole:,} of {len(self.labels):,} "
            f"{self.example}s, are proven to be those of the exact optimum (which is at most {self.radius:.3g} away)"
        )


@dataclass(frozen=True)
class Ball:
    """Where the optimum is, for a linear chain.

    Attributes
    ----------
    radius : float
        Around the model's weights, with what leaving inputs out of a kernel model amounts to.
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

    def possible(self, scored: Scored, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the predicted labels (positions,), and which labels weights of the ball may predict.

        The second array is of bool (positions, labels); a label is final where there is no other.
        """
        structure, theta = scored.structure, scored.theta
        values, labelling = structure.hard(theta, scored.threads)
        scored._check(values)
        found = np.empty((len(labelling), self.labels))
        changes = Changes(self._node(inputs.matrix, labelling), self._edge(inputs, structure.offsets), self._end())
        reach(structure.offsets, _scores(structure.masks, theta), changes, labelling, self.radius, found)
        least = np.repeat(values - ROUNDING * (1.0 + np.abs(values)), np.diff(structure.offsets))
        possible = found >= least[:, None]
        possible[np.arange(len(labelling)), labelling] = True
        return labelling, possible

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
        return input_squares(self.kernel_model, matrix)[:, None]

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


def proof_of(model: Any, X: Any) -> FinalPredictions | None:
    """What ``certify`` says, or None where nothing can be proven: a relaxation, for example, or another estimator.

    Parameters
    ----------
    model : estimator
        A fitted one.
    X : inputs
        As its ``predict`` wants them.
    """
    if not hasattr(model, "certify"):
        return None
    try:
        return model.certify(X)
    except ValueError:
        return None


def distance(model: Trained, radius: float | None, factor: float = 1.0) -> float:
    """How far the optimum can be, and what leaving inputs out of a kernel model amounts to; refused where unknown.

    Parameters
    ----------
    model : Trained
        A fitted estimator.
    radius : float or None
        What is known of it besides; None takes what training has proven.
    factor : float
        By which its attributes count.
    """
    at_least(0, radius=radius)
    radius = model._known_radius() if radius is None else radius
    if model._linear or not isinstance(model.kernel_model_, Support):
        return radius
    if model.kernel_model_.function is None:
        raise ValueError("nothing can be proven with kernel='precomputed': k(x, x) of new inputs is not known")
    return radius + float(np.sqrt(2.0)) * model.kernel_model_.error / factor


def input_squares(kernel_model: Support | Transformed | None, matrix: Matrix) -> np.ndarray:
    """|x|^2 of the features of inputs (rows,).

    Parameters
    ----------
    kernel_model : Support, Transformed or None
        What scores attributes; None: their own weights.
    matrix : matrix
        Inputs.
    """
    if isinstance(kernel_model, Support):
        assert kernel_model.function is not None  # ``distance`` has refused it
        return kernel_model.function.diagonal(matrix)
    return _row_squares(matrix if kernel_model is None else transformed(kernel_model.transformer, matrix))


def gathered(pieces: Iterable[tuple[Scored, np.ndarray, np.ndarray]], lengths: np.ndarray, radius: float) -> Any:
    """What pieces of the data have said, sequence by sequence, empty ones too.

    Parameters
    ----------
    pieces : iterable of (Scored, labels, possible labels)
        In order.
    lengths : array of int (sequences,)
        Of all sequences.
    radius : float
        Of the ball.
    """
    labels: list[list[Any]] = [[] for _ in lengths]
    positions = [np.ones(0, bool) for _ in lengths]
    for scored, labelling, possible in pieces:
        named = scored._names(labelling)
        parts = np.split(possible.sum(axis=1) == 1, scored.structure.offsets[1:-1])
        for number, own, part in zip(scored.numbers.tolist(), named, parts, strict=True):
            labels[number], positions[number] = own, part
    return FinalPredictions(labels, positions, radius)


def final_by_changes(
    structure: Any, theta: Parts, offsets: np.ndarray, changes: np.ndarray, threads: Threads
) -> tuple[np.ndarray, np.ndarray]:
    """The predicted labels of all positions, and which of them are final.

    Parameters
    ----------
    structure : Structure
        Labels of positions, with a max-oracle.
    theta : tuple of arrays
        Scores, those of positions first.
    offsets : array of int (examples + 1,)
        Where the positions of every example begin.
    changes : array (positions,)
        By how much scores can change, at most, for every position whose label changes.
    threads : Threads
        Who works.
    """
    node, *others = theta
    values, labelling = structure.hard(theta, threads)
    lengths, rows = np.diff(offsets), np.arange(len(labelling))
    raised = node + (changes + np.repeat(ROUNDING * (1.0 + np.abs(values)), lengths))[:, None]
    raised[rows, labelling] = node[rows, labelling]
    _, rivals = structure.hard((raised, *others), threads)
    final = np.repeat(np.logical_and.reduceat(rivals == labelling, offsets[:-1]), lengths)
    for t in range(int(lengths.max())):
        at = (offsets[:-1] + t)[lengths > t]
        at = at[~final[at]]
        if not len(at):
            continue
        kept, raised[at, labelling[at]] = raised[at, labelling[at]], -np.inf
        owner = np.searchsorted(offsets, at, side="right") - 1
        final[at] = structure.hard((raised, *others), threads)[0][owner] < values[owner]
        raised[at, labelling[at]] = kept
    return labelling, final


def _scores(masks: Any, theta: Any) -> Scores:
    """Scores of parts, -inf where constraints forbid them."""
    node, *tables, edge = theta if len(theta) > 4 else (*theta, np.empty((0, *theta[1].shape)))
    transition, start, end = masks.applied(tuple(tables))
    return Scores(np.ascontiguousarray(node), transition, np.stack([start, end]), edge)


def _row_squares(matrix: Matrix) -> np.ndarray:
    if scipy.sparse.issparse(matrix):
        return np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", matrix, matrix)
