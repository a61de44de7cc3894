"""Which solver "auto" means, chosen from the problem.

CRFs. ``DualAscent`` takes few passes, one thread and memory for every example; ``LBFGS`` many passes on all threads.
How many more depends on how strongly one visit changes the weights, c = |x|^2 / (lam n) for a row x of features. CPU
seconds to a gap of 1e-4 of the objective, certificates included, one thread:

    data, lam                       c     DualAscent    L-BFGS
    CoNLL-2000 chunking, 0.01       0.2          3.3        12
    OCR words, 0.01                 0.5          1.3       3.6
    CoNLL-2000 chunking, 2/n        9             15        38
    OCR words, 1/n                 29             16        15
"""

from __future__ import annotations

from typing import Any

import numpy as np

from m3n.problem import Problem
from m3n.solvers.base import Solver
from m3n.solvers.dual_ascent import DualAscent
from m3n.solvers.lbfgs import LBFGS

MOST_BYTES = 1 << 31  # for the dual point of all examples
LEAST, SLOPE = 0.25, 0.025  # seconds of DualAscent / L-BFGS on one thread = LEAST + SLOPE c, from the table above
SCALING = 0.8  # a pass on k threads is k^SCALING times as quick


def choose_smooth(problem: Problem, seed: int = 0) -> tuple[Solver[Any], str]:
    """The solver for a positive temperature, and why.

    Parameters
    ----------
    problem : Problem
        A CRF.
    seed : int
        For a solver that draws random numbers.
    """
    norms = problem.features.norms()[0]
    change = float(np.mean(norms**2)) / (problem.lam * problem.n) if norms.size else 0.0
    ratio = (LEAST + SLOPE * change) * problem.threads.count**SCALING
    if ratio > 1.0:
        return LBFGS(), f"weak regularisation for {problem.threads.count} threads: passes on all of them are quicker"
    try:
        blocks = problem.blocks
    except TypeError as error:
        return LBFGS(), f"visits of single examples are not possible: {error}"
    if not blocks.compiled:
        return LBFGS(), f"{type(problem.structure).__name__} has no compiled visits of single examples"
    if 16 * int(blocks.rows.sizes.sum()) > MOST_BYTES:
        return LBFGS(), "the dual point of all examples would be too large for memory"
    return DualAscent(seed), "few passes are enough where examples are visited one by one"
