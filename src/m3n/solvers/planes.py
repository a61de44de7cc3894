"""Planes below the risk, and the small quadratic programme that minimises the model they make.

Every oracle answer is a plane that never lies above the risk, R(w) >= b_k - <w, a_k>, with b_k its ``offset`` and a_k
its ``vector``. Together they make a model of J from below,

    J_m(w) = lam/2 |w|^2 + max_k { b_k - <w, a_k> } <= J(w),

whose minimum is, by duality, a quadratic programme with one variable per plane:

    max  <b, x> - 1/(2 lam) x' G x   over  x >= 0, sum_k x_k = 1,     G_kl = <a_k, a_l>,     w(x) = 1/lam sum_k x_k a_k.

A plane is a distribution alpha as D sees it, so x mixes distributions and the programme's value at *any* x of the
simplex is a lower bound D(alpha) <= min J. Whatever the QP solver returns is put into the simplex first, and it is
taken only if it beats the x that was there before: the bound is true and never falls.

The first plane is gold itself, R >= 0: its offset and its vector are zero.

Cost of a new plane: one row of G, O(planes x dim); of the programme: O(planes^3) (on one core 2 ms for 50 planes, 7 ms
for 100, 30 ms for 200). Memory: O(planes x dim), which for millions of weights is what counts. Two things bound it.
``pruned`` drops planes without weight for some time; the bound does not need them. ``merged`` mixes the planes of least
weight into one; the mixture is a plane too, w(x) and the bound stay what they are, only the model gets coarser.

Reference for merging: Kiwiel, "An Aggregate Subgradient Method for Nonsmooth Convex Minimization", 1983.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import clarabel
import numpy as np
import scipy.sparse

from m3n.compiled.primitives.simplex import maximize_on_simplex
from m3n.problem import Objective
from m3n.solvers.dual_points import bordered
from m3n.solvers.forms import Numbers, Square, Vector, Weights, require

ACCURACY = 1e-14  # of the programme in its own units: nearly all of the digits, at two more iterations than 1e-10
ACCEPTABLE = 1e-9  # what is tried where rounding forbids that: the bound stays true, only a little lower
SOLVED = ("Solved", "AlmostSolved")


@dataclass(frozen=True)
class Plane:
    """R(w) >= offset - <w, vector> for all w."""

    offset: float
    vector: np.ndarray


@dataclass(frozen=True)
class Planes:
    """Planes with a weight each; never changed in place."""

    vectors: tuple[Weights, ...]
    offsets: Vector  # (planes,)
    gram: Square  # (planes, planes) inner products of the vectors
    weights: Vector  # (planes,) x, a point of the simplex
    idle: Numbers  # (planes,) for how many programmes a plane has had no weight

    def check(self, problem: Objective) -> None:
        """Refuse arrays of different lengths."""
        count = len(self.vectors)
        lengths = {len(self.offsets), len(self.weights), len(self.idle), *self.gram.shape}
        require(count > 0 and lengths == {count}, f"there are {count} planes, but numbers of others")

    @classmethod
    def gold(cls, problem: Objective) -> Planes:
        """The plane R >= 0 of the gold labelling, with all weight."""
        return cls((np.zeros(problem.dim),), np.zeros(1), np.zeros((1, 1)), np.ones(1), np.zeros(1, np.int64))

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def offset(self) -> float:
        """<b, x>: the offset of the mixture."""
        return float(self.weights @ self.offsets)

    def point(self, problem: Objective) -> np.ndarray:
        """w(x), the minimiser of the model once x is optimal."""
        return problem.combine(self.weights / problem.lam, self.vectors)

    def height(self, lam: float) -> float:
        """max_k { b_k - <w(x), a_k> }: the model of the risk at w(x)."""
        return float((self.offsets - self.gram @ self.weights / lam).max())

    def add(self, problem: Objective, plane: Plane) -> Planes:
        """One more plane, without weight as yet."""
        vectors = (*self.vectors, plane.vector)
        gram = bordered(self.gram, [problem.inner(plane.vector, vector) for vector in vectors])
        offsets, weights = np.append(self.offsets, plane.offset), np.append(self.weights, 0.0)
        return Planes(vectors=vectors, offsets=offsets, gram=gram, weights=weights, idle=np.append(self.idle, 0))

    def solved(self, lam: float) -> Planes:
        """The same planes with the weights that minimise the model."""
        weights = maximize(self.gram / lam, self.offsets, self.weights)
        return replace(self, weights=weights, idle=np.where(weights > 0.0, 0, self.idle + 1))

    def pruned(self, patience: int | None) -> Planes:
        """Without the planes that had no weight in more than ``patience`` programmes; None keeps all."""
        return self if patience is None else self._keep(np.flatnonzero(self.idle <= patience))

    def merged(self, problem: Objective, most: int) -> Planes:
        """At most so many planes: those of most weight and a mixture of the others, or none if they weigh nothing."""
        if len(self) <= most:
            return self
        order = np.lexsort((self.idle, -self.weights))
        kept, rest = self._keep(np.sort(order[: most - 1])), order[most - 1 :]
        total = float(self.weights[rest].sum())
        if total == 0.0:
            return kept
        shares = np.zeros(len(self))
        shares[rest] = self.weights[rest] / total
        mixture = Plane(float(shares @ self.offsets), problem.combine(shares, self.vectors))
        return replace(kept.add(problem, mixture), weights=np.append(kept.weights, total))

    def _keep(self, chosen: np.ndarray) -> Planes:
        if len(chosen) == len(self):
            return self
        vectors, gram = tuple(self.vectors[k] for k in chosen), self.gram[np.ix_(chosen, chosen)]
        return Planes(vectors, self.offsets[chosen], gram, self.weights[chosen], self.idle[chosen])


def maximize(quadratic: np.ndarray, linear: np.ndarray, start: np.ndarray) -> np.ndarray:
    """max <linear, x> - 1/2 x' quadratic x over the simplex: a point of it, and never a worse one than ``start``."""
    best, value = start, _value(quadratic, linear, start)
    for accuracy in (ACCURACY, ACCEPTABLE):
        found, solved = _interior_point(quadratic, linear, accuracy)
        if _value(quadratic, linear, found) >= value:
            best, value = found, _value(quadratic, linear, found)
            if solved and accuracy == ACCURACY:
                return best
    polished = best.copy()  # after numerical trouble: pairwise steps are slow but always improve
    maximize_on_simplex(quadratic, linear, polished)
    return polished


def _value(quadratic: np.ndarray, linear: np.ndarray, x: np.ndarray) -> float:
    return float(linear @ x - 0.5 * x @ quadratic @ x)


def _interior_point(quadratic: np.ndarray, linear: np.ndarray, accuracy: float) -> tuple[np.ndarray, bool]:
    """Clarabel's answer, put into the simplex, and whether it is as good as it should be.

    The programme is solved for y = x / unit, which makes the diagonal 1, and in units of the largest offset, which is
    the size of its value. Entries of G/lam near 1e6 and weights near 1e-7 are common, and without that they are lost.
    Interior points give every plane a little weight. Where y is below its own multiplier it will tend to zero (their
    product does, and only one of the two can), so it is set to zero.
    """
    scale = float(np.abs(linear).max()) or 1.0
    diagonal = np.diag(quadratic) / scale
    unit = 1.0 / np.sqrt(np.maximum(diagonal, 1e-3 * diagonal.max() or 1.0))
    upper = scipy.sparse.csc_matrix(np.triu(quadratic * np.outer(unit, unit) / scale))
    answer = clarabel.DefaultSolver(upper, -linear * unit / scale, *_simplex(unit), _settings(accuracy)).solve()
    y, multipliers = np.array(answer.x), np.array(answer.z)[1:]
    x = np.where(y > np.maximum(multipliers, 0.0), y * unit, 0.0)  # NaN is not above anything
    total = float(x.sum())
    return (x / total, str(answer.status) in SOLVED) if 0.0 < total < np.inf else (np.eye(len(x))[0], False)


def _simplex(unit: np.ndarray) -> tuple[scipy.sparse.csc_matrix, np.ndarray, list]:
    """<unit, y> = 1 and -y + slack = 0, slack >= 0, in the form that Clarabel reads."""
    size = len(unit)
    rows = scipy.sparse.vstack([unit[None], -scipy.sparse.identity(size)], format="csc")
    return rows, np.append(1.0, np.zeros(size)), [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(size)]


def _settings(accuracy: float) -> clarabel.DefaultSettings:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 50  # 10 to 20 are usual
    settings.max_threads = 1  # a pass has threads of its own, and sums keep their order
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
    settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = settings.reduced_tol_feas = ACCEPTABLE
    return settings
