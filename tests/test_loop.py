import itertools
import logging
import signal
import threading
import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from m3n import BrokenOracle, Certificate, MissingOracle, Record, Status, WrongObjective, minimize
from m3n.compiled.progress import progress
from m3n.run.callbacks import ProgressBar, seconds_left
from m3n.run.loop import Snapshot
from m3n.solvers import BlockFrankWolfe, ExcessiveGap, Solver, resolve_solver
from m3n.structures import Multiclass
from tests.tiny import Enumerated, chain_problem, multiclass_problem

INNER = ExcessiveGap()


@dataclass(frozen=True)
class Scripted(Solver):
    """The excessive gap method with an accident at some step."""

    at: int = 5
    raises: type = KeyboardInterrupt
    requires = frozenset({"hard", "soft"})

    def init(self, problem):
        if self.at == 0:
            raise self.raises
        return INNER.init(problem)

    def step(self, problem, state):
        if state.k >= self.at:
            raise self.raises
        return INNER.step(problem, state)


def test_tolerance():
    problem = chain_problem()
    result = minimize(problem, tol=1e-2)
    assert result.status is Status.TOLERANCE
    assert str(result.status) == "tolerance reached"
    assert result.converged
    assert result.certificate.gap <= 1e-2
    assert result.certificate.primal == pytest.approx(problem.primal(result.w), abs=1e-12)
    assert result.trace[-1].gap == result.certificate.gap
    assert result.seconds >= result.trace[-1].seconds > 0


def test_pass_limit_counts_certificates():
    for limit in (3, 10, 17, 40):
        problem = chain_problem()
        result = minimize(problem, "excessive_gap", tol=1e-12, max_passes=limit)
        assert result.status is Status.PASS_LIMIT
        assert problem.passes <= max(limit, 8)  # the start itself may take a few
        assert result.hard_calls == problem.hard_calls
        assert result.soft_calls == problem.soft_calls
        assert np.isfinite(result.certificate.gap)


def test_oracle_counter_equals_real_calls(monkeypatch):
    real = {"hard": 0, "soft": 0}
    for name in real:
        original = getattr(Multiclass, name)

        def counted(self, *args, original=original, name=name, **kwargs):
            real[name] += self.n
            return original(self, *args, **kwargs)

        monkeypatch.setattr(Multiclass, name, counted)
    result = minimize(multiclass_problem(), ExcessiveGap(), tol=1e-3)
    assert (result.hard_calls, result.soft_calls) == (real["hard"], real["soft"])
    last = result.trace[-1]
    assert (last.hard_calls, last.soft_calls) == (result.hard_calls, result.soft_calls)
    assert last.passes == (result.hard_calls + result.soft_calls) / 12


def test_time_limit():
    begin = time.perf_counter()
    result = minimize(chain_problem(), ExcessiveGap(), tol=0.0, max_seconds=0.2)
    assert result.status is Status.TIME_LIMIT
    assert time.perf_counter() - begin < 5.0


def own_passes(result, problem):
    last = result.trace[-1]
    return (last.hard_calls + last.soft_calls - last.evaluation_calls) / problem.n


def test_limits_can_spare_the_evaluation():
    problem = chain_problem()
    charged = minimize(problem, ExcessiveGap(), tol=0.0, max_passes=40)
    spared = minimize(problem, ExcessiveGap(), tol=0.0, max_passes=40, charge_evaluation=False)
    assert charged.status is spared.status is Status.PASS_LIMIT
    assert own_passes(spared, problem) == 40  # one pass per step: the limit is met exactly
    assert own_passes(charged, problem) < 40
    assert charged.trace[-1].passes <= 40 < spared.trace[-1].passes


def test_slow_callbacks_do_not_use_up_the_solvers_time(monkeypatch):
    """By a clock that a look at it moves by a millisecond, and a callback by twenty."""
    clock = itertools.count()

    def now():
        return next(clock) / 1000.0

    def slow_callback(snapshot):
        for _ in range(20):
            now()

    monkeypatch.setattr("m3n.run.loop.clock", now)
    slow = {"tol": 0.0, "max_seconds": 0.05, "callbacks": [slow_callback]}
    charged = minimize(chain_problem(), ExcessiveGap(), **slow)
    spared = minimize(chain_problem(), ExcessiveGap(), **slow, charge_evaluation=False)
    assert charged.status is spared.status is Status.TIME_LIMIT
    assert len(charged.trace) <= 4 < len(spared.trace)
    assert charged.trace[-1].solver_seconds < 0.05 <= spared.trace[-1].solver_seconds


def test_callback_stops_and_all_callbacks_are_called():
    seen = []
    result = minimize(chain_problem(), ExcessiveGap(), tol=0.0, callbacks=[lambda s: len(seen) >= 2, seen.append])
    assert result.status is Status.CALLBACK
    assert len(seen) == 3
    assert not seen[0].w.flags.writeable


@pytest.mark.parametrize("at", [1, 5, 30])
def test_interrupt_returns_the_best_iterate_with_its_certificate(at):
    problem = chain_problem()
    known = Enumerated.of(problem)
    result = minimize(problem, Scripted(at=at), tol=0.0)
    assert result.status is Status.INTERRUPTED
    assert result.certificate.primal == pytest.approx(known.primal(result.w))
    assert result.certificate.dual <= known.dual(known.solve()) + 1e-9


def test_interrupt_before_the_first_iterate():
    problem = chain_problem()
    result = minimize(problem, Scripted(at=0), tol=0.0)
    assert result.status is Status.INTERRUPTED
    assert not result.w.any()
    assert result.certificate.primal == pytest.approx(Enumerated.of(problem).primal(result.w))
    assert result.certificate.dual == 0.0  # all weight on gold


def test_interrupt_during_the_very_first_pass(monkeypatch):
    problem = multiclass_problem()
    honest, calls = Multiclass.hard, []

    def interrupted(self, theta, threads=None):
        calls.append(None)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return honest(self, theta)

    monkeypatch.setattr(Multiclass, "hard", interrupted)
    result = minimize(problem)
    assert result.status is Status.INTERRUPTED
    assert result.certificate == Certificate(1.0, 0.0)  # w = 0 misses every label by a loss of 1


def test_a_callback_may_stop_before_the_solver_begins():
    result = minimize(multiclass_problem(), callbacks=[lambda snapshot: True])
    assert result.status is Status.CALLBACK
    assert len(result.trace) == 1
    assert result.soft_calls == 0


def test_a_real_control_c():
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    result = minimize(chain_problem(n_jobs=2), ExcessiveGap(), tol=0.0, max_seconds=20)
    timer.join()
    assert result.status is Status.INTERRUPTED
    assert 0 <= result.certificate.gap < 10
    assert signal.getsignal(signal.SIGINT) is before


def test_control_c_is_not_lost_where_exceptions_are_ignored():
    """A signal that arrives inside a destructor: an exception raised there would vanish."""

    class Dying:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def make_garbage(snapshot):
        if snapshot.record.passes > 20:
            Dying()

    result = minimize(chain_problem(), ExcessiveGap(), tol=0.0, max_seconds=20, callbacks=[make_garbage])
    assert result.status is Status.INTERRUPTED


def test_compilation_is_not_charged():
    def compile_something(_):
        with progress.measured():
            time.sleep(0.1)

    callbacks = [compile_something]
    result = minimize(chain_problem(), ExcessiveGap(), tol=0.0, max_passes=20, max_seconds=0.25, callbacks=callbacks)
    assert len(result.trace) > 3
    assert result.status is Status.PASS_LIMIT
    assert result.seconds < 0.25


def test_the_second_control_c_does_not_wait():
    @dataclass(frozen=True)
    class Endless(Solver):
        requires = frozenset({"hard"})

        def init(self, problem):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("the second one must raise")

    result = minimize(chain_problem(), Endless())
    assert result.status is Status.INTERRUPTED
    assert not result.w.any()


def test_runs_outside_of_the_main_thread():
    results = []
    thread = threading.Thread(target=lambda: results.append(minimize(chain_problem(), tol=1e-2)))
    thread.start()
    thread.join()
    assert results[0].converged


def test_other_errors_are_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        minimize(chain_problem(), Scripted(raises=ZeroDivisionError))


def test_resume_goes_on_where_it_stopped():
    whole = minimize(chain_problem(), ExcessiveGap(), tol=0.0, max_passes=101)
    problem = chain_problem()
    first = minimize(problem, ExcessiveGap(), tol=0.0, max_passes=61)
    second = minimize(problem, ExcessiveGap(), tol=1e-3, resume=first)
    assert second.converged
    assert second.certificate.gap <= min(1e-3, first.certificate.gap)
    assert second.state.k > first.state.k
    assert whole.state.k > first.state.k
    assert minimize(problem, ExcessiveGap(), tol=1e-3, resume=second).trace == []  # nothing left to do
    with pytest.raises(ValueError, match="belongs to another problem"):
        minimize(chain_problem(seed=1), ExcessiveGap(), resume=first)
    with pytest.raises(ValueError, match="cannot resume a run of ExcessiveGap with Scripted"):
        minimize(problem, Scripted(), resume=first)


def test_gap_never_negative_and_trace_monotone():
    trace = minimize(multiclass_problem(), tol=1e-6).trace
    assert all(r.gap >= 0 and r.gap == r.primal - r.dual for r in trace)
    assert all(a.primal >= b.primal and a.dual <= b.dual for a, b in pairwise(trace))


def test_certificate_takes_the_safe_side_of_rounding():
    certificate = Certificate(1.0, 0.5).improved(2.0, dual=1.0 + 1e-15)
    assert certificate.gap == 0.0
    assert certificate.dual == 1.0
    assert str(Certificate(1.0, 0.5)) == "primal 1, dual 0.5, gap 0.5"


def test_missing_oracle_names_both():
    problem = multiclass_problem()
    problem.structure.oracles = frozenset({"hard"})
    with pytest.raises(MissingOracle, match="ExcessiveGap needs the exp-oracle, which Multiclass does not offer"):
        minimize(problem, ExcessiveGap())
    problem.structure.oracles = frozenset({"soft"})
    with pytest.raises(MissingOracle, match="a certificate needs the max-oracle, which Multiclass does not offer"):
        minimize(problem, ExcessiveGap())
    with pytest.raises(MissingOracle, match="Scripted needs the max-oracle, which Multiclass does not offer"):
        minimize(problem, Scripted())


def test_missing_oracles_come_with_the_solvers_that_can_go_on():
    problem = multiclass_problem()
    problem.structure.oracles = frozenset({"hard"})
    words = r"exp-oracle.*; choose from \['BMRM', 'BatchFrankWolfe', 'BlockFrankWolfe', 'SequentialDual', 'StructSVM', "
    with pytest.raises(MissingOracle, match=words + r"'Subgradient'\]"):
        minimize(problem, ExcessiveGap())
    with pytest.raises(MissingOracle, match=r"SMO needs the min-oracle on the support .*; choose from \['BMRM'"):
        minimize(problem, "smo")
    problem.structure.oracles = frozenset({"soft"})
    with pytest.raises(MissingOracle, match=r"max-oracle.*; no solver can go on at temperature 0"):
        minimize(problem, ExcessiveGap())
    smooth = multiclass_problem(temperature=1.0)
    smooth.structure.oracles = frozenset({"hard"})
    with pytest.raises(MissingOracle, match=r"exp-oracle.*; no solver can go on at temperature 1"):
        minimize(smooth, "lbfgs")
    assert BlockFrankWolfe().fits(multiclass_problem())
    assert not BlockFrankWolfe().fits(problem)


def test_marginals_of_no_distribution_are_noticed(monkeypatch):
    honest = Multiclass.soft

    def lying(self, theta, mu, threads=None):
        values, marginals = honest(self, theta, mu)
        marginals[0][:] = 0.5 * marginals[0] + 0.5  # expected losses and features that no distribution has
        return values, marginals

    monkeypatch.setattr(Multiclass, "soft", lying)
    with pytest.raises(BrokenOracle, match=r"the dual value .* exceeds the primal value"):
        minimize(multiclass_problem(), ExcessiveGap(), tol=1e-6, max_passes=2000)


@pytest.mark.parametrize("limit", ["tol", "rtol", "max_passes", "max_seconds"])
def test_bad_limits_are_refused(limit):
    for value in (-1.0, float("nan")):
        with pytest.raises(ValueError, match=f"{limit} must not be negative"):
            minimize(chain_problem(), **{limit: value})


def test_solver_names():
    assert isinstance(resolve_solver("excessive_gap").solver, ExcessiveGap)
    assert resolve_solver("block_frank_wolfe", seed=3).solver.seed == 3
    solver = ExcessiveGap(strength=1.0)
    assert resolve_solver(solver).solver is solver
    assert resolve_solver(solver).reason == ""
    with pytest.raises(ValueError, match="unknown solver 'sgd'; choose 'auto', a solver object or one of"):
        resolve_solver("sgd")


def test_a_solver_must_define_its_functions():
    class Empty(Solver):
        requires = frozenset()

    with pytest.raises(TypeError, match="Empty does not define init"):
        minimize(chain_problem(), Empty())
    with pytest.raises(TypeError, match="Empty does not define step"):
        Empty().step(chain_problem(), None)


def test_the_run_is_logged(caplog):
    with caplog.at_level(logging.INFO, logger="m3n"):
        minimize(chain_problem(), tol=1e-2)
    assert "tolerance reached after" in caplog.text


class Blind:
    dual = -np.inf


def snapshot(seconds=10.0, gap=0.1, passes=50.0, **goal):
    record = Record(passes, seconds, 0, 0, 1.0, 1.0 - gap, gap)
    return Snapshot(record, np.zeros(1), **{"tol": 1e-3, "max_passes": np.inf, "max_seconds": np.inf, **goal})


def test_progress_bar_shows_the_certificate():
    from io import StringIO

    from rich.console import Console

    text = StringIO()
    with ProgressBar(Console(file=text, force_terminal=True, width=80)) as bar:
        bar(snapshot(seconds=1.0, gap=1.0, passes=5.0))
        bar(snapshot(seconds=10.0, gap=0.01, passes=50.0))
    shown = text.getvalue()
    assert "…" not in shown  # nothing is cut off
    assert "pass 50" in shown
    assert "gap 1.0e-02" in shown
    assert "left" in shown


@pytest.mark.parametrize("state, value", [(None, "gap 1.0e-02 "), (Blind(), "primal 1 ")])
def test_progress_bar_with_a_label_fits_as_well(state, value):
    from dataclasses import replace
    from io import StringIO

    from rich.console import Console

    text = StringIO()
    with ProgressBar(Console(file=text, force_terminal=True, width=80), label="3/9 " + 30 * "X") as bar:
        bar(snapshot(seconds=1.0, gap=1.0, passes=5.0))
        bar(replace(snapshot(seconds=100.0, gap=0.01, passes=500.0), state=state))
    shown = text.getvalue()
    assert "3/9 " + 21 * "X" + "… pass 500 " + value in shown  # without a dual there is no gap to show
    assert "left" in shown


def test_time_left_follows_the_power_law():
    history = [(1.0, 1.0), (5.0, 0.04), (10.0, 0.01)]  # gap = seconds^-2
    assert seconds_left(history, snapshot(gap=0.01, tol=1e-4)) == pytest.approx(90.0)
    assert seconds_left(history, snapshot(gap=0.01, tol=1e-4, max_seconds=30.0)) == pytest.approx(20.0)
    assert seconds_left(history, snapshot(gap=0.01, tol=1e-4, max_passes=100.0)) == pytest.approx(10.0)
    assert seconds_left([(10.0, 0.1)], snapshot(tol=1e-4)) is None


def test_a_max_margin_solver_refuses_a_crf():
    with pytest.raises(WrongObjective, match="ExcessiveGap trains max-margin networks only"):
        minimize(chain_problem(temperature=1.0), ExcessiveGap())


def test_auto_trains_crfs_too():
    result = minimize(chain_problem(temperature=1.0), tol=1e-6)
    assert result.converged
    assert type(result.solver).__name__ == "DualAscent"
    assert type(minimize(chain_problem(), tol=1e-3).solver).__name__ == "SequentialDual"


def test_a_relative_tolerance_ends_the_run():
    loose = minimize(chain_problem(), ExcessiveGap(), tol=0.0, rtol=0.05)
    strict = minimize(chain_problem(), ExcessiveGap(), tol=0.0, rtol=1e-3)
    for result, rtol in ((loose, 0.05), (strict, 1e-3)):
        assert result.status is Status.TOLERANCE
        assert result.certificate.gap <= rtol * result.certificate.primal
        assert all(record.gap > rtol * record.primal for record in result.trace[:-1])
    assert loose.trace[-1].passes < strict.trace[-1].passes


def test_the_looser_of_both_tolerances_counts():
    seen = []
    result = minimize(chain_problem(), ExcessiveGap(), tol=0.1, rtol=1e-9, callbacks=[lambda s: seen.append(s.tol)])
    assert result.status is Status.TOLERANCE
    assert 1e-3 < result.certificate.gap <= 0.1
    assert seen == [0.1] * len(seen)


class Certifying(ExcessiveGap):
    """Says that it knows J whenever it is worth while, which is never."""

    certifies = True


def test_a_solver_that_certifies_itself_is_left_alone():
    alone = minimize(chain_problem(), ExcessiveGap(), tol=0.0, max_passes=40)
    left = minimize(chain_problem(), Certifying(), tol=0.0, max_passes=40)
    assert len(left.trace) == 2  # the start and the end
    assert len(alone.trace) > 5


def test_what_a_solver_does_not_know_yet_is_not_recorded():
    trace = minimize(chain_problem(), ExcessiveGap(), tol=1e-2).trace
    assert all(np.isfinite(list(record.metrics.values())).all() for record in trace)
    assert "mu" in trace[-1].metrics
