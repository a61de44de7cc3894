"""Whether probabilities are right as often as they say, and sets hold the right answer as often as they promise.

The likeliest labels of all positions are put into bins by their probability. In a bin of B positions out of n, with
mean probability p_B and a share r_B of right ones,

    expected calibration error = sum over bins of |B|/n * |p_B - r_B|,

which the picture shows as the distances of its bars from the diagonal. It is drawn at temperature 1 and at the one that
was found for the model. (Guo, Pleiss, Sun, Weinberger, "On Calibration of Modern Neural Networks", 2017.)
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from m3n.reports.markup import Column, Markup, joined, number, percent, table, tag
from m3n.reports.quality import Outcome

BINS = 15
WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 456, 14, 252  # of the frame
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


class Reliability(NamedTuple):
    """What probabilities say, and how often they are right, by bins that are not empty."""

    temperature: float
    bins: np.ndarray  # (bins,): their numbers
    counts: np.ndarray  # (bins,): positions
    said: np.ndarray  # (bins,): mean probabilities
    right: np.ndarray  # (bins,): shares of right labels

    @property
    def error(self) -> float:
        """The expected calibration error."""
        return float(self.counts @ np.abs(self.said - self.right) / self.counts.sum())


def has_probabilities(model: Any) -> bool:
    """Whether a model has labels with probabilities at a temperature, and sets of them.

    Parameters
    ----------
    model : estimator
        A fitted one.
    """
    return all(hasattr(model, name) for name in ("predict_marginals", "coverage_report", "temperature_"))


def probabilities(outcome: Outcome, model: Any, X: Any) -> Markup:
    """Reliability at temperature 1 and at the model's own, and coverage if the model has been calibrated for it.

    Parameters
    ----------
    outcome : Outcome
        The right labels.
    model : estimator
        One that ``has_probabilities``.
    X : inputs
        The examples.
    """
    if not outcome.positions:
        return joined()  # the scores say so
    found = [reliability(outcome, model, X, warmth) for warmth in dict.fromkeys((1.0, model.temperature_))]
    return joined(
        tag("h3", "Probabilities"),
        tag("p", _words(found)),
        tag("div", [tag("div", _picture(each), class_="panel") for each in found], class_="panels"),
        tag("details", tag("summary", "The same numbers as a table"), [_table(each) for each in found]),
        _sets(outcome, model, X),
    )


def reliability(outcome: Outcome, model: Any, X: Any, temperature: float) -> Reliability:
    """How often the likeliest labels are right, by bins of their probability.

    Parameters
    ----------
    outcome : Outcome
        The right labels.
    model : estimator
        Has ``predict_marginals``.
    X : inputs
        The examples.
    temperature : float
        Of the probabilities.
    """
    shares = np.concatenate(model.predict_marginals(X, temperature))
    likeliest, names = shares.argmax(axis=1).tolist(), model.classes_.tolist()
    gold = chain.from_iterable(outcome.gold)
    right = np.array([names[k] == label for k, label in zip(likeliest, gold, strict=True)], dtype=float)
    said = shares.max(axis=1)
    number_of = np.minimum((said * BINS).astype(int), BINS - 1)
    counts = np.bincount(number_of, minlength=BINS)
    bins = np.flatnonzero(counts)
    sums = (np.bincount(number_of, weights, BINS)[bins] / counts[bins] for weights in (said, right))
    return Reliability(temperature, bins, counts[bins], *sums)


def _words(found: list[Reliability]) -> str:
    first, last = found[0], found[-1]
    what = (
        "How often the likeliest label of a position is right, by its probability: bars on the dashed line are right "
        "as often as they say. Their mean distance from it, the expected calibration error, is "
        f"{percent(first.error)} at temperature 1"
    )
    if last is first:
        return f"{what}, the only one: calibrate_temperature, or calibrate, finds a better one on held-out data."
    return f"{what} and {percent(last.error)} at the temperature that was found for this model, {_warm(last)}."


def _warm(found: Reliability) -> str:
    return number(found.temperature)


def _picture(found: Reliability) -> Markup:
    """Bars of right labels above bins of probabilities."""
    title = f"Temperature {_warm(found)}: expected calibration error {percent(found.error)}"
    drawing = tag(
        "svg",
        _frame(),
        [_bar(found, k) for k in range(len(found.bins))],
        tag("line", class_="tolerance", x1=_across(0.0), y1=_up(0.0), x2=_across(1.0), y2=_up(1.0)),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"Share of right labels against their probability. {title}. The numbers are in the table below.",
    )
    return tag("figure", tag("figcaption", tag("strong", title)), drawing)


def _bar(found: Reliability, k: int) -> Markup:
    left, end = (_across((found.bins[k] + side) / BINS) for side in (0, 1))
    top, middle = _up(float(found.right[k])), _across(float(found.said[k]))
    box = {"x": round(left + 1, 1), "y": top, "width": round(end - left - 1, 1), "height": round(BOTTOM - top, 1)}
    return joined(tag("rect", class_="share", **box), tag("circle", class_="point dual", cx=middle, cy=top, r=3))


def _frame() -> Markup:
    """Grid, numbers and the names of both axes."""
    return tag(
        "g",
        [tag("line", class_="grid", x1=LEFT, x2=RIGHT, y1=_up(value), y2=_up(value)) for value in TICKS],
        [tag("text", _short(value), x=_across(value), y=BOTTOM + 18, text_anchor="middle") for value in TICKS],
        [tag("text", _short(value), x=LEFT - 7, y=_up(value) + 4, text_anchor="end") for value in TICKS],
        tag("text", "probability of the label; upwards the share that is right", x=(LEFT + RIGHT) / 2, y=HEIGHT - 8,
            text_anchor="middle"),
    )  # fmt: skip


def _short(share: float) -> str:
    return f"{100 * share:.0f} %"


def _across(share: float) -> float:
    return round(LEFT + share * (RIGHT - LEFT), 1)


def _up(share: float) -> float:
    return round(BOTTOM - share * (BOTTOM - TOP), 1)


def _table(found: Reliability) -> Markup:
    columns = [
        Column("probability from", numeric=True),
        Column("mean probability", numeric=True, note="what the model says"),
        Column("right", numeric=True, note="share of labels that are right"),
        Column("positions", numeric=True, note="how many there are"),
    ]
    rows = [
        [(percent(k / BINS), k / BINS), (percent(p), p), (percent(r), r), (str(n), n)]
        for k, n, p, r in zip(*(column.tolist() for column in found[1:]), strict=True)
    ]
    return table(f"Reliability at temperature {_warm(found)}", columns, rows)


def _sets(outcome: Outcome, model: Any, X: Any) -> Markup | None:
    """What was promised about sets of answers and what came of it."""
    if getattr(model, "coverage_", None) is None:
        return None
    found = model.coverage_report(X, outcome.gold)
    least = "" if found.complete == 1.0 else "at least "
    columns = [
        Column("sets of"),
        Column("wanted", numeric=True, note="how much was promised to be in them"),
        Column("found", numeric=True, note="how much is in them"),
        Column("mean size", numeric=True, note="answers in a set"),
    ]
    rows = [
        _row("whole outputs", found.outputs_wanted, found.outputs_found, (least, found.outputs_size)),
        _row("labels of a position", found.labels_wanted, found.labels_found, ("", found.labels_size)),
    ]
    words = (
        f"Thresholds come from {model.coverage_.sequences} held-out sequences. The promise is at least as much as was "
        "wanted on average over such data and over new data that are drawn alike; one data set is above it or below."
    )
    caption = "Coverage of sets of answers, on these data"
    return joined(tag("h3", "Sets of answers"), tag("p", words), table(caption, columns, rows))


def _row(name: str, wanted: float, found: float, size: tuple[str, float]) -> list[tuple[Any, Any]]:
    shares = [(percent(share), share) for share in (wanted, found)]
    return [(name, name), *shares, (f"{size[0]}{number(size[1])}", size[1])]
