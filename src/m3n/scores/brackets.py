"""Scores of phrase structure trees: labelled brackets as EVALB counts them.

A bracket is the label of a phrase with the words that it covers. As in EVALB with the parameters that papers report,

- punctuation does not count as words, and neither do brackets that cover nothing else;
- the root symbol and parts of speech are no brackets;
- ADVP and PRT are one label;
- a tree may have the same bracket twice, and then it counts twice.

With ``right`` the brackets that gold and predicted trees have in common, summed over all sentences,

    precision = right / predicted,   recall = right / gold,   F1 = 2 right / (predicted + gold).

Which words are punctuation is what the gold tree says.

Reference: Black et al., "A procedure for quantitatively comparing the syntactic coverage of English grammars", 1991.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from m3n.io.brackets import ParseTree
from m3n.scores.table import Row, counted_rows

PUNCTUATION = frozenset({",", ":", "``", "''", ".", "-NONE-"})
ROOTS = frozenset({"TOP", "ROOT", "S1"})
SAME = {"PRT": "ADVP"}

Bracket = tuple[str, int, int]


class Phrase(NamedTuple):
    """A label above words.

    Attributes
    ----------
    label : str
        As the tree has it.
    begin, end : int
        The words, all of them counted, end exclusive.
    bracket : tuple or None
        Label and words as they are compared; None if it does not count.
    """

    label: str
    begin: int
    end: int
    bracket: Bracket | None


@dataclass(frozen=True)
class BracketScores:
    """How many brackets, tags and trees are right.

    Attributes
    ----------
    right, gold, predicted : int
        Brackets in common, of the gold trees, and of the predicted ones.
    exact : float
        Share of trees of which all brackets are right.
    tagging : float
        Share of words with the right part of speech, punctuation included.
    sentences : int
        Number of trees.
    """

    right: int
    gold: int
    predicted: int
    exact: float
    tagging: float
    sentences: int

    @property
    def precision(self) -> float:
        """Share of the predicted brackets that are right."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold brackets that were predicted."""
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of both."""
        total = self.predicted + self.gold
        return 2.0 * self.right / total if total else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Everything by its name, ready for JSON."""
        return {**asdict(self), "precision": self.precision, "recall": self.recall, "f1": self.f1}

    def __str__(self) -> str:
        """One line, in percent."""
        named = {"F1": self.f1, "precision": self.precision, "recall": self.recall, "exact": self.exact}
        figures = ", ".join(f"{name} {100 * value:.2f}" for name, value in {**named, "tags": self.tagging}.items())
        return f"{figures} ({self.sentences} trees)"


def bracket_scores(gold: Sequence[Any], predicted: Sequence[Any]) -> BracketScores:
    """Compare trees.

    Parameters
    ----------
    gold, predicted : sequences of ParseTree
        The gold trees, and those that were predicted for the same words; or what ``ParseTree.of`` takes.

    Examples
    --------
    >>> gold = ["(S (NP (DT the) (NN dog)) (VP (VBZ barks) (ADVP (RB loudly))) (. .))"]
    >>> predicted = ["(S (NP (DT the) (NN dog)) (VP (VBZ barks) (NP (NN loudly))) (. .))"]
    >>> print(bracket_scores(gold, predicted))
    F1 75.00, precision 75.00, recall 75.00, exact 0.00, tags 80.00 (1 trees)
    """
    if len(gold) != len(predicted):
        raise ValueError(f"there are {len(gold)} gold trees but {len(predicted)} predicted ones")
    right = total = found = exact = tags = words = 0
    for i, (one, other) in enumerate(zip(map(ParseTree.of, gold), map(ParseTree.of, predicted), strict=True)):
        _check_words(one, other, i)
        counted = words_that_count(one)
        a, b = Counter(brackets(one, counted)), Counter(brackets(other, counted))
        both = (a & b).total()
        right, total, found = right + both, total + a.total(), found + b.total()
        exact += a == b
        tags += sum(x.label == y.label for x, y in zip(one.tags(), other.tags(), strict=True))
        words += len(counted)
    return BracketScores(right, total, found, exact / max(len(gold), 1), tags / max(words, 1), len(gold))


def brackets(tree: ParseTree, counted: Sequence[bool] | None = None) -> list[Bracket]:
    """The brackets of a tree, as (label, begin, end).

    Parameters
    ----------
    tree : ParseTree
        A tree.
    counted : sequence of bool, optional
        Which words count; the default is all but punctuation.
    """
    return [phrase.bracket for phrase in phrases(tree, counted) if phrase.bracket is not None]


def phrases(tree: ParseTree, counted: Sequence[bool] | None = None) -> list[Phrase]:
    """The phrases of a tree, those inside before those around them.

    Parameters
    ----------
    tree : ParseTree
        A tree.
    counted : sequence of bool, optional
        As in ``brackets``.
    """
    counts = words_that_count(tree) if counted is None else counted
    before = [0]
    for count in counts:
        before.append(before[-1] + bool(count))
    found: list[Phrase] = []
    _collect(tree, 0, before, found)
    return found


def words_that_count(tree: ParseTree) -> list[bool]:
    """Which words are no punctuation.

    Parameters
    ----------
    tree : ParseTree
        A tree.
    """
    return [tag.label not in PUNCTUATION for tag in tree.tags()]


def bracket_rows(gold: Sequence[Any], predicted: Sequence[Any]) -> list[Row]:
    """Precision, recall and F1 of brackets by their labels.

    Parameters
    ----------
    gold, predicted : sequences of ParseTree
        As in ``bracket_scores``.
    """
    counts: tuple[Counter[Any], ...] = Counter(), Counter(), Counter()  # in both, predicted, gold
    for one, other in _compared(gold, predicted):
        for total, found in zip(counts, (one & other, other, one), strict=True):
            for (label, _, _), many in found.items():
                total[label] += many
    return counted_rows(*counts)


def _compared(gold: Sequence[Any], predicted: Sequence[Any]) -> Iterator[tuple[Counter[Bracket], Counter[Bracket]]]:
    """The brackets of every gold tree, and of the predicted one, with the words that count in the gold tree."""
    for one, other in zip(map(ParseTree.of, gold), map(ParseTree.of, predicted), strict=True):
        counted = words_that_count(one)
        yield Counter(brackets(one, counted)), Counter(brackets(other, counted))


def _collect(tree: ParseTree, begin: int, before: list[int], found: list[Phrase]) -> int:
    """Add the phrases of a tree from word ``begin`` on; where it ends."""
    if tree.is_tag:
        return begin + 1
    end = begin
    for child in tree.children:
        end = _collect(child, end, before, found)
    counts = before[end] > before[begin] and tree.label not in ROOTS
    bracket = (SAME.get(tree.label, tree.label), before[begin], before[end]) if counts else None
    found.append(Phrase(tree.label, begin, end, bracket))
    return end


def _check_words(gold: ParseTree, predicted: ParseTree, i: int) -> None:
    one, other = gold.words(), predicted.words()
    if one != other:
        k = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
        raise ValueError(
            f"sentence {i}: the trees have different words from word {k} on: {one[k : k + 1]} and {other[k : k + 1]}"
        )
