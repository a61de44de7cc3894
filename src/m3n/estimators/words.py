"""Reading sentences of words with attributes, and trees over them, with errors that name the place and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m3n.estimators.inputs import PlainReader
from m3n.features.words import GIVEN, WordTable
from m3n.io.conllu import find_circle

Tree = list[tuple[int, Any]]
SHORT = ("form", "upos")  # columns of a word that is a pair


@dataclass(eq=False)
class WordReader(PlainReader):
    """Turns sentences into a table of words.

    A word is a dict with some of the attributes ``form``, ``lemma``, ``upos``, ``xpos`` and ``feats``, a tuple of these
    five in this order, a pair of form and part of speech, or a form alone. The sentences of the ``conllu`` package are
    taken as they are.
    """

    def fit(self, X: Any) -> WordTable:
        """Read sentences to train on."""
        self.width = len(GIVEN)
        table = self.read(X)
        if not len(table.lengths):
            raise ValueError("X is empty: there is nothing to train on")
        return table

    def read(self, X: Any) -> WordTable:
        """Read sentences."""
        if isinstance(X, str) or (len(X) and isinstance(X[0], str | Mapping)):
            raise TypeError(
                "X must be a sequence of sentences, each a sequence of words; for one sentence give [words]"
            )
        return WordTable.of([_sentence(sentence, i) for i, sentence in enumerate(X)])


def read_trees(y: Any, lengths: np.ndarray) -> tuple[list[list[int]], list[list[Any]] | None]:
    """Heads and, if there are any, labels of all words.

    Parameters
    ----------
    y : sequences
        For every word its head, or a pair of its head and its label.
    lengths : array of int (sentences,)
        Words of every sentence.
    """
    if len(y) != len(lengths):
        raise ValueError(f"X has {len(lengths)} sentences but y has {len(y)} trees")
    labelled = len(y) > 0 and len(y[0]) > 0 and _is_pair(y[0][0])
    heads, labels = [], []
    for i, (tree, length) in enumerate(zip(y, lengths.tolist(), strict=True)):
        if len(tree) != length:
            raise ValueError(f"sentence {i} has {length} words in X but {len(tree)} in y")
        for t, entry in enumerate(tree):
            if _is_pair(entry) != labelled:
                pair, head = "a pair of head and label", "a head alone"
                what = f"{pair if labelled else head} as the first word of y is, not {entry!r:.60}"
                raise ValueError(f"sentence {i}, word {t + 1} of y must be {what}")
        heads.append(_checked_heads([int(entry[0] if labelled else entry) for entry in tree], i))
        labels.append([entry[1] for entry in tree] if labelled else [])
    return heads, labels if labelled else None


def _checked_heads(heads: list[int], i: int) -> list[int]:
    for t, head in enumerate(heads, start=1):
        if not 0 <= head <= len(heads):
            raise ValueError(
                f"sentence {i}, word {t}: the head {head} is neither 0, the root, nor a word 1..{len(heads)}"
            )
    circle = find_circle(heads)
    if circle:
        trail = " -> ".join(map(str, [*circle, circle[0]]))
        raise ValueError(f"sentence {i}, word {circle[0]} is its own head, through {trail}: no tree")
    return heads


def _is_pair(entry: Any) -> bool:
    return isinstance(entry, tuple | list) and len(entry) == 2


def _sentence(sentence: Any, i: int) -> list[Mapping[str, str]]:
    if hasattr(sentence, "metadata"):  # of the conllu package, with lines that are no words
        sentence = [token for token in sentence if isinstance(token["id"], int)]
    if not len(sentence):
        raise ValueError(f"sentence {i} has no words; leave it out")
    return [word if _is_plain(word) else _word(word, f"sentence {i}, word {t}") for t, word in enumerate(sentence, 1)]


def _is_plain(word: Any) -> bool:
    return type(word) is dict and all(type(word.get(name, "")) is str for name in GIVEN)


def _word(word: Any, where: str) -> dict[str, str]:
    """A word as a dict of texts."""
    if isinstance(word, str):
        return {"form": word}
    if isinstance(word, Mapping):
        return {name: _text(word[name], name, where) for name in GIVEN if word.get(name) is not None}
    columns = GIVEN if isinstance(word, Sequence) and len(word) == len(GIVEN) else SHORT
    if not isinstance(word, Sequence) or len(word) != len(columns):
        raise TypeError(
            f"{where}: a word must be a dict, ({', '.join(GIVEN)}), (form, upos) or a form, got {word!r:.80}"
        )
    return {name: _text(value, name, where) for name, value in zip(columns, word, strict=True)}


def _text(value: Any, name: str, where: str) -> str:
    if isinstance(value, Mapping):  # morphology that the conllu package has taken apart
        return "|".join(f"{key}={item}" for key, item in value.items())
    if not isinstance(value, str):
        raise TypeError(f"{where}: {name} must be a text, got {value!r:.60}")
    return value
