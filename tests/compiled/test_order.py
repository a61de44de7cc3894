import numpy as np
import pytest

from m3n.compiled.primitives.order import ascend


@pytest.mark.parametrize("count", [0, 1, 2, 9, 40, 41, 200, 3000])
def test_a_stretch_is_sorted_and_nothing_else(count, random):
    numbers = random.integers(-20, 20, size=count + 7)
    expected = numbers.copy()
    expected[3 : 3 + count].sort()
    ascend(numbers, 3, 3 + count)
    np.testing.assert_array_equal(numbers, expected)
