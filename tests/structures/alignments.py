"""Tiny sentence pairs, and problems of alignment."""

import numpy as np
from hypothesis import strategies as st

from m3n import Problem
from m3n.features import Dense, Stack, Table
from m3n.losses import PartLoss

SIZES = [(2, 3), (1, 1), (3, 2), (2, 2), (1, 4), (3, 3)]


@st.composite
def alignments(draw, make, most=3):
    """Structures of one to three pairs; ``make(draw, sizes, allowed)`` makes them."""
    side = st.integers(1, most)
    sizes = draw(st.lists(st.tuples(side, side), min_size=1, max_size=3))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    allowed = [random.random(size) < 0.7 for size in sizes] if draw(st.booleans()) else None
    return make(draw, sizes, allowed)


def alignment_problem(structure, seed=0, loss=None, lam=0.1, n_jobs=1, **settings):
    """Random features of links and of words without one, and random right answers: it needs real work."""
    random = np.random.default_rng(seed)
    pairs = zip(structure.shapes, structure.spans(), strict=True)
    maps = [Table(*shape) if span is None else Dense(random.normal(size=(shape[0], 3)), 1) for shape, span in pairs]
    outputs = [list(structure.enumerate(i)) for i in range(structure.n)]
    gold = structure.unpack(np.concatenate([own[random.integers(len(own))] for own in outputs]))
    if loss is None and not settings.get("temperature"):
        loss = PartLoss(arrays=[0], missed=1.0, spurious=0.5)  # null parts may count several times
    return Problem(structure, Stack(*maps), gold, loss=loss, lam=lam, n_jobs=n_jobs, **settings)
