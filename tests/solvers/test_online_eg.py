"""Online exponentiated gradient: the same iterates as with alpha written out."""

import numpy as np
import pytest

from m3n import minimize
from m3n.solvers import ExponentiatedGradient
from tests.problem.test_blocks import edge_problem
from tests.tiny import Enumerated, chain_problem, multiclass_problem

PROBLEMS = [chain_problem, multiclass_problem, edge_problem]
ONLINE = ExponentiatedGradient(online=True)


class WrittenOut:
    """Every beta_i = n alpha_i as a vector over its outputs, with the authors' step and line search."""

    def __init__(self, problem, state):
        self.known = known = Enumerated.of(problem)
        self.beta = [None] * problem.n
        self.eta = np.full(problem.n, min(1.0, 1.0 / (problem.temperature or 1.0)))
        self.failed = np.zeros(problem.n, bool)
        starts, potentials = state.potentials.starts, state.potentials.potentials
        for i in range(problem.n):
            logs = [potentials[starts[i] : starts[i + 1]][parts].sum() for parts in outputs(problem, i)]
            self.beta[i] = np.exp(logs - np.logaddexp.reduce(logs))
        self.mine = [np.flatnonzero(known.owner == i) for i in range(problem.n)]

    @property
    def alpha(self):
        return np.concatenate(self.beta) / self.known.problem.n

    def visit(self, i):
        problem, known = self.known.problem, self.known
        w = self.alpha @ known.psi / problem.lam
        gradient = (known.ell - known.psi @ w)[self.mine[i]]
        before = known.dual(self.alpha)
        while True:
            eta, heat = self.eta[i], problem.temperature
            logs = (1 - eta * heat) * np.log(self.beta[i]) + eta * gradient
            old, self.beta[i] = self.beta[i], np.exp(logs - np.logaddexp.reduce(logs))
            if known.dual(self.alpha) >= before - 1e-13:
                break
            self.beta[i] = old
            self.eta[i] /= 2
            self.failed[i] = True
        grown = self.eta[i] * (1.05 if self.failed[i] else 1.5)
        self.eta[i] = min(grown, 1 / heat) if heat else grown


def outputs(problem, i):
    alone, _ = problem.structure.select(np.array([i]))
    for y in problem.structure.enumerate(i):
        parts, counts = alone.local_parts(y)
        yield parts[0, : counts[0]]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("make", [chain_problem, multiclass_problem])
def test_same_iterates_as_with_alpha_written_out(make, temperature):
    problem = make(temperature=temperature)
    state = ONLINE.init(problem)
    reference = WrittenOut(problem, state)
    for passes in range(5):
        state = ONLINE.step(problem, state)
        for i in np.random.default_rng([0, passes]).permutation(problem.n):
            reference.visit(i)
        np.testing.assert_allclose(state.u, reference.alpha @ reference.known.psi / problem.lam, atol=1e-8)
        assert state.dual == pytest.approx(reference.known.dual(reference.alpha), abs=1e-9)
        np.testing.assert_allclose(state.potentials.eta, reference.eta)


@pytest.mark.parametrize("make", PROBLEMS)
def test_iterates_are_distributions_that_factorise(make):
    """Marginals, entropies and losses are those of the potentials, from scratch; D never decreases."""
    problem = make()
    known = Enumerated.of(problem)
    state = ONLINE.init(problem)
    previous = state.dual
    for _ in range(30):
        state = ONLINE.step(problem, state)
        kept = state.potentials
        alpha = []
        for i in range(problem.n):
            own = slice(kept.starts[i], kept.starts[i + 1])
            listed = list(outputs(problem, i))
            logs = np.array([kept.potentials[own][parts].sum() for parts in listed])
            beta = np.exp(logs - np.logaddexp.reduce(logs))
            marginals = np.zeros(own.stop - own.start)
            for weight, parts in zip(beta, listed, strict=True):
                np.add.at(marginals, parts, weight)
            np.testing.assert_allclose(kept.marginals[own], marginals, atol=1e-9)
            alpha.append(beta / problem.n)
        alpha = np.concatenate(alpha)
        np.testing.assert_allclose(state.u, alpha @ known.psi / problem.lam, atol=1e-8)
        assert state.dual == pytest.approx(known.dual(alpha), abs=1e-9)
        assert state.dual >= previous - 1e-11
        previous = state.dual


def test_linear_convergence_on_a_crf():
    problem = chain_problem(temperature=1.0)
    gaps = [r.gap for r in minimize(problem, ONLINE, tol=1e-9, max_passes=300).trace]
    assert gaps[-1] <= 1e-9


def test_online_needs_fewer_passes_than_batch():
    problem = chain_problem(lengths=(3, 4, 5, 3, 6) * 4, labels=3, lam=0.01)
    solvers = ONLINE, ExponentiatedGradient()
    online, batch = (minimize(problem, solver, tol=0.05, max_passes=2000) for solver in solvers)
    assert online.converged
    assert online.soft_calls < batch.soft_calls
