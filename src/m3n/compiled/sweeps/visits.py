"""One example at a time: its scores under w, and its features added to vectors.

An example's scores are one flat vector, its *local* theta: the rows of all part arrays that it uses, one after another,
shared tables last or wherever the structure puts them. An output is the list of its *parts*, positions in that vector;
its score is the sum over the list (a shared part that occurs twice is listed twice).

Feature maps enter as ``MapRows``: row r scores ``widths[r]`` neighbouring parts by

    theta[at + j] = sum_e data[e] w[runs[e] + j],    pointers[r] <= e < pointers[r + 1]

(a shared table is a row with a single entry). Maps with weights for some parts only have ``columns`` as well: padding
in their runs, and lists of weights from entry ``lists[r]`` on, as in ``maps.observed``. Kernel expansions enter
as ``KernelRows``; what depends on the kind of rows is in ``maps.kinds``. Structures enter through ``oracles.hooks``,
losses as ``maps.costs``.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.maps.costs import add_costs, expected_costs
from m3n.compiled.maps.kinds import add_part, clear_part, entries_of, gather, grow_all, spread_part


class MapRows(NamedTuple):
    """A feature map as sparse rows, and which rows every example uses."""

    pointers: np.ndarray  # (rows + 1,) entries of every row
    runs: np.ndarray  # (entries,) first weight that an entry meets; 32 bits if they suffice
    data: np.ndarray  # (entries,), or (1,): one number for all of them
    widths: np.ndarray  # (rows,) parts that a row scores
    first: np.ndarray  # (n + 1,) uses of every example
    used: np.ndarray  # (uses,) row of a use
    place: np.ndarray  # (uses,) where its parts begin in the local theta
    sizes: np.ndarray  # (n,) length of the local theta
    squares: np.ndarray  # (rows,) sum of the squares of a row's entries
    lists: np.ndarray  # (rows,) first entry that meets a list of weights instead of a run
    columns: np.ndarray  # (dim,) part of a weight, negative for padding and at the end of a list; () if all are runs


@compiled
def local_scores(rows, costs, i, w, theta):
    """Scores plus losses of all parts of example i: the part of ``theta`` that it needs, filled."""
    local = theta[: rows.sizes[i]]
    gather(rows, i, w, local)
    add_costs(costs, i, local, 1.0)
    return local


@compiled
def add_parts(delta, marked, touched, size, parts, count, amount):
    """delta += amount at the parts of an output; ``touched`` lists what may be nonzero. Returns its length."""
    for k in range(count):
        p = parts[k]
        if not marked[p]:
            marked[p] = True
            touched[size] = p
            size += 1
        delta[p] += amount
    return size


@inner
def same(a, b, count):
    """Whether two lists of parts agree."""
    for m in range(count):
        if a[m] != b[m]:
            return False
    return True


@compiled
def clear(delta, marked, touched, size):
    """Zero again, for the next example."""
    for k in range(size):
        delta[touched[k]] = 0.0
        marked[touched[k]] = False


@inner
def use_of(rows, i, part):
    """Which use of example i the part belongs to, by bisection."""
    low, high = rows.first[i], rows.first[i + 1]
    while high - low > 1:
        middle = (low + high) // 2
        if rows.place[middle] <= part:
            low = middle
        else:
            high = middle
    return low


@compiled
def scatter(rows, i, delta, touched, size, scale, out):
    """out += scale * F' delta, for a delta that is zero but at the touched parts of example i."""
    entries = entries_of(rows, i)
    for m in range(size):
        p = touched[m]
        amount = scale * delta[p]
        if amount != 0.0:
            k = use_of(rows, i, p)
            add_part(entries, rows.used[k], p - rows.place[k], amount, out)


@compiled
def spread(rows, i, delta, touched, size, dense):
    """F' delta into ``dense`` (dim,), all zero before; returns |F' delta|^2, which grows part by part."""
    entries = entries_of(rows, i)
    total = 0.0
    for m in range(size):
        p = touched[m]
        if delta[p] != 0.0:
            k = use_of(rows, i, p)
            total += spread_part(entries, rows.used[k], p - rows.place[k], delta[p], dense)
    return max(total, 0.0)


@compiled
def settle(rows, i, delta, touched, size, dense, first, w, second, q):
    """w += first * F' delta, q += second * F' delta, and ``dense`` is all zero again."""
    entries = entries_of(rows, i)
    for m in range(size):
        p = touched[m]
        if delta[p] != 0.0:
            k = use_of(rows, i, p)
            j, r = p - rows.place[k], rows.used[k]
            add_part(entries, r, j, first * delta[p], w)
            add_part(entries, r, j, second * delta[p], q)
            clear_part(entries, r, j, dense)


@compiled
def wipe(rows, i, delta, touched, size, dense):
    """``dense`` is all zero again."""
    entries = entries_of(rows, i)
    for m in range(size):
        p = touched[m]
        if delta[p] != 0.0:
            k = use_of(rows, i, p)
            clear_part(entries, rows.used[k], p - rows.place[k], dense)


@compiled
def move_weights(rows, costs, i, delta, rise, scale, w):
    """w += scale * F' delta; returns |F' delta|^2. ``rise`` is <theta, delta> at w, losses included.

    |w|^2 grows by scale^2 |F' delta|^2 + 2 scale <w, F' delta>, and the last is known: no second walk is needed.
    """
    growth = grow_all(rows, i, delta, scale, w)
    return max((growth / scale - 2.0 * (rise - expected_costs(costs, i, delta))) / scale, 0.0)
