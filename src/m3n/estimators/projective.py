"""Trees with crossing arcs made projective, by lifting arcs (Nivre, Nilsson, "Pseudo-projective dependency parsing",
2005).

An arc from h to d is *projective* if h is above every word between them. Where one is not, its dependent moves to
the head of its head. The shortest such arc goes first; every step brings some word nearer to the root, so this ends."""

from __future__ import annotations


def lifted(trees: list[list[int]]) -> tuple[list[list[int]], int]:
    """Projective trees, and how many of them had to be changed.

    Parameters
    ----------
    trees : list of lists of int
        For every word its head, 0 for the root.

    Examples
    --------
    >>> lifted([[3, 4, 0, 3], [2, 0]])
    ([[3, 3, 0, 3], [2, 0]], 1)
    """
    found = [_lift(heads) for heads in trees]
    return found, sum(new != old for new, old in zip(found, trees, strict=True))


def crossing(heads: list[int]) -> list[int]:
    """The words whose arcs are not projective, those of the shortest arcs first.

    Parameters
    ----------
    heads : list of int
        For every word its head, 0 for the root.
    """
    above = _ancestors(heads)
    found = [d for d, h in enumerate(heads, start=1) if not all(h in above[k] for k in range(min(d, h) + 1, max(d, h)))]
    return sorted(found, key=lambda d: abs(d - heads[d - 1]))


def _lift(heads: list[int]) -> list[int]:
    if not _may_cross(heads):
        return heads
    heads = list(heads)
    while words := crossing(heads):
        heads[words[0] - 1] = heads[heads[words[0] - 1] - 1]
    return heads


def _may_cross(heads: list[int]) -> bool:
    """Whether two arcs cross, the root standing left of all words: quick, and right for trees."""
    arcs = sorted((min(d, h), -max(d, h)) for d, h in enumerate(heads, start=1))
    open_ends: list[int] = []
    for low, minus in arcs:
        while open_ends and open_ends[-1] <= low:
            open_ends.pop()
        if open_ends and -minus > open_ends[-1]:
            return True
        open_ends.append(-minus)
    return False


def _ancestors(heads: list[int]) -> list[set[int]]:
    """All that is above a word, for every word."""
    found = [set[int]() for _ in range(len(heads) + 1)]
    for word in range(1, len(heads) + 1):
        head = word
        while head:
            head = heads[head - 1]
            found[word].add(head)
    return found
