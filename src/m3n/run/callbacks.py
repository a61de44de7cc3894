"""Callbacks for ``minimize``: progress on the terminal, and a stop when held-out data have been learnt for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import numpy as np

from m3n.compiled.progress import progress
from m3n.problem import Objective
from m3n.run.loop import Result, Snapshot, Status
from m3n.run.radius import radius_around
from m3n.solvers.base import at_least

LONGEST = 26  # characters of a label: the whole line fits into 80 columns


class ProgressBar:
    """A line on the terminal with pass, primal, dual, gap and an estimate of the time left.

    Use it as a context manager and as a callback. The gap falls roughly like a power of the passes, so the bar moves
    with the logarithm of the gap and the time left comes from the slope of the last records.

    Parameters
    ----------
    console : rich.console.Console, optional
        Where to draw; the default is standard error.
    label : str
        What runs, if that is not obvious; it takes the place of primal and dual.
    """

    def __init__(self, console: Any = None, label: str = ""):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=8 if label else 10),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console or Console(stderr=True),
        )
        self.label = label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"
        self.task = self.progress.add_task(f"{self.label} warming up" if label else "starting", total=1.0, left="")
        self.history: list[tuple[float, float]] = []
        self.first_gap = math.nan

    def __enter__(self) -> ProgressBar:
        self.progress.start()
        progress.listeners.append(self._compiling)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        progress.listeners.remove(self._compiling)
        self.progress.stop()

    def _compiling(self, text: str) -> None:
        self.progress.update(self.task, description=text or "starting")

    def __call__(self, snapshot: Snapshot) -> None:
        record = snapshot.record
        if math.isnan(self.first_gap):
            self.first_gap = record.gap
        self.history.append((record.seconds, record.gap))
        left = seconds_left(self.history, snapshot) if record.gap > snapshot.tol else None
        shown = "" if left is None else f"{_clock(left)} left"  # the whole line fits into 80 columns
        self.progress.update(self.task, description=self._text(snapshot), completed=self._share(snapshot), left=shown)

    def _text(self, snapshot: Snapshot) -> str:
        record = snapshot.record
        if not self.label:
            return f"pass {record.passes:.0f} primal {record.primal:.4g} dual {record.dual:.4g} gap {record.gap:.1e}"
        blind = snapshot.state is not None and snapshot.state.dual == -math.inf  # a gap would be made up
        return f"{self.label} pass {record.passes:.0f} " + (
            f"primal {record.primal:.3g}" if blind else f"gap {record.gap:.1e}"
        )

    def _share(self, snapshot: Snapshot) -> float:
        """Progress in the logarithm of the gap, or towards a limit if that is nearer."""
        record = snapshot.record
        limits = ((record.passes, snapshot.max_passes), (record.seconds, snapshot.max_seconds))
        shares = [spent / limit if limit else 1.0 for spent, limit in limits]
        if 0 < snapshot.tol < self.first_gap and record.gap > 0:
            shares.append(math.log(self.first_gap / record.gap) / math.log(self.first_gap / snapshot.tol))
        return min(1.0, max(shares))


@dataclass(frozen=True)
class Scored:
    """Weights with their score."""

    score: float
    w: np.ndarray
    primal: float  # J(w), exactly


class HeldOut:
    """Stops when weights get no better on held-out data, and has the run return those with the best score.

    After every certificate the weights that it speaks of are scored, if they are not those of the last one: first of
    all w = 0, or the prior. Of weights with the same score the later ones are kept, whose objective is lower.

    The certificate of the result is true of the weights that are returned: ``primal`` is J at them, as it was computed
    when they were scored, and ``dual`` the best bound of the run.

    Parameters
    ----------
    score : callable
        From weights to a number, the larger the better.
    patience : int
        How many scores in a row that are not better than the best one it takes to stop.

    Attributes
    ----------
    metrics : dict
        The last score as ``held_out``, which goes into the trace.
    """

    def __init__(self, score: Callable[[np.ndarray], float], patience: int = 5):
        at_least(1, patience=patience)
        self.score, self.patience = score, patience
        self.metrics: dict[str, float] = {}
        self._forget()

    def _forget(self) -> None:
        self.best: Scored | None = None
        self.last: Scored | None = None
        self.waited, self.tol = 0, 0.0

    def __call__(self, snapshot: Snapshot) -> bool:
        self.tol = snapshot.tol
        if self.last is None or not np.array_equal(self.last.w, snapshot.w):
            self._compare(Scored(float(self.score(snapshot.w)), snapshot.w, snapshot.record.primal))
        return self.waited >= self.patience

    def _compare(self, now: Scored) -> None:
        """Score new weights against the best ones."""
        self.last, self.metrics = now, {"held_out": now.score}
        better = self.best is None or now.score > self.best.score
        self.waited = 0 if better else self.waited + 1
        if self.best is None or now.score >= self.best.score:
            self.best = now

    def choose(self, result: Result) -> Result:
        """The result of a run that has ended, with the best weights.

        Parameters
        ----------
        result : Result
            With the weights of the lowest objective.
        """
        best, stopped = self.best, self.waited >= self.patience
        tol = self.tol
        self._forget()  # there may be another run
        if best is None:
            return result
        certificate = replace(result.certificate, primal=best.primal)
        status = Status.HELD_OUT if result.status is Status.CALLBACK and stopped else result.status
        if status is Status.TOLERANCE and certificate.gap > tol:
            status = Status.HELD_OUT
        return replace(result, w=np.array(best.w), certificate=certificate, status=status)


class UntilFinal:
    """Stops when enough predictions are proven to be those of the exact optimum.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    share : callable
        From weights, and how far the optimum can be from them, to the share of predictions that are final.
    enough : float
        The share that ends the run.

    Attributes
    ----------
    metrics : dict
        The last share as ``final``, which goes into the trace.
    """

    def __init__(self, problem: Objective, share: Callable[[np.ndarray, float], float], enough: float = 0.99):
        self.problem, self.share, self.enough = problem, share, enough
        self.metrics: dict[str, float] = {}

    def __call__(self, snapshot: Snapshot) -> bool:
        if snapshot.result is None:  # nobody has begun
            return False
        radius = radius_around(self.problem, snapshot.w, snapshot.result.certificate, snapshot.state)
        self.metrics = {"final": self.share(snapshot.w, radius)}
        return self.metrics["final"] >= self.enough

    def choose(self, result: Result) -> Result:
        """The result with the reason why it ended.

        Parameters
        ----------
        result : Result
            Of the run.
        """
        reached = self.metrics.get("final", 0.0) >= self.enough
        return replace(result, status=Status.FINAL) if reached and result.status is Status.CALLBACK else result


def seconds_left(history: list[tuple[float, float]], snapshot: Snapshot) -> float | None:
    """Extrapolate log gap against log seconds over the second half of the run; None while there is nothing to say."""
    now, gap = history[-1]
    limits = [snapshot.max_seconds - now, now * (snapshot.max_passes / max(snapshot.record.passes, 1e-9) - 1.0)]
    past = [entry for entry in history if 0 < entry[0] <= now / 2]
    if past and snapshot.tol > 0 and 0 < gap < past[-1][1]:
        slope = math.log(past[-1][1] / gap) / math.log(now / past[-1][0])
        limits.append(now * (max(gap / snapshot.tol, 1.0) ** min(1 / slope, 50.0) - 1.0))
    left = max(min(limits), 0.0)
    return left if left < math.inf else None


def _clock(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
