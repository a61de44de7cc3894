"""Right and predicted labels of all kinds of models in one form: a list of labels per example, see ``Form``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from m3n.estimators.forms import OFF, SEQUENCES, Form, form_of, token_texts

__all__ = ["OFF", "Outcome", "predict", "token_texts"]


@dataclass(frozen=True)
class Outcome:
    """What was predicted, and what is right."""

    gold: list[list[Any]]  # one label per position
    predicted: list[list[Any]]  # likewise
    words: Callable[[int], list[str]]  # from the number of an example to the texts of its positions
    form: Form = SEQUENCES  # what the data are made of

    def __post_init__(self) -> None:
        if len(self.gold) != len(self.predicted):
            raise ValueError(f"X has {len(self.predicted)} {self.example}s but y has {len(self.gold)}")
        for i, (gold, predicted) in enumerate(zip(self.gold, self.predicted, strict=True)):
            if len(gold) != len(predicted):
                what = f"{len(predicted)} {self.position}s in X but {len(gold)} labels in y"
                raise ValueError(f"{self.example} {i} has {what}")

    @property
    def example(self) -> str:
        """What an example is, in a word."""
        return self.form.example

    @property
    def position(self) -> str:
        """What a position is, in a word."""
        return self.form.position

    @property
    def positions(self) -> int:
        """How many labels there are."""
        return sum(map(len, self.gold))

    @property
    def errors(self) -> np.ndarray:
        """Wrong positions of every example."""
        pairs = zip(self.gold, self.predicted, strict=True)
        return np.array([sum(a != b for a, b in zip(*pair, strict=True)) for pair in pairs], dtype=np.int64)


def predict(model: Any, X: Any, y: Any) -> Outcome:
    """Ask a model for its labels, and bring the right ones into the same form.

    Parameters
    ----------
    model : estimator
        A fitted one.
    X : inputs
        As its ``predict`` wants them.
    y : outputs
        As its ``fit`` wants them.
    """
    if y is None:
        raise ValueError("y is missing: a report compares the right labels with the predicted ones")
    form = form_of(model)
    predicted = form.predicted(model, X)
    gold = form.right(y, X, predicted, model)
    return Outcome(gold, predicted, lambda i: form.texts(X, i, predicted, model), form)
