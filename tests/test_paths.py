"""Paths over lam."""

import numpy as np
import pytest

import m3n
from m3n import Status, minimize, path
from m3n.solvers import BatchFrankWolfe, DualAscent, SequentialDual, SparseDualAscent
from tests.tiny import Enumerated, chain_problem

LAMS = [0.01, 1.0, 0.1, 0.3]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_every_point_has_the_certificate_of_its_own_problem(temperature):
    problem = chain_problem(seed=3, temperature=temperature)
    found = path(problem, LAMS, tol=2e-3)
    assert [point.lam for point in found] == [1.0, 0.3, 0.1, 0.01]
    for point in found:
        best = Enumerated.of(problem.with_lam(point.lam)).optimum()
        assert point.result.status is Status.TOLERANCE
        assert point.certificate.dual <= best + 1e-8 <= point.certificate.primal + 2e-8
        assert point.certificate.gap <= 2e-3
        assert point.passes > 0
        assert point.seconds > 0
        assert point.result.reason
    assert problem.lam == 0.1  # as it was
    assert [point.result.state is None for point in found] == [True, True, True, False]


def test_warm_starts_save_passes():
    problem = chain_problem(seed=3, temperature=1.0)
    lams = np.geomspace(0.2, 0.02, 8)
    warm, cold = (path(problem, lams, DualAscent(), tol=1e-4, warm_start=choice) for choice in (True, False))
    assert sum(point.passes for point in warm) < sum(point.passes for point in cold)


def test_the_table_has_a_line_per_point():
    found = path(chain_problem(), [0.1, 1.0], SequentialDual(), tol=0.1)
    lines = str(found).splitlines()
    assert len(lines) == 4
    assert lines[0].split() == ["lam", "objective", "gap", "passes", "seconds", "nonzero", "stopped"]
    assert lines[1].split()[0] == "1"
    assert "tolerance reached" in lines[2]
    assert lines[3].split()[0] == "together"
    assert float(lines[3].split()[1]) == pytest.approx(sum(point.passes for point in found), abs=0.06)


def test_a_sparse_path_to_no_square_at_all():
    problem = chain_problem(seed=3, temperature=1.0, l1=0.05)
    found = path(problem, [0.1, 0.0], tol=1e-4)
    assert all(isinstance(point.result.solver, SparseDualAscent) for point in found)
    assert found[-1].certificate.primal == pytest.approx(Enumerated.of(problem.with_lam(0.0)).optimum(), abs=1e-4)


def test_an_empty_path_is_refused():
    with pytest.raises(ValueError, match="at least one value of lam"):
        path(chain_problem(), [])


def test_another_lam_shares_what_is_prepared():
    problem = chain_problem(seed=3)
    minimize(problem, SequentialDual(), tol=1e-2)
    problem.pieces(2)
    other = problem.with_lam(0.5)
    assert other.blocks is problem.blocks
    assert other.whole is problem.whole
    assert (other.lam, problem.lam, other.passes) == (0.5, 0.1, 0.0)
    before = problem.hard_calls
    minimize(other, BatchFrankWolfe(), tol=1e-2)
    assert problem.hard_calls == before  # each counts its own calls
    assert other.hard_calls > 0
    plain = chain_problem(seed=3, lam=0.5)
    w = np.random.default_rng(0).normal(size=problem.dim)
    assert other.primal(w) == plain.primal(w)
    with pytest.raises(ValueError, match="lam must be a positive"):
        problem.with_lam(0.0)
    assert m3n.path is path
