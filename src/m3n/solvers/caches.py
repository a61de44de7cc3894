"""Caches of outputs as differences to gold: how they begin, and how they get more room.

Sweeps change them in place, so a step works on a copy.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from m3n.compiled.sweeps.caches import Caches
from m3n.packed.ragged import numbers
from m3n.problem import Problem
from m3n.problem.blocks import Blocks
from m3n.solvers.forms import require, require_like, require_slots, require_starts, require_within

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
    return Caches(
        first=first, used=caches.used, alpha=alpha, losses=losses, seen=seen, starts=starts, lengths=lengths,
        squares=squares, gram=gram, parts=parts, uses=uses, size=size,
    )  # fmt: skip


def _check(problem: Problem, caches: Caches, where: str) -> None:
    """Refuse caches, read from a file, that would lead compiled visits astray: what they hold serves as indices."""
    blocks = problem.blocks
    require_like(caches, gold_caches(blocks), where)
    slots = require_slots(caches, blocks.n, where)
    require_starts(caches.squares, blocks.n, len(caches.gram), f"{where}.squares")
    require((np.diff(caches.squares) == np.diff(caches.first) ** 2).all(), f"{where}.squares are no squares")
    require(caches.size.shape == (1,) and len(caches.uses) == len(caches.parts), f"{where} has no pool")
    require_within(caches.size, 0, len(caches.parts) + 1, f"{where}.size")
    same = len(caches.starts) == len(caches.lengths) == len(caches.alpha)
    require(same, f"{where} has arrays of different lengths")
    starts, lengths = caches.starts[slots], caches.lengths[slots]
    require_within(starts, 0, caches.size + 1, f"{where}.starts")
    require_within(lengths, 0, caches.size + 1 - starts, f"{where}.lengths")
    owner = np.repeat(np.searchsorted(caches.first, slots, side="right") - 1, lengths)
    places = numbers(starts, lengths)
    _check_lists(blocks, owner, caches.parts[places], caches.uses[places], where)


def _check_lists(blocks: Blocks, owner: np.ndarray, codes: np.ndarray, uses: np.ndarray, where: str) -> None:
    """The lists of differing parts, of which each belongs to a use of a row by the example."""
    rows, parts = blocks.rows, np.where(codes >= 0, codes, ~codes)
    require_within(uses, 0, np.diff(rows.first)[owner], f"{where}.uses")
    places = rows.first[owner] + uses
    require_within(parts - rows.place[places], 0, rows.widths[rows.used[places]], f"{where}.parts")


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


CachedOutputs = Annotated[Caches, _check]
