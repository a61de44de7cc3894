import numpy as np
import pytest

from m3n.solvers.dual_points import Gibbs, Hull, Point
from tests.tiny import Enumerated, chain_problem, multiclass_problem


@pytest.fixture
def points(random):
    """Dual points of random distributions, written out, and as D sees them."""
    problem = chain_problem()
    known = Enumerated.of(problem)
    alphas = [known.gibbs(0.3 * random.normal(size=problem.dim), 0.2) for _ in range(6)]
    return problem, known, alphas, [Point(a @ known.psi / problem.lam, float(a @ known.ell)) for a in alphas]


def test_the_best_mixture_beats_any_other(points, random):
    problem, known, alphas, seen = points
    hull = Hull.gold(problem).joined(problem, seen, memory=6)
    gold = known.ell == 0.0
    gold &= np.all(known.psi == 0.0, axis=1)
    candidates = [gold / problem.n, *alphas]
    for _ in range(200):
        weights = random.dirichlet(np.full(len(candidates), 0.3))
        assert known.dual(weights @ np.array(candidates)) <= hull.dual(problem) + 1e-10
    assert hull.dual(problem) > max(known.dual(a) for a in alphas)


def test_points_come_and_go(points):
    problem, _, _, seen = points
    hull, duals = Hull.gold(problem), [0.0]
    for count, point in enumerate(seen, start=1):
        hull = hull.joined(problem, [point], memory=3)
        assert len(hull.points) == 1 + min(count, 3)
        assert hull.points[-1] is point
        exact = np.array([[p.u @ q.u for q in hull.points] for p in hull.points])
        np.testing.assert_allclose(hull.gram, exact, rtol=1e-9, atol=1e-9)
        duals.append(hull.dual(problem))
    assert duals == sorted(duals)
    assert len(hull.joined(problem, seen[:2], memory=0).points) == 1


def test_mixing_is_a_lower_bound_with_a_temperature(random):
    """Entropy is concave: the offset of a mixture is at least the mixture of the offsets."""
    problem = chain_problem(temperature=1.0)
    known = Enumerated.of(problem)
    best = known.optimum()
    hull = Hull.gold(problem)
    for _ in range(10):
        alpha = known.gibbs(random.normal(size=problem.dim), 1.0)
        offset = float(alpha @ known.ell) + known.entropy(alpha)
        hull = hull.joined(problem, [Point(alpha @ known.psi / problem.lam, offset)], memory=5)
        assert known.dual(alpha) - 1e-10 <= hull.dual(problem) <= best + 1e-8


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
