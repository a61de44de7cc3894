"""The convergence chart: primal and dual that enclose the optimum, and their gap, against passes and against seconds.

Both panels have logarithmic axes and share the horizontal one. Every panel is drawn for passes and for seconds; the
page shows one of the two. The places of all records come along as data, so that the page can point at the one nearest
to the pointer without any arithmetic of its own.

Ticks are powers of ten; where fewer than three of these are in range, 1 and 3, or 1, 2 and 5 times powers of ten, and
where even these are too few, round numbers at equal distances. Where there are too many, every second or third stays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m3n.reports.markup import Column, Markup, joined, number, table, tag
from m3n.reports.training import Training
from m3n.run.certificate import Record

ENOUGH, MOST_TICKS = 3, 7
MULTIPLES = ((1,), (1, 3), (1, 2, 5))
MOST = 1000  # records in a chart: more cannot be told apart
WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 468, 14, 252  # of the frame
DEEPEST = 1e-3  # of the last primal value: lower bounds below that would flatten the rest of the picture
CURVES = ("primal", "dual", "gap")
ALONG = {"passes": "passes over the data", "seconds": "seconds"}
PANELS = {"objective": (("primal", "dual"), "Primal and dual value"), "gap": (("gap",), "Gap between them")}


@dataclass(frozen=True)
class LogAxis:
    """A range of positive numbers on a line from ``begin`` to ``end``.

    Parameters
    ----------
    low, high : float
        The range; where it is empty it is widened.
    begin, end : float
        Where ``low`` and ``high`` lie in the picture.
    """

    low: float
    high: float
    begin: float
    end: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high < math.inf:
            raise ValueError(f"a logarithmic axis needs positive finite numbers, got {self.low} to {self.high}")
        if self.high < 1.05 * self.low:  # one value, or as good as one
            object.__setattr__(self, "low", self.low / 1.5)
            object.__setattr__(self, "high", self.high * 1.5)

    def at(self, value: float) -> float | None:
        """The place of a value, at the edge if it lies outside; None for what has no logarithm."""
        if not 0 < value < math.inf:
            return None
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin), 1)

    def ticks(self) -> list[float]:
        """Round numbers within the range."""
        for multiples in MULTIPLES:
            found = self._powers(multiples)
            if len(found) >= ENOUGH:
                return found[:: math.ceil(len(found) / MOST_TICKS)]
        return _round_numbers(self.low, self.high)

    def _powers(self, multiples: tuple[int, ...]) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        numbers = [float(f"{m}e{k}") for k in range(first, last + 1) for m in multiples]
        return [value for value in numbers if 0.999 * self.low <= value <= 1.001 * self.high]


def _round_numbers(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, three to seven of them."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    return [float(f"{k * step:.12g}") for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


@dataclass(frozen=True)
class Panel:
    """What is drawn against what: ``kind`` against ``along``, the axes, and the tolerance if that lies among them."""

    kind: str
    along: str
    x: LogAxis
    y: LogAxis
    tol: float | None = None


def convergence(training: Training) -> Markup:
    """Two panels with the switch, the values at one record, and all of them as a table.

    Parameters
    ----------
    training : Training
        Its trace may be empty: then there is a sentence instead.
    """
    records = thinned([record for record in training.trace if math.isfinite(record.primal)])
    axes = {along: _range(records, along) for along in ALONG}
    if not any(axes.values()):
        return tag("p", "There is no record of how training went, so there is no chart.", class_="note")
    shown = {along: axis for along, axis in axes.items() if axis is not None}
    heights = _heights(records, training.tol)
    panels = [
        [_picture(records, Panel(kind, along, x, y, training.tol)) for along, x in shown.items()]
        for kind, y in heights.items()
        if y is not None
    ]
    return tag(
        "div",
        _switch(shown) if len(shown) > 1 else None,
        _readout(records[-1]),
        tag("div", [tag("div", panel, class_="panel") for panel in panels], class_="panels"),
        _slider(len(records)),
        tag("details", tag("summary", "The same numbers as a table"), _table(records)),
        class_="chart",
        data_records=json.dumps(_places(records, shown, heights), separators=(",", ":")),
    )


def thinned(records: Sequence[Record], most: int = MOST) -> list[Record]:
    """At most so many records, the first and the last among them, denser at the beginning as on logarithmic paper.

    Parameters
    ----------
    records : sequence of Record
        A trace.
    most : int
        How many may stay.
    """
    if len(records) <= most:
        return list(records)
    chosen = np.unique(np.geomspace(1, len(records), most).round().astype(int) - 1)
    return [records[k] for k in chosen]


def _range(records: list[Record], along: str) -> LogAxis | None:
    values = [value for value in (getattr(record, along) for record in records) if 0 < value < math.inf]
    return LogAxis(min(values), max(values), LEFT, RIGHT) if values else None


def _heights(records: list[Record], tol: float | None) -> dict[str, LogAxis | None]:
    """The vertical axes of both panels."""
    primal = [record.primal for record in records if record.primal > 0]
    deepest = DEEPEST * primal[-1] if primal else math.inf
    both = primal + [max(record.dual, deepest) for record in records if 0 < record.dual < math.inf]
    gaps = [record.gap for record in records if 0 < record.gap < math.inf]
    if gaps and tol and min(gaps) / 10 <= tol <= max(gaps):
        gaps.append(tol)
    return {name: _axis(values) for name, values in (("objective", both), ("gap", gaps))}


def _axis(values: list[float]) -> LogAxis | None:
    """With some air above and below."""
    if not values:
        return None
    air = max((max(values) / min(values)) ** 0.05, 1.02)
    return LogAxis(min(values) / air, max(values) * air, BOTTOM, TOP)


def _picture(records: list[Record], panel: Panel) -> Markup:
    """One panel against one of the horizontal axes; the page shows those of passes first."""
    names, title = PANELS[panel.kind]
    last = ", ".join(f"{name} {number(getattr(records[-1], name))}" for name in names)
    label = f"{title} against {ALONG[panel.along]}, on logarithmic axes. At the end: {last}."
    drawing = tag(
        "svg",
        _frame(panel),
        _band(records, panel) if panel.kind == "objective" else _tolerance(panel),
        [_line(records, panel, name) for name in names],
        tag("line", class_="cursor", x1=0, x2=0, y1=TOP, y2=BOTTOM),
        [tag("circle", class_=f"dot {name}", r=5, data_curve=name) for name in names],
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=label,
    )
    caption = tag("figcaption", tag("strong", title), [_key(name) for name in names])
    return tag("figure", caption, drawing, data_along=panel.along)


def _key(name: str) -> Markup:
    """What a line means."""
    line = tag("line", class_=f"curve {name}", x1=1, x2=27, y1=5, y2=5)
    words = {"primal": "these weights", "dual": "lower bound for any weights", "gap": "primal − dual"}[name]
    sample = tag("svg", line, viewBox="0 0 28 10", width=28, height=10, aria_hidden="true")
    return tag("span", sample, f" {name}: {words}" if name != "gap" else f" {words}", class_="key")


def _frame(panel: Panel) -> Markup:
    """Grid, numbers and the name of the horizontal axis."""
    x, y = panel.x, panel.y
    upright = [(number(value), x.at(value)) for value in x.ticks()]
    level = [(number(value), y.at(value)) for value in y.ticks()]
    return tag(
        "g",
        [tag("line", class_="grid", x1=at, x2=at, y1=TOP, y2=BOTTOM) for _, at in upright],
        [tag("line", class_="grid", x1=LEFT, x2=RIGHT, y1=at, y2=at) for _, at in level],
        [tag("text", text, x=at, y=BOTTOM + 18, text_anchor="middle") for text, at in upright],
        [tag("text", text, x=LEFT - 7, y=(at or 0) + 4, text_anchor="end") for text, at in level],
        tag("text", ALONG[panel.along], x=(LEFT + RIGHT) / 2, y=HEIGHT - 8, text_anchor="middle"),
    )


def _line(records: list[Record], panel: Panel, name: str) -> Markup:
    points = [(panel.x.at(getattr(r, panel.along)), panel.y.at(getattr(r, name))) for r in records]
    drawn = [(across, up) for across, up in points if across is not None and up is not None]
    if len(drawn) > 1:
        return tag("polyline", class_=f"curve {name}", points=_pairs(drawn))
    return joined(tag("circle", class_=f"point {name}", cx=across, cy=up, r=3) for across, up in drawn)


def _band(records: list[Record], panel: Panel) -> Markup:
    """The area in which the optimum lies."""
    x, y = panel.x, panel.y
    rows = [(x.at(getattr(r, panel.along)), y.at(r.primal), y.at(r.dual) or BOTTOM) for r in records]
    inside = [(across, upper, lower) for across, upper, lower in rows if across is not None and upper is not None]
    outline = [(a, upper) for a, upper, _ in inside] + [(a, lower) for a, _, lower in reversed(inside)]
    return tag("polygon", class_="band", points=_pairs(outline))


def _tolerance(panel: Panel) -> Markup | None:
    """The gap at which training was to stop, if it is in the picture."""
    if not panel.tol or not panel.y.low <= panel.tol <= panel.y.high:
        return None
    at = panel.y.at(panel.tol) or 0.0
    words = tag("text", f"tolerance {number(panel.tol)}", x=LEFT + 6, y=at - 5)
    return joined(tag("line", class_="tolerance", x1=LEFT, x2=RIGHT, y1=at, y2=at), words)


def _pairs(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{across:g},{up:g}" for across, up in points)


def _switch(along: dict[str, LogAxis]) -> Markup:
    choices = [
        tag("label", tag("input", type="radio", name="along", value=name, checked=k == 0), tag("span", name))
        for k, name in enumerate(along)
    ]
    return tag("fieldset", tag("legend", "Against"), choices, class_="switch script")


def _readout(record: Record) -> Markup:
    """The values at one record; the last one until another is pointed at."""
    values = zip(("passes", "seconds", *CURVES), _texts(record), strict=True)
    return tag(
        "dl",
        [tag("div", tag("dt", name), tag("dd", text, data_value=name), class_=name) for name, text in values],
        class_="readout",
    )


def _slider(many: int) -> Markup:
    """The keyboard's way to point at a record."""
    slider = tag("input", type="range", min=0, max=many - 1, value=many - 1, step=1)
    return tag("label", tag("span", "Step through the records"), slider, class_="slider script")


def _texts(record: Record) -> list[str]:
    return [number(record.passes), number(record.seconds), *(number(getattr(record, name), 5) for name in CURVES)]


def _places(records: list[Record], along: dict[str, LogAxis], heights: dict[str, LogAxis | None]) -> dict[str, Any]:
    """Texts and places of all records, for the page's script."""

    def column(axis: LogAxis | None, name: str) -> list[float | None]:
        return [None if axis is None else axis.at(getattr(record, name)) for record in records]

    panel = {"primal": "objective", "dual": "objective", "gap": "gap"}
    return {
        "texts": [_texts(record) for record in records],
        "x": {name: column(axis, name) for name, axis in along.items()},
        "y": {name: column(heights[panel[name]], name) for name in CURVES},
    }


def _table(records: list[Record]) -> Markup:
    columns = [Column(name, numeric=True) for name in ("passes", "seconds", *CURVES)]
    values = [[record.passes, record.seconds, record.primal, record.dual, record.gap] for record in records]
    rows = [list(zip(_texts(record), row, strict=True)) for record, row in zip(records, values, strict=True)]
    return table("Convergence, record by record", columns, rows)
