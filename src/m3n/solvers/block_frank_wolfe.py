"""Block-coordinate Frank-Wolfe on the dual, with exact line search and weighted averaging.

D is maximised over one example's alpha_i at a time: the max-oracle of example i gives the best corner y*, and alpha_i
moves towards it by the step that maximises D on the segment. A visit costs one oracle call and a sparse update of w;
nothing has to be tuned. Formulas and the sparse averaging stand in ``sweeps.frank_wolfe``.

Options, each a small object: the *order* of visits, the *move* and the *cache*.

- ``GapSampling``: examples are drawn in proportion to their share of the duality gap when last visited.
- ``Pairwise``: weight moves from the worst output of the working set to the best one, instead of from all of them.
- ``PlaneCache``: between two oracle sweeps come sweeps that only choose among the outputs in the working sets.

The primal point is the weighted average of the iterates (weights growing like k), whose J converges as fast as D; the
dual point is the better one of alpha and its average.

Letters: w = w(alpha), b = sum ell alpha, gamma step, k visits. Cost per pass: n oracle calls. Memory: 3 dim numbers
and a few outputs per example.

References: Lacoste-Julien, Jaggi, Schmidt, Pletscher, "Block-coordinate Frank-Wolfe optimization for structural SVMs",
2013; Shah, Kolmogorov, Lampert, "A multi-plane block-coordinate Frank-Wolfe algorithm", 2015; Osokin, Alayrac,
Lukasewitz, Dokania, Lacoste-Julien, "Minding the gaps for block Frank-Wolfe optimization of structured SVMs", 2016.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from m3n.compiled.sweeps.frank_wolfe import Totals, sweep
from m3n.compiled.sweeps.working_sets import Sets
from m3n.problem import Problem
from m3n.solvers.base import HARD, Solver, UnknownPrimal, copied, with_room
from m3n.solvers.forms import Spreads, Weights
from m3n.solvers.working_sets import WorkingSets, dual_point, enlarged, gold_sets, nearer_gold

OUTPUTS = 32  # of an example: one more in a pass, and room for twice as many


class Order(Protocol):
    """In which order a pass visits the examples."""

    def visits(self, random: np.random.Generator, gaps: np.ndarray, passes: int) -> Iterator[np.ndarray]:
        """The examples of pass number ``passes`` in one or more pieces; ``gaps`` are kept up to date in between."""


@dataclass(frozen=True)
class Shuffled:
    """Every example once per pass, in a new random order each time."""

    def visits(self, random: np.random.Generator, gaps: np.ndarray, passes: int) -> Iterator[np.ndarray]:
        """A permutation."""
        yield random.permutation(len(gaps))


@dataclass(frozen=True)
class Uniform:
    """Examples drawn with replacement, as in the analysis of the method."""

    def visits(self, random: np.random.Generator, gaps: np.ndarray, passes: int) -> Iterator[np.ndarray]:
        """Independent draws."""
        yield random.integers(len(gaps), size=len(gaps))


@dataclass(frozen=True)
class GapSampling:
    """Examples drawn in proportion to their share of the duality gap when last visited.

    Parameters
    ----------
    refresh : int
        Every so many passes all examples are visited once, as old gaps mislead.
    pieces : int
        In how many pieces a pass is drawn; every piece uses the newest gaps.
    """

    refresh: int = 10
    pieces: int = 10

    def visits(self, random: np.random.Generator, gaps: np.ndarray, passes: int) -> Iterator[np.ndarray]:
        """Draws in proportion to the gaps; now and then a permutation."""
        n = len(gaps)
        if passes % self.refresh == 0:
            yield random.permutation(n)
            return
        size = -(-n // self.pieces)
        for done in range(0, n, size):
            share = gaps / gaps.sum() if gaps.sum() > 0.0 else None
            yield random.choice(n, size=min(size, n - done), p=share)


@dataclass(frozen=True)
class Toward:
    """The Frank-Wolfe step: from alpha_i towards the best output."""

    pairwise: ClassVar[bool] = False


@dataclass(frozen=True)
class Pairwise:
    """The pairwise step: from the worst output that has weight to the best one."""

    pairwise: ClassVar[bool] = True


@dataclass(frozen=True)
class PlaneCache:
    """Sweeps over the working sets between two oracle sweeps.

    Parameters
    ----------
    sweeps : int
        How many of them.
    """

    sweeps: int = 5


@dataclass(frozen=True)
class BlockFrankWolfeState(UnknownPrimal):
    """alpha as working sets, with w(alpha) and the averages."""

    u: Weights  # w(alpha)
    lag: Weights  # q, see the sweep
    sets: WorkingSets
    totals: tuple[float, float, float, float]  # b, its lag, P, k
    gaps: Spreads  # n times the block's share of the duality gap at its last visit
    w: Weights  # the weighted average, or w(alpha) where that is optimal
    alpha_dual: float  # D(alpha)
    average_dual: float  # D of the averaged alpha
    passes: int = 0
    stalled: bool = False  # all examples were visited and nothing changed: alpha is optimal up to rounding

    @property
    def dual(self) -> float:
        """D at alpha or at its average."""
        return max(self.alpha_dual, self.average_dual)

    def dual_point(self, problem: Problem) -> tuple[np.ndarray, float]:
        """w(alpha), and D there."""
        return self.u, self.alpha_dual

    @property
    def metrics(self) -> Mapping[str, float]:
        estimate = float(self.gaps.mean()) if np.isfinite(self.gaps).all() else np.inf
        return {"duality_gap_estimate": estimate, "outputs": float(self.sets.used.mean())}


@dataclass(frozen=True)
class BlockFrankWolfe(Solver[BlockFrankWolfeState]):
    """Block-coordinate Frank-Wolfe.

    Parameters
    ----------
    order : Shuffled, Uniform, GapSampling, or an object with their method
        In which order examples are visited.
    move : Toward or Pairwise
        How weight moves at a visit.
    cache : PlaneCache or None
        Cached sweeps between two oracle sweeps; None makes none.
    seed : int
        Seed of the order.
    """

    order: Shuffled | Uniform | GapSampling | Order = field(default_factory=Shuffled)
    move: Toward | Pairwise = field(default_factory=Toward)
    cache: PlaneCache | None = None
    seed: int = 0

    requires = HARD
    visits = True
    rescales = True
    native = "duality_gap_estimate"
    rate = "R^2 / (lam eps)"
    exponent = -1.0

    def footprint(self, problem: Problem) -> float:
        """Lists of parts, of as many outputs per example as some dozens of passes find."""
        return 4.0 * OUTPUTS * float(problem.structure.most_parts().max(initial=0)) * problem.n

    def init(self, problem: Problem) -> BlockFrankWolfeState:
        """All weight on gold: w = 0, D = 0. No oracle call."""
        return _beginning(problem, gold_sets(problem.blocks), np.zeros(problem.dim), 0.0)

    def restart(self, problem: Problem, state: BlockFrankWolfeState) -> BlockFrankWolfeState:
        """The earlier alpha, mixed with gold as is best for the new lam; averages begin anew. No oracle call."""
        sets = nearer_gold(problem, state.sets)
        return _beginning(problem, sets, *dual_point(problem, sets))

    def step(self, problem: Problem, state: BlockFrankWolfeState) -> BlockFrankWolfeState:
        """One pass of n visits, then the cached sweeps."""
        run = _Pass(problem, self, state)
        for order in self.order.visits(run.random, run.gaps, state.passes):
            run.visit(order, ask=True)
        for _ in range(self.cache.sweeps if self.cache else 0):
            run.visit(run.random.permutation(problem.n), ask=False)
        return run.state()


def _beginning(problem: Problem, sets: Sets, u: np.ndarray, b: float) -> BlockFrankWolfeState:
    """Before the first visit."""
    dual = problem.dual(u, b)
    return BlockFrankWolfeState(
        u=u, lag=np.zeros(problem.dim), sets=sets, totals=(b, 0.0, 1.0, 0.0), gaps=np.full(problem.n, np.inf), w=u,
        alpha_dual=dual, average_dual=dual,
    )  # fmt: skip


class _Pass:
    """A copy of the state that compiled sweeps change."""

    def __init__(self, problem: Problem, solver: BlockFrankWolfe, state: BlockFrankWolfeState):
        self.problem, self.solver = problem, solver
        self.passes = state.passes + 1
        self.random = np.random.default_rng([solver.seed, self.passes])
        self.u, self.lag, self.gaps = state.u.copy(), state.lag.copy(), state.gaps.copy()
        self.sets = copied(state.sets)
        self.totals = Totals(*(np.array([number]) for number in state.totals))
        self.zeros = np.zeros(problem.dim)
        self.before = state.u
        self.visited = np.zeros(problem.n, bool)

    def visit(self, order: np.ndarray, ask: bool) -> None:
        """One sweep; working sets grow where it finds no room."""
        how = self.passes, ask, self.solver.move.pairwise, self.problem.lam
        changed = self.u, self.lag, self.zeros, self.gaps

        def visits(sets: Sets, at: int) -> int:
            return self.problem.visit(sweep, sets, self.totals, order, at, *how, *changed)

        self.sets = with_room(self.sets, len(order), visits, enlarged)
        if ask:
            self.visited[order] = True
            self.problem.count(hard=len(order))

    def state(self) -> BlockFrankWolfeState:
        """The new state, with the averages written out."""
        b, lag, product, visits = (float(total[0]) for total in self.totals)
        average = self.problem.combine((1.0, -product), (self.u, self.lag))
        stalled = bool(self.visited.all()) and np.array_equal(self.u, self.before)
        return BlockFrankWolfeState(
            u=self.u, lag=self.lag, sets=self.sets, totals=(b, lag, product, visits), gaps=self.gaps,
            w=self.u if stalled else average, passes=self.passes, stalled=stalled,
            alpha_dual=self.problem.dual(self.u, b), average_dual=self.problem.dual(average, b - product * lag),
        )  # fmt: skip
