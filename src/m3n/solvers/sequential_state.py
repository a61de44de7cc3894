"""What the sequential dual method keeps between two steps, part by part; ``sequential_dual`` has the formulas.

Vectors of these parts hold the weights of the *support* alone, those that cached outputs touch: the rest is zero. The
support grows at its end, so a vector of an earlier, smaller one is made wide with zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from m3n.problem import Objective, Problem
from m3n.problem.blocks import Blocks
from m3n.solvers.dual_points import Hull, Point
from m3n.solvers.forms import Spreads, Support, Vector, Weights, require
from m3n.solvers.workers import Pace
from m3n.solvers.working_sets import CachedOutputs

OUTER = 3  # sweeps between two moves of the centre
FORGET = 8.0  # weights of the average grow like k^7: about the last eighth of the run counts
SWEEPS, MOST_SWEEPS = 6.0, (6, 20)  # cached sweeps per oracle pass: so many in the time of a pass, within limits
DEAR, FEW_SWEEPS = 0.05, 3  # oracle visits that cost nothing beside cached ones: few sweeps (a third off, OCR, cubic)
LAGGING = 0.02  # of the gap: a dual value that grows less in a step hardly grows
EFFORT, VISITS = (1.0, 100.0), 1e4  # so many times the usual sweeps at most, fewer where that is so many visits
UNSOLVED = 4.0  # over the passes so far, of the gap: a spread on cached outputs that asks for more sweeps
ROUNDING = 1e-15


class Priced(Protocol):
    """Visits that know what they cost."""

    def price(self, parts: float) -> float:
        """What an oracle visit costs in cached visits that score so many parts."""


@dataclass(frozen=True)
class Iterate:
    """The iterate of the visits, and the weighted average of iterates."""

    point: Vector
    average: Vector
    loss: float = 0.0  # b = sum ell alpha
    averaged: int = 0  # k: iterates in the average

    def joined(self, point: np.ndarray) -> Iterate:
        """One more iterate in the average."""
        average, k = wide(self.average, len(point)), self.averaged + 1
        return replace(self, average=average + FORGET / (k + FORGET) * (point - average), averaged=k)


@dataclass(frozen=True)
class Proximal:
    """The term kappa/2 |w - z|^2."""

    kappa: float
    centre: Vector  # z
    previous: Vector  # the iterate when the centre moved last

    def dual_weights(self, lam: float, w: np.ndarray) -> np.ndarray:
        """u = w(alpha) of an iterate."""
        return w + self.kappa / lam * (w - wide(self.centre, len(w)))

    def iterate(self, lam: float, u: np.ndarray) -> np.ndarray:
        """w = (lam u + kappa z) / (lam + kappa)."""
        share = self.kappa / (lam + self.kappa)
        return (1.0 - share) * u + share * wide(self.centre, len(u))

    def moved(self, lam: float, w: np.ndarray) -> tuple[Proximal, np.ndarray]:
        """The centre ahead of the iterate, and the iterate that goes with the same alpha."""
        root = np.sqrt(lam / (lam + self.kappa))
        ahead = w + (1.0 - root) / (1.0 + root) * (w - wide(self.previous, len(w)))
        shifted = w + self.kappa / (lam + self.kappa) * (ahead - wide(self.centre, len(w)))
        return replace(self, centre=ahead, previous=w), shifted


@dataclass(frozen=True)
class DualHull:
    """Dual points: a running average of alpha, and the best mixture so far with its D."""

    mean: Point
    best: Point
    value: float = 0.0
    averaged: int = 0  # points in the mean

    def averaged_with(self, point: Point) -> DualHull:
        """One more point in the mean, of which the last ten count."""
        mean, count = wide(self.mean.u, len(point.u)), self.averaged + 1
        rho = max(0.1, 2.0 / (count + 1.0))
        mixed = Point(mean + rho * (point.u - mean), self.mean.b + rho * (point.b - self.mean.b))
        return replace(self, mean=mixed, averaged=count)

    def improved(self, problem: Objective, support: np.ndarray, point: Point) -> DualHull:
        """The best mixture of the earlier one, of a new point and of the mean."""
        points = [self.best, point, *([self.mean] if self.averaged else [])]
        best = _mixture(problem, support, [Point(wide(each.u, len(point.u)), each.b) for each in points])
        value = best.b - problem.lam / 2 * inner(problem, support, best.u, best.u)
        return replace(self, best=best, value=max(self.value, value))


@dataclass(frozen=True)
class Schedule:
    """How far the run is, and how much work comes before the next pass."""

    passes: int = 0
    swept: int = 0  # sweeps so far
    parts: float = 0.0  # scored per cached visit
    lagging: bool = False  # the dual value hardly grew beside the gap
    effort: float = 1.0  # sweeps in units of the usual number

    @property
    def between_moves(self) -> int:
        """Sweeps from one move of the centre to the next."""
        return int(OUTER * self.effort)

    def sweeps(self, most: int | None, visits: Priced) -> int:
        """How many cached sweeps: few while the caches are poor, later as many as the oracle's price justifies."""
        if most is None:
            price = visits.price(self.parts)
            most = int(np.clip(SWEEPS * price, *MOST_SWEEPS)) if price > DEAR else FEW_SWEEPS
        # after one pass they gain nothing; early on, many of them only fit w to what the caches happen to hold
        return int(self.effort * min(most, 2**self.passes - 1, self.passes + 3)) if self.passes > 1 else 0

    def judged(self, rise: float, gap: float, spread: float, n: int, lagged: bool) -> Schedule:
        """After a pass, by how much D rose in the step: twice the effort where it lags for the second time.

        ``spread`` is the mean gap of examples over their cached outputs. Where it is small beside the gap, outputs are
        missing, which only passes bring; the longer that lasts, the smaller a spread is worth a trial.
        """
        lagging = rise < LAGGING * gap
        grows = lagging and lagged and spread * max(self.passes, 1) > UNSOLVED * gap
        effort = np.clip(self.effort * 2.0 if grows else self.effort / 2.0, 1.0, np.clip(VISITS / n, *EFFORT))
        return replace(self, lagging=lagging, effort=float(effort))


class Certified:
    """A state that knows J now and then, and a D always."""

    hull: DualHull
    primal: float

    @property
    def dual(self) -> float:
        """D of the best mixture."""
        return self.hull.value

    @property
    def stalled(self) -> bool:
        """The gap is rounding."""
        return self.primal - self.dual <= ROUNDING * (abs(self.primal) + abs(self.dual))


@dataclass(frozen=True)
class SequentialDualState(Certified):
    """alpha in the caches, the iterate, and what the certificate needs."""

    w: Weights  # the weighted average of the iterates, or u of the best dual point
    caches: CachedOutputs
    support: Support  # numbers of the weights that cached outputs touch
    gaps: Spreads  # spread of the scores at the last visit
    iterate: Iterate
    proximal: Proximal
    hull: DualHull
    schedule: Schedule
    estimate: float = np.inf  # of the gap, or the gap itself
    primal: float = np.nan
    pace: Pace = field(default_factory=Pace)

    @property
    def metrics(self) -> Mapping[str, float]:
        outputs = float(self.caches.used.mean())
        return {"duality_gap_estimate": self.estimate, "outputs": outputs, "kappa": self.proximal.kappa}

    def dual_point(self, problem: Objective) -> tuple[np.ndarray, float]:
        """The best mixture's."""
        u = dense(problem.dim, self.support, self.hull.best.u)
        return u, self.hull.best.b - problem.lam / 2 * problem.inner(u, u)

    def check(self, problem: Problem) -> None:
        """Refuse what does not fit the problem."""
        require(len(np.unique(self.support)) == len(self.support), "the support has a weight twice")
        iterate, term, hull = self.iterate, self.proximal, self.hull
        vectors = iterate.point, iterate.average, term.centre, term.previous, hull.mean.u, hull.best.u
        require(max(map(len, vectors)) <= len(self.support), "a vector is longer than the support")


def wide(values: np.ndarray, size: int) -> np.ndarray:
    """A vector of an earlier, smaller support."""
    return values if len(values) == size else np.concatenate([values, np.zeros(size - len(values))])


def dense(dim: int, support: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A vector of the support, or of its beginning, as one of all weights."""
    vector = np.zeros(dim)
    vector[support[: len(values)]] = values
    return vector


def inner(problem: Objective, support: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
    """Inner product of vectors of the support: only the usual one can do without the other weights."""
    if not isinstance(problem, Problem) or problem.features.euclidean:
        return float(u @ v)
    whole = dense(problem.dim, support, u)
    return problem.inner(whole, whole if v is u else dense(problem.dim, support, v))


def _mixture(problem: Objective, support: np.ndarray, points: list[Point]) -> Point:
    """The convex combination of dual points with the largest D; the first one to begin with."""
    gram = np.array([[inner(problem, support, a.u, b.u) for b in points] for a in points])
    weights = Hull(tuple(points), gram).best_weights(problem, np.eye(len(points))[0])
    u = sum(x * point.u for x, point in zip(weights, points, strict=True))
    return Point(u, float(weights @ np.array([point.b for point in points])))


class Prices(NamedTuple):
    """Work of some examples, in multiplications; they add up."""

    oracle: float  # entries times widths
    entries: float
    rows: float
    examples: int

    def __add__(self, other: Prices) -> Prices:  # type: ignore[override]
        """Of both."""
        return Prices(
            self.oracle + other.oracle, self.entries + other.entries, self.rows + other.rows,
            self.examples + other.examples,
        )  # fmt: skip


def priced(blocks: Blocks) -> Prices:
    """What visits of all examples cost; the machine's clock would not be repeatable.

    Parameters
    ----------
    blocks : Blocks
        The examples.
    """
    rows = blocks.rows
    work = float((np.diff(rows.pointers)[rows.used] * rows.widths[rows.used]).sum())
    return Prices(work, blocks.reach * len(rows.used), len(rows.used), len(rows.sizes))


def price(prices: Prices, parts: float) -> float:
    """What an oracle visit costs in cached visits.

    Parameters
    ----------
    prices : Prices
        The work of all examples.
    parts : float
        How many parts a cached visit scores.
    """
    oracle = prices.oracle / prices.examples / 2  # four at a time; as much for the maximum
    reach = prices.entries / prices.rows if prices.rows else 0.0
    return oracle / max(2.0 * parts * reach, 1.0)
