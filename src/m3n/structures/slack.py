"""Slack rescaling with a max-oracle alone: an exact search.

Wanted is the largest product g h of an output's loss g = ell(y) and margin h = 1 + s(y) - s(gold). The max-oracle with
the loss scaled by lambda, V = max_y { h + lambda g }, returns a corner of the upper right hull of all points (g, h) and
proves that every output lies below the line h + lambda g = V. The search keeps corners in the order of their losses. A
gap between neighbours A and B, found with scales a < b, holds only outputs below both lines,

    h <= min{ h_A - a (g - g_A), h_B + b (g_B - g) },       g_A < g < g_B,

so g times that minimum bounds their products; its logarithm is concave, which gives the maximum in closed form. The gap
with the largest bound is asked at the slope of the chord AB: either a corner above the chord comes back, which cuts the
gap in two, or the chord is a side of the hull and the bound there is final. The search begins with the largest margin
(lambda = 0) and the largest loss, outside of which no product is larger, and ends when the best corner reaches all
bounds: it is then the optimum, proven. If the losses have a common unit, only its multiples count in a gap.

The optimum need not be a corner, and no scale of the loss can tell what is below a side of the hull. Where the bound of
a side AB stays above the best corner, the outputs are divided (``Structure.branches``): at a row in which A and B have
different labels, one branch forbids the label of A by a score of -inf, the other one forbids all others; or one branch
forbids a part that only A has, and the other one requires it, by a score that no other parts outweigh. Neither is
empty, and each has a hull of its own, further down. The branch with the largest bound is divided next, until the best
corner of all reaches every bound (*branch and bound*). That is exact, but may take exponentially many calls; so it is
given up after ``MOST_CALLS`` (``InexactOracle``), and at once if the structure does not say how to divide its outputs.

Cost: one oracle call per corner that is found, one per side that must be proven, and two more for every branch. With
random scores and Hamming loss 3 to 5 calls on average, with losses without a common unit 7 to 14.

References: Sarawagi, Gupta, "Accurate max-margin training for structured output spaces", 2008; Choi, Meshi, Srebro,
"Fast and scalable structural SVM with slack rescaling", 2016.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

import numpy as np

from m3n.compiled.primitives.units import unit_of

if TYPE_CHECKING:
    from m3n.structures.base import Parts, Structure

EXACT = 1e-9  # of the best product and the largest loss: a bound this close to the best product is reached
ROUNDING = 1e-11  # relative: a corner this close to a chord is on it
MOST_CALLS = 2000  # of the max-oracle, for one example


class InexactOracle(ArithmeticError):
    """The search cannot tell which output has the largest product of loss and margin.

    Parameters
    ----------
    example : int
        The example.
    best : float
        The largest product that was found.
    bound : float
        What no product exceeds.
    reason : str
        Why the search ended.
    """

    def __init__(self, example: int, best: float, bound: float, reason: str):
        super().__init__(
            f"example {example}: slack rescaling found an output with loss times margin {best:.10g}, but cannot "
            f"exclude one of up to {bound:.10g}: {reason}; give the structure a method `slack` of its own, take a loss "
            "with fewer values, or rescale the margin"
        )
        self.example, self.best, self.bound, self.reason = example, best, bound, reason


class Restriction(NamedTuple):
    """Outputs without any of some parts; or, if they are required, with all of them."""

    array: int  # of theta
    parts: np.ndarray  # mask, in the shape of that array
    required: bool = False


class PartCost(Protocol):
    """A loss as costs of parts, as ``m3n.losses.Cost``."""

    def add_to(self, theta: Parts, scale: float = 1.0) -> None:
        """theta += scale * cost, in place."""

    def expected(self, marginals: Parts) -> float:
        """The expected loss."""

    def select(self, rows: Any, examples: Any) -> PartCost:
        """The costs of some examples only."""


@dataclass(frozen=True, eq=False)
class Corner:
    """An output on the hull, and the scale of the loss that found it; infinite for the largest loss."""

    loss: float
    margin: float
    output: np.ndarray
    scale: float

    @property
    def product(self) -> float:
        """What is maximised."""
        return self.loss * self.margin


@dataclass(frozen=True, eq=False)
class Gap:
    """Two neighbouring corners, and a bound on the products of outputs with losses in between."""

    left: Corner
    right: Corner
    bound: float
    final: bool = False


@dataclass(frozen=True, eq=False)
class Branch:
    """Some outputs of an example, and the side of their hull that has the largest bound."""

    rules: tuple[Restriction, ...]
    side: Gap


def search(
    structure: Structure, theta: Parts, gold: np.ndarray, cost: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """max_y ell_i(y) (1 + s_i(y) - s_i(gold)) of every example, the outputs that attain it, packed, and their losses.

    Parameters
    ----------
    structure : Structure
        Output spaces with a max-oracle.
    theta : tuple of arrays
        Scores of the parts, without the loss.
    gold : array of int
        The gold outputs, packed, which answer where no product is positive.
    cost : Cost
        The label loss.
    """
    values, losses, packed = np.zeros(structure.n), np.zeros(structure.n), gold.copy()
    for i in range(structure.n):
        one = np.array([i])
        alone, rows = structure.select(one)
        mine, span = structure.own(theta, i), structure.entries_of(one)
        best = _Example(i, alone, mine, gold[span], cost.select(rows, one)).search()
        if not best.product <= 0.0:
            values[i], losses[i], packed[span] = best.product, best.loss, best.output
    return values, packed, losses


class _Example:
    """The outputs of one example, and the branches into which they are divided."""

    def __init__(self, number: int, alone: Structure, theta: Parts, gold: np.ndarray, cost: PartCost):
        self.number, self.alone, self.theta, self.cost, self.calls = number, alone, theta, cost, 0
        self.gold_score = float(alone.score(theta, gold)[0])
        part_losses = tuple(np.zeros(shape) for shape in alone.shapes)
        cost.add_to(part_losses)
        self.size = sum(float(np.abs(array[np.isfinite(array)]).sum()) for array in theta)
        self.cost_size = sum(float(np.abs(array).sum()) for array in part_losses)
        self.unit = float(unit_of(np.abs(np.concatenate([array.ravel() for array in part_losses]))))

    def search(self) -> Corner:
        """The output with the largest product."""
        top, widest = self._ask((), 0.0), self._ask((), np.inf)
        self.best, self.widest = top, widest
        if not top.margin > 0.0:  # nor has any other output a positive one
            return top
        left = [*self._unsettled((), top, widest)]
        while left:
            branch = max(left, key=attrgetter("side.bound"))
            left.remove(branch)
            if self._reaches(branch.side.bound):
                break
            left += self._divided(branch)
        return self.best

    def _divided(self, branch: Branch) -> Iterator[Branch]:
        """What is unsettled of the branches of a branch."""
        side = branch.side
        divided = self.alone.branches(side.left.output, side.right.output)
        if not divided:
            self._give_up(side, f"{type(self.alone).__name__} does not say how to divide its outputs")
        if self.calls >= MOST_CALLS:
            self._give_up(side, f"{self.calls} calls of the max-oracle were not enough")
        for rule in divided:
            rules = (*branch.rules, Restriction(*rule))
            yield from self._unsettled(rules, self._ask(rules, 0.0), self._ask(rules, np.inf))

    def _unsettled(self, rules: tuple[Restriction, ...], top: Corner, widest: Corner) -> Iterator[Branch]:
        """The branch of the outputs that obey some rules, unless the best corner reaches all of its bounds."""
        self.best = max(self.best, top, widest, key=attrgetter("product"))
        gaps = [self._gap(top, widest)] if widest.loss > top.loss else []
        while gaps:
            gap = max(gaps, key=attrgetter("bound"))
            if self._reaches(gap.bound):
                return
            if gap.final:
                yield Branch(rules, gap)
                return
            gaps.remove(gap)
            for part in self._asked(rules, gap):
                self.best = max(self.best, part.left, part.right, key=attrgetter("product"))
                gaps.append(part)

    def _reaches(self, bound: float) -> bool:
        return bound <= self.best.product + EXACT * (self.best.product + self.widest.loss)

    def _give_up(self, side: Gap, reason: str) -> NoReturn:
        raise InexactOracle(self.number, self.best.product, side.bound, reason)

    def _ask(self, rules: tuple[Restriction, ...], scale: float) -> Corner:
        """The output with the largest margin + scale * loss of those that obey the rules."""
        self.calls += 1
        if scale == np.inf:
            theta = tuple(np.where(np.isinf(array), array, 0.0) for array in self.theta)
        else:
            theta = tuple(array.copy() for array in self.theta)
        self.cost.add_to(theta, 1.0 if scale == np.inf else scale)
        # no other parts together outweigh a required one
        bonus = 4.0 * (1.0 + (self.cost_size if scale == np.inf else self.size + scale * self.cost_size))
        for number, parts, required in rules:
            theta[number][parts] = theta[number][parts] + bonus if required else -np.inf
        output = self.alone.hard(theta)[1]
        margin = 1.0 + float(self.alone.score(self.theta, output)[0]) - self.gold_score
        return Corner(float(self.cost.expected(self.alone.encode(output))), margin, output, scale)

    def _asked(self, rules: tuple[Restriction, ...], gap: Gap) -> Iterator[Gap]:
        """What is left of a gap after a call at the slope of its chord."""
        left, right = gap.left, gap.right
        if left.margin <= right.margin:  # the right one has the largest margin of all
            return
        slope = (left.margin - right.margin) / (right.loss - left.loss)
        corner = self._ask(rules, slope)
        above = corner.margin - left.margin + slope * (corner.loss - left.loss)
        size = abs(left.margin) + abs(right.margin) + slope * right.loss + abs(self.gold_score)
        if above > ROUNDING * size and left.loss < corner.loss <= right.loss:
            yield self._gap(left, corner)
            if corner.loss < right.loss:
                yield self._gap(corner, right)
            return
        between = [corner] if left.loss < corner.loss < right.loss else []
        for one, other in pairwise([replace(left, scale=slope), *between, replace(right, scale=slope)]):
            yield Gap(one, other, self._bound(one, other), final=True)

    def _gap(self, left: Corner, right: Corner) -> Gap:
        return Gap(left, right, self._bound(left, right))

    def _bound(self, left: Corner, right: Corner) -> float:
        """The largest g min{...} with g between the two losses, the right one included if it has the largest loss."""

        def height(g: float) -> float:
            falling = left.margin - left.scale * (g - left.loss)
            return falling if right.scale == np.inf else min(falling, right.margin + right.scale * (right.loss - g))

        peaks = _peaks(left, right)
        if self.unit > 0.0:
            least, most = round(left.loss / self.unit) + 1, round(right.loss / self.unit) - (right.scale < np.inf)
            near = {min(max(f(g / self.unit), least), most) for g in peaks for f in (np.floor, np.ceil)}
            peaks = [k * self.unit for k in near] if least <= most else []
        return max((g * height(g) for g in peaks), default=-np.inf)


def _peaks(left: Corner, right: Corner) -> list[float]:
    """Where g times a line is largest, for both lines where they bound, and where they meet."""
    low, high = left.loss, right.loss
    meet = high
    if left.scale < right.scale < np.inf:
        difference = left.margin + left.scale * low - right.margin - right.scale * high
        meet = min(max(-difference / (right.scale - left.scale), low), high)
    peaks = [meet]
    if left.scale > 0.0:
        peaks.append(min(max((left.margin / left.scale + low) / 2.0, low), meet))
    if right.scale < np.inf:
        peaks.append(min(max((right.margin / right.scale + high) / 2.0, meet), high))
    return peaks
