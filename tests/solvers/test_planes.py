"""The small quadratic programme against its optimality conditions, and the book-keeping of planes."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.compiled.primitives.simplex import maximize_on_simplex
from m3n.solvers import planes as module
from m3n.solvers.planes import Plane, Planes, maximize
from tests.tiny import Enumerated, PartCoordinates, chain_problem


def value(Q, b, x):
    return b @ x - x @ Q @ x / 2


def shortfall(Q, b, x):
    """How much thousands of pairwise steps can still gain, each of which goes to the maximum along its direction."""
    better = x.copy()
    for _ in range(10):
        maximize_on_simplex(Q, b, better)
    return value(Q, b, better) - value(Q, b, x)


def random_programme(seed, size, rank, lam, length=1.0):
    random = np.random.default_rng(seed)
    vectors = length * random.normal(size=(size, rank))
    offsets = random.uniform(size=size)
    vectors[0], offsets[0] = 0.0, 0.0  # gold
    return vectors @ vectors.T / lam, offsets


def in_simplex(x):
    return x.min() >= 0.0 and abs(x.sum() - 1.0) <= 1e-15 * len(x)


@given(
    st.integers(0, 1000), st.integers(1, 40), st.integers(1, 20), st.sampled_from([1.0, 1e-2, 1e-4]),
    st.sampled_from([1e-2, 1.0, 10.0]),
)  # fmt: skip
def test_programme_is_solved_at_every_scale(seed, size, rank, lam, length):
    """The matrix has entries up to 1e7, the value is of size 1: rounding errors of 1e-9 are to be expected at most."""
    Q, b = random_programme(seed, size, rank, lam, length)
    start = np.eye(size)[0]
    x = maximize(Q, b, start)
    assert in_simplex(x)
    assert shortfall(Q, b, x) <= 1e-12 + 1e-16 * np.abs(Q).max()
    assert value(Q, b, x) >= value(Q, b, start)


def test_second_attempt_where_the_first_asks_too_much():
    """77 planes in 11 dimensions with products near 1e7: the strict tolerance is out of reach."""
    Q, b = random_programme(1264, 77, 11, 1e-4, 10.0)
    start = np.eye(77)[0]
    assert not module._interior_point(Q, b, module.ACCURACY)[1]
    assert shortfall(Q, b, maximize(Q, b, start)) <= 1e-8


def test_ties_and_copies():
    """Equal planes leave x undetermined, not the value."""
    Q, b = random_programme(0, 10, 3, 0.1)
    twice = np.tile(Q, (2, 2)), np.tile(b, 2)
    x = maximize(*twice, np.eye(20)[0])
    assert in_simplex(x)
    assert value(*twice, x) == pytest.approx(value(Q, b, maximize(Q, b, np.eye(10)[0])), abs=1e-12)


def test_offsets_of_zero():
    Q, b = random_programme(0, 5, 3, 0.1)
    x = maximize(Q, np.zeros(5), np.full(5, 0.2))
    assert value(Q, 0 * b, x) == pytest.approx(0.0, abs=1e-8)  # where x and its multiplier both tend to zero, slowly
    assert in_simplex(maximize(np.zeros((3, 3)), np.zeros(3), np.eye(3)[1]))


def test_weights_are_sparse_without_loss():
    Q, b = random_programme(1, 60, 5, 1e-2)
    x = maximize(Q, b, np.eye(60)[0])
    assert np.count_nonzero(x) <= 7  # rank + 1 at a vertex of the optimal face, and one for luck
    assert shortfall(Q, b, x) <= 1e-12


@pytest.mark.parametrize("status", ["Solved", "NumericalError"])
def test_a_bad_answer_is_mended(monkeypatch, status):
    """Whatever is reported, what comes back is feasible, better than the start, and close to the optimum."""
    Q, b = random_programme(2, 15, 6, 0.1)
    exact, start = maximize(Q, b, np.eye(15)[0]), np.eye(15)[0]
    bad = np.eye(15)[np.diag(Q).argmax()]
    monkeypatch.setattr(module, "_interior_point", lambda *_: (bad, status == "Solved"))
    x = maximize(Q, b, start)
    assert in_simplex(x)
    assert value(Q, b, x) == pytest.approx(value(Q, b, exact), abs=1e-6)
    np.testing.assert_array_equal(start, np.eye(15)[0])


def test_trouble_is_noticed(monkeypatch):
    """A solver that gives up leaves NaN behind, or weights that are all zero."""
    Q, b = random_programme(2, 5, 3, 0.1)
    for broken in (np.full(5, np.nan), np.zeros(5), np.full(5, -1.0)):
        answer = SimpleNamespace(x=broken, z=np.zeros(6), status="NumericalError")
        stub = SimpleNamespace(solve=lambda answer=answer: answer)
        monkeypatch.setattr(module.clarabel, "DefaultSolver", lambda *_, stub=stub: stub)
        found, solved = module._interior_point(Q, b, 1e-14)
        assert in_simplex(found)
        assert not solved
        assert value(Q, b, maximize(Q, b, np.eye(5)[0])) > 0.0


def some_planes(problem, number, seed=0):
    random = np.random.default_rng(seed)
    planes = Planes.gold(problem)
    for _ in range(number):
        answer = problem.risk(random.normal(size=problem.dim))
        planes = planes.add(problem, Plane(answer.offset, answer.vector))
    return planes


def true_gram(problem, planes):
    return np.array([[problem.inner(u, v) for v in planes.vectors] for u in planes.vectors])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_planes_lie_below_the_risk(temperature, random):
    problem = chain_problem(temperature=temperature)
    planes = some_planes(problem, 6)
    for _ in range(20):
        w = random.normal(size=problem.dim)
        heights = [b - problem.inner(w, a) for b, a in zip(planes.offsets, planes.vectors, strict=True)]
        assert max(heights) <= problem.risk(w).value + 1e-12


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_weights_give_a_lower_bound_and_the_minimum_of_the_model(temperature):
    problem = chain_problem(temperature=temperature)
    planes = some_planes(problem, 8).solved(problem.lam)
    w = planes.point(problem)
    dual = problem.dual(w, planes.offset)
    assert 0.0 < dual <= Enumerated.of(problem).optimum()
    heights = [b - problem.inner(w, a) for b, a in zip(planes.offsets, planes.vectors, strict=True)]
    assert planes.height(problem.lam) == pytest.approx(max(heights), abs=1e-12)
    # strong duality: the model at w(x) is the programme's value
    assert problem.lam / 2 * problem.inner(w, w) + max(heights) == pytest.approx(dual, abs=1e-10)


def test_pruning_drops_only_what_has_no_weight():
    problem = chain_problem()
    planes = some_planes(problem, 12)
    for _ in range(3):
        planes = planes.solved(problem.lam)
    used = planes.weights > 0
    assert 0 < used.sum() < len(planes)
    np.testing.assert_array_equal(planes.idle, np.where(used, 0, 3))
    assert planes.pruned(None) is planes.pruned(3) is planes
    rest = planes.pruned(2)
    assert len(rest) == used.sum()
    assert rest.offset == pytest.approx(planes.offset, abs=1e-15)
    np.testing.assert_allclose(rest.point(problem), planes.point(problem), atol=1e-14)
    np.testing.assert_allclose(rest.gram, true_gram(problem, rest), atol=1e-12)


@pytest.mark.parametrize("most", [3, 4, 6])
def test_merging_keeps_point_and_bound(most):
    problem = chain_problem(lengths=(3, 4, 2, 5), lam=0.01)
    planes = some_planes(problem, 12).solved(problem.lam)
    assert np.count_nonzero(planes.weights) > most
    few = planes.merged(problem, most)
    assert len(few) == most
    assert in_simplex(few.weights)
    assert few.offset == pytest.approx(planes.offset, abs=1e-14)
    np.testing.assert_allclose(few.point(problem), planes.point(problem), atol=1e-12)
    np.testing.assert_allclose(few.gram, true_gram(problem, few), atol=1e-12)
    assert planes.merged(problem, len(planes)) is planes


def test_merging_prefers_to_drop_planes_without_weight():
    problem = chain_problem()
    planes = some_planes(problem, 12).solved(problem.lam)
    used = np.count_nonzero(planes.weights)
    few = planes.merged(problem, used + 1)
    assert len(few) == used
    assert few.weights.min() > 0


def test_inner_products_are_the_problems():
    """With weights in coordinates of their own the Gram matrix and the programme are the same."""
    plain = chain_problem()
    lifted = chain_problem()
    lifted.features = PartCoordinates(plain.features)
    lifted.dim = lifted.features.dim
    state = np.random.default_rng(0)
    one, two = Planes.gold(plain), Planes.gold(lifted)
    for _ in range(5):
        c = state.normal(size=lifted.dim)
        a, b = plain.risk(lifted.features.weights(c)), lifted.risk(c)
        one, two = one.add(plain, Plane(a.offset, a.vector)), two.add(lifted, Plane(b.offset, b.vector))
    np.testing.assert_allclose(one.gram, two.gram, atol=1e-12)
    np.testing.assert_allclose(one.solved(0.1).weights, two.solved(0.1).weights, atol=1e-8)
