"""Frank-Wolfe steps on mini-batches, inside an accelerated proximal-point method.

The examples are cut at random into B batches, and D is maximised over the alpha of one batch at a time, as block
Frank-Wolfe does for one example at a time. Of a batch only u_j = w(alpha_j) and b_j = its expected loss are kept: B
vectors, whatever n, and no output of any example. Any structure with a max-oracle will do, any feature map, and every
visit is an ordinary pass over a part of the data.

The steps are taken on  J(w) + kappa/2 |w - z|^2,  whose dual is better conditioned. With lk = lam + kappa, u = sum u_j:

    w     = (lam u + kappa z) / lk
    visit   s, b_s, value from the max-oracle of batch j at w
            gap_j = value - (b_j - lam <w, u_j>)
            gamma = min(1, (b_s - b_j - lam <w, s - u_j>) / (lam^2/lk |s - u_j|^2))     the best step on the segment
            u_j  += gamma (s - u_j);   b_j += gamma (b_s - b_j)

The centre moves once the gaps of a pass have fallen far enough since it last moved, and with momentum:

    sum_j gap_j <= (1 - sqrt(q)/2) (the same sum at the last move),   q = lam/lk
    z = w + beta (w - w at the last move),   beta = (1 - sqrt q)/(1 + sqrt q)

Moving it after every pass is faster on some problems and diverges on others. kappa (``proximity``) is chosen at the
first visit, where w = 0: ``share`` times the geometric mean of lam and the curvature lam^2 |s|^2 / b_s. It has the
units of lam and falls with the number of batches.

Certificate. (u, b) belongs to a feasible alpha after every pass, but wanders with z: the best mixture of the last
``memory`` of them is far better. J is evaluated at a moving average of w.

Letters: w, u, b, lam as in the paper; s = w of the oracle's answer; z, kappa, beta, q as in the literature on proximal
acceleration. Cost per step: one pass, and O(B dim). Memory: O((B + memory) dim), and a copy of the data by batches.

References: Lacoste-Julien, Jaggi, Schmidt, Pletscher, "Block-coordinate Frank-Wolfe optimization for structural SVMs",
2013; Lin, Mairal, Harchaoui, "A universal catalyst for first-order optimization", 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from m3n.problem import Answer, Objective
from m3n.solvers.base import HARD, Solver, UnknownPrimal, at_least
from m3n.solvers.dual_points import Hull, Point
from m3n.solvers.forms import Weights, require

MOST_BATCHES = 100  # more cost time per pass and save few passes
ROOM = 1 << 25  # numbers in the vectors of all batches together, 256 MB, unless that means fewer than
LEAST_BATCHES = 8
PATIENCE = 10  # passes after which the centre moves in any case
RECENT = 0.3  # least weight of the newest w in its moving average


@dataclass(frozen=True)
class BatchFrankWolfeState(UnknownPrimal):
    """The batches' shares of alpha, the centre of the proximal term, and what the certificate is made of."""

    shares: tuple[Point, ...]  # (u_j, b_j)
    z: Weights
    anchor: Weights  # w when z last moved
    kappa: float  # NaN until the first visit
    hull: Hull
    w: Weights  # the moving average
    dual: float
    estimate: float = np.inf  # sum of the gaps of the last pass
    target: float = np.inf  # its value when z last moved
    waited: int = 0  # passes since then
    passes: int = 0
    stalled: bool = False  # all batches were visited, and neither alpha nor z changed

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"proximal_gap_estimate": self.estimate, "kappa": self.kappa, "batches": float(len(self.shares))}

    def check(self, problem: Objective) -> None:
        """Refuse what does not fit the problem."""
        require(0 < len(self.shares) <= problem.n, f"{len(self.shares)} batches of {problem.n} examples")
        require(all(len(share.u) == problem.dim for share in self.shares), "a batch has another number of weights")


@dataclass(frozen=True)
class BatchFrankWolfe(Solver[BatchFrankWolfeState]):
    """Mini-batch Frank-Wolfe with proximal acceleration: no memory per example.

    Parameters
    ----------
    batches : int or None
        Number of batches, each of which costs a vector of weights. None takes 100, fewer if their vectors would need
        more than 256 MB, but at least 8.
    proximity : float or None
        Weight kappa of the proximal term; 0 is plain mini-batch Frank-Wolfe, None chooses it at the first visit.
    share : float
        Factor of that choice, which is the geometric mean of lam and the curvature of the first step.
    memory : int
        Dual points of earlier passes that are kept to improve the dual value.
    seed : int
        Seed of the cut into batches and of the order of visits.
    """

    batches: int | None = None
    proximity: float | None = None
    share: float = 0.5
    memory: int = 8
    seed: int = 0

    requires = HARD
    rescales = True
    native = "proximal_gap_estimate"
    rate = "R^2 / (lam eps)"
    exponent = -1.0

    def __post_init__(self) -> None:
        at_least(1, batches=self.batches, memory=self.memory)
        if self.share < 0 or (self.proximity is not None and not 0.0 <= self.proximity < np.inf):
            raise ValueError("proximity and share must not be negative or infinite")

    def footprint(self, problem: Objective) -> float:
        """Vectors of batches."""
        return 8.0 * problem.dim * self._count(problem)

    def init(self, problem: Objective) -> BatchFrankWolfeState:
        """All weight on gold: u = 0, D = 0. No oracle call."""
        zero = np.zeros(problem.dim)
        shares = (Point(zero, 0.0),) * self._count(problem)
        kappa = np.nan if self.proximity is None else self.proximity
        return BatchFrankWolfeState(
            shares=shares, z=zero, anchor=zero, kappa=kappa, hull=Hull.gold(problem), w=zero, dual=0.0
        )

    def step(self, problem: Objective, state: BatchFrankWolfeState) -> BatchFrankWolfeState:
        """One pass: a visit to every batch, then perhaps a move of the centre."""
        parts = problem.pieces(len(state.shares), self.seed)
        return self.visit_all(problem, state, lambda j, w: parts[j].hard(w))

    def visit_all(
        self, problem: Objective, state: BatchFrankWolfeState, ask: Callable[[int, np.ndarray], Answer]
    ) -> BatchFrankWolfeState:
        """A step with any oracle that answers for a batch at given weights; warm starts ask the exp-oracle."""
        run = _Pass(problem, self, state)
        for j in np.random.default_rng([self.seed, state.passes]).permutation(len(state.shares)):
            run.visit(int(j), ask)
        return run.state()

    def _count(self, problem: Objective) -> int:
        fitting = max(LEAST_BATCHES, min(MOST_BATCHES, ROOM // max(problem.dim, 1)))
        return min(problem.n, fitting if self.batches is None else self.batches)


class _Pass:
    """The state as it changes from visit to visit."""

    def __init__(self, problem: Objective, solver: BatchFrankWolfe, state: BatchFrankWolfeState):
        self.problem, self.solver, self.old = problem, solver, state
        self.shares, self.kappa = list(state.shares), state.kappa
        self.w = self._weights(self._total()) if state.passes else self._total()
        self.estimate, self.moved = 0.0, False

    def visit(self, j: int, ask: Callable[[int, np.ndarray], Answer]) -> None:
        """The best point on the segment from the batch's alpha to the oracle's answer."""
        problem, lam, share = self.problem, self.problem.lam, self.shares[j]
        answer = ask(j, self.w)
        change = problem.combine((1 / lam, -1.0), (answer.vector, share.u))
        square, rise = problem.inner(change, change), answer.loss - share.b
        if np.isnan(self.kappa):
            self.kappa = self.solver.share * lam * np.sqrt(lam * square / rise) if rise > 0.0 else 0.0
        slope = rise - lam * problem.inner(self.w, change)
        self.estimate += max(slope, 0.0)  # gap_j, as the answer attains the maximum; less with an exp-oracle
        curvature = lam * lam / (lam + self.kappa) * square
        gamma = min(1.0, slope / curvature) if curvature > 0.0 else 1.0
        if slope > 0.0 and gamma > 0.0:
            self.moved = True
            self.shares[j] = Point(problem.combine((1.0, gamma), (share.u, change)), share.b + gamma * rise)
            self.w = problem.combine((1.0, gamma * lam / (lam + self.kappa)), (self.w, change))

    def state(self) -> BatchFrankWolfeState:
        """The new state: sums formed anew, the certificate's points, and the centre."""
        problem, old, u = self.problem, self.old, self._total()
        self.w = self._weights(u)
        hull = old.hull.joined(problem, [Point(u, sum(share.b for share in self.shares))], self.solver.memory)
        recent = max(RECENT, 2.0 / (old.passes + 2))
        average = problem.combine((1.0 - recent, recent), (old.w, self.w))
        new = replace(
            old, shares=tuple(self.shares), kappa=self.kappa, hull=hull, dual=hull.dual(problem), w=average,
            estimate=self.estimate, waited=old.waited + 1, passes=old.passes + 1, stalled=not self.moved,
        )  # fmt: skip
        return self._recentred(new) if self.kappa > 0.0 else new

    def _recentred(self, state: BatchFrankWolfeState) -> BatchFrankWolfeState:
        """Move the centre if the proximal problem is solved well enough for that."""
        root = np.sqrt(self.problem.lam / (self.problem.lam + self.kappa))
        if state.estimate > (1.0 - root / 2.0) * state.target and state.waited < PATIENCE:
            return state
        beta = (1.0 - root) / (1.0 + root)
        z = self.problem.combine((1.0 + beta, -beta), (self.w, state.anchor))
        stalled = state.stalled and np.array_equal(z, state.z)
        return replace(state, z=z, anchor=self.w, target=state.estimate, waited=0, stalled=stalled)

    def _total(self) -> np.ndarray:
        """u = sum u_j."""
        return self.problem.combine(np.ones(len(self.shares)), [share.u for share in self.shares])

    def _weights(self, u: np.ndarray) -> np.ndarray:
        """w = (lam u + kappa z) / lk."""
        lam, kappa = self.problem.lam, self.kappa
        return self.problem.combine((lam / (lam + kappa), kappa / (lam + kappa)), (u, self.old.z))
