"""The best tree of all, crossing arcs or not: the algorithm of Chu, Liu and Edmonds on a dense table.

Every word takes its best head. Where that closes a cycle C, the cycle becomes one vertex: an arc from outside into its
member v replaces the arc that v has in the cycle, so it is worth score(u, v) - score(head of v, v), and an arc out of
the cycle is worth the best of its members. The vertex takes its best head in turn, and so on. At the end vertices are
opened again, the last one first: its head goes to the member that the arc really leads to, all others keep theirs.
Paths of heads are followed one at a time until they come to the root or to an earlier path, so each vertex is looked at
once: O(n^2) for n = length + 1.

*A single root.* Let arcs from the root cost M each, on top: for a large M the best tree has one of them, if there is
such a tree. M never cancels in the differences above, as arcs of cycles do not come from the root. So M need not be a
number: a vertex takes the root only if it has no other head, and then the tree is the best of those with one root.

A score of -inf is an arc that does not exist.

Reference: Tarjan, "Finding optimum branchings", 1977; another way to a single root: Zmigrod, Vieira, Cotterell, "Please
mind the root: decoding arborescences for dependency parsing", 2020.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing, inner

FRESH, ON_PATH, DONE = 0, 1, 2


class BranchingScratch(NamedTuple):
    """Memory for sentences of less than n words; a vertex that stands for a cycle has the place of one of its members.

    Vertices are numbered 0..n-1 as the words, then cycles in the order in which they were found.
    """

    weight: np.ndarray  # flat (n, n), [place of dependent, place of head]
    from_word: np.ndarray  # flat (n, n) integers: which arc that is
    to_word: np.ndarray  # flat (n, n) integers
    state: np.ndarray  # (n,) integers, of places
    vertex: np.ndarray  # (n,) integers: what stands at a place
    gain: np.ndarray  # (n,) weight of the arc that a place has taken
    path: np.ndarray  # (n,) integers: places
    above: np.ndarray  # (2 n,) integers: the cycle that a vertex is in
    head: np.ndarray  # (2 n,) integers: the arc that a vertex has taken
    dependent: np.ndarray  # (2 n,) integers


@inner
def branching_scratch(n):
    """Scratch memory."""
    names, places, vertices = np.empty((2, n * n), np.int64), np.empty((3, n), np.int64), np.empty((3, 2 * n), np.int64)
    tables = np.empty(n * n), names[0], names[1]
    return BranchingScratch(
        *tables, places[0], places[1], np.empty(n), places[2], vertices[0], vertices[1], vertices[2]
    )


@borrowing
def best_branching(n, single_root, work):
    """Heads of words 1..n-1 into ``head``, from the weights, which are lost; whether there is a tree."""
    _begin(n, work)
    vertices, rooted = n, False
    for start in range(1, n):
        place, length, going = start, 0, work.state[start] == FRESH
        while going:
            work.state[place], work.path[length] = ON_PATH, place
            length += 1
            source = _best_source(n, single_root, place, work)
            if source < 0 or (source == 0 and single_root and rooted):
                return False
            _take(n, place, source, work)
            if work.state[source] == DONE:
                rooted, going = rooted or source == 0, False
                _settle(length, work)
            elif work.state[source] == ON_PATH:
                length = _contract(n, source, length, vertices, work)
                vertices += 1
            place = source
    _open_again(n, vertices, work)
    return True


@borrowing
def _begin(n, work):
    """Every arc is itself, every place has its word."""
    for word in range(n):
        work.state[word], work.vertex[word] = FRESH, word
        for head in range(n):
            work.from_word[word * n + head], work.to_word[word * n + head] = head, word
    work.state[0] = DONE


@borrowing
def _best_source(n, single_root, place, work):
    """The place of the best head, the first of equal ones; -1 if there is none."""
    row = place * n
    best, top = -1, -np.inf
    for source in range(1, n):
        if work.weight[row + source] > top:
            best, top = source, work.weight[row + source]
    if work.weight[row] > top and (best < 0 or not single_root):
        best = 0
    return best


@borrowing
def _take(n, place, source, work):
    """The vertex at a place takes its head."""
    at, vertex = place * n + source, work.vertex[place]
    work.gain[place] = work.weight[at]
    work.head[vertex], work.dependent[vertex] = work.from_word[at], work.to_word[at]


@borrowing
def _settle(length, work):
    """The path has come to its end."""
    for k in range(length):
        work.state[work.path[k]] = DONE


@borrowing
def _contract(n, source, length, vertex, work):
    """The path from ``source`` on becomes a vertex at that place; how long the path is without it."""
    begin = length - 1
    while work.path[begin] != source:
        begin -= 1
    _enter(n, source, work)
    for k in range(begin, length):
        member = work.path[k]
        work.above[work.vertex[member]] = vertex
        if member != source:
            work.state[member] = DONE
            _merge(n, source, member, work)
    work.vertex[source] = vertex
    for k in range(begin, length):
        work.weight[source * n + work.path[k]] = -np.inf
    return begin


@borrowing
def _enter(n, place, work):
    """Weights of arcs into a place become differences to the arc that it has taken."""
    for head in range(n):
        work.weight[place * n + head] -= work.gain[place]


@borrowing
def _merge(n, place, member, work):
    """Arcs into and out of a member become those of the place, where they are better."""
    _enter(n, member, work)
    for other in range(n):
        _keep_better(place * n + other, member * n + other, work)
        _keep_better(other * n + place, other * n + member, work)
        work.weight[other * n + member] = -np.inf


@borrowing
def _keep_better(at, other, work):
    if work.weight[other] > work.weight[at]:
        work.weight[at] = work.weight[other]
        work.from_word[at], work.to_word[at] = work.from_word[other], work.to_word[other]


@borrowing
def _open_again(n, vertices, work):
    """Cycles give the arcs that they have taken to their members, the last cycle first."""
    for vertex in range(vertices - 1, n - 1, -1):
        member = work.dependent[vertex]
        while work.above[member] != vertex:
            member = work.above[member]
        work.head[member], work.dependent[member] = work.head[vertex], work.dependent[vertex]
