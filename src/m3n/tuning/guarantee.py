"""What weights for one lam prove about the optima for all lams near it.

Let w be weights at lam0 with a certificate: J(w) - D(alpha) = g. With u = w(alpha) and R the objective without its
regulariser, R(w') >= b - lam0 <w', u> for all w', where b = D(alpha) + lam0/2 |u|^2. The optimum w* for another lam
beats w there by lam/2 |w - w*|^2 at least. With k = lam0 / lam both together are (Ndiaye et al., by the smaller ball)

    |w* - (w + k u)/2|^2  <=  |(w - k u)/2|^2 + g/lam + (terms that vanish at k = 1 or u = w).

Only |w - u| <= r0 = sqrt(2 g / lam0) is known of u, wherever w and alpha come from; writing u = w + e, the optimum lies
in a ball around s w, s = (1 + k)/2. Scores that all are s times as large predict the same, so everything is divided by
s. The radius z in units of w obeys

    z^2 <= a^2 + r0^2/2 + B r0 (z + a) - A r0^2/2,     a = |1 - k|/(1 + k) |w|,   B = 2k/(1 + k),   A = 4k/(1 + k)^2,

for every k in question if a and B are the largest and A is the smallest of them. ``relative_radius`` is the larger
root. For an exact optimum (r0 = 0) it is |w| |lam - lam0| / (lam + lam0).

An output that w prefers by more than z times the distance of its features to every other one is the prediction of all
those optima (``m3n.tuning.finality``). So for every lam in a *cell* around a solved lam0 the number of right positions
is enclosed: at most those that are not proven wrong, at least those that are proven right. Cells that meet make an
interval of the validation score for a whole range of lam, and the answer "no lam in it is better by more than x".

Reference: Ndiaye, Le, Fercoq, Salmon, Takeuchi, "Safe grid search with optimal complexity", 2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

POINTS = 100.0  # of a score of 1
ROUNDING = 1e-9  # relative, of radii and of scores that are compared


@dataclass(frozen=True)
class Solved:
    """Weights for one lam, and how good they are.

    Attributes
    ----------
    lam : float
        lam0.
    gap : float
        Of their certificate.
    norm : float
        abs(w), in the norm of the regulariser.
    """

    lam: float
    gap: float
    norm: float


def relative_radius(solved: Solved, low: float, high: float) -> float:
    """How far the optimum of any lam in a range is from the weights at most, once it is scaled as they are.

    Parameters
    ----------
    solved : Solved
        Weights for a lam in this range.
    low, high : float
        The range.
    """
    if not 0.0 < low <= solved.lam <= high < math.inf:
        raise ValueError(f"the range of lam from {low} to {high} must hold {solved.lam}, for which there are weights")
    ratios = [solved.lam / high, solved.lam / low]  # k
    off = max(abs(1.0 - k) / (1.0 + k) for k in ratios) * solved.norm
    most, least = 2.0 * ratios[1] / (1.0 + ratios[1]), min(4.0 * k / (1.0 + k) ** 2 for k in ratios)
    reach = math.sqrt(2.0 * max(solved.gap, 0.0) / solved.lam)
    constant = off**2 + most * reach * off + (1.0 - least) * reach**2 / 2.0
    root = (most * reach + math.sqrt((most * reach) ** 2 + 4.0 * constant)) / 2.0
    return root * (1.0 + ROUNDING)


@dataclass(frozen=True)
class Cell:
    """What is proven about one fold, for every lam in a range: bounds of its score."""

    fold: int
    low: float
    high: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Piece:
    """A range of lam with bounds of the mean score that the exact optima in it have.

    Attributes
    ----------
    low, high : float
        The range.
    lower, upper : float
        Bounds of the score, for every lam in it.
    """

    low: float
    high: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Guarantee:
    """Bounds of the validation score for every lam in a range, proven from certificates.

    They hold for the predictions of exactly trained models on the validation data of this search; what other data would
    say is another question, which ``Row.std`` speaks of.

    Attributes
    ----------
    pieces : tuple of Piece
        From the smallest lam to the largest; together they are the range.
    best : float
        The score of the setting that was chosen, as it was measured.
    wish : float or None
        How many points were asked for.
    """

    pieces: tuple[Piece, ...]
    best: float
    wish: float | None = None

    @property
    def low(self) -> float:
        """The smallest lam."""
        return self.pieces[0].low

    @property
    def high(self) -> float:
        """The largest lam."""
        return self.pieces[-1].high

    @property
    def points(self) -> float:
        """No lam in the range is better than the best one by more than so many points, hundredths of the score."""
        return max(POINTS * (max(piece.upper for piece in self.pieces) - self.best), 0.0)

    def within(self, points: float, lam: float) -> tuple[float, float] | None:
        """The widest range around some lam in which no lam is better than the best by more; None if there is none.

        Parameters
        ----------
        points : float
            How many hundredths of the score.
        lam : float
            Where the range is.
        """
        good = [POINTS * (piece.upper - self.best) <= points * (1.0 + ROUNDING) for piece in self.pieces]
        here = [k for k, piece in enumerate(self.pieces) if piece.low <= lam <= piece.high and good[k]]
        if not here:
            return None
        first, last = here[0], here[-1]
        while first > 0 and good[first - 1]:
            first -= 1
        while last + 1 < len(good) and good[last + 1]:
            last += 1
        return self.pieces[first].low, self.pieces[last].high

    @property
    def trivial(self) -> bool:
        """Whether it says no more than that a score is at most 1."""
        return max(piece.upper for piece in self.pieces) >= 1.0

    def __str__(self) -> str:
        if self.trivial and self.wish is None:
            return "proven: nothing about other values of lam, as models are not solved well enough; ask for points"
        said = f"proven: no lam from {self.low:.3g} to {self.high:.3g} is better by more than {self.points:.2f} points"
        return said + (f" ({self.wish:g} were asked for)" if self.wish is not None and self.points > self.wish else "")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        pieces = [{"low": p.low, "high": p.high, "lower": p.lower, "upper": p.upper} for p in self.pieces]
        return {"low": self.low, "high": self.high, "points": self.points, "asked": self.wish, "pieces": pieces}


def joined(cells: Sequence[Cell], folds: int, low: float, high: float) -> tuple[Piece, ...]:
    """The mean of the bounds of all folds over a range, piece by piece.

    Where several cells of a fold meet, each of them holds; where there is none, the score is between 0 and 1.

    Parameters
    ----------
    cells : sequence of Cell
        What is proven.
    folds : int
        How many folds there are.
    low, high : float
        The range.
    """
    edges = {low, high} | {edge for cell in cells for edge in (cell.low, cell.high) if low < edge < high}
    ends = np.array(sorted(edges))
    begins, stops = (ends[:-1], ends[1:]) if len(ends) > 1 else (ends, ends)
    lower, upper = np.zeros((folds, len(begins))), np.ones((folds, len(begins)))
    for cell in cells:
        inside = (cell.low <= begins) & (stops <= cell.high)
        lower[cell.fold, inside] = np.maximum(lower[cell.fold, inside], cell.lower)
        upper[cell.fold, inside] = np.minimum(upper[cell.fold, inside], cell.upper)
    rows = zip(begins.tolist(), stops.tolist(), lower.mean(axis=0).tolist(), upper.mean(axis=0).tolist(), strict=True)
    return tuple(Piece(*row) for row in rows)


def cells_of(lams: Iterable[float]) -> dict[float, tuple[float, float]]:
    """The range of every lam: as far as the geometric means with its neighbours, and no further than the outermost.

    Parameters
    ----------
    lams : iterable of float
        Different positive numbers.
    """
    order = sorted(lams)
    middles = [math.sqrt(a * b) for a, b in pairwise(order)]
    return dict(zip(order, zip([order[0], *middles], [*middles, order[-1]], strict=True), strict=True))
