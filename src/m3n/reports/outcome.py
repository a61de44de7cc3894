"""Right and predicted labels of all kinds of models in one form: a list of labels per example.

    model                   example     position        label
    SequenceTagger          sequence    token           its label
    SegmentTagger           sequence    token           IOB label of its segment
    GraphLabeler            graph       node            its label
    MultilabelClassifier    example     label           the label's name, or that it is off

A model is known by its methods, so that models of others that have the same ones can be reported, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

OFF = "(off)"
WORDS = ("w[0]", "word", "w", "token", "form", "text", "word.lower()", "word.lower")  # names of what a token itself is


@dataclass(frozen=True)
class Outcome:
    """What was predicted, and what is right.

    Attributes
    ----------
    gold, predicted : lists of lists of labels
        One label per position.
    words : callable
        From the number of an example to the texts of its positions.
    example, position : str
        What the data are made of, in words.
    kind : {"sequences", "segments", "graphs", "sets"}
        Of the model.
    """

    gold: list[list[Any]]
    predicted: list[list[Any]]
    words: Callable[[int], list[str]]
    example: str = "sequence"
    position: str = "token"
    kind: str = "sequences"

    def __post_init__(self) -> None:
        if len(self.gold) != len(self.predicted):
            raise ValueError(f"X has {len(self.predicted)} {self.example}s but y has {len(self.gold)}")
        for i, (gold, predicted) in enumerate(zip(self.gold, self.predicted, strict=True)):
            if len(gold) != len(predicted):
                what = f"{len(predicted)} {self.position}s in X but {len(gold)} labels in y"
                raise ValueError(f"{self.example} {i} has {what}")

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
    if hasattr(model, "predict_sets"):
        return _sets(model, X, y)
    if hasattr(model, "predict_iob"):
        predicted = model.predict_iob(X)
        gold = [_iob(given, found) for given, found in zip(_rows(y, len(predicted)), predicted, strict=True)]
        return Outcome(gold, predicted, lambda i: token_texts(X[i]), kind="segments")
    predicted = [_plain(labels) for labels in model.predict(X)]
    if hasattr(model, "predict_with_bounds"):
        gold = [_of_nodes(labels, X[i]) for i, labels in enumerate(_rows(y, len(predicted), "graph"))]
        return Outcome(gold, predicted, lambda i: _numbers(len(predicted[i])), "graph", "node", "graphs")
    gold = [_plain(labels) for labels in _rows(y, len(predicted))]
    return Outcome(gold, predicted, lambda i: token_texts(X[i]))


def token_texts(sequence: Any) -> list[str]:
    """What a reader takes for the tokens of a sequence; their numbers where there are only numbers.

    Parameters
    ----------
    sequence : sequence of tokens, array or sparse matrix
        As a tagger takes it.
    """
    shape = getattr(sequence, "shape", None)
    return _numbers(shape[0]) if shape is not None else [_token(token, t) for t, token in enumerate(sequence)]


def _token(token: Any, t: int) -> str:
    if isinstance(token, str):
        return token
    if isinstance(token, Mapping):
        named = [str(token[name]) for name in WORDS if name in token]
        return named[0] if named else next((f"{name}={value}" for name, value in token.items()), "")
    if isinstance(token, tuple) and all(isinstance(value, str) for value in token):
        return token[0] if token else ""
    if isinstance(token, Iterable):
        attributes = [value for value in token if isinstance(value, str)]
        named = [a.partition("=")[2] for name in WORDS for a in attributes if a.partition("=")[0] == name]
        return (named or attributes or _numbers(t + 1)[-1:])[0]
    return _numbers(t + 1)[-1]


def _numbers(length: int) -> list[str]:
    return [f"#{t + 1}" for t in range(length)]


def _rows(y: Any, length: int, example: str = "sequence") -> Any:
    if len(y) != length:
        raise ValueError(f"X has {length} {example}s but y has {len(y)}")
    return y


def _plain(labels: Any) -> list[Any]:
    return labels.ravel().tolist() if isinstance(labels, np.ndarray) else list(labels)


def _of_nodes(labels: Any, graph: Any) -> list[Any]:
    """Labels in the order of the nodes; dictionaries by node belong to networkx graphs."""
    return [labels[node] for node in graph.nodes] if isinstance(labels, Mapping) else _plain(labels)


def _iob(given: Sequence[Any], predicted: list[str]) -> list[str]:
    """IOB labels as they are, or those of segments (begin, end, label)."""
    if all(isinstance(label, str) for label in given) and (len(given) > 0 or not predicted):
        return list(given)
    labels = ["O"] * len(predicted)
    for begin, end, label in given:
        labels[begin:end] = [f"B-{label}", *[f"I-{label}"] * (end - begin - 1)]
    return labels


def _sets(model: Any, X: Any, y: Any) -> Outcome:
    """Every label of every example is a position: its name where it is on."""
    names = np.asarray(model.classes_).tolist()
    predicted = [[name if on else OFF for name, on in zip(names, row, strict=True)] for row in model.predict(X)]
    gold = [_switched(row, names) for row in (y.toarray() if hasattr(y, "toarray") else y)]
    return Outcome(gold, predicted, lambda i: [str(name) for name in names], "example", "label", "sets")


def _switched(row: Any, names: list[Any]) -> list[Any]:
    """Names of the labels that are on, in a row of zeros and ones or in a set of labels."""
    values = list(row)
    indicator = not isinstance(row, (set, frozenset)) and len(values) == len(names) and set(values) <= {0, 1}
    if indicator:
        return [name if on else OFF for name, on in zip(names, values, strict=True)]
    unknown = [label for label in values if label not in names]
    if unknown:
        raise ValueError(f"the model does not know the label {unknown[0]!r}; it knows {names!r:.300}")
    return [name if name in values else OFF for name in names]
