"""With a linear kernel every solver must take the same steps as with the inputs themselves."""

import numpy as np
import pytest

from m3n import Problem, minimize, solvers
from m3n.features import Dense, Kernel, chain_features
from m3n.losses import NormalizedHamming
from m3n.structures import Chain

LENGTHS, LABELS = (1, 3, 2, 4), 3
MARGIN = (
    solvers.ExcessiveGap(schedule="paper"),
    solvers.ExponentiatedGradient(),
    solvers.Extragradient(),
    solvers.BMRM(),
    solvers.BatchFrankWolfe(),
    solvers.StructSVM(),
    solvers.LBFGS(),
)


def pair(random, temperature=0.0):
    X = random.normal(size=(10, 4))
    X[5] = X[1]
    y = [random.integers(LABELS, size=length) for length in LENGTHS]
    maps = Kernel(X, LABELS, "linear"), Dense(X, LABELS)
    loss = None if temperature else NormalizedHamming()
    settings = {"lam": 0.1, "n_jobs": 1, "temperature": temperature, "loss": loss}
    return [Problem(Chain(LENGTHS, LABELS), chain_features(m, LABELS), y, **settings) for m in maps]


def explicit(problem, w):
    """The weights of attributes that an expansion stands for, and the tables."""
    kernel = problem.features.maps[0]
    node, *tables = problem.features.split(w)
    return np.concatenate([(kernel.inputs.T @ kernel.coefficients(node).T).ravel(), *tables])


def same_run(problems, solver, passes):
    kernel, dense = (minimize(problem, solver, tol=1e-12, max_passes=passes) for problem in problems)
    assert len(kernel.trace) == len(dense.trace)
    for a, b in zip(kernel.trace, dense.trace, strict=True):
        np.testing.assert_allclose((a.passes, a.primal, a.dual), (b.passes, b.primal, b.dual), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(explicit(problems[0], kernel.w), dense.w, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(problems[0].features.refresh(kernel.w), kernel.w, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("passes", [3, 10, 25])
@pytest.mark.parametrize("solver", MARGIN, ids=lambda solver: type(solver).__name__)
def test_same_iterates_at_margin(solver, passes, random):
    same_run(pair(random), solver, passes)


@pytest.mark.parametrize("passes", [3, 10, 25])
@pytest.mark.parametrize("solver", [solvers.LBFGS(), solvers.BMRM()], ids=lambda solver: type(solver).__name__)
def test_same_iterates_of_a_crf(solver, passes, random):
    same_run(pair(random, temperature=1.0), solver, passes)


def test_adaptive_excessive_gap(random):
    """Its decisions hang on the last digits, so only the beginning is the same; the optimum is."""
    problems = pair(random)
    same_run(problems, solvers.ExcessiveGap(), 8)
    kernel, dense = (minimize(problem, solvers.ExcessiveGap(), tol=1e-4, max_passes=2000) for problem in problems)
    assert kernel.certificate.gap <= 1e-4
    assert kernel.certificate.dual <= dense.certificate.primal
    assert dense.certificate.dual <= kernel.certificate.primal
