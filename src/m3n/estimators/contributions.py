"""Takes the score of a labelling of a tagger apart, see ``m3n.estimators.explanation``.

Whatever scores a position is a product, values (columns,) @ weights (columns, labels): attributes and their weights;
the kernel values with the inputs that a kernel model keeps and their coefficients; the features of an approximation and
their weights. Attributes of pairs are the same with the neighbour's label held. So all terms of a position are rows of
arrays (terms, labels): what each would add if the label here were another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from m3n.estimators.explanation import Contribution, Explanation, Position
from m3n.estimators.inputs import Inputs, number_labels
from m3n.estimators.kernel_scores import Support, transformed
from m3n.estimators.matrices import Matrix
from m3n.estimators.model_summary import attribute_names
from m3n.estimators.sequences import as_sequences
from m3n.io.sentences import Sentences

if TYPE_CHECKING:
    from m3n.estimators.sequence_tagger import SequenceTagger


@dataclass(frozen=True)
class Terms:
    """Terms of a position's score."""

    kind: str  # of all of them, see ``Contribution``
    name: Callable[[int], str]  # from the number of a column to its name
    columns: np.ndarray  # (terms,) which columns they are
    values: np.ndarray  # (terms,) what the weights are multiplied by
    scores: np.ndarray  # (terms, labels) what they add to every label

    def shown(self, label: int, other: int | None, top: int | None) -> list[Contribution]:
        """The terms with the largest differences, and the sum of the rest."""
        own = self.scores[:, label]
        against = np.zeros(len(own)) if other is None else self.scores[:, other]
        order = np.argsort(-np.abs(own - against), kind="stable")
        kept, rest = order[:top], order[len(order) if top is None else top :]

        def made(kind: str, name: str, value: float | None, rows: Any) -> Contribution:
            compared = None if other is None else float(against[rows].sum())
            return Contribution(kind, name, value, float(own[rows].sum()), compared)

        found = [made(self.kind, self.name(int(self.columns[k])), float(self.values[k]), k) for k in kept]
        if len(rest):
            found.append(made("rest", f"{len(rest)} other{'s' * (len(rest) > 1)}", None, rest))
        return found


@dataclass(frozen=True)
class Product:
    """Scores that are sums over columns."""

    kind: str  # of the terms
    values: Matrix  # (rows, columns), dense or CSR
    weights: Any  # (columns, labels or pairs of labels), dense or CSR, a row per column
    name: Callable[[int], str]  # from the number of a column to its name

    def terms(self, row: int, scores: Callable[[np.ndarray], np.ndarray] = np.asarray) -> Terms:
        """The columns of a row that are not zero; ``scores`` chooses from what they add, (terms, ...)."""
        if scipy.sparse.issparse(self.values):
            inside = slice(self.values.indptr[row], self.values.indptr[row + 1])
            columns, values = self.values.indices[inside], self.values.data[inside]
        else:
            columns = np.flatnonzero(self.values[row])
            values = self.values[row, columns]
        weights = self.weights[columns]
        if scipy.sparse.issparse(weights):
            weights = weights.toarray()
        weights = weights.reshape(len(columns), math.prod(self.weights.shape[1:]))
        return Terms(self.kind, self.name, columns, values, scores(values[:, None] * weights))


def explain(model: SequenceTagger, x: Any, labels: Any, top: int | None) -> Explanation:
    """Take the score of a sequence's labels apart; see ``SequenceTagger.explain``."""
    model._check_fitted()
    if isinstance(x, Sentences):
        raise TypeError("explain looks at one sequence: give X[0], for example, not all of X")
    if top is not None and not (isinstance(top, (int, np.integer)) and top >= 0):
        raise ValueError(f"top must be None or a whole number that is not negative, got {top!r}")
    inputs = model.reader_.read([x])
    if not inputs.lengths[0]:
        raise ValueError("the sequence is empty: there is nothing to explain")
    scored = next(model._scored(inputs, None))
    best = scored.k_best(2, None)[0]
    wanted = best[0][0] if labels is None else labels
    numbers = number_labels([wanted], scored.structure.lengths, model.classes_)[0]
    _check_allowed(model, numbers)
    names = model.classes_.tolist()
    chosen = [names[k] for k in numbers]
    rival, rival_score = next((pair for pair in best if pair[0] != chosen), (None, None))
    total, marginals = scored.structure.soft(scored.theta, 1.0, scored.threads)
    parts = _Parts(model, x, inputs)
    positions = [parts.position(t, numbers, marginals[0][t], top) for t in range(len(numbers))]
    score = float(sum(position.score for position in positions))
    probability = float(np.exp(min(score - total[0], 0.0)))
    return Explanation(chosen, score, probability, rival, rival_score, positions)


def _check_allowed(model: SequenceTagger, numbers: list[int]) -> None:
    """Refuse labels that the model can never predict."""
    if model.constraints_ is None:
        return
    wrong = model.constraints_.violations(np.array(numbers), np.array([0, len(numbers)]))
    if wrong.size:
        label = model.classes_.tolist()[numbers[wrong[0]]]
        remedy = "their score is minus infinity; explain labels that the constraints allow"
        raise ValueError(f"position {wrong[0]}: the model's constraints do not allow {label!r} here: {remedy}")


class _Parts:
    """What scores the positions of a sequence."""

    def __init__(self, model: SequenceTagger, x: Any, inputs: Inputs):
        self.model = model
        self.texts = [""] * int(inputs.lengths[0])
        if model.reader_.kind == "columns":
            self.texts = [token[0] for token in as_sequences([x], model.reader_.vectorizer)[0][0]]
        self.attributes = attribute_product(model, inputs.matrix)
        self.names = model.classes_.tolist()
        self.pairs: Product | None = None
        if model.edge_coef_ is not None:
            pair_names = cache(lambda: model.reader_.vectorizer.pair_names)
            self.pairs = Product("pair", inputs.pairs, model.edge_coef_, lambda j: pair_names()[j])

    def position(self, t: int, numbers: list[int], marginals: np.ndarray, top: int | None) -> Position:
        """The explanation of a position."""
        here, after = self._here(t, numbers), self._after(t, numbers)
        label, other = numbers[t], self._other(t, numbers, here + after)
        contributions = [term for terms in here for term in terms.shown(label, other, top)]
        further = [term for terms in after for term in terms.shown(label, other, top)]
        return Position(
            number=t,
            text=self.texts[t],
            label=self.names[label],
            probability=float(marginals[label]),
            score=float(sum(term.score for term in contributions)),
            other=None if other is None else self.names[other],
            other_probability=None if other is None else float(marginals[other]),
            margin=None if other is None else float(sum(term.difference or 0.0 for term in contributions + further)),
            contributions=contributions,
            after=further,
        )

    def _here(self, t: int, numbers: list[int]) -> list[Terms]:
        """All that counts at a position."""
        model, last = self.model, len(numbers) - 1
        found = [self.attributes.terms(t)]
        if t > 0:
            before = numbers[t - 1]
            found += self._pair_terms(t - 1, lambda tables: tables[:, before])
            found.append(_single("transition", f"after {self.names[before]}", model.transitions_[before]))
        if t == 0 and model.start_.any():
            found.append(_single("start", "first", model.start_))
        if t == last and model.end_.any():
            found.append(_single("end", "last", model.end_))
        return found

    def _after(self, t: int, numbers: list[int]) -> list[Terms]:
        """What leads to the next position."""
        if t == len(numbers) - 1:
            return []
        following = numbers[t + 1]
        found = self._pair_terms(t, lambda tables: tables[:, :, following])
        name = f"before {self.names[following]}"
        return [*found, _single("transition", name, self.model.transitions_[:, following])]

    def _pair_terms(self, row: int, choose: Callable[[np.ndarray], np.ndarray]) -> list[Terms]:
        """What attributes of a pair of neighbours add; ``choose`` takes from tables of both labels those of one."""
        labels = len(self.names)
        if self.pairs is None:
            return []
        return [self.pairs.terms(row, lambda scores: choose(scores.reshape(-1, labels, labels)))]

    def _other(self, t: int, numbers: list[int], terms: list[Terms]) -> int | None:
        """The best other label, of those that may stand between the neighbours."""
        total = np.sum([part.scores.sum(axis=0) for part in terms], axis=0)
        total[numbers[t]] = -np.inf
        constraints, last = self.model.constraints_, len(numbers) - 1
        if constraints is not None:
            first = constraints.forbidden_start if t == 0 else constraints.forbidden[numbers[t - 1]]
            final = constraints.forbidden_end if t == last else constraints.forbidden[:, numbers[t + 1]]
            total[first | final] = -np.inf
        other = int(total.argmax())
        return None if np.isneginf(total[other]) else other


def attribute_product(model: SequenceTagger, matrix: Matrix) -> Product:
    """What scores attributes: linear weights, the inputs of a kernel model, or the features of an approximation."""
    if model._linear:
        names = cache(lambda: attribute_names(model))
        return Product("attribute", matrix, model.coef_, lambda j: names()[j])
    kernel = model.kernel_model_
    if not isinstance(kernel, Support):
        features = transformed(kernel.transformer, matrix)
        return Product("feature", features, kernel.coefficients, lambda j: f"feature[{j}]")
    if kernel.function is None:
        columns = kernel.inputs
        return Product("support", matrix[:, columns], kernel.coefficients, lambda j: f"training[{columns[j]}]")
    values = kernel.function(matrix, kernel.inputs)
    return Product("support", values, kernel.coefficients, lambda j: f"support[{j}]")


def _single(kind: str, name: str, scores: np.ndarray) -> Terms:
    return Terms(kind, lambda _: name, np.zeros(1, np.int64), np.ones(1), np.asarray(scores)[None, :])
