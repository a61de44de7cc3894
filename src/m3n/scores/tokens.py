"""Scores of single labels, and of sets of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from m3n.scores.pairs import Label, Labels, Pairs, ordered_labels
from m3n.scores.table import Scores, tabulate


def token_scores(gold: Labels, predicted: Labels) -> Scores:
    """Scores of labels, token by token. Every token has one label, so precision, recall and F1 of all are the accuracy.

    Parameters
    ----------
    gold, predicted : sequences of labels
        The gold labels, and those that were predicted for the same tokens.

    Examples
    --------
    >>> print(token_scores([["DT", "NN"], ["VB"]], [["DT", "NN"], ["NN"]]))
         precision  recall      F1  gold  predicted
    DT      100.00  100.00  100.00     1          1
    NN       50.00  100.00   66.67     1          2
    VB        0.00    0.00    0.00     1          0
    all      66.67   66.67   66.67     3          3
    right: tokens 66.67%, sequences 50.00%; mean F1 of the rows 55.56
    """
    pairs = Pairs.of(gold, predicted)
    matrix = _matrix(pairs)
    return tabulate(pairs, pairs.classes, np.stack([matrix.diagonal(), matrix.sum(axis=0), matrix.sum(axis=1)]))


def set_scores(gold: Labels, predicted: Labels, classes: Iterable[Label] | None = None) -> Scores:
    """Scores of sets of labels, with a row for every label.

    ``accuracy`` is 1 - Hamming loss, ``sequence_accuracy`` the share of examples of which the whole set is right
    (subset accuracy), ``f1`` and ``macro_f1`` are what scikit-learn calls micro and macro averages.

    Parameters
    ----------
    gold, predicted : sequences of sets or lists of labels
        The gold labels of every example, and those that were predicted.
    classes : iterable of labels, optional
        All labels; the default is those that occur.

    Examples
    --------
    >>> print(set_scores([{"sea", "sky"}, {"town"}], [{"sea"}, {"sky", "town"}]).text("label", "example"))
          precision  recall      F1  gold  predicted
    sea      100.00  100.00  100.00     1          1
    sky        0.00    0.00    0.00     1          1
    town     100.00  100.00  100.00     1          1
    all       66.67   66.67   66.67     3          3
    right: labels 66.67%, examples 0.00%; mean F1 of the rows 66.67
    """
    if len(gold) != len(predicted):
        raise ValueError(f"there are {len(gold)} gold sets but {len(predicted)} predicted ones")
    rows = [set(labels) for labels in (*gold, *predicted)]
    known = ordered_labels(set().union(*rows), classes)
    if not rows or not known:
        raise ValueError("there is no label to score")
    right, found = np.split(np.array([[label in labels for label in known] for labels in rows]), 2)
    pairs = Pairs(right.ravel(), found.ravel(), known, np.full(len(right), len(known)))
    return tabulate(pairs, known, np.stack([right & found, found, right]).sum(axis=1))


def confusion(
    gold: Labels, predicted: Labels, classes: Iterable[Label] | None = None
) -> tuple[np.ndarray, list[Label]]:
    """How often each label is taken for each: the matrix (gold, predicted), and its labels.

    Parameters
    ----------
    gold, predicted : sequences of labels
        The gold labels, and those that were predicted for the same tokens.
    classes : iterable of labels, optional
        The labels in the wanted order, at least all that occur. The default is just these, in ascending order.

    Examples
    --------
    >>> matrix, classes = confusion([["DT", "NN"], ["VB"]], [["DT", "NN"], ["NN"]])
    >>> classes, matrix.tolist()
    (['DT', 'NN', 'VB'], [[1, 0, 0], [0, 1, 0], [0, 1, 0]])
    """
    pairs = Pairs.of(gold, predicted, classes)
    return _matrix(pairs), pairs.classes


def _matrix(pairs: Pairs) -> np.ndarray:
    n = len(pairs.classes)
    return np.bincount(pairs.gold * n + pairs.predicted, minlength=n * n).reshape(n, n)
