"""The M-step of jumps: no update lowers the expected log-likelihood, and many find its maximum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from m3n.alignment import jumps as module
from m3n.alignment.jumps import even_jumps, fitted_jumps


def expected_jumps(random, reach, longest=6):
    """Jumps that come from places: counts by bucket, and departures."""
    counts, departures = np.zeros(2 * reach + 1), np.zeros((longest + 1, longest + 1))
    for size in range(1, longest + 1):
        for place in range(size + 1):
            for i in range(size):
                amount = random.uniform() * 3.0 ** -abs(i - place)
                counts[np.clip(i - place + 1, -reach, reach) + reach] += amount
                departures[size, place] += amount
    return counts, departures


def objective(logs, counts, departures):
    """Q(c) as the module states it."""
    reach, value = len(logs) // 2, counts @ logs
    for size, place in np.argwhere(departures):
        buckets = np.clip(np.arange(size) - place + 1, -reach, reach) + reach
        value -= departures[size, place] * np.log(np.exp(logs[buckets]).sum())
    return value


@given(st.integers(0, 1000), st.integers(1, 8))
def test_no_update_lowers_the_objective(seed, reach):
    random = np.random.default_rng(seed)
    counts, departures = expected_jumps(random, reach)
    before = random.uniform(0.1, 1.0, size=2 * reach + 1)
    after = fitted_jumps(counts, departures, before)
    high, low = (objective(np.log(each), counts, departures) for each in (after, before))
    assert high >= low - 1e-9 * abs(low)


def test_many_updates_find_the_maximum(random, monkeypatch):
    monkeypatch.setattr(module, "UPDATES", 3000)
    counts, departures = expected_jumps(random, 3)
    found = fitted_jumps(counts, departures, even_jumps(3))
    best = minimize(lambda logs: -objective(logs, counts, departures), np.zeros(7), tol=1e-12)
    assert objective(np.log(found), counts, departures) == pytest.approx(-best.fun, rel=1e-9)


def test_jumps_that_never_happen_stay_possible(random):
    counts, departures = expected_jumps(random, 8, longest=4)
    found = fitted_jumps(counts, departures, even_jumps(8))
    assert counts[0] == 0.0
    assert found.max() == 1.0
    assert found.min() > 0.0
