"""What speaks for a link between two words: features of all links of sentence pairs, in arrays.

The strongest witnesses are models without labels (``Evidence``): posterior probabilities of a link in both directions,
translation probabilities, Dice coefficients. Probabilities come as they are, as logarithms, and compared with the best
rival of the same word; then those of neighbouring links, as translations seldom jump; how far from the diagonal the
link is; spelling; how frequent both words are. All features lie within about -1 and 1, so that one regulariser suits
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m3n.alignment.grid import Grid

LETTERS = 12  # of a word that are compared
LEAST = 1e-6  # probability of which the logarithm is -1
RARE = 1e5  # rank that counts as 1
COMMON = 50  # the most frequent words of a language
STEPS = (0.02, 0.1, 0.3, 0.6, 0.9)  # probabilities that indicators ask for
DIAGONALS = ((-1, -1), (1, 1), (-1, 1), (1, -1))
SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What models without labels say about all links of a grid.

    Attributes
    ----------
    forward, backward : array (links,)
        Posterior probability that the source word has this target word, and the other way round.
    translation, reverse : array (links,)
        Probability of the target word as a translation of the source word, and the other way round.
    dice : array (links,)
        2 c(s, t) / (c(s) + c(t)), c counting the pairs of sentences with a word, or both words.
    ranks : tuple of array (source words,) and array (target words,)
        Of every word of all sentences, 0 for the most frequent one of its language.
    """

    forward: np.ndarray
    backward: np.ndarray
    translation: np.ndarray
    reverse: np.ndarray
    dice: np.ndarray
    ranks: tuple[np.ndarray, np.ndarray]

    @property
    def both(self) -> np.ndarray:
        """How much both directions believe in every link, (links,)."""
        return np.sqrt(self.forward * self.backward)


def link_features(grid: Grid, evidence: Sequence[Evidence], X: Sequence[Any]) -> dict[str, np.ndarray]:
    """Features of links by their names, each (links,).

    Parameters
    ----------
    grid : Grid
        The links.
    evidence : sequence of Evidence
        What models without labels say about them, the best one first.
    X : sequence of (source words, target words)
        The sentence pairs.
    """
    both = evidence[0].both
    found = {"bias": np.ones(len(both)), **_places(grid), **_spelling(grid, X)}
    found |= _frequencies(grid, evidence[0].ranks, both) | _neighbours(grid, both, evidence[0].dice)
    for k, own in enumerate(evidence, start=1):
        found |= {_numbered(name, k): column for name, column in _probabilities(grid, own).items()}
    return found


def word_features(grid: Grid, evidence: Sequence[Evidence], side: int) -> dict[str, np.ndarray]:
    """Features of words without a link, by their names, each (words,).

    Parameters
    ----------
    grid : Grid
        The links.
    evidence : sequence of Evidence
        What models without labels say about them.
    side : int
        0 for source words, 1 for target words.
    """
    ranks = evidence[0].ranks[side]
    found = {"rank": _rank(ranks), "common": ranks < COMMON}
    for k, own in enumerate(evidence, start=1):
        missing = np.clip(1.0 - grid.totals((own.forward, own.backward)[side], side), 0.0, 1.0)
        found |= {_numbered("null", k): missing, _numbered("log null", k): _log(missing)}
    return found


def _probabilities(grid: Grid, evidence: Evidence) -> dict[str, np.ndarray]:
    both = evidence.both
    found: dict[str, np.ndarray] = {}
    named = {"forward": evidence.forward, "backward": evidence.backward, "both": both}
    for name, p in named.items():
        found |= {name: p, f"log {name}": _log(p)}
    found |= {f"both > {step}": both > step for step in STEPS}
    found |= {"translation": _log(evidence.translation), "reverse": _log(evidence.reverse), "dice": evidence.dice}
    for name, p in (*named.items(), ("dice", evidence.dice)):
        for side, word in enumerate(("source", "target")):
            rival = grid.rivals(p, side)
            found |= {f"{name} above rivals of {word}": p - rival, f"{name} best of {word}": p > rival}
    found["best of both"] = (both > grid.rivals(both, 0)) & (both > grid.rivals(both, 1))
    return found


def _neighbours(grid: Grid, both: np.ndarray, dice: np.ndarray) -> dict[str, np.ndarray]:
    around = {f"both at {down:+d}{right:+d}": grid.neighbour(both, down, right) for down, right in DIAGONALS + SIDES}
    diagonal = np.maximum(around["both at -1-1"], around["both at +1+1"])
    near = [grid.neighbour(dice, down, right) for down, right in DIAGONALS]
    return around | {"both on the diagonal": diagonal * both, "dice on the diagonal": np.maximum(near[0], near[1])}


def _places(grid: Grid) -> dict[str, np.ndarray]:
    rows, columns = grid.sizes[grid.pair].T
    distance = np.abs((grid.source + 0.5) / rows - (grid.target + 0.5) / columns)
    ends = ((grid.source == 0) & (grid.target == 0)) | ((grid.source == rows - 1) & (grid.target == columns - 1))
    return {"distance": distance, "squared distance": distance**2, "same end": ends}


def _spelling(grid: Grid, X: Sequence[Any]) -> dict[str, np.ndarray]:
    (source, source_length, source_kind), (target, target_length, target_kind) = (
        _letters([word for pair in X for word in pair[side]]) for side in (0, 1)
    )
    rows, columns = grid.word(0), grid.word(1)
    same = (source[rows] == target[columns]) & (source[rows] > 0)
    prefix = np.logical_and.accumulate(same, axis=1).sum(axis=1)
    shorter = np.minimum(source_length[rows], target_length[columns])
    longer = np.maximum(source_length[rows], target_length[columns])
    equal = (prefix == np.minimum(shorter, LETTERS)) & (shorter == longer)
    kinds = source_kind[rows], target_kind[columns]
    return {
        "equal": equal,
        "equal and long": equal & (longer > 3),
        "prefix": prefix / np.minimum(longer, LETTERS),
        "long prefix": (prefix >= 4) & ~equal,
        "lengths": np.abs(source_length[rows] - target_length[columns]) / longer,
        "both punctuation": (kinds[0] == 1) & (kinds[1] == 1),
        "one punctuation": (kinds[0] == 1) != (kinds[1] == 1),
        "both numbers": (kinds[0] == 2) & (kinds[1] == 2),
        "one number": (kinds[0] == 2) != (kinds[1] == 2),
    }


def _frequencies(grid: Grid, ranks: tuple[np.ndarray, np.ndarray], both: np.ndarray) -> dict[str, np.ndarray]:
    own = [_rank(ranks[side])[grid.word(side)] for side in (0, 1)]
    common = [(ranks[side] < COMMON)[grid.word(side)] for side in (0, 1)]
    return {
        "ranks apart": np.abs(own[0] - own[1]),
        "rarer": np.maximum(*own),
        "both common": common[0] & common[1],
        "one common": common[0] != common[1],
        "both, of common words": np.where(common[0] & common[1], both, 0.0),
        "both, of a common word": np.where(common[0] != common[1], both, 0.0),
    }


def _numbered(name: str, k: int) -> str:
    """A name with the number of the model that it is from, but for the first."""
    return name if k == 1 else f"{name} ({k})"


def _log(p: np.ndarray) -> np.ndarray:
    """Logarithms, from -1 for hardly anything to 0."""
    return np.log(np.maximum(p, LEAST)) / -np.log(LEAST)


def _rank(ranks: np.ndarray) -> np.ndarray:
    return np.minimum(np.log1p(ranks) / np.log1p(RARE), 1.0)


def _letters(words: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first letters of all words as numbers, 0 after the end, their lengths, and whether they are no words.

    1 stands for punctuation, 2 for numbers.
    """
    known = {word: k for k, word in enumerate(dict.fromkeys(words))}
    codes, lengths, kinds = np.zeros((len(known), LETTERS), np.int32), np.empty(len(known)), np.empty(len(known), int)
    for word, k in known.items():
        start = [ord(letter) for letter in word.lower()[:LETTERS]]
        codes[k, : len(start)], lengths[k] = start, len(word)
        kinds[k] = 1 if not any(map(str.isalnum, word)) else 2 if any(map(str.isdigit, word)) else 0
    used = np.array([known[word] for word in words], np.int64)
    return codes[used], lengths[used], kinds[used]
