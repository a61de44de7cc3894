"""Training when some labels are unknown, or known to be one of several.

A_i are the outputs of example i that agree with what is known. Every one of them is as good as any other, so that the
objective is, with s the score of an output and T the temperature (max where T = 0),

    F(w) = lam/2 |w - w0|^2 + 1/n sum_i [ T log sum_y exp{ (ell_i(y) + s(y))/T } - T log sum_{y in A_i} exp(s(y)/T) ],

for a CRF minus the log-likelihood of what is known, marginalised over the rest; for the margin the latent structural
SVM. ell_i counts the positions whose label is not one of the allowed ones, which no completion changes. F is *not
convex*: the second term is concave. The concave-convex procedure takes its tangent at the weights so far, with m_i the
mean parts of A_i there (those of the best completion where T = 0), and minimises

    Q(w) = lam/2 |w - w0|^2 + 1/n sum_i [ T log sum_y exp{ (ell_i(y) + s(y))/T } - <m_i, scores> ] + constant >= F(w),

which is convex, with equality at the weights so far: F falls from round to round, down to a stationary point and not to
the least value of F. The certificate is that of Q in the last round. It bounds F from above, at the weights that are
returned, and says nothing about how low F can get elsewhere.

With y_i any completion and d = 1/n sum_i (m_i - phi(y_i)), Q is the usual problem for the labels y_i with a linear term
-<d, w>, that is with a prior w0 + d/lam in place of w0, up to a constant. Mean parts in the first round are those of
all completions alike.

Reference: Yu, Joachims, "Learning structural SVMs with latent variables", 2009.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import NoneType
from typing import Any

import numpy as np

from m3n.cluster import resolve_backend
from m3n.estimators.inputs import check_one_kind, label_sequences
from m3n.estimators.labels import LabelStream, check_counts, check_labels, label_list
from m3n.estimators.training import Examples, Setup
from m3n.losses import Cost, Loss
from m3n.problem import Problem
from m3n.run.certificate import Certificate
from m3n.run.loop import Result
from m3n.solvers.base import at_least
from m3n.structures import Structure

log = logging.getLogger("m3n")

OPEN = (NoneType, set, frozenset, list, tuple)  # what stands where no single label is known


@dataclass(frozen=True)
class Round:
    """One convex problem on the way.

    Attributes
    ----------
    objective : float
        F, which is not convex, at the weights that it ended with.
    certificate : Certificate
        Of the convex problem, whose objective is nowhere below F.
    """

    objective: float
    certificate: Certificate


@dataclass(frozen=True)
class Known:
    """Labels as far as they are known.

    Attributes
    ----------
    classes : array (labels,)
        All labels, sorted.
    outputs : list of lists
        The number of an allowed label for every position.
    allowed : list of arrays of bool (positions, labels)
        Which labels every position may have.
    """

    classes: np.ndarray
    outputs: list[list[int]]
    allowed: list[np.ndarray]

    def place_of(self, k: int) -> tuple[int, int]:
        """Sequence and position at which a label is named, or possible."""
        places = ((i, int(own[:, k].argmax())) for i, own in enumerate(self.allowed) if own[:, k].any())
        return next(places, (0, 0))


def read_known(y: Any, lengths: np.ndarray, more: Sequence[Any]) -> Known | None:
    """Labels of which some are None or collections; None if all are single labels.

    Parameters
    ----------
    y : sequences of labels
        As ``fit`` takes them.
    lengths : array of int (sequences,)
        Positions of every sequence.
    more : sequence of labels
        Labels that are to be known besides.
    """
    if y is None or isinstance(y, LabelStream):
        return None
    sequences = [label_list(given, i) for i, given in enumerate(label_sequences(y, lengths))]
    if not any(issubclass(kind, OPEN) for kind in set(map(type, chain.from_iterable(sequences)))):
        return None
    check_counts(np.array([len(given) for given in sequences]), lengths)
    choices = [[_choices(label, i, t) for t, label in enumerate(given)] for i, given in enumerate(sequences)]
    check_labels([[label for some in own for label in some or ()] for own in choices])
    names = list(dict.fromkeys([*chain.from_iterable(some or () for own in choices for some in own), *more]))
    if not names:
        raise ValueError("no label is known at all: there is nothing to learn")
    check_one_kind(names)
    names.sort()
    number = {label: k for k, label in enumerate(names)}
    allowed = [np.array([_mask(some, number) for some in own]).reshape(len(own), len(names)) for own in choices]
    return Known(np.array(names), [own.argmax(axis=1).tolist() for own in allowed], allowed)


def check_rounds(estimator: Any) -> None:
    """Refuse what needs labels that are all known.

    Parameters
    ----------
    estimator : Trained
        With its settings.
    """
    at_least(1, rounds=estimator.rounds)
    refused = {
        "objective='slack'": estimator.objective == "slack", "observed_only": estimator.observed_only,
        "constraints='observed'": isinstance(estimator.constraints, str) and estimator.constraints == "observed",
        "a kernel": estimator._kernel_settings() is not None, "l1": estimator.l1 > 0.0,
        "class_weight": estimator.class_weight is not None, "validation": estimator.validation is not None,
        "checkpoint": estimator.checkpoint is not None,
        "workers elsewhere": not resolve_backend(estimator.backend).inside,
    }  # fmt: skip
    for name, asked in refused.items():
        if asked:
            raise ValueError(f"y has unknown labels (None or several), which do not go with {name}: use one of the two")


def _choices(label: Any, i: int, t: int) -> list[Any] | None:
    """The labels that a position may have; None: all."""
    if label is None:
        return None
    found = list(label) if isinstance(label, (set, frozenset, list, tuple)) else [label]
    if not found:
        raise ValueError(f"sequence {i}, position {t}: no label is allowed; None means that all of them are")
    return found


def _mask(some: list[Any] | None, number: dict[Any, int]) -> np.ndarray:
    mask = np.full(len(number), some is None)
    mask[[number[label] for label in some or ()]] = True
    return mask


@dataclass(frozen=True, eq=False)
class AllowedLoss(Loss):
    """A label loss that is 0 for every allowed label, and for others what they cost against the nearest allowed one.

    Parameters
    ----------
    loss : Loss
        The loss where one label is known.
    allowed : array of bool (positions, labels)
        The labels that are right.
    """

    loss: Loss
    allowed: np.ndarray

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        known = self.loss.cost(structure, gold)
        if known.parts or known.constant is not None or getattr(self.loss, "class_weight", None) is not None:
            raise ValueError("where labels are unknown the loss must be one of single labels that all count alike")
        several = self.allowed.sum(axis=1) > 1
        rows = np.flatnonzero(several)
        costs = np.zeros(self.allowed.shape)
        for r in rows:
            costs[r] = known.weight[r] * known.table[self.allowed[r]].min(axis=0)
        labels = structure.labels_of(gold), np.where(several, 0.0, known.weight), known.table
        return Cost(*labels, parts=(costs,)) if rows.size else Cost(*labels)


class Completions:
    """The outputs that agree with what is known, under weights.

    Parameters
    ----------
    problem : Problem
        One of the examples with any labels.
    allowed : array of bool (positions, labels)
        What is known.
    """

    def __init__(self, problem: Problem, allowed: np.ndarray):
        self.problem, self.structure, self.allowed = problem, problem.structure, allowed

    def theta(self, w: np.ndarray) -> tuple[np.ndarray, ...]:
        """Scores; -inf where a label is not allowed."""
        theta = self.problem.features.scores(w, self.structure.empty(), self.problem.threads)
        theta[0][~self.allowed] = -np.inf
        return theta

    def best(self, w: np.ndarray) -> np.ndarray:
        """The best completions, packed."""
        return self.structure.hard(self.theta(w), self.problem.threads)[1]

    @property
    def origin(self) -> np.ndarray:
        """The weights that the regulariser pulls to."""
        return np.zeros(self.problem.dim) if self.problem.prior is None else self.problem.prior

    def features_of(self, outputs: np.ndarray) -> np.ndarray:
        """1/n sum of the features of packed outputs."""
        parts = self.structure.encode(outputs, weights=self.problem.weights)
        return self.problem.features.adjoint(parts, self.problem.threads) / self.problem.n

    def mean(self, w: np.ndarray, heat: float) -> np.ndarray:
        """1/n sum of the expected features of completions; at temperature 0 of the best ones."""
        if not heat:
            return self.features_of(self.best(w))
        threads = self.problem.threads
        _, parts = self.structure.soft(self.theta(w), heat, threads, weights=self.problem.weights)
        return self.problem.features.adjoint(parts, threads) / self.problem.n

    def value(self, w: np.ndarray) -> float:
        """1/n sum_i T log sum over completions of exp(s/T)."""
        theta, heat = self.theta(w), self.problem.temperature
        if heat:
            values = self.structure.soft(theta, heat, self.problem.threads)[0]
        else:
            values = self.structure.hard(theta, self.problem.threads)[0]
        return self._average(values)

    def objective(self, w: np.ndarray) -> float:
        """F(w); the labels that the problem has been given cancel."""
        gold = self._average(self.structure.score(self.theta(w), self.problem.gold))
        away = w - self.origin
        return self.problem.lam / 2 * float(away @ away) + self.problem.whole.value(w) + gold - self.value(w)

    def _average(self, values: np.ndarray) -> float:
        return float(np.average(values, weights=self.problem.weights))


def train_in_rounds(estimator: Any, examples: Examples, setup: Setup) -> tuple[Result, np.ndarray, list[Round]]:
    """Round after round, until completions or the objective change no more: the last result, weights, and all rounds.

    Parameters
    ----------
    estimator : Trained
        Who asks, with its settings.
    examples : Examples
        With what is allowed.
    setup : Setup
        Structure and features, with an ``AllowedLoss`` if there is a loss.
    """
    allowed = np.concatenate(examples.allowed or [])
    outputs = setup.structure.unpack(_any_completion(setup.structure, allowed))
    problem = estimator._problem(replace(examples, outputs=outputs), setup)
    inside = Completions(problem, allowed)
    log.info("%d of %d labels are not known: training in rounds", (allowed.sum(axis=1) > 1).sum(), len(allowed))
    w, best, rounds, before = inside.origin, np.inf, list[Round](), np.empty(0)
    kept: Result | None = None
    for k in range(estimator.rounds):
        gold = inside.best(w)
        if not problem.temperature and np.array_equal(gold, before):
            break
        before = gold if k else before  # the first round is about the mean of all completions
        tangent = Tangent.at(inside, w, gold, 1.0 if not k else problem.temperature)
        result, found, certificate = _round(_quiet(estimator, problem, best), examples, setup, tangent)
        value, last = inside.objective(found), best
        if value < best:
            kept, w, best = replace(result, certificate=certificate, trace=_shifted(result, certificate)), found, value
            rounds.append(Round(value, certificate))
        if last - value <= _tolerance(estimator, value):
            break
    assert kept is not None  # the first round is always an improvement
    return kept, w, rounds


def _any_completion(structure: Structure, allowed: np.ndarray) -> np.ndarray:
    """Outputs that agree with what is known and with the constraints."""
    theta = tuple(np.zeros(shape) for shape in structure.shapes)
    theta[0][~allowed] = -np.inf
    values, outputs = structure.hard(theta)
    impossible = np.flatnonzero(np.isneginf(values))
    if impossible.size:
        raise ValueError(
            f"sequence {impossible[0]}: the constraints forbid every completion of its known labels (empty sequences "
            "and those of weight 0 are not counted)"
        )
    return outputs


@dataclass(frozen=True)
class Tangent:
    """A linear function that is nowhere above the value of completions, as labels, a linear term and a constant.

    Attributes
    ----------
    inside : Completions
        What is approximated.
    gold : array of int
        Completions, packed.
    d : array (dim,)
        By how much its features exceed those of the labels.
    constant : float
        Its value at w = 0.
    """

    inside: Completions
    gold: np.ndarray
    d: np.ndarray
    constant: float

    @classmethod
    def at(cls, inside: Completions, w: np.ndarray, gold: np.ndarray, heat: float) -> Tangent:
        """With the expected features of completions under w at some temperature."""
        mean = inside.mean(w, heat)
        touches = heat == inside.problem.temperature  # else any mean of completions is below the best of them
        constant = inside.value(w) - float(mean @ w) if touches else 0.0
        return cls(inside, gold, mean - inside.features_of(gold), constant)

    @property
    def pull(self) -> np.ndarray | None:
        """The prior that makes the linear term."""
        problem = self.inside.problem
        if not self.d.any():
            return problem.prior
        return self.inside.origin + self.d / problem.lam

    @property
    def shift(self) -> float:
        """lam/2 |w - w0|^2 - <d, w> = lam/2 |w - w0 - d/lam|^2 + shift, with the constant."""
        d = self.d
        return -float(d @ self.inside.origin) - float(d @ d) / (2.0 * self.inside.problem.lam) - self.constant


def _round(
    estimator: Any, examples: Examples, setup: Setup, tangent: Tangent
) -> tuple[Result, np.ndarray, Certificate]:
    """Minimise Q: the result, the weights and the certificate in the numbers of Q."""
    outputs = tangent.inside.structure.unpack(tangent.gold)
    problem = estimator._problem(replace(examples, outputs=outputs), setup, tangent.pull)
    result, shift = estimator._minimize(problem), tangent.shift
    known = result.certificate
    certificate = replace(known, primal=known.primal + shift, dual=known.dual + shift, of="the last convex round")
    return result, problem.absolute(result.w), certificate


def _quiet(estimator: Any, problem: Problem, best: float) -> Any:
    """The estimator with a tolerance in absolute numbers: constants that rounds add must not count."""
    plain = copy.copy(estimator)
    value = best if np.isfinite(best) else problem.whole.value(np.zeros(problem.dim))
    plain.tol, plain.rtol = _tolerance(estimator, value), 0.0
    return plain


def _tolerance(estimator: Any, value: float) -> float:
    return max(float(estimator.tol), estimator._relative() * abs(value))


def _shifted(result: Result, certificate: Certificate) -> list[Any]:
    """The trace of the last round, in the same numbers as its certificate."""
    shift = certificate.primal - result.certificate.primal
    return [replace(record, primal=record.primal + shift, dual=record.dual + shift) for record in result.trace]
