"""Problems of this process in lanes, and what can happen to them there."""

import numpy as np

from m3n.problem import Sharded
from m3n.problem.engines import ThreadEngine
from m3n.problem.spool import Spooled
from tests.tiny import chain_problem

LENGTHS = (1, 3, 2, 4, 2, 3, 1, 4, 2, 3)


def problem_of(temperature=0.0, weights=None, **settings):
    """A chain with enough examples for seven lanes."""
    problem = chain_problem(seed=3, lengths=LENGTHS, temperature=temperature, **settings)
    if weights is None:
        return problem
    from m3n import Problem

    gold = problem.structure.unpack(problem.gold)
    same = {"lam": problem.lam, "temperature": temperature, "n_jobs": 1, "sample_weight": weights}
    return Problem(problem.structure, problem.features, gold, **same)


def in_lanes(problem, lanes, *, shards=None, threads=2):
    """The problem in lanes; with ``shards`` in as many files, that lanes share."""
    source = Spooled(problem, shards or lanes)
    if shards:
        source.edges = None
    return Sharded(ThreadEngine(source, n_jobs=threads, lanes=lanes), problem.lam)


def forget(sharded, lane, what="held"):
    """A worker is lost, and another one takes its place."""
    sharded.engine.crew.lanes[lane].kept.clear() if what == "all" else sharded.engine.crew.lanes[lane].kept.pop(what)


def steps(sharded, solver, count):
    """The state after some steps."""
    state = solver.init(sharded)
    for _ in range(count):
        state = solver.step(sharded, state)
    return state


def same(a, b):
    """Whether two states are the same to the last bit."""
    np.testing.assert_array_equal(a.w, b.w)
    assert a.dual == b.dual
    assert a.calls == b.calls
