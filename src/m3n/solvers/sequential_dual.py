"""The accelerated sequential dual method: cached outputs, pairwise steps, a proximal outer loop.

Every example keeps a small cache of outputs with weights alpha_ik that sum to one, gold being the first. A *visit*
maximises D over the weights of one example; it costs a few features if the outputs are known (``sweeps.caches``)
and an oracle call more if a new one is asked for.

Small lam makes that slow, so the objective gets a proximal term kappa/2 |w - z|^2, whose centre z moves ahead of the
iterates (Catalyst). With lk = lam + kappa and u = w(alpha), the visits keep

    w = (lam u + kappa z) / lk,

and after every third sweep, with q = lam/lk and beta = (1 - sqrt q)/(1 + sqrt q),

    z' = w + beta (w - w_prev);   w_prev = w;   w += kappa/lk (z' - z);   z = z'.

A step of the solver is one pass of the max-oracle:

- the first passes visit examples *online*, each with the newest w, as there is nothing in the caches yet;
- later ones ask for the best outputs at the *fixed* weighted average of the iterates: they give J there exactly, so
  every step has a certificate that costs nothing; they run on all threads; their outputs join the caches;
- in between come sweeps over the caches alone, every fourth over all examples, the others over those that had at
  least ``LAZY`` times the mean spread of scores at their last visit.

Where examples depend on one another so much that cached sweeps hardly raise D while the gap stays (few examples, or
weights that are hardly regularised), twice as many of them come before a pass and before a move of z, up to ``EFFORT``;
and every other pass asks at u of the best dual point, whose gap closes once the caches have the outputs that matter.

The dual value is D at the best mixture of alpha, of a running average of alpha (u is noisy where kappa >> lam) and of
the best mixture before. All are feasible. u and the loss are computed anew from the caches at every step, so sums that
visits keep do not drift.

kappa follows from the problem: it is the geometric mean of lam and of what one example pulls at w, which is the mean of
|d|^2/ell over the cached outputs after the first pass, divided by n. Both have the unit of lam, |phi|^2/loss.

Cost per step: one oracle pass and ``sweeps`` cached sweeps, O(dim) in all besides. Memory: 6 to 10 differences per
example and their Gram matrices, 8 dim numbers.

References: Lin, Mairal, Harchaoui, "A universal catalyst for first-order optimization", 2015; Shah, Kolmogorov,
Lampert, "A multi-plane block-coordinate Frank-Wolfe algorithm for training structural SVMs", 2015.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from m3n.compiled.primitives.simplex import maximize_on_simplex
from m3n.compiled.sweeps.caches import Caches, Touched
from m3n.compiled.sweeps.sequential import Progress, curvature_per_loss, learn, online, sweep, totals
from m3n.problem import Problem
from m3n.problem.blocks import Blocks
from m3n.solvers.base import Solver
from m3n.solvers.caches import copied, gold_caches, roomier
from m3n.solvers.hull import Point

OUTER = 3  # sweeps between two moves of the centre
PIECES = 4  # of an online pass; after each of them the average is updated
LAZY = 0.2
DAMPED = 2.0  # fits the gaps of eight problems after one and two passes within a factor of 1.5
FORGET = 8.0  # weights of the average grow like k^7: about the last eighth of the run counts
SWEEPS, MOST_SWEEPS = 6.0, (6, 20)  # cached sweeps per oracle pass: so many in the time of a pass, within limits
DEAR, FEW_SWEEPS = 0.05, 3  # oracle visits that cost nothing beside cached ones: few sweeps (a third off, OCR, cubic)
LAGGING = 0.02  # of the gap: a dual value that grows less in a step hardly grows
EFFORT, VISITS = (1.0, 100.0), 1e4  # so many times the usual sweeps at most, fewer where that is so many visits
SMALL = 1 << 14  # weights that are not worth a look at which of them are touched
ROUNDING = 1e-15


@dataclass(frozen=True)
class SequentialDualState:
    """alpha in the caches, the iterate, and what the certificate needs.

    Vectors besides ``w`` hold the weights of the support alone: the rest of them is zero.
    """

    w: np.ndarray  # (dim,) the weighted average of the iterates, or u of the best dual point
    caches: Caches
    support: np.ndarray  # numbers of the weights that cached outputs touch
    point: np.ndarray  # the iterate
    centre: np.ndarray  # z
    previous: np.ndarray  # the iterate when the centre moved last
    average: np.ndarray  # w on the support
    mean: Point  # running average of alpha
    best: Point  # the best mixture of dual points so far
    gaps: np.ndarray  # (n,) spread of the scores at the last visit
    kappa: float
    estimate: float = np.inf  # of the gap, or the gap itself
    loss: float = 0.0  # b = sum ell alpha
    dual: float = 0.0
    primal: float = np.nan
    passes: int = 0
    swept: int = 0  # sweeps so far
    averaged: int = 0  # k: iterates in the average
    moves: int = 0  # of the centre
    parts: float = 0.0  # scored per cached visit
    lagging: bool = False  # the dual value hardly grew beside the gap
    effort: float = 1.0  # sweeps in units of the usual number

    @property
    def stalled(self) -> bool:
        """The gap is rounding."""
        return self.primal - self.dual <= ROUNDING * (abs(self.primal) + abs(self.dual))

    @property
    def metrics(self) -> Mapping[str, float]:
        outputs = float(self.caches.used.mean())
        return {"duality_gap_estimate": self.estimate, "outputs": outputs, "kappa": self.kappa}


@dataclass(frozen=True)
class SequentialDual(Solver[SequentialDualState]):
    """Accelerated sequential dual method on cached outputs.

    Parameters
    ----------
    proximity : float or None
        Weight kappa of the proximal term; None chooses it from the problem, 0 does without acceleration.
    sweeps : int or None
        Sweeps over the caches per oracle pass, fewer in the first passes; None chooses their number from what a cached
        visit and an oracle visit cost.
    online : int
        Passes at the start that ask the oracle at the newest weights.
    seed : int
        Seed of the order of visits.
    """

    proximity: float | None = None
    sweeps: int | None = None
    online: int = 3
    seed: int = 0

    requires: ClassVar[frozenset[str]] = frozenset({"hard"})
    native: ClassVar[str | None] = "duality_gap_estimate"
    rate: ClassVar[str] = "1 + sqrt(R^2 / (n lam eps))"
    exponent: ClassVar[float | None] = -2.0
    certifies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.proximity is not None and not 0.0 <= self.proximity < np.inf:
            raise ValueError(f"proximity must not be negative, got {self.proximity}")
        if (self.sweeps is not None and self.sweeps < 1) or self.online < 1:
            raise ValueError("sweeps and online must be at least 1: nothing else changes the weights")

    def init(self, problem: Problem) -> SequentialDualState:
        """All weight on gold: w = 0, D = 0. No oracle call."""
        small = problem.dim <= SMALL
        support, zero = np.arange(problem.dim if small else 0), np.zeros(problem.dim if small else 0)
        gold = Point(zero, 0.0)
        return SequentialDualState(
            np.zeros(problem.dim), gold_caches(problem.blocks), support, zero, zero, zero, zero, gold, gold,
            np.zeros(problem.n), self.proximity or 0.0,
        )  # fmt: skip

    def restart(self, problem: Problem, state: SequentialDualState) -> SequentialDualState:
        """The earlier caches, alpha mixed with gold as is best for the new lam, acceleration from rest. No oracle call.

        As the caches are rich already, there are no online passes.
        """
        caches = copied(state.caches)
        u, loss = _dual_point(problem, caches, state.support)
        square = problem.lam * _inner(problem, state.support, u, u)
        t = min(loss / square, 1.0) if square > 0.0 else 1.0
        caches.alpha[:] *= t
        caches.alpha[caches.first[:-1]] += 1.0 - t
        caches.seen[:] = 0
        u, loss = _dual_point(problem, caches, state.support)
        point, kappa = Point(u, loss), self.proximity
        if kappa is None:
            kappa = _pull(problem, caches) * problem.lam
        w = np.zeros(problem.dim)
        w[state.support] = u
        return SequentialDualState(
            w, caches, state.support, u, u, u, u, point, point, state.gaps, kappa, loss=loss,
            dual=loss - problem.lam / 2 * _inner(problem, state.support, u, u), passes=self.online, parts=state.parts,
        )  # fmt: skip

    def step(self, problem: Problem, state: SequentialDualState) -> SequentialDualState:
        """One oracle pass (two where the online passes end) with the cached sweeps before it."""
        run = _Round(problem, self, state)
        if run.passes < self.online:
            run.ask_online()
        for number in range(run.sweeps()):
            run.sweep(lazily=number % 4 > 0)
        run.settle()
        if run.passes >= self.online:
            run.evaluate()
        return run.state()


class _Round:
    """A copy of the state that kernels change."""

    def __init__(self, problem: Problem, solver: SequentialDual, state: SequentialDualState):
        self.problem, self.solver, self.blocks, self.before = problem, solver, problem.blocks, state
        self.passes, self.averaged, self.moves, self.kappa = state.passes, state.averaged, state.moves, state.kappa
        self.random = np.random.default_rng([solver.seed, state.passes])
        self.caches, self.support = copied(state.caches), _support(problem.dim, state.support)
        self.w, self.gaps, self.average = self._dense(state.point), state.gaps.copy(), state.average
        self.centre, self.previous, self.mean, self.best = state.centre, state.previous, state.mean, state.best
        self.progress = Progress(np.array([state.loss]), np.zeros(1, np.int64))
        self.parts, self.primal, self.swept, self.estimate = state.parts, np.nan, state.swept, state.estimate
        self.zeros, self.lagging, self.effort = np.zeros(problem.dim), False, state.effort
        self.asked: np.ndarray | None = None  # where J is known

    @property
    def scale(self) -> float:
        """What a visit multiplies differences by: 1/((lam + kappa) n)."""
        return 1.0 / ((self.problem.lam + self.kappa) * self.problem.n)

    def ask_online(self) -> None:
        """One pass of the oracle at the newest weights, n visits; iterates on the way join the average."""
        order = self.random.permutation(self.problem.n)
        self.passes += 1
        for piece in np.array_split(order, min(PIECES, len(order))):
            self._visit_online(piece)
            self._take_average()
        self.problem.count(hard=len(order))
        pull = _pull(self.problem, self.caches)
        if self.passes == 1 and self.solver.proximity is None:
            self.kappa = pull * self.problem.lam
            self.centre = self.previous = self.w[self._listed]
        # spreads at the last visits are those of single iterates; the average does better, the more lam damps
        self.estimate = float(self.gaps[piece].mean()) * pull / (pull + DAMPED)

    def _visit_online(self, order: np.ndarray) -> None:
        at, golds = 0, (self.blocks.gold, self.blocks.gold_counts)
        while at < len(order):
            at = self.problem.visit(
                online, self.caches, self.support, *golds, order, at, self.passes, self.scale, self.w, self.progress,
                self.gaps, self.zeros,
            )  # fmt: skip
            self._make_room(at < len(order))

    def sweeps(self) -> int:
        """How many cached sweeps: few while the caches are poor, later as many as the oracle's price justifies."""
        most = self.solver.sweeps
        if most is None:
            price = _price(self.blocks, self.parts)
            most = int(np.clip(SWEEPS * price, *MOST_SWEEPS)) if price > DEAR else FEW_SWEEPS
        # after one pass they gain nothing; early on, many of them only fit w to what the caches happen to hold
        return int(self.effort * min(most, 2**self.passes - 1, self.passes + 3)) if self.passes > 1 else 0

    def sweep(self, lazily: bool) -> None:
        """Visit examples without a call of the oracle."""
        chosen = np.flatnonzero(self.gaps > LAZY * self.gaps.mean()) if lazily else np.arange(self.problem.n)
        order = self.random.permutation(chosen)
        self.progress.parts[0] = 0
        sweep(self.blocks.rows, self.caches, order, self.passes, self.scale, self.w, self.progress, self.gaps)
        self._after_sweep(len(order))

    def settle(self) -> None:
        """u and the loss from the caches alone, where they are certified next; the best mixture of dual points."""
        lam = self.problem.lam
        if self.passes >= self.solver.online:
            u, self.progress.loss[0] = _dual_point(self.problem, self.caches, self._listed)
            share = self.kappa / (lam + self.kappa)
            self.w = self._dense((1.0 - share) * u + share * self._wide(self.centre))
        else:
            w = self.w[self._listed]
            u = w + self.kappa / lam * (w - self._wide(self.centre))
        loss = float(self.progress.loss[0])
        points = [self.best, Point(u, loss), *([self.mean] if self.moves else [])]
        self.best = self._mixture([Point(self._wide(point.u), point.b) for point in points])
        self.dual = max(self.before.dual, self.best.b - lam / 2 * self._inner(self.best.u, self.best.u))

    def evaluate(self) -> None:
        """J at the average or the best dual point, exactly: a pass of the oracle, whose answers join the caches."""
        problem, blocks = self.problem, self.blocks
        asked = self.asked = self.best.u if self.before.lagging and self.passes % 2 else self.average
        margins, found, counts = problem.outputs(self._dense(asked))
        self.passes += 1
        self.primal = problem.lam / 2 * self._inner(asked, asked) + float(margins.mean())
        self.lagging = self.dual - self.before.dual < LAGGING * (self.primal - self.dual)
        if self.lagging:
            self.averaged = 0  # alpha hardly moves any more: old iterates only hold the average back
        grown = self.effort * 2.0 if self.lagging and self.before.lagging else self.effort / 2.0
        self.effort = float(np.clip(grown, 1.0, np.clip(VISITS / problem.n, *EFFORT)))
        at = 0
        while at < problem.n:
            at = learn(
                blocks.rows,
                blocks.costs,
                self.caches,
                self.support,
                blocks.gold,
                blocks.gold_counts,
                at,
                self.passes,
                found,
                counts,
                self.zeros,
            )
            self._make_room(at < problem.n)

    def state(self) -> SequentialDualState:
        """The new state."""
        estimate = self.estimate if np.isnan(self.primal) else self.primal - self.dual
        w = self._dense(self.average if self.asked is None else self.asked)
        return SequentialDualState(
            w, self.caches, self._listed.copy(), self.w[self._listed], self.centre,
            self.previous, self.average, self.mean, self.best, self.gaps, self.kappa, estimate,
            float(self.progress.loss[0]), self.dual, self.primal, self.passes, self.swept, self.averaged, self.moves,
            self.parts, self.lagging, self.effort,
        )  # fmt: skip

    @property
    def _listed(self) -> np.ndarray:
        return self.support.listed[: self.support.size[0]]

    def _dense(self, values: np.ndarray) -> np.ndarray:
        """A vector of the support as one of all weights."""
        return _dense(self.problem.dim, self.support.listed, values)

    def _inner(self, u: np.ndarray, v: np.ndarray) -> float:
        return _inner(self.problem, self.support.listed, u, v)

    def _wide(self, values: np.ndarray) -> np.ndarray:
        """A vector of an earlier, smaller support."""
        return np.concatenate([values, np.zeros(self.support.size[0] - len(values))])

    def _mixture(self, points: list[Point]) -> Point:
        """The convex combination of dual points with the largest D; the first one to begin with."""
        gram = np.array([[self._inner(a.u, b.u) for b in points] for a in points])
        losses, weights = np.array([point.b for point in points]), np.eye(len(points))[0]
        maximize_on_simplex(self.problem.lam * gram, losses, weights)
        return Point(sum(x * point.u for x, point in zip(weights, points, strict=True)), float(weights @ losses))

    def _make_room(self, needed: bool) -> None:
        if needed:
            self.caches = roomier(self.caches, 2 * self.blocks.gold.shape[1])

    def _after_sweep(self, visited: int) -> None:
        """Now and then take the iterate into the average and move the centre."""
        if visited == self.problem.n:
            self.parts = self.progress.parts[0] / visited
        self.swept += 1
        if self.swept % int(OUTER * self.effort) == 0:
            w = self._take_average()
            if self.kappa:
                self._move_centre(w)

    def _take_average(self) -> np.ndarray:
        """One more iterate in the weighted average; the iterate on the support."""
        w, average = self.w[self._listed], self._wide(self.average)
        self.averaged += 1
        self.average = average + FORGET / (self.averaged + FORGET) * (w - average)
        return w

    def _move_centre(self, w: np.ndarray) -> None:
        lam, kappa = self.problem.lam, self.kappa
        centre, mean = self._wide(self.centre), self._wide(self.mean.u)
        u = w + kappa / lam * (w - centre)
        self.moves += 1
        rho = max(0.1, 2.0 / (self.moves + 1.0))
        loss = float(self.progress.loss[0])
        self.mean = Point(mean + rho * (u - mean), self.mean.b + rho * (loss - self.mean.b))
        root = np.sqrt(lam / (lam + kappa))
        ahead = w + (1.0 - root) / (1.0 + root) * (w - self._wide(self.previous))
        self.previous, self.centre = w, ahead
        self.w[self._listed] = w + kappa / (lam + kappa) * (ahead - centre)


def _support(dim: int, listed: np.ndarray) -> Touched:
    """The support as kernels see it."""
    support = Touched(np.zeros(dim, np.bool_), np.empty(dim, np.int64), np.array([len(listed)]))
    support.member[listed] = True
    support.listed[: len(listed)] = listed
    return support


def _dual_point(problem: Problem, caches: Caches, support: np.ndarray) -> tuple[np.ndarray, float]:
    """u = w(alpha) on the support and b = sum ell alpha, from the caches alone."""
    vector = np.zeros(problem.dim)
    loss = totals(problem.blocks.rows, caches, vector) / problem.n
    return vector[support] / (-problem.lam * problem.n), loss


def _pull(problem: Problem, caches: Caches) -> float:
    """How strongly single examples pull at w, against lam."""
    return float(np.sqrt(curvature_per_loss(caches) / (problem.n * problem.lam)))


def _dense(dim: int, support: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A vector of the support, or of its beginning, as one of all weights."""
    vector = np.zeros(dim)
    vector[support[: len(values)]] = values
    return vector


def _inner(problem: Problem, support: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
    """Inner product of vectors of the support: only the usual one can do without the other weights."""
    if problem.features.euclidean:
        return float(u @ v)
    whole = _dense(problem.dim, support, u)
    return problem.inner(whole, whole if v is u else _dense(problem.dim, support, v))


def _price(blocks: Blocks, parts: float) -> float:
    """What an oracle visit costs in cached visits, in multiplications; the machine's clock would not be repeatable."""
    rows = blocks.rows
    entries = np.diff(rows.pointers)[rows.used]
    oracle = (entries * rows.widths[rows.used]).sum() / len(rows.sizes) / 2  # four at a time; as much for the maximum
    return float(oracle / max(2.0 * parts * blocks.reach, 1.0))
