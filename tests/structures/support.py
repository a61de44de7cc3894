"""The factored dual of a structure against enumeration: what ``SMO`` relies on."""

import numpy as np
from scipy.optimize import nnls

from m3n.compiled.jit import for_space
from m3n.compiled.oracles import hooks
from tests.kernels import kept


@kept
def worst_of(space, i, theta, mass, parts):
    return hooks.worst(space, i, theta, mass, parts, hooks.workspace(space))


@kept
def cliques_of(space, i, parts, out):
    return hooks.cliques(space, i, parts, out)


@kept
def range_of(space):
    return hooks.clique_range(space)


def check_support(structure, theta, random):
    """``cliques``, ``clique_range`` and ``worst`` of every example, at finite scores."""
    space, size = structure.space(), for_space(range_of, structure.space())(structure.space())
    for i in range(structure.n):
        alone, rows = structure.select(np.array([i]))
        mine = tuple(array if row is None else array[row] for array, row in zip(theta, rows, strict=True))
        flat = np.concatenate([array.ravel() for array in mine])
        outputs = np.array(list(structure.enumerate(i)))
        parts = [listed_parts(alone, y) for y in outputs]
        used = np.array([indicator(space, i, own, size) for own in parts])  # (outputs, cliques)
        scores = np.array([flat[own].sum() for own in parts])
        _check_cliques(used, parts, len(flat))
        chosen = random.choice(len(outputs), size=min(3, len(outputs)), replace=False)
        mass = random.dirichlet(np.ones(len(chosen))) @ used[chosen]
        _check_moves(mass, used, random)
        held = np.flatnonzero((mass > 0) @ used.T == used.sum(axis=1))
        _check_worst(space, i, flat, mass, [parts[k] for k in held], scores[held])
        _check_worst(space, i, flat, np.zeros(size), [], np.array([np.inf]))


def listed_parts(alone, y):
    parts, counts = alone.local_parts(y)
    return parts[0, : counts[0]]


def indicator(space, i, parts, size):
    """Which cliques an output uses, each once, and no more than it has parts."""
    out = np.full(len(parts), -1)
    count = for_space(cliques_of, space)(space, i, parts, out)
    assert len(set(out[:count])) == count <= len(parts)
    used = np.zeros(size)
    used[out[:count]] = 1.0
    return used


def _check_cliques(used, parts, size):
    """Different outputs have different cliques, and the parts of an output are a linear function of its cliques."""
    assert len(np.unique(used, axis=0)) == len(used)
    counts = np.array([np.bincount(own, minlength=size) for own in parts])
    map_, *_ = np.linalg.lstsq(used, counts, rcond=None)
    np.testing.assert_allclose(used @ map_, counts, atol=1e-9)


def _check_moves(mass, used, random):
    """Moving what the cliques allow from one output to another leaves the masses of some mixture of outputs."""
    for _ in range(3):
        held = np.flatnonzero((mass > 1e-9) @ used.T == used.sum(axis=1))
        low, high = random.choice(held), random.choice(len(used))
        losing = used[low] > used[high]
        if losing.any():
            mass = mass + mass[losing].min() * (used[high] - used[low])
        assert nnls(used.T, mass)[1] < 1e-9


def _check_worst(space, i, flat, mass, parts, scores):
    theta, found = flat.copy(), np.zeros(3 * len(flat) + 50, np.int64)
    value, count = for_space(worst_of, space)(space, i, theta, mass, found)
    np.testing.assert_array_equal(theta, flat)
    np.testing.assert_allclose(value, scores.min(), rtol=1e-9, atol=1e-9)
    if parts:  # of equal ones any may answer
        listed = found[:count].tolist()
        (own,) = [k for k, other in enumerate(parts) if other.tolist() == listed]
        np.testing.assert_allclose(scores[own], scores.min(), rtol=1e-9, atol=1e-9)
