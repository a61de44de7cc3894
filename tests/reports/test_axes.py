import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from m3n.reports.curves import LogAxis

positive = st.floats(1e-12, 1e12)


@given(positive, positive)
def test_ticks_are_few_round_and_within_the_range(one, other):
    low, high = sorted((one, other))
    axis = LogAxis(low, high, 0, 100)
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 8
    assert ticks == sorted(set(ticks))
    for tick in ticks:
        assert 0.998 * axis.low <= tick <= 1.002 * axis.high
        assert float(f"{tick:.3g}") == pytest.approx(tick, rel=1e-9)  # what is written there is the tick


@given(positive, positive, st.floats(0, 1))
def test_places_are_linear_in_the_logarithm(one, other, share):
    low, high = sorted((one, other))
    assume(high > 1.1 * low)
    axis = LogAxis(low, high, 60, 460)
    value = math.exp((1 - share) * math.log(low) + share * math.log(high))
    assert axis.at(value) == pytest.approx(60 + 400 * share, abs=0.06)


def test_places_outside():
    axis = LogAxis(1, 100, 0, 10)
    assert (axis.at(0.1), axis.at(1000)) == (0, 10)
    assert [axis.at(value) for value in (0.0, -1.0, math.inf, math.nan)] == [None] * 4
    assert LogAxis(1, 100, 10, 0).at(1) == 10  # upside down, as pictures are


def test_one_value_gets_a_range():
    axis = LogAxis(3, 3, 0, 10)
    assert axis.at(3) == 5
    with pytest.raises(ValueError, match="positive finite numbers, got 0 to 3"):
        LogAxis(0, 3, 0, 10)
