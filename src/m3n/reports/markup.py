"""HTML from Python: elements as functions of their content, with every text escaped; tables and heat maps.

A string is text and is escaped; only what these functions return, a ``Markup``, is taken for HTML. So no text of the
data can become an element, wherever it comes from.

The head of a table's column is a button: the page's script sorts by it, for the mouse and for the keyboard, and tells
screen readers the order. Heat maps are tables, too: every cell holds its number as text, and colour only repeats it, in
six steps of blue and of orange, which the colour-blind tell apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

VOID = frozenset({"br", "col", "input", "link", "meta"})  # elements without content and end tag
MINUS = "\N{MINUS SIGN}"
SMALL, LARGE = 1e-6, 1e9  # beyond these, powers of ten are easier to read
THIN = "\N{NARROW NO-BREAK SPACE}"
FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
STEPS = 6
SHOWN = 50  # rows of a long table before the reader asks for all
WIDE = 20  # columns of a heat map that need smaller print on paper


class Markup(str):
    """Text that is HTML already."""


def tag(name: str, /, *content: Any, **attributes: Any) -> Markup:
    """One element.

    Parameters
    ----------
    name : str
        Of the element, such as "p".
    *content : str, Markup, None or iterables of these
        What it holds; strings are escaped.
    **attributes
        A trailing underscore is dropped (``class_``), others become hyphens (``aria_label``); True stands for an
        attribute without a value, None and False leave it out.
    """
    given = {key: value for key, value in attributes.items() if value is not None and value is not False}
    words = [name, *(_attribute(key, value) for key, value in given.items())]
    return Markup(f"<{' '.join(words)}>" + ("" if name in VOID else f"{joined(*content)}</{name}>"))


def joined(*content: Any) -> Markup:
    """Elements and texts one after another.

    Parameters
    ----------
    *content : str, Markup, None or iterables of these
        Strings are escaped.
    """
    return Markup("".join(map(_text, content)))


def number(value: float, digits: int = 3) -> str:
    """A number for people: three significant digits, a true minus sign.

    Parameters
    ----------
    value : float
        Any number, infinite ones too.
    digits : int
        Significant digits.

    Examples
    --------
    >>> number(0.000842), number(12.3456), number(104321.0)
    ('0.000842', '12.3', '104321')
    """
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if value and not SMALL <= abs(value) < LARGE:
        return f"{value:.{digits}g}".replace("-", MINUS)
    exponent = math.floor(math.log10(abs(value))) if value else 0
    text = f"{value:.{max(digits - 1 - exponent, 0)}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", MINUS)


def percent(share: float) -> str:
    """A share in percent, with as many decimals as tell it from 0 and from 100.

    Parameters
    ----------
    share : float
        Between 0 and 1, as a rule.

    Examples
    --------
    >>> percent(0.9591).replace(THIN, " "), percent(0.00004).replace(THIN, " ")
    ('95.9 %', '0.004 %')
    """
    value = 100.0 * share
    if math.isinf(value) or math.isnan(value):
        return number(value)
    return f"{value:.1f}{THIN}%" if value == 0 or abs(value) >= 0.05 else f"{number(value, 1)}{THIN}%"


def count(many: int, singular: str, plural: str | None = None) -> str:
    """A number of things in words.

    Parameters
    ----------
    many : int
        How many.
    singular : str
        The word for one.
    plural : str, optional
        The word for others; with an "s" if it is not given.

    Examples
    --------
    >>> count(1, "sequence"), count(12345, "sequence").replace(THIN, " ")
    ('1 sequence', '12 345 sequences')
    """
    return f"{grouped(many)} {singular if many == 1 else plural or singular + 's'}"


def grouped(many: int) -> str:
    """A whole number whose thousands are set apart."""
    return f"{many:,}".replace(",", THIN).replace("-", MINUS)


def _attribute(name: str, value: Any) -> str:
    name = name.rstrip("_").replace("_", "-")
    return name if value is True else f'{name}="{escape(_visible(str(value)))}"'


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return escape(_visible(content))
    if isinstance(content, Iterable):
        return "".join(map(_text, content))
    return escape(str(content))


def _visible(text: str) -> str:
    """Control characters, which HTML forbids, and halves of characters, which no file can hold, as a sign for them."""
    return FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


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
