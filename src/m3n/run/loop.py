"""Run a solver until its certificate is good enough; the loop itself is ``m3n.run.steps``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from m3n.cluster import Backend, placed
from m3n.compiled.ahead import expect
from m3n.compiled.progress import clock
from m3n.packed.threads import single_threaded_blas
from m3n.problem import EngineLost, Objective
from m3n.run.certificate import Certificate, Record
from m3n.run.fingerprint import Fingerprint
from m3n.run.memory import check_memory
from m3n.run.radius import plain_radius, radius_around
from m3n.run.steps import Interrupt, repeat
from m3n.run.suitability import check_fit
from m3n.solvers import Choice, Solver, resolve_solver
from m3n.solvers.base import at_least

log = logging.getLogger("m3n")

PROMISING = 1.1  # an estimate of the gap that near to the tolerance is worth a certificate
ROUNDING = 1e-8  # relative; objectives are sums over the data and agree to 1e-12 or so, contradictions are larger


class Status(StrEnum):
    """Why a run stopped."""

    TOLERANCE = "tolerance reached"
    PASS_LIMIT = "pass limit"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    STALLED = "no further progress"
    CALLBACK = "stopped by a callback"
    HELD_OUT = "no better on held-out data"
    FINAL = "predictions are final"
    LOST = "workers lost"


class BrokenOracle(ArithmeticError):
    """A dual value above a primal one: the oracles' answers do not belong to one problem."""


@dataclass(frozen=True)
class Result:
    """The outcome of a run.

    Attributes
    ----------
    w : array (dim,)
        The weights with the lowest certified objective.
    certificate : Certificate
        primal = J(w), dual = best lower bound, gap.
    status : Status
        Why the run stopped.
    trace : list of Record
        What was known when.
    hard_calls, soft_calls : int
        Oracle calls of this run, counted in examples.
    seconds : float
        Wall-clock time, without that of compilation.
    solver : Solver
        The solver with all its settings.
    reason : str
        Why ``solver="auto"`` chose it; empty if the caller did.
    state : object
        The solver's last state, from which ``minimize(..., resume=result)`` goes on.
    fingerprint : Fingerprint or None
        What was minimised, and how: a run is resumed for nothing else.
    radius : float
        No weights that are optimal are farther from ``w`` than this, in the norm of the regulariser.
    """

    w: np.ndarray
    certificate: Certificate
    status: Status
    trace: list[Record]
    hard_calls: int
    soft_calls: int
    seconds: float
    solver: Solver[Any]
    reason: str
    state: Any = field(repr=False)
    fingerprint: Fingerprint | None = field(default=None, repr=False, compare=False)
    radius: float = np.inf

    @property
    def converged(self) -> bool:
        """Whether the requested tolerance was reached."""
        return self.status is Status.TOLERANCE


@dataclass(frozen=True)
class Snapshot:
    """What a callback sees.

    Attributes
    ----------
    record : Record
        The newest record of the trace.
    w : array (dim,)
        The best weights so far, read-only.
    tol, max_passes, max_seconds : float
        The goal, the larger one of the two tolerances as a gap, and the limits; infinite where there is no limit.
    state : object
        The solver's state, to look at only; None before the solver has begun.
    result : Result or None
        What the run would return if it ended here; None before the solver has begun.
    """

    record: Record
    w: np.ndarray
    tol: float
    max_passes: float
    max_seconds: float
    state: Any = None
    result: Result | None = None


Callback = Callable[[Snapshot], bool | None]


def minimize(
    problem: Objective,
    solver: Solver[Any] | str = "auto",
    *,
    tol: float = 1e-3,
    rtol: float = 0.0,
    max_passes: float | None = None,
    max_seconds: float | None = None,
    callbacks: Iterable[Callback] = (),
    resume: Result | None = None,
    start: Result | np.ndarray | None = None,
    seed: int | np.random.RandomState | np.random.Generator | None = 0,
    charge_evaluation: bool = True,
    backend: Backend | str | None = None,
) -> Result:
    """Minimise the problem's objective to a certified duality gap.

    Ctrl-C ends the run after the pass at hand, a second Ctrl-C at once; both return the best weights with their
    certificate.

    Parameters
    ----------
    problem : Problem
        What to minimise.
    solver : Solver or str
        A solver object, its name, or "auto": the fastest for the problem; ``Result.reason`` says why.
    tol : float
        Stop when the duality gap is at most this.
    rtol : float
        Stop when the duality gap is at most this part of the objective, if that comes first.
    max_passes : float or None
        Stop before more than this many passes over the data, certificates included.
    max_seconds : float or None
        Stop after this much time; compilation does not count.
    callbacks : iterable of callable
        Each is called with a ``Snapshot`` after every certificate; one that returns True ends the run. What it keeps
        as ``metrics`` becomes a part of the record, and its method ``choose``, if it has one, may return the result
        with other weights, as ``m3n.callbacks.HeldOut`` does.
    resume : Result or None
        Go on where an earlier run of the same solver on the very same problem stopped: no step is lost or repeated,
        and what was certified stays certified.
    start : Result, array (dim,) or None
        Begin a new run from an earlier one with another ``lam`` on the same data (``Problem.with_lam``), with a
        certificate of its own. A dual method takes over its dual point, whatever lam was, if the solver is the same;
        a solver that can begin anywhere, such as ``LBFGS`` or ``OWLQN``, takes over the weights of any result, or
        weights given as an array. A run that ends early returns these weights if they are still the best.
    seed : int, RandomState, Generator or None
        Seed of a solver that draws random numbers, if it is given by its name; a generator draws one, None another one
        every time.
    charge_evaluation : bool
        Whether certificates and callbacks count towards the limits; False limits the solver's own passes and time.
    backend : {"threads", "ray"}, Backend or None
        Where passes run: on threads of this process, or on workers, as ``m3n.Ray`` says. None takes the problem's. If
        workers are lost for good the run ends with what it knows.

    Returns
    -------
    Result
        Weights, certificate, the reason of the stop and the trace.
    """
    at_least(0, tol=tol, rtol=rtol, max_passes=max_passes, max_seconds=max_seconds)
    if resume is not None and start is not None:
        raise ValueError("give either resume, which goes on with a run, or start, which begins a new one")
    expect(_kind(problem, solver))
    with placed(problem, backend) as there:
        choice = resolve_solver(solver, seed, there, tol, rtol)
        check_fit(there, choice.solver)
        check_memory(there, choice.solver)
        passes, seconds = (np.inf if limit is None else limit for limit in (max_passes, max_seconds))
        run = _Run(there, choice, tuple(callbacks), start, charge_evaluation, tol, rtol, passes, seconds)
        if resume is not None:
            run.take_over(resume)
        with single_threaded_blas(), run.interrupt:
            return run.go()


def _kind(problem: Objective, solver: Solver[Any] | str) -> str:
    """What decides which functions a run calls, as ``tasks.json`` names it."""
    features = getattr(problem, "features", None)
    parts = (getattr(problem, "structure", None), features, *getattr(features, "maps", ()))
    objective = "smooth" if problem.temperature else problem.rescale
    name = solver if isinstance(solver, str) else type(solver).__name__
    return " ".join((*(type(part).__name__ for part in parts), objective, name))


@dataclass
class _Run:
    """A run on its way."""

    problem: Objective
    choice: Choice
    callbacks: tuple[Callback, ...]
    start: Result | np.ndarray | None
    charge_evaluation: bool
    tol: float
    rtol: float
    max_passes: float
    max_seconds: float
    state: Any = None
    trace: list[Record] = field(default_factory=list)
    certified: Any = None  # the state that the certificate speaks of
    last_passes: float = 0.0
    patience: float = 1.0  # passes until the next certificate
    evaluation_seconds: float = 0.0
    evaluation_calls: int = 0
    called_off: bool = False  # by a callback
    began_at: np.ndarray | None = None  # weights that a warm run is not to fall behind, as long as J there is unknown

    def __post_init__(self) -> None:
        problem, self.solver = self.problem, self.choice.solver
        self.fingerprint, self.interrupt = Fingerprint(problem, self.solver), Interrupt()
        self.begin, self.first_calls = clock(), (problem.hard_calls, problem.soft_calls)
        self.w = np.zeros(problem.dim)
        self.certificate = Certificate(np.inf, 0.0, problem.relaxed)  # D = 0 with all weight on gold

    def take_over(self, earlier: Result) -> None:
        """Go on where an earlier run stopped, if that was one of this problem with this solver."""
        theirs, ours = type(earlier.solver), type(self.solver)
        if theirs is not ours:
            raise ValueError(f"cannot resume a run of {theirs.__name__} with {ours.__name__}")
        difference = earlier.fingerprint.difference(self.fingerprint) if earlier.fingerprint else ""
        if difference:
            raise ValueError(f"cannot resume: the earlier result belongs to another problem or solver ({difference})")
        self.state, self.certificate, self.w = earlier.state, earlier.certificate, earlier.w

    def go(self) -> Result:
        try:
            return self._go()
        except EngineLost as error:
            if self.certificate.primal == np.inf:
                raise
            log.error("%s; what is known so far is kept, and resume= or a checkpoint goes on from there", error)
            return self._outcome(Status.LOST, None)

    def _go(self) -> Result:
        try:
            status = self._begin() or repeat(self._step, self._reason_to_stop)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        uncertified = self.certified is not self.state or self.certificate.primal == np.inf
        if status is not Status.TOLERANCE and (uncertified or self.began_at is not None):
            if uncertified:
                self._certify()
            if self.began_at is not None and self.certificate.gap > self.enough:
                self._look_back(self.began_at)
            if self.certificate.gap <= self.enough:
                status = Status.TOLERANCE
        result = self._outcome(status, self.state)
        self._end(result)
        log.info("%s after %.0f passes and %.2f s: %s", status, self.passes, result.seconds, self.certificate)
        return result

    def _outcome(self, status: Status, state: Any) -> Result:
        """The result with the weights that callbacks prefer, if any of them has a choice, and how far they may be off.

        ``state`` is the solver's, if whoever works for the run still answers.
        """
        result = self._result(status)
        for callback in self.callbacks:
            choose = getattr(callback, "choose", None)
            result = result if choose is None else choose(result)
        return replace(result, radius=radius_around(self.problem, result.w, result.certificate, state))

    def _end(self, result: Result) -> None:
        """Callbacks that need whoever works for the run, a last time."""
        for callback in self.callbacks:
            ending = getattr(callback, "ending", None)
            if ending is not None:
                ending(result)

    @property
    def enough(self) -> float:
        """The gap that is good enough: the absolute tolerance, or the relative one at the best primal value."""
        return max(self.tol, self.rtol * abs(self.certificate.primal)) if self.rtol else self.tol

    @property
    def passes(self) -> float:
        hard, soft = self.calls
        return (hard + soft) / self.problem.n

    @property
    def calls(self) -> tuple[int, int]:
        return self.problem.hard_calls - self.first_calls[0], self.problem.soft_calls - self.first_calls[1]

    @property
    def spent(self) -> tuple[float, float]:
        """Passes and seconds that count towards the limits; those of the last certificate are counted beforehand."""
        seconds = clock() - self.begin
        if self.charge_evaluation:
            return self.passes + (1 if self.began_at is None else 2), seconds
        return (sum(self.calls) - self.evaluation_calls) / self.problem.n, seconds - self.evaluation_seconds

    def _begin(self) -> Status | None:
        """The first state, after the certificate of w = 0; the state of the run that is resumed; or a warm one."""
        if self.state is not None:
            self._check_resume()
            self.first_calls = (self.problem.hard_calls, self.problem.soft_calls)  # a precaution, no part of the run
            return None
        if self.start is not None:  # w = 0 is certified too, without a pass if J(0) is known already
            self.certificate = self.certificate.improved(self.problem.worst_loss)
            w = self.start.w if isinstance(self.start, Result) else np.asarray(self.start, dtype=np.float64)
            self.state = _warm_state(self.problem, self.solver, self.start, w)
            known = not np.isnan(self.state.primal) and np.array_equal(self.state.w, w)
            self.began_at = None if known else w
            return Status.CALLBACK if self._due() and self._certify() else None
        if self._certify():
            return Status.CALLBACK
        self.state = self.solver.init(self.problem)
        return None

    def _step(self) -> None:
        self.state = self.solver.step(self.problem, self.state)
        self.called_off = self._due() and self._certify()

    def _reason_to_stop(self) -> Status | None:
        passes, seconds = self.spent
        reasons = {
            Status.CALLBACK: self.called_off,
            Status.TOLERANCE: self.certificate.gap <= self.enough,
            Status.INTERRUPTED: self.interrupt.wished,
            Status.PASS_LIMIT: passes >= self.max_passes,
            Status.TIME_LIMIT: seconds >= self.max_seconds,
            Status.STALLED: self.state.stalled,
        }
        return next((status for status, holds in reasons.items() if holds), None)

    def _due(self) -> bool:
        """Whenever a certificate is free of charge; else when ``_patience`` says so.

        A solver that certifies itself is asked in between only if its own estimate promises the tolerance.
        """
        if not np.isnan(self.state.primal):
            return True
        if self.solver.certifies:
            return float(self.state.metrics.get("duality_gap_estimate", np.inf)) <= PROMISING * self.enough
        return self.passes - self.last_passes >= self.patience - 0.5

    def _certify(self) -> bool:
        """Evaluate J exactly at the state's weights; True if a callback asks to stop."""
        begin, calls = clock(), sum(self.calls)
        self._improve()
        self.certified = self.state
        self.last_passes = self.passes
        self.evaluation_calls += sum(self.calls) - calls
        self.evaluation_seconds += clock() - begin
        record = self._record()
        self.trace.append(record)
        self.patience = _patience(self.trace, self.enough)
        log.debug("pass %.0f: %s", record.passes, self.certificate)
        result = None if self.state is None else self._result(Status.INTERRUPTED)
        limits = {"tol": self.enough, "max_passes": self.max_passes, "max_seconds": self.max_seconds}
        w = self.w.view()
        w.flags.writeable = False
        snapshot = Snapshot(record=record, w=w, state=self.state, result=result, **limits)
        begin = clock()
        wishes = [callback(snapshot) for callback in self.callbacks]  # all of them are called
        self.evaluation_seconds += clock() - begin
        for metrics in (getattr(callback, "metrics", None) for callback in self.callbacks):
            self.trace[-1] = replace(self.trace[-1], metrics={**self.trace[-1].metrics, **(metrics or {})})
        return any(wishes)

    def _improve(self) -> None:
        """The better of what was known and what the state knows."""
        if self.state is None:  # w = 0 and gold: what is known before any solver has begun
            self.certificate = self.certificate.improved(self.problem.start())
            return
        free = self.state.primal
        primal = self.problem.primal(self.state.w) if np.isnan(free) else free
        if primal < self.certificate.primal:
            self.w = self.state.w
        self.certificate = self.certificate.improved(primal, self.state.dual)
        self._check_duality(primal)

    def _look_back(self, w: np.ndarray) -> None:
        """J at the weights that a warm run began with: it has not come far enough if these are better still."""
        begin, calls = clock(), sum(self.calls)
        primal = self.problem.primal(w)
        if primal < self.certificate.primal:
            self.w = w
        self.certificate = self.certificate.improved(primal)
        self.evaluation_calls += sum(self.calls) - calls
        self.evaluation_seconds += clock() - begin
        self.trace.append(self._record())

    def _check_duality(self, primal: float) -> None:
        """Never sell a gap of 0 that comes from a dual above the primal."""
        dual = self.state.dual
        if dual - self.certificate.primal > ROUNDING * (1.0 + abs(primal) + abs(dual)):
            raise BrokenOracle(
                f"the dual value {dual} exceeds the primal value {self.certificate.primal}: the oracles of "
                f"{self.problem.name}, its feature map or its loss contradict each other; "
                "test them with m3n.checks"
            )

    def _check_resume(self) -> None:
        """The old certificate must speak of this problem."""
        primal = self.problem.primal(self.w)
        if abs(primal - self.certificate.primal) > ROUNDING * (1.0 + abs(primal)):
            raise ValueError("cannot resume: the earlier result belongs to another problem (other data or settings)")

    def _record(self) -> Record:
        known_so_far = {} if self.state is None else self.state.metrics
        metrics = {name: value for name, value in known_so_far.items() if np.isfinite(value)}
        hard, soft = self.calls
        known = self.certificate
        return Record(
            passes=self.passes, seconds=clock() - self.begin, hard_calls=hard, soft_calls=soft,
            primal=known.primal, dual=known.dual, gap=known.gap, metrics=metrics,
            evaluation_seconds=self.evaluation_seconds, evaluation_calls=self.evaluation_calls,
        )  # fmt: skip

    def _result(self, status: Status) -> Result:
        hard, soft = self.calls
        return Result(
            w=self.w, certificate=self.certificate, status=status, trace=self.trace, hard_calls=hard,
            soft_calls=soft, seconds=clock() - self.begin, solver=self.solver, reason=self.choice.reason,
            state=self.state, fingerprint=self.fingerprint, radius=plain_radius(self.certificate, self.problem.lam),
        )  # fmt: skip


def _patience(trace: list[Record], tol: float) -> float:
    """Passes until the next certificate.

    A third of all passes so far, but at most ten or a twentieth of them; a quarter to twice of it where the last two
    certificates promise to reach the tolerance sooner or much later, by a power law.
    """
    last = trace[-1]
    usual = max(1.0, min(10.0, last.passes / 3), last.passes / 20)
    past = [r for r in trace if 0 < r.passes < last.passes and r.gap > last.gap > 0]
    if not past or tol <= 0:
        return usual
    slope = np.log(past[-1].gap / last.gap) / np.log(last.passes / past[-1].passes)
    growth = np.exp(min(max(np.log(last.gap / tol), 0.0) / slope, 1.0))
    expected = last.passes * (growth - 1.0) - 1.0  # the last pass is for the certificate
    return float(max(1.0, min(max(expected, usual / 4), 2 * usual)))


def _warm_state(problem: Objective, solver: Solver[Any], start: Result | np.ndarray, w: np.ndarray) -> Any:
    if w.shape != (problem.dim,):
        raise ValueError(f"start has weights of shape {w.shape}, but the problem has {problem.dim} weights")
    if isinstance(start, Result) and type(start.solver) is type(solver) and start.state is not None:
        return solver.restart(problem, start.state)
    return solver.start_at(problem, w)
