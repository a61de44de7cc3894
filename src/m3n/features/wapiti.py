"""The regular expressions of Wapiti's templates, as Python's.

    .                   any letter
    \\d \\a \\w            digit, letter, either            (\\D \\A \\W: all others)
    \\l \\u \\p \\s         small letter, capital, punctuation, blank      (likewise)
    \\x                  any other x itself
    x*                  any number of x, as few as will do
    x?                  x or nothing, x if that will do
    ^ and $             at the ends of the expression: the ends of the value

The classes are those of ASCII, as in Wapiti; unlike there a dot is a letter of any alphabet and never a part of one.
The first match counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

CLASSES = {
    "d": "0-9", "a": "A-Za-z", "w": "0-9A-Za-z", "l": "a-z", "u": "A-Z", "s": r" \t\n\r\f\v",
    "p": r"!-/:-@\[-`{-~",
}  # fmt: skip


@cache
def translated(expression: str) -> re.Pattern[str]:
    """The same expression for Python.

    Parameters
    ----------
    expression : str
        One of Wapiti's.
    """
    rest, python, last = expression, "", False  # last: whether a letter comes before, which * and ? may follow
    if rest.startswith("^"):
        rest, python = rest[1:], r"\A"
    while rest:
        if rest == "$":
            python, rest = python + r"\Z", ""
        elif rest[0] in "*?":
            if not last:
                raise ValueError(
                    f"the expression {expression!r} has a {rest[0]} after nothing; write \\{rest[0]} for it"
                )
            python, rest, last = python + ("*?" if rest[0] == "*" else "?"), rest[1:], False
        else:
            length = 2 if rest[0] == "\\" else 1
            python, rest, last = python + _letter(rest[:length], expression), rest[length:], True
    return re.compile(python, re.DOTALL)


def _letter(written: str, expression: str) -> str:
    """What matches one letter."""
    if written == ".":
        return "."
    if written == "\\":
        raise ValueError(f"the expression {expression!r} ends in a backslash; write \\\\ for it")
    name = written[1:].lower() if written[0] == "\\" else ""
    if name in CLASSES:
        return f"[{'' if written[1].islower() else '^'}{CLASSES[name]}]"
    return re.escape(written[-1])


def form_of(kind: str, expression: str) -> Callable[[str], str]:
    """What a macro makes of a value.

    Parameters
    ----------
    kind : {"t", "m", "M"}
        true or false; the match; the match in small letters.
    expression : str
        One of Wapiti's.
    """
    search = translated(expression).search
    if kind == "t":
        return lambda value: "true" if search(value) else "false"

    def match(value: str) -> str:
        found = search(value)
        return found.group() if found else ""

    return match if kind == "m" else lambda value: match(value).lower()
