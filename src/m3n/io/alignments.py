"""Sentence pairs and their word alignments: which words of two sentences translate each other.

A link is a pair (i, j), counted from 0: word i of the first sentence (the *source*) and word j of the second (the
*target*). Annotators mark links that are *sure*, and some that are *possible*: neither wrong nor needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

Link = tuple[int, int]


class Alignment(NamedTuple):
    """The links of a sentence pair as annotators give them.

    Attributes
    ----------
    sure : frozenset of (int, int)
        Links that must be there.
    possible : frozenset of (int, int)
        Links that may be there, without the sure ones.
    """

    sure: frozenset[Link]
    possible: frozenset[Link] = frozenset()

    @classmethod
    def of(cls, links: Any) -> Alignment:
        """An alignment as it is; of other links, pairs of numbers, all are sure.

        Parameters
        ----------
        links : Alignment or iterable of (int, int)
            The links.
        """
        if isinstance(links, Alignment):
            return links
        return cls(frozenset(_pairs(links)))


def _pairs(links: Iterable[Any]) -> Iterable[Link]:
    for link in links:
        i, j = link
        yield int(i), int(j)
