"""Scores of chunks: one is right if its kind and both of its ends are."""

from __future__ import annotations

import numpy as np

from m3n.io.schemes import Spans, Tags, first_of, parse, spans
from m3n.scores.pairs import Labels, Pairs
from m3n.scores.table import Scores, tabulate


def chunk_scores(gold: Labels, predicted: Labels, scheme: str = "conll") -> Scores:
    """Scores of chunks, as the shared tasks of CoNLL count them; accuracies are those of the labels.

    Parameters
    ----------
    gold, predicted : sequences of labels
        The gold labels, and those that were predicted for the same tokens.
    scheme : {"conll", "iob1", "iob2", "bioes"}
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


def _common(truth: Spans, found: Spans) -> np.ndarray:
    """The kinds of chunks that are in both; chunks of one side begin at different tokens."""
    _, one, other = np.intersect1d(truth.begins, found.begins, assume_unique=True, return_indices=True)
    same = (truth.ends[one] == found.ends[other]) & (truth.kinds[one] == found.kinds[other])
    return truth.kinds[one[same]]
