"""How strongly words belong together by counting alone.

The Dice coefficient of two words is 2 c(e, f) / (c(e) + c(f)), where c counts the sentence pairs in which words occur:
1 for words that always occur together, 0 for words that never do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from m3n.alignment.lexicon import Lexicon
from m3n.alignment.pairs import Corpus, Lexica, Words


def dice_coefficients(corpus: Corpus, lexica: Lexica) -> np.ndarray:
    """Dice coefficients of all types.

    Parameters
    ----------
    corpus : Corpus
        Sentence pairs.
    lexica : Lexica
        Their words.
    """
    packed, types = corpus.packed, corpus.types
    source = sentences_with(packed.source, packed.source_starts, len(lexica.source))
    target = sentences_with(packed.target, packed.target_starts, len(lexica.target))
    return 2.0 * corpus.meetings / (source[types.owners()] + target[types.columns])


def sentences_with(words: np.ndarray, starts: np.ndarray, count: int) -> np.ndarray:
    """In how many sentences every word occurs.

    Parameters
    ----------
    words : array of int (tokens,)
        Numbers of words.
    starts : array of int (sentences + 1,)
        Where sentences begin.
    count : int
        How many words there are.
    """
    sentence = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.bincount(np.unique(sentence * count + words) % count, minlength=count)


def ranks(lexicon: Lexicon, sentences: Sequence[Words]) -> list[np.ndarray]:
    """Places of words by frequency, 0 for the most frequent one; unknown words come after all others.

    Parameters
    ----------
    lexicon : Lexicon
        The words.
    sentences : sequence of lists of str
        Sentences.
    """
    codes = lexicon.codes(sentences)
    codes[codes < 0] = len(lexicon)
    return _split(codes, sentences)


def frequencies(lexicon: Lexicon, sentences: Sequence[Words]) -> list[np.ndarray]:
    """How often words were seen, 0 for unknown ones.

    Parameters
    ----------
    lexicon : Lexicon
        The words.
    sentences : sequence of lists of str
        Sentences.
    """
    return _split(np.append(lexicon.frequencies, 0)[lexicon.codes(sentences)], sentences)


def _split(values: np.ndarray, sentences: Sequence[Words]) -> list[np.ndarray]:
    """Values of words by sentence."""
    return np.split(values, np.cumsum([len(words) for words in sentences]))[: len(sentences)]
