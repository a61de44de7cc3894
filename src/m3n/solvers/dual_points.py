"""Dual points that stay O(dim), whatever n: mixtures of oracle answers, and Gibbs distributions.

Mixtures. D sees a distribution alpha only through u = w(alpha) and its offset b = sum ell alpha + T H(alpha). Mixing
both with convex weights x gives a lower bound of D at the mixed distribution (an equality at temperature 0), so

    max_x  <b, x> - lam/2 x' G x     over the simplex,    G = Gram matrix of the u's,

is a dual value too: a better one than those that a solver has passed, for a few inner products of weight vectors and no
oracle call.

Gibbs distributions, alpha_i(y) proportional to exp{ c ell_i(y) - <v, psi_i(y)> }. Methods that move in the dual by
multiplying alpha with exponentials of gradients never leave this family, because gradients of the dual are linear in
ell and psi. A vector v and a number c describe alpha for all examples at once; one exp-oracle pass gives what D and the
next gradient see of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from m3n.compiled.primitives.simplex import maximize_on_simplex
from m3n.problem import Objective
from m3n.solvers.forms import Square, Vector, Weights, require

ROUNDING = 1e-14  # relative error of sums over the data


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
        """Refuse points, read from a file, that do not fit the problem and each other."""
        count = len(self.points)
        require(all(len(p.u) == problem.dim for p in self.points), "a dual point has another number of weights")
        require(count > 0 and self.gram.shape == (count, count), "the Gram matrix is not that of the points")

    @classmethod
    def gold(cls, problem: Objective) -> Hull:
        """All weight on the gold outputs, where u = 0 and b = 0."""
        return cls((Point(np.zeros(problem.dim), 0.0),), np.zeros((1, 1)))

    def joined(self, problem: Objective, new: Sequence[Point], memory: int) -> Hull:
        """Take points in, replace the first by the best mixture of all, keep the ``memory`` newest besides."""
        wider = self.with_points(problem, new)
        weights = wider.best_weights(problem, np.eye(len(wider.points))[0])
        return wider.with_first(mixed(problem, weights, wider.points), weights, memory)

    def with_points(self, problem: Objective, new: Sequence[Point]) -> Hull:
        """Some more points."""
        points, gram = self.points, self.gram
        for point in new:
            points = (*points, point)
            gram = bordered(gram, [problem.inner(point.u, other.u) for other in points])
        return Hull(points, gram)

    def best_weights(self, problem: Objective, start: np.ndarray) -> np.ndarray:
        """The weights of the mixture with the largest D, which is not below that of ``start``."""
        weights = start.copy()
        maximize_on_simplex(problem.lam * self.gram, np.array([point.b for point in self.points]), weights)
        return weights

    def with_first(self, mixture: Point, weights: np.ndarray, memory: int) -> Hull:
        """The mixture of all points with these weights in place of the first one, and the ``memory`` newest besides."""
        count = len(self.points)
        oldest = max(1, count - memory)
        mixing = np.vstack([weights, np.eye(count)[oldest:]])  # from the old points to the new ones
        return Hull((mixture, *self.points[oldest:]), mixing @ self.gram @ mixing.T)

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


@dataclass(frozen=True)
class Gibbs:
    """A member of the family, and what one pass says about it."""

    v: Weights
    c: float
    log_z: float  # mean over the examples of log sum_y exp{ c ell - <v, psi> }
    u: Weights  # w(alpha)
    loss: float  # sum ell alpha
    offset: float  # loss + T H(alpha)

    @classmethod
    def at(cls, problem: Objective, v: np.ndarray, c: float) -> Gibbs:
        """One exp-oracle pass."""
        answer = problem.soft(v, 1.0, loss_scale=c)
        u = problem.combine([1 / problem.lam], [answer.vector])
        return cls(v=v, c=c, log_z=answer.value, u=u, loss=answer.loss, offset=answer.offset)

    @property
    def rounding(self) -> float:
        """How exact a divergence can be: it is the small difference of numbers of the size of log Z."""
        return ROUNDING * (1.0 + abs(self.log_z) + abs(self.c) * self.loss)

    def divergence(self, problem: Objective, other: Gibbs) -> float:
        """KL(self || other), the mean over the examples; not negative up to rounding."""
        shift = problem.inner(self.v, self.u) - problem.inner(other.v, self.u)
        return (self.c - other.c) * self.loss - problem.lam * shift - (self.log_z - other.log_z)
