"""Tiny sentence pairs for tests of alignments."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def alignments(draw, make, most=3):
    """Structures of one to three pairs; ``make(draw, sizes, allowed)`` makes them."""
    side = st.integers(1, most)
    sizes = draw(st.lists(st.tuples(side, side), min_size=1, max_size=3))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    allowed = [random.random(size) < 0.7 for size in sizes] if draw(st.booleans()) else None
    return make(draw, sizes, allowed)
