"""Sums of runs of weights, and scores of single examples among so many weights that they are asked for in advance."""

import numpy as np
import pytest
import scipy.sparse

from m3n import Problem
from m3n.compiled.primitives.runs import NEAR, add_lists, add_runs, grow_lists, grow_runs, sum_lists, sum_runs
from m3n.compiled.sweeps.visits import gather
from m3n.features import Sparse, chain_features
from m3n.structures import Chain


@pytest.mark.parametrize("width", [1, 3, 4, 5, 8, 22, 24, 25, 27, 28, 50])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_sums_of_runs(width, count, random):
    w, data = random.normal(size=500), random.normal(size=count + 2)
    runs = random.integers(500 - width, size=count + 2).astype(np.int32)
    room = np.full(width + 4, 7.0)
    sum_runs(np.array([0, 1]), np.array([0, 1 + count]), runs, data, 1, 2, w, room, 2, width)
    expected = sum((data[e] * w[runs[e] : runs[e] + width] for e in range(1, 1 + count)), np.zeros(width))
    np.testing.assert_allclose(room[2:-2], expected, atol=1e-12)
    assert (room[[0, 1, -2, -1]] == 7.0).all()  # nothing beyond the parts is written


POINTERS, STOPS = np.array([0, 1]), np.array([1, 8])  # row 1 has entries 1 to 7


@pytest.mark.parametrize("width", [1, 3, 4, 5, 8, 22, 24, 25, 27, 28, 50])
@pytest.mark.parametrize("padding", [False, True])
def test_additions_to_runs(width, padding, random):
    out, data, row = random.normal(size=500), random.normal(size=9), random.normal(size=width)
    runs = random.integers(500 - width, size=9).astype(np.int32)
    columns = random.integers(-1, 2, size=500 if padding else 0).astype(np.int32)
    expected = out.copy()
    for e in range(1, 8):
        expected[runs[e] : runs[e] + width] += -0.5 * data[e] * row
    if padding:
        expected = np.where(columns < 0, out, expected)
    for add in (add_runs, grow_runs):
        found = out.copy()
        growth = add(POINTERS, STOPS, runs, data, 1, 2, np.append([7.0], row), 1, width, -0.5, columns, found)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    assert growth == pytest.approx(expected @ expected - out @ out)


def test_lists(random):
    """Three lists, of one, three and two weights, met by four entries."""
    columns, runs = np.array([~4, 0, 2, ~6, 5, ~1], np.int32), np.array([0, 1, 4, 1], np.int32)
    w, data, row = random.normal(size=6), random.normal(size=4), random.normal(size=7)
    matrix = np.zeros((7, 6))  # from weights to parts
    for e, own in enumerate([[0], [1, 2, 3], [4, 5], [1, 2, 3]]):
        for k in own:
            matrix[max(columns[k], ~columns[k]), k] += data[e]
    scores = row.copy()
    sum_lists(np.array([0, 4]), np.zeros(1, np.int64), runs, data, 0, 1, columns, w, scores, 0, 7)
    np.testing.assert_allclose(scores, row + matrix @ w, atol=1e-12)
    for add in (add_lists, grow_lists):
        found = w.copy()
        entries = np.array([0, 4]), np.zeros(1, np.int64), runs, data
        growth = add(*entries, 0, 1, np.append([7.0], row), 1, 7, 2.0, columns, found)
        np.testing.assert_allclose(found, w + 2.0 * matrix.T @ row, atol=1e-12)
    assert growth == pytest.approx(found @ found - w @ w)


@pytest.mark.parametrize("labels", [3, 12])
def test_many_weights(labels, random):
    lengths = np.array([2, 1, 30])
    X = scipy.sparse.csr_array(scipy.sparse.random_array((33, 8000), density=0.01, rng=random))
    features = chain_features(Sparse(X, labels), labels)
    y = [[0] * length for length in lengths]
    problem = Problem(Chain(lengths, labels), features, y, n_jobs=1)
    assert problem.dim > NEAR
    w, rows = random.normal(size=problem.dim), problem.blocks.rows
    theta = features.scores(w, problem.structure.empty())
    for i, first in enumerate(np.cumsum(lengths) - lengths):
        local = np.empty(rows.sizes[i])
        gather(rows, i, w, local)
        expected = [theta[0][first : first + lengths[i]], *theta[1:4]]
        np.testing.assert_allclose(local, np.concatenate([part.ravel() for part in expected]), atol=1e-12)
