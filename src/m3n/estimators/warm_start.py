"""Where a further fit begins: on with the last run, from where it ended, or anew, and why.

The same data and the same objective: the last run goes on, no step is lost, and what was certified stays certified.
Another ``lam`` on the same data: a new run begins where the last one ended, with a certificate of its own. Everything
else is another problem, of which the weights of the last one know nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from m3n.problem import Objective
from m3n.run.fingerprint import Fingerprint
from m3n.run.loop import Result
from m3n.solvers import Solver
from m3n.solvers.base import FromWeights

log = logging.getLogger("m3n")

PHRASES = {
    "labels": "there are other labels",
    "attributes": "there are {now} attributes, and were {then}",
    "examples": "there are {now} examples, and were {then}",
    "data": "the data are others",
}


@dataclass(frozen=True)
class Earlier:
    """The last fit: what a warm start must find unchanged, by name, and how it ended."""

    known: Mapping[str, Any]
    result: Result


@dataclass(frozen=True)
class Start:
    """How a fit begins.

    Attributes
    ----------
    solver : Solver or str
        What minimises.
    resume, start : Result or None
        As ``minimize`` takes them; at most one of both.
    words : str
        How, for ``reason_``; empty for a first fit.
    """

    solver: Solver[Any] | str
    resume: Result | None = None
    start: Result | None = None
    words: str = ""

    def explained(self, result: Result) -> Result:
        """The result with a reason that says how it began, and with a trace that is not empty."""
        reason, trace = result.reason, result.trace
        if self.resume is not None:
            reason = self.resume.reason
            last = self.resume.trace[-1:]  # nothing was left to do
            trace = trace or [replace(record, passes=0.0, seconds=0.0, hard_calls=0, soft_calls=0) for record in last]
        before = reason.split("; warm_start: ")[0]
        words = [text for text in (before, f"warm_start: {self.words}" if self.words else "") if text]
        return replace(result, reason="; ".join(words), trace=trace)


def begin(
    earlier: Earlier | None, known: Mapping[str, Any], problem: Objective, given: Any, solver: Solver[Any]
) -> Start:
    """Where to begin.

    Parameters
    ----------
    earlier : Earlier or None
        The last fit, if there was one.
    known : mapping
        What must be unchanged, as it is now.
    problem : Problem
        What is minimised.
    given : Solver or str
        The estimator's ``solver``.
    solver : Solver
        What that means for the problem.
    """
    if earlier is None:
        return Start(given)
    obstacle = changed(earlier.known, known)
    start = (
        Start(given, words=f"begins anew, {obstacle}") if obstacle else _from(earlier.result, problem, given, solver)
    )
    if start.words.startswith("begins anew"):
        log.warning("warm_start: %s", start.words)
    return start


def changed(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What is not as it was; empty if everything is."""
    for name, value in now.items():
        if name not in then or not _same(then[name], value):
            return PHRASES.get(name, f"{name} is another one").format(then=then.get(name), now=value)
    return ""


def _from(last: Result, problem: Objective, given: Any, solver: Solver[Any]) -> Start:
    """A run that goes on or begins at the end of the last one, of the same data."""
    if given == "auto" and last.solver.fits(problem):
        solver = last.solver  # what it has found so far is worth more than what another one would have over it
    if type(last.solver) is not type(solver):
        if isinstance(solver, FromWeights):
            return Start(solver, start=last, words=f"begins at the weights of {type(last.solver).__name__}")
        pair = f"{type(solver).__name__} cannot begin where {type(last.solver).__name__} ended"
        return Start(given, words=f"begins anew, {pair}")
    solver = last.solver if isinstance(given, str) else solver  # which has a seed of its own
    difference = last.fingerprint.difference(Fingerprint(problem, solver)) if last.fingerprint else "for lam"
    if not difference:
        return Start(solver, resume=last, words="goes on with the last fit")
    if type(solver).restart is Solver.restart:
        return Start(
            solver, start=last, words=f"begins anew, {type(solver).__name__} carries nothing over ({difference})"
        )
    return Start(solver, start=last, words="begins where the last fit ended")


def _same(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except ValueError:  # arrays
        return False
