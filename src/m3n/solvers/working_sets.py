"""Working sets: for every example a few outputs with weights, a sparse dual point.

They start with gold alone, D = 0. Sweeps change them in place, so a step works on a copy.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from m3n.compiled.sweeps.working_sets import Sets, totals_of
from m3n.problem import Problem
from m3n.problem.blocks import Blocks
from m3n.solvers.base import copied
from m3n.solvers.forms import require, require_like, require_slots, require_within

FIRST_ROOM = 4


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
    first = np.concatenate([[0], np.cumsum(np.where(sets.used == room, 2 * room, room))])
    moved = np.arange(sets.first[-1]) + np.repeat(first[:-1] - sets.first[:-1], room)
    slots = [np.zeros((first[-1], *array.shape[1:]), array.dtype) for array in sets[2:]]
    for new, old in zip(slots, sets[2:], strict=True):
        new[moved] = old
    parts, counts, alpha, losses, seen = slots
    return Sets(first, sets.used, parts, counts, alpha, losses, seen)


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


def _check(problem: Problem, sets: Sets, where: str) -> None:
    """Refuse working sets, read from a file, that would lead compiled visits astray: their parts serve as indices."""
    blocks = problem.blocks
    require_like(sets, gold_sets(blocks), where)
    slots, most = require_slots(sets, blocks.n, where), blocks.gold.shape[1]
    require(sets.parts.shape == (len(sets.alpha), most), f"{where}.parts has the shape {sets.parts.shape}")
    require(len(sets.counts) == len(sets.alpha), f"{where} has arrays of different lengths")
    require_within(sets.counts[slots], 0, most + 1, f"{where}.counts")
    owner = np.searchsorted(sets.first, slots, side="right") - 1
    listed = np.where(np.arange(most) < sets.counts[slots, None], sets.parts[slots], 0)
    require_within(listed, 0, blocks.rows.sizes[owner, None], f"{where}.parts")


WorkingSets = Annotated[Sets, _check]
