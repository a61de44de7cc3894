"""The subgradient method: plain recursions written out, and no dual."""

import numpy as np
import pytest

from m3n import minimize
from m3n.solvers import Subgradient
from tests.tiny import Enumerated, chain_problem, multiclass_problem


@pytest.mark.parametrize("make", [chain_problem, multiclass_problem])
def test_same_iterates_as_the_textbook(make):
    problem = make()
    known = Enumerated.of(problem)
    w, average, t = np.zeros(problem.dim), np.zeros(problem.dim), 0
    state = Subgradient().init(problem)
    for passes in range(4):
        state = Subgradient().step(problem, state)
        for i in np.random.default_rng([0, passes]).permutation(problem.n):
            mine = np.flatnonzero(known.owner == i)
            worst = mine[(known.ell[mine] - known.psi[mine] @ w).argmax()]
            t += 1
            w = w - (problem.lam * w - known.psi[worst]) / (problem.lam * t)
            average += 2 / (t + 1) * (w - average)  # weights 1, 2, 3, ...
        np.testing.assert_allclose(state.last / (problem.lam * t), w, atol=1e-9)
        np.testing.assert_allclose(state.w, average, atol=1e-9)


def test_has_no_dual_and_says_so():
    problem = multiclass_problem()
    state = Subgradient().step(problem, Subgradient().init(problem))
    assert state.dual == -np.inf
    assert "no dual" in (Subgradient.__doc__ or "")
    result = minimize(problem, Subgradient(), tol=1e-3, max_passes=300)
    assert not result.converged
    assert result.certificate.dual == 0.0
    assert result.certificate.primal - Enumerated.of(problem).optimum() < 1e-2
