"""Early stopping on held-out scores: what is kept, when it ends, and that the certificate is that of what is kept."""

import numpy as np
import pytest

from m3n import Status, minimize
from m3n.callbacks import HeldOut
from m3n.solvers import LBFGS, DualAscent, ExcessiveGap, SequentialDual
from tests.tiny import Enumerated, chain_problem


class Script:
    """Scores in a fixed order, whatever the weights are; the last one from then on."""

    def __init__(self, *scores):
        self.scores, self.seen = list(scores), []

    def __call__(self, w):
        self.seen.append(np.array(w))
        return self.scores[min(len(self.seen), len(self.scores)) - 1]


@pytest.mark.parametrize(
    ("solver", "temperature"), [(SequentialDual(), 0.0), (ExcessiveGap(), 0.0), (LBFGS(), 1.0), (DualAscent(), 1.0)]
)
def test_the_best_weights_come_back_with_their_own_certificate(solver, temperature):
    problem = chain_problem(seed=3, temperature=temperature, lam=0.01)
    script = Script(0.1, 0.3, 0.2)
    result = minimize(problem, solver, tol=1e-9, max_passes=500, callbacks=[HeldOut(script, patience=3)])
    known = Enumerated.of(problem)
    np.testing.assert_array_equal(result.w, script.seen[1])
    assert result.status is Status.HELD_OUT
    assert not result.converged
    assert result.certificate.primal == pytest.approx(known.primal(result.w), abs=1e-9)
    assert result.certificate.dual <= known.best + 1e-8 <= result.certificate.primal + 2e-8
    assert len(script.seen) == 5  # the second was the best, and then patience
    scores = [record.metrics["held_out"] for record in result.trace]
    assert list(dict.fromkeys(scores)) == [0.1, 0.3, 0.2]
    assert result.certificate.dual == result.trace[-1].dual  # the best bound of the whole run


def test_nothing_changes_while_scores_rise():
    problem = chain_problem(seed=3)
    watch = HeldOut(lambda w: -problem.primal(w), patience=1)
    result, plain = (minimize(chain_problem(seed=3), SequentialDual(), tol=1e-3, callbacks=c) for c in ([watch], []))
    assert result.status is plain.status is Status.TOLERANCE
    np.testing.assert_array_equal(result.w, plain.w)
    assert result.certificate == plain.certificate


def test_equal_scores_keep_the_lower_objective_and_cost_patience():
    script = Script(0.5)
    result = minimize(chain_problem(seed=3), SequentialDual(), tol=1e-9, callbacks=[HeldOut(script, patience=4)])
    assert len(script.seen) == 5
    assert result.certificate.primal == result.trace[-1].primal < result.trace[0].primal


def test_a_tolerance_that_the_kept_weights_miss_is_not_claimed():
    result = minimize(chain_problem(seed=3), SequentialDual(), tol=1e-3, callbacks=[HeldOut(Script(1.0, 0.0), 1000)])
    assert result.status is Status.HELD_OUT
    assert result.certificate.gap > 1e-3
    assert not result.w.any()
    limited = minimize(chain_problem(seed=3), "bmrm", tol=0.0, max_passes=5, callbacks=[HeldOut(Script(1.0, 0.0), 99)])
    assert limited.status is Status.PASS_LIMIT


def test_weights_that_stay_are_not_scored_again_and_runs_do_not_mix():
    watch = HeldOut(script := Script(0.1, 0.2, 0.3, 0.4), patience=100)
    first = minimize(chain_problem(seed=3), SequentialDual(), tol=1e-4, callbacks=[watch])
    assert len(script.seen) == len({w.tobytes() for w in script.seen}) <= len(first.trace)
    again = minimize(chain_problem(seed=3), SequentialDual(), tol=1e-4, callbacks=[watch])
    np.testing.assert_array_equal(first.w, again.w)


def test_a_run_that_was_ended_by_its_scores_can_be_resumed():
    problem = chain_problem(seed=3)
    result = minimize(problem, SequentialDual(), tol=1e-6, callbacks=[HeldOut(Script(0.5, 0.9, 0.1), patience=2)])
    assert result.status is Status.HELD_OUT
    more = minimize(problem, SequentialDual(), tol=1e-6, resume=result)
    assert more.converged
    assert more.certificate.gap <= 1e-6


def test_patience_is_checked():
    with pytest.raises(ValueError, match="patience must be at least 1, got 0"):
        HeldOut(lambda w: 0.0, patience=0)
