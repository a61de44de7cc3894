"""Forms of a dual point that several methods share: mixtures, Gibbs distributions, potentials of every example.

*Mixtures* of oracle answers are O(dim), whatever n. D sees alpha only through u = w(alpha) and its offset
b = sum ell alpha + T H(alpha). Mixing both with convex weights x gives a lower bound of D at the mixed distribution (an
equality at temperature 0), so

    max_x  <b, x> - lam/2 x' G x     over the simplex,    G = Gram matrix of the u's,

is a dual value too: a better one than those that a solver has passed, for a few inner products of weight vectors and no
oracle call.

*Gibbs distributions*, alpha_i(y) proportional to exp{ c ell_i(y) - <v, psi_i(y)> }, are O(dim) as well. Methods that
move in the dual by multiplying alpha with exponentials of gradients never leave this family, because gradients of the
dual are linear in ell and psi. A vector v and a number c describe alpha for all examples at once; one exp-oracle pass
gives what D and the next gradient see of it.

*Potentials* are the factored form of alpha_i, for methods that change it example by example. Those of all parts, and
their marginals, stand in one array each, example after example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from m3n.compiled.primitives.simplex import maximize_on_simplex
from m3n.compiled.sweeps.dual_ascent import Ascent
from m3n.compiled.sweeps.exponentiated import Potentials, fill
from m3n.problem import Objective, Problem
from m3n.problem.sections import Section
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
        answer = problem.soft(problem.tilted(v, c), 1.0, loss_scale=c)  # a prior is a part of the loss
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


def starts_of(problem: Problem | Section) -> np.ndarray:
    """Where the potentials of every example begin, and where they end."""
    return np.concatenate([[0], np.cumsum(problem.blocks.rows.sizes)])


def leaning(problem: Problem | Section, odds: float, kind: type = np.float64) -> np.ndarray:
    """Potentials that favour gold by ``odds`` in logarithms: its labels against all others of a row, or its parts."""
    starts, labels = starts_of(problem), problem.blocks.costs.table.shape[1]
    potentials: np.ndarray = np.zeros(int(starts[-1]), kind)
    potentials[gold_places(problem, starts)] = odds + np.log(max(labels - 1, 1))
    return potentials


def gold_places(problem: Problem | Section, starts: np.ndarray) -> np.ndarray:
    """Where the potentials of gold's labels stand, or of its parts if outputs are not labels of rows."""
    blocks = problem.blocks
    costs = blocks.costs
    if not len(costs.gold):
        owner = np.repeat(np.arange(problem.n), blocks.gold_counts)
        return starts[owner] + blocks.gold[np.arange(blocks.gold.shape[1]) < blocks.gold_counts[:, None]]
    rows = np.arange(len(costs.gold))
    owner = np.searchsorted(costs.first, rows, side="right") - 1
    return starts[owner] + (rows - costs.first[owner]) * costs.table.shape[1] + costs.gold


def filled(problem: Problem | Section, dual: Potentials | Ascent, strength: float) -> np.ndarray:
    """sum alpha psi divided by ``strength`` (lam makes it w(alpha)) of the potentials; fills in their marginals.

    A pass of the exp-oracle.
    """
    blocks, w = problem.blocks, np.zeros(problem.dim)
    problem.visit(fill, dual, blocks.gold, blocks.gold_counts, strength, w, asks="soft", soft=problem.n)
    blocks.forget_lists()  # dual ascent needs them here alone
    return w


def dual_value(problem: Problem, dual: Potentials | Ascent, w: np.ndarray) -> float:
    """D(alpha), with w = w(alpha)."""
    return problem.dual(w, offset_of(problem, dual))


def offset_of(problem: Problem | Section, dual: Potentials | Ascent) -> float:
    """sum ell alpha + T H(alpha)."""
    entropy = np.mean(problem.blocks.weights * dual.entropies)
    return float(dual.losses.mean() + problem.temperature * entropy)


def check_potentials(problem: Problem | Section, dual: Potentials | Ascent, where: str) -> None:
    """Refuse potentials, read from a file, that do not fit the problem."""
    starts, uses = starts_of(problem), int(problem.blocks.rows.first[-1])
    lengths = dict.fromkeys(dual._fields, problem.n) | dict.fromkeys(("potentials", "marginals"), int(starts[-1]))
    lengths |= {"starts": problem.n + 1, **({"eta": uses} if isinstance(dual, Ascent) else {})}
    kinds = dict.fromkeys(dual._fields, "float64") | {"starts": "int64", "failed": "bool", "joint": "bool"}
    kinds |= {"potentials": "float32"} if isinstance(dual, Ascent) else {}
    for name, array in dual._asdict().items():
        fits = isinstance(array, np.ndarray) and array.shape == (lengths[name],) and array.dtype == kinds[name]
        require(fits, f"{where}.{name} is no array of {lengths[name]} {kinds[name]}")
    require((dual.starts == starts).all(), "the potentials are those of examples of other sizes")
