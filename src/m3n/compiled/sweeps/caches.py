"""Caches: for every example a few outputs with weights, kept as differences to gold.

Most outputs that matter differ from gold at a few positions only, so a slot lists the parts in which its output y
differs from gold: p where y has a part that gold lacks, ~p the other way round. With

    d = phi(y) - phi(gold),    score = ell(y) + <w, d>,

gold is the empty list of score 0, and a visit touches nothing but the features of differing parts. The Gram matrix of
the d's of an example is kept beside them: moving weight among its outputs needs no features at all.

Example i owns the slots first[i] to first[i + 1], slot first[i] being gold, and a square of ``gram`` of that size. The
lists stand in a common pool in which nothing is ever moved by a sweep: where there is no room left it stops, and the
caller makes room.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.maps.kinds import add_part, clear_part, entries_of, join_support, score_part, spread_part
from m3n.compiled.primitives.arrays import largest, widest
from m3n.compiled.sweeps.visits import add_parts, same, use_of


class Caches(NamedTuple):
    """Cached outputs of all examples."""

    first: np.ndarray  # (n + 1,)
    used: np.ndarray  # (n,) slots in use
    alpha: np.ndarray  # (slots,) weights, summing to one for every example
    losses: np.ndarray  # (slots,)
    seen: np.ndarray  # (slots,) when the slot was last the best or had weight
    starts: np.ndarray  # (slots,) where the list of a slot begins in the pool
    lengths: np.ndarray  # (slots,)
    squares: np.ndarray  # (n + 1,) where the Gram matrix of an example begins
    gram: np.ndarray
    parts: np.ndarray  # the pool: p or ~p
    uses: np.ndarray  # the pool: which use of the example the part belongs to
    size: np.ndarray  # (1,) how much of the pool is taken


class Touched(NamedTuple):
    """The weights that cached outputs touch, in order of appearance: all others are zero."""

    member: np.ndarray  # (dim,) whether a weight is among them
    listed: np.ndarray  # (dim,) their numbers
    size: np.ndarray  # (1,) how many


class Scratch(NamedTuple):
    """Memory of one visit, as long as the longest local theta or the largest cache."""

    theta: np.ndarray  # scores of parts, where known
    delta: np.ndarray  # amounts of parts, zero between two uses
    marked: np.ndarray  # which of them are in use
    touched: np.ndarray  # and their list
    owner: np.ndarray  # the use that a touched part belongs to
    codes: np.ndarray  # an output's list
    scores: np.ndarray  # of the slots
    change: np.ndarray  # of their weights


@compiled
def scratch(rows, caches, longest):
    """Memory for visits, with room for a list of ``longest`` differing parts."""
    size, most = largest(rows.sizes), widest(caches.first)
    integers = np.empty((3, size), np.int64)
    return Scratch(
        np.empty(size), np.zeros(size), np.zeros(size, np.bool_), integers[0], integers[1],
        np.empty(longest, np.int64), np.empty(most), np.zeros(most),
    )  # fmt: skip


@inner
def difference(gold, gold_count, parts, count, memory):
    """The list of an output, written to ``memory.codes``; its length."""
    moved = add_parts(memory.delta, memory.marked, memory.touched, 0, parts, count, 1.0)
    moved = add_parts(memory.delta, memory.marked, memory.touched, moved, gold, gold_count, -1.0)
    length = 0
    for m in range(moved):
        p = memory.touched[m]
        times = int(memory.delta[p])
        for _ in range(abs(times)):
            memory.codes[length] = p if times > 0 else ~p
            length += 1
        memory.delta[p] = 0.0
        memory.marked[p] = False
    return length


@compiled
def score_slots(rows, caches, i, w, memory):
    """Scores of all slots of example i; every part is scored once, however many slots use it. Returns how many."""
    first, count, entries = caches.first[i], 0, entries_of(rows, i)
    for k in range(caches.used[i]):
        total = caches.losses[first + k]
        start = caches.starts[first + k]
        for m in range(start, start + caches.lengths[first + k]):
            code = caches.parts[m]
            p = code if code >= 0 else ~code
            if not memory.marked[p]:
                memory.marked[p] = True
                use = rows.first[i] + caches.uses[m]
                memory.theta[p] = score_part(entries, rows.used[use], p - rows.place[use], w)
                memory.touched[count] = p
                count += 1
            total += memory.theta[p] if code >= 0 else -memory.theta[p]
        memory.scores[k] = total
    for m in range(count):
        memory.marked[memory.touched[m]] = False
    return count


@compiled
def add_up_slots(caches, i, theta, memory):
    """Scores of all slots of example i from the scores plus losses of all of its parts."""
    first = caches.first[i]
    for k in range(caches.used[i]):
        total, start = 0.0, caches.starts[first + k]
        for m in range(start, start + caches.lengths[first + k]):
            code = caches.parts[m]
            total += theta[code] if code >= 0 else -theta[~code]
        memory.scores[k] = total


@compiled
def move(rows, caches, i, scale, w, memory):
    """w += scale * sum_k change_k d_k, and ``change`` is zero again; the change of the loss."""
    first, count, loss, entries = caches.first[i], 0, 0.0, entries_of(rows, i)
    for k in range(caches.used[i]):
        amount = memory.change[k]
        if amount != 0.0:
            memory.change[k] = 0.0
            loss += amount * caches.losses[first + k]
            start = caches.starts[first + k]
            for m in range(start, start + caches.lengths[first + k]):
                code = caches.parts[m]
                p = code if code >= 0 else ~code
                if not memory.marked[p]:
                    memory.marked[p] = True
                    memory.touched[count], memory.owner[count] = p, caches.uses[m]
                    count += 1
                memory.delta[p] += amount if code >= 0 else -amount
    for m in range(count):
        p = memory.touched[m]
        amount = scale * memory.delta[p]
        memory.delta[p], memory.marked[p] = 0.0, False
        if amount != 0.0:
            use = rows.first[i] + memory.owner[m]
            add_part(entries, rows.used[use], p - rows.place[use], amount, w)
    return loss


@inner
def known_slot(caches, i, codes, length):
    """The slot that holds a list, or -1."""
    for slot in range(caches.first[i], caches.first[i] + caches.used[i]):
        if caches.lengths[slot] == length and same(caches.parts[caches.starts[slot] :], codes, length):
            return slot
    return -1


@inner
def room(caches, i, length):
    """A slot for a new list of example i: an empty one, else the one without weight not seen for longest; or -1."""
    if caches.size[0] + length > caches.parts.shape[0]:
        return -1
    used = caches.first[i] + caches.used[i]
    if used < caches.first[i + 1]:
        caches.used[i] += 1
        return used
    oldest = -1
    for slot in range(caches.first[i] + 1, used):  # gold stays
        if caches.alpha[slot] == 0.0 and (oldest < 0 or caches.seen[slot] < caches.seen[oldest]):
            oldest = slot
    return oldest


@inner
def insert(rows, caches, support, i, slot, length, loss, stamp, zeros, memory):
    """Put the list in ``memory.codes`` into a slot and fill its row of the Gram matrix; ``zeros`` (dim,) stays zero."""
    start, entries, norm = caches.size[0], entries_of(rows, i), 0.0
    for m in range(length):
        code = memory.codes[m]
        p = code if code >= 0 else ~code
        use = use_of(rows, i, p)
        j, r = p - rows.place[use], rows.used[use]
        caches.parts[start + m], caches.uses[start + m] = code, use - rows.first[i]
        norm += spread_part(entries, r, j, 1.0 if code >= 0 else -1.0, zeros)
        if support.size[0] < support.member.shape[0]:
            join_support(entries, r, j, support)
    caches.losses[slot], caches.lengths[slot] = 0.0, 0  # scored as the empty list, which costs nothing
    score_slots(rows, caches, i, zeros, memory)  # <d_k, d_new> + ell_k
    first, side = caches.first[i], caches.first[i + 1] - caches.first[i]
    at, own = caches.squares[i], slot - first
    for k in range(caches.used[i]):
        product = memory.scores[k] - caches.losses[first + k] if k != own else norm
        caches.gram[at + k * side + own] = product
        caches.gram[at + own * side + k] = product
    for m in range(start, start + length):
        code = caches.parts[m]
        p = code if code >= 0 else ~code
        use = rows.first[i] + caches.uses[m]
        clear_part(entries, rows.used[use], p - rows.place[use], zeros)
    caches.starts[slot], caches.lengths[slot] = start, length
    caches.losses[slot], caches.alpha[slot], caches.seen[slot] = loss, 0.0, stamp
    caches.size[0] = start + length


@compiled
def join(rows, caches, support, begin):
    """Weights join the support that lists touch which begin at ``begin`` in the pool or later."""
    for i in range(caches.used.shape[0]):
        entries = entries_of(rows, i)
        for slot in range(caches.first[i], caches.first[i] + caches.used[i]):
            if caches.starts[slot] >= begin:
                for m in range(caches.starts[slot], caches.starts[slot] + caches.lengths[slot]):
                    code = caches.parts[m]
                    p = code if code >= 0 else ~code
                    use = rows.first[i] + caches.uses[m]
                    join_support(entries, rows.used[use], p - rows.place[use], support)
