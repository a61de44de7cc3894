"""One example at a time: what block-coordinate methods need, compiled.

An example's scores are one flat vector, its *local* theta: the rows of all part arrays that it uses, one after another,
shared tables last or wherever the structure puts them. An output is the list of its *parts*, positions in that vector;
its score is the sum over the list (a shared part that occurs twice is listed twice).

Feature maps enter as ``MapRows``: row r scores ``widths[r]`` neighbouring parts by

    theta[at + j] = sum_e data[e] w[runs[e] + j],    pointers[r] <= e < pointers[r + 1]

(a shared table is a row with a single entry). Maps with weights for some parts only have ``columns`` as well: padding
in their runs, and lists of weights from entry ``lists[r]`` on, as in ``maps.observed``. Kernel expansions enter
as ``KernelRows``; what depends on the kind of rows is in ``maps.kinds``.

Structures enter as a named tuple of plain arrays, their *space*; the functions ``workspace``, ``best``, ``soft``,
``slack``, ``worst``, ``cliques`` and ``clique_range`` pick the implementation by the type of that tuple when a kernel
is compiled. For a structure without one the same kernels run in the interpreter and call its methods.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from m3n.compiled.jit import compiled
from m3n.compiled.maps.kinds import add_part, clear_part, entries_of, gather, grow_all, spread_part


class MapRows(NamedTuple):
    """A feature map as sparse rows, and which rows every example uses."""

    pointers: np.ndarray  # (rows + 1,) entries of every row
    runs: np.ndarray  # (entries,) first weight that an entry meets; 32 bits if they suffice
    data: np.ndarray  # (entries,)
    widths: np.ndarray  # (rows,) parts that a row scores
    first: np.ndarray  # (n + 1,) uses of every example
    used: np.ndarray  # (uses,) row of a use
    place: np.ndarray  # (uses,) where its parts begin in the local theta
    sizes: np.ndarray  # (n,) length of the local theta
    squares: np.ndarray  # (rows,) sum of the squares of a row's entries
    lists: np.ndarray  # (rows,) first entry that meets a list of weights instead of a run
    columns: np.ndarray  # (dim,) part of a weight, negative for padding and at the end of a list; () if all are runs


class Costs(NamedTuple):
    """A label loss: weight[r] * table[gold[r], label] on the rows of the first array of theta, and single parts' costs.

    Example i has ``values[starts[i]:starts[i + 1]]`` on top, at neighbouring parts from ``places[i]`` on. Most losses
    have none, and then all three arrays are empty.
    """

    gold: np.ndarray
    weight: np.ndarray
    table: np.ndarray
    first: np.ndarray  # (n + 1,) rows of every example
    values: np.ndarray  # costs of single parts, example after example
    starts: np.ndarray  # (n + 1,) where those of an example begin
    places: np.ndarray  # (n,) where they stand in the local theta


_IMPLEMENTATIONS: dict[tuple[str, Any], Callable[..., Any]] = {}


def implements(name: str, space: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the implementation of ``name`` for a type of space."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _IMPLEMENTATIONS[name, space] = function
        return function

    return register


def _chosen(name: str, space: Any) -> Callable[..., Any] | None:
    return _IMPLEMENTATIONS[name, space.instance_class] if isinstance(space, types.BaseNamedTuple) else None


def workspace(space):
    """Scratch memory for one sweep."""
    return space.workspace()


def best(space, i, theta, parts, work):
    """Max-oracle of example i: its best score and the number of parts of the best output, written to ``parts``."""
    return space.best(i, theta, parts)


def soft(space, i, theta, mu, work):
    """Exp-oracle of example i: mu log sum exp(score/mu); the marginals of the parts are written over ``theta``."""
    return space.soft(i, theta, mu)


def slack_workspace(space, costs):
    """Scratch memory for one sweep of ``slack``."""
    return space.workspace()


def slack(space, costs, i, theta, parts, work):
    """Max-oracle of slack rescaling of example i: the largest loss times margin, and as ``best`` who attains it."""
    return space.slack(i, theta, parts)


def cliques(space, i, parts, out):
    """The cliques that an output uses, numbered from 0 within example i; their number, at most that of its parts."""
    raise TypeError(f"{type(space).__name__} has no factored dual")


def clique_range(space):
    """One more than the largest number of a clique."""
    raise TypeError(f"{type(space).__name__} has no factored dual")


def worst(space, i, theta, mass, parts, work):
    """Least score among the outputs of which every clique has positive ``mass``, and the number of its parts.

    Scores are finite; the structure's own rules may forbid outputs. Without any the least score is inf.
    """
    raise TypeError(f"{type(space).__name__} has no factored dual")


@overload(workspace, strict=False)
def _workspace(space):
    return _chosen("workspace", space)


@overload(best, strict=False)
def _best(space, i, theta, parts, work):
    return _chosen("best", space)


@overload(soft, strict=False)
def _soft(space, i, theta, mu, work):
    return _chosen("soft", space)


@overload(slack_workspace, strict=False)
def _slack_workspace(space, costs):
    return _chosen("slack_workspace", space)


@overload(slack, strict=False)
def _slack(space, costs, i, theta, parts, work):
    return _chosen("slack", space)


@overload(cliques, strict=False)
def _cliques(space, i, parts, out):
    return _chosen("cliques", space)


@overload(clique_range, strict=False)
def _clique_range(space):
    return _chosen("clique_range", space)


@overload(worst, strict=False)
def _worst(space, i, theta, mass, parts, work):
    return _chosen("worst", space)


@compiled
def add_costs(costs, i, theta, scale):
    """theta += scale * loss of example i."""
    labels = costs.table.shape[1]
    for r in range(costs.first[i], costs.first[i + 1]):
        at, factor, gold = (r - costs.first[i]) * labels, scale * costs.weight[r], costs.gold[r]
        for j in range(labels):
            theta[at + j] += factor * costs.table[gold, j]
    if costs.values.shape[0] > 0:
        start, place = costs.starts[i], costs.places[i]
        for k in range(costs.starts[i + 1] - start):
            theta[place + k] += scale * costs.values[start + k]


@compiled
def local_scores(rows, costs, i, w, theta):
    """Scores plus losses of all parts of example i: the part of ``theta`` that it needs, filled."""
    local = theta[: rows.sizes[i]]
    gather(rows, i, w, local)
    add_costs(costs, i, local, 1.0)
    return local


@compiled
def loss_of(costs, i, parts, count):
    """The loss of an output of example i."""
    labels = costs.table.shape[1]
    end = (costs.first[i + 1] - costs.first[i]) * labels
    total = 0.0
    for k in range(count):
        if parts[k] < end:
            r = costs.first[i] + parts[k] // labels
            total += costs.weight[r] * costs.table[costs.gold[r], parts[k] % labels]
    if costs.values.shape[0] > 0:
        start, place = costs.starts[i], costs.places[i]
        for k in range(count):
            if place <= parts[k] < place + costs.starts[i + 1] - start:
                total += costs.values[start + parts[k] - place]
    return total


@compiled
def score_of(theta, parts, count):
    """The score of an output."""
    total = 0.0
    for k in range(count):
        total += theta[parts[k]]
    return total


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


@compiled
def clear(delta, marked, touched, size):
    """Zero again, for the next example."""
    for k in range(size):
        delta[touched[k]] = 0.0
        marked[touched[k]] = False


@compiled
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
    return max((growth / scale - 2.0 * (rise - expected_loss(costs, i, delta))) / scale, 0.0)


@compiled
def expected_loss(costs, i, marginals):
    """The loss of example i under part marginals."""
    labels = costs.table.shape[1]
    total = 0.0
    for r in range(costs.first[i], costs.first[i + 1]):
        at = (r - costs.first[i]) * labels
        row = 0.0
        for j in range(labels):
            row += costs.table[costs.gold[r], j] * marginals[at + j]
        total += costs.weight[r] * row
    if costs.values.shape[0] > 0:
        start, place = costs.starts[i], costs.places[i]
        for k in range(costs.starts[i + 1] - start):
            total += costs.values[start + k] * marginals[place + k]
    return total
