"""Forms of a word that templates may ask for: ``%x[0,0:suffix3]`` is the end of the word in column 0.

Every form is a function of the word, and computed once per distinct word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter

LONGEST = 6  # letters of a prefix or suffix
RUN = re.compile(r"(.)\1+")


def shape(word: str) -> str:
    """The word with capital letters as X, small ones as x and digits as d; other characters stay.

    Examples
    --------
    >>> shape("McDonald's-42")
    "XxXxxxxx'x-dd"
    """
    return "".join("d" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in word)


def brief(word: str) -> str:
    """The shape of the word with repetitions left out.

    Examples
    --------
    >>> brief("McDonald's-42")
    "XxXx'x-d"
    """
    return RUN.sub(r"\1", shape(word))


def digits(word: str) -> str:
    """The word with all digits as 0.

    Examples
    --------
    >>> digits("14:31")
    '00:00'
    """
    return re.sub(r"\d", "0", word)


FORMS: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "shape": shape,
    "brief": brief,
    "digits": digits,
    **{f"prefix{k}": itemgetter(slice(k)) for k in range(1, LONGEST + 1)},
    **{f"suffix{k}": itemgetter(slice(-k, None)) for k in range(1, LONGEST + 1)},
}
