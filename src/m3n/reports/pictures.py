"""Pictures by matplotlib: how a run converged, a comparison of solvers, and weights.

Images of weights, and tables of transitions, have a diverging colour scale that is white at zero: blue speaks for a
label, red against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from m3n.problem import Problem
from m3n.run.certificate import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from m3n.comparison import Comparison, Entry

PRIMAL, DUAL, GAP, BOUND = "#b2182b", "#2166ac", "#1b7837", "#777777"  # told apart in print and by the colour-blind
# Okabe and Ito's colours, which the colour-blind tell apart, without the yellow that vanishes on paper
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "<", ">", "p", "*", "h")
DASHES: tuple[Any, ...] = ("solid", (0, (6, 1.5, 1, 1.5)), (0, (1, 1.2)))
NO_DUAL = (0, (5, 2.5))
MARKS = 6  # markers on a line: enough to follow it, few enough to see it
LEGEND_COLUMNS = 3
SHADES = "RdBu"  # dark at both ends, told apart by the colour-blind
CLEAR = 0.995  # this part of the weights has colours of its own; a single huge one must not make the others pale
NUMBERS = 12  # up to so many labels, a table has room for its numbers


def paper_bound(problem: Problem, steps: Any) -> np.ndarray:
    """The paper's guarantee for its own schedule: 6 log|Y| R^2 / (lam (k+1)(k+2)) after k steps.

    Parameters
    ----------
    problem : Problem
        Gives log|Y|, R and lam.
    steps : array
        Step numbers k.
    """
    k = np.asarray(steps, dtype=float)
    return 6.0 * problem.log_size * problem.radius**2 / (problem.lam * (k + 1) * (k + 2))


def plot_convergence(trace: Sequence[Record], axes: Axes) -> None:
    """Draw primal and dual against passes; the optimum lies in the shaded band.

    Parameters
    ----------
    trace : sequence of Record
        The trace of a run.
    axes : matplotlib Axes
        Where to draw.
    """
    passes = [record.passes for record in trace]
    primal, dual = [r.primal for r in trace], [r.dual for r in trace]
    axes.fill_between(passes, dual, primal, color="0.9", label="the optimum is in here")
    axes.plot(passes, primal, color=PRIMAL, label="primal: objective of our weights")
    axes.plot(passes, dual, color=DUAL, linestyle="--", label="dual: lower bound for any weights")
    last = trace[-1]
    height = max(abs(last.primal), abs(last.dual), last.gap)
    axes.set_ylim(last.dual - 2.0 * height, last.primal + 3.0 * height)
    axes.set_xscale("log")
    axes.set_xlabel("passes over the data")
    axes.set_ylabel("objective")
    axes.legend(frameon=False, fontsize=8)


def plot_gap(trace: Sequence[Record], axes: Axes, problem: Problem | None = None) -> None:
    """Draw the duality gap against passes on logarithmic axes, with the paper's bound if the problem is given.

    Parameters
    ----------
    trace, axes : sequence of Record, matplotlib Axes
        The trace of a run, and where to draw.
    problem : Problem, optional
        The problem that was solved.
    """
    passes = np.array([record.passes for record in trace])
    axes.plot(passes, [record.gap for record in trace], color=GAP, label="certified duality gap")
    if problem is not None:
        steps = np.array([record.soft_calls / problem.n - 1 for record in trace])  # two passes to start, one per step
        begun = steps >= 1
        bound = paper_bound(problem, steps[begun])
        axes.plot(passes[begun], bound, color=BOUND, linestyle=":", label="the paper's bound")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("passes over the data")
    axes.set_ylabel("duality gap")
    axes.grid(True, which="major", color="0.92")
    axes.legend(frameon=False, fontsize=8)


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
            x = getattr(line, along)
            marks = {"markevery": _spread(x, k / len(lines)), "markersize": 5.5}
            axes.plot(x, line.heights, label=line.label, linewidth=1.4, **marks, **line.style)
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


def plot_weights(model: Any, shape: tuple[int, int], figure: Any, labels: Sequence[Any] | None = None) -> None:
    """Draw the weights of every label as an image, all with the same colours.

    Parameters
    ----------
    model : estimator
        Linear in its attributes, of which the first are the pixels of an image, row by row; further ones, such as a
        constant, are left out.
    shape : pair of int
        Height and width of the image.
    figure : matplotlib Figure or SubFigure
        Where to draw; ``weights_size`` suggests its size.
    labels : sequence of labels, optional
        Which labels to draw, in this order; the default is all of them.
    """
    every = _images(model, shape)
    names = model.classes_.tolist()
    chosen = names if labels is None else list(labels)
    for label in chosen:
        if label not in names:
            raise ValueError(f"the model does not know the label {label!r}; it knows {names!r:.300}")
    images = every[[names.index(label) for label in chosen]]
    limit = float(np.quantile(np.abs(images), CLEAR)) or float(np.abs(images).max()) or 1.0
    rows, columns = _grid(len(chosen), shape)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, image, label in zip(panels, images, chosen, strict=False):
        drawn = axes.imshow(image, cmap=SHADES, vmin=-limit, vmax=limit, interpolation="nearest")
        axes.set_title(str(label), fontsize=11, pad=3)
    for k, axes in enumerate(panels):
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color("0.7")
        if k >= len(chosen):
            axes.set_axis_off()
    beyond = "both" if np.abs(images).max() > limit else "neither"
    bar = figure.colorbar(drawn, ax=panels.tolist(), shrink=0.7, aspect=30, pad=0.02, extend=beyond)
    _finish(bar, "weight: above 0 speaks for\nthe label, below 0 against it")


def weights_size(model: Any, shape: tuple[int, int], labels: Sequence[Any] | None = None) -> tuple[float, float]:
    """Width and height in inches that leave the images of ``plot_weights`` their room.

    Parameters
    ----------
    model : estimator
        As in ``plot_weights``.
    shape : pair of int
        Height and width of the image.
    labels : sequence of labels, optional
        Which labels are drawn.
    """
    rows, columns = _grid(len(model.classes_ if labels is None else labels), shape)
    height, width = shape
    unit = 1.1 / max(1.0, np.sqrt(height * width)) * 1.2
    return columns * (width * unit + 0.12) + 1.4, rows * (height * unit + 0.32) + 0.2


def plot_transitions(model: Any, axes: Axes) -> None:
    """Draw the scores of pairs of neighbouring labels as a table of colours.

    Parameters
    ----------
    model : estimator
        With ``transitions_``: a ``SequenceTagger`` or a ``SegmentTagger``.
    axes : matplotlib Axes
        Where to draw.
    """
    scores = getattr(model, "transitions_", None)
    if scores is None:
        raise ValueError(f"this {type(model).__name__} has no transitions; plot_transitions is for fitted taggers")
    names = [str(label) for label in model.classes_.tolist()]
    limit = float(np.abs(scores).max()) or 1.0
    drawn = axes.imshow(scores, cmap=SHADES, vmin=-limit, vmax=limit, interpolation="nearest")
    places = np.arange(len(names))
    tilted = max(map(len, names)) > 2
    axes.set_xticks(places, names, rotation=90 if tilted else 0)
    axes.set_yticks(places, names)
    axes.tick_params(length=0, labelsize=8 if len(names) > NUMBERS else 10)
    axes.set_xlabel("next label")
    axes.set_ylabel("label")
    axes.spines[:].set_color("0.7")
    if len(names) <= NUMBERS:
        _write_numbers(axes, scores, limit)
    _mark_forbidden(axes, getattr(model, "constraints_", None))
    _finish(axes.figure.colorbar(drawn, ax=axes, shrink=0.8, pad=0.02), "score of the pair")


def _images(model: Any, shape: tuple[int, int]) -> np.ndarray:
    """The weights of the pixels, (labels, height, width)."""
    coef = getattr(model, "coef_", None)
    if coef is None:
        raise ValueError("plot_weights draws the weights of attributes; a model with a kernel, or before fit, has none")
    height, width = shape
    if not 0 < height * width <= coef.shape[0]:
        have = f"the model has {coef.shape[0]} attributes"
        raise ValueError(f"an image of {height} x {width} pixels has {height * width}, but {have}; give another shape")
    pixels = coef[: height * width]
    pixels = pixels.toarray() if hasattr(pixels, "toarray") else np.asarray(pixels)
    return pixels.T.reshape(-1, height, width)


def _grid(count: int, shape: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of panels: about twice as wide as high, and no nearly empty last row."""
    height, width = shape
    rows = max(1, round(float(np.sqrt(count * width / height / 2.0))))
    return rows, -(-count // rows)


def _write_numbers(axes: Axes, scores: np.ndarray, limit: float) -> None:
    digits = max(0, 1 - int(np.floor(np.log10(limit))))  # two of the largest number
    for i, j in np.ndindex(*scores.shape):
        colour = "white" if abs(scores[i, j]) > 0.7 * limit else "black"  # at 0.7 both have a contrast of 4.4
        axes.text(j, i, f"{scores[i, j]:.{digits}f}", ha="center", va="center", fontsize=8, color=colour)


def _mark_forbidden(axes: Axes, constraints: Any) -> None:
    """A cross where a label may never follow another."""
    if constraints is None:
        return
    rows, columns = np.nonzero(constraints.forbidden)
    if len(rows):
        axes.scatter(columns, rows, marker="x", color="0.4", s=20, label="forbidden")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.01), frameon=False, fontsize=8)


def _finish(bar: Any, label: str) -> None:
    bar.set_label(label, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_edgecolor("0.7")
