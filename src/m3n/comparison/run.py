"""The comparison itself: solvers, one after another, on one problem.

Fairness. Every solver starts from its own ``init``. Right before its timed run it makes a few steps that nobody counts:
code is compiled then and the problem's caches (J(0), the radius) are filled. Limits and axes are the solver's own
passes and seconds; those of certificates and callbacks are recorded apart.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import MISSING, fields
from typing import Any

from m3n.comparison.entry import Entry, settings_of
from m3n.comparison.measures import buffers, memory_of
from m3n.comparison.result import Comparison
from m3n.problem import Problem
from m3n.run.callbacks import ProgressBar
from m3n.run.certificate import Record
from m3n.run.loop import Callback, Snapshot, Status, minimize
from m3n.run.suitability import MissingOracle, WrongObjective
from m3n.solvers import Solver, resolve_solver
from m3n.solvers.base import at_least

Solvers = Iterable[Solver[Any] | str] | Mapping[str, Solver[Any] | str] | Solver[Any] | str

log = logging.getLogger("m3n")

WARM_UP_RECORDS = 3  # the certificate of w = 0 and two of the solver's own
WARM_UP_SECONDS = 10.0  # compilation does not count; a solver that is slower than that is warm


def compare(
    problem: Problem,
    solvers: Solvers,
    *,
    tol: float = 1e-3,
    max_passes: float | None = 300.0,
    max_seconds: float | None = 60.0,
    callbacks: Iterable[Callback] = (),
    progress: bool = False,
) -> Comparison:
    """Run solvers on one problem, each to a gap or to the end of its budget.

    A solver that refuses the problem or breaks gets an entry with the reason. Ctrl-C ends the solver at hand and all
    others; what was measured so far is returned. Evaluation is not charged to a solver.

    Parameters
    ----------
    problem : Problem
        What to minimise.
    solvers : list of Solver or str, or mapping of labels to them
        Solver objects or names. Without labels of your own a solver is called by its class and by the settings that
        differ from its defaults.
    tol : float
        A solver stops when its duality gap is at most this.
    max_passes : float or None
        Passes over the data that each solver has, certificates not counted; None means no limit.
    max_seconds : float or None
        Seconds that each solver has, certificates and callbacks not counted; None means no limit.
    callbacks : iterable of callable
        Each is called with a ``Snapshot`` after every certificate; one that returns True ends the solver's run.
    progress : bool
        Show on standard error which solver runs and how far it is.

    Returns
    -------
    Comparison
        Entries, table, JSON.
    """
    at_least(0, tol=tol, max_passes=max_passes, max_seconds=max_seconds)
    goal = {"tol": tol, "max_passes": max_passes, "max_seconds": max_seconds}
    labelled, entries = label_solvers(solvers, problem), list[Entry]()
    try:
        for position, (name, solver) in enumerate(labelled.items(), start=1):
            shown = f"{position}/{len(labelled)} {name}"
            with ExitStack() as stack:
                bars = [stack.enter_context(ProgressBar(label=shown))] if progress else []
                entries.append(_Trial(problem, name, solver, (*bars, *callbacks)).run(goal))
            if entries[-1].status is Status.INTERRUPTED:
                break
    except KeyboardInterrupt:  # between two runs
        log.info("the comparison was interrupted")
    return Comparison(tuple(entries), _describe(problem), goal)


def label_solvers(solvers: Solvers, problem: Problem | None = None) -> dict[str, Solver[Any]]:
    """From a distinct label to each solver; the labels of a mapping are kept as they are.

    Parameters
    ----------
    solvers : list of Solver or str, or mapping of labels to them
        Solver objects or names.
    problem : Problem or None
        The problem, by which "auto" chooses.
    """
    if isinstance(solvers, Mapping):
        labelled = {str(label): resolve_solver(solver, problem=problem).solver for label, solver in solvers.items()}
    else:
        several = [solvers] if isinstance(solvers, (str, Solver)) else solvers
        labelled = _distinct([resolve_solver(solver, problem=problem).solver for solver in several])
    if not labelled:
        raise ValueError("there is no solver to compare: name at least one")
    return labelled


def _distinct(solvers: list[Solver[Any]]) -> dict[str, Solver[Any]]:
    labels = [_label(solver) for solver in solvers]
    total, so_far, labelled = Counter(labels), Counter[str](), {}
    for label, solver in zip(labels, solvers, strict=True):
        so_far[label] += 1
        labelled[f"{label} #{so_far[label]}" if total[label] > 1 else label] = solver
    return labelled


def _label(solver: Solver[Any]) -> str:
    """The class with the settings that differ from its defaults; so different settings give different labels."""
    written = {name: repr(value) for name, value in settings_of(solver).items()}
    unusual = [f"{name}={value}" for name, value in written.items() if value != repr(_default(solver, name))]
    return type(solver).__name__ + (f"({', '.join(unusual)})" if unusual else "")


def _default(solver: Any, name: str) -> Any:
    """MISSING, which no setting is equal to, where there is none."""
    field = next(f for f in fields(solver) if f.name == name)
    return field.default_factory() if field.default_factory is not MISSING else field.default


class _Trial:
    """One solver's part of it, and what is noted besides its result."""

    def __init__(self, problem: Problem, name: str, solver: Solver[Any], callbacks: tuple[Callback, ...]):
        self.problem, self.name, self.solver, self.callbacks = problem, name, solver, callbacks
        self.shared: dict[int, int] = {}  # the problem's own buffers
        self.trace: list[Record] = []
        self.duals: list[float] = []
        self.memory = 0

    def run(self, goal: dict[str, Any]) -> Entry:
        """The entry, whatever happens."""
        try:
            return self._entry(self._timed(goal) if self._warm_up() else Status.INTERRUPTED)
        except KeyboardInterrupt:  # the second Ctrl-C
            return self._entry(Status.INTERRUPTED)
        except (MissingOracle, WrongObjective) as error:
            return self._entry(None, f"refused: {error}")
        except Exception as error:  # a solver's accident must not end the others' runs
            log.debug("%s failed", self.name, exc_info=True)
            return self._entry(None, f"failed: {type(error).__name__}: {error}")

    def _warm_up(self) -> bool:
        """A few steps that nobody counts; False if Ctrl-C ended them."""
        seen: list[Snapshot] = []

        def enough(snapshot: Snapshot) -> bool:
            seen.append(snapshot)
            return len(seen) >= WARM_UP_RECORDS

        result = minimize(self.problem, self.solver, tol=0.0, max_seconds=WARM_UP_SECONDS, callbacks=[enough])
        return result.status is not Status.INTERRUPTED

    def _timed(self, goal: dict[str, Any]) -> Status:
        self.shared = buffers(self.problem)
        watching = [self._note, *self.callbacks]
        return minimize(self.problem, self.solver, callbacks=watching, charge_evaluation=False, **goal).status

    def _note(self, snapshot: Snapshot) -> None:
        """Kept as it comes, so that a solver that breaks leaves its trace behind."""
        self.trace.append(snapshot.record)
        if snapshot.state is not None:
            self.duals.append(snapshot.state.dual)
            self.memory = max(self.memory, memory_of(snapshot.state, self.shared))

    def _entry(self, status: Status | None, error: str = "") -> Entry:
        own_dual = not self.duals or max(self.duals) > -float("inf")
        return Entry(
            name=self.name, solver=self.solver, status=status, error=error, trace=tuple(self.trace), n=self.problem.n,
            temperature=self.problem.temperature, memory=self.memory, own_dual=own_dual,
        )  # fmt: skip


def _describe(problem: Problem) -> dict[str, Any]:
    return {
        "structure": problem.name,
        "n": problem.n,
        "dim": problem.dim,
        "lam": problem.lam,
        "temperature": problem.temperature,
        "rescale": problem.rescale,
        "threads": problem.threads.count,
    }
