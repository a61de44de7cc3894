"""Weights as pictures: what every label looks for in an image, and which labels follow one another.

All panels share one diverging colour scale that is white at zero: blue pixels speak for a label, red ones against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = "RdBu"  # dark at both ends, told apart by the colour-blind
CLEAR = 0.995  # this part of the weights has colours of its own; a single huge one must not make the others pale
NUMBERS = 12  # up to so many labels, a table has room for its numbers


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
    images = every[[_number(names, label) for label in chosen]]
    limit = float(np.quantile(np.abs(images), CLEAR)) or float(np.abs(images).max()) or 1.0
    rows, columns = _grid(len(chosen), shape)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, image, label in zip(panels, images, chosen, strict=False):
        drawn = axes.imshow(image, cmap=COLOURS, vmin=-limit, vmax=limit, interpolation="nearest")
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
    drawn = axes.imshow(scores, cmap=COLOURS, vmin=-limit, vmax=limit, interpolation="nearest")
    places = np.arange(len(names))
    tilted = max(map(len, names)) > 2
    axes.set_xticks(places, names, rotation=90 if tilted else 0)
    axes.set_yticks(places, names)
    axes.tick_params(length=0, labelsize=8 if len(names) > NUMBERS else 10)
    axes.set_xlabel("next label")
    axes.set_ylabel("label")
    axes.spines[:].set_color("0.7")
    if len(names) <= NUMBERS:
        _write(axes, scores, limit)
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


def _number(names: list[Any], label: Any) -> int:
    if label not in names:
        raise ValueError(f"the model does not know the label {label!r}; it knows {names!r:.300}")
    return names.index(label)


def _grid(count: int, shape: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of panels: about twice as wide as high, and no nearly empty last row."""
    height, width = shape
    rows = max(1, round(float(np.sqrt(count * width / height / 2.0))))
    return rows, -(-count // rows)


def _write(axes: Axes, scores: np.ndarray, limit: float) -> None:
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
