"""The training problem of CRFsuite, as one of ours.

    CRFsuite     sum_i loss_i(w) + c2 |w|^2 + c1 |w|_1
    here         n J(w),   J(w) = lam/2 |w|^2 + l1 |w|_1 + 1/n sum_i loss_i(w),   lam = 2 c2/n,   l1 = c1/n

There are no weights for the first and the last label. A pair of an attribute and a label has a weight if it occurs, or
if all pairs are asked for, and if in either case its frequency, the sum of the attribute's values where the label
stands, is at least ``min_freq``. So a pair whose values have a negative sum gets none, unless ``min_freq`` is negative.
The same holds for transitions, whose frequency is their number.

The perceptron, the passive-aggressive algorithm and AROW (ap, pa, arow) minimise no objective. The max-margin network
takes their place, 1/2 |w|^2 + C sum_i hinge_i(w) with C = 1 for ap, c for pa and variance/gamma for arow, which is how
these weigh an error against a change of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from m3n.features import FeatureMap, Observed, ObservedTable, Sparse, Stack
from m3n.features.observed import observed_pairs
from m3n.losses import Hamming
from m3n.problem import Problem
from m3n.run.callbacks import ProgressBar
from m3n.run.loop import Callback, Result, Snapshot, minimize
from m3n.structures import Chain


@dataclass(frozen=True)
class KeptFeatures:
    """Which pairs get a weight.

    Attributes
    ----------
    all_states, all_transitions : bool
        Whether pairs that do not occur get one too.
    least : float
        The smallest frequency.
    """

    all_states: bool = False
    all_transitions: bool = False
    least: float = 0.0

    def states(self, X: scipy.sparse.csr_array, gold: np.ndarray, labels: int) -> scipy.sparse.csr_array | None:
        """The pairs of attribute and label; None for all of them."""
        plain = self.least <= 0.0 and bool((X.data >= 0.0).all())  # no frequency is too small
        if plain:
            return None if self.all_states else observed_pairs(X, gold, labels)
        seen, frequency = observed_pairs(X, gold, labels), _frequencies(X, gold, labels)
        if not self.all_states:
            return _only(seen, _at(frequency, seen) >= self.least)
        everything = scipy.sparse.csr_array(np.ones((X.shape[1], labels), dtype=bool))
        return _only(everything, _at(frequency, everything) >= self.least)

    def transitions(self, gold: np.ndarray, lengths: np.ndarray, labels: int) -> np.ndarray:
        """The pairs of neighbouring labels, as a mask."""
        inside = np.ones(len(gold), bool)
        inside[np.cumsum(lengths) - 1] = False  # the last token of a sequence has no successor
        keys = (gold[:-1] * labels + gold[1:])[inside[:-1]]
        counts = np.bincount(keys, minlength=labels * labels).reshape(labels, labels)
        return (counts >= self.least) & (self.all_transitions | (counts > 0))


def _frequencies(X: scipy.sparse.csr_array, gold: np.ndarray, labels: int) -> scipy.sparse.csr_array:
    tokens = np.arange(len(gold))
    given = scipy.sparse.csr_array((np.ones(len(gold)), (tokens, gold)), shape=(len(gold), labels))
    return scipy.sparse.csr_array(X.T @ given)


def _at(matrix: scipy.sparse.csr_array, pairs: scipy.sparse.csr_array) -> np.ndarray:
    """The entries of a matrix where pairs has some."""
    rows = np.repeat(np.arange(pairs.shape[0]), np.diff(pairs.indptr))
    return np.asarray(matrix[rows, pairs.indices]).ravel()


def _only(pairs: scipy.sparse.csr_array, kept: np.ndarray) -> scipy.sparse.csr_array:
    pointers = np.concatenate([[0], np.cumsum(kept)])[pairs.indptr]
    return scipy.sparse.csr_array((pairs.data[kept], pairs.indices[kept], pointers), pairs.shape)


@dataclass(frozen=True)
class Strength:
    """What is minimised, for n sequences."""

    objective: str  # "crf" or "margin": the loss of a sequence
    square: float  # c2, the weight of |w|^2 beside the sum of losses
    absolute: float = 0.0  # c1, the weight of |w|_1

    def problem(self, structure: Chain, features: FeatureMap, labels: Sequence[np.ndarray]) -> Problem:
        n = len(labels)
        words: dict[str, Any] = {"temperature": 1.0} if self.objective == "crf" else {"loss": Hamming()}
        return Problem(structure, features, labels, lam=2.0 * self.square / n, l1=self.absolute / n, **words)


@dataclass(frozen=True)
class Plan:
    """Which model is trained, and how well."""

    selection: KeptFeatures  # which pairs get a weight
    strength: Strength  # what is minimised
    # Training ends at a duality gap of this part of the objective. With an l1 penalty the gap lags far behind the
    # objective, so that training also ends, as in CRFsuite, where ``period`` passes have brought no more than this.
    rtol: float
    period: int = 10  # see above
    max_passes: float | None = None  # it ends after so many passes over the data, too
    verbose: bool = False  # whether to show a progress bar


class Settled:
    """A callback that ends a run when some passes have not made the objective better.

    Parameters
    ----------
    period : int
        How many passes.
    delta : float
        Up to this part of the objective counts as nothing.
    """

    def __init__(self, period: int, delta: float):
        self.period, self.delta = period, delta
        self.known: list[tuple[float, float]] = []

    def __call__(self, snapshot: Snapshot) -> bool:
        passes, primal = snapshot.record.passes, snapshot.record.primal
        self.known.append((passes, primal))
        earlier = [value for at, value in self.known if at <= passes - self.period]
        return bool(earlier) and earlier[-1] - primal <= self.delta * abs(primal)


@dataclass(frozen=True)
class Outcome:
    """What training found.

    Attributes
    ----------
    coef : array or sparse matrix (attributes, labels)
        Weights of attributes.
    transitions : array (labels, labels)
        Weights of neighbouring labels.
    result : Result
        How it went.
    lam, l1 : float
        The regularisation beside the mean loss.
    size : int
        Number of weights.
    """

    coef: Any
    transitions: np.ndarray
    result: Result
    lam: float
    l1: float
    size: int


def train(X: scipy.sparse.csr_array, gold: list[np.ndarray], labels: int, plan: Plan) -> Outcome:
    """Minimise an objective of CRFsuite.

    Parameters
    ----------
    X : sparse matrix (tokens, attributes)
        The tokens of all sequences, one after another. Stored zeros say that an attribute occurs; they are removed.
    gold : list of arrays of int
        The labels of every sequence.
    labels : int
        Number of labels.
    plan : Plan
        What to train.
    """
    lengths, flat = np.array([len(sequence) for sequence in gold]), np.concatenate(gold)
    pairs = plan.selection.states(X, flat, labels)
    X.eliminate_zeros()  # they have said what occurs
    node: Any = Sparse(X, labels) if pairs is None else Observed(X, pairs)
    nothing = ObservedTable(np.zeros(labels, bool))
    table = ObservedTable(plan.selection.transitions(flat, lengths, labels))
    features = Stack(node, table, nothing, nothing)
    problem = plan.strength.problem(Chain(lengths, labels), features, gold)
    with ExitStack() as stack:
        callbacks: list[Callback] = [stack.enter_context(ProgressBar())] if plan.verbose else []
        callbacks += [Settled(plan.period, plan.rtol)] if plan.strength.absolute else []
        result = minimize(problem, tol=0.0, rtol=plan.rtol, max_passes=plan.max_passes, callbacks=callbacks)
    attributes, transitions = features.split(result.w)[:2]
    coef = attributes.reshape(-1, labels) if pairs is None else node.coefficients(attributes)
    size = (attributes.size if pairs is None else pairs.nnz) + int(table.mask.sum())
    return Outcome(coef, transitions.reshape(labels, labels), result, problem.lam, problem.l1, size)
