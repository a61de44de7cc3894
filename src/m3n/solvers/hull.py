"""Better dual points for free: the best convex combination of those that a solver has passed.

D sees a distribution alpha only through u = w(alpha) and its offset b = sum ell alpha + T H(alpha). Mixing both with
convex weights x gives a lower bound of D at the mixed distribution (an equality at temperature 0), so

    max_x  <b, x> - lam/2 x' G x     over the simplex,    G = Gram matrix of the u's,

is a dual value too. It takes a few inner products of weight vectors and no oracle call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from m3n.compiled.primitives.simplex import maximize_on_simplex
from m3n.problem import Objective
from m3n.solvers.forms import Square, Vector, require


@dataclass(frozen=True)
class Point:
    """A dual point as D sees it: u = w(alpha) and b = sum ell alpha + T H(alpha)."""

    u: Vector
    b: float


@dataclass(frozen=True)
class Hull:
    """Dual points, the best mixture of earlier ones first, with the Gram matrix of their u's."""

    points: tuple[Point, ...]
    gram: Square

    def check(self, problem: Objective) -> None:
        """Refuse points that do not fit the problem and each other."""
        check_points(problem, self.points, self.gram)

    @classmethod
    def gold(cls, problem: Objective) -> Hull:
        """All weight on the gold outputs, where u = 0 and b = 0."""
        return cls((Point(np.zeros(problem.dim), 0.0),), np.zeros((1, 1)))

    def joined(self, problem: Objective, new: Sequence[Point], memory: int) -> Hull:
        """Take points in, replace the first by the best mixture of all, keep the ``memory`` newest besides."""
        points, gram = self.points, self.gram
        for point in new:
            points = (*points, point)
            gram = bordered(gram, [problem.inner(point.u, other.u) for other in points])
        weights = np.zeros(len(points))
        weights[0] = 1.0
        maximize_on_simplex(problem.lam * gram, np.array([point.b for point in points]), weights)
        oldest = max(1, len(points) - memory)
        mixing = np.vstack([weights, np.eye(len(points))[oldest:]])  # from the old points to the new ones
        return Hull((mixed(problem, weights, points), *points[oldest:]), mixing @ gram @ mixing.T)

    def dual(self, problem: Objective) -> float:
        """D of the best mixture."""
        return problem.dual(self.points[0].u, self.points[0].b)


def mixed(problem: Objective, weights: Sequence[float] | np.ndarray, points: Sequence[Point]) -> Point:
    """The convex combination of dual points."""
    u = problem.combine(weights, [point.u for point in points])
    return Point(u, float(sum(x * point.b for x, point in zip(weights, points, strict=True))))


def bordered(gram: np.ndarray, column: list[float]) -> np.ndarray:
    """A Gram matrix with one more row and column."""
    bigger = np.empty((len(column), len(column)))
    bigger[:-1, :-1] = gram
    bigger[-1] = bigger[:, -1] = column
    return bigger


def check_points(problem: Objective, points: Sequence[Point], gram: np.ndarray) -> None:
    """Refuse dual points, read from a file, that do not fit the problem or their Gram matrix."""
    require(all(len(point.u) == problem.dim for point in points), "a dual point has another number of weights")
    require(len(points) > 0 and gram.shape == (len(points), len(points)), "the Gram matrix is not that of the points")
