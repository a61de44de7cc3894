import signal
import time

import numpy as np
import pytest

import m3n
from m3n import Status, compare
from m3n.solvers import ExcessiveGap
from m3n.structures import Multiclass
from tests.comparison.small_solvers import Accident, Blind, FrankWolfe, Plain
from tests.tiny import Enumerated, chain_problem, multiclass_problem


@pytest.fixture
def counted(monkeypatch):
    """Real oracle calls of the structure, in examples."""
    real = {"hard": 0, "soft": 0}
    for name in real:
        original = getattr(Multiclass, name)

        def counting(self, *args, original=original, name=name, **kwargs):
            real[name] += self.n
            return original(self, *args, **kwargs)

        monkeypatch.setattr(Multiclass, name, counting)
    return real


def test_every_solver_gets_what_minimize_would_give_it():
    problem = chain_problem()
    comparison = compare(problem, [ExcessiveGap(), FrankWolfe()], tol=1e-2, max_passes=2000)
    optimum = Enumerated.of(problem).optimum()
    for entry in comparison.entries:
        alone = m3n.minimize(problem, entry.solver, tol=1e-2)
        assert entry.status is Status.TOLERANCE
        assert entry.gap <= 1e-2
        assert entry.dual <= optimum + 1e-9 <= entry.primal + 2e-9
        assert (entry.primal, entry.dual) == (alone.certificate.primal, alone.certificate.dual)
        assert [r.gap for r in entry.trace] == [r.gap for r in alone.trace]
    assert comparison.best.dual <= optimum + 1e-9 <= comparison.best.primal + 2e-9
    assert comparison.best.gap <= min(entry.gap for entry in comparison.entries)
    assert comparison.contradiction == ""
    assert comparison.notes == ()


def test_counters_are_real_calls_and_certificates_stand_apart(counted):
    problem = multiclass_problem()
    totals = []

    def watch(snapshot):
        totals.append((counted["hard"], counted["soft"]))

    comparison = compare(problem, [FrankWolfe(), ExcessiveGap()], tol=0.0, max_passes=30, callbacks=[watch])
    fw, eg = comparison.entries
    split = len(fw.trace)
    spans = [(totals[0], totals[split - 1]), (totals[split], totals[-1])]  # from w = 0 to the last certificate
    for entry, (first, last) in zip(comparison.entries, spans, strict=True):
        hard, soft = last[0] - first[0] + problem.n, last[1] - first[1]  # J(0) comes before the first record
        assert (entry.hard_calls + entry.evaluation_calls, entry.soft_calls) == (hard, soft)
        assert entry.passes == (entry.hard_calls + entry.soft_calls) / problem.n == 30
        assert entry.evaluation_passes == len(entry.trace)
    assert fw.soft_calls == 0
    assert eg.hard_calls == 0


def test_certificates_of_a_crf_call_the_exp_oracle():
    class Smooth(ExcessiveGap):
        requires_smooth = frozenset({"hard", "soft"})
        rate_smooth = "log(1 / eps)"

        def init(self, problem):
            return Blind().init(problem)

        def step(self, problem, state):
            return Blind().step(problem, state)

    (entry,) = compare(chain_problem(temperature=1.0), [Smooth()], tol=0.0, max_passes=10).entries
    assert entry.soft_calls == 0 < entry.evaluation_calls
    assert entry.hard_calls == 10 * entry.n
    assert entry.rate == "log(1 / eps)"
    assert entry.expected_exponent is None


def test_slow_evaluation_is_not_charged():
    begin = time.perf_counter()
    slow = compare(
        chain_problem(), [FrankWolfe()], tol=0.0, max_passes=20, callbacks=[lambda snapshot: time.sleep(0.05)]
    ).entries[0]
    whole = time.perf_counter() - begin
    pauses = 0.05 * (len(slow.trace) - 1)  # those before the last record
    assert len(slow.trace) > 5
    assert slow.evaluation_seconds >= pauses
    assert slow.seconds <= whole - pauses
    assert slow.seconds < 0.05  # twenty tiny passes


def test_slow_certificates_are_not_charged(monkeypatch):
    problem, honest = chain_problem(), m3n.Problem.primal

    def slow(self, w):
        time.sleep(0.05)
        return honest(self, w)

    monkeypatch.setattr(m3n.Problem, "primal", slow)
    (entry,) = compare(problem, [FrankWolfe()], tol=0.0, max_passes=20).entries
    assert entry.evaluation_seconds >= 0.05 * (len(entry.trace) - 1)
    assert entry.seconds < 0.05


def test_the_budget_of_seconds_is_the_solvers_own():
    pauses = [lambda snapshot: time.sleep(0.03)]
    (entry,) = compare(
        chain_problem(), [Blind(pause=0.002)], tol=0.0, max_passes=None, max_seconds=0.1, callbacks=pauses
    ).entries
    assert entry.status is Status.TIME_LIMIT
    assert 0.1 <= entry.seconds < 0.5
    assert entry.evaluation_seconds > 0.1


def test_warming_up_is_not_timed():
    """A solver whose first steps of all are slow, as if they compiled."""

    class Cold(Blind):
        steps = 0

        def step(self, problem, state):
            time.sleep(0.2 if Cold.steps < 1 else 0.0)
            Cold.steps += 1
            return super().step(problem, state)

    (entry,) = compare(chain_problem(), [Cold()], tol=0.0, max_passes=10).entries
    assert entry.status is Status.PASS_LIMIT
    assert entry.passes == 10
    assert entry.seconds < 0.1
    assert Cold.steps > 10


def test_without_a_dual_there_is_no_gap():
    problem = chain_problem()
    comparison = compare(problem, [Blind(), ExcessiveGap()], tol=1e-3, max_passes=500)
    blind, sighted = comparison.entries
    assert not blind.own_dual
    assert blind.gap is blind.dual is blind.exponent is None
    assert blind.primal == pytest.approx(
        m3n.minimize(problem, Blind(), tol=0.0, max_passes=550).certificate.primal, 0.1
    )
    assert sighted.own_dual
    assert comparison.notes == ("Blind has no dual point of its own, hence no gap",)
    assert comparison.primal_gap_at(blind.trace[-1]) == blind.primal - sighted.dual


def test_native_quantities_are_recorded():
    problem = chain_problem()
    comparison = compare(problem, [FrankWolfe(), Blind(), ExcessiveGap()], tol=0.0, max_passes=20)
    fw, blind, eg = comparison.entries
    state, slopes = FrankWolfe().init(problem), {}
    for k in range(1, 21):
        state = FrankWolfe().step(problem, state)
        slopes[k] = state.metrics["linearised gap"]
    values = [fw.native_at(record) for record in fw.trace]
    assert values[0] is None  # before the solver has begun
    assert values[-1] == fw.native
    assert values[1:] == [slopes[record.metrics["steps"]] for record in fw.trace[1:]]
    assert blind.native is None
    assert eg.native == eg.trace[-1].metrics["bound"]


def test_memory_is_that_of_the_state():
    problem = chain_problem()
    comparison = compare(problem, [Blind(), ExcessiveGap(memory=0, warm=0)], tol=0.0, max_passes=20)
    blind, eg = comparison.entries
    assert blind.memory == 8 * problem.dim
    assert eg.memory == 3 * 8 * problem.dim + 8  # w, alpha, the oracle's answer, and a Gram matrix of one number


def test_refusals_and_accidents_get_a_line_and_the_others_go_on():
    problem = multiclass_problem()
    problem.structure.oracles = frozenset({"hard"})
    comparison = compare(problem, [ExcessiveGap(), Accident(), Plain(), FrankWolfe()], tol=1e-2, max_passes=500)
    refused, broken, plain, good = comparison.entries
    fitting = ["BMRM", "BatchFrankWolfe", "BlockFrankWolfe", "SequentialDual", "StructSVM", "Subgradient"]
    assert refused.error == (
        f"refused: ExcessiveGap needs the exp-oracle, which Multiclass does not offer; choose from {fitting}"
    )
    assert (refused.status, refused.outcome, refused.trace) == (None, "refused", ())
    assert broken.error == "failed: ZeroDivisionError: in step 20"
    assert broken.outcome == "failed"
    assert len(broken.trace) > 5  # what it had done is kept
    assert 10 <= broken.passes <= 20
    assert plain.outcome == "refused"
    assert good.status is Status.TOLERANCE
    assert "Accident: failed: ZeroDivisionError: in step 20" in comparison.notes


def test_a_crf_is_refused_by_name():
    (entry,) = compare(chain_problem(temperature=1.0), [FrankWolfe()]).entries
    assert entry.outcome == "refused"
    assert "trains max-margin networks only" in entry.error


def test_control_c_ends_the_solver_and_the_race():
    def interrupt(snapshot):
        if snapshot.record.passes > 20:
            signal.raise_signal(signal.SIGINT)

    comparison = compare(chain_problem(), [FrankWolfe(), Blind()], tol=0.0, max_passes=200, callbacks=[interrupt])
    assert [entry.name for entry in comparison.entries] == ["FrankWolfe"]
    assert comparison.entries[0].status is Status.INTERRUPTED
    assert comparison.interrupted
    assert 20 < comparison.entries[0].trace[-1].passes < 100
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_control_c_while_warming_up():
    comparison = compare(chain_problem(), [FrankWolfe(), Accident(at=0, raises=KeyboardInterrupt), Blind()], tol=0.1)
    assert [entry.status for entry in comparison.entries] == [Status.TOLERANCE, Status.INTERRUPTED]
    assert comparison.entries[1].trace == ()


def test_control_c_between_two_runs(monkeypatch):
    from m3n.comparison import run

    monkeypatch.setattr(run, "ProgressBar", lambda **settings: (_ for _ in ()).throw(KeyboardInterrupt))
    assert compare(chain_problem(), [FrankWolfe()], progress=True).entries == ()


def test_solvers_that_contradict_each_other_are_noticed():
    problem = chain_problem()
    honest = compare(problem, [FrankWolfe(), ExcessiveGap()], tol=1e-4, max_passes=300)
    assert honest.contradiction == ""
    fw, eg = honest.entries
    assert eg.primal < fw.primal
    lie = (eg.primal + fw.primal) / 2 - fw.dual  # too much beside the other solver, not too much by itself
    comparison = compare(problem, [FrankWolfe(lie=lie), ExcessiveGap()], tol=1e-4, max_passes=300)
    assert [entry.error for entry in comparison.entries] == ["", ""]
    assert "exceeds the primal value" in comparison.contradiction
    assert f"of {comparison.entries[0].name} exceeds" in comparison.contradiction
    assert comparison.notes[-1] == comparison.contradiction


def test_a_certificate_that_nobody_improved_is_explained():
    comparison = compare(chain_problem(lam=1e-3), [ExcessiveGap(schedule="paper")], tol=0.0, max_passes=20)
    assert "nothing better than w = 0" in comparison.notes[0]


def test_same_race_same_numbers():
    one, two = (compare(chain_problem(), [ExcessiveGap(), FrankWolfe()], tol=0.0, max_passes=40) for _ in range(2))
    for a, b in zip(one.entries, two.entries, strict=True):
        assert [(r.primal, r.dual, r.hard_calls, r.soft_calls) for r in a.trace] == [
            (r.primal, r.dual, r.hard_calls, r.soft_calls) for r in b.trace
        ]
        assert a.exponent == b.exponent


def test_order_does_not_matter():
    solvers = [ExcessiveGap(), FrankWolfe()]
    there, back = (compare(chain_problem(), order, tol=0.0, max_passes=30) for order in (solvers, solvers[::-1]))
    for entry in there.entries:
        assert (entry.primal, entry.dual, entry.passes) == (
            back[entry.name].primal,
            back[entry.name].dual,
            back[entry.name].passes,
        )


def test_bad_limits_are_refused_before_any_work():
    problem = chain_problem()
    for limit in ("tol", "max_passes", "max_seconds"):
        with pytest.raises(ValueError, match=f"{limit} must not be negative"):
            compare(problem, [FrankWolfe()], **{limit: -1.0})
    assert problem.passes == 0


def test_progress_says_which_solver_runs(capsys):
    compare(chain_problem(), [FrankWolfe(), Blind()], tol=1e-2, max_passes=50, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "1/2 FrankWolfe pass" in shown.err
    last = shown.err.splitlines()[-1]
    assert "2/2 Blind pass" in last
    assert "primal" in last
    assert "gap" not in last  # it has none
    assert all(len(line) <= 80 for line in shown.err.splitlines())


def test_a_race_without_any_budget_shows_the_start():
    for limit in ("max_passes", "max_seconds"):
        (entry,) = compare(chain_problem(), [FrankWolfe()], **{limit: 0.0}, progress=True).entries
        assert entry.error == ""
        assert entry.passes == 0
        assert entry.gap > 0


def test_entries_can_be_asked_for_by_name():
    comparison = compare(chain_problem(), {"mine": FrankWolfe()}, max_passes=5)
    assert comparison["mine"] is comparison.entries[0]
    with pytest.raises(KeyError, match=r"no solver 'yours' in this comparison; there are \['mine'\]"):
        comparison["yours"]
    assert comparison.problem["n"] == 4
    assert np.isfinite(comparison.best.gap)
