"""Scores of dependency trees: how many words have the right head, and the right label besides.

*UAS*, the unlabelled attachment score, is the share of words with the right head; *LAS*, the labelled one, that of
words with the right head and label. Either may leave punctuation out, and may take a label such as ``nsubj:pass``
for ``nsubj``, as the shared tasks on Universal Dependencies do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from m3n.scores.table import Row, counted_rows

PUNCTUATION = "PUNCT"


@dataclass(frozen=True)
class AttachmentScores:
    """How good predicted trees are.

    Attributes
    ----------
    words, sentences : int
        How many were scored.
    uas, las : float
        Shares of words with the right head, and with the right head and label.
    label_accuracy : float
        Share of words with the right label, whatever their heads are.
    exact, exact_labelled : float
        Shares of sentences of which all heads are right, and all heads and labels.
    """

    words: int
    sentences: int
    uas: float
    las: float
    label_accuracy: float
    exact: float
    exact_labelled: float

    def as_dict(self) -> dict[str, Any]:
        """Everything by its name, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """A line of percentages."""
        return (
            f"UAS {100 * self.uas:.2f}, LAS {100 * self.las:.2f}, labels {100 * self.label_accuracy:.2f}, "
            f"whole trees {100 * self.exact:.2f} ({100 * self.exact_labelled:.2f} with labels); "
            f"{self.words} words, {self.sentences} sentences"
        )


def attachment_scores(
    gold: Sequence[Sequence[Any]],
    predicted: Sequence[Sequence[Any]],
    tags: Sequence[Sequence[str]] | None = None,
    *,
    subtypes: bool = True,
) -> AttachmentScores:
    """Compare trees.

    Parameters
    ----------
    gold, predicted : sequences of trees
        For every word its head, or a pair of its head and its label.
    tags : sequences of str, optional
        The part of speech of every word: those with ``PUNCT`` are left out.
    subtypes : bool
        Whether what follows a colon in a label counts.

    Examples
    --------
    >>> from m3n.scores import attachment_scores
    >>> print(attachment_scores([[(2, "nsubj:pass"), (0, "root")]], [[(2, "nsubj"), (0, "root")]], subtypes=False))
    UAS 100.00, LAS 100.00, labels 100.00, whole trees 100.00 (100.00 with labels); 2 words, 1 sentences
    """
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} right trees, but {len(predicted)} predicted ones")
    rows = [_compared(gold, predicted, i, tags, subtypes) for i in range(len(gold))]
    pairs = [pair for row in rows for pair in row]
    heads, labels = [head for head, _ in pairs], [label for _, label in pairs]
    return AttachmentScores(
        words=len(pairs),
        sentences=len(rows),
        uas=_share(heads),
        las=_share([head and label for head, label in pairs]),
        label_accuracy=_share(labels),
        exact=_share([all(head for head, _ in row) for row in rows]),
        exact_labelled=_share([all(head and label for head, label in row) for row in rows]),
    )


def attachment_rows(gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]]) -> list[Row]:
    """Precision, recall and F1 of arcs by their labels: an arc is right if head, dependent and label are.

    Parameters
    ----------
    gold, predicted : sequences of trees
        As in ``attachment_scores``.
    """
    counts: tuple[Counter[Any], ...] = Counter(), Counter(), Counter()  # in both, predicted, gold
    for right, other in zip(gold, predicted, strict=True):
        for a, b in zip(right, other, strict=True):
            (head, label), (other_head, other_label) = _plain(a, True), _plain(b, True)
            counts[0][label] += (head, label) == (other_head, other_label)
            counts[1][other_label] += 1
            counts[2][label] += 1
    return counted_rows(*counts)


def _compared(
    gold: Sequence[Any], predicted: Sequence[Any], i: int, tags: Sequence[Sequence[str]] | None, subtypes: bool
) -> list[tuple[bool, bool]]:
    """Whether head and label are right, of every word that counts."""
    if len(gold[i]) != len(predicted[i]):
        raise ValueError(f"sentence {i} has {len(gold[i])} words, but its predicted tree has {len(predicted[i])}")
    found = []
    for t, (right, other) in enumerate(zip(gold[i], predicted[i], strict=True)):
        if tags is None or tags[i][t] != PUNCTUATION:
            (head, label), (other_head, other_label) = _plain(right, subtypes), _plain(other, subtypes)
            found.append((head == other_head, label == other_label))
    return found


def _plain(entry: Any, subtypes: bool) -> tuple[int, Any]:
    """Head and label of a word; no label if there is only a head."""
    head, label = entry if isinstance(entry, tuple | list) else (entry, None)
    return int(head), label.partition(":")[0] if isinstance(label, str) and not subtypes else label


def _share(values: list[bool]) -> float:
    return sum(values) / len(values) if values else 1.0
