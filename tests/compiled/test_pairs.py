"""Maxima, log-sums and shares of pairs, of stretches of any length and place, against NumPy."""

import numpy as np
import pytest

from m3n.compiled.jit import compiled
from m3n.compiled.primitives import pairs


@compiled
def join(a, at, b, bt, count, mu):
    return (
        pairs.join(a, at, b, bt, count, mu),
        pairs.best_pair(a, at, b, bt, count),
        pairs.best_place(a, at, b, bt, count),
    )


@compiled
def share(p, a, at, b, bt, count, mu, ways, pa, pb):
    pairs.share(p, a, at, b, bt, count, mu, ways, pa, pb)


@pytest.mark.parametrize("mu", [1e-3, 1.0])
def test_stretches(mu, random):
    for count in range(1, 14):
        for _ in range(10):
            a, b = random.normal(size=(2, 24))
            a[random.random(24) < 0.3] = -np.inf
            a[20], b[21] = np.nan, np.inf  # what lies beyond a stretch does not count
            at, bt = random.integers(0, 20 - count, size=2)
            sums = a[at : at + count] + b[bt : bt + count]
            value, best, place = join(a, at, b, bt, count, mu)
            assert best == sums.max()
            assert place == sums.argmax()
            assert join(a, at, b, bt, count, 0.0)[0] == best
            if not best > -np.inf:
                assert value == -np.inf
                continue
            assert value == pytest.approx(mu * np.logaddexp.reduce(sums / mu), rel=1e-13, abs=1e-13)
            pa, pb = np.ones((2, 24))
            share(0.3, a, at, b, bt, count, mu, np.empty(20), pa, pb)
            weights = 0.3 * np.exp((sums - value) / mu)
            for p, begin in ((pa, at), (pb, bt)):
                np.testing.assert_allclose(p[begin : begin + count], 1.0 + weights, rtol=1e-11)
                np.testing.assert_array_equal(np.delete(p, np.arange(begin, begin + count)), 1.0)
