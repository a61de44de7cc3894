"""Scores of word alignments: links A that were found against sure links S and possible links P (Och and Ney 2003).

    precision = |A and (S or P)| / |A|        recall = |A and S| / |S|
    AER       = 1 - (|A and S| + |A and (S or P)|) / (|A| + |S|)

The alignment error rate counts links of all sentence pairs together. A possible link is never wrong, found or not.
Where nothing was found precision is 1, where there is nothing to find recall is: no mistake was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from m3n.io.alignments import Alignment


@dataclass(frozen=True)
class AlignmentScores:
    """How good predicted links are.

    Attributes
    ----------
    pairs : int
        How many sentence pairs were scored.
    predicted, sure, possible : int
        How many links were predicted, and how many there are of either kind.
    precision : float
        Share of predicted links that are sure or possible.
    recall : float
        Share of sure links that were predicted.
    f1 : float
        Harmonic mean of these two.
    aer : float
        Alignment error rate.
    exact : float
        Share of sentence pairs without any error.
    """

    pairs: int
    predicted: int
    sure: int
    possible: int
    precision: float
    recall: float
    f1: float
    aer: float
    exact: float

    def as_dict(self) -> dict[str, Any]:
        """Everything by its name, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """A line of percentages."""
        return (
            f"AER {100 * self.aer:.2f}, precision {100 * self.precision:.2f}, recall {100 * self.recall:.2f}, "
            f"whole pairs {100 * self.exact:.2f}; {self.predicted} links, {self.sure} sure and {self.possible} "
            f"possible ones in {self.pairs} pairs"
        )


def alignment_scores(gold: Sequence[Any], predicted: Sequence[Any]) -> AlignmentScores:
    """Compare alignments.

    Parameters
    ----------
    gold : sequence of Alignment
        The right links of every sentence pair; if they are other pairs of numbers, all are sure.
    predicted : sequence of links
        Pairs of numbers; if they are an Alignment, its possible links are predicted, too.

    Examples
    --------
    >>> from m3n.io import Alignment
    >>> from m3n.scores import alignment_scores
    >>> gold = Alignment(sure=frozenset({(0, 0), (1, 1)}), possible=frozenset({(1, 2)}))
    >>> print(alignment_scores([gold], [[(0, 0), (1, 2), (2, 2)]]))
    AER 40.00, precision 66.67, recall 50.00, whole pairs 0.00; 3 links, 2 sure and 1 possible ones in 1 pairs
    """
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} right alignments, but {len(predicted)} predicted ones")
    right, found = [Alignment.of(links) for links in gold], [Alignment.of(links).links for links in predicted]
    compared = list(zip(right, found, strict=True))
    hits = sum(len(links & alignment.links) for alignment, links in compared)
    sure_hits = sum(len(links & alignment.sure) for alignment, links in compared)
    many, sure = sum(map(len, found)), sum(len(alignment.sure) for alignment in right)
    precision, recall = _share(hits, many), _share(sure_hits, sure)
    return AlignmentScores(
        pairs=len(right),
        predicted=many,
        sure=sure,
        possible=sum(len(alignment.possible) for alignment in right),
        precision=precision,
        recall=recall,
        f1=2.0 * precision * recall / (precision + recall) if precision + recall else 0.0,
        aer=1.0 - _share(hits + sure_hits, many + sure),
        exact=_share(sum(not alignment_errors(alignment, links) for alignment, links in compared), len(right)),
    )


def alignment_errors(gold: Any, predicted: Any) -> int:
    """How many links of a sentence pair are wrong or missed.

    Parameters
    ----------
    gold, predicted : Alignment, or iterables of (int, int)
        As in ``alignment_scores``.
    """
    right, found = Alignment.of(gold), Alignment.of(predicted).links
    return len(found - right.links) + len(right.sure - found)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
