"""How far the optimum can be from the weights that a run returns.

J is lam-strongly convex, so J(w) - J* >= lam/2 |w - w*|^2; and J* - D(alpha) >= lam/2 |u - w*|^2 for u = w(alpha), as D
is a concave function of alpha that falls like lam/2 |u - w*|^2 around its optimum. With G = (J(w) - D(alpha)) / lam the
sum of both is

    |w - w*|^2 + |u - w*|^2 <= 2 G,    that is    |(w + u)/2 - w*|^2 <= G - d^2/4,    d = |w - u|,

a ball around the mid-point. Seen from w it reaches as far as d/2 + sqrt(G - d^2/4), which is at most the sqrt(2 G) that
the first inequality gives by itself, and sqrt(G) where w is w(alpha). The dual value of the certificate may be that of
a point whose u is not there any more; then sqrt(2 gap / lam) remains.

J and D are sums over the data that are exact to some digits (``ROUNDING``), and a gap of 0 proves no more than these:
as much is added to every gap.

With an l1 penalty w(alpha) is a soft threshold of the dual vector, and only the first inequality is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from m3n.problem import Objective
from m3n.run.certificate import Certificate

ROUNDING = 1e-12  # of J and D; independent sums agree to that or better


def plain_radius(certificate: Certificate, lam: float) -> float:
    """sqrt(2 gap / lam), with what rounding may hide.

    Parameters
    ----------
    certificate : Certificate
        Of the weights.
    lam : float
        Weight of the regulariser.
    """
    return float(np.sqrt(2.0 * _level(certificate.primal, certificate.dual, lam))) if lam > 0.0 else np.inf


def _level(primal: float, dual: float, lam: float) -> float:
    """G."""
    return (max(primal - dual, 0.0) + ROUNDING * (abs(primal) + abs(dual))) / lam


def radius_around(problem: Objective, w: np.ndarray, certificate: Certificate, state: Any) -> float:
    """A bound on |w - w*|.

    Parameters
    ----------
    problem : Problem
        What was minimised.
    w : array (dim,)
        Weights whose objective is that of the certificate.
    certificate : Certificate
        What is known of them.
    state : State or None
        Of the solver; one with ``dual_point`` tells the dual weights u and D there.
    """
    usual = plain_radius(certificate, problem.lam)
    point = getattr(state, "dual_point", None)
    if point is None or problem.l1 or not np.isfinite(usual):
        return usual
    u, dual = point(problem)
    difference = w - u
    square = max(problem.inner(difference, difference), 0.0) / 4.0
    level = _level(certificate.primal, dual, problem.lam)
    return min(usual, float(np.sqrt(square) + np.sqrt(max(level - square, 0.0))))
