"""Losses x solvers against the optimum of an independent solver; weighted examples against repeated ones."""

from functools import cache

import numpy as np
import pytest

from m3n import minimize
from m3n.losses import CostMatrix, EdgeHamming, Hamming
from m3n.solvers import BY_NAME, BlockFrankWolfe, ExponentiatedGradient, Pairwise, PlaneCache, StructSVM, Subgradient
from tests.losses.cases import CASES, CLASSES, MATRIX, problem_with
from tests.tiny import Enumerated

SOLVERS = {
    **{name: kind() for name, kind in BY_NAME.items() if not kind.takes_l1},
    "online": ExponentiatedGradient(online=True),
    "n slacks": StructSVM(slack="n"),
    "pairwise, cached": BlockFrankWolfe(move=Pairwise(), cache=PlaneCache(3)),
}
LOSSES = ["normalized, weighted", "matrix", "labels and pairs", "own loss", "sum of all"]
TIMES = np.array([2, 1, 3, 1])


def temperatures(solver):
    return [heat for heat in (0.0, 0.7) if solver.oracles(heat) is not None]


PRODUCT = [(s, loss, heat) for s in SOLVERS for loss in LOSSES for heat in temperatures(SOLVERS[s])]


@cache
def optimum(name, heat):
    """The best value, with losses from plain Python instead of the library's."""
    loss, by_hand = CASES[name]
    problem = problem_with(loss, temperature=heat)
    known = Enumerated.of(problem)
    gold = problem.structure.unpack(problem.gold)
    known.ell = np.array([by_hand(i, gold[i], y) for i in known.range for y in problem.structure.enumerate(i)])
    return known.optimum()


@pytest.mark.parametrize(("solver", "name", "heat"), PRODUCT)
def test_optimum_of_an_independent_solver(solver, name, heat):
    problem, best = problem_with(CASES[name][0], temperature=heat), optimum(name, heat)
    tol = 2e-2 * best  # the slowest rates are 1/k, and L-BFGS stops at what its smoothing allows
    result = minimize(problem, SOLVERS[solver], tol=tol, max_passes=1500)
    known = result.certificate
    assert known.dual <= best + 1e-8 <= known.primal + 2e-8
    assert known.primal - best <= tol
    assert result.converged or isinstance(SOLVERS[solver], Subgradient)


@pytest.mark.parametrize(("solver", "heat"), [(s, heat) for s in SOLVERS for heat in temperatures(SOLVERS[s])])
def test_weighted_examples_are_repeated_ones(solver, heat):
    loss = Hamming(CLASSES) + CostMatrix(MATRIX) + EdgeHamming()  # a table, labels and pairs written out
    weighted = problem_with(loss, sample_weight=TIMES, temperature=heat)
    written = problem_with(loss, TIMES, temperature=heat)
    best = minimize(written, "lbfgs" if heat else "sequential_dual", tol=1e-7, max_passes=3000).certificate
    result = minimize(weighted, SOLVERS[solver], tol=2e-2 * best.primal, max_passes=1500)
    assert result.certificate.primal == pytest.approx(written.primal(result.w), rel=1e-12)
    assert result.certificate.dual <= best.primal + 1e-9
    assert result.certificate.primal >= best.dual - 1e-9
    assert result.converged or isinstance(SOLVERS[solver], Subgradient)
