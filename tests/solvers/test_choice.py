"""What ``solver="auto"`` takes, and what it says about it."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from m3n import Problem, SequenceTagger, minimize
from m3n.features import Dense, Scaled, Sparse, Stack, chain_features
from m3n.solvers import (
    BMRM,
    LBFGS,
    OWLQN,
    BatchFrankWolfe,
    BlockFrankWolfe,
    DualAscent,
    ExcessiveGap,
    SequentialDual,
    SparseDualAscent,
    choose,
)
from m3n.structures import Chain, Multiclass
from tests.solvers.template import lifted
from tests.tiny import chain_problem, multiclass_problem


@pytest.mark.parametrize("make", [chain_problem, multiclass_problem])
def test_margins_are_trained_by_sequential_dual_steps(make):
    result = minimize(make(seed=3), tol=1e-4)
    assert isinstance(result.solver, SequentialDual)
    assert "visited one by one" in result.reason
    assert result.certificate.gap <= 1e-4


def test_the_seed_reaches_the_solver():
    assert minimize(chain_problem(), tol=1e-3, seed=5).solver == SequentialDual(seed=5)
    assert minimize(chain_problem(), SequentialDual(seed=2), tol=1e-3, seed=5).solver.seed == 2


def test_strong_regularisation_and_a_loose_tolerance_take_plain_visits():
    strong = chain_problem(seed=3, lam=20.0)
    assert choose(strong, 4, tol=0.05).solver == BlockFrankWolfe(seed=4)
    assert choose(strong, 4, rtol=0.05).solver == BlockFrankWolfe(seed=4)
    assert "strong regularisation" in choose(strong, tol=0.05).reason
    assert isinstance(choose(strong, tol=1e-4).solver, SequentialDual)
    assert isinstance(choose(chain_problem(seed=3, lam=1e-3), tol=0.5).solver, SequentialDual)
    assert minimize(strong, tol=0.05).certificate.gap <= 0.05


def test_weights_with_their_own_inner_product_are_left_to_mini_batches():
    problem = lifted(chain_problem(seed=3))
    choice = choose(problem, seed=7)
    assert choice.solver == BatchFrankWolfe(seed=7)
    assert "inner product of its own" in choice.reason
    assert minimize(problem, tol=1e-3).certificate.gap <= 1e-3


class Maximising(Multiclass):
    """A structure without the exp-oracle."""

    oracles = frozenset({"hard"})


def test_a_max_oracle_is_enough():
    random = np.random.default_rng(0)
    problem = Problem(Maximising(12, 4), multiclass_problem().features, random.integers(4, size=12), lam=0.1, n_jobs=1)
    assert isinstance(choose(problem).solver, SequentialDual)
    assert isinstance(choose(lifted(problem)).solver, BatchFrankWolfe)
    assert minimize(problem, tol=1e-3).certificate.gap <= 1e-3


def rows(kind, count=120, width=16):
    """Inputs of tokens: numbers that vary in all directions, hardly beside their mean, or zeros for the most part."""
    X = np.random.default_rng(0).normal(size=(count, width))
    return {"even": X, "one direction": X + 3.0, "zeros": np.where(np.abs(X) > 1.0, X, 0.0)}[kind]


def chains(X, node=Dense, labels=3, scaled=False, **settings):
    lengths = [4] * (len(X) // 4)
    gold = np.split(np.random.default_rng(1).integers(labels, size=len(X)), np.cumsum(lengths)[:-1])
    features = chain_features(node(X, labels), labels)
    features = Stack(*(Scaled(each, 2.0) for each in features.maps)) if scaled else features
    return Problem(Chain(lengths, labels), features, gold, n_jobs=1, **settings)


def crf(X, node=Dense, scaled=False):
    return chains(X, node, scaled=scaled, temperature=1.0, lam=1.0)


def test_dense_inputs_of_a_margin_that_vary_in_many_directions_take_whole_passes():
    X = rows("even")
    weak, strong = chains(X, labels=30, lam=1 / 30), chains(X, labels=30, lam=5.0)
    assert choose(weak, 4, rtol=0.01).solver == ExcessiveGap(seed=4)
    assert isinstance(choose(weak, rtol=1e-5).solver, SequentialDual)  # its passes grow with the accuracy
    assert choose(strong).solver == BMRM()
    assert "strong" in choose(strong).reason
    for problem in (weak, strong):
        assert "dense inputs that vary in many directions" in choose(problem, rtol=0.02).reason
        result = minimize(problem, tol=0.0, rtol=0.02)
        assert result.converged
        other = minimize(problem, SequentialDual(), tol=0.0, rtol=0.02)
        assert max(result.certificate.dual, other.certificate.dual) <= result.certificate.primal


def test_other_dense_inputs_are_visited():
    visited = (
        chains(rows("one direction"), labels=30, lam=0.1),
        chains(rows("zeros"), labels=30, lam=0.1),
        chains(rows("even"), labels=3, lam=0.1),  # few weights at every position
        Problem(Multiclass(120, 30), Dense(rows("even"), 30), [0] * 120, lam=0.1, n_jobs=1),  # single rows
    )
    for problem in visited:
        assert isinstance(choose(problem).solver, SequentialDual)


@pytest.mark.parametrize("scaled", [False, True])
def test_dense_inputs_of_a_crf_that_vary_in_many_directions_take_whole_passes(scaled):
    choice = choose(crf(rows("even"), scaled=scaled))
    assert choice.solver == LBFGS()
    assert "dense inputs that vary in many directions" in choice.reason
    assert choose(chains(rows("even"), temperature=1.0, lam=0.1, l1=0.01)).solver == OWLQN()
    assert isinstance(choose(chains(rows("zeros"), temperature=1.0, lam=0.1, l1=0.01)).solver, SparseDualAscent)
    for kind in ("one direction", "zeros"):
        assert isinstance(choose(crf(rows(kind), scaled=scaled)).solver, DualAscent)
    assert isinstance(choose(crf(rows("even"), lambda X, labels: Sparse(csr_array(X), labels))).solver, DualAscent)
    assert isinstance(choose(crf(np.zeros((8, 2)))).solver, DualAscent)


def test_the_user_named_a_solver():
    assert minimize(chain_problem(), "excessive_gap", tol=0.1).reason == ""


def test_an_estimator_tells_what_was_chosen():
    X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]]
    tagger = SequenceTagger(random_state=4).fit(X, y)
    assert tagger.solver_ == SequentialDual(seed=4)
    assert "visited one by one" in tagger.reason_
