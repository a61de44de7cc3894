"""Dual ascent for sparse CRFs: visits of single examples under an l1 penalty, with a proximal outer loop.

    J(w)     = lam/2 |w|^2 + l1 |w|_1 + T/n sum_i log sum_y exp{ (ell_i(y) - <w, psi_i(y)>)/T }
    D(alpha) = offset(alpha) - 1/(2 lam) sum_k max(|v_k| - l1, 0)^2,    v = sum alpha psi

(derivation in ``m3n.problem``). A small lam, or none, makes D too steep for steps along single examples, so they are
made on J(w) + kappa/2 |w - z|^2. With s = lam + kappa its dual has the weights

    w = S(u, l1/s),   u = (v + kappa z)/s,   S(x, c) = sign(x) max(|x| - c, 0),

as s/2 |w|^2 + l1 |w|_1 - s <w, u> is least there, weight by weight. That minimum, -s/2 |S(u, l1/s)|^2, has the gradient
-s w in u, and changes of u change w by no more: a visit does what it does in ``DualAscent``, with w read through the
soft threshold. It keeps u alone, and what its step takes of the gain is the growth of s n/2 |w|^2, exact as before;
weights that stay zero take nothing, so steps grow longer as weights vanish (``maps.shrunk``).

After every pass z = w, and kappa falls, from ``START`` times |x|^2/n for a row x of features: while alpha is far off a
strong pull is what makes progress, later it is only in the way. u moves with both so that v stays. What a step returns
is that centre: the soft threshold of u after the move is a step further and, in the first passes, much worse.

Certificate. Any alpha is a dual point of the problem itself, with v = s u - kappa z; of all points on the way from
there to gold the best is found exactly (``owl_qn.best_dual``). So D is true for every lam, 0 included: there the outer
loop drives all |v_k| to l1 or below, and scaling costs little in the end.

Given weights w are a start as well: z = w and the Gibbs distribution at w. At the optimum these are the solution.

State. As in ``DualAscent``: a ``SparseMemory`` is changed in place and knows of how many steps it is the outcome.

Letters: alpha, w, T, lam as in the paper; v, u, z, kappa as above. Cost per step: n exp-oracle calls, those of trials
that were refused, the sparse products, a sort of the weights that are not zero. Memory: as ``DualAscent``.

References: Rockafellar, "Monotone operators and the proximal point algorithm", 1976; Shalev-Shwartz, Zhang,
"Accelerated proximal stochastic dual coordinate ascent for regularized loss minimization", 2014.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from m3n.compiled.maps.shrunk import Shrunk
from m3n.compiled.sweeps.dual_ascent import Ascent
from m3n.compiled.sweeps.visits import local_scores
from m3n.problem import Problem
from m3n.solvers.base import SOFT, FromWeights, NeverStalls, UnknownPrimal, parts_of_all
from m3n.solvers.dual_ascent import advanced, ascended
from m3n.solvers.dual_ascent_points import LEAN, Origin, begin, row_heats
from m3n.solvers.dual_points import check_potentials, filled, leaning, offset_of, starts_of
from m3n.solvers.forms import Weights, require
from m3n.solvers.owl_qn import best_dual
from m3n.solvers.workers import Pace, workers_for

START = 0.2  # of |x|^2/n: kappa at the beginning
SHRINK = 0.95  # of kappa, after every step
LEAST = 0.05  # of kappa at the beginning
HASTE = 0.5  # of the steps of rows that are certain of their labels, at the beginning: whole ones are refused too often


class SparseMemory:
    """The dual point of all examples, and the vector whose soft threshold are the weights, changed in place.

    Attributes
    ----------
    point : Ascent
        Potentials, marginals and step lengths.
    u : array (dim,)
        (v + kappa z)/(lam + kappa).
    centre : array (dim,)
        z: the weights after the last step.
    kappa, least : float
        Weight of the proximal term, and its smallest.
    steps : int
        How many steps have led to it; -1 while one is being made.
    origin : array (dim,) or None
        Weights that they began with; None at all but gold.
    pace : Pace
        How threads go side by side.
    """

    point: Annotated[Ascent, check_potentials]
    u: Weights
    centre: Weights
    kappa: float
    least: float
    steps: int
    origin: Weights | None
    pace: Pace

    def __init__(self, problem: Problem, origin: np.ndarray | None = None):
        self.origin, self.steps, self.kappa = origin, 0, _kappa(problem)
        self.pace = Pace()
        self.least = LEAST * self.kappa
        potentials = leaning(problem, LEAN, np.float32) if origin is None else _gibbs(problem, origin)
        eta = HASTE / row_heats(problem)
        self.point = begin(problem, Origin(potentials=potentials, eta=eta, kappa=np.ones(problem.n)))
        self.centre = np.zeros(problem.dim) if origin is None else origin.copy()
        strength = problem.lam + self.kappa
        self.u = filled(problem, self.point, strength) + self.kappa / strength * self.centre

    def advance(self, problem: Problem, seed: int) -> None:
        """One pass over the examples in random order, then another centre and another kappa."""
        order = np.random.default_rng([seed, self.steps]).permutation(problem.n)
        steps, self.steps = self.steps + 1, -1
        strength, threshold, before = problem.lam + self.kappa, self._threshold(problem), self._value(problem)
        workers = workers_for(problem, self.pace, "soft")
        vectors = [self.u, *(self.u.copy() for _ in range(1, workers))]
        weights = [Shrunk(u, threshold) for u in vectors]
        expected = ascended(
            problem, self.point, order, lam=strength, turn=steps - 1, weights=weights, vectors=vectors, pace=self.pace
        )
        self.pace = self.pace.after(workers, self._value(problem) - before, expected)
        self._move(problem, max(SHRINK * self.kappa, self.least))
        self.steps = steps

    def dual(self, problem: Problem) -> float:
        """The largest D on the way from gold to alpha."""
        return best_dual(self._vector(problem), offset_of(problem, self.point), problem.lam, problem.l1)

    def check(self, problem: Problem) -> None:
        """Refuse what does not fit the problem."""
        require(0.0 < self.least <= self.kappa < np.inf, f"the memory has kappa={self.kappa}, least={self.least}")

    def _value(self, problem: Problem) -> float:
        """D of the problem with the proximal term, but for a constant: what visits raise."""
        threshold, strength = self._threshold(problem), problem.lam + self.kappa
        w = self.u - np.clip(self.u, -threshold, threshold)
        return offset_of(problem, self.point) - strength / 2 * float(w @ w)

    def _threshold(self, problem: Problem) -> float:
        return problem.l1 / (problem.lam + self.kappa)

    def _vector(self, problem: Problem) -> np.ndarray:
        """v = sum alpha psi."""
        return (problem.lam + self.kappa) * self.u - self.kappa * self.centre

    def _move(self, problem: Problem, kappa: float) -> None:
        """The weights become the centre; of a step length, 1/eta - T is proportional to 1/s."""
        v, threshold, heat = self._vector(problem), self._threshold(problem), row_heats(problem)
        w = self.u - np.clip(self.u, -threshold, threshold)
        ratio = (problem.lam + self.kappa) / (problem.lam + kappa)
        self.point.eta[:] = 1.0 / (heat + ratio * (1.0 / self.point.eta - heat))
        self.u, self.centre, self.kappa = (v + kappa * w) / (problem.lam + kappa), w, kappa


@dataclass(frozen=True)
class SparseDualAscentState(UnknownPrimal, NeverStalls):
    """The weights, the best dual value so far and the memory, which may have moved on since."""

    w: Weights
    dual: float
    memory: SparseMemory
    steps: int = 0

    @property
    def metrics(self) -> Mapping[str, float]:
        return {"dual": self.dual, "nonzero": int(np.count_nonzero(self.w)), "steps": self.steps}


@dataclass(frozen=True)
class SparseDualAscent(FromWeights[SparseDualAscentState]):
    """Dual ascent by examples, for CRFs with an l1 penalty or an elastic net.

    Parameters
    ----------
    seed : int
        Seed of the order of the examples.
    """

    seed: int = 0

    requires = SOFT
    visits = True
    requires_smooth = SOFT
    native = "dual"
    rate = "none: for CRFs only"
    rate_smooth = "log(1/eps) once the zeros are found"
    takes_l1 = True
    smooth_only = True

    def footprint(self, problem: Problem) -> float:
        """Potentials and marginals."""
        return 16.0 * parts_of_all(problem)

    def init(self, problem: Problem) -> SparseDualAscentState:
        """All but gold: one pass of the exp-oracle for its marginals."""
        return _state(problem, SparseMemory(problem), 0.0)

    def start_at(self, problem: Problem, w: np.ndarray) -> SparseDualAscentState:
        """Given weights and their Gibbs distribution: one pass of the exp-oracle."""
        return _state(problem, SparseMemory(problem, w), 0.0)

    def step(self, problem: Problem, state: SparseDualAscentState) -> SparseDualAscentState:
        """One pass over the examples."""
        return _state(problem, advanced(problem, state, self.seed), state.dual)


def _state(problem: Problem, memory: SparseMemory, dual: float) -> SparseDualAscentState:
    return SparseDualAscentState(memory.centre, max(dual, memory.dual(problem)), memory, memory.steps)


def _kappa(problem: Problem) -> float:
    """At the beginning. Without features any positive number will do."""
    norms = problem.features.norms()[0]
    square = float(np.mean(norms**2)) if norms.size else 0.0
    return START * (square or 1.0) / problem.n


def _gibbs(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Potentials of the Gibbs distributions at w: the scores, divided by the temperature."""
    blocks, starts = problem.blocks, starts_of(problem)
    potentials, theta = np.empty(int(starts[-1]), np.float32), np.empty(blocks.largest)
    for i, heat in enumerate(problem.temperature * blocks.weights):
        potentials[starts[i] : starts[i + 1]] = local_scores(blocks.rows, blocks.costs, i, w, theta) / heat
    return potentials
