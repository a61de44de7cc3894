"""Working sets: for every example a few outputs with weights, a sparse dual point; and caches, their other form.

Both start with gold alone, D = 0. Working sets list the parts of every output. Caches list the parts in which outputs
differ from gold, with their Gram matrices, so that a visit costs a few features. Sweeps change either in place, so a
step works on a copy.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from m3n.compiled.sweeps.caches import Caches
from m3n.compiled.sweeps.working_sets import Sets, totals_of
from m3n.packed.ragged import numbers
from m3n.problem import Problem
from m3n.problem.blocks import Blocks
from m3n.problem.sections import Section
from m3n.solvers.base import copied
from m3n.solvers.forms import require, require_like, require_starts, require_within

FIRST_ROOM = 4
FIRST_POOL = 16  # parts per example, of caches
SURE = 1e-6  # how well weights that sum to one do so: kept sums drift by rounding alone


def gold_sets(blocks: Blocks, room: int = FIRST_ROOM) -> Sets:
    """All weight on gold, and room for more outputs."""
    n, most = blocks.gold.shape
    slots = n * room
    sets = Sets(
        first=np.arange(0, slots + 1, room),
        used=np.ones(n, np.int64),
        parts=np.zeros((slots, most), np.int32),
        counts=np.zeros(slots, np.int32),
        alpha=np.zeros(slots),
        losses=np.zeros(slots),
        seen=np.zeros(slots, np.int32),
    )
    sets.parts[::room] = blocks.gold
    sets.counts[::room] = blocks.gold_counts
    sets.alpha[::room] = 1.0
    return sets


def enlarged(sets: Sets) -> Sets:
    """The same with twice the room for every example whose room is used up."""
    room = np.diff(sets.first)
    first = _starts(np.where(sets.used == room, 2 * room, room))
    places = numbers(first[:-1], room)
    return Sets(first, sets.used, *(_moved(array, slice(None), places, first[-1]) for array in sets[2:]))


def nearer_gold(problem: Problem, sets: Sets) -> Sets:
    """The best mixture of alpha with gold for the problem's lam; when outputs were seen is forgotten.

    With the share t of alpha, D is t b - lam/2 t^2 |u|^2. A smaller lam than before calls for a smaller t.
    """
    u, b = dual_point(problem, sets)
    square = problem.lam * problem.inner(u, u)
    t = min(b / square, 1.0) if square > 0.0 else 1.0
    mixture, slots = _with_gold(problem.blocks, sets)
    mixture.alpha[:] *= t
    mixture.alpha[slots] += 1.0 - t
    mixture.seen[:] = 0
    return mixture


def _with_gold(blocks: Blocks, sets: Sets) -> tuple[Sets, np.ndarray]:
    """A copy in which every example has gold in its working set, and the slots of gold."""
    slots = _gold_slots(blocks, sets)
    absent = np.flatnonzero(slots < 0)
    if not len(absent):
        return copied(sets), slots
    sets = copied(enlarged(sets))
    new = sets.first[absent] + sets.used[absent]
    sets.parts[new], sets.counts[new] = blocks.gold[absent], blocks.gold_counts[absent]
    sets.alpha[new] = sets.losses[new] = 0.0
    sets.used[absent] += 1
    return sets, _gold_slots(blocks, sets)


def _gold_slots(blocks: Blocks, sets: Sets) -> np.ndarray:
    """The slot of gold in every example's working set, -1 where it was given up."""
    owner = np.repeat(np.arange(blocks.n), np.diff(sets.first))
    used = np.arange(len(owner)) - sets.first[owner] < sets.used[owner]
    unused = np.arange(sets.parts.shape[1]) >= blocks.gold_counts[:, None]  # beyond the end of gold's list
    alike = ((sets.parts == blocks.gold[owner]) | unused[owner]).all(axis=1)
    found = np.flatnonzero(used & alike & (sets.counts == blocks.gold_counts[owner]))
    slots = np.full(blocks.n, -1)
    slots[owner[found]] = found
    return slots


def dual_point(problem: Problem, sets: Sets) -> tuple[np.ndarray, float]:
    """u = w(alpha) and b = sum ell alpha, computed from the working sets alone."""
    blocks, u = problem.blocks, np.zeros(problem.dim)
    b = totals_of(blocks.rows, blocks.costs, sets, blocks.gold, blocks.gold_counts, problem.lam, u)
    return u, float(b)


def _check_sets(problem: Problem, sets: Sets, where: str) -> None:
    """Refuse working sets, read from a file, that would lead compiled visits astray: their parts serve as indices."""
    blocks = problem.blocks
    require_like(sets, gold_sets(blocks), where)
    slots, most = _check_slots(sets, blocks.n, where), blocks.gold.shape[1]
    require(sets.parts.shape == (len(sets.alpha), most), f"{where}.parts has the shape {sets.parts.shape}")
    require(len(sets.counts) == len(sets.alpha), f"{where} has arrays of different lengths")
    require_within(sets.counts[slots], 0, most + 1, f"{where}.counts")
    owner = np.searchsorted(sets.first, slots, side="right") - 1
    listed = np.where(np.arange(most) < sets.counts[slots, None], sets.parts[slots], 0)
    require_within(listed, 0, blocks.rows.sizes[owner, None], f"{where}.parts")


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


def check_caches(problem: Problem | Section, caches: Caches, where: str) -> None:
    """Refuse caches, read from a file, that would lead compiled visits astray: what they hold serves as indices."""
    blocks = problem.blocks
    require_like(caches, gold_caches(blocks), where)
    slots = _check_slots(caches, blocks.n, where)
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


def _check_slots(held: Sets | Caches, n: int, where: str) -> np.ndarray:
    """Slots of examples that hold weighted outputs (caches, working sets); the numbers of those in use."""
    slots = len(held.alpha)
    require_starts(held.first, n, slots, f"{where}.first")
    require(held.used.shape == (n,), f"{where}.used has the shape {held.used.shape}, not ({n},)")
    require_within(held.used, 1, np.diff(held.first) + 1, f"{where}.used")
    owner = np.repeat(np.arange(n), np.diff(held.first))
    used = np.arange(slots) - held.first[owner] < held.used[owner]
    require(len(held.losses) == slots and len(held.seen) == slots, f"{where} has arrays of different lengths")
    sums = np.bincount(owner[used], held.alpha[used], n)
    weights = (held.alpha[used] >= 0.0).all() and (np.abs(sums - 1.0) <= SURE).all()
    require(weights or not held.alpha.any(), f"{where}.alpha are no weights")  # who only remembers outputs has none
    return np.flatnonzero(used)


def _packed(caches: Caches, slots: np.ndarray, needed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pool without the lists that nobody uses any more, and where every list begins in it now."""
    lengths = caches.lengths[slots]
    places = numbers(caches.starts[slots], lengths)
    capacity = max(2 * (len(places) + needed), len(caches.parts))
    pools = np.zeros((2, capacity), np.int32)
    pools[0, : len(places)], pools[1, : len(places)] = caches.parts[places], caches.uses[places]
    return pools[0], pools[1], _starts(lengths)[:-1]


def _moved(array: np.ndarray, old: np.ndarray | slice, new: np.ndarray, size: int) -> np.ndarray:
    """An array of slots, some of which have new places in a bigger one."""
    bigger = np.zeros((size, *array.shape[1:]), array.dtype)
    bigger[new] = array[old]
    return bigger


def _starts(lengths: np.ndarray) -> np.ndarray:
    """Where runs of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


WorkingSets = Annotated[Sets, _check_sets]
CachedOutputs = Annotated[Caches, check_caches]
