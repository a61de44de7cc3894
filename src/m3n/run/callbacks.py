"""Callbacks for ``minimize``: progress on the terminal."""

from __future__ import annotations

import math
from types import TracebackType
from typing import Any

from m3n.compiled.progress import progress
from m3n.run.loop import Snapshot

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
