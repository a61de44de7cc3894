"""What is proven about lams that were not solved, against solutions for them."""

import functools
from dataclasses import replace

import numpy as np
import pytest

import m3n
from m3n.run.paths import walk
from m3n.tuning.finality import possible_labels
from m3n.tuning.guarantee import Cell, Guarantee, Piece, Solved, cells_of, joined, relative_radius
from tests.tuning.data import sentences


def tagger(objective="margin", **settings):
    return m3n.SequenceTagger(objective=objective, n_jobs=1, **settings)


@functools.cache
def exactly(objective, lam):
    (point,) = walk(tagger(objective).problem(*sentences(3)), [lam], tol=1e-9)
    return point


@pytest.mark.parametrize("objective", ["margin", "crf", "softmax_margin"])
@pytest.mark.parametrize("rtol", [0.2, 0.01, 1e-6])
def test_the_ball_holds_the_optimum(objective, rtol):
    """Exact optima around a solved lam, scaled as the ball wants them; some are near enough to its edge."""
    problem, tightest = tagger(objective).problem(*sentences(3)), np.inf
    for lam0 in (0.2, 0.02):
        (point,) = walk(problem, [lam0], tol=0.0, rtol=rtol)
        solved = Solved(lam0, point.certificate.gap, np.linalg.norm(point.w))
        for ratio in (0.5, 0.8, 0.97, 1.0, 1.04, 1.3, 2.0):
            lam = lam0 * ratio
            exact = exactly(objective, lam)
            slack = np.sqrt(2 * exact.certificate.gap / lam)  # how far from the optimum this is itself at most
            scale = (1 + lam0 / lam) / 2
            away = np.linalg.norm(exact.w / scale - point.w)
            radius = relative_radius(solved, min(lam, lam0), max(lam, lam0))
            assert away <= radius + slack
            tightest = min(tightest, radius / max(away, 1e-12))
    assert tightest < 12.0


def test_the_radius_of_an_exact_optimum():
    for low, high in ((0.5, 1.0), (1.0, 1.2), (0.9, 3.0)):
        wanted = 7.0 * max((1.0 - low) / (1.0 + low), (high - 1.0) / (high + 1.0))
        assert relative_radius(Solved(1.0, 0.0, 7.0), low, high) == pytest.approx(wanted, rel=1e-6)
    assert relative_radius(Solved(0.5, 0.01, 3.0), 0.5, 0.5) == pytest.approx(np.sqrt(2 * 0.01 / 0.5), rel=1e-6)
    with pytest.raises(ValueError, match="must hold 1"):
        relative_radius(Solved(1.0, 0.0, 1.0), 1.1, 1.2)


SETTINGS = [
    {}, {"observed_only": True}, {"boundaries": False}, {"strengths": {"attributes": 3.0, "transitions": 0.2}},
    {"constraints": "observed"}, {"dense": True},
]  # fmt: skip


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_excluded_labels_are_never_predicted(settings):
    """Weights drawn at random from the sphere around a model's, which are made models of their own."""
    X, y = sentences(1)
    if settings.get("dense"):
        noise, settings = np.random.default_rng(4), {}
        X = [np.array([[k == "ABC".index(label) for k in range(3)] for label in labels]) * 1.0 for labels in y]
        X = [x + noise.normal(scale=0.4, size=x.shape) for x in X]
    own, random = tagger(lam=0.05, rtol=0.01, **settings), np.random.default_rng(0)
    prepared = own._prepared(X, y)
    (point,) = walk(prepared.problem, [0.05], rtol=0.01)
    model, moved, proven = own._trained(prepared, point.result, 0.05), 0, 0
    inputs = model.reader_.read(X)
    for radius in (0.01, 0.05, 0.2):
        possible, best = possible_labels(model, inputs, radius)
        final = np.concatenate(model.certify(X, radius).positions)
        assert (final == (possible.sum(axis=1) == 1)).all()
        proven += int(final.sum())
        for _ in range(20):
            step = prepared.problem.features.adjoint(
                [random.normal(size=shape) for shape in prepared.problem.structure.shapes]
            )
            other = point.w + radius * step / np.linalg.norm(step)
            found = np.concatenate(own._trained(prepared, replace(point.result, w=other), 0.05).predict(X))
            numbers = np.searchsorted(model.classes_, found)
            assert possible[np.arange(len(best)), numbers].all()
            assert (numbers[final] == best[final]).all()
            moved += int((numbers != best).sum())
    assert moved > 0 and proven > 0


@pytest.mark.parametrize(("objective", "seed"), [("margin", 0), ("margin", 1), ("crf", 2), ("crf", 3)])
def test_the_interval_holds_the_errors_of_a_dense_grid(objective, seed):
    X, y = sentences(seed, count=40)
    train, test = (X[:24], y[:24]), (X[24:], y[24:])
    own = tagger(objective)
    found = m3n.tune(own, *train, lams=[0.3, 0.2, 0.15, 0.1], validation=test, guarantee=4.0, budget=0.4, refit=False)
    proven, narrow = found.guarantee, 0
    assert (proven.low, proven.high) == (0.1, 0.3)
    prepared = own._prepared(*train)
    for point in walk(prepared.problem, np.geomspace(0.3, 0.1, 30), tol=1e-9):
        score = own._trained(prepared, point.result, point.lam).score(*test)
        pieces = [piece for piece in proven.pieces if piece.low <= point.lam <= piece.high]
        assert pieces
        for piece in pieces:
            assert piece.lower - 1e-12 <= score <= piece.upper + 1e-12
            narrow += piece.upper - piece.lower < 0.5
        assert 100 * (score - found.best_score) <= proven.points + 1e-9
    assert narrow > 0  # it says something


def test_a_wish_is_fulfilled_where_that_is_possible():
    X, y = sentences(2, count=30)
    settings = {"lams": [0.22, 0.2], "validation": (X, y), "refit": False}
    loose = m3n.tune(tagger("crf"), X, y, **settings).guarantee
    tight = m3n.tune(tagger("crf"), X, y, guarantee=1.0, budget=60.0, **settings).guarantee
    assert loose.points > 1.0 >= tight.points
    assert tight.within(1.0, 0.21) == (0.2, 0.22)
    assert "were asked for" not in str(tight)


def test_pieces_are_means_over_folds():
    cells = [
        Cell(0, 1.0, 2.0, 0.5, 0.7),
        Cell(0, 2.0, 4.0, 0.6, 0.8),
        Cell(1, 1.0, 4.0, 0.1, 0.9),
        Cell(1, 3.0, 4.0, 0.3, 0.5),
    ]
    assert joined(cells, 2, 1.0, 4.0) == (
        Piece(1.0, 2.0, 0.3, pytest.approx(0.8)), Piece(2.0, 3.0, 0.35, pytest.approx(0.85)),
        Piece(3.0, 4.0, pytest.approx(0.45), pytest.approx(0.65)),
    )  # fmt: skip
    assert joined([], 1, 1.0, 2.0) == (Piece(1.0, 2.0, 0.0, 1.0),)
    proven = Guarantee(joined(cells, 2, 1.0, 4.0), 0.79, 5.0)
    assert proven.points == pytest.approx(6.0)
    assert proven.within(1.5, 1.5) == (1.0, 2.0) and proven.within(0.5, 1.5) is None
    assert "by more than 6.00 points (5 were asked for)" in str(proven)
    assert cells_of([4.0, 1.0]) == {1.0: (1.0, 2.0), 4.0: (2.0, 4.0)}


def test_no_bounds_where_the_optimum_does_not_scale_with_lam():
    X, y = sentences(0, count=12)
    found = m3n.tune(tagger("crf", prior=tagger("crf").fit(X, y)), X, y, lams=[0.2, 0.1], cv=2, refit=False)
    assert found.guarantee is None and "with a prior the optimum does not scale with lam" in found.obstacle
