"""One alignment out of two: links from the source to the target and links from the target to the source, combined.

In every direction a word has one link at most, so each direction alone misses links of several words with one. Links
of both are *sure to be kept* (intersection), those of either *may* be (union). Between the two lies *growing*: begin
with the intersection, and add links of the union that lie beside a link (diagonally, too) as long as one of their words
has no link yet. *final* then adds links anywhere of which one word has none, *final-and* those of which both have
none, first those of the forward direction, then those of the backward one.

Och, Ney, "A systematic comparison of various statistical alignment models" (Computational Linguistics 2003); Koehn et
al., "Edinburgh system description for the 2005 IWSLT speech translation evaluation" (IWSLT 2005).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from m3n.io.alignments import Link

NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
Links = Iterable[Link]


def symmetrize(forward: Sequence[Links], backward: Sequence[Links], method: str = "grow-diag") -> list[list[Link]]:
    """Combine the links of two directions.

    Parameters
    ----------
    forward, backward : sequences of iterables of (int, int)
        Links (source word, target word) of every sentence pair, in both directions.
    method : {"intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"}
        How.

    Returns
    -------
    list of lists of (int, int)
        Links of every sentence pair, sorted.

    Examples
    --------
    >>> symmetrize([[(0, 0), (1, 1)]], [[(0, 0), (0, 1)]], "grow-diag")
    [[(0, 0), (0, 1), (1, 1)]]
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not available; choose one of {tuple(METHODS)}")
    if len(forward) != len(backward):
        raise ValueError(f"forward has {len(forward)} sentence pairs, backward {len(backward)}")
    combine = METHODS[method]
    return [sorted(combine(set(a), set(b))) for a, b in zip(forward, backward, strict=True)]


def best_links(probabilities: np.ndarray) -> list[Link]:
    """For every target word the source word that it most likely comes from, unless null is more likely.

    Parameters
    ----------
    probabilities : array (source words, target words)
        Probabilities that a target word comes from a source word; give the transpose for the other direction.
    """
    null = 1.0 - probabilities.sum(axis=0)
    best = probabilities.argmax(axis=0)
    return [(int(i), j) for j, i in enumerate(best) if probabilities[i, j] > null[j]]


def _intersection(forward: set[Link], backward: set[Link]) -> set[Link]:
    return forward & backward


def _union(forward: set[Link], backward: set[Link]) -> set[Link]:
    return forward | backward


def _grow(forward: set[Link], backward: set[Link]) -> set[Link]:
    """Koehn's GROW-DIAG: links in the order of their words; those just added are grown from as well."""
    links, union = forward & backward, forward | backward
    before = -1
    while len(links) > before:
        before = len(links)
        for i, j in sorted(union):
            if (i, j) in links:
                for down, right in NEIGHBOURS:
                    _add(links, [(i + down, j + right)] if (i + down, j + right) in union else [], any)
    return links


def _add(links: set[Link], candidates: Links, needed: Callable[[Iterable[bool]], bool]) -> None:
    """Add the candidates of which any word, or all words, have no link so far."""
    for link in candidates:
        free = (all(link[side] != other[side] for other in links) for side in (0, 1))
        if needed(free):
            links.add(link)


def _grow_final(forward: set[Link], backward: set[Link]) -> set[Link]:
    return _finished(forward, backward, any)


def _grow_final_and(forward: set[Link], backward: set[Link]) -> set[Link]:
    return _finished(forward, backward, all)


def _finished(forward: set[Link], backward: set[Link], needed: Callable[[Iterable[bool]], bool]) -> set[Link]:
    links = _grow(forward, backward)
    for direction in (forward, backward):
        _add(links, sorted(direction), needed)
    return links


METHODS: dict[str, Callable[[set[Link], set[Link]], set[Link]]] = {
    "intersection": _intersection,
    "union": _union,
    "grow-diag": _grow,
    "grow-diag-final": _grow_final,
    "grow-diag-final-and": _grow_final_and,
}
