"""A comparison of solvers as a picture: the gap of every solver against its passes and against its seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from m3n.comparison import Comparison, Entry

# Okabe and Ito's colours, which the colour-blind tell apart, without the yellow that vanishes on paper
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "<", ">", "p", "*", "h")
DASHES: tuple[Any, ...] = ("solid", (0, (6, 1.5, 1, 1.5)), (0, (1, 1.2)))
NO_DUAL = (0, (5, 2.5))
MARKS = 6  # markers on a line: enough to follow it, few enough to see it
LEGEND_COLUMNS = 3


@dataclass(frozen=True)
class _Line:
    passes: np.ndarray
    seconds: np.ndarray
    heights: np.ndarray
    label: str
    style: dict[str, Any]


def plot_comparison(comparison: Comparison, figure: Any) -> None:
    """Draw gap against passes and gap against seconds on logarithmic axes, with one legend below.

    Passes and seconds are the solvers' own. A solver without a dual point has no gap; its line is dashed and shows its
    primal value minus the best dual value of all solvers.

    Parameters
    ----------
    comparison : Comparison
        What ``m3n.compare`` returned.
    figure : matplotlib Figure or SubFigure
        Where to draw; ``comparison_size`` suggests its size.
    """
    left, right = figure.subplots(1, 2, sharey=True)
    lines = [_line(comparison, entry, k) for k, entry in enumerate(comparison.entries)]
    lines = [line for line in lines if len(line.heights)]
    for axes, along in ((left, "passes"), (right, "seconds")):
        for k, line in enumerate(lines):
            _draw(axes, getattr(line, along), line, k / max(len(lines), 1))
        _decorate(axes, comparison.goal.get("tol"))
    left.set_xlabel("passes over the data (certificates not counted)")
    right.set_xlabel("seconds (certificates not counted)")
    left.set_ylabel("duality gap")
    if lines:
        handles, labels = left.get_legend_handles_labels()
        layout = {"loc": "outside lower center", "ncols": _columns(labels), "handlelength": 4.0}  # shows the dashes
        figure.legend(handles=handles, **layout, frameon=False, fontsize=9)


def comparison_size(comparison: Comparison) -> tuple[float, float]:
    """Width and height in inches that leave the panels of ``plot_comparison`` their room.

    Parameters
    ----------
    comparison : Comparison
        What ``m3n.compare`` returned.
    """
    labels = [_label(entry) for entry in comparison.entries if entry.trace]
    return 10.0, 4.0 + 0.2 * float(np.ceil(len(labels) / _columns(labels)))


def _line(comparison: Comparison, entry: Entry, k: int) -> _Line:
    """What there is to draw of a solver; logarithmic axes have no zero."""
    passes = np.array([entry.passes_at(record) for record in entry.trace])
    seconds = np.array([record.solver_seconds for record in entry.trace])
    heights = np.array([record.gap if entry.own_dual else comparison.primal_gap_at(record) for record in entry.trace])
    shown = (passes > 0) & (seconds > 0) & (heights > 0)
    return _Line(passes[shown], seconds[shown], heights[shown], _label(entry), _style(k, entry.own_dual))


def _label(entry: Entry) -> str:
    return entry.name if entry.own_dual else f"{entry.name}: primal minus the best dual of all"


def _style(k: int, own_dual: bool) -> dict[str, Any]:
    """Every solver has a marker of its own and a colour and dashes that repeat late: grey print can tell them apart."""
    return {
        "color": COLOURS[k % len(COLOURS)],
        "marker": MARKERS[k % len(MARKERS)],
        "linestyle": DASHES[k % len(DASHES)] if own_dual else NO_DUAL,
        "markerfacecolor": "white" if k % 2 else COLOURS[k % len(COLOURS)],
    }


def _draw(axes: Axes, x: np.ndarray, line: _Line, shift: float) -> None:
    marks = _spread(x, shift)
    axes.plot(x, line.heights, label=line.label, markevery=marks, markersize=5.5, linewidth=1.4, **line.style)


def _spread(x: np.ndarray, shift: float) -> list[int]:
    """Records near equal distances on the logarithmic axis, the last one always; shifted, so that lines differ."""
    if x[0] == x[-1]:
        return [len(x) - 1]
    places = (np.arange(MARKS) + shift) / MARKS
    targets = np.log(x[0]) + places * np.log(x[-1] / x[0])
    return sorted({*(int(np.abs(np.log(x) - target).argmin()) for target in targets), len(x) - 1})


def _decorate(axes: Axes, tol: float | None) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(True, which="major", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    low, high = axes.get_ylim()
    if tol and low < tol < high:
        axes.axhline(tol, color="0.5", linewidth=0.8, linestyle=":", zorder=0.5)
        place = axes.get_yaxis_transform()
        axes.text(0.01, tol, "tolerance", transform=place, va="bottom", fontsize=8, color="0.4")


def _columns(labels: list[str]) -> int:
    longest = max(map(len, labels), default=0)
    return max(1, min(LEGEND_COLUMNS, len(labels), 120 // (longest + 10)))
