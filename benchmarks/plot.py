"""The picture of a report: a panel for every objective of every contest, and one of ratios."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from benchmarks.figures import best_known

OURS, GOAL = "#0b6e99", "#c2571a"
FLOOR = 1e-7  # relative distances below it are rounding
COLUMNS = 3


def plot(held: dict[str, Any], figures: list[dict[str, Any]], path: Path) -> None:
    """Draw the panels; without matplotlib there is no picture."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return
    panels = [(name, kind) for name, contest in held.items() for kind in ("crf", "margin") if _curves(contest, kind)]
    bars = [figure for figure in figures if figure["clock"] == "seconds" and figure["ratio"]]
    count = len(panels) + bool(bars)
    rows = max(1, math.ceil(count / COLUMNS))
    picture = Figure(figsize=(6.4 * min(COLUMNS, max(1, count)), 4.6 * rows), layout="constrained")
    FigureCanvasAgg(picture)
    for place, (name, kind) in enumerate(panels, start=1):
        _panel(picture.add_subplot(rows, COLUMNS, place), name, held[name], kind)
    if bars:
        _bars(picture.add_subplot(rows, COLUMNS, count), bars)
    picture.savefig(path, dpi=100)


def _curves(contest: dict[str, Any], kind: str) -> dict[str, list[tuple[float, float]]]:
    """For every run with that kind of objective: seconds, and how far it is from its goal."""
    runs = {label: run for label, run in contest["runs"].items() if run.get("objective", {}).get("name") == kind}
    distance = _to_best if kind == "crf" else _gap
    curves = {label: distance(run, contest) for label, run in runs.items()}
    return {label: points for label, points in curves.items() if len(points) > 1}


def _to_best(run: dict[str, Any], contest: dict[str, Any]) -> list[tuple[float, float]]:
    """Rivals of a CRF tell their J, which is compared with the best one."""
    best = best_known(contest, run["objective"])
    known = [point for point in run["trace"] if point["objective"] is not None] if best else []
    return [(point["seconds"], max(point["objective"] / best - 1, FLOOR)) for point in known]


def _gap(run: dict[str, Any], contest: dict[str, Any]) -> list[tuple[float, float]]:
    """For max-margin networks only certified gaps are at hand: nobody else's solver tells J on its way."""
    return [(point["seconds"], point["gap"]) for point in run["trace"] if point["gap"]]


def _panel(axis: Any, name: str, contest: dict[str, Any], kind: str) -> None:
    curves = _curves(contest, kind)
    ours = [label for label in curves if contest["runs"][label]["entry"] == "m3n"]
    for label, points in curves.items():
        family = ours if label in ours else [other for other in curves if other not in ours]
        axis.plot(*zip(*points, strict=True), label=label, lw=1.6, marker=".", ms=4, color=_shade(label, family, ours))
    axis.set(xscale="log", yscale="log", xlabel="seconds of training")
    axis.set_title(f"{name}, {kind}\n{contest['data']}", fontsize=10)
    axis.set_ylabel("J / best J - 1" if kind == "crf" else "certified gap")
    if kind == "crf":
        axis.axhline(contest["stop"], color="0.6", lw=0.8, ls=":")
    axis.legend(fontsize=8, frameon=False)


def _shade(label: str, family: list[str], ours: list[str]) -> Any:
    """Cold colours for our runs, warm ones for rivals."""
    from matplotlib import colormaps

    return colormaps["winter" if label in ours else "autumn"](
        0.05 + 0.7 * family.index(label) / max(1, len(family) - 1)
    )


def _bars(axis: Any, figures: list[dict[str, Any]]) -> None:
    places = range(len(figures))
    axis.barh(places, [figure["ratio"] for figure in figures], color=OURS)
    for place, figure in zip(places, figures, strict=True):
        axis.text(max(figure["ratio"], 1), place, f" {figure['ratio']:.3g}", va="center", fontsize=8)
        if figure["goal"]:
            axis.plot([figure["goal"]] * 2, [place - 0.4, place + 0.4], color=GOAL, lw=2)
    axis.axvline(1, color="0.3", lw=0.8)
    axis.set_yticks(places, [figure["what"] for figure in figures], fontsize=7)
    axis.invert_yaxis()
    axis.set(xscale="log", xlabel="rival / ours (orange: the goal)", title="Ratios, wall clock")
    axis.margins(x=0.2)
