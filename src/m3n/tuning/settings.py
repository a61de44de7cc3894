"""What is searched: combinations of parameters, values of lam, folds of whole examples, and how models are scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from m3n.estimators.forms import SEQUENCES, form_of
from m3n.estimators.registry import KINDS
from m3n.estimators.sequences import comes_once
from m3n.estimators.trained import Trained
from m3n.io import Sentences
from m3n.scores import chunk_scores
from m3n.scores.labels import are_chunks
from m3n.shards import Shards

USUAL = 20  # values of lam
STRONGEST, WEAKEST = 30.0, 0.3  # in units of 1/n
SCORINGS = ("accuracy", "f1")
WITHOUT = {"WordAligner"}  # it learns translations of all pairs before it minimises

Scoring = str | Callable[[Any, Any], float] | None


def check_estimator(estimator: Any) -> None:
    """Refuse what has no path over lam.

    Parameters
    ----------
    estimator : estimator
        What is to be tuned.
    """
    if not isinstance(estimator, Trained) or type(estimator).__name__ in WITHOUT:
        kind = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        known = ", ".join(sorted(set(KINDS) - WITHOUT))
        raise TypeError(f"tune is for estimators that minimise an objective ({known}), not for {kind}")
    if estimator.C is not None:
        raise ValueError(f"tune looks for lam, which C={estimator.C!r} would settle: leave C away")


def combinations(estimator: Trained, grid: Mapping[str, Iterable[Any]] | None) -> list[dict[str, Any]]:
    """All combinations of the values of a grid.

    Parameters
    ----------
    estimator : estimator
        Whose parameters these are.
    grid : mapping or None
        Values by parameter.
    """
    given = {}
    for name, values in (grid or {}).items():
        if name in ("lam", "C"):
            raise ValueError(f"grid names {name!r}: give the values of lam by lams=")
        if name not in estimator._parameter_names():
            raise ValueError(f"grid names {name!r}, which {type(estimator).__name__} does not have")
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise TypeError(f"grid[{name!r}] must be a list of values, got {values!r:.60}")
        given[name] = list(values)
        if not given[name]:
            raise ValueError(f"grid[{name!r}] is empty: there is nothing to choose from")
    return [dict(zip(given, values, strict=True)) for values in product(*given.values())]


def values_of_lam(lams: Iterable[float] | int | None, unit: float) -> list[float]:
    """The values of lam, from the largest to the smallest.

    Parameters
    ----------
    lams : iterable of float, int or None
        The values, or how many.
    unit : float
        What stands for 1/n.
    """
    if lams is None or isinstance(lams, (int, np.integer)):
        count = USUAL if lams is None else int(lams)
        if count < 1:
            raise ValueError(f"lams must be at least one value, got {count}")
        return np.geomspace(STRONGEST * unit, WEAKEST * unit, count).tolist() if count > 1 else [unit]
    values = [float(lam) for lam in lams]
    bad = [lam for lam in values if not 0.0 < lam < np.inf]
    if bad:
        raise ValueError(f"values of lam must be positive finite numbers, got {bad[0]}")
    if not values:
        raise ValueError("lams is empty: give at least one value of lam, or how many there are to be")
    return sorted(set(values), reverse=True)


def pick(data: Any, rows: np.ndarray) -> Any:
    """Some of the examples, in the given order.

    Parameters
    ----------
    data : inputs or outputs
        As ``held`` returns them.
    rows : array of int
        Their numbers.
    """
    if isinstance(data, Sentences) or hasattr(data, "shape"):
        return data[rows]
    return [data[i] for i in rows.tolist()]


def held(data: Any, name: str) -> Any:
    """Inputs or outputs in memory, example by example; what cannot be cut into examples is refused.

    Parameters
    ----------
    data : inputs or outputs
        As ``fit`` takes them.
    name : str
        "X" or "y", for errors.
    """
    if isinstance(data, Shards):
        raise TypeError("tune cuts examples into folds, which shards do not allow: give them in memory")
    if data is None or hasattr(data, "iloc"):
        raise TypeError(f"{name} must be a list with one entry per example, got {type(data).__name__}")
    return list(data) if comes_once(data) else data


def count_of(data: Any) -> int:
    """How many examples there are.

    Parameters
    ----------
    data : inputs or outputs
        As ``held`` returns them.
    """
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


@dataclass(frozen=True)
class Fold:
    """What is learnt from, and what models are scored on."""

    X: Any
    y: Any
    test_X: Any
    test_y: Any


@dataclass(frozen=True)
class Data:
    """All examples, and how they are cut.

    Attributes
    ----------
    X, y : inputs and outputs
        Of all of them.
    tests : tuple of arrays of int
        The examples of every fold that models are scored on; empty if there are others for that.
    validation : tuple or None
        These others.
    """

    X: Any
    y: Any
    tests: tuple[np.ndarray, ...]
    validation: tuple[Any, Any] | None = None

    @property
    def folds(self) -> int:
        """How many there are."""
        return len(self.tests) if self.validation is None else 1

    @property
    def count(self) -> int:
        """How many examples there are to learn from."""
        return count_of(self.X)

    def fold(self, number: int) -> Fold:
        """The examples of a fold.

        Parameters
        ----------
        number : int
            Which one.
        """
        if self.validation is not None:
            return Fold(self.X, self.y, *self.validation)
        test = self.tests[number]
        rest = np.setdiff1d(np.arange(self.count), test)
        return Fold(pick(self.X, rest), pick(self.y, rest), pick(self.X, test), pick(self.y, test))


def cut(X: Any, y: Any, cv: int, validation: Any, seed: int) -> Data:
    """The examples and their folds.

    Parameters
    ----------
    X, y : inputs and outputs
        As ``fit`` takes them.
    cv : int
        How many folds.
    validation : tuple or None
        Inputs and outputs that models are scored on instead.
    seed : int
        Of the order.
    """
    X, y = held(X, "X"), held(y, "y")
    count = count_of(X)
    if count_of(y) != count:
        raise ValueError(f"X has {count} examples but y has {count_of(y)}")
    if validation is not None:
        if not isinstance(validation, Sequence) or len(validation) != 2:
            raise ValueError("validation must be a pair of inputs and outputs (X, y)")
        others = held(validation[0], "validation[0]"), held(validation[1], "validation[1]")
        if not count_of(others[0]) or count_of(others[0]) != count_of(others[1]):
            raise ValueError(
                f"validation has {count_of(others[0])} inputs and {count_of(others[1])} outputs: give as many of "
                "both, at least one"
            )
        return Data(X, y, (), others)
    if not isinstance(cv, (int, np.integer)) or cv < 2:
        raise ValueError(f"cv must be a number of folds from 2, got {cv!r}")
    if count < cv:
        raise ValueError(f"there are {count} examples for {cv} folds: lower cv, or give validation=(X, y)")
    order = np.random.default_rng(seed).permutation(count)
    return Data(X, y, tuple(np.sort(part) for part in np.array_split(order, cv)))


def check_scoring(scoring: Scoring, estimator: Trained) -> None:
    """Refuse unknown scores before any training.

    Parameters
    ----------
    scoring : str, callable or None
        How models are scored.
    estimator : estimator
        Which kind of models.
    """
    if scoring is None or callable(scoring):
        return
    if scoring not in SCORINGS:
        raise ValueError(f"unknown scoring {scoring!r}; choose one of {SCORINGS}, or a function (y_true, y_pred)")
    form = form_of(estimator)
    if scoring == "f1" and (form.trees or form.position != "token"):
        raise ValueError(f"scoring='f1' counts chunks of labels of sequences, which {form.kind} do not have")


class Judge:
    """Scores models on the examples of a fold, which are read once where the estimator allows that.

    Parameters
    ----------
    fold : Fold
        The examples.
    scoring : str, callable or None
        How.
    """

    def __init__(self, fold: Fold, scoring: Scoring):
        self.fold, self.scoring, self.read = fold, scoring, None

    def inputs(self, model: Any) -> Any:
        """The inputs of sequences as numbers, the same for all models that were made of one reading.

        Parameters
        ----------
        model : SequenceTagger
            One of these models.
        """
        if self.read is None:
            self.read = model.reader_.read(self.fold.test_X)
        return self.read

    def __call__(self, model: Any) -> float:
        """The score of a model, larger is better."""
        form, fold = form_of(model), self.fold
        if self.scoring in (None, "accuracy"):
            return float(model.score(self._given(model), fold.test_y))
        if callable(self.scoring):
            return float(self.scoring(fold.test_y, model.predict(self._given(model))))
        found = form.predicted(model, self._given(model))
        gold = form.right(fold.test_y, fold.test_X, found, model)
        if not are_chunks(gold, found):
            raise ValueError("scoring='f1' counts chunks, and these labels write none (such as B-NP, I-NP, O)")
        return chunk_scores(gold, found).f1

    def _given(self, model: Any) -> Any:
        return self.inputs(model) if form_of(model) is SEQUENCES else self.fold.test_X
