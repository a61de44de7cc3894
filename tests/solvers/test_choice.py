"""What ``solver="auto"`` takes, and what it says about it."""

import numpy as np
import pytest

from m3n import Problem, SequenceTagger, minimize
from m3n.solvers import BatchFrankWolfe, BlockFrankWolfe, SequentialDual, choose
from m3n.structures import Multiclass
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


def test_the_user_named_a_solver():
    assert minimize(chain_problem(), "excessive_gap", tol=0.1).reason == ""


def test_an_estimator_tells_what_was_chosen():
    X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]]
    tagger = SequenceTagger(random_state=4).fit(X, y)
    assert tagger.solver_ == SequentialDual(seed=4)
    assert "visited one by one" in tagger.reason_
