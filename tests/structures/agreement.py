"""What every solver must find on a tiny problem of a new structure."""

import numpy as np
import pytest

from m3n import minimize
from m3n.solvers import LBFGS, SMO, BlockFrankWolfe, DualAscent, ExcessiveGap, SequentialDual
from tests.problem.test_blocks import test_block_oracles_are_those_of_the_batch as check_blocks
from tests.problem.test_blocks import test_default_parts_are_those_of_the_structure as check_parts
from tests.tiny import Enumerated

MARGIN = [
    (SequentialDual(), 1e-3),
    (ExcessiveGap(), 1e-3),
    (SMO(), 1e-3),
    (BlockFrankWolfe(), 1e-2),  # slow at the end
]
CRF = [(DualAscent(), 1e-6), (LBFGS(), 1e-6)]


def solvers_find_the_optimum(problem, without=()):
    """Certificates enclose the optimum of an independent solver of the enumerated problem."""
    known = Enumerated.of(problem)
    best = known.optimum()
    for solver, tol in CRF if problem.temperature else MARGIN:
        if isinstance(solver, tuple(without)):  # it needs an oracle that the structure lacks
            continue
        result = minimize(problem, solver, tol=tol, max_passes=2000)
        assert result.converged, solver
        assert result.certificate.dual <= best + 1e-8 <= result.certificate.primal + 2e-8, solver
        assert result.certificate.primal == pytest.approx(known.primal(result.w), abs=1e-10), solver


def blocks_agree(make):
    """The compiled space against the batch oracles, and listed parts against encoded ones."""
    check_blocks(make, np.random.default_rng(0))
    check_parts(make)


def weights_count_examples(structure):
    """``soft`` and ``encode`` with weights against the examples one by one, added up by hand."""
    random = np.random.default_rng(0)
    weights = random.uniform(0.5, 2.0, size=structure.n)
    theta = tuple(random.normal(size=shape) for shape in structure.shapes)
    labelling = structure.hard(theta)[1]
    soft, hard = (tuple(np.zeros(shape) for shape in structure.shapes) for _ in range(2))
    for i, weight in enumerate(weights):
        alone, rows = structure.select(np.array([i]))
        mine = tuple(array.copy() if row is None else array[row].copy() for array, row in zip(theta, rows, strict=True))
        answers = alone.soft(mine, 0.7)[1], alone.encode(labelling[structure.entries_of(np.array([i]))])
        for totals, parts in zip((soft, hard), answers, strict=True):
            for total, row, part in zip(totals, rows, parts, strict=True):
                total[... if row is None else row] += weight * part
    encoded = structure.encode(labelling, weights=weights)
    left = tuple(array.copy() for array in encoded)
    structure.subtract(labelling, left, weights=weights)
    for found, expected in ((structure.soft(theta, 0.7, weights=weights)[1], soft), (encoded, hard)):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
    assert all(np.abs(array).max(initial=0.0) < 1e-12 for array in left)


def terms_near_underflow(structure):
    """A chain of two positions and labels: exp(-709) is nothing, but much beside exp(-707).

    Label 1 comes second; from label 0 it scores -707, from label 1, which itself scores -709, it scores 0.
    """
    theta = tuple(np.zeros(shape) for shape in structure.shapes)
    theta[0][:] = [[0.0, -709.0], [-5000.0, 0.0]]
    theta[1][0, 1] = -707.0
    value, marginals = structure.soft(theta, 1.0)
    assert value[0] == pytest.approx(-707.0 + np.log1p(np.exp(-2.0)), rel=1e-14)
    np.testing.assert_allclose(marginals[0][0, 1], 1.0 / (1.0 + np.exp(2.0)), rtol=1e-9)
    np.testing.assert_allclose(marginals[1][1, 1], 1.0 / (1.0 + np.exp(2.0)), rtol=1e-9)
