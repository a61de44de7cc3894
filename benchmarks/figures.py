"""Reading figures off a contest: times to a target, and ratios of a rival's to ours (above 1: ours is better)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.solvers.base import OWN

Held = dict[str, Any]  # what ``contest.hold`` returns
CLOCKS = ("seconds", "cpu")
GAPS = (1e-1, 1e-2, 1e-3)


@dataclass(frozen=True)
class Figure:
    """One number to report.

    Attributes
    ----------
    text : str
        What it is.
    contest, ours, rival : str
        Name of the contest and labels of the two runs.
    quantity : str
        A phase of the clock, "pass", "peak", "data" (the peak without what the interpreter has before there are data),
        or what ``seconds_to`` understands.
    goal : float or None
        What the ratio should be at least.
    """

    text: str
    contest: str
    ours: str
    rival: str
    quantity: str
    goal: float | None = None


def ratio(figure: Figure, held: Held, clock: str) -> tuple[float | None, float | None, float | None]:
    """Ours, the rival's, and the rival's over ours; None where a run is missing or has not got there."""
    ours, rival = (held["runs"].get(label, {"missing": ""}) for label in (figure.ours, figure.rival))
    if "missing" in ours or "missing" in rival:
        return None, None, None
    a, b = quantity(figure.quantity, ours, rival, held, clock), quantity(figure.quantity, rival, rival, held, clock)
    return a, b, b / a if a and b else None


def quantity(name: str, run: dict[str, Any], rival: dict[str, Any], held: Held, clock: str) -> float | None:
    """A run's number of that name.

    "one sentence, p50" (or p99): milliseconds of a call that tags one. "to its value": the time until J is within the
    stated distance of the rival's last one; for the rival, its whole training. "to gap g": the time until the certified
    gap is at most g. "to score s": the time until the test score is at least as good as s; for a run that was not
    watched, its whole training, if its score is.
    """
    if name == "pass":
        return run["pass"][CLOCKS.index(clock)] if run["pass"] else None
    if name.startswith("one sentence, "):
        return run["calls"].get(name.removeprefix("one sentence, "))
    if name == "peak":
        return run["peak"]["train"]
    if name == "data":
        return run["peak"]["train"] - run["peak"][OWN] if OWN in run["peak"] else None
    if name == "to its value":
        return run[clock]["train"] if run is rival else seconds_to(run["trace"], rival["J"], held["stop"], clock)
    if name.startswith("to gap "):
        reached = _first(run["trace"], float(name.removeprefix("to gap ")), clock)
        return reached[1] if reached else None
    if name.startswith("to score "):
        return seconds_to_score(run, float(name.removeprefix("to score ")), held["larger is better"], clock)
    return run[clock].get(name)


def seconds_to(trace: list[dict[str, Any]], best: float, stop: float, clock: str) -> float | None:
    """Time of the first point whose objective is within a relative distance of the best one."""
    return next((p[clock] for p in trace if p["objective"] is not None and p["objective"] <= best * (1 + stop)), None)


def seconds_to_score(run: dict[str, Any], score: float, larger: bool, clock: str) -> float | None:
    """Time of the first point with that test score."""

    def good(value: float | None) -> bool:
        return value is not None and (value >= score if larger else value <= score)

    watched = [p for p in run["trace"] if p["score"] is not None]
    if watched:
        return next((p[clock] for p in watched if good(p["score"])), None)
    return run[clock]["train"] if good(run["score"]) else None


def best_known(held: Held, objective: dict[str, Any]) -> float | None:
    """The lowest J that any run has reached on this objective."""
    values = [run["J"] for run in held["runs"].values() if run.get("objective") == objective and run["J"] is not None]
    return min(values, default=None)


def gaps(held: Held, clock: str) -> list[dict[str, Any]]:
    """For every max-margin run that certifies gaps: passes and time to each of GAPS, None if not reached."""
    told = [(label, run) for label, run in held["runs"].items() if run.get("objective", {}).get("name") == "margin"]
    return [
        {"run": label, **{f"{gap:g}": _first(run["trace"], gap, clock) for gap in GAPS}}
        for label, run in told
        if any(point["gap"] is not None for point in run["trace"])
    ]


def _first(trace: list[dict[str, Any]], gap: float, clock: str) -> tuple[float, float] | None:
    return next(((p["passes"], p[clock]) for p in trace if p["gap"] is not None and p["gap"] <= gap), None)


def rows(held: Held, clock: str) -> list[dict[str, Any]]:
    """For every run what a table shows."""
    return [{"run": label, **_row(run, held, clock)} for label, run in held["runs"].items()]


def _row(run: dict[str, Any], held: Held, clock: str) -> dict[str, Any]:
    if "missing" in run:
        return {"missing": run["missing"]}
    best, times, speed = best_known(held, run["objective"]), run[clock], run[clock].get("tag")
    return {
        "ingest": times.get("ingest"),
        "train": times.get("train"),
        "to target": seconds_to(run["trace"], best, held["stop"], clock) if best is not None else None,
        "passes": run["passes"],
        "pass": run["pass"][CLOCKS.index(clock)] if run["pass"] else None,
        "J": run["J"],
        "score": run["score"],
        "tokens/s": run["tokens"] / speed if speed else None,
        "one, p50 ms": run["calls"].get("p50"),
        "one, p99 ms": run["calls"].get("p99"),
        "peak MB": run["peak"].get("train"),
        "before data": run["peak"].get(OWN),
    }
