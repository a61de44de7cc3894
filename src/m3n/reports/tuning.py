"""What a report says about a search for settings: scores along lam, what is proven in between, and what it took.

The score of every lam stands with its spread over the folds on a logarithmic axis of lam, above the band in which the
scores of the exact optima are proven to lie; below, the gap of the models and the seconds that they took.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from m3n.reports.curves import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, LogAxis
from m3n.reports.markup import Column, Markup, joined, number, percent, table, tag
from m3n.tuning import Row, Tuning

AIR = 0.08  # of the range, above and below


class Linear:
    """A range of numbers on a line from ``begin`` to ``end``.

    Parameters
    ----------
    low, high : float
        The range; where it is empty it is widened.
    """

    def __init__(self, low: float, high: float):
        air = AIR * (high - low) or 0.01
        self.low, self.high = low - air, high + air

    def at(self, value: float) -> float:
        """The height of a value, at the edge if it lies outside."""
        share = (value - self.low) / (self.high - self.low)
        return round(BOTTOM + min(max(share, 0.0), 1.0) * (TOP - BOTTOM), 1)

    def ticks(self) -> list[float]:
        """Round numbers within the range."""
        power = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= (self.high - self.low) / 6)
        return [k * step for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def lam_path(tuning: Tuning) -> Markup:
    """The section: what was found in words, pictures, and all settings as a table.

    Parameters
    ----------
    tuning : Tuning
        The outcome of a search.
    """
    words = [tag("p", f"{sentence[0].upper()}{sentence[1:]}.") for sentence in tuning.words]
    pictures = [_scores(tuning), _costs(tuning)]
    return joined(words, tag("div", [tag("div", p, class_="panel") for p in pictures], class_="panels"), _table(tuning))


def _scores(tuning: Tuning) -> Markup:
    """Scores with their spread against lam, and the band that is proven."""
    rows = [row for row in _line(tuning) if not row.abandoned]
    reach = [row.mean + sign * _spread(row) for row in rows for sign in (-1.0, 1.0)]
    pieces = [] if tuning.guarantee is None else tuning.guarantee.pieces
    x = _across(_line(tuning))
    y = Linear(min(reach), max([*reach, *(min(piece.upper, 1.0) for piece in pieces)]))
    best = tuning.best
    drawing = tag(
        "svg",
        _frame(x, [(number(value, 4), y.at(value)) for value in y.ticks()]),
        [_bar(piece, x, y) for piece in pieces],
        [tag("line", class_="spread", x1=a, x2=a, y1=low, y2=high) for a, low, high in _spreads(rows, x, y)],
        tag("polyline", class_="curve dual plain", points=_pairs([(x.at(r.lam), y.at(r.mean)) for r in rows])),
        [tag("circle", class_="point dual", cx=x.at(r.lam), cy=y.at(r.mean), r=3) for r in rows],
        tag("circle", class_="chosen", cx=x.at(best.lam), cy=y.at(best.mean), r=6),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"{tuning.scoring} against lam. Best: {number(best.mean, 4)} at {number(best.lam)}.",
    )
    keys = ["ring: the chosen lam", *(["bars: the standard deviation of folds"] if len(best.scores) > 1 else [])]
    keys += ["band: proven for every lam"] if pieces else []
    return _figure(f"{tuning.scoring.capitalize()} on held-out data", keys, drawing)


def _costs(tuning: Tuning) -> Markup:
    """The gap and the seconds of every lam, both on one logarithmic axis."""
    x, kinds = _across(_line(tuning)), {"gap": "gap", "seconds": "primal"}
    values = [value for row in _line(tuning) for value in (row.gap, row.seconds) if value > 0]
    y = LogAxis(min(values, default=1.0), max(values, default=1.0), BOTTOM, TOP)
    lines = [
        tag("polyline", class_=f"curve {kind}", points=_pairs([(x.at(r.lam), y.at(getattr(r, name))) for r in found]))
        for name, kind in kinds.items()
        if len(found := [row for row in _line(tuning) if getattr(row, name) > 0])
    ]
    drawing = tag(
        "svg",
        _frame(x, [(number(value), y.at(value)) for value in y.ticks()]),
        lines,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"Duality gap and seconds against lam; {number(sum(r.seconds for r in tuning.rows))} s together.",
    )
    return _figure("What it took", ["green: largest duality gap", "red: seconds of all folds"], drawing)


def _figure(title: str, keys: Sequence[str], drawing: Markup) -> Markup:
    return tag("figure", tag("figcaption", tag("strong", title), [tag("span", k, class_="key") for k in keys]), drawing)


def _line(tuning: Tuning) -> list[Row]:
    """The rows of the table that differ from the chosen one in lam alone."""
    return [row for row in tuning.line if not row.added or row is tuning.best]


def _across(rows: Sequence[Row]) -> LogAxis:
    lams = [row.lam for row in rows]
    return LogAxis(min(lams), max(lams), LEFT, RIGHT)


def _frame(x: LogAxis, level: Sequence[tuple[str, float | None]]) -> Markup:
    """Grid and numbers."""
    upright = [(number(value), x.at(value)) for value in x.ticks()]
    return tag(
        "g",
        [tag("line", class_="grid", x1=at, x2=at, y1=TOP, y2=BOTTOM) for _, at in upright],
        [tag("line", class_="grid", x1=LEFT, x2=RIGHT, y1=at, y2=at) for _, at in level],
        [tag("text", text, x=at, y=BOTTOM + 18, text_anchor="middle") for text, at in upright],
        [tag("text", text, x=LEFT - 7, y=(at or 0) + 4, text_anchor="end") for text, at in level],
        tag("text", "lam", x=(LEFT + RIGHT) / 2, y=HEIGHT - 8, text_anchor="middle"),
    )


def _bar(piece: Any, x: LogAxis, y: Linear) -> Markup:
    """The band over a piece of the range."""
    left, right, top, bottom = x.at(piece.low) or LEFT, x.at(piece.high) or RIGHT, y.at(piece.upper), y.at(piece.lower)
    return tag("polygon", class_="band", points=_pairs([(left, top), (right, top), (right, bottom), (left, bottom)]))


def _spreads(rows: Sequence[Row], x: LogAxis, y: Linear) -> list[tuple[Any, float, float]]:
    return [
        (x.at(r.lam), y.at(r.mean - r.std), y.at(r.mean + r.std)) for r in rows if len(r.scores) > 1 and r.std > 0.0
    ]


def _spread(row: Row) -> float:
    return row.std if len(row.scores) > 1 else 0.0


def _pairs(points: Sequence[tuple[float | None, float | None]]) -> str:
    return " ".join(f"{across:g},{up:g}" for across, up in points if across is not None and up is not None)


def _table(tuning: Tuning) -> Markup:
    """Every setting in a row."""
    names = list(tuning.best.params)
    heads = [tuning.scoring, "standard deviation", "gap", "passes", "seconds"]
    columns = [Column("lam", numeric=True), *map(Column, names), *(Column(name, numeric=True) for name in heads)]
    return table("All settings", [*columns, Column("note")], [_cells(tuning, row, names) for row in tuning.shown])


def _cells(tuning: Tuning, row: Row, names: Sequence[str]) -> list[tuple[Any, Any]]:
    note = "chosen" if row is tuning.best else f"given up after {len(row.scores)} folds" if row.abandoned else ""
    spread = percent(row.std) if len(row.scores) > 1 else ""
    figures: list[tuple[Any, Any]] = [(number(v), v) for v in (row.gap, row.passes, row.seconds)]
    texts = [(text, text) for text in (str(row.params[name]) for name in names)]
    score = (number(row.mean, 4), row.mean)
    return [(number(row.lam, 4), row.lam), *texts, score, (spread, row.std if spread else 0.0), *figures, (note, note)]
