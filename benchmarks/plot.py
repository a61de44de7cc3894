"""The picture of a report: how fast J comes down, and the ratios."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.figures import best_known

OURS, RIVAL = "#0b6e99", "#c2571a"
FLOOR = 1e-7  # relative distances below it are rounding


def plot(held: dict[str, Any], figures: list[dict[str, Any]], path: Path) -> None:
    """One panel per contest and one of bars; without matplotlib there is no picture."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return
    curves = {name: contest for name, contest in held.items() if _drawable(contest)}
    bars = [figure for figure in figures if figure["clock"] == "seconds" and figure["ratio"]]
    picture = Figure(figsize=(6.2 * (len(curves) + 1), 5.2), layout="constrained")
    FigureCanvasAgg(picture)
    axes = picture.subplots(1, len(curves) + 1, squeeze=False)[0]
    for axis, (name, contest) in zip(axes, curves.items(), strict=False):
        _curves(axis, name, contest)
    _bars(axes[-1], bars)
    picture.savefig(path, dpi=110)


def _drawable(contest: dict[str, Any]) -> list[str]:
    return [label for label, run in contest["runs"].items() if len(run.get("trace", ())) > 1]


def _curves(axis: Any, name: str, contest: dict[str, Any]) -> None:
    for label in _drawable(contest):
        run = contest["runs"][label]
        best = best_known(contest, run["objective"])
        if best is None:
            continue
        points = [(p["seconds"], p["objective"]) for p in run["trace"] if p["objective"] is not None]
        distances = [max(value / best - 1, FLOOR) for _, value in points]
        ours, crf = run["entry"] == "m3n", run["objective"]["name"] == "crf"
        axis.plot([t for t, _ in points], distances, label=label, lw=1.6, marker=".", ms=4,
                  color=_shade(label, contest, ours), ls="-" if crf else "--")  # fmt: skip
    axis.axhline(contest["stop"], color="0.6", lw=0.8, ls=":")
    axis.set(xscale="log", yscale="log", xlabel="seconds of training", title=f"{name}: {contest['data']}")
    axis.set_ylabel("J / best known J of its objective - 1")
    axis.legend(fontsize=8, frameon=False)


def _shade(label: str, contest: dict[str, Any], ours: bool) -> Any:
    """Blue tones for our runs, orange ones for rivals."""
    from matplotlib import colormaps

    family = [k for k in _drawable(contest) if (contest["runs"][k]["entry"] == "m3n") == ours]
    place = family.index(label) / max(1, len(family) - 1)
    return colormaps["winter" if ours else "autumn"](0.1 + 0.7 * place)


def _bars(axis: Any, figures: list[dict[str, Any]]) -> None:
    places = range(len(figures))
    axis.barh(places, [figure["ratio"] for figure in figures], color=OURS)
    for place, figure in zip(places, figures, strict=True):
        axis.text(figure["ratio"], place, f" {figure['ratio']:.3g}", va="center", fontsize=9)
        if figure["goal"]:
            axis.plot([figure["goal"]] * 2, [place - 0.4, place + 0.4], color=RIVAL, lw=2)
    axis.axvline(1, color="0.3", lw=0.8)
    axis.set_yticks(places, [figure["what"] for figure in figures], fontsize=8)
    axis.invert_yaxis()
    axis.set(xscale="log", xlabel="rival / ours (orange: the goal)", title="Ratios, wall clock")
    axis.margins(x=0.2)
