"""Memory that is used again."""

import numpy as np

from m3n.packed.memory import Scratch


def test_arrays_stand_side_by_side_and_are_overwritten_by_the_next_ones():
    memory = Scratch()
    table, row = memory.arrays([(2, 3), (4,)])
    table[:], row[:] = 1.0, 2.0
    assert table.shape == (2, 3) and row.shape == (4,)
    assert (table == 1.0).all() and table.flags.c_contiguous
    (flat,) = memory.arrays([(10,)])
    np.testing.assert_array_equal(flat, [1.0] * 6 + [2.0] * 4)
    (larger,) = memory.arrays([(11,)])
    assert not np.shares_memory(larger, flat)
    assert memory.arrays([(0, 3)])[0].shape == (0, 3)
