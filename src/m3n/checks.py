"""Tests for your own structures and feature maps: the tools that test ours.

Each function raises ``AssertionError`` with the numbers that disagree. Use them on tiny instances: outputs are
enumerated.
"""

from __future__ import annotations

import numpy as np

from m3n.features.base import FeatureMap
from m3n.problem import Problem
from m3n.structures.base import Parts, Structure


def brute_force(structure: Structure, theta: Parts, mu: float) -> tuple[np.ndarray, Parts]:
    """The exp-oracle by enumeration (the max-oracle's value for mu = 0, without marginals).

    Parameters
    ----------
    structure : Structure
        A tiny one.
    theta : tuple of arrays
        Part scores; -inf is allowed.
    mu : float
        Temperature.
    """
    values = np.empty(structure.n)
    marginals = tuple(np.zeros(shape) for shape in structure.shapes)
    for i in range(structure.n):
        alone, rows = structure.select(np.array([i]))
        outputs = [alone.encode(y) for y in structure.enumerate(i)]
        mine = tuple(array if row is None else array[row] for array, row in zip(theta, rows, strict=True))
        scores = np.array([total_score(mine, parts) for parts in outputs])
        top = scores.max()
        values[i] = top
        if mu > 0 and top > -np.inf:
            weights = np.exp((scores - top) / mu)
            values[i] += mu * np.log(weights.sum())
            for array, row, parts in zip(marginals, rows, zip(*outputs, strict=True), strict=True):
                array[... if row is None else row] += np.tensordot(weights / weights.sum(), parts, axes=1)
    return values, marginals


def total_score(theta: Parts, parts: Parts) -> float:
    """<theta, parts>, where parts that are not used do not count even if they score -inf.

    Parameters
    ----------
    theta : tuple of arrays
        Part scores.
    parts : tuple of arrays
        Indicator of an output.
    """
    return float(
        sum(np.where(p != 0, t * np.where(p != 0, p, 1.0), 0.0).sum() for t, p in zip(theta, parts, strict=True))
    )


def check_structure(structure: Structure, theta: Parts, mu: float, rtol: float = 1e-9) -> None:
    """Compare the oracles that a structure offers, and ``log_size``, with enumeration.

    A smoothed maximum with a prox of the structure's own must lie between the maximum and mu times its diameter above,
    and its answer among the mixtures of outputs: otherwise dual values would be false.

    Parameters
    ----------
    structure : Structure
        A tiny one.
    theta : tuple of arrays
        Part scores; -inf is allowed as long as every example keeps an output.
    mu : float
        Temperature of the exp-oracle.
    rtol : float
        Allowed error, relative to the size of the scores (values) and absolute (marginals).
    """
    finite = np.concatenate([np.abs(a[np.isfinite(a)]).ravel() for a in theta])
    scale = max(1.0, float(finite.max(initial=0.0)))
    best = brute_force(structure, theta, 0.0)[0]
    values, labelling = structure.hard(theta)
    np.testing.assert_allclose(values, best, rtol=rtol, atol=rtol * scale, err_msg="value of the max-oracle")
    found = total_score(theta, structure.encode(labelling))
    np.testing.assert_allclose(found, best.sum(), rtol=rtol, atol=rtol * scale, err_msg="score of the argmax")
    if "smoothed" in structure.oracles:
        _check_smoothed(structure, theta, mu, rtol * scale)
    if "soft" not in structure.oracles:
        return
    expected, marginals = brute_force(structure, theta, mu)
    values, found_marginals = structure.soft(tuple(a.copy() for a in theta), mu)
    np.testing.assert_allclose(values, expected, rtol=rtol, atol=rtol * scale, err_msg="value of the exp-oracle")
    # a score can only be known to machine precision, so an exponent to this much
    accuracy = rtol + 50 * np.finfo(float).eps * scale / mu
    for k, (a, b) in enumerate(zip(found_marginals, marginals, strict=True)):
        np.testing.assert_allclose(a, b, rtol=0, atol=accuracy, err_msg=f"marginals of part array {k}")
    sizes = [sum(1 for _ in structure.enumerate(i)) for i in range(structure.n)]
    np.testing.assert_allclose(structure.log_size(), np.log(sizes), atol=1e-9, err_msg="log_size")


def _check_smoothed(structure: Structure, theta: Parts, mu: float, atol: float) -> None:
    from scipy.optimize import nnls  # slow to load

    best, diameters = structure.hard(theta)[0], structure.diameter()
    for i in range(structure.n):
        alone, _ = structure.select(np.array([i]))
        value, mean = structure.smoothed(i, structure.own(theta, i), mu)
        assert best[i] - atol <= value <= best[i] + mu * diameters[i] + atol, (
            f"example {i}: the smoothed maximum is {value}, outside of {best[i]}..{best[i] + mu * diameters[i]}"
        )
        outputs = [_flat(alone.encode(y)) for y in structure.enumerate(i)]
        equations = np.vstack([np.transpose(outputs), np.ones(len(outputs))])
        distance = nnls(equations, np.append(_flat(mean), 1.0))[1]
        assert distance < 1e-8, f"example {i}: the smoothed answer is {distance:.2g} away from all mixtures of outputs"


def _flat(parts: Parts) -> np.ndarray:
    return np.concatenate([part.ravel() for part in parts])


def check_gradient(structure: Structure, theta: Parts, mu: float, seed: int = 0) -> float:
    """Marginals must be the gradient of the exp-oracle's value: fit the slope of the Taylor error, which must be 2.

    Parameters
    ----------
    structure : Structure
        Any size.
    theta : tuple of arrays
        Finite part scores.
    mu : float
        Temperature, not so small that the value is linear around theta.
    seed : int
        Seed of the direction.

    Returns
    -------
    float
        The slope.
    """
    random = np.random.default_rng(seed)
    direction = tuple(random.normal(size=a.shape) for a in theta)
    value, marginals = structure.soft(tuple(a.copy() for a in theta), mu)
    derivative = sum(float((d * m).sum()) for d, m in zip(direction, marginals, strict=True))
    steps = mu * np.logspace(-3.5, -1.5, 9)
    errors = []
    for step in steps:
        moved = tuple(a + step * d for a, d in zip(theta, direction, strict=True))
        errors.append(abs(structure.soft(moved, mu)[0].sum() - value.sum() - step * derivative))
    slope = float(np.polyfit(np.log(steps), np.log(errors), 1)[0])
    assert 1.8 < slope < 2.2, f"the Taylor error falls with exponent {slope:.2f}, not 2: marginals are not the gradient"
    return slope


def check_adjoint(features: FeatureMap, seed: int = 0) -> None:
    """<scores(w), m> = <w, adjoint(m)> for random w and m, in the map's own inner product.

    Parameters
    ----------
    features : FeatureMap
        The map to test.
    seed : int
        Seed of w and m.
    """
    random = np.random.default_rng(seed)
    w = features.refresh(random.normal(size=features.dim))
    parts = tuple(random.normal(size=shape) for shape in features.shapes)
    theta = features.scores(w, tuple(np.full(shape, np.nan) for shape in features.shapes))
    left = sum(float((a * b).sum()) for a, b in zip(theta, parts, strict=True))
    right = features.inner(w, features.adjoint(parts))
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9, err_msg="<scores(w), m> and <w, adjoint(m)>")


def check_problem(problem: Problem, seed: int = 0) -> None:
    """Compare a whole problem with enumeration: loss, primal, exp-oracle if there is one, radius. For own losses, too.

    Parameters
    ----------
    problem : Problem
        A tiny one.
    seed : int
        Seed of the weights at which it is compared.
    """
    w = problem.features.refresh(np.random.default_rng(seed).normal(size=problem.dim))
    values, expected, radius = [], np.zeros(problem.dim), 0.0
    for i in range(problem.n):
        one = np.array([i])
        alone, rows = problem.structure.select(one)
        mine = problem.structure.entries_of(one)
        features, cost = problem.features.select(rows), problem.cost.select(rows, one)
        gold = features.adjoint(alone.encode(problem.gold[mine]))
        outputs = [alone.encode(y) for y in problem.structure.enumerate(i)]
        ell = np.array([cost.expected(parts) for parts in outputs])
        psi = np.array([gold - features.adjoint(parts) for parts in outputs])
        assert cost.expected(alone.encode(problem.gold[mine])) == 0.0, f"example {i}: the loss of gold is not 0"
        assert ell.min() >= 0.0, f"example {i}: a loss of {ell.min()} is negative"
        margins = ell - np.array([problem.inner(problem.absolute(w), vector) for vector in psi])
        values.append(margins.max())
        weights = np.exp(margins - margins.max())
        expected += weights / weights.sum() @ psi / problem.n
        radius = max(radius, max(problem.inner(vector, vector) for vector in psi) ** 0.5)
    np.testing.assert_allclose(problem.hard(w).value, np.mean(values), rtol=1e-9, err_msg="value of the max-oracle")
    if "soft" in problem.oracles:
        np.testing.assert_allclose(problem.soft(w, 1.0).vector, expected, atol=1e-9, err_msg="expected features")
    assert radius <= problem.radius * (1 + 1e-9), f"|psi| reaches {radius}, but the radius claims {problem.radius}"
