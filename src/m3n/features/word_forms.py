"""Forms of a word that templates may ask for: ``%x[0,0:suffix3]`` is the end of the word in column 0.

A form is computed once per distinct word.
"""

from __future__ import annotations

import re
from collections.abc import Callable

LONGEST = 6  # letters of a prefix or suffix
RUN = re.compile(r"(.)\1+")


def shape(word: str) -> str:
    """Capital letters as X, small ones as x, digits as d; other characters stay.

    Parameters
    ----------
    word : str
        The word.

    Examples
    --------
    >>> shape("McDonald's-42")
    "XxXxxxxx'x-dd"
    """
    return "".join("d" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in word)


def brief(word: str) -> str:
    """The shape with repetitions left out.

    Parameters
    ----------
    word : str
        The word.

    Examples
    --------
    >>> brief("McDonald's-42")
    "XxXx'x-d"
    """
    return RUN.sub(r"\1", shape(word))


def digits(word: str) -> str:
    """All digits as 0.

    Parameters
    ----------
    word : str
        The word.

    Examples
    --------
    >>> digits("14:31")
    '00:00'
    """
    return re.sub(r"\d", "0", word)


def _prefix(length: int) -> Callable[[str], str]:
    return lambda word: word[:length]


def _suffix(length: int) -> Callable[[str], str]:
    return lambda word: word[-length:]


FORMS: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "shape": shape,
    "brief": brief,
    "digits": digits,
    **{f"prefix{k}": _prefix(k) for k in range(1, LONGEST + 1)},
    **{f"suffix{k}": _suffix(k) for k in range(1, LONGEST + 1)},
}
