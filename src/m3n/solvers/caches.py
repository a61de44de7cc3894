"""Caches of outputs as differences to gold: how they begin, and how they get more room.

Kernels change them in place, so a step works on a copy.
"""

from __future__ import annotations

import numpy as np

from m3n.compiled.sweeps.caches import Caches
from m3n.packed.ragged import numbers
from m3n.problem.blocks import Blocks

FIRST_ROOM = 4
FIRST_POOL = 16  # parts per example


def gold_caches(blocks: Blocks) -> Caches:
    """All weight on gold, the empty difference, and room for more outputs."""
    n, slots = blocks.n, blocks.n * FIRST_ROOM
    alpha = np.zeros(slots)
    alpha[::FIRST_ROOM] = 1.0
    return Caches(
        first=np.arange(0, slots + 1, FIRST_ROOM),
        used=np.ones(n, np.int64),
        alpha=alpha,
        losses=np.zeros(slots),
        seen=np.zeros(slots, np.int32),
        starts=np.zeros(slots, np.int64),
        lengths=np.zeros(slots, np.int32),
        squares=np.arange(n + 1) * FIRST_ROOM**2,
        gram=np.zeros(n * FIRST_ROOM**2),
        parts=np.zeros(n * FIRST_POOL, np.int32),
        uses=np.zeros(n * FIRST_POOL, np.int32),
        size=np.zeros(1, np.int64),
    )


def copied(caches: Caches) -> Caches:
    """A copy that kernels may change."""
    return Caches(*(array.copy() for array in caches))


def roomier(caches: Caches, needed: int) -> Caches:
    """The same with a pool of at least ``needed`` free places, and twice the slots wherever all of them are in use."""
    room = np.diff(caches.first)
    wider = np.where(caches.used == room, 2 * room, room)
    first, squares = _starts(wider), _starts(wider**2)
    old_slots = numbers(caches.first[:-1], caches.used)
    new_slots = numbers(first[:-1], caches.used)
    alpha, losses, seen, starts, lengths = (
        _moved(array, old_slots, new_slots, first[-1])
        for array in (caches.alpha, caches.losses, caches.seen, caches.starts, caches.lengths)
    )
    own = np.arange(len(old_slots)) - np.repeat(_starts(caches.used)[:-1], caches.used)  # slot within its example
    used, owner = np.repeat(caches.used, caches.used), np.repeat(np.arange(len(room)), caches.used)
    gram = _moved(
        caches.gram,
        numbers(caches.squares[owner] + own * room[owner], used),
        numbers(squares[owner] + own * wider[owner], used),
        squares[-1],
    )
    parts, uses, starts[new_slots] = _packed(caches, old_slots, needed)
    size = np.array([lengths[new_slots].sum(dtype=np.int64)])
    return Caches(first, caches.used, alpha, losses, seen, starts, lengths, squares, gram, parts, uses, size)


def _packed(caches: Caches, slots: np.ndarray, needed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pool without the lists that nobody uses any more, and where every list begins in it now."""
    lengths = caches.lengths[slots]
    places = numbers(caches.starts[slots], lengths)
    capacity = max(2 * (len(places) + needed), len(caches.parts))
    pools = np.zeros((2, capacity), np.int32)
    pools[0, : len(places)], pools[1, : len(places)] = caches.parts[places], caches.uses[places]
    return pools[0], pools[1], _starts(lengths)[:-1]


def _moved(array: np.ndarray, old: np.ndarray, new: np.ndarray, size: int) -> np.ndarray:
    bigger = np.zeros(size, array.dtype)
    bigger[new] = array[old]
    return bigger


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
