"""In which order to eliminate the variables of a graph, and the list of buckets that compiled code follows.

Eliminating a variable joins its neighbours: they become a clique of what is left. The largest bucket, a variable and
its neighbours at its turn, decides the cost, labels^size; to find the best order is NP-hard. Variables with at most one
neighbour go first, which is optimal and all that a forest needs. Among the rest the one goes next that adds the fewest
edges (*min-fill*), at ties the one with the fewest neighbours, then the lowest number.

Reference for min-fill: Kjærulff, "Triangulation of graphs", 1990; a comparison: Koller and Friedman, "Probabilistic
Graphical Models", 2009, section 9.4.3.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from m3n.compiled.oracles.elimination import LINKS, MEMBERS, PAIRS, VARIABLE, Programme
from m3n.compiled.oracles.elimination_pairs import Forests
from m3n.compiled.oracles.elimination_tables import ARRAY, LEAD, MESSAGES
from m3n.compiled.primitives.vector import LANES


class Shape(NamedTuple):
    """A graph: its number of variables, for every array of factors their variables (count, k), and who goes last."""

    nodes: int
    scopes: tuple[np.ndarray, ...]
    last: int = -1


class TooWide(Exception):
    """An order was given up at a bucket of this many variables."""

    def __init__(self, size: int):
        super().__init__(size)
        self.size = size


Bucket = tuple[int, list[int]]  # a variable and its neighbours at its turn, the next to be eliminated first


def eliminate(shape: Shape, widest: int) -> list[Bucket]:
    """The buckets of a graph in order; ``TooWide`` if one needs more than ``widest`` variables."""
    near: list[set[int]] = [set() for _ in range(shape.nodes)]
    for scopes in shape.scopes:
        for scope in scopes.tolist():
            for v in scope:
                near[v].update(scope)
    for v, others in enumerate(near):
        others.discard(v)
    found = _peel(near, shape.last)
    found += _min_fill(near, shape.last, {v for v, _ in found}, widest)
    return _arrange(found)


def _arrange(found: list[tuple[int, set[int]]]) -> list[Bucket]:
    """The neighbours of every variable in an order that lets messages be added in long runs.

    A message goes to the first of the neighbours to be eliminated, which is its outermost digit. In the table that gets
    it the others have the same order, and are the innermost digits: so each table follows its largest message.
    """
    turn = {v: k for k, (v, _) in enumerate(found)}
    largest: dict[int, list[int]] = {v: [] for v in turn}
    buckets = []
    for v, others in found:
        order = sorted(others, key=turn.__getitem__)
        known = [u for u in largest[v] if u != v and u != order[0]]
        order = [*order[:1], *(u for u in order[1:] if u not in known), *known]
        buckets.append((v, order))
        if order and len(order) > len(largest[order[0]]):
            largest[order[0]] = order
    return buckets


def _peel(near: list[set[int]], last: int) -> list[tuple[int, set[int]]]:
    """Variables with at most one neighbour, as long as there are any; ``last`` waits until it is alone."""
    found = []
    heap = [v for v, others in enumerate(near) if len(others) <= 1 - (v == last)]
    while heap:
        v = heapq.heappop(heap)
        found.append((v, near[v]))
        for u in near[v]:
            near[u].discard(v)
            if len(near[u]) == 1 - (u == last):
                heapq.heappush(heap, u)
    return found


def _min_fill(near: list[set[int]], last: int, gone: set[int], widest: int) -> list[tuple[int, set[int]]]:
    """The variables that are left; ``near`` becomes the graph of what is left at the turn of each."""
    left = [v for v in range(len(near)) if v not in gone]
    keys = {v: _key(near, v, last) for v in left}
    heap = [(key, v) for v, key in keys.items()]
    heapq.heapify(heap)
    found = []
    while heap:
        key, v = heapq.heappop(heap)
        if keys.get(v) != key:
            continue  # it changed since
        del keys[v]
        others = near[v]
        found.append((v, others))
        if len(others) >= widest:
            raise TooWide(len(others) + 1)
        for u in others:
            near[u] |= others
            near[u] -= {u, v}
        for u in set().union(others, *(near[u] for u in others)) if key[1] else others:
            keys[u] = _key(near, u, last)
            heapq.heappush(heap, (keys[u], u))
    return found


def _key(near: list[set[int]], v: int, last: int) -> tuple[bool, int, int]:
    """Last of all; missing edges between neighbours, twice; neighbours."""
    others = near[v]
    missing = sum(len(others) - 1 - len(others & near[u]) for u in others)
    return v == last, missing, len(others)


def table_entries(order: list[Bucket], labels: int, padding: bool = False) -> int:
    """Table entries of all buckets."""
    columns = [labels ** len(others) for _, others in order]
    return labels * sum(map(_padded, columns) if padding else columns)


def _padded(columns: int) -> int:
    return -(-columns // LANES) * LANES


class Layout(NamedTuple):
    """What all shapes have in common."""

    labels: int
    orders: tuple[int, ...]  # variables of a row of every array, 1 for the nodes
    shared: tuple[bool, ...]


def programme(shapes: Sequence[Shape], orders: Sequence[list[Bucket]], layout: Layout) -> Programme:
    """Buckets and links of all shapes as plain arrays."""
    writer = _Writer(layout)
    for shape, order in zip(shapes, orders, strict=True):
        writer.add(shape, order)
    return writer.finish()


class _Writer:
    """Collects the rows of the arrays of a programme."""

    def __init__(self, layout: Layout):
        self.layout = layout
        self.starts, self.factor_starts = [0], [0]
        self.buckets: list[tuple[int, ...]] = []
        self.members: list[int] = []
        self.links: list[tuple[int, ...]] = []
        self.dims: list[tuple[int, int]] = []
        self.factors: list[tuple[int, int]] = []
        self.scopes: list[int] = []

    def add(self, shape: Shape, order: list[Bucket]) -> None:
        """One more shape."""
        s, turn = self.layout.labels, {v: k for k, (v, _) in enumerate(order)}
        sources: list[list[tuple[int, int, list[int]]]] = [[(0, v * s, [v])] for v, _ in order]
        for array, scopes in enumerate(shape.scopes, start=1):
            for row, scope in enumerate(scopes.tolist()):
                offset = 0 if self.layout.shared[array] else row * s ** len(scope)
                sources[min(turn[v] for v in scope)].append((array, offset, scope))
                self.factors.append((array, len(self.scopes)))
                self.scopes += scope
        table = message = 0
        for k, (v, others) in enumerate(order):
            if others:
                sources[turn[others[0]]].append((MESSAGES, message, others))
            place = {u: position for position, u in enumerate(others)}
            sources[k].sort(key=lambda source: _rank(source[2], place))  # stable
            few = [sum(len(scope) <= size for _, _, scope in sources[k]) for size in (1, 2)]
            columns, links = s ** len(others), len(self.links)
            width = _padded(columns)
            self.buckets.append(
                (v, columns, width, table, message, len(self.members), links, links + few[0], links + few[1])
            )
            self.members += others
            for array, offset, scope in sources[k]:
                strides = {u: s**power for power, u in enumerate(reversed(scope))}
                size = _padded(s ** len(scope)) if array == MESSAGES else s ** len(scope)
                member = min((place[u] for u in scope if u != v), default=-1)
                stride = strides[others[member]] if member >= 0 else 0
                self.links.append((array, offset, size, strides[v], member, stride, len(self.dims)))
                self.dims += _dims(others, strides, s)
            table, message = table + width * s, message + width
        self.starts.append(len(self.buckets))
        self.factor_starts.append(len(self.factors))

    def finish(self) -> Programme:
        """The arrays, each with a last row that says where the one before it ends."""
        layout = self.layout
        ends = (0, 0, 0, 0, 0, len(self.members), len(self.links), 0, 0)
        sizes = np.array([layout.labels**order for order in layout.orders])
        shared = np.array(layout.shared)
        own = np.where(shared, sizes, 0)
        return Programme(
            np.array(self.starts),
            np.array([*self.buckets, ends]),
            np.array(self.members, np.int64),
            np.array([*self.links, (0, 0, 0, 0, 0, 0, len(self.dims))]),
            np.array(self.dims),
            np.array([*self.factors, (0, len(self.scopes))]),
            np.array(self.factor_starts),
            np.array(self.scopes, np.int64),
            sizes,
            shared,
            np.cumsum(own) - own,
            layout.labels,
        )


def forests(programme: Programme) -> Forests:
    """Which shapes are forests whose pairs have one factor each, of a shared table, and how they are walked."""
    arrays = np.flatnonzero(programme.shared & (programme.sizes == programme.labels**2))
    number = {int(array): k for k, array in enumerate(arrays)}
    shapes, matrices = len(programme.starts) - 1, 2 * len(arrays)
    plain, groups = np.zeros(shapes, bool), np.zeros((shapes, matrices + 1), np.int64)
    pairs = np.full((len(programme.buckets) - 1, 4), -1)
    for shape, (first, last) in enumerate(itertools.pairwise(programme.starts.tolist())):
        found = [_pair(programme, b, number) for b in range(first, last)]
        plain[shape] = None not in found
        if plain[shape]:
            _fill_pairs(programme, np.array(found), first, pairs[first:last], groups[shape])
    used = np.array((np.diff(groups, axis=1) > 0).any(axis=0))
    return Forests(plain, programme.buckets[:-1, VARIABLE].copy(), pairs, groups, arrays, used)


def _pair(programme: Programme, b: int, number: dict[int, int]) -> tuple[int, int] | None:
    """The only neighbour of a bucket and the matrix between them; (-1, matrices) for a root; None if not a pair."""
    bucket, after = programme.buckets[b], programme.buckets[b + 1]
    members = programme.members[bucket[MEMBERS] : after[MEMBERS]]
    if len(members) == 0:
        return -1, 2 * len(number)
    wide = programme.links[bucket[PAIRS] : after[LINKS]]
    if len(members) > 1 or len(wide) != 1 or int(wide[0, ARRAY]) not in number:
        return None
    return int(members[0]), 2 * number[int(wide[0, ARRAY])] + (wide[0, LEAD] == 1)


def _fill_pairs(programme: Programme, found: np.ndarray, first: int, pairs: np.ndarray, groups: np.ndarray) -> None:
    """Slots by matrix, roots last; ``found`` lists neighbours and matrices of the buckets of one shape."""
    neighbour, matrix = found.T
    slots = np.empty(len(found), np.int64)
    slots[np.argsort(matrix, kind="stable")] = np.arange(len(found))
    turn = np.empty(len(found), np.int64)
    turn[programme.buckets[first : first + len(found), VARIABLE]] = np.arange(len(found))
    pairs[:] = np.stack([np.where(neighbour < 0, -1, slots[turn[neighbour]]), neighbour, matrix, slots], axis=1)
    groups[:] = np.searchsorted(np.sort(matrix), np.arange(len(groups)))


def _rank(scope: list[int], place: dict[int, int]) -> tuple[int, int]:
    """v alone, v and one member (the last one first), more."""
    if len(scope) == 2:
        return 2, -max(place.get(u, -1) for u in scope)
    return min(len(scope), 3), 0


def _dims(members: list[int], strides: dict[int, int], labels: int) -> list[tuple[int, int]]:
    """Extents and strides of the members of a bucket, outermost first; digits that go on as one are one."""
    dims: list[tuple[int, int]] = [(1, 0)] if not members else []
    for v in reversed(members):
        stride = strides.get(v, 0)
        if dims and stride == dims[-1][0] * dims[-1][1]:
            dims[-1] = dims[-1][0] * labels, dims[-1][1]
        else:
            dims.append((labels, stride))
    return dims[::-1]
