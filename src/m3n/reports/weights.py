"""What a model has learnt: scores of neighbouring labels, and the attributes that speak for and against each label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from m3n.estimators.forms import form_of
from m3n.estimators.model_summary import extreme_weights, given_names
from m3n.reports.markup import MINUS, Cell, Column, Markup, Sides, count, heat_map, joined, number, table, tag
from m3n.reports.quality import label_name

MOST = 25  # labels of a heat map
LABELS = 100  # labels whose attributes are listed
TOP = 6  # attributes for, and as many against a label
BEGIN, END = "(begin)", "(end)"
FORBIDDEN = "×"


def transitions(model: Any, gold: list[list[Any]]) -> Markup:
    """Scores of pairs of neighbouring labels as a heat map, zero in the middle.

    Parameters
    ----------
    model : estimator
        A fitted one.
    gold : lists of labels
        Where the labels are too many, the most frequent ones here are shown.
    """
    pairs = _pairs(model)
    if pairs is None:
        return tag("p", "This model has no scores for pairs of neighbouring labels.", class_="note")
    classes = np.asarray(model.classes_).tolist()
    kept = _frequent(classes, gold, MOST)
    shown = pairs.only(kept)
    names = [label_name(classes[k]) for k in kept]
    sides = Sides("from", "to", [BEGIN, *names] if pairs.ends else names, [*names, END] if pairs.ends else names)
    largest = float(np.nanmax(np.abs(shown.scores), initial=0.0)) or 1.0
    cells = [
        [_cell(sides.rows[i], sides.columns[j], shown, (i, j), largest) for j in range(len(sides.columns))]
        for i in range(len(sides.rows))
    ]
    words = _about_pairs(len(classes), len(kept), bool(shown.forbidden.any()))
    return joined(tag("p", words), heat_map("Scores of pairs of neighbouring labels", sides, cells))


def attributes(model: Any, gold: list[list[Any]]) -> Markup:
    """For every label, the attributes with the largest weights of either sign; arguments as in ``transitions``."""
    coef, names = getattr(model, "coef_", None), given_names(model)
    if coef is None:
        return tag("p", "This model compares inputs by a kernel: no single attribute has a weight.", class_="note")
    if names is None or len(names) != coef.shape[0]:
        return tag("p", "The columns of the inputs have no names, so their weights are not listed.", class_="note")
    classes = np.asarray(model.classes_).tolist()
    kept = _frequent(classes, gold, LABELS)
    own = extreme_weights(coef, classes, names, TOP)
    columns = [Column("label"), Column("speaks for it"), Column("speaks against it")]
    rows = [_row(label_name(classes[k]), own[classes[k]]) for k in kept]
    words = "Attributes with the largest weights: one that is there adds its weight to the score of the label."
    if len(kept) < len(classes):
        words += f" The {len(kept)} most frequent of {count(len(classes), 'label')} are shown."
    return joined(tag("p", words), table("Largest weights by label", columns, rows))


@dataclass(frozen=True)
class Pairs:
    """Scores of pairs of labels; with ``ends``, the first row is the begin and the last column the end of a sequence.

    Attributes
    ----------
    scores : array (labels, labels), or one larger with ends
        Of a label (row) and the next one (column); what is neither is not a number.
    forbidden : array of bool
        Pairs that never occur.
    ends : bool
        Whether begin and end have scores.
    """

    scores: np.ndarray
    forbidden: np.ndarray
    ends: bool

    def only(self, labels: list[int]) -> Pairs:
        """The pairs of some labels."""
        rows = [0, *(k + 1 for k in labels)] if self.ends else labels
        columns = [*labels, len(self.scores) - 1] if self.ends else labels
        return Pairs(self.scores[np.ix_(rows, columns)], self.forbidden[np.ix_(rows, columns)], self.ends)


def _pairs(model: Any) -> Pairs | None:
    """What a model says about pairs of labels; None if it says nothing."""
    labels, table = len(getattr(model, "classes_", ())), form_of(model).table
    scores = None if table is None else getattr(model, table, None)
    if scores is None or np.shape(scores) != (labels, labels) or not labels:
        return None
    rules, start, end = (getattr(model, name, None) for name in ("constraints_", "start_", "end_"))
    forbidden = np.zeros((labels, labels), bool) if rules is None else rules.forbidden
    if start is None or end is None:
        return Pairs(np.asarray(scores, dtype=float), forbidden, ends=False)
    sides = (np.zeros(labels, bool),) * 2 if rules is None else (rules.forbidden_start, rules.forbidden_end)
    return Pairs(_bordered(scores, (start, end), np.nan), _bordered(forbidden, sides, False), ends=True)


def _bordered(table: Any, sides: tuple[Any, Any], corner: Any) -> np.ndarray:
    """A table with one row above it and one column to its right."""
    start, end = map(np.asarray, sides)
    return np.block([[start[None], np.full((1, 1), corner)], [np.asarray(table), end[:, None]]])


def _about_pairs(labels: int, shown: int, forbidden: bool) -> str:
    words = "What a label (row) adds to the score of the next one (column): blue cells favour the pair, orange ones "
    words += "discourage it."
    if forbidden:
        words += f" Pairs with {FORBIDDEN} are forbidden."
    if shown < labels:
        words += f" The {shown} most frequent of {labels} labels are shown."
    return words


def _cell(down: str, across: str, pairs: Pairs, place: tuple[int, int], largest: float) -> Cell:
    value = float(pairs.scores[place])
    if np.isnan(value):
        return Cell("")
    if pairs.forbidden[place]:
        return Cell(FORBIDDEN, note=f"{down} → {across}: forbidden")
    shown = decimals(value, 2 if largest < 9.995 else 1)
    strength = abs(value) / largest if shown != "0" else 0.0
    return Cell(shown, "blue" if value > 0 else "orange", strength, f"{down} → {across}: {number(value, 4)}")


def decimals(value: float, places: int = 2) -> str:
    """A number with so many decimals, a true minus sign, and a plain zero.

    Parameters
    ----------
    value : float
        Any number.
    places : int
        How many decimals.

    Examples
    --------
    >>> decimals(0.5), decimals(-0.004)
    ('0.50', '0')
    """
    text = f"{value:.{places}f}"
    return "0" if float(text) == 0 else text.replace("-", MINUS)


def _frequent(classes: list[Any], gold: list[list[Any]], most: int) -> list[int]:
    """Numbers of the most frequent classes, in their own order."""
    if len(classes) <= most:
        return list(range(len(classes)))
    seen = Counter(label for labels in gold for label in labels)
    ranked = sorted(range(len(classes)), key=lambda k: -seen[classes[k]])
    return sorted(ranked[:most])


def _row(label: str, own: list[tuple[str, float]]) -> list[tuple[Any, Any]]:
    """A label and its attributes; these columns sort by the first attribute."""
    strongest = [found for found in own if found[1] > 0.0], [found for found in own[::-1] if found[1] < 0.0]
    return [(label, label), *((_listed(found), found[0][0] if found else "") for found in strongest)]


def _listed(found: Iterable[tuple[str, float]]) -> Markup:
    entries = [
        tag("li", tag("span", decimals(weight), class_="weight"), " ", tag("code", name)) for name, weight in found
    ]
    return tag("ul", entries, class_="weights") if entries else Markup("–")
