"""Lists of lists."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

__all__ = ["flatten"]


def flatten(y: Iterable[Iterable[Any]]) -> list[Any]:
    """All labels of all sequences in one list.

    Parameters
    ----------
    y : sequences of labels
        The sequences.
    """
    return list(chain.from_iterable(y))
