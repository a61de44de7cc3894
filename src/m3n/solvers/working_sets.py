"""Working sets: for every example a few outputs with weights, a sparse dual point.

They start with gold alone, D = 0. Kernels change them in place, so a step works on a copy.
"""

from __future__ import annotations

import numpy as np

from m3n.blocks import Blocks
from m3n.kernels.working_sets import Sets, totals_of
from m3n.problem import Problem

FIRST_CAPACITY = 8


def gold_sets(blocks: Blocks) -> Sets:
    """All weight on gold."""
    n, most = blocks.gold.shape
    sets = Sets(
        parts=np.zeros((n, FIRST_CAPACITY, most), np.int32),
        counts=np.zeros((n, FIRST_CAPACITY), np.int32),
        alpha=np.zeros((n, FIRST_CAPACITY)),
        losses=np.zeros((n, FIRST_CAPACITY)),
        seen=np.zeros((n, FIRST_CAPACITY), np.int32),
        used=np.ones(n, np.int32),
    )
    sets.parts[:, 0] = blocks.gold
    sets.counts[:, 0] = blocks.gold_counts
    sets.alpha[:, 0] = 1.0
    return sets


def copied(sets: Sets) -> Sets:
    """A copy that kernels may change."""
    return Sets(*(array.copy() for array in sets))


def enlarged(sets: Sets) -> Sets:
    """The same with twice the room."""
    slots = {
        name: np.concatenate([a, np.zeros_like(a)], axis=1) for name, a in sets._asdict().items() if name != "used"
    }
    return Sets(**slots, used=sets.used)


def dual_point(problem: Problem, sets: Sets) -> tuple[np.ndarray, float]:
    """u = w(alpha) and b = sum ell alpha, computed from the working sets alone."""
    blocks, u = problem.blocks, np.zeros(problem.dim)
    b = totals_of(blocks.rows, sets, blocks.gold, blocks.gold_counts, problem.lam, u)
    return u, float(b)
