"""Matchings as a space: both oracles of one table, by ``matching_paths`` and ``matching_soft``, and the factored dual.

Local theta = links row by row, null parts of rows, null parts of columns. With one slot per word a part is a clique:
the polytope of masses that are consistent (every row and every column has a total of 1 with its null part) has no other
corners than outputs, so any of them is a mixture of outputs without other parts. The worst output whose parts all have
mass is the best one for negated scores where the other parts are forbidden.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import inner
from m3n.compiled.oracles.hooks import implements
from m3n.compiled.oracles.links import LinkTable
from m3n.compiled.oracles.matching_paths import PathScratch, best_matching, path_scratch
from m3n.compiled.oracles.matching_soft import SmoothScratch, smooth_scratch, smoothed_matching


class MatchingSpace(NamedTuple):
    """Plain arrays of a ``Matching`` with one slot per word."""

    table: LinkTable
    row_slots: int
    column_slots: int


class FertileSpace(NamedTuple):
    """Plain arrays of a ``Matching`` with several slots per word: there is no factored dual."""

    table: LinkTable
    row_slots: int
    column_slots: int


class MatchingScratch(NamedTuple):
    """Memory for one sweep."""

    path: PathScratch
    smooth: SmoothScratch
    negated: np.ndarray  # (local theta,) scores for ``worst``


@implements("workspace", MatchingSpace)
@implements("workspace", FertileSpace)
def _workspace(space):
    return MatchingScratch(path_scratch(space), smooth_scratch(space), np.empty(_longest(space)))


@implements("best", MatchingSpace)
@implements("best", FertileSpace)
def _best(space, i, theta, parts, work):
    return best_matching(space, i, theta, parts, work.path)


@implements("smoothed", MatchingSpace)
@implements("smoothed", FertileSpace)
def _smoothed(space, i, theta, mu, work):
    return smoothed_matching(space, i, theta, mu, work.path, work.smooth)


@implements("worst", MatchingSpace)
def _worst(space, i, theta, mass, parts, work):
    for k in range(theta.shape[0]):
        work.negated[k] = -theta[k] if mass[k] > 0.0 else -np.inf
    value, number = best_matching(space, i, work.negated[: theta.shape[0]], parts, work.path)
    return -value, number


@implements("cliques", MatchingSpace)
def _cliques(space, i, parts, out):
    m, n, links = space.table.rows[i], space.table.columns[i], 0
    while links < min(m, n) and parts[links] < m * n:
        links += 1
    for k in range(m + n - links):
        out[k] = parts[k]
    return m + n - links


@implements("clique_range", MatchingSpace)
def _clique_range(space):
    return _longest(space)


@inner
def _longest(space):
    """The length of the longest local theta."""
    found = 0
    for i in range(space.table.rows.shape[0]):
        m, n = space.table.rows[i], space.table.columns[i]
        found = max(found, m * n + m + n)
    return found
