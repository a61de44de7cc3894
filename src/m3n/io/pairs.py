"""Examples that come as pairs of an input and its output, one after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any


def unzip(pairs: Iterable[tuple[Any, Any]]) -> tuple[Iterator[Any], Iterator[Any]]:
    """The inputs and the outputs of pairs: two iterators to be read in step, as ``fit`` of sequence models does.

    Whatever one of them is ahead of the other is kept until that has come as far. ``zip(*pairs)`` keeps everything.

    Parameters
    ----------
    pairs : iterable of (x, y)
        For example a generator that reads a file.

    Examples
    --------
    >>> X, y = unzip((line.split(), len(line)) for line in ["a dog", "barks"])
    >>> list(X), list(y)
    ([['a', 'dog'], ['barks']], [5, 5])
    """
    waiting: tuple[deque[Any], deque[Any]] = deque(), deque()
    remaining = enumerate(pairs)
    return _half(remaining, waiting, 0), _half(remaining, waiting, 1)


def _half(remaining: Iterator[tuple[int, Any]], waiting: tuple[deque[Any], deque[Any]], which: int) -> Iterator[Any]:
    """One side. (``itertools.tee`` would keep up to 57 pairs that both sides have come past.)"""
    own, other = waiting[which], waiting[1 - which]
    while True:
        if not own:
            for i, pair in remaining:
                if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                    raise ValueError(f"sequence {i}: expected a pair (x, y), got {pair!r:.60}")
                own.append(pair[which])
                other.append(pair[1 - which])
                break
            else:
                return
            del pair
        yield own.popleft()
