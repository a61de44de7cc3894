"""Passes that are made elsewhere: solvers see a protocol, and must not notice."""

import multiprocessing
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from m3n import MissingOracle, Problem, minimize
from m3n.features import Dense, chain_features
from m3n.losses import Hamming, PartLoss
from m3n.problem import Answer, Objective
from m3n.solvers import (
    BMRM,
    LBFGS,
    BatchFrankWolfe,
    BlockFrankWolfe,
    ExcessiveGap,
    ExponentiatedGradient,
    Extragradient,
    StructSVM,
)
from m3n.structures import Chain
from tests.tiny import Enumerated, chain_problem

WEIGHTS = [1.0, 2.0, 0.5, 1.0, 3.0, 0.5]
LENGTHS = (2, 3, 1, 4, 2, 3)


def whole_problem(temperature=0.0, loss=None, weights=WEIGHTS):
    random = np.random.default_rng(4)
    structure = Chain(LENGTHS, 3, edges=isinstance(loss, PartLoss))
    edges = Dense(random.normal(size=(9, 2)), (3, 3)) if structure.edges else None
    features = chain_features(Dense(random.normal(size=(sum(LENGTHS), 3)), 3), 3, edges)
    y = [random.integers(3, size=length) for length in LENGTHS]
    loss = loss or (None if temperature else Hamming())
    settings = {"lam": 0.1, "sample_weight": weights, "n_jobs": 1, "temperature": temperature}
    return Problem(structure, features, y, loss=loss, **settings)


class Halves:
    """Two passes over different examples, asked one after the other: what a cluster does."""

    def __init__(self, first, second):
        self.passes = first, second
        self.n, self.dim = first.n + second.n, first.dim
        self.temperature, self.oracles = first.temperature, first.oracles

    def hard(self, w, loss_scale=1.0):
        one, two = (part.hard(w, loss_scale) for part in self.passes)
        return one + two

    def soft(self, w, mu, loss_scale=1.0):
        one, two = (part.soft(w, mu, loss_scale) for part in self.passes)
        return one + two

    def value(self, w):
        return sum(part.value(w) for part in self.passes)

    def outputs(self, w):
        return tuple(np.concatenate(pieces) for pieces in zip(*(p.outputs(w) for p in self.passes), strict=True))

    def over(self, examples):
        chosen = np.arange(self.n)[examples]
        own = [chosen[chosen < self.passes[0].n], chosen[chosen >= self.passes[0].n] - self.passes[0].n]
        parts = [part.over(block) for part, block in zip(self.passes, own, strict=True) if len(block)]
        return parts[0] if len(parts) == 1 else Halves(*parts)

    def diameter(self):
        return sum(part.diameter() for part in self.passes)

    def radius(self):
        return max(part.radius() for part in self.passes)


def half_passes(problem):
    return (problem.whole.over(np.arange(*bounds)) for bounds in ((0, 2), (2, 6)))


def in_halves(problem):
    return Objective(Halves(*half_passes(problem)), problem.lam, n_jobs=1)


BATCH = [
    ExcessiveGap(),
    ExcessiveGap(memory=0),
    ExcessiveGap(schedule="paper"),
    BMRM(),
    Extragradient(),
    ExponentiatedGradient(),
    BatchFrankWolfe(),
    StructSVM(cache=0),
]
SMOOTH = [LBFGS(), BMRM(), ExponentiatedGradient()]


def numbers(state):
    """Every number of a state, in order."""
    if is_dataclass(state):
        for field in fields(state):
            yield from numbers(getattr(state, field.name))
    elif isinstance(state, (tuple, list)):
        for entry in state:
            yield from numbers(entry)
    elif isinstance(state, (int, float, np.ndarray)):
        yield from np.ravel(state).astype(float)


@pytest.mark.parametrize(
    ("solver", "temperature"), [*((s, 0.0) for s in BATCH), *((s, 1.0) for s in SMOOTH)], ids=lambda x: str(x)[:40]
)
@pytest.mark.parametrize("loss", [None, PartLoss(2.0, 1.0, arrays=[0, 4])], ids=["labels", "parts"])
def test_solvers_make_the_same_steps_on_two_halves(solver, temperature, loss):
    together, apart = whole_problem(temperature, loss), in_halves(whole_problem(temperature, loss))
    states = solver.init(together), solver.init(apart)
    for _ in range(12):
        one, two = (np.array(list(numbers(state))) for state in states)
        # the best mixture of many dual points is found to 1e-10 of D, so to 1e-5 of the points and what follows
        exact = solver != ExcessiveGap()
        np.testing.assert_allclose(two, one, rtol=1e-5 if exact else 1e-2, atol=1e-7 if exact else 1e-2)
        states = solver.step(together, states[0]), solver.step(apart, states[1])
    assert (apart.hard_calls, apart.soft_calls) == (together.hard_calls, together.soft_calls)


@pytest.mark.parametrize("solver", [ExcessiveGap(), BMRM(), BatchFrankWolfe()], ids=lambda x: type(x).__name__)
def test_a_run_on_two_halves_certifies_the_whole(solver):
    problem = whole_problem(weights=None)
    result = minimize(in_halves(problem), solver, tol=1e-3, max_passes=3000)
    assert result.converged
    assert problem.primal(result.w) == pytest.approx(result.certificate.primal, abs=1e-12)
    assert result.certificate.dual - 1e-9 <= Enumerated.of(problem).optimum() <= result.certificate.primal + 1e-9


def test_what_needs_single_examples_is_refused():
    with pytest.raises(MissingOracle, match=r"BlockFrankWolfe visits examples one by one.*BMRM"):
        minimize(in_halves(whole_problem()), BlockFrankWolfe())


def test_auto_takes_what_passes_can_do():
    assert minimize(in_halves(whole_problem(weights=None)), tol=1e-2, max_passes=3000).converged
    assert minimize(in_halves(whole_problem(1.0, weights=None)), tol=1e-4).converged


def serve(connection, which):
    """A worker that holds some of the data and answers by name."""
    own = list(half_passes(whole_problem()))[which]
    for name, arguments in iter(connection.recv, None):
        answer = getattr(own, name)
        connection.send(answer(*arguments) if callable(answer) else answer)


class Remote:
    """The pass of a worker in another process."""

    def __init__(self, context, which):
        self.end, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, which), daemon=True)
        self.process.start()
        self.n, self.dim, self.temperature, self.oracles = (
            self.ask(name) for name in ("n", "dim", "temperature", "oracles")
        )

    def ask(self, name, *arguments):
        self.end.send((name, arguments))
        assert self.end.poll(120.0)
        return self.end.recv()

    def __getattr__(self, name):
        return lambda *arguments: self.ask(name, *arguments)

    def close(self):
        self.end.send(None)
        self.process.join(20.0)


def test_workers_in_other_processes():
    context = multiprocessing.get_context("spawn")
    workers = [Remote(context, which) for which in (0, 1)]
    try:
        problem, apart = whole_problem(), Objective(Halves(*workers), 0.1, n_jobs=1)
        solver = ExcessiveGap(warm=0)
        states = solver.init(problem), solver.init(apart)
        for _ in range(4):
            states = solver.step(problem, states[0]), solver.step(apart, states[1])
        np.testing.assert_allclose(states[1].w, states[0].w, rtol=1e-9, atol=1e-12)
        assert states[1].dual == pytest.approx(states[0].dual)
    finally:
        for worker in workers:
            worker.close()


def test_answers_add_up(random):
    problem, w = chain_problem(), None
    w = random.normal(size=problem.dim)
    whole = problem.whole
    for ask in (lambda p: p.hard(w), lambda p: p.soft(w, 0.5, 2.0)):
        total, answer = ask(whole.over(slice(0, 1))) + ask(whole.over(np.array([3, 1, 2]))), ask(whole)
        assert isinstance(total, Answer)
        for name in ("value", "loss", "offset"):
            assert getattr(total, name) == pytest.approx(getattr(answer, name))
        np.testing.assert_allclose(total.vector, answer.vector, atol=1e-14)
