"""What a lane does for the sequential dual method: it holds the cached outputs of its examples, and visits them.

Functions of modules, for an engine to call: each takes the lane, what it holds and what it is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from m3n.compiled.sweeps.caches import Caches, Touched
from m3n.compiled.sweeps.sequential import curvature_per_loss, learn, online, sweep, totals
from m3n.packed.ragged import numbers
from m3n.problem.lanes import Lane
from m3n.problem.sections import Section, sections, shared_out
from m3n.solvers.base import with_room
from m3n.solvers.combination import Change, moved
from m3n.solvers.forms import require
from m3n.solvers.sequential_state import Prices, priced
from m3n.solvers.workers import alone
from m3n.solvers.working_sets import check_caches, gold_caches, roomier

NOBODY = Touched(member=np.zeros(0, np.bool_), listed=np.zeros(0, np.int64), size=np.zeros(1, np.int64))


class Way(NamedTuple):
    """What lanes are told of a round besides the weights."""

    scale: float  # what a visit multiplies differences by
    sigma: float
    stamp: int
    seeds: tuple[int, ...]
    number: int  # of the round
    rounds: int  # that these visits are cut into
    least: float = -1.0  # spreads of examples that are not visited, or less


class Outputs:
    """The cached outputs of a lane, section by section, and what they were before the last round."""

    def __init__(self, caches: list[Caches], gaps: list[np.ndarray]):
        self.caches, self.gaps = caches, gaps
        self.old: list[Caches] = []

    def arrays(self) -> Mapping[str, np.ndarray]:
        """All that is to be saved."""
        named = {f"{k}.{name}": array for k, own in enumerate(self.caches) for name, array in own._asdict().items()}
        return named | {f"{k}.gaps": gaps for k, gaps in enumerate(self.gaps)}

    def remember(self) -> None:
        """Weights as they are now, for ``mix``; visits change nothing else that it needs."""
        self.old = [own._replace(alpha=own.alpha.copy(), used=own.used.copy()) for own in self.caches]


def begin_at_gold(lane: Lane) -> tuple[Outputs, Prices]:
    """All weight on gold."""
    own = sections(lane)
    outputs = Outputs([gold_caches(part.blocks) for part in own], [np.zeros(part.n) for part in own])
    prices = Prices(0.0, 0.0, 0.0, 0)
    for part in own:
        prices = prices + priced(part.blocks)
    return outputs, prices


def visit_online(lane: Lane, outputs: Outputs, w: np.ndarray, way: Way) -> Change:
    """Visits with the oracle at the newest weights."""
    outputs.remember()
    own, (local, zeros), loss = sections(lane), _vectors(lane, w), 0.0
    orders = list(_orders(lane, way))
    for k, (part, order) in enumerate(zip(own, orders, strict=True)):
        outputs.caches[k], risen = _online(part, outputs.caches[k], outputs.gaps[k], order, (local, zeros), way)
        loss += risen
    seen = sum(float(gaps[order].sum()) for gaps, order in zip(outputs.gaps, orders, strict=True))
    counts = seen, sum(map(len, orders)), *_curvature(outputs), _spread(outputs)
    return moved(local, w, way.sigma, loss, *counts)


def visit_cached(lane: Lane, outputs: Outputs, w: np.ndarray, way: Way) -> Change:
    """Visits without a call of the oracle."""
    outputs.remember()
    (local, _), loss, parts, visits = _vectors(lane, w), 0.0, 0, 0
    for k, (part, order) in enumerate(zip(sections(lane), _orders(lane, way), strict=True)):
        chosen = order[outputs.gaps[k][order] > way.least]
        given = part.blocks.rows, outputs.caches[k], chosen, way.stamp, way.scale * way.sigma
        sums = sweep(*given, local, outputs.gaps[k], alone(len(chosen)))
        loss, parts, visits = loss + sums.loss, parts + sums.parts, visits + len(chosen)
    return moved(local, w, way.sigma, loss, parts, visits, _spread(outputs))


def mix(lane: Lane, outputs: Outputs, t: float) -> int:
    """Go only the share t of the last round's way."""
    del lane
    for old, new in zip(outputs.old, outputs.caches, strict=True):
        before = np.zeros(len(new.alpha))
        before[numbers(new.first[:-1], old.used)] = old.alpha[numbers(old.first[:-1], old.used)]
        new.alpha[:] = (1.0 - t) * before + t * new.alpha
    return 0


def settle(lane: Lane, outputs: Outputs) -> Change:
    """sum alpha d, times n, and n times the loss, from the caches alone; the mean number of outputs."""
    own, vector, loss = sections(lane), np.zeros(lane.source.dim), 0.0
    for part, caches in zip(own, outputs.caches, strict=True):
        loss += totals(part.blocks.rows, caches, 0, part.n, vector)
    used = sum(int(caches.used.sum()) for caches in outputs.caches)
    return Change(vector, 0.0, loss, np.array([used, *_curvature(outputs)]))


def ask(lane: Lane, outputs: Outputs, w: np.ndarray, stamp: int) -> np.ndarray:
    """Sum of the margins at w; the best outputs join the caches."""
    pieces, (_, zeros), total = iter(lane.outputs(w)), _vectors(lane, w), 0.0
    for k, part in enumerate(sections(lane)):
        margins, found, counts = _answers(pieces, part.n)
        outputs.caches[k] = _learned(part, outputs.caches[k], (found, counts), stamp, zeros)
        total += float(margins.sum())
    return np.array([total])


def dilute(lane: Lane, outputs: Outputs, t: float) -> int:
    """The mixture of alpha with gold, of share t; when outputs were seen is forgotten."""
    del lane
    for caches in outputs.caches:
        caches.alpha[:] *= t
        caches.alpha[caches.first[:-1]] += 1.0 - t
        caches.seen[:] = 0
    return 0


def restored(lane: Lane, arrays: dict[str, np.ndarray]) -> Outputs:
    """What a file has held, checked."""
    caches, gaps = [], []
    for k, part in enumerate(sections(lane)):
        caches.append(Caches(*(arrays.pop(f"{k}.{name}") for name in Caches._fields)))
        gaps.append(arrays.pop(f"{k}.gaps"))
        check_caches(part, caches[k], "it")
        fine = gaps[k].shape == (part.n,) and gaps[k].dtype == np.float64
        require(fine and all(np.isfinite(a).all() for a in (gaps[k], caches[k].losses, caches[k].gram)), "no numbers")
    require(not arrays, f"it has more than that: {sorted(arrays)[:3]}")
    return Outputs(caches, gaps)


def _vectors(lane: Lane, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the lane's own, and zeros; the same arrays every time."""
    local, zeros = sections(lane)[0].blocks.vectors(len(w), 2)
    local[:] = w
    return local, zeros


def _orders(lane: Lane, way: Way) -> Iterator[np.ndarray]:
    """The examples of a round, section by section."""
    order = np.random.default_rng([*way.seeds, lane.number]).permutation(lane.n)
    return shared_out(sections(lane), np.array_split(order, way.rounds)[way.number])


def _online(
    part: Section, caches: Caches, gaps: np.ndarray, order: np.ndarray, vectors: tuple[np.ndarray, np.ndarray], way: Way
) -> tuple[Caches, float]:
    """Online visits of a section; its caches, and by how much n b rises."""
    blocks, (w, zeros), loss = part.blocks, vectors, 0.0
    worker = alone(len(order))

    def visit(held: Caches, at: int) -> int:
        nonlocal loss
        given = blocks.gold, blocks.gold_counts, order, at, way.stamp, way.scale * way.sigma
        end, sums = part.visit(online, held, NOBODY, *given, w, gaps, zeros, worker)
        loss += sums.loss
        return int(end)

    return with_room(caches, len(order), visit, lambda held: roomier(held, 2 * blocks.gold.shape[1])), loss


def _answers(
    pieces: Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]], n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The oracle's answers for the examples of a section."""
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    while sum(len(margins) for margins, _, _ in parts) < n:
        parts.append(next(pieces))
    most = max(found.shape[1] for _, found, _ in parts)
    wide = [np.pad(found, ((0, 0), (0, most - found.shape[1]))) for _, found, _ in parts]
    return np.concatenate([p[0] for p in parts]), np.concatenate(wide), np.concatenate([p[2] for p in parts])


def _learned(
    part: Section, caches: Caches, answers: tuple[np.ndarray, np.ndarray], stamp: int, zeros: np.ndarray
) -> Caches:
    """The caches with the oracle's answers in them."""
    blocks = part.blocks

    def take(held: Caches, at: int) -> int:
        given = held, NOBODY, blocks.gold, blocks.gold_counts, at, part.n, stamp, *answers, zeros
        return int(learn(blocks.rows, blocks.costs, *given))

    return with_room(caches, part.n, take, lambda held: roomier(held, 2 * blocks.gold.shape[1]))


def _curvature(outputs: Outputs) -> tuple[float, int]:
    """The sum of |d|^2/ell over cached outputs with a loss, and how many there are."""
    total, count = 0.0, 0
    for caches in outputs.caches:
        used = numbers(caches.first[:-1] + 1, caches.used - 1)
        own = int(np.count_nonzero(caches.losses[used] > 0.0))
        total, count = total + own * float(curvature_per_loss(caches)), count + own
    return total, count


def _spread(outputs: Outputs) -> float:
    return sum(float(gaps.sum()) for gaps in outputs.gaps)
