"""Tables that a reader can sort, and matrices as heat maps.

A column's head is a button: the page's script sorts by it, for the mouse and for the keyboard, and tells screen readers
the order. Heat maps are tables, too: every cell holds its number as text, and colour only repeats it, in six steps of
blue and of orange, which the colour-blind tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from m3n.reports.markup import Markup, tag

STEPS = 6
SHOWN = 50  # rows of a long table before the reader asks for all
WIDE = 20  # columns of a heat map that need smaller print on paper


@dataclass(frozen=True)
class Column:
    """The head of a column."""

    name: str  # what stands there
    numeric: bool = False  # whether it sorts by value, largest first
    note: str | None = None  # what the name means


Entry = tuple[Any, Any]  # what a cell shows, and by what it sorts


def table(caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Entry]]) -> Markup:
    """A table that sorts by its columns; the first column names the row unless it is a number.

    Parameters
    ----------
    caption : str
        What the table shows.
    columns : sequence of Column
        The heads.
    rows : sequence of rows
        For every cell what it shows and the value by which it sorts.
    """
    named = not columns[0].numeric
    body = [tag("tr", [_cell(k, entry, columns[k], named) for k, entry in enumerate(row)]) for row in rows]
    heads = tag("thead", tag("tr", [_head(column) for column in columns]))
    return _box(
        caption, tag("table", tag("caption", caption), heads, tag("tbody", body), class_="sortable", data_shown=SHOWN)
    )


def facts(caption: str, rows: Sequence[tuple[Any, Any]]) -> Markup:
    """A table of names and values, which stays in its order.

    Parameters
    ----------
    caption : str
        What the table shows.
    rows : sequence of pairs
        Names and values.
    """
    body = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in rows]
    return _box(caption, tag("table", tag("caption", caption), tag("tbody", body), class_="facts"))


@dataclass(frozen=True)
class Cell:
    """One cell of a heat map."""

    text: str  # what it shows
    colour: str = ""  # "blue", "orange", or "" for none
    strength: float = 0.0  # from 0 to 1
    note: str | None = None  # what it shows in words

    @property
    def style(self) -> str | None:
        """The name of its colour in the style sheet."""
        step = min(math.ceil(STEPS * self.strength), STEPS)
        return f"{self.colour}-{step}" if self.colour and step > 0 else None


@dataclass(frozen=True)
class Sides:
    """Names at the two sides of a heat map."""

    down: str  # what rows are
    across: str  # what columns are
    rows: Sequence[str]  # the names of rows
    columns: Sequence[str]  # and of columns


def heat_map(caption: str, sides: Sides, cells: Sequence[Sequence[Cell]]) -> Markup:
    """A matrix with coloured cells.

    Parameters
    ----------
    caption : str
        What the table shows.
    sides : Sides
        The names of rows and columns.
    cells : sequence of rows of Cell
        The matrix.
    """
    corner = tag("td", tag("span", f"{sides.down} ↓", class_="down"), tag("span", f"{sides.across} →", class_="across"))
    heads = [tag("th", tag("span", name), scope="col") for name in sides.columns]
    body = [
        tag("tr", tag("th", name, scope="row"), [tag("td", c.text, class_=c.style, title=c.note) for c in row])
        for name, row in zip(sides.rows, cells, strict=True)
    ]
    inner = (tag("caption", caption), tag("thead", tag("tr", corner, heads)), tag("tbody", body))
    return _box(caption, tag("table", inner, class_="heat wide" if len(sides.columns) > WIDE else "heat"))


def _box(caption: str, content: Markup) -> Markup:
    """Wide tables scroll in a box of their own, which the keyboard can reach."""
    return tag("div", content, class_="box", role="region", aria_label=caption, tabindex=0)


def _head(column: Column) -> Markup:
    kind = "number" if column.numeric else "text"
    button = tag("button", column.name, type="button", title=column.note)
    return tag("th", button, scope="col", aria_sort="none", data_kind=kind)


def _cell(k: int, entry: Entry, column: Column, named: bool) -> Markup:
    shown, value = entry
    if k == 0 and named:
        return tag("th", shown, scope="row", data_value=value)
    return tag("td", shown, data_value=_sortable(value), class_="number" if column.numeric else None)


def _sortable(value: Any) -> Any:
    """JavaScript's word for infinity is another one."""
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.12g}" if isinstance(value, float) else value
