"""Dicts with collections inside, opened: {"next": {"word": "dog"}, "bag": ["a", "b"]} has three names with values,

    next:word  dog      bag  a      bag  b

where the colon is a separator that joins names, and a text in a list or set is like a value that is a text. Joined
names are remembered, so that most of this runs in C.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

NESTED = frozenset((dict, list, set))  # values whose attributes stand behind their name
MOST = 10_000  # joined names that are remembered


class JoinedNames(dict[Any, str]):
    """Names, each behind the same text; a ``TypeError`` says that one is no text.

    Parameters
    ----------
    before : str
        What they stand behind.
    separator : str
        What stands behind a name whose value is a dict.
    """

    def __init__(self, before: str, separator: str):
        self.before, self.separator = before, separator
        self.inner: dict[str, JoinedNames] = {}

    def __missing__(self, name: Any) -> str:
        text: str = self.before + name
        if len(self) < MOST:
            self[name] = text
        return text

    def behind(self, name: str) -> JoinedNames:
        """The names in a dict that is the value of a name.

        Parameters
        ----------
        name : str
            Which.
        """
        found = self.inner.get(name)
        if found is None:
            found = JoinedNames(self[name] + self.separator, self.separator)
            if len(self.inner) < MOST:
                self.inner[name] = found
        return found


class Opened:
    """Names with values that are no collections, collected from dicts.

    Attributes
    ----------
    names, values : lists
        One name and one value per attribute.
    kinds : set of types
        Of what lists and sets hold, which should be texts.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.values: list[Any] = []
        self.kinds: set[type] = set()

    def add(self, token: dict[Any, Any], joined: JoinedNames) -> None:
        """Go on with a dict.

        Parameters
        ----------
        token : dict
            The dict.
        joined : JoinedNames
            What its names are called.
        """
        before = joined.before
        for name, value in token.items():
            kind = type(value)
            if kind not in NESTED:
                self.names.append(before + name)
                self.values.append(value)
            elif kind is not dict:
                self.kinds.update(map(type, value))
                self.names.extend(repeat(before + name, len(value)))
                self.values.extend(value)
            elif NESTED.isdisjoint(map(type, value.values())):
                self.names.extend(map(joined.behind(name).__getitem__, value))
                self.values.extend(value.values())
            else:
                self.add(value, joined.behind(name))
