"""Distributions that stay O(dim): alpha_i(y) proportional to exp{ c ell_i(y) - <v, psi_i(y)> }.

Methods that move in the dual by multiplying alpha with exponentials of gradients never leave this family, because
gradients of the dual are linear in ell and psi. A vector v and a number c describe alpha for all examples at once; one
exp-oracle pass gives what D and the next gradient see of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from m3n.problem import Objective
from m3n.solvers.forms import Weights

ROUNDING = 1e-14  # relative error of sums over the data


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
