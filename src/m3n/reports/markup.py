"""HTML from Python: elements as functions of their content, with every text escaped.

A string is text and is escaped; only what these functions return, a ``Markup``, is taken for HTML. So no text of the
data can become an element, wherever it comes from.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from html import escape
from typing import Any

VOID = frozenset({"br", "col", "input", "link", "meta"})  # elements without content and end tag
MINUS = "\N{MINUS SIGN}"
SMALL, LARGE = 1e-6, 1e9  # beyond these, powers of ten are easier to read
THIN = "\N{NARROW NO-BREAK SPACE}"
FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


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
