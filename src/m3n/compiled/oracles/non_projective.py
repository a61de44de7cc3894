"""Trees whose arcs may cross: both oracles of one sentence, by ``arborescence`` and ``matrix_tree``."""

from typing import NamedTuple

import numpy as np

from m3n.compiled.oracles.arborescence import BranchingScratch, best_branching, branching_scratch
from m3n.compiled.oracles.arcs import (
    Candidates,
    add_best_labels,
    add_soft_labels,
    collect_marginals,
    list_arcs,
    most_arcs,
    spread_scores,
    weigh_labels,
)
from m3n.compiled.oracles.hooks import implements
from m3n.compiled.oracles.matrix_tree import MatrixTreeScratch, matrix_tree_scratch, sum_trees
from m3n.compiled.primitives.arrays import largest


class NonProjectiveSpace(NamedTuple):
    """Plain arrays of a ``NonProjectiveTree``."""

    arcs: Candidates
    single_root: bool


class NonProjectiveScratch(NamedTuple):
    """Memory for one sweep."""

    scores: np.ndarray  # (most arcs,)
    branching: BranchingScratch
    trees: MatrixTreeScratch


@implements("workspace", NonProjectiveSpace)
def _workspace(space):
    n = largest(space.arcs.lengths) + 1
    return NonProjectiveScratch(np.empty(most_arcs(space.arcs)), branching_scratch(n), matrix_tree_scratch(n))


@implements("best", NonProjectiveSpace)
def _best(space, i, theta, parts, work):
    n = space.arcs.lengths[i] + 1
    add_best_labels(space.arcs, i, theta, work.scores)
    spread_scores(space.arcs, i, work.scores, 1, n, work.branching.weight)
    if not best_branching(n, space.single_root, work.branching):
        return -np.inf, 0
    number, value = list_arcs(space.arcs, i, theta, work.branching.head, parts), 0.0
    for word in range(n - 1):
        value += work.scores[parts[word]]
    return value, number


@implements("soft", NonProjectiveSpace)
def _soft(space, i, theta, mu, work):
    n = space.arcs.lengths[i] + 1
    add_soft_labels(space.arcs, i, theta, mu, work.scores)
    spread_scores(space.arcs, i, work.scores, 1, n, work.trees.scores)
    value = sum_trees(n, space.single_root, mu, work.trees)
    collect_marginals(space.arcs, i, 1, n, work.trees.marginals, theta)
    weigh_labels(space.arcs, i, theta)
    return value
