"""Rows of examples of different lengths."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from m3n.packed.ragged import batches


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 15))
def test_batches_are_small_and_leave_nothing_out(sizes, most):
    found = batches(np.array(sizes, int), most)
    assert [i for low, high in found for i in range(low, high)] == list(range(len(sizes)))
    for low, high in found:
        assert sum(sizes[low:high]) <= most or sum(size > 0 for size in sizes[low:high]) == 1
    for (low, high), (_, after) in itertools.pairwise(found):
        assert sum(sizes[low : high + 1]) > most and high < after  # one more does not fit
