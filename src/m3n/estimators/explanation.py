"""Why a sequence got its labels: the score of a labelling taken apart, term by term.

    score(y) = sum_t { sum_j x_tj coef[j, y_t] + transition[y_t-1, y_t] + sum_j z_tj edge_coef[j, y_t-1, y_t] }
               + start[y_1] + end[y_T]

Every term belongs to one position: what leads from a position to the next counts at the second one of the two. So the
contributions of all positions add up to the score.

A position is compared with its *other* label, the one that would cost least if only the label at this position were
another one. The step to the next position then changes too, so those terms stand beside the contributions, in
``after``: the differences of both add up to ``margin``, the score that the other label would cost.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

TITLES = {"pair": " (pair)", "rest": ""}  # what the name of a contribution does not say by itself


@dataclass(frozen=True)
class Contribution:
    """One term of the score of a label, and of the label that it is compared with.

    Attributes
    ----------
    kind : str
        What it comes from. "attribute" of the position, or of a "pair" of neighbours; "support", an input that a kernel
        model keeps; "feature" that an approximation of a kernel makes; "start", "end" and "transition", the places of
        the labels; "arc", "label", "sibling" and "grandchild" of trees, and "word", another one whose terms change;
        "rest", all that ``top`` leaves out.
    name : str
        Of the attribute; for a transition the neighbour's label.
    value : float or None
        Of the attribute: what the weight is multiplied by. None for "rest".
    score : float
        value * weight for the label.
    other : float or None
        The same for the other label; None if there is no other one.
    """

    kind: str
    name: str
    value: float | None
    score: float
    other: float | None

    @property
    def difference(self) -> float | None:
        """How much it speaks for the label and against the other one."""
        return None if self.other is None else self.score - self.other

    @property
    def title(self) -> str:
        """The name, with the value unless that is 1."""
        value = "" if self.value in (None, 1.0) else f" × {self.value:.3g}"
        return f"{self.name}{value}{TITLES.get(self.kind, '')}"


@dataclass(frozen=True)
class Position:
    """One position of an explained sequence.

    Attributes
    ----------
    number : int
        Counted from 0.
    text : str
        The first column of tokens in columns; empty for other inputs.
    label : str, int or float
        The label that is explained.
    probability : float
        Of this label here, under exp(score).
    score : float
        The sum of ``contributions``.
    other : str, int, float or None
        The label that would cost least, the neighbours' labels being what they are; None if no other one is allowed.
    other_probability : float or None
        Of the other label.
    margin : float or None
        What the other label would cost; below 0 if it would be better.
    contributions : list of Contribution
        The terms of the score, the largest differences first, then the places of the labels.
    after : list of Contribution
        The terms that lead to the next position, in whose score they count; the other label would change them too.
    """

    number: int
    text: str
    label: Any
    probability: float
    score: float
    other: Any
    other_probability: float | None
    margin: float | None
    contributions: list[Contribution]
    after: list[Contribution]

    def reasons(self, count: int) -> list[Contribution]:
        """The contributions with the largest differences, whichever way they point.

        Parameters
        ----------
        count : int
            How many at most.
        """
        found = [c for c in (*self.contributions, *self.after) if c.difference]
        return sorted(found, key=lambda c: -abs(c.difference or 0.0))[:count]


@dataclass(frozen=True)
class Explanation:
    """Why a sequence has its labels and not others.

    Attributes
    ----------
    labels : list
        The labels that are explained.
    score : float
        Their score, the sum of the scores of all positions.
    probability : float
        Of these labels together, under exp(score).
    rival : list or None
        The best other labels of the whole sequence: the runner-up of the prediction; the prediction, if other labels
        than these are explained. None if there are no other ones.
    rival_score : float or None
        Its score.
    positions : list of Position
        Position by position.
    """

    labels: list[Any]
    score: float
    probability: float
    rival: list[Any] | None
    rival_score: float | None
    positions: list[Position]

    _place: ClassVar[str] = "position"
    _further: ClassVar[str] = "with the next position"

    @property
    def margin(self) -> float | None:
        """By how much the labels are better than the rival; below 0 if they are worse."""
        return None if self.rival_score is None else self.score - self.rival_score

    def as_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists, strings and numbers, ready for JSON."""
        plain = asdict(self) | {"margin": self.margin}
        for position, written in zip(self.positions, plain["positions"], strict=True):
            for name in ("contributions", "after"):
                for contribution, entry in zip(getattr(position, name), written[name], strict=True):
                    entry["difference"] = contribution.difference
        return plain

    def signed(self, number: float | None) -> str:
        """A number with its sign, with as many digits as the largest one here needs.

        Parameters
        ----------
        number : float or None
            What to write; None gives nothing.
        """
        return "" if number is None else f"{number:+.{self._digits()}f}"

    def verdict(self) -> list[str]:
        """The whole sequence in sentences."""
        lines = [f"score {self.signed(self.score)}, probability {self.probability:.3g}"]
        if self.rival is None or self.margin is None:
            return [*lines, "no other labels are possible"]
        numbers = [position.number for position in self.positions]
        where = [str(t) for t, a, b in zip(numbers, self.labels, self.rival, strict=True) if a != b]
        places = f"{self._place}{'s' * (len(where) > 1)} {', '.join(where)}"
        side = "below" if self.margin >= 0 else "above"
        size = self.signed(abs(self.margin)).lstrip("+")
        return [*lines, f"the best other labels are {size} {side} and differ at {places}"]

    def __str__(self) -> str:
        """As aligned text."""
        return "\n\n".join(["\n".join(self.verdict()), *(self._section(position) for position in self.positions)])

    def _repr_html_(self) -> str:
        """For notebooks."""
        from m3n.estimators.notebook import explanation_page

        return explanation_page(self)

    def rows(self, position: Position) -> list[tuple[str, str, str, str]]:
        """The table of a position: name, score, score of the other label, difference.

        Parameters
        ----------
        position : Position
            One of ``positions``.
        """

        def row(name: str, score: float, other: float | None) -> tuple[str, str, str, str]:
            difference = None if other is None else score - other
            return name, self.signed(score), self.signed(other), self.signed(difference)

        def total(terms: list[Contribution]) -> tuple[float, float | None]:
            others = [term.other for term in terms if term.other is not None]
            return math.fsum(term.score for term in terms), math.fsum(others) if position.other is not None else None

        here, after = position.contributions, position.after if position.other is not None else []
        rows = [row(term.title, term.score, term.other) for term in here]
        rows.append(row(f"this {self._place}", *total(here)))
        if after:
            rows += [row(term.title, term.score, term.other) for term in after]
            rows.append(row(self._further, *total([*here, *after])))
        return rows

    def heading(self, position: Position) -> str:
        """A position in a sentence.

        Parameters
        ----------
        position : Position
            One of ``positions``.
        """
        text = f" {position.text!r}" if position.text else ""
        start = f"{self._place} {position.number}{text}: {position.label}, probability {position.probability:.3g}"
        if position.margin is None:
            return f"{start}; no other label is possible here"
        change = "cost" if position.margin >= 0 else "gain"
        return f"{start}; {position.other} instead would {change} {self.signed(abs(position.margin)).lstrip('+')}"

    def _section(self, position: Position) -> str:
        compared = position.other is not None
        header = ("", str(position.label), *((str(position.other), "difference") if compared else ("", "")))
        table = [header, *self.rows(position)]
        widths = [max(len(row[k]) for row in table) for k in range(4)]
        lines = [f"  {row[0]:<{widths[0]}}" + "".join(f"  {row[k]:>{widths[k]}}" for k in (1, 2, 3)) for row in table]
        return "\n".join([self.heading(position), *(line.rstrip() for line in lines)])

    def _digits(self) -> int:
        """Three digits of the largest contribution."""
        sizes = [abs(c.score) for position in self.positions for c in position.contributions]
        largest = max(sizes, default=0.0) or 1.0
        return min(max(2 - math.floor(math.log10(largest)), 0), 12)


@dataclass(frozen=True)
class TreeExplanation(Explanation):
    """Why words depend on the words that they depend on: an ``Explanation`` whose positions are words, counted from 1.

    The labels are those of a dependency tree: heads, or pairs of head and label. ``other`` of a word is what it has in
    the best tree in which that is another one, and ``after`` are the other words that this tree changes too.
    """

    _place: ClassVar[str] = "word"
    _further: ClassVar[str] = "with the other words"
