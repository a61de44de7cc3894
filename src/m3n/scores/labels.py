"""Scores of single labels, of sets of them, and of chunks, of which kind and both ends must be right."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np

from m3n.io.schemes import WRITTEN, Spans, Tags, first_of, parse, spans
from m3n.scores.table import Label, Labels, Pairs, Scores, ordered_labels, tabulate


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
    right = pairs.gold[pairs.gold == pairs.predicted]
    counts = (np.bincount(codes, minlength=len(pairs.classes)) for codes in (right, pairs.predicted, pairs.gold))
    return tabulate(pairs, pairs.classes, np.stack(list(counts)))


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
    n = len(pairs.classes)
    return np.bincount(pairs.gold * n + pairs.predicted, minlength=n * n).reshape(n, n), pairs.classes


def chunk_scores(gold: Labels, predicted: Labels, scheme: str = "conll") -> Scores:
    """Scores of chunks, as the shared tasks of CoNLL count them; accuracies are those of the labels.

    Parameters
    ----------
    gold, predicted : sequences of labels
        The gold labels, and those that were predicted for the same tokens.
    scheme : {"conll", "iob1", "iob2", "ioe1", "ioe2", "bioes", "bilou", "bmes", "bmewo"}
        How chunks are read: "conll" takes all schemes and odd labels too; with the others a chunk that is not written
        as its scheme wants does not count.

    Examples
    --------
    >>> print(chunk_scores([["B-NP", "I-NP", "B-VP"], ["O"]], [["B-NP", "I-NP", "B-NP"], ["O"]]))
         precision  recall     F1  gold  predicted
    NP       50.00  100.00  66.67     1          2
    VP        0.00    0.00   0.00     1          0
    all      50.00   50.00  50.00     2          2
    right: tokens 75.00%, sequences 50.00%; mean F1 of the rows 33.33
    """
    pairs = Pairs.of(gold, predicted)
    prefixes, kinds, names = parse(pairs.classes, scheme)
    first = first_of(pairs.lengths)
    truth, found = (
        spans(Tags(prefixes[codes], kinds[codes], first), scheme) for codes in (pairs.gold, pairs.predicted)
    )
    each = _common(truth, found), found.kinds, truth.kinds
    counts = np.stack([np.bincount(kinds, minlength=len(names)) for kinds in each])
    occurring = sorted(np.flatnonzero(counts.any(axis=0)).tolist(), key=names.__getitem__)
    return tabulate(pairs, [names[k] for k in occurring], counts[:, occurring])


def are_chunks(*labels: Labels) -> bool:
    """Whether labels write chunks: all are O or a prefix, of one scheme, and a kind, and some are not O.

    Prefixes without a kind are chunks where B or I is among them.

    Parameters
    ----------
    *labels : sequences of labels
        The gold labels, or these and predicted ones.
    """
    every = set(chain.from_iterable(chain.from_iterable(labels)))
    if every <= {"O"} or not all(isinstance(label, str) for label in every):
        return False
    parts = [label.partition("-") for label in every]
    prefixes = {prefix for prefix, _, _ in parts}
    kinds = all(kind if prefix != "O" else not dash for prefix, dash, kind in parts)
    bare = not any(dash for _, dash, _ in parts) and not prefixes.isdisjoint("BI")
    return (kinds or bare) and any(prefixes <= {"O", *letters} for letters in WRITTEN.values())


def _common(truth: Spans, found: Spans) -> np.ndarray:
    """The kinds of chunks that are in both; chunks of one side begin at different tokens."""
    _, one, other = np.intersect1d(truth.begins, found.begins, assume_unique=True, return_indices=True)
    same = (truth.ends[one] == found.ends[other]) & (truth.kinds[one] == found.kinds[other])
    return truth.kinds[one[same]]
