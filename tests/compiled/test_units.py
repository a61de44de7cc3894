from fractions import Fraction
from math import gcd

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.compiled.primitives.units import steps_of, unit_of


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), st.sampled_from([1.0, 1 / 7, 0.1, 1e-9, 3e8]))
def test_the_greatest_common_divisor_of_rounded_multiples(numbers, scale):
    expected = gcd(*numbers) * scale if any(numbers) else 1.0
    losses = np.array([number * scale for number in numbers])
    unit = unit_of(losses)
    assert unit == pytest.approx(expected, rel=1e-12)
    assert [steps_of(loss, unit) for loss in losses] == [round(Fraction(loss) / Fraction(unit)) for loss in losses]


def test_sums_of_decimal_fractions_keep_their_unit():
    assert unit_of(np.array([0.1 + 0.2, 0.7, 1.1])) == pytest.approx(0.1)


@pytest.mark.parametrize("losses", [[1.0, np.sqrt(2.0)], [1.0, 0.3333333], [np.pi, np.e, 1.0]])
def test_numbers_without_a_unit(losses):
    assert unit_of(np.array(losses)) == 0.0
