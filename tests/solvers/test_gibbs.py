import numpy as np
import pytest

from m3n.solvers.gibbs import Gibbs
from tests.tiny import Enumerated, chain_problem, multiclass_problem


@pytest.mark.parametrize("temperature", [0.0, 0.5])
@pytest.mark.parametrize("make", [chain_problem, multiclass_problem])
def test_what_a_pass_says(make, temperature, random):
    problem = make(temperature=temperature)
    known = Enumerated.of(problem)
    one, two = (Gibbs.at(problem, random.normal(size=problem.dim), c) for c in (-2.0, 3.0))
    alpha, beta = (known.gibbs(point.v, 1.0, loss_scale=point.c) for point in (one, two))
    np.testing.assert_allclose(one.u, alpha @ known.psi / problem.lam, atol=1e-12)
    assert one.loss == pytest.approx(alpha @ known.ell)
    assert problem.dual(one.u, one.offset) == pytest.approx(known.dual(alpha))
    assert one.divergence(problem, two) == pytest.approx(np.sum(alpha * np.log(alpha / beta)))
    assert abs(one.divergence(problem, one)) <= one.rounding
