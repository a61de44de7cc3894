"""A corpus that looks like chunking: what it says is nonsense, but it can be learnt and has rare words.

Sentences are chains of chunks. A chunk type has its own tags for its first and later tokens, a tag its own words with
Zipf's frequencies, and one tag in twelve is replaced by a random one, so that words and neighbours matter.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

TYPES = ("NP", "VP", "PP", "ADVP", "O")
FOLLOWS = np.array([  # rows: from, columns: to
    [0.1, 0.5, 0.2, 0.1, 0.1],
    [0.5, 0.1, 0.2, 0.1, 0.1],
    [0.9, 0.0, 0.0, 0.1, 0.0],
    [0.3, 0.4, 0.1, 0.0, 0.2],
    [0.5, 0.2, 0.1, 0.2, 0.0],
])  # fmt: skip
TAGS = {
    "NP": (["DT", "PRP", "NN"], ["JJ", "NN", "NNS"]),
    "VP": (["VB", "VBD", "MD"], ["VB", "VBN", "TO"]),
    "PP": (["IN", "TO"], ["IN"]),
    "ADVP": (["RB", "JJ"], ["RB"]),
    "O": ([",", ".", "CC"], []),
}
ALL_TAGS = sorted({tag for first, later in TAGS.values() for tag in first + later})
VOCABULARY = 400  # words of a tag
NOISE = 1 / 12


def corpus(sentences: int, seed: int) -> Iterator[list[list[str]]]:
    """Rows of word, tag and label of every sentence; the same seed gives the same corpus."""
    random = np.random.default_rng(seed)
    for _ in range(sentences):
        kind, rows = int(random.integers(len(TYPES))), list[list[str]]()
        for _ in range(random.integers(5, 18)):
            rows += _chunk(random, TYPES[kind])
            kind = int(random.choice(len(TYPES), p=FOLLOWS[kind]))
        yield rows


def _chunk(random: np.random.Generator, kind: str) -> list[list[str]]:
    first, later = TAGS[kind]
    tags = [first[random.integers(len(first))]]
    tags += [later[random.integers(len(later))] for _ in range(random.integers(0, 3) if later else 0)]
    labels = [kind] if kind == "O" else ["B-" + kind] + ["I-" + kind] * (len(tags) - 1)
    return [_token(random, tag, label) for tag, label in zip(tags, labels, strict=True)]


def _token(random: np.random.Generator, tag: str, label: str) -> list[str]:
    word = f"{tag.lower()}{min(random.zipf(1.3), VOCABULARY)}"
    seen = ALL_TAGS[random.integers(len(ALL_TAGS))] if random.random() < NOISE else tag
    return [word, seen, label]
