"""Where the items of second-order trees are kept: contexts of heads, children by side, and parts of pairs of arcs.

What hangs below a head h may depend on its *context*: the arc into it if grandchildren have scores, else h alone; the
root has one context, 0. ``context[h]`` is the first one of h. Children of h are listed by their side (``2 h`` left,
``2 h + 1`` right) and distance. An open item belongs to a context and an arc: it stands in the row of its context and
side, at the place of the arc in the list, after one entry that is always 0, no child yet.

Reference: Koo, Collins, "Efficient third-order dependency parsers", 2010, whose model 1 has these items.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing, inner
from m3n.compiled.oracles.arcs import arcs_into, count_arcs, count_parts, most_arcs
from m3n.compiled.primitives.arrays import largest


class SecondOrderScratch(NamedTuple):
    """Memory for one sweep: flat tables with room at their ends."""

    scores: np.ndarray  # (arcs,)
    arc_at: np.ndarray  # (n, n) integers: the arc (h, d), or -1
    context: np.ndarray  # (n + 1,) integers: first context of every head
    row_at: np.ndarray  # (2 n,) integers: where the rows of a side begin
    complete: np.ndarray  # (contexts, n) all words from h to e are below h
    opened: np.ndarray  # rows of every side, a row for each context of its head
    met: np.ndarray  # (sibling parts,) two neighbouring children and all words between them
    p_complete: np.ndarray  # probabilities of these
    p_opened: np.ndarray
    p_met: np.ndarray
    column: np.ndarray  # (n,) complete items of the children on one side
    p_column: np.ndarray  # (n,)
    ways: np.ndarray  # (n,)
    heads: np.ndarray  # (n,) integers
    sibling: np.ndarray  # (n,) integers: sibling part of the arc into a word
    grandchild: np.ndarray  # (n,) integers: grandchild part of the arc into a word
    items: np.ndarray  # (4 n, 4) integers: what is left to take apart


@inner
def second_order_scratch(space):
    """Scratch memory for the largest sentence."""
    n, arcs = largest(space.arcs.lengths) + 1, most_arcs(space.arcs)
    contexts, siblings, rows = arcs + 1 if space.grandchildren else n, 0, 0
    for i in range(space.arcs.lengths.shape[0]):
        first, end = space.arcs.first[i], space.arcs.first[i + 1]
        siblings = max(siblings, space.sibling_first[end] - space.sibling_first[first])
        rows = max(rows, count_rows(space, i))
    numbers, pairs = np.empty((3, n), np.int64), np.zeros((2, siblings + 4))
    tables, opened, columns = np.zeros((2, contexts * n + 4)), np.zeros((2, rows + 4)), np.zeros((3, n + 4))
    places = np.empty((n, n), np.int64), np.empty(n + 1, np.int64), np.empty(2 * n, np.int64)
    values = tables[0], opened[0], pairs[0], tables[1], opened[1], pairs[1]
    found = numbers[0], numbers[1], numbers[2], np.empty((4 * n, 4), np.int64)
    return SecondOrderScratch(np.empty(arcs), *places, *values, columns[0], columns[1], columns[2], *found)


@borrowing
def contexts_of(space, i, head):
    """Number of contexts of a head."""
    if head == 0 or not space.grandchildren:
        return 1
    low, high = arcs_into(space.arcs, i, head)
    return high - low


@borrowing
def side_of(space, i, side):
    """Where the list of the children on a side begins, and their number."""
    at = 2 * (space.arcs.words[i] + i) + side
    return space.side_first[at], space.side_first[at + 1] - space.side_first[at]


@borrowing
def count_rows(space, i):
    """Entries of all rows of open items."""
    total = 0
    for side in range(2 * (space.arcs.lengths[i] + 1)):
        total += contexts_of(space, i, side // 2) * (side_of(space, i, side)[1] + 1)
    return total


@borrowing
def lay_out(space, i, work):
    """Fill ``context``, ``row_at`` and ``arc_at``, and the entries of rows that are 0."""
    n, first, rows, contexts = space.arcs.lengths[i] + 1, space.arcs.first[i], 0, 0
    for head in range(n):
        work.context[head] = contexts
        contexts += contexts_of(space, i, head)
        for side in (2 * head, 2 * head + 1):
            width = side_of(space, i, side)[1] + 1
            work.row_at[side] = rows
            for _ in range(contexts_of(space, i, head)):
                work.opened[rows] = 0.0
                rows += width
        for word in range(n):
            work.arc_at[head, word] = -1
    work.context[n] = contexts
    for arc in range(count_arcs(space.arcs, i)):
        work.arc_at[space.arcs.head[first + arc], space.dependent[first + arc]] = arc


@borrowing
def child(space, i, side, place):
    """The arc to the child at a place in the list of a side, numbered within the sentence."""
    return space.by_head[side_of(space, i, side)[0] + place] - space.arcs.first[i]


@borrowing
def below(space, i, arc):
    """The context of the dependent of an arc."""
    return arc + 1 if space.grandchildren else np.int64(space.dependent[space.arcs.first[i] + arc])


@borrowing
def row_of(space, i, context, head, side, work):
    """Where the row of a context and a side begins."""
    return work.row_at[side] + (context - work.context[head]) * (side_of(space, i, side)[1] + 1)


@borrowing
def sibling_part(space, i, arc):
    """The first sibling part of an arc, numbered within the sentence."""
    first = space.arcs.first[i]
    return space.sibling_first[first + arc] - space.sibling_first[first]


@borrowing
def grandchild_part(space, i, arc, place):
    """The grandchild part of an arc (h, d) and the arc at a place among those into h; -1 if that comes from d."""
    first = space.arcs.first[i]
    reverse = space.reverse[first + arc]
    if place == reverse:
        return np.int64(-1)
    skipped = 1 if 0 <= reverse < place else 0
    return space.grandchild_first[first + arc] - space.grandchild_first[first] + place - skipped


@borrowing
def siblings_at(space, i):
    """Where sibling parts begin in theta."""
    return count_parts(space.arcs, i)


@borrowing
def grandchildren_at(space, i):
    """Where grandchild parts begin in theta."""
    first, end = space.arcs.first[i], space.arcs.first[i + 1]
    before = space.sibling_first[end] - space.sibling_first[first] if space.siblings else 0
    return count_parts(space.arcs, i) + before
