"""More lams for the sake of a guarantee.

From the best lam outwards, upwards and downwards in turn, lams are solved to a gap that is small against the cell that
they are for: the optima of a cell of reach r (half its width in logarithms) lie within about |w| r/2, to which the gap
adds a half of that. The reach is the largest at which the bounds fulfil the wish, and the guess for the next one.
"""

from __future__ import annotations

import math
from typing import Any

from m3n.compiled.progress import clock
from m3n.tuning.candidates import Candidate, mean
from m3n.tuning.fold_run import FoldRun
from m3n.tuning.guarantee import POINTS, Cell

FIRST = 0.01  # half the width of the first cell of a guarantee, in logarithms
OVERLAP = 1.8  # of the reach: how far the next lam is from the edge of a cell that may be as wide, at most 2
STRICTER = 4.0  # how much smaller a reach is taken where the gap alone is too large
GROWTH, TRIES = 1.3, 3  # how cells are made wider, and how often from one to the next
FINE = 0.25  # radius of the gap, by |w| and the reach, of which a cell has a half at its ends
THINNEST = 1e-5  # reach of a cell


class Refinement:
    """More lams, solved better, from the best one outwards, each in the middle of a cell as wide as the wish allows.

    Parameters
    ----------
    search : Search
        The search, which gets their candidates and cells.
    k : int
        Number of the combination.
    wish : float
        Points that no lam may be better.
    budget : float
        Seconds.
    """

    def __init__(self, search: Any, k: int, wish: float, budget: float):
        self.search, self.k, self.wish, self.until = search, k, wish, clock() + budget
        self.range = min(c.lam for c in search.candidates[k]), max(c.lam for c in search.candidates[k])
        self.runs: list[FoldRun] = []
        self.reach = FIRST  # half the width of a cell, in logarithms

    def go(self) -> None:
        """Extend what is proven, upwards and downwards in turn, to the ends of the range or of time."""
        if not self._left():
            return
        self.runs = [self.search.fold_run(self.k, number) for number in range(self.search.data.folds)]
        begin = self.search.best()[1].lam
        if not self._cover(begin):
            return
        edges = {1.0: begin * math.exp(self.reach), -1.0: begin * math.exp(-self.reach)}
        while self._left() and (ahead := [way for way, edge in edges.items() if self._inside(edge)]):
            way = min(ahead, key=lambda way: abs(math.log(edges[way] / begin)))
            further = self._extend(edges[way], way)
            if further == edges[way]:
                return
            edges[way] = further

    def _left(self) -> float:
        return max(self.until - clock(), 0.0)

    def _inside(self, edge: float) -> bool:
        return self.range[0] < edge < self.range[1]

    def _extend(self, edge: float, way: float) -> float:
        """The new edge after one more cell that meets the old one; the old one if there is none."""
        step = OVERLAP * self.reach
        while self._left() and step > THINNEST:
            lam = min(max(edge * math.exp(way * step), self.range[0]), self.range[1])
            if self._cover(lam) and way * math.log(edge / lam) >= -self.reach:
                return lam * math.exp(way * self.reach)
            step /= 2.0
        return edge

    def _cover(self, lam: float) -> bool:
        """Solve for a lam and prove a cell around it; False if not even that lam can be proven to be no better."""
        self._solve(lam)
        while not self._enough(self._bounds(lam, 0.0)):
            if not self._left() or self.reach < THINNEST:
                return False
            self.reach /= STRICTER
            self._solve(lam)
        bounds = self._widest(lam)
        if bounds:
            cell = lam * math.exp(-self.reach), lam * math.exp(self.reach)
            self.search.cells[self.k] += [Cell(run.number, *cell, *b) for run, b in zip(self.runs, bounds, strict=True)]
        self.search.tell(f"proven {math.exp(2 * self.reach) - 1:.1%} around {lam:.3g}")
        return bool(bounds)

    def _solve(self, lam: float) -> None:
        """On all folds, as well as cells of this reach want it."""
        made, limit = Candidate(self.search.settings[self.k], lam, added=True), self._left()
        for run in self.runs:
            for point in run.walk([lam], {"tol": 0.0, "rtol": (FINE * self.reach) ** 2 / 2.0}, limit):
                made.note(run.score(), point)
        self.search.candidates[self.k].append(made)

    def _widest(self, lam: float) -> list[tuple[float, float]]:
        """Bounds of all folds for the widest cell that fulfils the wish, which sets the reach; none if none does."""
        bounds = self._bounds(lam)
        if self._enough(bounds):
            for _ in range(TRIES):
                self.reach *= GROWTH
                wider = self._bounds(lam)
                if not self._enough(wider):
                    self.reach /= GROWTH
                    break
                bounds = wider
            return bounds
        while self.reach > THINNEST:
            self.reach /= GROWTH
            bounds = self._bounds(lam)
            if self._enough(bounds):
                return bounds
        return []

    def _bounds(self, lam: float, reach: float | None = None) -> list[tuple[float, float]]:
        """Those of all folds for a cell, of this reach if no other is given."""
        reach = self.reach if reach is None else reach
        cell = lam * math.exp(-reach), lam * math.exp(reach)
        return [run.enclosed(run.radius(cell)) for run in self.runs]

    def _enough(self, bounds: list[tuple[float, float]]) -> bool:
        best = mean(self.search.best()[1].scores)
        return POINTS * (mean([upper for _, upper in bounds]) - best) <= self.wish
