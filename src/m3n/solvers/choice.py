"""What ``solver="auto"`` means: the solver that measured fastest on problems of the kind, and why.

The choice depends on the problem and the tolerance alone, never on a clock: the same run always gets the same solver.

Max-margin networks. ``SequentialDual`` takes the fewest passes. Where lam is strong its caches do not pay before a high
accuracy is asked for: plain block Frank-Wolfe makes a pass in three quarters of the time. The measure is the pull,
sqrt(C/lam), with C = 2 |x|^2/(n ell) for a row x of features whose label costs ell. CPU seconds of block Frank-Wolfe
over those of SequentialDual, one thread, to gaps of 0.1 and 0.01 of J(0):

    data, lam                               pull        0.1      0.01
    OCR words, 1                            0.3         0.92     0.94
    CoNLL-2000, errors counted, 0.01        0.7         1.4      0.90
    OCR words, 0.1                          0.9         0.76     0.82
    single digits, 0.01                     1.4         0.4      0.9
    OCR words, 0.01                         2.8         1.6      3.2
    CoNLL-2000, normalised, 0.01            3.3         1.0      1.8
    CoNLL-2000, errors counted, 1/n         6.4         1.1      1.5

Dense inputs that vary in many directions (normal numbers; not pixels). Visits walk every number of a row, passes are
products of matrices, and few of them are enough. CPU seconds to 5 % of the objective, sentences of 20 tokens:

    n, numbers, labels, lam                 pull        SequentialDual    ExcessiveGap    BMRM
    200, 1000, 10, 10/n                     14           12 (to 14 %)              2.4      12 (to 16 %)
    500, 100, 10, 1/n                       14                    1.1             0.38    0.77
    50, 20, 40, 1/n (to 2 %)                6.3                  0.62             0.17    0.52
    2000, 20, 6, 1/n                        6.3                  0.58             0.49    0.48
    500, 20, 40, 10/n (to 2 %)              2                    0.58             0.32    0.16
    500, 100, 10, 0.1                       2                    0.33             0.20    0.06

Where examples are single rows visits are cheap: 2000 rows of 100 numbers, 10 labels, 1/n: 0.14 s, 0.14 s and 0.63 s.
Where one direction holds most of the squares (n = 500, 100 numbers, 1/n): 0.58 s, 0.44 s and 0.20 s, scenes 0.65 s,
2.2 s and 0.47 s; ``SequentialDual`` is never far behind there, and stays.

Where other parts than labels have costs, rows do not tell: parses with features of spans, 61 s and 16 s to 0.05.

Slack-rescaled networks. Pairwise steps and sweeps over known outputs: 60 passes instead of 469 of plain block
Frank-Wolfe, to 1 % of J on a tenth of the OCR words at lam = 0.01.

CRFs. ``DualAscent`` takes few passes, one thread and memory for every example; ``LBFGS`` many passes on all threads.
How many more depends on how strongly one visit changes the weights, c = |x|^2 / (lam n) for a row x of features. CPU
seconds to a gap of 1e-4 of the objective, certificates included, one thread:

    data, lam                                 c     DualAscent    L-BFGS
    CoNLL-2000, observed pairs, 0.01          0.2          3.3        12
    OCR words, 0.01                           0.5          1.3       3.6
    OCR words, 4/n                            7            4.1       7.7
    CoNLL-2000, observed pairs, 2/n           9             10        31
    OCR words, 1/n                           29             12        15
    CoNLL-2000, observed pairs, 1/(2n)       36             25        47

Dense inputs that vary in many directions: L-BFGS takes a half to a tenth of the time at any lam (2000 sentences of 20
numbers, 6 labels, 1/n, to 5 %: 0.32 s and 0.03 s). Scenes vary in one: 0.67 s and 1.2 s, to 1 %.

Where there are more weights than parts, the vectors that L-BFGS remembers cost more than its passes: with all pairs of
CoNLL-2000, 7.4 million weights for 4.7 million parts, lam = 1/n: 18 s to 1e-3, and at 5e-3 still after 147 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from m3n.problem import Objective, Problem, Sharded
from m3n.problem.sections import obstacle as obstacle_of
from m3n.solvers.base import Solver
from m3n.solvers.batch_frank_wolfe import BatchFrankWolfe
from m3n.solvers.block_frank_wolfe import BlockFrankWolfe, Pairwise, PlaneCache
from m3n.solvers.bmrm import BMRM
from m3n.solvers.dual_ascent import DualAscent
from m3n.solvers.excessive_gap import ExcessiveGap
from m3n.solvers.lbfgs import LBFGS
from m3n.solvers.owl_qn import OWLQN
from m3n.solvers.sequential_dual import SequentialDual
from m3n.solvers.sparse_dual_ascent import SparseDualAscent

# block Frank-Wolfe: pull up to, and tolerance from, as a share of J(0)
LOOSE = ((0.6, 0.002), (1.0, 0.01), (2.0, 0.05))
MOST_BYTES = 1 << 31  # for the dual point of all examples
MOST_LANES = 8  # of dual ascent: more need as many passes as L-BFGS, see docs/experiments.md
LEAST, SLOPE = 0.35, 0.012  # seconds of DualAscent / L-BFGS on one thread = LEAST + SLOPE c, from the second
LONG, MANY, STEEP = 2, 400, 3.5  # rows of an example, weights of a row, and the pull: see the table on dense inputs
FINE = 0.002  # share of J(0) below which visits win: passes of ExcessiveGap grow like its root, measured down to 0.005
FULL, DIRECTIONS = 0.5, 4.0  # share of numbers that are not zero, and directions: more, and L-BFGS is quick
SAMPLE, POWER_STEPS = 2000, 4  # rows that are looked at for it, and steps of the power iteration
SCALING = 0.8  # a pass on k threads is k^SCALING times as quick


EVEN = "dense inputs that vary in many directions: a few passes of matrix products are enough"


@dataclass(frozen=True)
class Choice:
    """A solver, and in a sentence why it was chosen.

    Attributes
    ----------
    solver : Solver
        The solver with its settings.
    reason : str
        Empty if the user named the solver.
    """

    solver: Solver[Any]
    reason: str = ""


def choose(problem: Objective, seed: int = 0, tol: float = 0.0, rtol: float = 0.0) -> Choice:
    """The solver for a problem.

    Parameters
    ----------
    problem : Problem
        What is to be minimised.
    seed : int
        Seed of a solver that draws random numbers.
    tol, rtol : float
        The tolerances of the run, as in ``minimize``.
    """
    if problem.l1:
        return _choose_sparse(problem, seed)
    if not isinstance(problem, Problem):
        return _choose_elsewhere(problem, seed, max(rtol, tol))
    if problem.temperature:
        return choose_smooth(problem, seed)
    slack = problem.rescale == "slack"
    worst = float(problem.cost.worst().sum()) / problem.n  # J(0), or a bound on it where outputs are constrained
    pull, share = _pull(problem), max(rtol, tol / max(worst, 1e-300))
    if not slack and (pull <= STEEP or share >= FINE) and _prefers_passes(problem):
        return _choose_dense(pull, seed)
    obstacle = _obstacle(problem)
    if obstacle:
        why = f"slack rescaling, and {obstacle}" if slack else obstacle
        return Choice(BatchFrankWolfe(seed=seed), f"{why}: mini-batches need the fewest passes of what is left")
    if slack:
        why = "slack rescaling: pairwise visits with sweeps over known outputs"
        return Choice(BlockFrankWolfe(move=Pairwise(), cache=PlaneCache(), seed=seed), why)
    if any(pull <= most and share >= least for most, least in LOOSE):
        why = "strong regularisation and a loose tolerance: plain visits of single examples are cheapest"
        return Choice(BlockFrankWolfe(seed=seed), why)
    why = f"max-margin with {problem.n} examples that can be visited one by one: cached outputs save oracle calls"
    return Choice(SequentialDual(seed=seed), why)


def _choose_elsewhere(problem: Objective, seed: int, share: float) -> Choice:
    """The solver where other threads or machines have the examples: the usual ones, if these can be visited there."""
    smooth, data = bool(problem.temperature), getattr(problem, "data", None)
    if isinstance(data, Problem) and problem.rescale == "margin":
        if smooth and _even(data):
            return Choice(LBFGS(), EVEN)
        if not smooth and share >= FINE and _prefers_passes(data):
            return _choose_dense(_pull(data), seed)
    solver: Solver[Any] = DualAscent(seed) if smooth else SequentialDual(seed=seed)
    obstacle = _distance(problem, solver)
    if not obstacle:
        return Choice(solver, "workers visit their own examples one by one: that takes the fewest passes")
    if smooth:
        return Choice(LBFGS(), f"{obstacle}: L-BFGS asks for all examples at once")
    return Choice(BatchFrankWolfe(seed=seed), f"{obstacle}: mini-batches need the fewest passes of what is left")


def _distance(problem: Objective, solver: Solver[Any]) -> str:
    """Why workers cannot visit their examples for a solver; empty if they can."""
    if not isinstance(problem, Sharded):
        return "passes made elsewhere"
    if not solver.fits(problem):
        return "slack rescaling" if problem.rescale == "slack" else f"{problem.name} has no oracle for visits"
    lanes = problem.engine.lanes
    if problem.temperature and lanes > MOST_LANES:
        return f"visits of {lanes} lanes side by side correct the same errors more than once"
    if solver.footprint(problem) > MOST_BYTES * lanes:
        return "what visits need of all examples would be too large for memory"
    return problem.engine.total(obstacle_of, "soft" if problem.temperature else "hard").obstacle


def _prefers_passes(problem: Problem) -> bool:
    """Whether whole passes, products of matrices, beat visits: long outputs, and many weights at every position."""
    X, n = problem.features.array, problem.n
    if X is None or "soft" not in problem.oracles or len(X) < LONG * n:
        return False
    return X.shape[1] * int(np.prod(problem.structure.shapes[0][1:])) >= MANY and _even(problem)


def _choose_dense(pull: float, seed: int) -> Choice:
    """The solver of a max-margin network by whole passes."""
    why = "dense inputs that vary in many directions, passes are products of matrices"
    if pull > STEEP:
        return Choice(ExcessiveGap(seed=seed), f"{why}: accelerated steps need the fewest")
    return Choice(BMRM(), f"{why}, and regularisation is strong: a few planes are enough")


def choose_smooth(problem: Problem, seed: int = 0) -> Choice:
    """The solver at a positive temperature.

    Parameters
    ----------
    problem : Problem
        A CRF.
    seed : int
        For a solver that draws random numbers.
    """
    if _even(problem):
        return Choice(LBFGS(), EVEN)
    norms, threads = problem.features.norms()[0], problem.threads.count
    change = float(np.mean(norms**2)) / (problem.lam * problem.n) if norms.size else 0.0
    vectors = 1.0 + problem.dim / sum(int(np.prod(shape)) for shape in problem.structure.shapes)
    if (LEAST + SLOPE * change) * threads**SCALING > vectors:
        return Choice(LBFGS(), f"weak regularisation for {threads} threads: passes on all of them are quicker")
    obstacle = _smooth_obstacle(problem)
    if obstacle:
        return Choice(LBFGS(), f"{obstacle}: L-BFGS asks for all at once")
    return Choice(DualAscent(seed), "few passes are enough where examples are visited one by one")


def _choose_sparse(problem: Objective, seed: int) -> Choice:
    """The solver with an l1 penalty."""
    if not isinstance(problem, Problem):
        return Choice(OWLQN(), "an l1 penalty, and passes made elsewhere: OWL-QN asks for all examples at once")
    if problem.temperature and problem.lam > 0.0 and _even(problem):
        return Choice(
            OWLQN(), "an l1 penalty, and dense inputs that vary in many directions: passes are quick, and few"
        )
    obstacle = _smooth_obstacle(problem) if problem.temperature else ""
    if obstacle:
        return Choice(OWLQN(), f"an l1 penalty, and {obstacle}: OWL-QN asks for all at once")
    why = "an l1 penalty: few passes are enough where examples are visited one by one"
    return Choice(SparseDualAscent(seed), why)


def _smooth_obstacle(problem: Problem) -> str:
    """Why dual ascent does not fit a problem; empty if it does."""
    if DualAscent().footprint(problem) > MOST_BYTES:
        return "the dual point of all examples would be too large for memory"
    obstacle = _obstacle(problem)
    if obstacle:
        return obstacle
    return "" if problem.blocks.compiles("soft") else f"{problem.name} has no compiled visits of single examples"


def _obstacle(problem: Problem) -> str:
    """Why examples cannot be visited one by one; empty if they can."""
    try:
        _ = problem.blocks
    except TypeError as error:  # the map cannot be written out example by example
        return f"no visits of single examples ({error})"
    return ""


def _even(problem: Problem) -> bool:
    """Whether inputs are a dense array whose rows vary in many directions."""
    X = problem.features.array
    if X is None or np.count_nonzero(X) <= FULL * X.size:
        return False
    return _directions(X[:: 1 + len(X) // SAMPLE]) >= DIRECTIONS


def _directions(X: np.ndarray) -> float:
    """In how many directions rows vary: the sum of their squares over that in the strongest direction."""
    v = X.sum(axis=0) + 1.0
    for _ in range(POWER_STEPS):
        v = X.T @ (X @ (v / np.linalg.norm(v)))
    strongest = float(np.sum((X @ (v / np.linalg.norm(v))) ** 2)) if v.any() else 0.0
    return float(np.sum(X**2)) / strongest if strongest else np.inf


def _pull(problem: Problem) -> float:
    """How strongly single examples pull at w, against lam."""
    norms, ell = problem.features.norms()[0].ravel(), problem.cost.worst()
    used = ell > 0.0
    if problem.cost.parts or len(norms) != len(ell) or not used.any():  # not the labels of single rows alone
        return np.inf
    return float(np.sqrt(2.0 * np.mean(norms[used] ** 2 / ell[used]) / (problem.n * problem.lam)))
