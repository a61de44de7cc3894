"""Tests of solvers that touch weights only through the problem: a subclass fills a few hooks."""

import numpy as np
import pytest

from m3n import Problem, Status, minimize
from m3n.losses import NormalizedHamming
from tests.tiny import Enumerated, PartCoordinates, chain_problem, iterates, multiclass_problem

ROUNDING = 1e-10  # sums of a few hundred terms of size 1e3 at most

CASES = {
    "chain M3N": (0.0, lambda: chain_problem(seed=3)),
    "multiclass SVM": (0.0, lambda: multiclass_problem(seed=3)),
    "chain CRF": (1.0, lambda: chain_problem(seed=3, temperature=1.0)),
    "logistic regression": (1.0, lambda: multiclass_problem(seed=3, temperature=1.0)),
    "softmax-margin": (0.3, lambda: chain_problem(seed=3, temperature=0.3, loss=NormalizedHamming())),
}


def lifted(problem):
    """The same problem in part coordinates, where weights have another inner product."""
    y = problem.structure.unpack(problem.gold)
    settings = {"lam": problem.lam, "temperature": problem.temperature, "n_jobs": 1}
    other = Problem(problem.structure, PartCoordinates(problem.features), y, **settings)
    other.cost = problem.cost
    return other


class SolverTemplate:
    """Inherit and set ``solver``; ``tol`` is a gap that it reaches within ``max_passes`` on the tiny problems.

    ``dual_point(state)`` gives u = w(alpha) and the offset of the point at which ``state.dual`` is D. What holds for
    all solvers is tested in ``test_product.py``.
    """

    solver = None
    tol = 1e-3
    max_passes = 3000

    @classmethod
    def pytest_generate_tests(cls, metafunc):
        if "case" in metafunc.fixturenames:
            names = [name for name, (heat, _) in CASES.items() if cls.solver.oracles(heat) is not None]
            metafunc.parametrize("case", names)

    @pytest.fixture
    def problem(self, case):
        return CASES[case][1]()

    def test_the_optimum_of_an_independent_solver(self, problem):
        known = Enumerated.of(problem)
        best = known.optimum()
        result = minimize(problem, self.solver, tol=self.tol, max_passes=self.max_passes)
        assert result.status is Status.TOLERANCE
        assert result.certificate.dual <= best + 1e-8 <= result.certificate.primal + 2e-8
        assert result.certificate.gap <= self.tol
        assert result.certificate.primal == pytest.approx(known.primal(result.w), abs=1e-12)

    def test_the_dual_recomputed_from_scratch(self, problem):
        """In part coordinates the solver's vectors are marginals: alpha can be looked at, and D computed anew."""
        other = lifted(problem)
        parts = other.features
        gold = parts.adjoint(problem.structure.encode(problem.gold))
        for state in iterates(other, self.solver, 60):
            u, offset = self.dual_point(state)
            marginals = parts.parts(gold - problem.n * problem.lam * u)
            node = marginals[0]
            assert node.min() >= -1e-12
            np.testing.assert_allclose(node.sum(axis=1), 1.0, atol=1e-11)
            vector = (parts.weights(gold) - problem.features.adjoint(marginals)) / problem.n
            loss = problem.cost.expected(marginals) / problem.n
            if problem.temperature:
                assert loss - ROUNDING <= offset <= loss + problem.temperature * problem.log_size + ROUNDING
            else:
                assert offset == pytest.approx(loss, abs=ROUNDING)
            assert state.dual == pytest.approx(offset - vector @ vector / (2 * problem.lam), abs=ROUNDING)

    def test_the_inner_product_is_the_problems(self, problem):
        """Same iterates in part coordinates: nothing but ``inner`` and ``combine`` touches weights."""
        other = lifted(problem)
        for state, twin in zip(iterates(problem, self.solver, 8), iterates(other, self.solver, 8), strict=True):
            np.testing.assert_allclose(other.features.weights(twin.w), state.w, rtol=1e-6, atol=1e-8)
            assert twin.dual == pytest.approx(state.dual, rel=1e-7)
