"""How good the predictions are: right and predicted labels, scores, and which labels are taken for which.

Labels of all kinds of models have one form here, a list of labels per example, see ``Form``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from m3n.estimators.final import proof_of
from m3n.estimators.forms import SEQUENCES, Form, form_of
from m3n.reports.markup import Cell, Column, Markup, Sides, count, grouped, heat_map, joined, percent, table, tag
from m3n.scores import Row, Scores, chunk_scores, confusion, token_scores
from m3n.scores.labels import are_chunks

MOST = 25  # classes of a confusion matrix; more do not fit a page
OTHER = "other"


@dataclass(frozen=True)
class Outcome:
    """What was predicted, and what is right."""

    gold: list[list[Any]]  # one label per position
    predicted: list[list[Any]]  # likewise
    words: Callable[[int], list[str]]  # from the number of an example to the texts of its positions
    form: Form = SEQUENCES  # what the data are made of

    def __post_init__(self) -> None:
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
    def amount(self) -> str:
        """How many data there are, in words."""
        return f"{count(len(self.gold), self.example)}, {count(self.positions, self.position)}"

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


def scores(outcome: Outcome, scheme: str | None) -> Markup:
    """The scores at a glance, and tables per label and per kind of chunk.

    Parameters
    ----------
    outcome : Outcome
        Right and predicted labels.
    scheme : str or None
        How labels write chunks, as in ``m3n.scores.chunk_scores``; None finds out.
    """
    if not outcome.positions:
        return tag("p", f"There are no {outcome.position}s to score.", class_="note")
    tokens = token_scores(outcome.gold, outcome.predicted)
    found = chunks(outcome, scheme)
    tiles = [
        tile(percent(tokens.accuracy), f"of {grouped(outcome.positions)} {outcome.position}s are right"),
        tile(percent(tokens.sequence_accuracy), f"of {outcome.example}s are right throughout"),
        tile(percent(tokens.macro_f1), "mean F1 of all labels"),
    ]
    if found is not None:
        tiles.insert(0, tile(percent(found.f1), "F1 of whole chunks"))
    return joined(
        tag("ul", tiles, class_="tiles"),
        None if found is None else _chunk_part(found, scheme),
        tag("h3", f"{outcome.position.capitalize()}s by label"),
        _table(f"Precision, recall and F1 of {outcome.position}s, by label", "label", tokens.rows),
    )


def chunks(outcome: Outcome, scheme: str | None) -> Scores | None:
    """The scores of chunks, if the labels write chunks.

    Parameters
    ----------
    outcome : Outcome
        Right and predicted labels.
    scheme : str or None
        None asks whether the right labels look like chunks; if they do, these are counted as conlleval does.
    """
    if scheme is None and not are_chunks(outcome.gold, outcome.predicted):
        return None
    return chunk_scores(outcome.gold, outcome.predicted, scheme or "conll")


def proven(model: Any, X: Any) -> Markup | None:
    """How many predictions are those of the exact optimum, if the model can tell.

    Parameters
    ----------
    model : estimator
        A fitted one.
    X : inputs
        As its ``predict`` wants them.
    """
    proof = proof_of(model, X)
    if proof is None or not len(proof.labels):
        return None
    meaning = "More training would not change these; a smaller tolerance (rtol, tol) proves more."
    return tag("p", f"Final: {proof}. {meaning}")


def confusions(outcome: Outcome) -> Markup:
    """Right labels against predicted ones; rare labels together.

    Parameters
    ----------
    outcome : Outcome
        Right and predicted labels.
    """
    if not outcome.form.exclusive:
        text = "Labels are on or off independently of their names, so none is taken for another one."
        return tag("p", text, class_="note")
    if not outcome.positions:
        return tag("p", "There is nothing to compare.", class_="note")
    frequency = Counter(chain(chain.from_iterable(outcome.gold), chain.from_iterable(outcome.predicted)))
    shown = sorted(
        (label for label, _ in frequency.most_common(MOST)), key=lambda label: (isinstance(label, str), label)
    )
    rare = len(frequency) - len(shown)
    names = [*map(label_name, shown), *([OTHER] if rare else [])]
    gold, predicted = _numbered(outcome.gold, shown), _numbered(outcome.predicted, shown)
    matrix = confusion(gold, predicted, classes=list(range(len(names))))[0]
    cells = [[_confused(names, matrix, i, j) for j in range(len(names))] for i in range(len(names))]
    words = (
        f"Rows are the right labels, columns the predicted ones; numbers count {outcome.position}s. Blue cells are "
        "right, orange ones wrong, both stronger the larger their share of the row; a dot is none."
    )
    words += f" Less frequent labels, {grouped(rare)} in number, are taken together as “{OTHER}”." if rare else ""
    caption = f"Right labels against predicted ones, in {outcome.position}s"
    return joined(tag("p", words), heat_map(caption, Sides("right", "predicted", names, names), cells))


def unseen(outcome: Outcome, classes: list[Any]) -> str | None:
    """A sentence about right labels that the model does not know, and cannot predict.

    Parameters
    ----------
    outcome : Outcome
        Right and predicted labels.
    classes : list
        What the model knows.
    """
    if not outcome.form.named:
        return None
    known = set(classes)
    strange = Counter(label for label in chain.from_iterable(outcome.gold) if label not in known)
    if not strange:
        return None
    named = ", ".join(f"“{label}”" for label, _ in strange.most_common(5)) + (", …" if len(strange) > 5 else "")
    what = count(sum(strange.values()), outcome.position)
    many = count(len(strange), "label")
    return f"The model does not know {many} of these data ({named}; {what}): these are wrong in any case."


def _chunk_part(found: Scores, scheme: str | None) -> Markup:
    how = f"by the rules of {scheme}" if scheme else "as conlleval does"
    words = f"A chunk counts as found if its begin, its end and its kind are right, {how}: "
    words += f"precision {percent(found.precision)}, recall {percent(found.recall)}."
    kinds = _table("Precision, recall and F1 of chunks, by kind", "kind", found.rows)
    return joined(tag("h3", "Chunks by kind"), tag("p", words), kinds)


def _table(caption: str, first: str, rows: tuple[Row, ...]) -> Markup:
    columns = [
        Column(first),
        Column("precision", numeric=True, note="share of the predicted ones that are right"),
        Column("recall", numeric=True, note="share of the right ones that are found"),
        Column("F1", numeric=True, note="harmonic mean of precision and recall"),
        Column("support", numeric=True, note="how many there are"),
        Column("predicted", numeric=True, note="how many were predicted"),
    ]
    return table(caption, columns, [_row(row) for row in sorted(rows, key=lambda row: -row.support)])


def _row(row: Row) -> list[tuple[Any, Any]]:
    shares = [(percent(share), float(share)) for share in (row.precision, row.recall, row.f1)]
    return [
        (label_name(row.label), label_name(row.label)),
        *shares,
        *((grouped(n), n) for n in (row.support, row.predicted)),
    ]


def label_name(label: Any) -> str:
    """A label as text, the empty one too."""
    return str(label) or "(empty)"


def tile(value: str, words: str) -> Markup:
    """A number at a glance, and what it is."""
    return tag("li", tag("strong", value), " ", tag("span", words))


def _numbered(sequences: list[list[Any]], shown: list[Any]) -> list[list[int]]:
    """Labels by their places among those that are shown; all others have the number behind these."""
    places = {label: k for k, label in enumerate(shown)}
    return [[places.get(label, len(shown)) for label in labels] for labels in sequences]


def _confused(names: list[str], matrix: Any, i: int, j: int) -> Cell:
    many, total = int(matrix[i][j]), int(sum(matrix[i]))
    if not many:
        return Cell("·")
    note = f"right: {names[i]}, predicted: {names[j]}: {grouped(many)} of {grouped(total)} ({percent(many / total)})"
    mixed = i == j == MOST  # rare labels may well be taken for one another
    return Cell(grouped(many), "" if mixed else "blue" if i == j else "orange", (many / total) ** 0.5, note)
