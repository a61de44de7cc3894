"""The training problem of CRFsuite, as one of ours, from the arguments of ``sklearn_crfsuite.CRF``.

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

import math
import warnings
from collections.abc import Mapping, Sequence
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
from m3n.run.certificate import Record
from m3n.run.loop import Callback, Result, Snapshot, minimize
from m3n.structures import Chain

CALIBRATION = tuple(f"calibration_{word}" for word in ("eta", "rate", "samples", "candidates", "max_trials"))
TAKES = {  # the arguments that not every algorithm knows
    "lbfgs": ("c1", "c2", "num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch"),
    "l2sgd": ("c2", "period", "delta", *CALIBRATION),
    "ap": ("epsilon",),
    "pa": ("epsilon", "pa_type", "c", "error_sensitive", "averaging"),
    "arow": ("epsilon", "variance", "gamma"),
}
ALIASES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}
DELTA = {"lbfgs": 1e-5, "l2sgd": 1e-6}
PASSES = {"l2sgd": 1000, "ap": 100, "pa": 100, "arow": 100}
MARGIN_RTOL = 1e-2  # nobody asked for the optimum of an objective that only stands in
LIMITED_RTOL = 1e-3  # with c1 and a limit: after 100 iterations CRFsuite is 2.4 % above its optimum on CoNLL-2000
RISING = 1e-2  # of the objective: a lower bound that rises more is that of a run on its way
LEAST_SQUARE = 1e-4  # c2 where neither c1 nor c2 is positive: without it there may be no optimum


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
        everything = np.ones((X.shape[1], labels), dtype=bool) if self.all_states else None
        pairs = observed_pairs(X, gold, labels) if everything is None else scipy.sparse.csr_array(everything)
        return _frequent(pairs, X, gold, self.least)

    def transitions(self, gold: np.ndarray, lengths: np.ndarray, labels: int) -> np.ndarray:
        """The pairs of neighbouring labels, as a mask."""
        inside = np.ones(len(gold), bool)
        inside[np.cumsum(lengths) - 1] = False  # the last token of a sequence has no successor
        keys = (gold[:-1] * labels + gold[1:])[inside[:-1]]
        counts = np.bincount(keys, minlength=labels * labels).reshape(labels, labels)
        return (counts >= self.least) & (self.all_transitions | (counts > 0))


def _frequent(
    pairs: scipy.sparse.csr_array, X: scipy.sparse.csr_array, gold: np.ndarray, least: float
) -> scipy.sparse.csr_array:
    """The pairs of which the attribute's values, where the label stands, have at least this sum."""
    shape = (len(gold), pairs.shape[1])
    stands = scipy.sparse.csr_array((np.ones(len(gold)), (np.arange(len(gold)), gold)), shape=shape)
    rows = np.repeat(np.arange(pairs.shape[0]), np.diff(pairs.indptr))
    kept = np.asarray(scipy.sparse.csr_array(X.T @ stands)[rows, pairs.indices]).ravel() >= least
    pointers = np.concatenate([[0], np.cumsum(kept)])[pairs.indptr]
    return scipy.sparse.csr_array((pairs.data[kept], pairs.indices[kept], pointers), pairs.shape)


@dataclass(frozen=True)
class Plan:
    """Which model is trained, and how well."""

    selection: KeptFeatures  # which pairs get a weight
    objective: str  # "crf" or "margin": the loss of a sequence
    square: float  # c2, the weight of |w|^2 beside the sum of losses
    absolute: float  # c1, the weight of |w|_1
    # Training ends at a duality gap of this part of the objective. With an l1 penalty the gap lags behind the
    # objective, so that training also ends, as in CRFsuite, where ``period`` passes have brought no more than this.
    rtol: float
    period: int = 10  # see above
    max_passes: float | None = None  # it ends after so many passes over the data, too
    verbose: bool = False  # whether to show a progress bar

    def problem(self, structure: Chain, features: FeatureMap, labels: Sequence[np.ndarray]) -> Problem:
        """What is minimised, for n sequences."""
        n = len(labels)
        words: dict[str, Any] = {"temperature": 1.0} if self.objective == "crf" else {"loss": Hamming()}
        return Problem(structure, features, labels, lam=2.0 * self.square / n, l1=self.absolute / n, **words)


class Settled:
    """A callback that ends a run when some passes have not made the objective better.

    The objective of a dual method may rest, or get worse, in its first passes. What it has proven tells: as long as
    the lower bound rises by more than ``RISING``, the run goes on.

    Parameters
    ----------
    period : int
        How many passes.
    delta : float
        Up to this part of the objective counts as nothing.
    """

    def __init__(self, period: int, delta: float):
        self.period, self.delta = period, delta
        self.known: list[Record] = []

    def __call__(self, snapshot: Snapshot) -> bool:
        now = snapshot.record
        self.known.append(now)
        earlier = next((then for then in reversed(self.known) if then.passes <= now.passes - self.period), None)
        if earlier is None or now.dual - earlier.dual > RISING * abs(now.primal):
            return False
        return earlier.primal - now.primal <= self.delta * abs(now.primal)


@dataclass(frozen=True)
class Task:
    """A problem of CRFsuite as one of ours.

    Attributes
    ----------
    problem : Problem
        What is minimised.
    features : Stack
        Which weights there are: of attributes, and of neighbouring labels.
    size : int
        Number of weights.
    """

    problem: Problem
    features: Stack
    size: int

    @classmethod
    def of(cls, X: scipy.sparse.csr_array, gold: list[np.ndarray], labels: int, plan: Plan) -> Task:
        """The problem that a plan makes of data.

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
        size = (node.dim if pairs is None else pairs.nnz) + int(table.mask.sum())
        return cls(plan.problem(Chain(lengths, labels), features, gold), features, size)

    def weights(self, w: np.ndarray) -> tuple[Any, np.ndarray]:
        """Weights of attributes, an array or sparse matrix (attributes, labels), and of labels (labels, labels).

        Parameters
        ----------
        w : array (dim,)
            All of them.
        """
        attributes, transitions = self.features.split(w)[:2]
        node: Any = self.features.maps[0]
        labels = math.isqrt(transitions.size)
        coef = node.coefficients(attributes) if isinstance(node, Observed) else attributes.reshape(-1, labels)
        return coef, transitions.reshape(labels, labels)

    def minimize(self, plan: Plan, callbacks: Sequence[Callback] = ()) -> Result:
        """The best weights.

        Parameters
        ----------
        plan : Plan
            How well.
        callbacks : sequence of callbacks
            What watches.
        """
        with ExitStack() as stack:
            watching: list[Callback] = [stack.enter_context(ProgressBar())] if plan.verbose else []
            watching += [Settled(plan.period, plan.rtol)] if plan.absolute else []
            watching += callbacks
            return minimize(self.problem, tol=0.0, rtol=plan.rtol, max_passes=plan.max_passes, callbacks=watching)


def plan_of(params: Mapping[str, Any]) -> Plan:
    """What the arguments ask for, with warnings about what is done instead.

    Parameters
    ----------
    params : mapping
        The arguments by name; None stands for a default.
    """
    algorithm = algorithm_of(params["algorithm"])
    _check(algorithm, params)
    given = {name: value for name, value in params.items() if value is not None}
    selection = KeptFeatures(
        bool(given.get("all_possible_states")), bool(given.get("all_possible_transitions")), given.get("min_freq", 0.0)
    )
    exact = algorithm in DELTA
    objective, square, absolute = _penalties(given) if exact else _margin(algorithm, given)
    rtol = given.get("delta", _usual_rtol(algorithm, given) if exact else MARGIN_RTOL)
    passes = given.get("max_iterations", PASSES.get(algorithm))
    period, verbose = given.get("period", 10), bool(params.get("verbose"))
    return Plan(selection, objective, square, absolute, rtol, period, passes, verbose)


def _usual_rtol(algorithm: str, given: Mapping[str, Any]) -> float:
    """How close to the optimum training ends if nobody says."""
    limited = given.get("c1", 0.0) > 0.0 and "max_iterations" in given
    return LIMITED_RTOL if limited else DELTA[algorithm]


def algorithm_of(name: str | None) -> str:
    """The short name of an algorithm, whose long names and capitals are accepted too.

    Parameters
    ----------
    name : str or None
        "lbfgs", "l2sgd", "ap" or "averaged-perceptron", "pa" or "passive-aggressive", "arow"; None is "lbfgs".
    """
    small = "lbfgs" if name is None else str(name).lower()
    if ALIASES.get(small, small) not in TAKES:
        raise ValueError(f"unknown algorithm {name!r}; choose one of {(*TAKES, *ALIASES)}")
    return ALIASES.get(small, small)


def _check(algorithm: str, params: Mapping[str, Any]) -> None:
    """Refuse what CRFsuite refuses."""
    others = {name for names in TAKES.values() for name in names} - set(TAKES[algorithm])
    wrong = [name for name in params if name in others and params[name] is not None]
    if wrong:
        raise ValueError(f"algorithm {algorithm!r} has no {wrong[0]}; it has {TAKES[algorithm]}")
    if params.get("trainer_cls") is not None:
        _warn("trainer_cls is not used, since it is no m3n.compat.Trainer: m3n trains by its own solvers")


def _penalties(given: Mapping[str, Any]) -> tuple[str, float, float]:
    """The objective, and its penalties c2 |w|^2 + c1 |w|_1."""
    absolute, square = float(given.get("c1", 0.0)), float(given.get("c2", 1.0))
    if absolute < 0.0 or square < 0.0:
        raise ValueError(f"c1 and c2 must not be negative, got c1={absolute} and c2={square}")
    if not absolute and not square:
        _warn(f"without a penalty there may be no best weights: c2={LEAST_SQUARE} is used instead of c1=c2=0")
        square = LEAST_SQUARE
    return "crf", square, absolute


def _margin(algorithm: str, given: Mapping[str, Any]) -> tuple[str, float, float]:
    """The same for 1/(2C) |w|^2 beside the sum of hinge losses."""
    C = given.get("c", 1.0) * given.get("variance", 1.0) / given.get("gamma", 1.0)
    what = f'a max-margin network (objective="margin", C={C:g}) stands in for algorithm {algorithm!r}'
    _warn(f"{what}, which minimises no objective; algorithm='lbfgs' is the CRF")
    return "margin", 0.5 / C, 0.0


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=6)  # at the call of fit or train
